"""Reproductions of published results: runs and figures of a paper, and the paper's claims beside measured numbers.

A paper is a folder of `papers` with a `paper.toml` and a module of small functions, and a name in `PAPERS`. `study`
runs the description, `drawing` draws the figures, and `running` combines the settings of a paper.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import InputError
from ..options import RunOptions
from .batch import Batch
from .claims import ASSUMED, BOTH, IMPLIED

if TYPE_CHECKING:
    from .outputs import Reproduction

__all__ = ["ASSUMED", "BOTH", "IMPLIED", "NAMES", "PAPERS", "Batch", "check_settings", "chosen", "plan", "reproduce"]

PAPERS = ("mga", "llh", "spread", "codesign", "womv")
"""The folders of `papers`, in the order of `all`."""

NAMES = (*PAPERS, "all")
"""Names that `reproduce` takes."""


def chosen(name: str) -> list[str]:
    """The papers of a name.

    Raises:
        InputError: the paper's reproduction does not exist yet.
    """
    if name == "all":
        return list(PAPERS)
    if name not in PAPERS:
        there = ", ".join(NAMES)
        raise InputError(f"reproduce {name}: this reproduction does not exist yet; expected one of {there}")
    return [name]


def check_settings(papers: list[str], settings: str) -> None:
    """Refuses an implied setting that is not known.

    Raises:
        InputError: no implied setting of a paper is known.
    """
    if settings != IMPLIED:
        return
    from .study import has_implied

    for paper in papers:
        if not has_implied(paper):
            known = ", ".join(name for name in PAPERS if has_implied(name))
            raise InputError(
                f"reproduce {paper} --implied: no implied setting is known; expected --assumed, or one of {known}"
            )


def plan(papers: list[str], batch: Batch, *, full: bool = False, settings: str = BOTH) -> list[RunOptions]:
    """The simulations of papers with the seeds of a batch; settings as for `reproduce`."""
    from . import running
    from .study import Study

    studies = (Study(paper, batch, full=full) for paper in papers)
    return [batch.seeded(run) for study in studies for run in running.planned(study, settings)]


def reproduce(paper: str, batch: Batch, *, full: bool = False, settings: str = BOTH) -> "Reproduction":
    """Runs the simulations of a paper, and measures claims and figures.

    Args:
        paper: a name in `PAPERS`.
        batch: runs the simulations.
        full: the drive and the number of requests of the paper instead of small ones.
        settings: for everything that the paper leaves open: assumed, implied, or both where an implied one is known.

    Raises:
        InputError: there is no implied setting.
    """
    from . import running

    check_settings([paper], settings)
    made = running.reproduce(paper, batch, full=full, settings=settings)
    if batch.first_seed == 1:
        return made
    return replace(made, about=(*made.about, f"Seeds from {batch.first_seed} on, instead of those from 1 on."))
