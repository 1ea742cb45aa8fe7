"""The forms of tables, a module and a name in `FORMS` each, and the runs of all tables."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from .. import _core
from ..errors import InputError
from ..options import RunOptions
from ..reproduce.batch import Batch
from ..reproduce.figures import Figure
from . import amplification, load, points, response, truth
from .judge import Row
from .outputs import Validation
from .truth import Table


class Form(Protocol):
    """A module that is a form."""

    def check(self, table: Table) -> None:
        """Raises InputError with file and line for a table of another form."""

    @property
    def runs(self) -> Callable[..., list[RunOptions]]:
        """Runs of a table on the existing presets, as far as they are known before the first run."""

    @property
    def measure(self) -> Callable[..., list[Row]]:
        """Rows with our figures, which are missing for unknown presets."""

    def draw(self, table: Table, rows: list[Row]) -> Figure | None:
        """A picture of the rows, or None."""


FORMS: dict[str, Form] = {
    "response-times": response, "latency-under-load": load, "amplification-curve": amplification, "points": points,
}  # fmt: skip


def form_of(table: Table) -> Form:
    """The form of a table, after checking the table. Raises InputError."""
    if table.form not in FORMS:
        place = table.path.parent / "tables.toml"
        raise InputError(f"{place}: [{table.name}] form: no form {table.form!r}; expected one of {', '.join(FORMS)}")
    form = FORMS[table.form]
    form.check(table)
    return form


def read(folder: Path | None = None) -> list[Table]:
    """The tables of a folder, or of the package, each checked. Raises InputError with file and line."""
    tables = truth.read(folder)
    for table in tables:
        form_of(table)
    return tables


def validate(tables: list[Table], batch: Batch, *, quick: bool = False) -> Validation:
    """Runs all rows of the tables whose drive has a preset; `quick` runs take a minute. Raises Error if one fails."""
    drives = frozenset(name for name, _ in _core.list_registry("ssds"))
    # One batch, so that runs of different tables go side by side.
    batch.run(run for table in tables for run in form_of(table).runs(table, drives, quick=quick))
    rows, figures = [], []
    for table in tables:
        form = form_of(table)
        found = form.measure(table, batch, drives, quick=quick)
        rows += found
        figure = form.draw(table, found)
        if figure is not None:
            figures.append(figure)
    return Validation(quick, tuple(tables), tuple(rows), tuple(figures))
