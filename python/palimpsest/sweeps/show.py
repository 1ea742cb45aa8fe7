"""A sweep for a terminal: a row for each point, its axes and the key figures."""

from collections.abc import Iterator, Sequence
from functools import partial

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..metrics import METRICS, Metric, unequal_promises
from ..summary import ByWidth
from .finished import FinishedPoints, PointResult
from .points import Point
from .values import axis_text

MOST_ROWS = 60
"""Most points of the table; sweep.parquet has all."""

_GAP = 2
_KEY_PATHS = (
    ("throughput", "iops"), ("latency_ns", "read", "p99"), ("latency_ns", "write", "p99"), ("write_amplification",),
    ("flash", "erases"), ("mapping", "bytes_peak"),
)  # fmt: skip
KEY_METRICS = tuple(metric for path in _KEY_PATHS for metric in METRICS if metric.path == path)
"""The figures of a row."""


def key_metrics(points: Sequence[PointResult]) -> list[Metric]:
    """The key figures that at least one point has."""
    results = [point.result for point in points if point.result is not None]
    return [metric for metric in KEY_METRICS if metric.is_shown(results)]


def _table(axes: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False)
    for heading in _headings(axes):
        table.add_column(heading, overflow="fold", header_style="bold")
    return table


def _headings(axes: Sequence[str]) -> list[str]:
    """The axes without the table of their key, if they still differ."""
    short = [axis.rpartition(".")[2] for axis in axes]
    return [name if short.count(name) == 1 else axis for name, axis in zip(short, axes, strict=True)]


def _points(sweep: FinishedPoints, width: int) -> Iterator[Table]:
    """The table, with as many figures as fit."""
    axes, points = sweep.axes, sweep[:MOST_ROWS]
    cells = [[axis_text(point.axes.get(axis)) for axis in axes] for point in points]
    left = width - sum(
        max(len(heading), *(len(row[column]) for row in cells)) + _GAP for column, heading in enumerate(_headings(axes))
    )
    table = _table(axes)
    shown: list[list[str]] = []
    for metric in key_metrics(sweep):
        texts = ["" if point.result is None else metric.cell(point.result) for point in points]
        left -= max(len(metric.label), *map(len, texts)) + _GAP
        if shown and left < 0:
            break
        shown.append(texts)
        table.add_column(metric.label, justify="right", header_style="bold", no_wrap=True)
    for row, point in enumerate(points):
        if point.result is None:
            table.add_row(*cells[row], *([Text("failed", style="red")] if shown else []))
        else:
            table.add_row(*cells[row], *(texts[row] for texts in shown))
    yield table


def render(sweep: FinishedPoints) -> RenderableType:
    """The sweep for rich."""
    unequal = promises(sweep)
    parts: list[RenderableType] = [Text(unequal, style="yellow"), Text()] if unequal else []
    parts += [ByWidth(partial(_points, sweep))] if len(sweep) else []
    if len(sweep) > MOST_ROWS:
        parts.append(Text(f"and {len(sweep) - MOST_ROWS:,} more, all in sweep.parquet", style="dim"))
    parts += [Text(f"failed: {point.label}: {point.error}", style="yellow") for point in sweep.failed[:10]]
    if len(sweep.failed) > 10:
        parts.append(Text(f"and {len(sweep.failed) - 10} more failed", style="yellow"))
    parts += [Text(), Text(summary_line(sweep, with_reused=True))]
    return Group(*parts)


def promises(sweep: FinishedPoints) -> str | None:
    """The warning of layers that make different promises for a write; None if all make the same."""
    return unequal_promises((point.result.label, point.result) for point in sweep if point.result is not None)


def summary_line(sweep: FinishedPoints, *, with_reused: bool = False) -> str:
    """The numbers of points, done and failed; `with_reused` also of points finished before."""
    reused = sum(point.reused for point in sweep) if with_reused else 0
    done = len(sweep) - len(sweep.failed)
    parts = [f"{done:,} of {sweep.total:,} points done"]
    parts += [f"{reused:,} of them before"] if reused else []
    parts += [f"{len(sweep.failed):,} failed"] if sweep.failed else []
    return ", ".join(parts)


def render_plan(axes: Sequence[str], points: Sequence[Point], finished: frozenset[str]) -> RenderableType:
    """The points that a sweep would run."""
    table = _table(["#", *axes, ""])
    for number, point in enumerate(points, start=1):
        state = "finished" if point.identity in finished else ""
        table.add_row(str(number), *(axis_text(point.axes.get(axis)) for axis in axes), Text(state, style="dim"))
    left = {point.identity for point in points} - finished
    kept = len({point.identity for point in points}) - len(left)
    count = "1 point" if len(points) == 1 else f"{len(points):,} points"
    line = f"{count}, {len(left):,} to run" + (f", {kept:,} finished before" if kept else "")
    return Group(table, Text(), Text(line))
