"""Runs repeated with several seeds: means with confidence intervals, and ratios of runs paired by seed."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import engine
from .distribution import need
from .intervals import LEVEL, Interval, interval
from .metrics import METRICS, Metric, equal_seeds, is_modelled, no_interval, unequal_promises
from .options import RunOptions
from .result import Comparison, Result
from .sketches import KINDS, Sketch, merged
from .units import NOT_MODELLED

if TYPE_CHECKING:
    import polars as pl
    from rich.console import RenderableType

_PERCENTILES = (50, 90, 99, 99.9)
_LABEL_WIDTH = 21


class Replicates:
    """Runs, each with several seeds: `results` has all of the first run, then of the second, ...."""

    def __init__(self, results: Sequence[Result], labels: Sequence[str], seeds: Sequence[int], method: str) -> None:
        self.labels, self.seeds, self.method = list(labels), list(seeds), method
        count = len(self.seeds)
        self.groups = {label: list(results[at * count : (at + 1) * count]) for at, label in enumerate(self.labels)}

    @property
    def results(self) -> list[Result]:
        """All results."""
        return [result for group in self.groups.values() for result in group]

    def interval(self, metric: Metric, label: str) -> Interval | None:
        """A figure of a run; None if no seed measured the figure."""
        values = [value for value in map(metric.of, self.groups[label]) if value is not None]
        return interval(values, self.method) if values else None

    def _cell(self, metric: Metric, label: str) -> str:
        if not all(is_modelled(result, metric.path) for result in self.groups[label]):
            return NOT_MODELLED
        return _shown(metric, self.interval(metric, label))

    def ratio(self, metric: Metric, label: str) -> Interval | None:
        """A figure of a run over the first run's with the same seed; None if one is missing or zero."""
        pairs = zip(self.groups[label], self.groups[self.labels[0]], strict=True)
        values = [(metric.of(mine), metric.of(base)) for mine, base in pairs]
        ratios = [mine / base for mine, base in values if mine is not None and base]
        return interval(ratios, self.method) if len(ratios) == len(self.seeds) else None

    def percentiles(self, label: str, kind: str = "all") -> dict[float, int | None]:
        """Percentiles of the times of all seeds together, in nanoseconds, within 0.8 %."""
        found = [sketch for result in self.groups[label] if (sketch := Sketch.of(result.to_dict(), kind))]
        together = merged(found)
        return {percent: together.percentile(percent) for percent in _PERCENTILES}

    def to_dict(self) -> dict[str, Any]:
        """The object of `--seeds ... --json`: seeds, the intervals of each run, and all results."""
        groups = []
        for label in self.labels:
            figures, ratios = {}, {}
            for metric in METRICS:
                name = ".".join(metric.path)
                found, ratio = self.interval(metric, label), self.ratio(metric, label)
                figures[name] = None if found is None else found._asdict()
                ratios[name] = None if ratio is None or label == self.labels[0] else ratio._asdict()
            times = {kind: {f"p{p:g}": value for p, value in self.percentiles(label, kind).items()} for kind in KINDS}
            groups.append(
                {"label": label, "figures": figures, "ratios": ratios, "merged_latency_ns": times}
                | {"no_interval": no_interval(self.groups[label])}
            )
        return {
            "seeds": self.seeds,
            "confidence": {"method": self.method, "level": LEVEL},
            "groups": groups,
            "runs": [result.to_dict() for result in self.results],
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent)

    def to_polars(self) -> "pl.DataFrame":
        """A row for each run and figure: `label figure mean low high deviation number`."""
        need("report", "polars")
        import polars as pl

        return pl.DataFrame(self._rows(), infer_schema_length=None)

    def _rows(self) -> list[dict[str, Any]]:
        found = ((label, metric, self.interval(metric, label)) for label in self.labels for metric in METRICS)
        return [
            {"label": label, "figure": ".".join(metric.path)} | each._asdict()
            for label, metric, each in found
            if each is not None
        ]

    def save(self, folder: str | Path) -> Path:
        """Writes the folder of a comparison of all results (`LABEL-seed-N`), and `intervals.csv`; returns its path."""
        text, rows = io.StringIO(), self._rows()
        written = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
        written.writeheader()
        written.writerows(rows)
        return Comparison(self.results).save(folder, {"intervals.csv": text.getvalue()})

    def __rich__(self) -> "RenderableType":
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column("", no_wrap=True, width=_LABEL_WIDTH)
        for at, label in enumerate(self.labels):
            table.add_column(label, justify="right", header_style="bold", overflow="fold")
            if at:
                table.add_column("ratio", justify="right", header_style="bold", overflow="fold")
        for metric in METRICS:
            cells = []
            for at, label in enumerate(self.labels):
                cells.append(self._cell(metric, label))
                if at:
                    ratio = self.ratio(metric, label)
                    cells.append("" if ratio is None else _ratio(ratio))
            if any(cell not in ("-", "") for cell in cells[:1]):
                table.add_row(metric.label, *cells)
        seeds = f"{len(self.seeds)} seeds ({', '.join(map(str, self.seeds[:8]))}{', ...' * (len(self.seeds) > 8)})"
        words = {"t": "Student's t", "bootstrap": "bootstrap"}[self.method]
        last = f"mean of {seeds} and half of its {LEVEL:.0%} interval ({words}); ratios are paired by seed"
        notes = dict.fromkeys(note for result in self.results for note in result.get("notes", []))
        notes |= dict.fromkeys(equal_seeds(self.results))
        unequal = unequal_promises((label, group[0]) for label, group in self.groups.items())
        head = [Text(unequal, style="yellow"), Text()] if unequal else []
        return Group(*head, table, Text(), Text(last), *(Text(f"note: {note}", style="yellow") for note in notes))


def _shown(metric: Metric, found: Interval | None) -> str:
    if found is None or not found.mean:
        return metric.show(None if found is None else found.mean)
    if found.low is None or found.high is None:
        return metric.show(found.mean)
    half = (found.high - found.low) / 2
    return f"{metric.show(found.mean)} ± {100 * half / abs(found.mean):.2g} %"


def _ratio(found: Interval) -> str:
    if found.low is None or found.high is None:
        return f"{found.mean:.3f}"
    return f"{found.mean:.3f} ± {(found.high - found.low) / 2:.2g}"


def replicate(
    runs: Sequence[RunOptions],
    seeds: Sequence[int],
    method: str = "t",
    jobs: int = 1,
    progress: Callable[[str], engine.Progress | None] = lambda _label: None,
) -> Replicates:
    """Runs each of the runs with each seed. Raises Error if one fails or is interrupted; no result is returned then."""
    labels = [run.label or run.ftl or "run" for run in runs]
    chosen = [
        replace(run, seed=seed, label=f"{label}-seed-{seed}", sketch=True)
        for run, label in zip(runs, labels, strict=True)
        for seed in seeds
    ]
    results, failure = engine.run_many(chosen, min(jobs, len(chosen)), progress)
    if failure is not None:
        raise failure
    return Replicates(results, labels, seeds, method)
