"""What papers with an implied setting share: both columns of the table, and the figure of what is next to it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import polars as pl

from . import figures
from .claims import Claim
from .figures import Figure
from .outputs import Reproduction

__all__ = ["beside", "neighbours_figure"]


def beside(made: Reproduction, about: str, claims: Iterable[Claim], added: Sequence[Figure]) -> Reproduction:
    """A reproduction under the assumed setting with the claims and figures of the implied one; real traces come last.

    Args:
        made: under the assumed setting.
        about: what the implied setting is.
        claims: at the implied setting, with the same names.
        added: its figures.
    """
    by_name = {claim.id: claim for claim in claims}
    return replace(
        made,
        about=(*made.about, about),
        claims=tuple(claim.beside(by_name[claim.id]) if claim.id in by_name else claim for claim in made.claims),
        figures=tuple(sorted((*made.figures, *added), key=lambda each: each.id == "traces")),
    )


def neighbours_figure(points: Sequence[tuple[str, str, Sequence[Claim]]], note: str, *, height: float) -> Figure:
    """How many claims agree at the implied setting and next to it, and their numbers.

    Args:
        points: what is changed, its value, and the claims there; the first is the setting itself.
        note: below the picture.
        height: of the picture in inches.
    """
    rows = [
        {"unknown": what, "value": value, "label": f"{what}: {value}"}
        | {"agree": sum(claim.agrees for claim in claims)}
        | {"broken": ", ".join(claim.id for claim in claims if not claim.agrees)}
        | {claim.id: claim.ours for claim in claims}
        for what, value, claims in points
    ]
    data = pl.DataFrame(rows)
    count = len(points[0][2])
    draws = [(f"Claims that agree, of {count}", figures.levels("label", "agree", count, "claims", "all"))]
    svg = figures.panels(data, draws, width=10, height=height)
    return Figure("implied", "The implied setting, one thing changed at a time", note, data, svg)
