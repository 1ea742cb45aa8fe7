"""Sweeps of what a paper leaves open: the reason that they give for a claim that does not agree."""

from collections.abc import Callable

import polars as pl

__all__ = ["reason"]


def reason(
    sweep: pl.DataFrame,
    name: str,
    paper: float,
    agrees: Callable[[float | None], bool],
    number: str = ".1f",
    together: str = "",
) -> str:
    """Which unknown moves an effect most, and which value brings it nearest to the paper's.

    Args:
        sweep: a row for each point, with columns `unknown`, `value`, `label` and `name`; the first is the default.
        name: column of the effect.
        paper: the paper's number.
        agrees: whether a number of ours agrees with the paper's.
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
    end = (
        "which agrees" if agrees(nearest[name]) else "which is still apart: no unknown that we swept explains it alone"
    )
    return (
        f"Swept one at a time from {first[name]:{number}}: {most['unknown']} moves it most ({moved}); nearest to the "
        f"paper is {nearest['label']}, with {nearest[name]:{number}}, {end}."
    )
