"""Shared by all charts: traces with a slot of colour, series of a result, names with ratios, panels."""

from collections.abc import Sequence
from typing import Any

from ..metrics import factor, relative
from ..result import Result

Specification = dict[str, Any]

SLOTS = 8
"""Number of colours."""

DASHES = ("solid", "dot", "dash", "dashdot")

Panel = tuple[str, list[Specification], dict[str, Any]]
"""A title with its unit, the traces, and more settings of the vertical axis."""


def trace(slot: int, **fields: Any) -> Specification:  # noqa: ANN401 - plotly's own fields
    """A trace in the colour of a slot."""
    return fields | {"meta": {"slot": slot % SLOTS}}


_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


def unit_of(times_ns: Sequence[float | None]) -> tuple[float, str]:
    """Nanoseconds and name of the unit of an axis: the largest of which the longest time has ten or more."""
    longest = max((time for time in times_ns if time is not None), default=0)
    return next((each for each in _UNITS if longest >= 10 * each[0]), _UNITS[-1])


def tick(microseconds: float) -> str:
    """A time as the label of a tick: `2 ms`."""
    factor, unit = next((each for each in _UNITS if 1000.1 * microseconds >= each[0]), _UNITS[-1])
    return f"{1000 * microseconds / factor:.6g} {unit}"


def part(result: Result, name: str) -> dict[str, Any]:
    """A series of a result; empty if the result has none."""
    found = (result.series or {}).get(name)
    return found if isinstance(found, dict) else {}


def label(result: Result, results: Sequence[Result], what: str) -> str:
    """The name of a trace, with the layer if there are several."""
    return what if len(results) == 1 else f"{result.label}, {what}" if what else result.label


def layer(result: Result, results: Sequence[Result], value: float | None, base: float | None, what: str = "") -> str:
    """A layer with its multiple of the first layer's value: `mga 0.62x IOPS`."""
    name = result.label
    ratio = "" if result is results[0] else factor(relative(value, base))
    return f"{name} {ratio}{f' {what}' if what else ''}" if ratio else name


def panels(drawn: Sequence[Panel], x_title: str) -> Specification | None:
    """Charts below each other over one horizontal axis, each with its title above."""
    if not drawn:
        return None
    height, head, foot = 150, 32, 90
    whole = height * len(drawn)
    traces: list[Specification] = []
    titles = []
    layout: dict[str, Any] = {"height": whole + foot}
    for index, (title, lines, axis) in enumerate(drawn):
        top = 1 - index * height / whole
        name = f"y{index + 1}" if index else "y"
        traces += [line | {"yaxis": name} for line in lines]
        titles.append(
            {"text": title, "showarrow": False, "x": 0, "y": top, "xref": "paper", "yref": "paper",
             "xanchor": "left", "yanchor": "top", "yshift": -5}
        )  # fmt: skip
        domain = [max(0.0, top - height / whole), top - head / whole]
        layout[f"yaxis{name[1:]}"] = {"domain": domain, "rangemode": "tozero", "nticks": 5, "automargin": True} | axis
    layout["xaxis"] = {"title": {"text": x_title}, "anchor": name}
    layout["annotations"] = titles
    return {"data": traces, "layout": layout}
