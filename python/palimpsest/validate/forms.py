"""The forms of tables: what their columns are, how their rows are run, and how they are drawn.

A form is one module and one line here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import InputError
from ..options import RunOptions
from ..reproduce.figures import Figure
from . import amplification, points, response
from .judge import Row
from .truth import Table


@dataclass(frozen=True)
class Form:
    """A form.

    Attributes:
        check: raises an InputError, with file and line, for a table that has not this form.
        runs: runs that a table needs of the presets that exist, as far as they are known before any has run.
        measure: rows with our figures; without them where the preset of a row does not exist.
        draw: a picture of the rows; None where there is nothing to draw.
    """

    check: Callable[[Table], None]
    runs: Callable[..., list[RunOptions]]
    measure: Callable[..., list[Row]]
    draw: Callable[[Table, list[Row]], Figure | None]


FORMS: dict[str, Form] = {
    "response-times": Form(response.check, response.runs, response.measure, response.draw),
    "amplification-curve": Form(amplification.check, amplification.runs, amplification.measure, amplification.draw),
    "points": Form(points.check, points.runs, points.measure, points.draw),
}


def form_of(table: Table) -> Form:
    """The form of a table, which is checked.

    Raises:
        InputError: there is no such form, or the table has not the one that it is said to have.
    """
    if table.form not in FORMS:
        place = table.path.parent / "tables.toml"
        raise InputError(f"{place}: [{table.name}] form: no form {table.form!r}; expected one of {', '.join(FORMS)}")
    form = FORMS[table.form]
    form.check(table)
    return form
