"""The form `amplification-curve`: write amplification in equal windows of each pass over a drive.

Columns: `pass`, and a window each, named by the part of the pass at its start (`0.00`, `0.05`, ...). A smaller drive of
the preset takes as many passes, counted. The mean curve from pass 5 on is compared: its mean, and the mean of the
absolute deviations of its windows.
"""

from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from ..errors import InputError
from ..options import RunOptions
from ..reproduce import figures
from ..reproduce.batch import Batch
from ..reproduce.figures import Figure
from .judge import Row
from .truth import Table

FIRST_PASS = 5
"""The first pass of the mean curve, because the passes before show the drive filling up."""


def check(table: Table) -> None:
    """Raises InputError unless windows are equal and passes in order."""
    if table.columns[0] != "pass" or len(table.columns) < 3:
        raise InputError(
            f"{table.path}:1: expected the columns pass, 0.00, 0.05, ..., found {', '.join(table.columns)}"
        )
    windows = len(table.columns) - 1
    for at, column in enumerate(table.columns[1:]):
        try:
            wrong = abs(float(column) - at / windows) > 0.005
        except ValueError:
            wrong = True
        if wrong:
            raise InputError(
                f"{table.path}:1: expected {windows} equal windows, so {at / windows:.2f}, found {column!r}"
            )
    for at, (line, cells) in enumerate(table.rows):
        if table.number(line, cells, "pass") != at:
            raise InputError(f"{table.path}:{line}: expected pass {at}, found {cells['pass']!r}")
        for column in table.columns[1:]:
            value = table.number(line, cells, column)
            if value is None or value < 0:
                raise InputError(f"{table.path}:{line}: {column} is {cells[column]!r}; expected a write amplification")
    if len(table.rows) <= FIRST_PASS:
        raise InputError(f"{table.path}: expected passes 0 to {FIRST_PASS} at least, found {len(table.rows)} passes")


def _passes(table: Table, *, quick: bool) -> int:
    return max(FIRST_PASS + 2, min(len(table.rows), table.count(len(table.rows), quick=quick)))


def _options(table: Table, *, quick: bool) -> RunOptions:
    workload = f"{table.workload},loops={_passes(table, quick=quick)}"
    return table.run(workload, quick=quick, fidelity="count")


def runs(table: Table, drives: frozenset[str], *, quick: bool) -> list[RunOptions]:
    """The run of a table."""
    return [_options(table, quick=quick)] if table.drive in drives else []


def curve(host: Sequence[int], data: Sequence[int], passes: int, windows: int) -> list[list[float]]:
    """Write amplification by window of each pass.

    `host` has bytes written by the host at ascending moments, from 0 to the end of the last pass; `data` bytes
    programmed at the same moments, which are interpolated.
    """
    total = host[-1]
    ends = [total * at / (passes * windows) for at in range(passes * windows + 1)]
    found, at = [], 0
    for end in ends:
        while at + 2 < len(host) and host[at + 1] < end:
            at += 1
        share = (end - host[at]) / max(1, host[at + 1] - host[at])
        found.append(data[at] + share * (data[at + 1] - data[at]))
    ratios = [(after - before) * passes * windows / total for before, after in pairwise(found)]
    return [ratios[at : at + windows] for at in range(0, len(ratios), windows)]


def _mean(passes: Sequence[Sequence[float]]) -> list[float]:
    kept = passes[FIRST_PASS:]
    return [sum(column) / len(kept) for column in zip(*kept, strict=True)]


def deviation(real: Sequence[float], ours: Sequence[float]) -> float:
    """The mean of the absolute deviations of windows, in percent of the real ones."""
    return 100 * sum(abs(b / a - 1) for a, b in zip(real, ours, strict=True)) / len(real)


def _real(table: Table) -> list[list[float]]:
    return [[table.number(line, cells, column) or 0.0 for column in table.columns[1:]] for line, cells in table.rows]


def measure(table: Table, batch: Batch, drives: frozenset[str], *, quick: bool) -> list[Row]:
    """The rows of a table, run on its preset: see `response.measure`."""
    windows = table.columns[1:]
    real = _mean(_real(table))
    condition = f"from pass {FIRST_PASS}"
    ours: list[float] | None = None
    note = f"no preset {table.drive}"
    if table.drive in drives:
        passes = _passes(table, quick=quick)
        series = batch[_options(table, quick=quick)].series or {}
        written = series["writes"]
        ours = _mean(curve(written["host_bytes"], written["data_bytes"], passes, len(windows)))
        note = "" if passes == len(table.rows) else f"{passes} of {len(table.rows)} passes"
    mean = sum(real) / len(real)

    def row(id_: str, figure: str, amount: float, own: float | None, unit: str, key: str) -> Row:
        bar, fitted = table.bar(condition, key), table.is_fitted(id_)
        return Row(table.name, id_, table.drive, condition, figure, unit, amount, own, bar, fitted, note)

    rows = [
        row("mean", "write amplification, mean", mean, None if ours is None else sum(ours) / len(ours), "", "mean"),
        row(
            "mad", "mean absolute deviation of the windows", 0.0, None if ours is None else deviation(real, ours), "%",
            "mean_absolute_deviation",
        ),
    ]  # fmt: skip
    for at, window in enumerate(windows):
        own = None if ours is None else ours[at]
        rows.append(row(f"window {window}", f"write amplification at {window} of a pass", real[at], own, "", "window"))
    return rows


def draw(table: Table, rows: list[Row]) -> Figure:
    """Both mean curves."""
    data = pl.DataFrame(
        [
            {"part": float(row.id.split()[1]), "of": of, "write_amplification": value}
            for row in rows
            if row.id.startswith("window ")
            for of, value in (("real", row.real), ("ours", row.ours))
            if value is not None
        ],
        schema={"part": pl.Float64(), "of": pl.String(), "write_amplification": pl.Float64()},
    )
    drawn = figures.lines("part", "of", "write_amplification", "part of a pass", "write amplification")
    note = f"Means of the passes from {FIRST_PASS} on. Synthetic workload: fio's, request by request. {table.source}"
    return Figure(table.name, table.title, note, data, figures.panels(data, [("", drawn)], width=9, height=3.6))
