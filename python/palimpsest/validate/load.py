"""The form `latency-under-load`: response times of a probe beside load threads, from idle to beyond the knee.

Columns: `rate_per_s`, requests a second of all load threads; `probe_reads_per_s`, which is not compared; and response
times of the probe, `read_mean_us` or `write_p99.9_us`. `workload` is the job of a load thread, `beside` the probe; each
row is a run of one job file, in which the load threads share the rate. The knee is the first rate at which p99 of
writes exceeds ten times its value at the lowest rate. Ignored: the host's software.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import InputError
from ..options import RunOptions
from ..reproduce import figures
from ..reproduce.batch import Batch
from ..reproduce.figures import Figure
from ..result import Result
from .jobs import job_folder, section
from .judge import Row
from .measures import percentile
from .truth import Table

_FIGURE = re.compile(r"(?:read|write)_(?:mean|p\d{1,2}(?:\.\d+)?)_us")
_ABOUT = ("rate_per_s", "probe_reads_per_s")
PROBE = 10_000
"""Requests a second of the probe."""
KNEE = 10
"""The factor of write p99 at the knee over write p99 at the lowest rate."""


def check(table: Table) -> None:
    """Checks the columns and cells of a table. Raises InputError."""
    if table.columns[0] != "rate_per_s" or "write_p99_us" not in table.columns:
        found = ", ".join(table.columns)
        raise InputError(f"{table.path}:1: expected the columns rate_per_s and write_p99_us, found {found}")
    for column in table.columns:
        if column not in _ABOUT and not _FIGURE.fullmatch(column):
            expected = f"{', '.join(_ABOUT)}, read_mean_us, or a percentile such as write_p99.9_us"
            raise InputError(f"{table.path}:1: unknown column {column!r}; expected {expected}")
    for line, cells in table.rows:
        for column in table.columns:
            value = table.number(line, cells, column)
            if column == "rate_per_s" and value is None:
                raise InputError(f"{table.path}:{line}: rate_per_s is missing; expected a number above 0")
            if value is not None and value <= 0:
                raise InputError(f"{table.path}:{line}: {column} is {cells[column]!r}; expected a number above 0")


def _rates(table: Table) -> Iterator[tuple[float, int, Mapping[str, str]]]:
    return ((table.number(line, cells, "rate_per_s") or 0.0, line, cells) for line, cells in table.rows)


def _copies(spec: str) -> int:
    return next((int(part[8:]) for part in spec.split(",") if re.fullmatch(r"numjobs=[1-9]\d*", part)), 1)


def _capped(spec: str, rate: float) -> str:
    """The rates of a job that shares `rate`, reads and writes by its mix."""
    reads = next((int(part[10:]) for part in spec.split(",") if re.fullmatch(r"rwmixread=\d{1,2}", part)), 50)
    each = rate / _copies(spec) / 100
    return f"rate_iops={each * reads:.3f},{each * (100 - reads):.3f}"


def _options(table: Table, rate: float, folder: Path, *, quick: bool) -> RunOptions:
    runtime = f"runtime={round(1e6 * table.count(PROBE, quick=quick) / PROBE)}us"
    jobs = (("load", table.workload, rate), ("probe", table.beside, PROBE))
    path = folder / f"{table.name}-{rate:g}.fio"
    sections = [section(name, spec, _capped(spec, each), "time_based=1", runtime) for name, spec, each in jobs]
    path.write_text("\n".join(sections), encoding="utf-8")
    return table.run(str(path), quick=quick)


def runs(table: Table, drives: frozenset[str], *, quick: bool, folder: Path | None = None) -> list[RunOptions]:
    """No runs, because all need job files; with a `folder` for job files, all runs."""
    if table.drive not in drives or folder is None:
        return []
    return [_options(table, rate, folder, quick=quick) for rate, *_ in _rates(table)]


def knee(times: Sequence[tuple[float, float]]) -> float | None:
    """The first rate whose time exceeds `KNEE` times the time at the lowest rate, of pairs of both, or None."""
    ordered = sorted(times)
    return next((rate for rate, time in ordered if time > KNEE * ordered[0][1]), None)


def _probe(result: Result) -> Mapping[str, Any]:
    """The figures of the probe."""
    return next(job for job in result["jobs"] if job["job"] == "probe")


def _row(table: Table, rate: float, cells: tuple[int, Mapping[str, str]], column: str, result: Result | None) -> Row:
    kind, name, _ = column.split("_")
    real = table.number(*cells, column)
    row = f"{rate:g}:{column}"
    return Row(
        table.name, row, table.drive, f"{rate:,.0f} requests/s", f"{kind}.{name}", "us", real or 0.0,
        None if result is None else percentile(result, kind, name, of=_probe(result)), table.bar("beside", column),
        table.is_fitted(row), f"no preset {table.drive}" if result is None else "",
    )  # fmt: skip


def _knee_row(table: Table, rows: Sequence[Row]) -> Row | None:
    """The row of the knee; None for a table without one."""
    tails = [(float(row.id.partition(":")[0]), row) for row in rows if row.figure == "write.p99"]
    real = knee([(rate, row.real) for rate, row in tails])
    if real is None:
        return None
    times = [(rate, row.ours) for rate, row in tails if row.ours is not None]
    ours, note = knee(times), rows[0].note
    if times and ours is None:
        # Beyond the table, so that the row misses.
        ours, note = 2 * max(rate for rate, _ in tails), "no knee up to the last rate"
    bar = table.bar("knee", "rate")
    limit = None if bar is None else bar.among([rate for rate, _ in tails], real)
    condition = f"write.p99 above {KNEE} times that at the lowest rate"
    return Row(
        table.name, "knee", table.drive, condition, "knee", "1/s", real, ours, limit, table.is_fitted("knee"), note
    )


def measure(
    table: Table, batch: Batch, drives: frozenset[str], *, quick: bool, folder: Path | None = None
) -> list[Row]:
    """The rows of a table, run on its preset, if in `drives`; `folder` is for job files, as in `runs`."""
    with job_folder(folder) as jobs:
        options = runs(table, drives, quick=quick, folder=jobs)
        batch.run(options)
        results: list[Result | None] = [batch[run] for run in options] or [None for _ in table.rows]
    rows = [
        _row(table, rate, (line, cells), column, result)
        for (rate, line, cells), result in zip(_rates(table), results, strict=True)
        for column in table.columns
        if column not in _ABOUT and table.number(line, cells, column) is not None
    ]
    found = _knee_row(table, rows)
    return rows if found is None else [*rows, found]


def draw(table: Table, rows: list[Row]) -> Figure:
    """Real and simulated p99 over the rate."""
    data = pl.DataFrame(
        [
            {"rate": float(row.id.partition(":")[0]), "of": f"{row.figure}, {of}", "us": value}
            for row in rows
            if row.figure in ("read.p99", "write.p99")
            for of, value in (("real", row.real), ("ours", row.ours))
            if value is not None
        ],
        schema={"rate": pl.Float64(), "of": pl.String(), "us": pl.Float64()},
    )
    drawn = figures.lines("rate", "of", "us", "requests a second", "p99 (us)")
    note = f"Probe of {PROBE:,} requests a second, half reads. Synthetic workload of the same shape. {table.source}"
    return Figure(table.name, table.title, note, data, figures.panels(data, [("", drawn)], width=9, height=3.6))
