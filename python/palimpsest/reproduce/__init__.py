"""Reproductions of published results: the runs of a paper, its figures, and its claims beside measured numbers.

A paper is one module with a function that gives a `Reproduction`, and one line in `PAPERS`. What papers share is in
`claims` (claims and the rule of agreement), `figures` (data and pictures), `measures` (figures of a result), `sweeps`
(what papers leave open), `batch` (runs side by side) and `outputs`.
"""

import importlib
from typing import TYPE_CHECKING

from ..errors import InputError
from .batch import Batch
from .claims import ASSUMED, BOTH, IMPLIED

if TYPE_CHECKING:
    from .outputs import Reproduction

__all__ = [
    "ASSUMED",
    "BOTH",
    "HAVE_IMPLIED",
    "IMPLIED",
    "NAMES",
    "PAPERS",
    "Batch",
    "check_settings",
    "chosen",
    "reproduce",
]

PAPERS = {"mga": "mga", "llh": "llh", "spread": "spread", "codesign": "codesign"}
"""Papers whose reproduction exists, and the module of each."""

NAMES = ("mga", "llh", "spread", "codesign", "all")
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


HAVE_IMPLIED = ("mga", "spread", "codesign")
"""Papers whose implied setting is known."""


def check_settings(papers: list[str], settings: str) -> None:
    """Refuses an implied setting that is not known.

    Raises:
        InputError: it is not.
    """
    for paper in papers:
        if settings == IMPLIED and paper not in HAVE_IMPLIED:
            known = ", ".join(HAVE_IMPLIED)
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
    module = importlib.import_module(f".{PAPERS[paper]}", __package__)
    arguments = {"settings": settings} if paper in HAVE_IMPLIED else {}
    made: Reproduction = module.reproduce(batch, full=full, **arguments)
    return made
