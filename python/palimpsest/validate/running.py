"""All tables, run: real drives beside their presets."""

from pathlib import Path

from .. import _core
from ..reproduce.batch import Batch
from . import forms, truth
from .outputs import Validation


def read(folder: Path | None = None) -> list[truth.Table]:
    """The tables of a folder, or of the package, each checked. Raises InputError with file and line."""
    tables = truth.read(folder)
    for table in tables:
        forms.form_of(table)
    return tables


def validate(tables: list[truth.Table], batch: Batch, *, quick: bool = False) -> Validation:
    """Runs all rows of the tables whose drive has a preset; `quick` runs take a minute. Raises Error if one fails."""
    drives = frozenset(name for name, _ in _core.list_registry("ssds"))
    # Together first, so that runs of different tables go side by side.
    batch.run(run for table in tables for run in forms.form_of(table).runs(table, drives, quick=quick))
    rows, figures = [], []
    for table in tables:
        form = forms.form_of(table)
        found = form.measure(table, batch, drives, quick=quick)
        rows += found
        figure = form.draw(table, found)
        if figure is not None:
            figures.append(figure)
    return Validation(quick, tuple(tables), tuple(rows), tuple(figures))
