"""The form `points`: single figures of drives, a row each.

Columns: `drive`, the preset; `figure`, in words; `real` and `unit`; `measure`, what of our run it is; `workload`;
`precondition`; `bar`, empty where the row is shown only; `mark`, fitted or predicted; `source`.
"""

from collections.abc import Mapping

import polars as pl

from ..errors import InputError
from ..options import RunOptions
from ..reproduce import figures
from ..reproduce.batch import Batch
from ..reproduce.figures import Figure
from .judge import Bar, Row
from .measures import MEASURES, REQUESTS
from .measures import measure as figure_of
from .truth import Table

__all__ = ["check", "draw", "fits", "measure", "runs"]

COLUMNS = ("drive", "figure", "real", "unit", "measure", "workload", "precondition", "bar", "mark", "source")
MARKS = ("fitted", "predicted")
NOT_MODELLED = {
    "cache.size": "the preset has no fast cache of single-bit cells",
    "cache.fast": "the preset has no fast cache of single-bit cells",
    "cache.slow": "the preset has no fast cache of single-bit cells",
}
"""Figures that no run has yet, and why."""


def fits(columns: tuple[str, ...]) -> bool:
    """Whether a table with these columns has this form."""
    return set(columns) == set(COLUMNS)


def check(table: Table) -> None:
    """Checks the columns and cells of a table.

    Raises:
        InputError: a column is missing or a cell is not as expected.
    """
    for column in COLUMNS:
        if column not in table.columns:
            raise InputError(f"{table.path}:1: the column {column} is missing; expected {', '.join(COLUMNS)}")
    for line, cells in table.rows:
        place = f"{table.path}:{line}"
        real = table.number(line, cells, "real")
        if real is None or real <= 0:
            raise InputError(f"{place}: real is {cells['real']!r}; expected a positive number")
        if cells["measure"] not in MEASURES and cells["measure"] not in NOT_MODELLED:
            known = ", ".join((*MEASURES, *NOT_MODELLED))
            raise InputError(f"{place}: measure is {cells['measure']!r}; expected one of {known}")
        if cells["mark"] not in MARKS:
            raise InputError(f"{place}: mark is {cells['mark']!r}; expected {' or '.join(MARKS)}")
        for column in ("drive", "figure", "workload"):
            if not cells[column].strip():
                raise InputError(f"{place}: {column} is empty; expected a text")
        Bar.parse(cells["bar"], place)


def _options(table: Table, cells: Mapping[str, str], *, quick: bool) -> RunOptions:
    requests = table.requests.get("quick" if quick else "full", REQUESTS)
    return RunOptions(
        ssd=cells["drive"], overrides=table.overrides(quick=quick), precondition=cells["precondition"] or "none",
        series=True, workload=f"{cells['workload']},n={requests}",
    )  # fmt: skip


def _absent(cells: Mapping[str, str], drives: frozenset[str]) -> str:
    if cells["drive"] not in drives:
        return f"no preset {cells['drive']}"
    return NOT_MODELLED.get(cells["measure"], "")


def runs(table: Table, drives: frozenset[str], *, quick: bool) -> list[RunOptions]:
    """The runs of a table whose drives have presets."""
    return [_options(table, cells, quick=quick) for _, cells in table.rows if not _absent(cells, drives)]


def measure(table: Table, batch: Batch, drives: frozenset[str], *, quick: bool) -> list[Row]:
    """The rows of a table, run on their presets: see `response.measure`."""
    batch.run(runs(table, drives, quick=quick))
    rows = []
    for line, cells in table.rows:
        why = _absent(cells, drives)
        ours = None if why else figure_of(cells["measure"], batch[_options(table, cells, quick=quick)])
        real = table.number(line, cells, "real") or 0.0
        note = why or cells["source"]
        rows.append(
            Row(
                table.name, f"{cells['drive']}: {cells['figure']}", cells["drive"], cells["workload"], cells["figure"],
                cells["unit"], real, ours, Bar.parse(cells["bar"], f"{table.path}:{line}"), cells["mark"] == "fitted",
                note,
            )
        )  # fmt: skip
    return rows


def draw(table: Table, rows: list[Row]) -> Figure | None:
    """Deviations of all rows that were run; None where there are none."""
    data = pl.DataFrame(
        [{"row": row.id, "ratio": row.ours / row.real} for row in rows if row.ours is not None],
        schema={"row": pl.String(), "ratio": pl.Float64()},
    )
    if data.is_empty():
        return None
    drawn = figures.levels("row", "ratio", 1, "ours / real", "real")
    note = "Ratios of our figure to the real one. Synthetic workloads."
    height = 1.2 + 0.22 * data.height
    return Figure(table.name, table.title, note, data, figures.panels(data, [("", drawn)], width=9, height=height))
