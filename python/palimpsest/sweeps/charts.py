"""Charts of a sweep: axes with their numbers, figures with their units, and the default selection."""

import functools
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ..charts import LIGHT
from ..distribution import need
from ..intervals import interval
from ..metrics import METRICS, is_modelled
from ..result import Result
from ..result import figures as figures_of
from .finished import FinishedPoints
from .table import is_time
from .values import axes_of, axis_text, measures

if TYPE_CHECKING:
    import plotly.graph_objects as go

_PREFERRED = ("latency_ns.write.p99", "latency_ns.read.p99", "write_amplification", "throughput.iops")
_GIVEN = ("schema_version", "seed", "config")
"""Keys of a result that are inputs of the run."""
_REPEATED = ("seed", "start")
"""Axes that repeat a point without changing the point: averaged, not drawn."""


def axis(sweep: FinishedPoints, name: str) -> dict[str, Any]:
    """An axis: `labels` of its values in order, `numbers` if all are numbers or quantities, and their `unit`."""
    values = sweep.values(name)
    found, base = measures(name, values) or (None, "")
    if found is not None:
        pairs = sorted(zip(found, values, strict=True), key=lambda pair: pair[0] or 0.0)
        found, values = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return {"name": name, "labels": [axis_text(value) for value in values], "numbers": found, "unit": base}


@functools.lru_cache(maxsize=1)
def figures(sweep: FinishedPoints) -> dict[str, list[float | None]]:
    """Every numeric figure of each point, None if missing or not modelled; figures that differ come first."""
    found: dict[str, list[float | None]] = {}
    for at, point in enumerate(sweep):
        for name, value in _modelled(point.result).items():
            if name not in found:
                found[name] = [None] * len(sweep)
            found[name][at] = value
    found = {name: values for name, values in found.items() if name not in sweep.axes}
    key = [".".join(metric.path) for metric in METRICS]
    order = sorted(found, key=lambda name: (_constant(found[name]), key.index(name) if name in key else len(key)))
    return {name: found[name] for name in order}


def _modelled(result: Result | None) -> dict[str, float]:
    """The numeric figures of a result, without inputs of the run and figures of the simulator itself."""
    if result is None:
        return {}
    known = {key: value for key, value in result.to_dict().items() if key not in _GIVEN and not is_time(key)}
    return {
        name: number
        for name, value in figures_of(known).items()
        if (number := _number(value)) is not None and is_modelled(result, name.split("."))
    }


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _constant(values: Sequence[float | None]) -> bool:
    return len({value for value in values if value is not None}) < 2


def first_shown(sweep: FinishedPoints) -> dict[str, str]:
    """Default figure, x, colour and facet, from the sweep file, or else by the number of values."""
    drawn = figures(sweep)
    axes = [name for name in sweep.named if len(sweep.values(name)) > 1] or sweep.named
    repeated = (*_REPEATED, *axes_of(sweep.shown, "fleet"))
    several = [name for name in axes if name not in repeated] or axes
    shown = {key: name for key, name in sweep.shown.items() if name in (drawn if key == "figure" else sweep.axes)}
    shown |= {key: word for key, word in sweep.shown.items() if key == "scale"}
    if "figure" not in shown and drawn:
        preferred = [name for name in _PREFERRED if name in drawn and not _constant(drawn[name])]
        shown["figure"] = (preferred or list(drawn))[0]
    taken = set(shown.values())
    numeric = [name for name in several if axis(sweep, name)["numbers"] is not None and name not in taken]
    for key, choices in (
        ("x", sorted(numeric, key=lambda name: -len(sweep.values(name))) + several),
        ("colour", several),
    ):
        left = [name for name in choices if name not in taken]
        if key not in shown and left:
            shown[key] = left[0]
            taken.add(left[0])
    left = [name for name in several if name not in taken and len(sweep.values(name)) <= 6]
    if "facet" not in shown and left:
        shown["facet"] = left[0]
    return shown


def chart(sweep: FinishedPoints, figure: str | None, x: str | None, colour: str | None) -> "go.Figure":
    """A figure over an axis; see `Sweep.plot`."""
    need("report", "plotly")
    import plotly.graph_objects as go

    drawn, shown = figures(sweep), first_shown(sweep)
    figure, x = figure or shown.get("figure"), x or shown.get("x")
    colour = colour or next((shown[key] for key in ("colour", "facet") if key in shown and shown[key] != x), None)
    if figure not in drawn:
        raise ValueError(f"no figure {figure!r} in this sweep; expected one of {', '.join(drawn) or 'none'}")
    for name in (x, colour):
        if name is not None and name not in sweep.axes:
            raise ValueError(f"no axis {name!r} in this sweep; expected one of {', '.join(sweep.axes) or 'none'}")
    if x is None:
        raise ValueError("the sweep has no axis to draw over")
    others = [name for name in sweep.axes if name not in (x, colour) and len(sweep.values(name)) > 1]
    are_repeats = all(name in _REPEATED for name in others)
    along = axis(sweep, x)
    positions = along["numbers"] or along["labels"]
    plot = go.Figure(
        layout={"template": "plotly_white", "xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": figure}}}
    )
    for slot, line in enumerate(axis(sweep, colour)["labels"] if colour else [""]):
        groups: list[list[float]] = [[] for _ in positions]
        for point, value in zip(sweep, drawn[figure], strict=True):
            on_line = colour is None or axis_text(point.axes.get(colour)) == line
            if value is not None and on_line and axis_text(point.axes.get(x)) in along["labels"]:
                groups[along["labels"].index(axis_text(point.axes.get(x)))].append(value)
        means = [fmean(group) if group else None for group in groups]
        ends = [_ends(group, are_repeats=are_repeats) for group in groups]
        # Without caps, because plotly draws those of a missing bar, too.
        bars = {
            "type": "data", "symmetric": False, "width": 0,
            "array": [end and end[0] - fmean(group) for group, end in zip(groups, ends, strict=True)],
            "arrayminus": [end and fmean(group) - end[1] for group, end in zip(groups, ends, strict=True)],
        }  # fmt: skip
        plot.add_scatter(
            x=positions, y=means, name=line, mode="lines+markers", connectgaps=True,
            line_color=LIGHT[slot % len(LIGHT)], error_y=bars if any(ends) else None,
        )  # fmt: skip
    return plot


def _ends(group: Sequence[float], *, are_repeats: bool) -> tuple[float, float] | None:
    """The ends of a bar: of the 95 % interval of repeats, else the most and the least; None for equal values."""
    if len(set(group)) < 2:
        return None
    found = interval(group) if are_repeats else None
    if found is None or found.low is None or found.high is None:
        return max(group), min(group)
    return found.high, found.low


def chart_of_fleets(sweep: FinishedPoints, figure: str | None) -> "go.Figure":
    """The distribution of a figure over the drives of each fleet; see `Sweep.plot_fleets`."""
    need("report", "plotly")
    import plotly.graph_objects as go

    from . import fleet

    found = fleet.fleets(sweep)
    if not found:
        raise ValueError("the sweep has no fleets; expected the axes of a fleet as `fleet` in [report]")
    measured = [name for name in found[0].values if any(each.values[name] for each in found)]
    figure = figure or sweep.shown.get("figure") or next(iter(measured), None)
    if figure not in measured:
        raise ValueError(f"no figure {figure!r} of the fleets; expected one of {', '.join(measured) or 'none'}")
    drawn = fleet.chart(found, figure)
    for line in drawn["data"]:
        line["line"] = {"color": LIGHT[line["meta"]["slot"] % len(LIGHT)]}
    return go.Figure(drawn["data"], {"template": "plotly_white", **drawn["layout"]})
