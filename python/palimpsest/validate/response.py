"""The form `response-times`: reads at several numbers in flight, alone or beside a second job that writes.

Columns: `iodepth`; `append_MBps` or `write_MBps`, the rate at which the second job ran, 0 or none without this job;
`iops` or `read_iops`; and response times of reads, `mean_us` and percentiles such as `p99.9_us`. Figures of the second
job have the prefix `write_`. Empty cells are skipped. The second job is capped at its rate, because the real job ran at
this rate for its own reasons. A drive that is slower than the real one takes less. Ignored: the host's software, except
a fixed time (`host.t_request`) that a table may add to the overrides.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ..errors import InputError
from ..options import RunOptions
from ..reproduce import figures
from ..reproduce.batch import Batch
from ..reproduce.figures import Figure
from ..result import Result
from .jobs import block_size, job_folder, section
from .judge import Row
from .measures import REQUESTS, percentile, rate
from .truth import Table

_FIGURE = re.compile(r"(?:(?:read_)?iops|write_iops|(?:write_)?(?:mean|p\d{1,2}(?:\.\d+)?)_us)")
_RATES = ("append_MBps", "write_MBps")


def check(table: Table) -> None:
    """Checks the columns and cells of a table. Raises InputError."""
    known = ("iodepth", *_RATES)
    for column in table.columns:
        if column not in known and not _FIGURE.fullmatch(column):
            expected = f"{', '.join(known)}, iops, mean_us, a percentile such as p99.9_us, or write_mean_us"
            raise InputError(f"{table.path}:1: unknown column {column!r}; expected {expected}")
    if "iodepth" not in table.columns or not any(map(_FIGURE.fullmatch, table.columns)):
        raise InputError(f"{table.path}:1: expected the columns iodepth and mean_us, found {', '.join(table.columns)}")
    for line, cells in table.rows:
        depth = table.number(line, cells, "iodepth")
        if depth is None or depth != int(depth) or not 1 <= depth <= 65_536:
            raise InputError(f"{table.path}:{line}: iodepth is {cells['iodepth']!r}; expected a number from 1 to 65536")
        for column in table.columns:
            value = table.number(line, cells, column)
            if value is not None and (value < 0 or (value == 0 and column not in _RATES)):
                raise InputError(f"{table.path}:{line}: {column} is {cells[column]!r}; expected a positive number")


@dataclass(frozen=True)
class _Point:
    line: int
    cells: Mapping[str, str]
    depth: int
    rate: float

    @property
    def id(self) -> str:
        return f"{self.depth}+{self.rate:g}"

    @property
    def conditions(self) -> str:
        beside = f"beside writes of {self.rate:g} MB/s" if self.rate else "alone"
        return f"{self.depth} in flight, {beside}"


def _point(table: Table, line: int, cells: Mapping[str, str]) -> _Point:
    rates = [table.number(line, cells, column) for column in _RATES if column in cells]
    return _Point(line, cells, int(table.number(line, cells, "iodepth") or 0), next(filter(None, rates), 0.0))


def _points(table: Table) -> Iterator[_Point]:
    return (_point(table, *row) for row in table.rows)


def row_id(table: Table, line: int, cells: Mapping[str, str]) -> str:
    """The id of a line of the table: number in flight, and MB/s of the second job."""
    return _point(table, line, cells).id


def _job_file(table: Table, folder: Path, point: _Point, requests: int) -> str:
    """The job file of a row, with the second job capped at its rate."""
    per_second = max(1, round(point.rate * 1e6 / (block_size(table.beside) or 4096)))
    # Simulated time ends both jobs after the time of the real drive for these reads.
    mean = table.number(point.line, point.cells, "mean_us") or 100.0
    runtime = f"runtime={max(1, round(requests * mean / point.depth))}us"
    reads = section("reads", table.workload, f"iodepth={point.depth}", "time_based=1", runtime)
    beside = section("beside", table.beside, f"rate_iops={per_second}", "time_based=1", runtime)
    path = folder / f"{point.id}.fio"
    path.write_text(f"{reads}\n{beside}", encoding="utf-8")
    return str(path)


def _options(table: Table, point: _Point, folder: Path, *, quick: bool) -> RunOptions:
    # Deep queues need more requests to fill each place often.
    requests = max(table.count(REQUESTS, quick=quick), 2000 * point.depth)
    if point.rate:
        return table.run(_job_file(table, folder, point, requests), quick=quick)
    return table.run(f"{table.workload},iodepth={point.depth},n={requests}", quick=quick)


def runs(table: Table, drives: frozenset[str], *, quick: bool, folder: Path | None = None) -> list[RunOptions]:
    """The runs of a table without job files; with a `folder` for job files, all runs."""
    if table.drive not in drives:
        return []
    with job_folder(folder) as jobs:
        points = [point for point in _points(table) if folder is not None or not point.rate]
        return [_options(table, point, jobs, quick=quick) for point in points]


def _figure(result: Result, column: str) -> float | None:
    kind, name = ("write", column.removeprefix("write_")) if column.startswith("write_") else ("read", column)
    return rate(result, kind) if name.endswith("iops") else percentile(result, kind, name.removesuffix("_us"))


def _rows(table: Table, point: _Point, result: Result | None, note: str) -> Iterator[Row]:
    condition = "beside" if point.rate else "alone"
    for column in table.columns:
        if column == "iodepth" or column in _RATES:
            continue
        real = table.number(point.line, point.cells, column)
        if real is None:
            continue
        ours = None if result is None else _figure(result, column)
        name, unit = f"{point.id}:{column}", "1/s" if column.endswith("iops") else "us"
        figure = column.removesuffix("_us").removeprefix("read_").replace("write_", "write.")
        yield Row(
            table.name, name, table.drive, point.conditions, figure, unit, real, ours, table.bar(condition, column),
            table.is_fitted(name), note,
        )  # fmt: skip


def measure(
    table: Table, batch: Batch, drives: frozenset[str], *, quick: bool, folder: Path | None = None
) -> list[Row]:
    """The rows of a table, run on its preset, if in `drives`; `folder` is for job files, as in `runs`."""
    points = list(_points(table))
    if table.drive not in drives:
        return [row for point in points for row in _rows(table, point, None, f"no preset {table.drive}")]
    with job_folder(folder) as jobs:
        chosen = [(point, _options(table, point, jobs, quick=quick)) for point in points]
        batch.run(options for _, options in chosen)
        results = [(point, batch[options]) for point, options in chosen]
        return [row for point, result in results for row in _rows(table, point, result, _note(point, result))]


def _note(point: _Point, result: Result) -> str:
    """MB/s of the second job, if any."""
    written = float(result["host"]["bytes_written"]) / (float(result["simulated_ns"]) / 1e9) / 1e6
    return f"writes here: {written:.0f} MB/s" if point.rate else ""


def draw(table: Table, rows: list[Row]) -> Figure:
    """Real and simulated response times over the number in flight."""
    data = pl.DataFrame(
        [
            {"label": f"{row.id.partition(':')[0]} {row.figure}", "of": of, "us": value}
            for row in rows
            if row.unit == "us" and row.figure in ("mean", "p99", "p99.9")
            for of, value in (("real", row.real), ("ours", row.ours))
        ],
        schema={"label": pl.String(), "of": pl.String(), "us": pl.Float64()},
    )
    drawn = figures.slanted(figures.bars("label", "of", "us", "response time (us)", log=True), degrees=60)
    note = "Requests in flight + MB/s of writes beside them. Synthetic workload of the same shape. " + table.source
    return Figure(table.name, table.title, note, data, figures.panels(data, [("", drawn)], width=11, height=4))
