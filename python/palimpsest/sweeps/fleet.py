"""The fleets of a sweep: drives that differ only in some axes, such as seeds and ages, as distributions of figures.

`fleet` in `[report]` names these axes; each combination of the other axes is a fleet. Percentiles are over drives, each
with equal weight, interpolated between the nearest two. Ignored: drives that an operator replaces, and figures of
failed drives.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..metrics import Metric, metric_of, unit
from .finished import FinishedPoints, PointResult
from .values import Value, axes_of, axis_text

if TYPE_CHECKING:
    from ..charts.common import Specification

PERCENTS = (0, 1, 50, 99, 100)
"""The percentiles of a fleet: the least, and the most, are those of single drives."""

HEADINGS = ("least", "p1", "median", "p99", "most")
_FIGURES = ("endurance.tbw", "latency_ns.read.p99", "latency_ns.write.p99", "write_amplification")
_MOST_LINES = 8
_MOST_STEPS = 1_000


def percentile(values: Sequence[float], percent: float) -> float:
    """A percentile of sorted values, of which there is at least one, interpolated between the nearest two."""
    place = (len(values) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (place - below)


@dataclass(frozen=True)
class Fleet:
    """The drives of one combination of `axes`: their number, those that failed, and sorted `values` by figure.

    `with_read_errors` drives answered a read of the host with an error.
    """

    axes: dict[str, Value | None]
    drives: int
    failed: int
    with_read_errors: int
    values: dict[str, list[float]]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with percentiles by figure."""
        figures = {
            name: {f"p{percent}": percentile(values, percent) for percent in PERCENTS}
            for name, values in self.values.items()
            if values
        }
        return {
            "axes": self.axes, "drives": self.drives, "failed": self.failed,
            "with_read_errors": self.with_read_errors, "figures": figures,
        }  # fmt: skip


def figures_of(sweep: FinishedPoints) -> list[Metric]:
    """The figures of fleets: that of the sweep file, endurance, latencies and write amplification."""
    names = dict.fromkeys([sweep.shown.get("figure", _FIGURES[0]), *_FIGURES])
    return [metric_of(name) for name in names]


def fleets(sweep: FinishedPoints) -> list[Fleet]:
    """The fleets in the order of the sweep's file; empty without `fleet`."""
    within = axes_of(sweep.shown, "fleet")
    if not within:
        return []
    metrics = figures_of(sweep)
    groups = sweep.grouped([axis for axis in sweep.axes if axis not in within])
    return [_fleet(axes, points, metrics) for axes, points in groups]


def _fleet(axes: dict[str, Value | None], points: Sequence[PointResult], metrics: Sequence[Metric]) -> Fleet:
    values: dict[str, list[float]] = {".".join(metric.path): [] for metric in metrics}
    failed = with_read_errors = 0
    for point in points:
        result = point.result
        if result is None:
            failed += 1
            continue
        with_read_errors += bool((result.get("reliability") or {}).get("failed_reads"))
        for metric in metrics:
            value = metric.of(result)
            if value is not None:
                values[".".join(metric.path)].append(value)
    for each in values.values():
        each.sort()
    return Fleet(axes, len(points), failed, with_read_errors, values)


def rows(found: Sequence[Fleet]) -> Iterator[list[str]]:
    """The fleets as text: a row for each figure that was measured; headings come first."""
    axes = list(found[0].axes)
    yield [*axes, "figure", "drives", "failed", "read errors", *HEADINGS]
    for fleet in found:
        numbers = [f"{fleet.drives:,}", f"{fleet.failed:,}", f"{fleet.with_read_errors:,}"]
        given = [axis_text(fleet.axes[axis]) for axis in axes]
        measured = {name: values for name, values in fleet.values.items() if values}
        for name, values in measured.items():
            metric = metric_of(name)
            yield [*given, metric.label, *numbers, *(metric.show(percentile(values, each)) for each in PERCENTS)]
        if not measured:
            yield [*given, "", *numbers, *[""] * len(PERCENTS)]


def chart(found: Sequence[Fleet], name: str) -> "Specification":
    """The share of drives with at most a value of the figure `name`: a line for each of the first fleets."""
    from ..charts.common import trace, unit_of

    known = [value for fleet in found for value in fleet.values[name]]
    factor, measure = unit_of(known) if unit(name) == "ns" else (1.0, unit(name))
    lines = []
    for slot, fleet in enumerate(found[:_MOST_LINES]):
        values = fleet.values[name]
        steps = min(len(values) - 1, _MOST_STEPS) if values else -1
        shares = [100 * step / max(steps, 1) for step in range(steps + 1)]
        label = ", ".join(f"{axis} {axis_text(value)}" for axis, value in fleet.axes.items()) or "all drives"
        drawn = [percentile(values, share) / factor for share in shares]
        lines.append(trace(slot, type="scatter", mode="lines", name=label, x=drawn, y=shares))
    title = f"{metric_of(name).label} ({measure})" if measure else metric_of(name).label
    share = {"title": {"text": "drives (%)"}, "range": [0, 100]}
    return {"data": lines, "layout": {"xaxis": {"title": {"text": title}}, "yaxis": share}}
