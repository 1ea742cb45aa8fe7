"""Tables of measurements of real drives: a folder of CSV files, and `tables.toml`, which describes them.

An entry of `tables.toml` has the name of a CSV file without `.csv`: form, preset of the drive, source, and how to run
the rows. A table without an entry uses the entry of the package's table of the same name, else of the only one with the
same first column.
"""

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..options import RunOptions
from .judge import Bar

OWN = Path(__file__).parent / "truth"
"""The folder of the package's own tables."""

_TEXTS = ("form", "drive", "title", "source", "about", "workload", "beside", "precondition")
_REQUIRED = ("form", "drive", "title", "source")
_LISTS = ("fitted", "quick", "full")
_TABLES = ("bars", "requests")
_SIZES = ("quick", "full")


@dataclass(frozen=True)
class Table:
    """A table with its description in `tables.toml`.

    `drive` is the preset; `workload` is completed by the rows, of which some also run the job `beside`; ids in `fitted`
    may end in `*`; `quick` and `full` are overrides; `bars` has allowed deviations by condition and figure; `rows` has
    numbers of lines, and cells by column.
    """

    name: str
    path: Path
    form: str
    drive: str
    title: str
    source: str
    about: str
    workload: str
    beside: str
    precondition: str
    fitted: tuple[str, ...]
    quick: tuple[str, ...]
    full: tuple[str, ...]
    bars: Mapping[str, Mapping[str, str]]
    requests: Mapping[str, int]
    columns: tuple[str, ...]
    rows: tuple[tuple[int, Mapping[str, str]], ...]

    def overrides(self, *, quick: bool) -> tuple[str, ...]:
        """Overrides of the drive for a run."""
        return self.quick if quick else self.full

    def run(self, workload: str, *, quick: bool, fidelity: str = "timed") -> RunOptions:
        """A run of a workload on the drive, with series."""
        return RunOptions(
            ssd=self.drive, overrides=self.overrides(quick=quick), precondition=self.precondition or "none",
            fidelity=fidelity, series=True, workload=workload, warmup="0",
        )  # fmt: skip

    def count(self, default: int, *, quick: bool) -> int:
        """Number of requests of a run."""
        return self.requests.get("quick" if quick else "full", default)

    def is_fitted(self, row: str) -> bool:
        """Whether the preset was fitted to the row of this id."""
        return any(row == name or (name.endswith("*") and row.startswith(name[:-1])) for name in self.fitted)

    def bar(self, condition: str, figure: str) -> Bar | None:
        """The allowed deviation of a figure under a condition, or None."""
        text = self.bars.get(condition, {}).get(figure, "")
        return Bar.parse(text, f"{self.path.parent / 'tables.toml'}: [{self.name}.bars.{condition}] {figure}")

    def number(self, line: int, cells: Mapping[str, str], column: str) -> float | None:
        """The number in a cell; None for an empty or missing cell. Raises InputError for other text."""
        text = cells.get(column, "").strip()
        try:
            value = float(text) if text else None
        except ValueError:
            value = float("nan")
        if value is not None and not abs(value) < float("inf"):
            raise InputError(f"{self.path}:{line}: {column} is {text!r}; expected a number")
        return value


def _cells(path: Path) -> tuple[tuple[str, ...], tuple[tuple[int, dict[str, str]], ...]]:
    """The columns and lines of a CSV file."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = [
                (number, line) for number, line in enumerate(csv.reader(file), start=1) if any(map(str.strip, line))
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: expected a table of comma-separated values: {error}") from None
    if not lines:
        raise InputError(f"{path}: the table is empty; expected a line of column names, and a line for each row")
    header = tuple(name.strip() for name in lines[0][1])
    if len(set(header)) < len(header) or "" in header:
        raise InputError(f"{path}:1: expected different column names, found {', '.join(header)}")
    for number, line in lines[1:]:
        if len(line) != len(header):
            raise InputError(f"{path}:{number}: expected {len(header)} values as line 1 has names, found {len(line)}")
    if len(lines) == 1:
        raise InputError(f"{path}: expected a line for each row after the column names")
    return header, tuple((number, dict(zip(header, line, strict=True))) for number, line in lines[1:])


def _described(path: Path) -> dict[str, dict[str, Any]]:
    """The entries of a `tables.toml`; none if the file is missing."""
    if not path.is_file():
        return {}
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: expected TOML with an entry for each table: {error}") from None
    for name, entry in entries.items():
        place = f"{path}: [{name}]"
        if not isinstance(entry, dict):
            raise InputError(f"{place}: expected an entry [{name}] with keys, found a value")
        _check_entry(entry, place)
        if not (path.parent / f"{name}.csv").is_file():
            raise InputError(f"{place}: there is no {path.parent / name}.csv; expected the table that it describes")
    return entries


def _check_entry(entry: Mapping[str, Any], place: str) -> None:
    known = (*_TEXTS, *_LISTS, *_TABLES)
    for key, value in entry.items():
        if key not in known:
            raise InputError(f"{place} {key}: unknown key; expected one of {', '.join(known)}")
        if key in _TEXTS and not isinstance(value, str):
            raise InputError(f"{place} {key}: expected a text, found {value!r}")
        if key in _LISTS and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise InputError(f"{place} {key}: expected a list of texts, found {value!r}")
    for key in _REQUIRED:
        if key not in entry:
            raise InputError(f"{place}: {key} is missing; expected {', '.join(_REQUIRED)}")
    requests = entry.get("requests", {})
    if not isinstance(requests, dict) or not all(
        size in _SIZES and type(count) is int and count > 0 for size, count in requests.items()
    ):
        raise InputError(f"{place} requests: expected numbers from 1 for {' and '.join(_SIZES)}, found {requests!r}")
    bars = entry.get("bars", {})
    if not isinstance(bars, dict):
        raise InputError(f"{place} bars: expected figures and their bars by condition, found {bars!r}")
    for condition, figures in bars.items():
        if not isinstance(figures, dict) or not all(isinstance(bar, str) for bar in figures.values()):
            raise InputError(f'{place} bars.{condition}: expected figures with bars such as mean_us = "10%"')
        for figure, bar in figures.items():
            Bar.parse(bar, f"{place} bars.{condition}.{figure}")


def _table(path: Path, entry: Mapping[str, Any]) -> Table:
    columns, rows = _cells(path)
    given: dict[str, Any] = {key: str(entry.get(key, "")) for key in _TEXTS}
    given |= {key: tuple(entry.get(key, ())) for key in _LISTS}
    given |= {key: entry.get(key, {}) for key in _TABLES}
    return Table(name=path.stem, path=path, columns=columns, rows=rows, **given)


def _entry_of(path: Path, own: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The entry of the package's table of the same name, or of the only one with the same first column."""
    if path.stem in own:
        return own[path.stem]
    header = _cells(path)[0]
    first = {name: _cells(OWN / f"{name}.csv")[0][0] for name in own}
    like = [name for name, column in first.items() if column == header[0]]
    if len(like) == 1:
        return own[like[0]]
    columns = ", ".join(dict.fromkeys(first.values()))
    raise InputError(
        f"{path}: no table is called {path.stem} or begins with the column {header[0]!r}; expected a first column of "
        f"{columns}, or an entry [{path.stem}] in {path.parent / 'tables.toml'}"
    )


def table_of(path: Path) -> Table:
    """The table of one file, described beside it or by the package. Raises InputError with file and line."""
    given = _described(path.parent / "tables.toml")
    own = _described(OWN / "tables.toml")
    # Tables of one experiment differ in the drive, which the caller has.
    alike = {tuple(each.get(key) for key in ("form", "workload", "beside")): name for name, each in own.items()}
    known = own if path.stem in own else {name: own[name] for name in alike.values()}
    return _table(path, given[path.stem] if path.stem in given else _entry_of(path, known))


def read(folder: Path | None = None) -> list[Table]:
    """The tables of a folder, or of the package, by name. Raises InputError with file and line."""
    own = _described(OWN / "tables.toml")
    if folder is None:
        return [_table(OWN / f"{name}.csv", entry) for name, entry in own.items()]
    files = sorted(path for path in folder.iterdir() if path.suffix == ".csv" and path.is_file())
    if not files:
        raise InputError(f"--truth {folder}: expected tables such as zns-8k-randread.csv, found no file *.csv")
    given = _described(folder / "tables.toml")
    return [_table(path, given[path.stem] if path.stem in given else _entry_of(path, own)) for path in files]
