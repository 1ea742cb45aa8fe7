"""The charts of a fit: measured figures beside ours, and deviations below. Charts ignore figures that we lack.

Passes over the drive are laid over each other: the band is the range of ours at a place of the pass, the line the
median, the points are measured. Other figures are grouped by run, a panel for each unit.
"""

from collections.abc import Sequence
from statistics import median
from typing import Any

import polars as pl

from ..charts.common import Specification, panels, trace

_LEAST_PASSES = 3
"""Fewer passes are drawn one after the other."""
_WINDOWS = 20
"""Places of a pass, at most."""


def says(rows: pl.DataFrame) -> tuple[str, str]:
    """How to read both charts of a measurement."""
    held = rows.filter("held_out")["group"].unique(maintain_order=True).to_list()
    more = f" Held out: {', '.join(held[:6])}{', ...' if len(held) > 6 else ''}." if held else ""
    read = "Filled: ours; hollow: measured."
    if is_curve(rows):
        laid = "All passes over each other: the band is the range of ours, the line the median. " if _laid(rows) else ""
        read = f"{laid}Dots are measured; dotted is the median at the start."
    return read, f"Deviation of ours, in percent.{more}"


def is_curve(rows: pl.DataFrame) -> bool:
    """Whether the figures are one quantity over passes."""
    return rows["figure"].n_unique() == 1 and rows["at"].n_unique() > _WINDOWS // 2


def measured(rows: pl.DataFrame) -> Specification:
    """Measured figures beside ours."""
    return _curve(rows) if is_curve(rows) else _by_group(rows, ("real", "ours"))


def deviations(rows: pl.DataFrame) -> Specification:
    """Deviations of ours in percent: of groups that the fit saw, and of groups that were held out."""
    if not is_curve(rows):
        return _by_group(rows, ("deviation_percent",))
    parts = ((False, "fitted", 0), (True, "held out", 1))
    drawn = [
        trace(slot, type="scatter", mode="markers", name=name, x=own["at"].to_list(),
              y=own["deviation_percent"].to_list(), marker={"size": 5, "opacity": 0.7})
        for held, name, slot in parts if (own := rows.filter(pl.col("held_out") == held)).height
    ]  # fmt: skip
    axes = {"xaxis": {"title": {"text": _PASSES}}, "yaxis": {"title": {"text": "deviation (%)"}}}
    return {"data": drawn, "layout": axes | {"height": 240}}


_PASSES = "passes over the drive"


def _laid(rows: pl.DataFrame) -> bool:
    return bool(rows["at"].max() - rows["at"].min() >= _LEAST_PASSES)  # type: ignore[operator]


def _curve(rows: pl.DataFrame) -> Specification:
    laid = _laid(rows)
    places = [round(at % 1 if laid else at, 6) for at in rows["at"].to_list()]
    # Readings at any moment of a pass are joined in windows; windows of a table keep their places.
    if laid and len(set(places)) > 2 * _WINDOWS:
        places = [(int(place * _WINDOWS) + 0.5) / _WINDOWS for place in places]

    def line(name: str, slot: int, column: str, of: Any, **look: Any) -> Specification:  # noqa: ANN401 - of plotly
        found: dict[float, list[float]] = {}
        for place, value in zip(places, rows[column].to_list(), strict=True):
            if value is not None:
                found.setdefault(place, []).append(value)
        xs = sorted(found)
        return trace(slot, type="scatter", mode="lines", name=name, x=xs, y=[of(found[x]) for x in xs], **look)

    thin = {"line": {"width": 0}, "hoverinfo": "skip"}
    band = [line("", 1, "ours", min, **thin, showlegend=False), line("range", 1, "ours", max, **thin, fill="tonexty")]
    drawn = [
        *(band if laid else []),
        line("start", 2, "start", median, line={"width": 2, "dash": "dot"}),
        trace(0, type="scatter", mode="markers", name="measured", x=places, y=rows["real"].to_list(),
              marker={"size": 4, "opacity": 0.5}),
        line("ours", 1, "ours", median, line={"width": 2}),
    ]  # fmt: skip
    title = f"{rows['figure'][0]} ({rows['unit'][0]})".removesuffix(" ()")
    axes = {"xaxis": {"title": {"text": "part of a pass over the drive" if laid else _PASSES}}}
    return {"data": drawn, "layout": axes | {"yaxis": {"title": {"text": title}, "rangemode": "tozero"}}}


def _by_group(rows: pl.DataFrame, columns: Sequence[str]) -> Specification:
    """Points of each figure by group: a panel for each unit, or one for deviations."""
    alone = columns == ("deviation_percent",)
    named = rows["figure"].unique(maintain_order=True).to_list()
    units = {"%": rows} if alone else {str(unit): own for (unit,), own in rows.group_by("unit", maintain_order=True)}
    drawn = []
    for unit, own in units.items():
        traces = []
        for name in own["figure"].unique(maintain_order=True).to_list():
            of = own.filter(pl.col("figure") == name)
            for column in columns:
                hollow = "-open" if column == "real" else ""
                traces.append(
                    trace(named.index(name), type="scatter", mode="markers", name=name, legendgroup=name,
                          showlegend=not hollow, x=of["group"].to_list(), y=of[column].to_list(),
                          marker={"size": 9 if hollow else 6, "symbol": f"circle{hollow}"})
                )  # fmt: skip
        axis = {"rangemode": "normal"} if alone else {"type": "log"}
        figure = "deviation" if alone else "figures" if len(traces) > len(columns) else str(own["figure"][0])
        drawn.append((f"{figure} ({unit})".removesuffix(" ()"), traces, axis))
    made = panels(drawn, "run")
    assert made is not None
    made["layout"]["xaxis"] |= {"type": "category", "autotickangles": [0, 90]}
    made["layout"]["height"] += 100
    return made
