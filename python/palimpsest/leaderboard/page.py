"""A leaderboard as a page: for each drive a chart, the ratios, and the figures under each workload."""

from collections.abc import Iterator, Sequence

from .. import page as shell
from ..charts.common import Specification, trace
from ..page import Section, escape, row, table
from .show import cells, headings, said, under
from .standings import FIGURES, Board, Standing, metric

_ACROSS, _UP = "wa", "read.p99"


def page(found: Board, seeds: int, workloads: Sequence[str], conditions: str) -> str:
    """The whole page; `conditions` are the keys of all runs."""
    drawn = {f"drive-{at}": _chart(layers) for at, layers in enumerate(found.drives.values())}
    sections = [
        Section(f"of-{at}", drive, _drive(found, drive, place))
        for at, (place, drive) in enumerate(zip(drawn, found.drives, strict=True))
    ]
    sections.append(Section("conditions", "Conditions", f"<pre>{escape(conditions)}</pre>"))
    return shell.fill(
        title="Leaderboard", under=said(found, seeds, workloads), head="", sections=sections,
        drawn=drawn,
    )  # fmt: skip


def _drive(found: Board, drive: str, place: str) -> str:
    layers = found.drives[drive]
    across, up = (metric(name).label for name in (_ACROSS, _UP))
    says = f"Of each layer {across} and {up}, over the reference, with intervals over seeds: lower left is better."
    ratios = table("points", [row(headings(), "th"), *(row(cells(each)) for each in layers)])
    notes = "".join(f"<p>{escape(line)}</p>" for line in under(found, drive))
    return shell.chart(place, says) + ratios + notes + shell.folded("By workload", _workloads(layers))


def _workloads(layers: Sequence[Standing]) -> str:
    return table("points", [row(["layer", "workload", *headings()[1:]], "th"), *map(row, _rows(layers))])


def _rows(layers: Sequence[Standing]) -> Iterator[list[str]]:
    for each in layers:
        for workload, values in each.values.items():
            shown = (metric(name).show(values[name].mean) if name in values else "" for name in FIGURES)
            yield [each.layer, workload, *shown]


def _chart(layers: Sequence[Standing]) -> Specification:
    traces = []
    for slot, each in enumerate(layers):
        at = [each.ratios.get(name) for name in (_ACROSS, _UP)]
        if None in at:
            continue
        across, up = (of for of in at if of is not None)
        bars = {
            f"error_{axis}": {"array": [of.high - of.mean], "arrayminus": [of.mean - of.low], "symmetric": False}
            for axis, of in (("x", across), ("y", up))
            if of.low is not None and of.high is not None
        }
        traces.append(
            trace(
                slot, type="scatter", mode="markers+text", name=each.layer, text=[each.layer], x=[across.mean],
                y=[up.mean], textposition="top center", **bars,
            )
        )  # fmt: skip
    axes = {
        f"{axis}axis": {"title": {"text": f"{metric(name).label}, over the reference"}, "type": "log"}
        for axis, name in (("x", _ACROSS), ("y", _UP))
    }
    return {"data": traces, "layout": axes | {"showlegend": False}}
