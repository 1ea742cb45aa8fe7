"""Reproductions of published results: the runs of a paper, its figures, and its claims beside measured numbers.

A paper is one module with a function that gives a `Reproduction`, and one line in `PAPERS`. What papers share is in
`claims` (claims and the rule of agreement), `figures` (data and pictures), `measures` (figures of a result), `sweeps`
(what papers leave open), `batch` (runs side by side) and `outputs`.
"""

import importlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..errors import InputError
from .batch import Batch
from .claims import ASSUMED, BOTH, IMPLIED

if TYPE_CHECKING:
    from .outputs import Reproduction

__all__ = [
    "ASSUMED",
    "BOTH",
    "IMPLIED",
    "NAMES",
    "PAPERS",
    "Batch",
    "Paper",
    "check_settings",
    "chosen",
    "reproduce",
]


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose reproduction exists.

    Attributes:
        module: has the function `reproduce`.
        has_implied: whether the setting that the paper's own numbers imply is known.
    """

    module: str
    has_implied: bool


PAPERS = {
    "mga": Paper("mga", has_implied=True),
    "llh": Paper("llh", has_implied=True),
    "spread": Paper("spread", has_implied=True),
    "codesign": Paper("codesign", has_implied=True),
    "womv": Paper("womv", has_implied=False),
}
"""Papers by the names that `reproduce` takes."""

NEW = ["womv", "mga", "spread", "codesign"]
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
        there = ", ".join([*PAPERS, "all"])
        raise InputError(f"reproduce {name}: this reproduction does not exist yet; expected one of {there}")
    return [name]


def check_settings(papers: list[str], settings: str) -> None:
    """Refuses an implied setting that is not known.

    Raises:
        InputError: it is not.
    """
    for paper in papers:
        if settings == IMPLIED and not PAPERS[paper].has_implied:
            known = ", ".join(name for name, each in PAPERS.items() if each.has_implied)
            raise InputError(
                f"reproduce {paper} --implied: no implied setting is known; expected --assumed, or one of {known}"
            )


def reproduce(paper: str, batch: Batch, *, full: bool = False, settings: str = BOTH) -> "Reproduction":
    """Runs what a paper needs.

    Args:
        paper: one of `PAPERS`.
        batch: runs the simulations.
        full: the drive and the number of requests of the paper instead of small ones.
        settings: of what the paper does not say: assumed, implied, or both where an implied one is known.

    Raises:
        InputError: there is no implied setting.
    """
    check_settings([paper], settings)
    if paper in NEW:
        from . import running
        made = running.reproduce(paper, batch, full=full, settings=settings)
        return made if batch.first_seed == 1 else replace(made, about=(*made.about, f"Seeds from {batch.first_seed} on, instead of those from 1 on."))
    module = importlib.import_module(f".{PAPERS[paper].module}", __package__)
    arguments = {"settings": settings} if PAPERS[paper].has_implied else {}
    made: Reproduction = module.reproduce(batch, full=full, **arguments)
    if batch.first_seed == 1:
        return made
    return replace(made, about=(*made.about, f"Seeds from {batch.first_seed} on, instead of those from 1 on."))
