"""The output of a validation: JSON, tables for the terminal with a closing line, and a folder with data and a page."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import polars as pl

from .. import evidence
from .. import page as shell
from ..evidence.fitting import DOES_NOT, Rows, preset, presets
from ..files import parquet
from ..reproduce.figures import Figure, write_page
from ..reproduce.outputs import STYLE
from .judge import Row
from .truth import Table

if TYPE_CHECKING:
    from rich.console import Group

DRIVES = ("drive", "predicted", "fitted", "median deviation of predicted", "farthest from its bar")
HEADS = ("conditions", "figure", "real", "ours", "deviation", "bar", "within", "mark")


@dataclass(frozen=True)
class Validation:
    """Real figures beside ours: tables in order, rows of all tables, and a picture for each table that has one."""

    quick: bool
    tables: tuple[Table, ...]
    rows: tuple[Row, ...]
    figures: tuple[Figure, ...]

    def of(self, table: Table) -> list[Row]:
        """The rows of a table."""
        return [row for row in self.rows if row.table == table.name]

    @property
    def drives(self) -> list[tuple[str, ...]]:
        """A line for each drive under `DRIVES`: rows within their bars, and the predicted row that misses most."""
        lines = []
        for drive in dict.fromkeys(row.drive for row in self.rows if row.within is not None):
            judged = [row for row in self.rows if row.drive == drive and row.within is not None]
            parts = [[row for row in judged if row.fitted is fitted] for fitted in (False, True)]
            held = (f"{sum(bool(row.within) for row in part)} of {len(part)}" if part else "-" for part in parts)
            off = [abs(row.deviation) for row in parts[0] if row.deviation is not None]
            missed = max((row for row in parts[0] if not row.within), key=lambda row: row.excess, default=None)
            far = "" if missed is None else f"{missed.conditions}: {missed.figure} {missed.deviation:+.0f} %"
            lines.append((drive, *held, f"{median(off):.1f} %" if off else "-", far or "-"))
        return lines

    @property
    def kinds(self) -> dict[str, dict[str, evidence.Said]]:
        """The verdict on each kind of figure of each drive: by the predicted rows, if any."""
        return {drive: {each.figure: preset(each) for each in self._evidence(drive)} for drive in self._judged}

    @property
    def _judged(self) -> list[str]:
        return list(dict.fromkeys(row.drive for row in self.rows if row.within is not None))

    def _evidence(self, drive: str) -> Iterator[Rows]:
        judged = [row for row in self.rows if row.drive == drive and row.within is not None]
        for kind in dict.fromkeys(row.kind for row in judged):
            own = [row for row in judged if row.kind == kind]
            chosen = [row for row in own if not row.fitted] or own
            missed = max((row for row in chosen if not row.within), key=lambda row: row.excess, default=None)
            far = "" if missed is None else f"{missed.conditions}: {missed.figure} {_deviation(missed)}"
            yield Rows(kind, sum(bool(row.within) for row in chosen), len(chosen), not chosen[0].fitted, far)

    @property
    def verdict(self) -> evidence.Said:
        """Which figures of which presets may be trusted."""
        return presets(self.kinds)

    @property
    def status(self) -> str:
        """One line: rows within their bars, of how many, and rows that were not run."""
        judged = [row for row in self.rows if row.within is not None]
        predicted = [row for row in judged if not row.fitted]
        parts = [f"{sum(bool(row.within) for row in judged)} of {len(judged)} rows within their bars"]
        if len(predicted) < len(judged):
            parts.append(f"of predicted ones {sum(bool(row.within) for row in predicted)} of {len(predicted)}")
        shown = sum(row.has_no_bar for row in self.rows)
        missing = sum(row.ours is None for row in self.rows)
        parts += [f"{shown} without a bar"] if shown else []
        parts += [f"{missing} not run (no preset, or not modelled)"] if missing else []
        return "validate: " + "; ".join(parts)

    def to_dict(self, folder: Path | None = None) -> dict[str, Any]:
        """The validation in the form of the contract; `folder` has the files of the figures, None without files."""
        names = ("name", "drive", "title", "source", "about")
        tables = [{name: getattr(table, name) for name in names} for table in self.tables]
        return {
            "quick": self.quick,
            "status": self.status,
            "verdict": self.verdict.verdict,
            "verdict_text": self.verdict.text,
            "verdicts": [
                {"drive": drive, "figures": kind, "verdict": each.verdict, "reason": each.reason}
                for drive, kinds in self.kinds.items()
                for kind, each in kinds.items()
            ],
            "drives": [dict(zip(DRIVES, line, strict=True)) for line in self.drives],
            "tables": tables,
            "rows": [row.to_dict() for row in self.rows],
            "figures": [figure.to_dict(folder) for figure in self.figures],
        }


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{text} {unit}".strip()


def _cells(row: Row) -> tuple[str, ...]:
    deviation = row.deviation
    return (
        row.conditions, row.figure, _number(row.real, row.unit), _number(row.ours, row.unit),
        "-" if deviation is None else f"{deviation:+.1f} %",
        "no bar" if row.bar is None else str(row.bar),
        "-" if row.within is None else "yes" if row.within else "NO",
        "fitted" if row.fitted else "predicted",
    )  # fmt: skip


def unjudged(row: Row) -> str:
    """One line for a row without a bar: drive, conditions, our figure and the real one."""
    ours, real = (_number(value, row.unit) for value in (row.ours, row.real))
    deviation = "" if row.deviation is None else f" ({row.deviation:+.1f} %)"
    return f"{row.drive}, {row.conditions}: {row.figure}: {ours}, real {real}{deviation}"


def render(made: Validation) -> "Group":
    """A table for each table of real figures, and the closing line.

    Below each table are its rows without a bar, which nothing judges, and its missing rows, by reason.
    """
    from rich.console import Group
    from rich.table import Table as Printed
    from rich.text import Text

    parts: list[Any] = []
    for table in made.tables:
        rows = made.of(table)
        printed = Printed(title=table.title, title_justify="left", box=None, pad_edge=False, header_style="bold")
        for head in HEADS:
            printed.add_column(head, overflow="fold", justify="right" if head in HEADS[2:6] else "left")
        for row in rows:
            if row.ours is not None:
                printed.add_row(*_cells(row), style="" if row.within is not False else "bold")
        if printed.row_count:
            parts += [printed, Text()]
        parts += [Text(f"{table.name}: no bar: {unjudged(row)}") for row in rows if row.has_no_bar]
        absent = sorted((row for row in rows if row.ours is None), key=lambda row: row.note)
        for why, missing in groupby(absent, lambda row: row.note):
            names = [row.id for row in missing]
            some = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            parts.append(Text(f"{table.name}: {len(names)} not run, {why}: {some}"))
    drives = Printed(box=None, pad_edge=False, header_style="bold")
    for head in DRIVES:
        drives.add_column(head, overflow="fold")
    for line in made.drives:
        drives.add_row(*line)
    trust = Printed(box=None, pad_edge=False, header_style="bold")
    for head in TRUST:
        trust.add_column(head, overflow="fold")
    for line in _trust(made):
        trust.add_row(*line)
    return Group(*parts, Text(), drives, Text(), trust, Text(), Text(made.status))


TRUST = ("drive", "figures", "verdict", "reason")


def _trust(made: Validation) -> list[tuple[str, ...]]:
    """A line under `TRUST` for each kind of figure of each drive."""
    return [
        (drive, kind, each.verdict, each.reason or "-")
        for drive, kinds in made.kinds.items()
        for kind, each in kinds.items()
    ]


def _deviation(row: Row) -> str:
    return "-" if row.deviation is None else f"{row.deviation:+.0f} %"


def _section(made: Validation, table: Table) -> shell.Section:
    rows = made.of(table)
    cells = [(*_cells(row), row.note) for row in rows]
    marks = ["failed" if row.within is False else "" for row in rows]
    pictures = "".join(figure.to_html("figure-") for figure in made.figures if figure.id == table.name)
    source = f"Source: {shell.escape(table.source)}. Preset: {shell.escape(table.drive)}."
    body = (
        f'<p>{shell.escape(table.about)}</p><p class="made">{source}</p><div class="figures">{pictures}</div>'
        f"{shell.records((*HEADS, 'note'), cells, marks)}"
    )
    return shell.Section(table.name, table.title, body, short=table.name)


def page(made: Validation) -> str:
    """One self-contained page: a line for each drive, and a section for each table, with its picture and its rows."""
    drives = shell.records(DRIVES, made.drives)
    marks = ["failed" if line[2] == DOES_NOT else "" for line in _trust(made)]
    trust = shell.records(TRUST, _trust(made), marks)
    first = shell.Section("drives", "Rows of each drive within their bars", drives, short="drives")
    second = shell.Section("trust", "Which figures may be trusted", trust, short="trust")
    sections = [second, first, *(_section(made, table) for table in made.tables)]
    head = f'<p class="answer">{shell.escape(made.status.removeprefix("validate: "))}</p>'
    return shell.fill("Real drives beside their presets", "palimpsest validate", head, sections, {}, style=STYLE)


def to_json(made: Validation, folder: Path | None) -> str:
    """The object of `validate --json`."""
    return json.dumps(made.to_dict(None if folder is None else folder.resolve()), indent=2)


def write(made: Validation, folder: Path) -> None:
    """Writes index.html, validate.json, rows.csv and rows.parquet, and data and a picture of each figure."""
    schema = dict.fromkeys(("real", "ours", "deviation_percent"), pl.Float64()) | {"within": pl.Boolean()}
    rows = pl.DataFrame([row.to_dict() for row in made.rows], schema_overrides=schema)
    more: dict[str, bytes | str] = {"rows.csv": rows.write_csv(), "rows.parquet": parquet(rows)}
    # Names alone: the folder may be moved.
    write_page(folder, "validate", made.to_dict(Path()), page(made), made.figures, more)
