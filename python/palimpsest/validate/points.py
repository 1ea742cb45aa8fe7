"""The form `points`: single figures of drives, a row each.

Columns: `drive`, the preset; `figure`, in words; `real` and `unit`; `measure`, the name of our figure; `workload`;
`precondition`; `bar`, empty for a row that is shown only; `mark`, fitted or predicted; `source`. Figures of a fast
cache (`cache.*`) come from a run that fills the drive once; the size is scaled to the capacity of the preset. Figures
of a full drive (`cache.full.*`) come from the unchanged workload, which leaves the drive idle before it writes a
little.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from .. import _core
from ..errors import InputError
from ..options import RunOptions
from ..reproduce import figures
from ..reproduce.batch import Batch
from ..reproduce.figures import Figure
from ..units import parse_bytes
from .cache import CACHE, FULL
from .judge import Bar, Row
from .measures import MEASURES, REQUESTS
from .measures import measure as figure_of
from .truth import Table

COLUMNS = ("drive", "figure", "real", "unit", "measure", "workload", "precondition", "bar", "mark", "source")
MARKS = ("fitted", "predicted")
FILLS = {True: "ssd.capacity=16GiB", False: "ssd.capacity=64GiB"}, "part.pages_per_block=132"
"""Overrides of quick and full runs that fill the drive; planes have a hundred blocks even on a small drive."""
FULLS = ("ssd.capacity=128GiB", "part.pages_per_block=132")
"""Overrides of runs that write to a full drive: a hundredth of its blocks must be several."""


def check(table: Table) -> None:
    """Raises InputError if a column is missing or a cell is wrong."""
    for column in COLUMNS:
        if column not in table.columns:
            raise InputError(f"{table.path}:1: the column {column} is missing; expected {', '.join(COLUMNS)}")
    for line, cells in table.rows:
        place = f"{table.path}:{line}"
        real = table.number(line, cells, "real")
        if real is None or real <= 0:
            raise InputError(f"{place}: real is {cells['real']!r}; expected a positive number")
        if cells["measure"] not in MEASURES and cells["measure"] not in CACHE:
            known = ", ".join((*MEASURES, *CACHE))
            raise InputError(f"{place}: measure is {cells['measure']!r}; expected one of {known}")
        if cells["mark"] not in MARKS:
            raise InputError(f"{place}: mark is {cells['mark']!r}; expected {' or '.join(MARKS)}")
        for column in ("drive", "figure", "workload"):
            if not cells[column].strip():
                raise InputError(f"{place}: {column} is empty; expected a text")
        Bar.parse(cells["bar"], place)


def _options(table: Table, cells: Mapping[str, str], *, quick: bool) -> RunOptions:
    drive, precondition, workload = cells["drive"], cells["precondition"] or "none", cells["workload"]
    overrides = table.overrides(quick=quick)
    if cells["measure"] in FULL:
        overrides = FULLS
    elif cells["measure"] in CACHE:
        overrides, workload = (FILLS[0][quick], FILLS[1]), f"{workload},loops=1"
    else:
        workload += f",n={table.count(REQUESTS, quick=quick)}"
    return RunOptions(
        ssd=drive, overrides=overrides, precondition=precondition, series=True, workload=workload, warmup="0"
    )


def host_bytes(options: RunOptions) -> float:
    """Bytes of the drive of a run as the host sees them."""
    shown = tomllib.loads(_core.show(options.ssd, options.ftl, list(options.overrides)))
    drive, part = shown["ssd"], shown["part"]
    pages = part["pages_per_block"]
    for key in ("channels", "chips_per_channel", "dies_per_chip", "planes_per_die", "blocks_per_plane"):
        pages *= drive[key]
    over = float(drive["over_provisioning"].rstrip("%")) / 100
    return float(pages) * (parse_bytes(part["page_size"]) or 0) / (1 + over)


def _measured(table: Table, cells: Mapping[str, str], batch: Batch, *, quick: bool) -> float | None:
    options = _options(table, cells, quick=quick)
    if cells["measure"] not in CACHE:
        return figure_of(cells["measure"], batch[options])
    scale = host_bytes(replace(options, overrides=())) / host_bytes(options)
    return CACHE[cells["measure"]](batch[options], scale)


def _absent(cells: Mapping[str, str], drives: frozenset[str]) -> str:
    return "" if cells["drive"] in drives else f"no preset {cells['drive']}"


def runs(table: Table, drives: frozenset[str], *, quick: bool) -> list[RunOptions]:
    """The runs of a table whose drives have presets."""
    return [_options(table, cells, quick=quick) for _, cells in table.rows if not _absent(cells, drives)]


def measure(table: Table, batch: Batch, drives: frozenset[str], *, quick: bool) -> list[Row]:
    """The rows of a table, run on their presets: see `response.measure`."""
    batch.run(runs(table, drives, quick=quick))
    rows = []
    for line, cells in table.rows:
        why = _absent(cells, drives)
        ours = None if why else _measured(table, cells, batch, quick=quick)
        real = table.number(line, cells, "real") or 0.0
        note = why or (cells["source"] if ours is not None else "this run has no such figure")
        rows.append(
            Row(
                table.name, f"{cells['drive']}: {cells['figure']}", cells["drive"], cells["workload"], cells["figure"],
                cells["unit"], real, ours, Bar.parse(cells["bar"], f"{table.path}:{line}"), cells["mark"] == "fitted",
                note,
            )
        )  # fmt: skip
    return rows


def draw(table: Table, rows: list[Row]) -> Figure | None:
    """Deviations of all rows that were run; None without rows."""
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
