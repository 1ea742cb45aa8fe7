"""Charts as plain plotly specifications: what is drawn, from which series. `report` and `Result.plot` show them.

A trace names its colour by a slot (`meta.slot`), which a theme turns into a colour: what a slot stands for never
depends on what else is drawn.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .result import Result

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["CHARTS", "DARK", "LIGHT", "figure", "specification"]

LIGHT = ("#2a78d6", "#eb6834", "#1baf7a", "#eda100", "#e87ba4", "#008300", "#4a3aa7", "#e34948")
DARK = ("#3987e5", "#d95926", "#199e70", "#c98500", "#d55181", "#008300", "#9085e9", "#e66767")
"""Colours of the slots on a light and a dark page; neighbours stay apart for colour-blind readers."""

CAUSES = ("host", "gc", "merge", "rmw", "prefetch", "metadata")
_DASHES = ("solid", "dot", "dash", "dashdot")

Specification = dict[str, Any]


def _trace(slot: int, **fields: Any) -> Specification:  # noqa: ANN401 - plotly's own fields
    return fields | {"meta": {"slot": slot % len(LIGHT)}}


def _part(result: Result, name: str) -> dict[str, Any]:
    found = (result.series or {}).get(name)
    return found if isinstance(found, dict) else {}


def _label(result: Result, results: Sequence[Result], what: str) -> str:
    return what if len(results) == 1 else f"{result['ftl']}, {what}" if what else str(result["ftl"])


def exceedance(lower: Sequence[int], counts: Sequence[int]) -> tuple[list[float], list[float]]:
    """Response times in microseconds, and the share of requests that took at least as long, from a histogram."""
    total = sum(counts)
    times, shares, left = [], [], total
    for bound, count in zip(lower, counts, strict=True):
        if count:
            times.append(bound / 1000)
            shares.append(left / total)
            left -= count
    return times, shares


def latency(results: Sequence[Result]) -> Specification | None:
    """Share of requests that take at least as long as a response time: the tail at a glance, p99 at 1 %."""
    traces = []
    for index, result in enumerate(results):
        for position, kind in enumerate(("read", "write")):
            histogram = _part(result, "latency").get(kind)
            if not histogram or not sum(histogram["count"]):
                continue
            times, shares = exceedance(histogram["lower_ns"], histogram["count"])
            slot = index if len(results) > 1 else position
            line = {"shape": "hv", "width": 2, "dash": _DASHES[position] if len(results) > 1 else "solid"}
            name = _label(result, results, f"{kind}s")
            traces.append(_trace(slot, type="scatter", mode="lines", name=name, x=times, y=shares, line=line))
    if not traces:
        return None
    ticks = {1.0: "all", 0.5: "p50", 0.1: "p90", 0.01: "p99", 0.001: "p99.9", 1e-4: "p99.99", 1e-5: "p99.999"}
    layout = {
        "xaxis": {"type": "log", "title": {"text": "response time (us)"}, "dtick": 1, "exponentformat": "none"},
        "yaxis": {
            "type": "log", "title": {"text": "share of requests that take longer"},
            "tickvals": list(ticks), "ticktext": list(ticks.values()),
        },
    }  # fmt: skip
    return {"data": traces, "layout": layout}


def time(results: Sequence[Result]) -> Specification | None:
    """Throughput, mean response times and write amplification over simulated time, below each other."""
    panels: tuple[tuple[str, tuple[tuple[str, str, float], ...]], ...] = (
        ("MB/s", (("bytes", "throughput", 1e-6),)),
        ("mean (us)", (("read_mean_ns", "read mean", 1e-3), ("write_mean_ns", "write mean", 1e-3))),
        ("write amplif.", (("write_amplification", "write amplification", 1.0),)),
    )
    traces: list[Specification] = []
    for index, result in enumerate(results):
        series = _part(result, "time")
        if not series.get("start_ns") or not series.get("window_ns"):
            continue
        seconds = [start / 1e9 for start in series["start_ns"]]
        for panel, (_, lines) in enumerate(panels, start=1):
            for position, (key, name, factor) in enumerate(lines):
                per = factor * (1e9 / series["window_ns"] if key == "bytes" else 1.0)
                values = [None if value is None else value * per for value in series[key]]
                # Alone, reads and writes have the colours that they have among the response times.
                slot = index if len(results) > 1 else (2, position, 3)[panel - 1]
                line = {"width": 1.5, "dash": _DASHES[position] if len(results) > 1 else "solid"}
                traces.append(
                    _trace(slot, type="scatter", mode="lines", name=_label(result, results, name), x=seconds, y=values,
                           yaxis=f"y{panel}".removesuffix("1"), line=line, showlegend=len(results) == 1 or panel == 2)
                )  # fmt: skip
    if not traces:
        return None
    layout: dict[str, Any] = {"xaxis": {"title": {"text": "simulated time (s)"}, "anchor": "y3"}, "height": 560}
    for panel, (title, _) in enumerate(panels, start=1):
        top = 1 - (panel - 1) * 0.35
        axis = {"title": {"text": title}, "domain": [top - 0.3, top], "rangemode": "tozero"}
        layout[f"yaxis{panel}".removesuffix("1")] = axis
    return {"data": traces, "layout": layout}


def flash(results: Sequence[Result]) -> Specification | None:
    """Flash reads and programs by cause, stacked."""
    rows = [(result, kind) for result in results for kind in ("reads", "programs")]
    labels = [_label(result, results, kind) for result, kind in rows]
    traces = []
    for slot, cause in enumerate(CAUSES):
        counts = [result["flash"]["by_cause"].get(cause, {}).get(kind, 0) for result, kind in rows]
        if any(counts):
            traces.append(_trace(slot, type="bar", orientation="h", name=cause, y=labels, x=counts))
    if not traces:
        return None
    layout = {
        "barmode": "stack",
        "bargap": 0.35,
        "height": 150 + 34 * len(rows),
        "xaxis": {"title": {"text": "flash operations (pages)"}},
        "yaxis": {"autorange": "reversed", "automargin": True},
    }
    return {"data": traces, "layout": layout}


def wear(results: Sequence[Result]) -> Specification | None:
    """How many blocks were erased how often."""
    traces = []
    for index, result in enumerate(results):
        erases = _part(result, "wear").get("erases") or []
        if not erases:
            continue
        counts: dict[int, int] = {}
        for number in erases:
            counts[number] = counts.get(number, 0) + 1
        numbers = sorted(counts)
        name = _label(result, results, "blocks") if len(results) == 1 else str(result["ftl"])
        traces.append(_trace(index, type="bar", name=name, x=numbers, y=[counts[number] for number in numbers]))
    layout = {"xaxis": {"title": {"text": "erases of a block"}}, "yaxis": {"title": {"text": "blocks"}}, "bargap": 0.15}
    return {"data": traces, "layout": layout} if traces else None


def utilization(results: Sequence[Result]) -> Specification | None:
    """Share of the simulated time that each channel and die was busy."""
    traces = []
    for index, result in enumerate(results):
        for position, kind in enumerate(("channels", "dies")):
            shares = _part(result, "utilization").get(kind) or []
            if not any(shares):
                continue
            axes = {"xaxis": "x" if position == 0 else "x2", "yaxis": "y" if position == 0 else "y2"}
            slot = index if len(results) > 1 else position
            percent = [100 * share for share in shares]
            name = kind if len(results) == 1 else str(result["ftl"])
            shown = len(results) == 1 or position == 0
            bars = _trace(slot, type="bar", name=name, x=list(range(len(shares))), y=percent, showlegend=shown, **axes)
            traces.append(bars)
    layout = {
        "xaxis": {"domain": [0, 0.3], "title": {"text": "channel"}},
        "xaxis2": {"domain": [0.38, 1], "title": {"text": "die"}},
        "yaxis": {"title": {"text": "busy (%)"}, "range": [0, 100]},
        "yaxis2": {"anchor": "x2", "range": [0, 100]},
    }
    return {"data": traces, "layout": layout} if traces else None


CHARTS: dict[str, tuple[str, Callable[[Sequence[Result]], Specification | None]]] = {
    "latency": ("Response times", latency),
    "time": ("Over simulated time", time),
    "flash": ("Flash operations by cause", flash),
    "utilization": ("Utilisation", utilization),
    "wear": ("Wear", wear),
}


def specification(name: str, results: Sequence[Result]) -> Specification | None:
    """A chart without colours; None where the results have no data for it."""
    return CHARTS[name][1](results)


def paint(chart: Specification, colours: Sequence[str]) -> Specification:
    """The chart with its slots turned into colours."""
    traces = []
    for trace in chart["data"]:
        colour = colours[trace["meta"]["slot"]]
        key = "line" if trace["type"] == "scatter" else "marker"
        traces.append(trace | {key: trace.get(key, {}) | {"color": colour}})
    return {"data": traces, "layout": chart["layout"]}


def figure(name: str, results: Sequence[Result]) -> "go.Figure":
    """A chart as a plotly figure.

    Raises:
        ValueError: the results have no data for it.
    """
    import plotly.graph_objects as go

    chart = specification(name, results)
    if chart is None:
        raise ValueError(f"these results have no data for the plot {name!r}; run with series=True at timed fidelity")
    layout = {"title": {"text": CHARTS[name][0]}, "template": "plotly_white"} | chart["layout"]
    return go.Figure(data=paint(chart, LIGHT)["data"], layout=layout)
