"""Reproductions of published results: the runs of a paper, its figures, and its claims beside measured numbers.

A paper is one module with a function that gives a `Reproduction`, and one line in `PAPERS`. What papers share is in
`claims` (claims and the rule of agreement), `figures` (data and pictures), `measures` (figures of a result), `sweeps`
(what papers leave open), `batch` (runs side by side) and `outputs`.
"""

import importlib
from typing import TYPE_CHECKING

from ..errors import InputError
from .batch import Batch

if TYPE_CHECKING:
    from .outputs import Reproduction

__all__ = ["NAMES", "PAPERS", "Batch", "chosen", "reproduce"]

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


def reproduce(paper: str, batch: Batch, *, full: bool = False) -> "Reproduction":
    """Runs what a paper needs.

    Args:
        paper: one of `PAPERS`.
        batch: runs the simulations.
        full: the drive and the number of requests of the paper instead of small ones.
    """
    module = importlib.import_module(f".{PAPERS[paper]}", __package__)
    made: Reproduction = module.reproduce(batch, full=full)
    return made
