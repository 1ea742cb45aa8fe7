"""Sweeps of unknowns, things that a paper leaves open: one changed at a time, to explain a claim."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import polars as pl

from ..evidence import agreement as words

__all__ = ["points", "reason"]


def points(
    unknowns: Iterable[Mapping[str, Any]],
    effects: Callable[[Mapping[str, Any]], dict[str, float | None]],
    names: Iterable[str],
) -> pl.DataFrame:
    """A row for each point: `unknown`, `value`, `label`, and the effects.

    Args:
        unknowns: the points: `what` is changed, the `value` in words, and the changes; the first is the default.
        effects: measures a point.
        names: of the effects.
    """
    rows = [
        {"unknown": each["what"], "value": each["value"], "label": f"{each['what']}: {each['value']}"} | effects(each)
        for each in unknowns
    ]
    texts = dict.fromkeys(("unknown", "value", "label"), pl.String())
    return pl.DataFrame(rows, schema=texts | dict.fromkeys(names, pl.Float64()))


def reason(
    sweep: pl.DataFrame,
    name: str,
    paper: float,
    agrees: Callable[[float | None], bool],
    number: str = ".1f",
    together: str = "",
) -> str:
    """Names the unknown that moves an effect most, and the value that brings the effect nearest to the paper's number.

    Args:
        sweep: a row for each point, with columns `unknown`, `value`, `label` and `name`; the first is the default.
        name: column of the effect.
        paper: the paper's number.
        agrees: whether a measured number agrees with the paper's.
        number: format of the numbers.
        together: name under `unknown` of points that change several things, none of which moves the effect alone.
    """
    rows = [row for row in sweep.iter_rows(named=True) if row[name] is not None]
    if len(rows) < 2 or sweep[name][0] is None:
        return "These runs are too short to measure it."
    first, *others = rows
    most = max((row for row in others if row["unknown"] != together), key=lambda row: abs(row[name] - first[name]))
    moved = "; ".join(f"{row['value']}: {row[name]:{number}}" for row in others if row["unknown"] == most["unknown"])
    nearest = min(others, key=lambda row: (not agrees(row[name]), abs(row[name] - paper)))
    end = words.nearest(agreeing=agrees(nearest[name]))
    return (
        f"Swept one at a time from {first[name]:{number}}: {most['unknown']} moves it most ({moved}); nearest to the "
        f"paper is {nearest['label']}, with {nearest[name]:{number}}, {end}."
    )
