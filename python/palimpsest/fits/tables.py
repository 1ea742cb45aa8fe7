"""Tables of `palimpsest validate`: response times by number in flight or under a load, write amplification by pass.

The table's entry (`validate.truth`) has the workload, the overrides of a small drive, and the columns; keys of the fit
replace these overrides. A group is a row (a number in flight, a rate), or a pass. The knee of a load is no target: it
follows from the times of the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import InputError
from ..options import RunOptions
from ..reproduce.batch import Batch
from ..result import Result
from ..validate import amplification, judge, response, running, truth
from .measured import How, JobFolder, Measurement, OneRun, SingleRuns, Target, tolerance
from .space import Drive

_WINDOW = 0.03
"""The relative deviation of the write amplification in a window of a pass that counts as one."""


def read(path: Path, how: How) -> Measurement:
    """Reads a table. Raises InputError if the form is unknown, or the table has another form."""
    table = truth.table_of(path)
    form = running.form_of(table)
    if how.precondition:
        table = replace(table, precondition=how.precondition)
    if table.form == "amplification-curve":
        return _curve(table)
    if table.form in _BY_ROW:
        return _Rows(table, form)
    raise InputError(
        f"{path}: a table of the form {table.form} has no workload of its own; expected a .toml of figures"
    )


def _rate_id(table: truth.Table, line: int, cells: Mapping[str, str]) -> str:
    return f"{table.number(line, cells, 'rate_per_s'):g}"


_BY_ROW = {"response-times": response.row_id, "latency-under-load": _rate_id}
"""Forms whose rows are runs, and the name of a row."""


def _overrides(table: truth.Table, drive: Drive) -> tuple[str, ...]:
    """The overrides of the small drive, unless the fit has the key, and those of the fit."""
    keys = {each.partition("=")[0].strip() for each in drive.overrides}
    return (*(each for each in table.quick if each.partition("=")[0].strip() not in keys), *drive.overrides)


class _Rows(SingleRuns):
    """Response times: a group for each row."""

    counted = False
    notes: tuple[str, ...] = ()

    def __init__(self, table: truth.Table, form: running.Form) -> None:
        self.name = table.path.name
        self._table, self._form = table, form
        self._folder = JobFolder()
        rows: list[judge.Row] = form.measure(table, Batch(), frozenset(), quick=True)
        self.targets = tuple(
            Target(row.id, row.id.partition(":")[0], row.figure, row.unit, row.real, tolerance(row.figure))
            for row in rows
            if ":" in row.id
        )

    def _on(self, drive: Drive, groups: frozenset[str]) -> truth.Table:
        wanted = {target.id.partition(":")[0] for target in self.targets if target.group in groups}
        rows = tuple(row for row in self._table.rows if _BY_ROW[self._table.form](self._table, *row) in wanted)
        layer = () if drive.ftl is None else (f"ftl.name={drive.ftl}",)
        return replace(self._table, drive=drive.ssd, quick=(*layer, *_overrides(self._table, drive)), rows=rows)

    def prepare(self, batch: Batch, drives: Sequence[Drive], groups: frozenset[str]) -> None:
        """Runs all groups."""
        tables = [self._on(drive, groups) for drive in drives]
        folder = self._folder.path
        batch.run(
            run
            for table in tables
            for run in self._form.runs(table, frozenset({table.drive}), quick=True, folder=folder)
        )

    def ours(self, batch: Batch, drive: Drive, groups: frozenset[str]) -> Mapping[str, float | None]:
        """Ours by id of the target."""
        table = self._on(drive, groups)
        rows: list[judge.Row] = self._form.measure(
            table, batch, frozenset({table.drive}), quick=True, folder=self._folder.path
        )
        return {row.id: row.ours for row in rows}


def _curve(table: truth.Table) -> OneRun:
    """Write amplification in equal windows: a group for each pass, except the first, before collection."""
    windows = table.columns[1:]
    targets = tuple(
        Target(f"{number} {window}", f"pass {number}", "write amplification", "", real, _WINDOW, number + float(window))
        for number, (line, cells) in enumerate(table.rows)
        if number
        for window in windows
        if (real := table.number(line, cells, window))
    )

    def run(drive: Drive, groups: frozenset[str]) -> RunOptions:
        small = replace(drive, overrides=_overrides(table, drive))
        workload = f"{table.workload},loops={_passes(groups)}"
        return small.run(workload, table.precondition or "none", counted=True)

    def figures(result: Result, groups: frozenset[str]) -> dict[str, float | None]:
        written = (result.series or {})["writes"]
        curve = amplification.curve(written["host_bytes"], written["data_bytes"], _passes(groups), len(windows))
        return {
            f"{number} {window}": value
            for number, values in enumerate(curve)
            if f"pass {number}" in groups
            for window, value in zip(windows, values, strict=True)
        }

    return OneRun(table.path.name, targets, run, figures)


def _passes(groups: frozenset[str]) -> int:
    return 1 + max(int(group.removeprefix("pass ")) for group in groups)
