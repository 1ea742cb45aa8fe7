"""The form `response-times`: reads at several numbers in flight, alone or beside a second job.

Columns: `iodepth`; `append_MBps`, the rate limit of the second job, 0 or none without this job; `iops` of the reads;
and response times, `mean_us` and percentiles such as `p99.9_us`. Empty cells are skipped. Times of the host are not
modelled.
"""

import contextlib
import re
import tempfile
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
from .judge import Row
from .measures import REQUESTS, percentile
from .truth import Table

_TIME = re.compile(r"(mean|p\d{1,2}(?:\.\d+)?)_us")


def fits(columns: tuple[str, ...]) -> bool:
    """Whether a table with these columns has this form."""
    return "iodepth" in columns and any(_TIME.fullmatch(column) for column in columns)


def check(table: Table) -> None:
    """Checks the columns and cells of a table. Raises InputError."""
    known = ("iodepth", "append_MBps", "iops")
    for column in table.columns:
        if column not in known and not _TIME.fullmatch(column):
            expected = f"{', '.join(known)}, mean_us, or a percentile such as p99.9_us"
            raise InputError(f"{table.path}:1: unknown column {column!r}; expected {expected}")
    if not fits(table.columns):
        raise InputError(f"{table.path}:1: expected the columns iodepth and mean_us, found {', '.join(table.columns)}")
    for line, cells in table.rows:
        depth = table.number(line, cells, "iodepth")
        if depth is None or depth != int(depth) or not 1 <= depth <= 65_536:
            raise InputError(f"{table.path}:{line}: iodepth is {cells['iodepth']!r}; expected a number from 1 to 65536")
        for column in table.columns[1:]:
            value = table.number(line, cells, column)
            if value is not None and (value < 0 or (value == 0 and column != "append_MBps")):
                raise InputError(f"{table.path}:{line}: {column} is {cells[column]!r}; expected a positive number")


@dataclass(frozen=True)
class _Point:
    line: int
    cells: Mapping[str, str]
    depth: int
    append: float

    @property
    def id(self) -> str:
        return f"{self.depth}+{self.append:g}"

    @property
    def conditions(self) -> str:
        beside = f"beside appends of at most {self.append:g} MB/s" if self.append else "alone"
        return f"{self.depth} in flight, {beside}"


def _points(table: Table) -> Iterator[_Point]:
    for line, cells in table.rows:
        append = table.number(line, cells, "append_MBps") if "append_MBps" in table.columns else None
        yield _Point(line, cells, int(table.number(line, cells, "iodepth") or 0), append or 0.0)


def _section(name: str, spec: str, *keys: str) -> str:
    lines = [part if "=" in part else f"{part}=1" for part in (*spec.split(","), *keys)]
    return "\n".join([f"[{name}]", *lines, ""])


def _job_file(table: Table, folder: Path, point: _Point, requests: int, *, capped: bool) -> str:
    """The job file of a row; the second job runs at its rate if `capped`, else with one request in flight."""
    size = next((part[3:] for part in table.beside.split(",") if part.startswith("bs=")), "4k")
    rate = point.append * 1e6 / _bytes_of(size)
    # Simulated time limits both jobs to 1.5 times the time of the real drive for these reads.
    mean = table.number(point.line, point.cells, "mean_us") or 100.0
    runtime = f"runtime={max(1, round(requests * mean * 1.5 / point.depth))}us"
    reads = _section("reads", table.workload, f"iodepth={point.depth}", "time_based=1", runtime)
    keys = [f"rate_iops={round(rate)}"] if capped else []
    beside = _section("beside", table.beside, *keys, "time_based=1", runtime)
    path = folder / f"{point.id}{'-capped' if capped else ''}.fio"
    path.write_text(f"{reads}\n{beside}", encoding="utf-8")
    return str(path)


def _bytes_of(size: str) -> int:
    match = re.fullmatch(r"(\d+)([kKmM]?)", size)
    return int(match[1]) * {"": 1, "k": 1024, "m": 2**20}[match[2].lower()] if match else 4096


def _options(table: Table, point: _Point, folder: Path, *, quick: bool, capped: bool = False) -> RunOptions:
    # Deep queues need more requests to fill each place often.
    requests = max(table.count(REQUESTS, quick=quick), 200 * point.depth)
    if point.append:
        return table.run(_job_file(table, folder, point, requests, capped=capped), quick=quick)
    return table.run(f"{table.workload},iodepth={point.depth},n={requests}", quick=quick)


def runs(table: Table, drives: frozenset[str], *, quick: bool, folder: Path | None = None) -> list[RunOptions]:
    """The runs of a table without job files; with a `folder` for job files, all runs."""
    if table.drive not in drives:
        return []
    with _job_folder(folder) as jobs:
        points = [point for point in _points(table) if folder is not None or not point.append]
        return [_options(table, point, jobs, quick=quick) for point in points]


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def _job_folder(folder: Path | None) -> contextlib.AbstractContextManager[Path]:
    """The folder for job files, or a temporary one."""
    return _temporary() if folder is None else contextlib.nullcontext(folder)


def _rows(table: Table, point: _Point, result: Result | None, note: str) -> Iterator[Row]:
    condition = "beside" if point.append else "alone"
    for column in table.columns:
        if column in ("iodepth", "append_MBps"):
            continue
        real = table.number(point.line, point.cells, column)
        if real is None:
            continue
        if result is None:
            ours = None
        elif column == "iops":
            ours = result["requests"]["read"] / (result["simulated_ns"] / 1e9)
        else:
            ours = percentile(result, "read", column.removesuffix("_us"))
        name = f"{point.id}:{column}"
        unit = "1/s" if column == "iops" else "us"
        yield Row(
            table.name, name, table.drive, point.conditions, column.removesuffix("_us"), unit, real, ours,
            table.bar(condition, column), table.is_fitted(name), note,
        )  # fmt: skip


def measure(
    table: Table, batch: Batch, drives: frozenset[str], *, quick: bool, folder: Path | None = None
) -> list[Row]:
    """The rows of a table, run on its preset, if in `drives`; `folder` is for job files, as in `runs`."""
    points = list(_points(table))
    if table.drive not in drives:
        return [row for point in points for row in _rows(table, point, None, f"no preset {table.drive}")]
    with _job_folder(folder) as jobs:
        chosen = {point.line: _options(table, point, jobs, quick=quick) for point in points}
        batch.run(chosen.values())
        faster = [point for point in points if point.append and _appended(batch[chosen[point.line]]) > point.append]
        chosen |= {point.line: _options(table, point, jobs, quick=quick, capped=True) for point in faster}
        batch.run(chosen.values())
        results = [(point, batch[chosen[point.line]]) for point in points]
        notes = [f"appends here: {_appended(result):.0f} MB/s" if point.append else "" for point, result in results]
        return [row for each, note in zip(results, notes, strict=True) for row in _rows(table, *each, note)]


def _appended(result: Result) -> float:
    """MB/s of the second job."""
    return float(result["host"]["bytes_written"]) / (float(result["simulated_ns"]) / 1e9) / 1e6


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
    note = "Requests in flight + MB/s of appends beside them. Synthetic workload of the same shape. " + table.source
    return Figure(table.name, table.title, note, data, figures.panels(data, [("", drawn)], width=11, height=4))
