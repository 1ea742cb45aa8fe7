"""Several runs side by side, for a terminal: a column for each layer, ratios to the first, the best marked.

The best of a row is marked by `*`, so that it shows without colour; rows in which everybody is equal have no best.
Where the columns do not fit, the table is split and the first layer, which the ratios refer to, is not repeated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from . import summary, units
from .result import Result

__all__ = ["METRICS", "SECTIONS", "Metric", "best", "factor", "relative", "render", "verdicts"]

_LABEL_WIDTH = 21
_COLUMN_WIDTH = 19
_EQUAL = 1e-9


@dataclass(frozen=True)
class Metric:
    """One row of the comparison.

    Attributes:
        label: what it is.
        path: where it stands in the result.
        show: how a value is printed.
        better: `low`, `high`, or empty where neither is.
    """

    label: str
    path: tuple[str, ...]
    show: Callable[[float | None], str]
    better: str

    def of(self, result: Result) -> float | None:
        """The value in a result; None where it was not measured."""
        value: object = result[self.path[0]]
        for key in self.path[1:]:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, int | float) else None


def _latencies() -> list[Metric]:
    return [
        Metric(f"{kind} {heading}", ("latency_ns", kind, key), units.nanoseconds, "low")
        for kind in ("read", "write")
        for key, heading in summary.LATENCIES
        if key not in ("p90",)
    ]


SECTIONS: tuple[tuple[str, tuple[Metric, ...]], ...] = (
    (
        "performance",
        (
            Metric("IOPS", ("throughput", "iops"), units.count, "high"),
            Metric("bandwidth", ("throughput", "bytes_per_s"), units.rate, "high"),
            *_latencies(),
        ),
    ),
    (
        "flash",
        (
            Metric("write amplification", ("write_amplification",), units.ratio, "low"),
            Metric("read amplif., host", ("read_amplification", "host"), units.ratio, "low"),
            Metric("read amplif., GC", ("read_amplification", "gc"), units.ratio, "low"),
            Metric("page reads", ("flash", "page_reads"), units.count, "low"),
            Metric("page programs", ("flash", "page_programs"), units.count, "low"),
            Metric("partial programs", ("flash", "partial_programs"), units.count, ""),
            Metric("re-programs", ("flash", "reprograms"), units.count, ""),
            Metric("padding", ("padding_bytes",), units.size, "low"),
            Metric("bytes on flash buses", ("flash", "bytes_transferred"), units.size, "low"),
            Metric("erases", ("flash", "erases"), units.count, "low"),
            Metric("GC runs", ("gc", "runs"), units.count, "low"),
            Metric("GC moved subpages", ("gc", "moved_subpages"), units.count, "low"),
            Metric("GC run mean", ("gc", "mean_ns"), units.nanoseconds, "low"),
            Metric("GC run p99", ("gc", "p99_ns"), units.nanoseconds, "low"),
            Metric("merge moved subpages", ("merge", "moved_subpages"), units.count, "low"),
        ),
    ),
    (
        "cost",
        (
            Metric("map DRAM, peak", ("mapping", "bytes_peak"), units.size, "low"),
            Metric("energy", ("energy_uj", "total"), units.energy, "low"),
            Metric("most erased block", ("lifetime", "max_erases"), units.count, "low"),
            Metric("host writes in life", ("lifetime", "projected_host_bytes"), units.size, "high"),
        ),
    ),
)

METRICS = tuple(metric for _, metrics in SECTIONS for metric in metrics)


def best(metric: Metric, values: Sequence[float | None]) -> list[bool]:
    """Which of the values are the best; none where all are equal or the metric has no better side."""
    known = [value for value in values if value is not None]
    if not metric.better or len(known) < 2:
        return [False] * len(values)
    low, high = min(known), max(known)
    if high - low <= _EQUAL * abs(high):
        return [False] * len(values)
    target = low if metric.better == "low" else high
    return [value is not None and abs(value - target) <= _EQUAL * abs(target) for value in values]


def relative(value: float | None, base: float | None) -> float | None:
    """A value as a multiple of the first layer's; None where there is none."""
    return value / base if value is not None and base else None


def factor(ratio: float | None) -> str:
    """A ratio as it is printed: `1.61x`."""
    if ratio is None:
        return ""
    return f"{ratio:.2f}x" if 0.1 <= ratio < 99.95 else f"{units.number(ratio)}x"


def _cell(metric: Metric, value: float | None, ratio: float | None, is_best: bool, is_first: bool) -> Text:
    shown = metric.show(value)
    times = "" if is_first else factor(ratio)
    text = Text(f"{shown}{'*' if is_best else ' '}{'' if is_first else times.rjust(7)}", no_wrap=True)
    if is_best:
        text.stylize("bold green")
    return text


def _column_groups(total: int, width: int) -> list[list[int]]:
    """Which results stand in which table: as many a table as fit."""
    fitting = max(1, (width - _LABEL_WIDTH) // _COLUMN_WIDTH)
    return [list(range(start, min(start + fitting, total))) for start in range(0, total, fitting)]


class _SideBySide:
    """The table; built when the width is known."""

    def __init__(self, results: Sequence[Result]) -> None:
        self.results = results

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        groups = _column_groups(len(self.results), options.max_width)
        for position, group in enumerate(groups):
            yield self._table(group)
            if position + 1 < len(groups):
                yield Text()

    def _table(self, group: list[int]) -> Table:
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column("", no_wrap=True)
        for index in group:
            name = str(self.results[index]["ftl"])
            heading = "" if index == 0 else " " + "ratio".rjust(7)
            table.add_column(f"{name}{heading or ' '}", justify="right", header_style="bold", no_wrap=True)
        for section, metrics in SECTIONS:
            rows = [metric for metric in metrics if self._shown(metric)]
            if rows:
                table.add_row(Text(section, style="bold underline"))
            for metric in rows:
                values = [metric.of(result) for result in self.results]
                marks = best(metric, values)
                cells = [
                    _cell(metric, values[index], relative(values[index], values[0]), marks[index], index == 0)
                    for index in group
                ]
                table.add_row(f"  {metric.label}", *cells)
        return table

    def _shown(self, metric: Metric) -> bool:
        """Rows that nobody measured or in which everybody has nothing are left out."""
        return any(metric.of(result) for result in self.results)


_VERDICTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("flash bytes programmed", ("write_amplification",)),
    ("erases", ("flash", "erases")),
    ("mean write time", ("latency_ns", "write", "mean")),
    ("p99 write time", ("latency_ns", "write", "p99")),
    ("mean read time", ("latency_ns", "read", "mean")),
    ("map DRAM", ("mapping", "bytes_peak")),
    ("energy", ("energy_uj", "total")),
)


def verdicts(results: Sequence[Result]) -> list[str]:
    """A sentence for each layer after the first: what it gains and what it pays, as multiples of the first."""
    sentences = []
    for result in results[1:]:
        gains: list[str] = []
        costs: list[str] = []
        for label, path in _VERDICTS:
            metric = Metric(label, path, units.ratio, "low")
            ratio = relative(metric.of(result), metric.of(results[0]))
            if ratio is not None and abs(ratio - 1) >= 0.05:
                (gains if ratio < 1 else costs).append(f"{label} {factor(ratio)}")
        said = [f"{verb} {', '.join(items)}" for verb, items in (("gains", gains), ("pays", costs)) if items]
        sentences.append(
            f"{result['ftl']} against {results[0]['ftl']}: {'; '.join(said) or 'within 5 % in every figure above'}."
        )
    return sentences


def render(results: Sequence[Result]) -> RenderableType:
    """The comparison as something rich can print."""
    first = results[0]
    before = first.get("precondition") or {}
    lines = [("drive", summary.drive_line(first)), ("workload", summary.workload_line(first))]
    head = summary.facts([lines[0], *([("before", str(before["spec"]))] if before else []), lines[1]])
    parts: list[RenderableType] = [head, Text(), _SideBySide(results), Text()]
    if len(results) > 1:
        parts.append(Text(f"ratio: to {first['ftl']}; * the best of its row", style="dim"))
        parts += [Text(sentence) for sentence in verdicts(results)]
    notes = dict.fromkeys(f"{result['ftl']}: {note}" for result in results for note in result.get("notes", []))
    parts += [Text(f"note: {note}", style="yellow") for note in notes]
    speed = "; ".join(f"{result['ftl']} {summary.speed_line(result)}" for result in results)
    parts.append(Text(f"simulator: {speed}", style="dim"))
    return Group(*parts)
