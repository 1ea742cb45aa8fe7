"""Runs repeated with several seeds: one contender for each label, with means, intervals and verdicts.

All outputs take `Replicates.contenders`, a result with the means for each label, whose `repeats` are the runs. A folder
of `--out` has `replicates` in its summary.json: contenders, seeds, and the method of the intervals. Folders of earlier
versions, whose runs have labels that end in `-seed-N`, are read as replicates, too.
"""

import csv
import functools
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import answers, engine, fair
from .distribution import need
from .errors import InputError
from .intervals import LEVEL, METHODS, Interval, interval
from .metrics import METRICS, Metric, equal_seeds, is_modelled, no_interval
from .options import SPREAD, RunOptions
from .repeats import mean
from .result import Result, Shown
from .sketches import KINDS, Sketch, merged
from .units import NOT_MODELLED
from .verdicts import Judged, Verdict, all_verdicts, judge

if TYPE_CHECKING:
    import polars as pl
    from rich.console import RenderableType

_PERCENTILES = (50, 90, 99, 99.9)
_LABEL_WIDTH = 21
MANIFEST = "replicates"
"""The key of summary.json that has contenders, seeds and method."""


class Replicates(Shown):
    """Runs, each with several seeds: `results` has all of the first run, then of the second, ....

    Args:
        results: the runs of the first label in the order of the seeds, then of the second, and so on.
        labels: the contenders; ratios are to the first.
        seeds: the seeds of each contender.
        method: `t` or `bootstrap`, the method of the intervals (`palimpsest.intervals`).

    Raises ValueError unless there is a result for each label and seed.
    """

    _together = True

    def __init__(self, results: Sequence[Result], labels: Sequence[str], seeds: Sequence[int], method: str) -> None:
        self.labels, self.seeds, self.method = list(labels), list(seeds), method
        count = len(self.seeds)
        if len(results) != count * len(self.labels):
            expected = f"expected {len(self.labels)} times {count}, one for each label and seed"
            raise ValueError(f"{len(results)} results; {expected}")
        self.groups = {label: list(results[at * count : (at + 1) * count]) for at, label in enumerate(self.labels)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Replicates):
            return NotImplemented
        return (self.groups, self.seeds, self.method) == (other.groups, other.seeds, other.method)

    __hash__ = None  # type: ignore[assignment] # lists inside

    @property
    def results(self) -> list[Result]:
        """All results."""
        return [result for group in self.groups.values() for result in group]

    @functools.cached_property
    def contenders(self) -> list[Result]:
        """A result for each label: means over the seeds, merged distributions, and the runs as `repeats`."""
        return [mean(label, group, self.method) for label, group in self.groups.items()]

    def _runs(self) -> list[Result]:
        return self.contenders

    def _labelled(self) -> list[tuple[str, Result]]:
        return [(label, result) for label, group in self.groups.items() for result in group]

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

    def judge(self, metric: Metric) -> Judged:
        """The verdicts on a figure of all contenders; see `verdicts`."""
        return judge(metric, self.contenders)

    def verdict(self, metric: Metric, label: str, other: str) -> Verdict:
        """Whether a figure of `label` is better, worse or the same as with `other`, or undecided."""
        return self.judge(metric).between(label, other)

    def percentiles(self, label: str, kind: str = "all") -> dict[float, int | None]:
        """Percentiles of the times of all seeds together, in nanoseconds, within 0.8 %."""
        found = [sketch for result in self.groups[label] if (sketch := Sketch.of(result.to_dict(), kind))]
        together = merged(found)
        return {percent: together.percentile(percent) for percent in _PERCENTILES}

    def to_dict(self) -> dict[str, Any]:
        """The object of `--seeds ... --json`: seeds, the intervals of each run, verdicts, and all results."""
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
            "verdicts": all_verdicts(self.contenders),
            "runs": [result.to_dict() for result in self.results],
            "checks": [each.to_dict() for each in fair.labelled(self._labelled())],
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent)

    def to_polars(self, table: str = "summary") -> "pl.DataFrame":
        """One table as a data frame of polars.

        Args:
            table: `summary` (a row for each run and figure: `label figure mean low high deviation number`), `runs` (a
                row for each result: `label`, `seed`, and a column for each figure), or another table of
                `Result.to_polars`, with `label` and `seed` as first columns.

        Raises:
            ValueError: the table is unknown, or the runs kept no series.
        """
        need("report", "polars")
        import polars as pl

        if table == "summary":
            return pl.DataFrame(self._rows(), infer_schema_length=None)
        frames = []
        for label, group in self.groups.items():
            for result in group:
                found = result.to_polars("summary" if table == "runs" else table)
                own = [pl.lit(label).alias("label"), pl.lit(result["seed"]).alias("seed")]
                frames.append(found.select(*own, pl.exclude("label", "seed")))
        return pl.concat(frames, how="diagonal_relaxed")

    def _rows(self) -> list[dict[str, Any]]:
        found = ((label, metric, self.interval(metric, label)) for label in self.labels for metric in METRICS)
        return [
            {"label": label, "figure": ".".join(metric.path)} | each._asdict()
            for label, metric, each in found
            if each is not None
        ]

    def manifest(self) -> dict[str, Any]:
        """The part of summary.json that says that a folder has replicates."""
        return {"contenders": self.labels, "seeds": self.seeds, "method": self.method}

    def save(self, folder: str | Path, more: Mapping[str, str] | None = None) -> Path:
        """Writes summary.json with all results, intervals.csv, a page, and `LABEL/seed-N` for each; returns the folder.

        Raises OSError that lists kept files.
        """
        text, rows = io.StringIO(), self._rows()
        written = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
        written.writeheader()
        written.writerows(rows)
        summary = json.dumps({MANIFEST: self.manifest()} | self.to_dict(), indent=2) + "\n"
        files = {"summary.json": summary, "intervals.csv": text.getvalue(), **(more or {})}
        places = [place(result) for result in self.results]
        return self._views.save(
            self.results, Path(folder), together=True, more=files, places=places, shown=self.contenders
        )

    def __repr__(self) -> str:
        return f"Replicates({self.labels}, seeds={self.seeds})"

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
        notes = [note for each in self.contenders for note in each.get("notes", [])]
        checks = fair.labelled(self._labelled())
        said = answers.versus(self.contenders)
        notes = list(dict.fromkeys([*notes, *equal_seeds(self.contenders)]))
        found = [*(Text(line) for line in said), *(Text(f"note: {note}", style="yellow") for note in notes)]
        differs = [Text(f"differs: {each}", style="dim") for each in fair.texts(checks, "said")]
        return Group(*fair.warnings(checks), table, Text(), Text(last), *found, *differs)


def place(result: Result) -> str:
    """The folder of a run inside the folder of its replicates."""
    return f"{result.label}/seed-{result['seed']}"


def read(data: dict[str, Any], results: Sequence[Result], where: Path) -> Replicates | None:
    """The replicates of a summary.json and its results; None if it has none. Raises InputError for a damaged one."""
    found = data.get(MANIFEST)
    if found is None:
        return _of_suffixes(results)
    try:
        labels, seeds, method = list(map(str, found["contenders"])), list(map(int, found["seeds"])), found["method"]
        wanted = [(label, seed) for label in labels for seed in seeds]
        if method in METHODS and wanted == [(result.label, result["seed"]) for result in results]:
            return Replicates(results, labels, seeds, method)
    except (KeyError, TypeError, ValueError):
        pass
    raise InputError(f"{where}:1: {MANIFEST!r} does not match the runs; expected the file that `--seeds --out` wrote")


def _of_suffixes(results: Sequence[Result]) -> Replicates | None:
    """The replicates of a folder of an earlier version, whose labels end in the seed."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        label, dash, seed = result.label.rpartition("-seed-")
        if not dash or not label or seed != str(result["seed"]):
            return None
        own = Result(result.to_dict() | {"label": label}, result.series, result.configuration)
        groups.setdefault(label, []).append(own)
    seeds = [result["seed"] for result in next(iter(groups.values()), [])]
    if len(set(seeds)) < 2 or any([result["seed"] for result in group] != seeds for group in groups.values()):
        return None
    return Replicates([result for group in groups.values() for result in group], list(groups), seeds, "t")


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


def repeated(runs: Sequence[RunOptions], seeds: Sequence[int]) -> list[RunOptions]:
    """Each of the runs with each seed, in the order of `Replicates.results`.

    With the start `spread` the run of seed k of n begins the trace at the share (k - 1) / n of its requests.
    """
    made = []
    for run in runs:
        for at, seed in enumerate(seeds):
            start = f"{100 * at / len(seeds):.6g}%" if run.start == SPREAD else run.start
            made.append(replace(run, seed=seed, start=start, label=run.label or run.ftl, sketch=True))
    return made


def replicate(
    runs: Sequence[RunOptions],
    seeds: Sequence[int],
    method: str = "t",
    jobs: int = 1,
    progress: Callable[[str], engine.Progress | None] = lambda _label: None,
) -> tuple[Replicates | None, BaseException | None]:
    """Runs each of the runs with each seed; also returns the exception that ended other runs, or None.

    After an error the replicates have the seeds that every run finished; None without such a seed.
    """
    chosen = sorted(repeated(runs, seeds), key=lambda run: seeds.index(run.seed))
    results, failure = engine.run_many(chosen, min(jobs, len(chosen)), progress, seeds=True)
    found = {(result.label, result["seed"]): result for result in results}
    # A single run without a name is named after its layer, which only the result knows.
    labels = list(dict.fromkeys(run.label or next((each.label for each in results), "") for run in chosen))
    done = [seed for seed in seeds if all((label, seed) in found for label in labels)]
    if not done:
        return None, failure
    return Replicates([found[label, seed] for label in labels for seed in done], labels, done, method), failure
