"""Charts as plain plotly specifications, from the series of results. `report` and `Result.plot` show them.

A trace names its colour by a slot (`meta.slot`) or a state of a block (`meta.state`), which a theme turns into a
colour, so a slot means the same in every chart. Heat maps have their own scale.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..distribution import need
from ..result import Result
from . import blocks
from . import flash as operations
from . import handles as by_handle
from . import latency as response
from . import parts as parts_of_latency
from . import tenants as by_tenant
from . import time as series
from . import volumes as by_volume
from .common import Specification, part

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["CHARTS", "DARK", "LIGHT", "Chart", "Specification", "figure", "specification"]

LIGHT = ("#2a78d6", "#eb6834", "#1baf7a", "#eda100", "#e87ba4", "#008300", "#4a3aa7", "#e34948")
DARK = ("#3987e5", "#d95926", "#199e70", "#c98500", "#d55181", "#008300", "#9085e9", "#e66767")
"""Colours of the slots on a light and a dark page; neighbours stay apart for colour-blind readers."""


@dataclass(frozen=True)
class Chart:
    """A chart: heading, function of results (None without data), and a sentence on how to read the chart."""

    title: str
    draw: Callable[[Sequence[Result]], Specification | None]
    says: str


CHARTS: dict[str, Chart] = {
    "cdf": Chart("Response times", response.cdf, "Share of requests that take at most a response time."),
    "latency": Chart(
        "Response times, tail", response.latency,
        "Share of requests that take longer than a response time; both axes logarithmic, so that the tail shows.",
    ),
    "why": Chart(
        "Where response times come from", parts_of_latency.parts,
        "Parts of the response time of the requests at a percentile, along the critical path. A wait for a die belongs "
        "to the work that held the die.",
    ),
    "time": Chart(
        "Over simulated time", series.time,
        "Windows of equal length. Flash operations belong to the window in which they ended, write amplification to "
        "the window of the requests. Dotted: write amplification since the measurement began.",
    ),
    "progress": Chart(
        "Over bytes written", series.progress,
        "Write amplification, collection and erases between snapshots: a counted run has no time.",
    ),
    "flash": Chart("Flash operations by cause", operations.flash, "Page reads and page programs by cause."),
    "utilization": Chart(
        "Utilisation", operations.utilization, "Share of the simulated time that each bus and each die was busy."
    ),
    "volumes": Chart(
        "Volumes", by_volume.volumes,
        "Requests of each volume of the trace; at most the twenty busiest.",
    ),
    "tenants": Chart(
        "Tenants", by_tenant.tenants,
        "99th percentile of the response times of each tenant: the sections of a job file, or volumes; at most the "
        "twenty busiest. Alone: in a run of its own.",
    ),
    "handles": Chart(
        "Reclaim unit handles", by_handle.handles,
        "Written by the host with each handle, and moved out of its reclaim units by collection; units that hold moved "
        "data of several handles are the controller's.",
    ),
    "wear": Chart("Wear", blocks.wear, "How many blocks were erased how often, preconditioning included."),
    "wear_map": Chart(
        "Wear by address", blocks.wear_map,
        "Erases of each block by address: a row for each plane; neighbours are joined on large drives.",
    ),
    "reliability": Chart(
        "Reads with errors", series.reliability,
        "ECC margin: share of the correctable bits that the worst read of a window left unused in its first step. "
        "Retries and losses belong to the window in which the read was planned.",
    ),
    "states": Chart(
        "States of blocks", blocks.states,
        "Subpages: valid, invalid (their data replaced or trimmed since) or free. Blocks: free (erased), open (some "
        "pages programmed), partial (all pages programmed, some of their subpages not), full, reused (low pages "
        "programmed again over data) or bad.",
    ),
}  # fmt: skip


def specification(name: str, results: Sequence[Result]) -> Specification | None:
    """A chart without colours; None if the results have no data for the chart."""
    return CHARTS[name].draw(results)


def paint(chart: Specification, colours: Sequence[str], dark: bool = False) -> Specification:
    """The chart with colours in place of slots and states."""
    traces = []
    for each in chart["data"]:
        meta = each["meta"]
        if "state" in meta:
            colour = (blocks.STATES | blocks.SUBPAGES)[meta["state"]][dark]
            traces.append(each | {"fillcolor": colour})
        elif "slot" in meta:
            key = "line" if each["type"] == "scatter" else "marker"
            traces.append(each | {key: each.get(key, {}) | {"color": colours[meta["slot"]]}})
        else:
            traces.append(each)
    return {"data": traces, "layout": chart["layout"]}


def figure(name: str, results: Sequence[Result]) -> "go.Figure":
    """A chart as a plotly figure. Raises ValueError if the results have no data for the chart."""
    need("report", "plotly")
    import plotly.graph_objects as go

    chart = specification(name, results)
    if chart is None:
        if name == "wear_map" and any(part(result, "wear") for result in results):
            raise ValueError("no block was erased yet: there is nothing to see in the plot 'wear_map'")
        option = "operations='slowest:20'" if name == "why" else "series=True at timed fidelity"
        raise ValueError(f"these results have no data for the plot {name!r}; run with {option}")
    layout = {"title": {"text": CHARTS[name].title}, "template": "plotly_white"} | chart["layout"]
    return go.Figure(data=paint(chart, LIGHT)["data"], layout=layout)
