"""The forms of tables: columns, runs, and pictures. A form is one module and one name here."""

from collections.abc import Callable
from typing import Protocol

from ..errors import InputError
from ..options import RunOptions
from ..reproduce.figures import Figure
from . import amplification, points, response
from .judge import Row
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


FORMS: dict[str, Form] = {"response-times": response, "amplification-curve": amplification, "points": points}


def form_of(table: Table) -> Form:
    """The form of a table, after checking the table. Raises InputError."""
    if table.form not in FORMS:
        place = table.path.parent / "tables.toml"
        raise InputError(f"{place}: [{table.name}] form: no form {table.form!r}; expected one of {', '.join(FORMS)}")
    form = FORMS[table.form]
    form.check(table)
    return form
