"""A sweep for a terminal: a row for each point, its axes and the key figures."""

from collections.abc import Iterator, Sequence
from functools import partial

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .. import fair
from ..metrics import METRICS, Metric, metric_of
from ..summary import ByWidth
from .checks import checks
from .finished import FinishedPoints
from .fleet import Fleet, fleets
from .fleet import rows as fleet_rows
from .frontier import Frontier, frontier
from .points import Point
from .values import axis_text, readable_axes

MOST_ROWS = 60
"""Most points of the table; sweep.parquet has all."""

MOST_HOLDING = 20
"""Most configurations that hold conditions; JSON has all."""
FAILED = "failed"

GAP = 2
_KEY_PATHS = (
    ("throughput", "iops"), ("latency_ns", "read", "p99"), ("latency_ns", "write", "p99"), ("write_amplification",),
    ("flash", "erases"), ("mapping", "bytes_peak"),
)  # fmt: skip
KEY_METRICS = tuple(metric for path in _KEY_PATHS for metric in METRICS if metric.path == path)
"""The figures of a row."""


def key_metrics(sweep: FinishedPoints) -> list[Metric]:
    """The figure of the sweep file, then the key figures that at least one point has."""
    first = [metric_of(sweep.shown["figure"])] if "figure" in sweep.shown else []
    hidden = [metric for metric in KEY_METRICS if metric not in first]
    for result in sweep.results():
        hidden = [metric for metric in hidden if not metric.is_shown([result])]
        if not hidden:
            break
    return first + [metric for metric in KEY_METRICS if metric not in first and metric not in hidden]


def _headings(axes: Sequence[str]) -> list[str]:
    """The axes without the table of their key, if they still differ."""
    short = [axis.rpartition(".")[2] for axis in axes]
    return [name if short.count(name) == 1 else axis for name, axis in zip(short, axes, strict=True)]


def rows_of_text(
    headings: Sequence[str], rows: Sequence[Sequence[str]], left: int, width: int, *, least: int | None = None
) -> Iterator[RenderableType]:
    """Rows of texts, the first `left` columns to the left, without the last columns that do not fit.

    Where `least` columns (None for all) do not fit, each row becomes a sentence, because cut cells are unreadable.
    """
    columns = zip(headings, *rows, strict=True)
    wide = [max(len(line) for text in column for line in text.split("\n")) for column in columns]
    number = next((at for at in range(len(wide)) if sum(wide[: at + 1]) + GAP * at > width), len(wide))
    if number < (len(wide) if least is None else least):
        for row in rows:
            pairs = zip(headings, row, strict=True)
            named = [" ".join([*name.split("\n")[:1], cell]).strip() for name, cell in pairs if cell]
            yield Text(", ".join(named), style="red" if FAILED in row else "")
        return
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False)
    for at, heading in enumerate(headings[:number]):
        table.add_column(heading, justify="left" if at < left else "right", header_style="bold", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell, style="red" if cell == FAILED else "") for cell in row[:number]))
    yield table


def _points(sweep: FinishedPoints, width: int) -> Iterator[RenderableType]:
    """The table of points, with as many figures as fit."""
    axes, metrics = sweep.named, key_metrics(sweep)
    rows = []
    for point in sweep[:MOST_ROWS]:
        failed = [FAILED, *[""] * (len(metrics) - 1)] if metrics else []
        result = point.result
        shown = failed if result is None else [metric.cell(result) for metric in metrics]
        rows.append([*(axis_text(point.axes.get(axis)) for axis in axes), *shown])
    headings = [*_headings(axes), *(metric.label for metric in metrics)]
    yield from rows_of_text(headings, rows, len(axes), width, least=len(axes) + bool(metrics))


def _fleets(found: Sequence[Fleet], width: int) -> Iterator[RenderableType]:
    """The distributions of figures over the drives of each fleet."""
    headings, *rows = fleet_rows(found)
    axes = len(found[0].axes)
    yield from rows_of_text([*_headings(headings[:axes]), *headings[axes:]], rows, axes + 1, width)


def _frontier(found: Frontier, width: int) -> Iterator[RenderableType]:
    """The configurations that hold the conditions."""
    yield Text()
    headings, *rows = found.rows(MOST_HOLDING)
    axes = len(headings) - len(found.conditions) - 1
    yield from rows_of_text([*_headings(headings[:axes]), *headings[axes:]], rows, axes, width)


def render(sweep: FinishedPoints) -> RenderableType:
    """The sweep for rich."""
    found = frontier(sweep)
    parts: list[RenderableType] = [Text(found.sentence, style="bold"), Text()] if found else []
    parts += fair.warnings(checks(sweep))
    if of_fleets := fleets(sweep):
        parts.append(ByWidth(partial(_fleets, of_fleets)))
    elif len(sweep):
        parts.append(ByWidth(partial(_points, sweep)))
    if len(sweep) > MOST_ROWS and not of_fleets:
        parts.append(Text(f"and {len(sweep) - MOST_ROWS:,} more, all in sweep.parquet", style="dim"))
    parts += [Text(f"failed: {point.label}: {point.error}", style="yellow") for point in sweep.failed[:10]]
    if len(sweep.failed) > 10:
        parts.append(Text(f"and {len(sweep.failed) - 10} more failed", style="yellow"))
    if found and found.holding:
        parts.append(ByWidth(partial(_frontier, found)))
    parts += [Text(f"note: {note}", style="yellow") for note in sweep.unmoved()]
    parts += [Text(), Text(summary_line(sweep, with_reused=True))]
    return Group(*parts)


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
    axes = readable_axes(axes, [point.axes for point in points])
    rows = [
        [str(number), *(axis_text(point.axes.get(axis)) for axis in axes), "finished" * (point.identity in finished)]
        for number, point in enumerate(points, start=1)
    ]
    left = {point.identity for point in points} - finished
    kept = len({point.identity for point in points}) - len(left)
    count = "1 point" if len(points) == 1 else f"{len(points):,} points"
    line = f"{count}, {len(left):,} to run" + (f", {kept:,} finished before" if kept else "")
    return Group(ByWidth(partial(rows_of_text, ["#", *_headings(axes), ""], rows, len(axes) + 2)), Text(), Text(line))
