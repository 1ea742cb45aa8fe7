"""A sweep file: a base, a grid of axes, axes that change together, single points, and exclusions.

    [base]                                  options of `palimpsest run` and configuration keys, for every point
    [grid]                                  axes: each key with a list or a range; every combination is a point
    [[zip]]                                 axes of equal length that change together, as one axis of the grid
    [[points]]                              a single point, beside the grid
    [[exclude]]                             points of the grid with all of these values are left out
    [report]                                first view of the report: figure, x, colour, facet, scale, slo, fleet

A key `label.NAME` of [[zip]] or [[points]] is an axis that names these settings, and changes nothing.

This module runs and looks up nothing; `points` resolves and checks the points.
"""

import itertools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError, did_you_mean
from ..metrics import METRICS, is_figure
from .conditions import conditions
from .lines import line_of
from .values import Value, axes_of, expand, is_label, is_range

OPTIONS = (
    "ssd", "ftl", "workload", "precondition", "requests", "warmup", "fidelity", "payload", "seed", "skip_bad",
    "format", "columns", "volumes", "arrivals", "start", "repeat", "until", "at_most",
)  # fmt: skip
"""Options of a run that a sweep may set, beside configuration keys, which have a dot."""

_DOTTED = re.compile(r"^(\s*)((?:ftl|ssd|workload)(?:\.\w+)+)(\s*=)", re.MULTILINE)
LARGEST_SWEEP = 100_000
"""Most points of a sweep."""

_REPORT = ("figure", "x", "colour", "facet", "scale", "slo", "fleet")
_SCALES = ("linear", "log")
_TABLES = ("title", "base", "grid", "zip", "points", "exclude", "report")
_TITLE = "Sweep"

Settings = dict[str, Value]
"""Options and configuration keys with their values."""
Path_ = tuple[str | int, ...]


@dataclass(frozen=True)
class Definition:
    """A sweep as written, ranges expanded.

    `grid` has groups of axes, each with a row of values for each step, which are multiplied; `explicit` single points;
    `paths` the place in the file of a setting, by `(table, key)`. Relative paths begin at `folder`.
    """

    title: str
    name: str
    text: str
    folder: Path
    base: Settings
    grid: tuple[tuple[Settings, ...], ...]
    explicit: tuple[Settings, ...]
    excluded: tuple[Settings, ...]
    report: dict[str, str]
    paths: dict[tuple[str, str], Path_] = field(repr=False)

    @property
    def axes(self) -> list[str]:
        """Keys that differ between points, in the order of the file."""
        groups = [group[0] for group in self.grid]
        return list(dict.fromkeys(key for settings in (*groups, *self.explicit) for key in settings))

    def points(self) -> list[tuple[str, Settings]]:
        """The table and settings of each point over the base, duplicates removed; the last axis changes fastest."""
        found: dict[tuple[tuple[str, Value], ...], tuple[str, Settings]] = {}
        for table, settings in self._all():
            found.setdefault(tuple(sorted(settings.items())), (table, settings))
        return list(found.values())

    def combinations(self) -> Iterator[Settings]:
        """The settings of each point of the grid over the base, exclusions included."""
        for combination in itertools.product(*self.grid):
            yield {key: value for part in combination for key, value in part.items()}

    def _all(self) -> Iterator[tuple[str, Settings]]:
        # Without axes, a file of points has no grid, and a base alone is a single point.
        if self.grid or not self.explicit:
            for settings in self.combinations():
                if not any(_matches(self.base | settings, each) for each in self.excluded):
                    yield "grid", settings
        for index, settings in enumerate(self.explicit):
            yield f"points.{index}", settings

    def place(self, table: str, key: str | None = None) -> str:
        """`FILE:LINE` of a key of a point, wherever set, or of its table if the key is unknown."""
        path: Path_ = (table.partition(".")[0],)
        if "." in table:
            path = ("points", int(table.partition(".")[2]))
        if key is not None:
            path = self.paths.get((table, key)) or self.paths.get(("base", key)) or path
        return f"{self.name}:{line_of(self.text, path)}"


def _matches(settings: Settings, pattern: Settings) -> bool:
    return all(key in settings and settings[key] == value for key, value in pattern.items())


def from_text(text: str, name: str, folder: Path) -> Definition:
    """Reads a TOML text; `name` is for messages, `folder` the base of relative paths. Raises InputError."""
    try:
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            # `ftl.victim` beside `ftl` is no TOML, but clear.
            quoted = _DOTTED.sub(r'\1"\2"\3', text)
            data = tomllib.loads(quoted)
            text = quoted
    except tomllib.TOMLDecodeError as error:
        said, _, place = str(error).partition(" (at line ")
        line = place.partition(",")[0]
        where = line if line.isdigit() else str(text.count("\n") + 1)
        raise InputError(f"{name}:{where}: expected TOML: {said[:1].lower()}{said[1:]}") from error
    return _Reader(text, name).read(data, folder)


def from_mapping(data: Mapping[str, Any], folder: Path) -> Definition:
    """Reads the sweep in a mapping with the tables of the file. Raises InputError."""
    try:
        text = to_toml(data)
    except TypeError as error:
        raise InputError(f"sweep: {error}") from error
    return from_text(text, "sweep", folder)


class _Reader:
    """Reads the tables, and names the line of a mistake."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.paths: dict[tuple[str, str], Path_] = {}

    def wrong(self, path: Sequence[str | int], what: str) -> InputError:
        shown = ".".join(f"[{each}]" if isinstance(each, int) else each for each in path).replace(".[", "[")
        return InputError(
            f"{self.name}:{line_of(self.text, path)}: {shown}: {what}" if path else f"{self.name}: {what}"
        )

    def read(self, data: Mapping[str, Any], folder: Path) -> Definition:
        for key in data:
            if key not in _TABLES:
                raise self.wrong(
                    (key,), f"unknown table{did_you_mean(key, _TABLES)}; expected one of {', '.join(_TABLES)}"
                )
        title = data.get("title", _TITLE)
        if not isinstance(title, str):
            raise self.wrong(("title",), f"expected text, found {title!r}")
        base = self.settings("base", data.get("base", {}), ("base",))
        grid = self.grid(data)
        points = [
            self.settings(f"points.{index}", each, ("points", index)) for index, each in self.tables(data, "points")
        ]
        excluded = [
            self.settings(f"exclude.{index}", each, ("exclude", index)) for index, each in self.tables(data, "exclude")
        ]
        for index, each in enumerate(excluded):
            for key in each.keys() - {key for group in grid for key in group[0]} - base.keys():
                raise self.wrong(("exclude", index, key), "expected an axis of the grid, or a key of the base")
        total = math.prod(len(group) for group in grid)
        if total > LARGEST_SWEEP:
            raise self.wrong(("grid",), f"the sweep has {total:,} points; expected at most {LARGEST_SWEEP:,}")
        found = Definition(
            title, self.name, self.text, folder, base, tuple(grid), tuple(points), tuple(excluded),
            self.report(data.get("report", {})), self.paths,
        )  # fmt: skip
        if not (base or grid or points):
            tables = "[base], [grid], [[zip]] or [[points]]"
            raise self.wrong((), f"the sweep sets nothing; expected options or configuration keys in {tables}")
        for index, each in enumerate(excluded):
            if not any(_matches(base | settings, each) for settings in found.combinations()):
                what = "no point of the grid has these values; expected values as the axes have them"
                raise self.wrong(("exclude", index), what)
        for key in ("x", "colour", "facet", "fleet"):
            for name in axes_of(found.report, key):
                if name not in found.axes:
                    axes = ", ".join(found.axes) or "none, as there is no axis"
                    raise self.wrong(("report", key), f"{name} is no axis of this sweep; expected {axes}")
        return found

    def tables(self, data: Mapping[str, Any], name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
        found = data.get(name, [])
        if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
            raise self.wrong((name,), f"expected tables that begin with [[{name}]]")
        for index, each in enumerate(found):
            if not each:
                raise self.wrong((name, index), "the table is empty; expected options or configuration keys")
            yield index, each

    def grid(self, data: Mapping[str, Any]) -> list[tuple[Settings, ...]]:
        groups: list[tuple[Settings, ...]] = []
        for key, value, path in self.flat(data.get("grid", {}), ("grid",)):
            self.paths["grid", key] = path
            groups.append(tuple({key: each} for each in self.axis(value, path)))
        for index, table in self.tables(data, "zip"):
            axes: dict[str, list[Value]] = {}
            for key, value, path in self.flat(table, ("zip", index)):
                if any(key in group[0] for group in groups):
                    raise self.wrong(path, "this axis is in the grid already; expected it once")
                self.paths["grid", key] = path
                axes[key] = self.axis(value, path, may_repeat=not is_label(key))
            lengths = {key: len(values) for key, values in axes.items()}
            if len(set(lengths.values())) > 1:
                found = ", ".join(f"{key} has {length}" for key, length in lengths.items())
                raise self.wrong(("zip", index), f"expected axes of the same length; {found}")
            steps = [dict(zip(axes, values, strict=True)) for values in zip(*axes.values(), strict=True)]
            settings = [{key: value for key, value in step.items() if not is_label(key)} for step in steps]
            for at, each in enumerate(settings):
                if each in settings[:at]:
                    first = settings.index(each) + 1
                    raise self.wrong(
                        ("zip", index), f"values {first} and {at + 1} of all axes are equal; expected different ones"
                    )
            groups.append(tuple(steps))
        return groups

    def axis(self, value: object, path: Path_, *, may_repeat: bool = False) -> list[Value]:
        if is_range(value):
            try:
                return expand(value)  # type: ignore[arg-type]  # is_range says that it is a mapping
            except ValueError as error:
                raise self.wrong(path, str(error)) from error
        values = value if isinstance(value, list) else [value]
        if not values:
            raise self.wrong(
                path, "the axis is empty; expected a list of values, or a range {from, to, step or factor}"
            )
        found = [self.value(each, path) for each in values]
        for index, each in enumerate(found):
            if not may_repeat and each in found[:index] and type(each) is type(found[found.index(each)]):
                raise self.wrong(path, f"{each!r} occurs twice; expected different values")
        return found

    def settings(self, table: str, data: object, path: Path_) -> Settings:
        found: Settings = {}
        for key, value, where in self.flat(data, path):
            self.paths[table, key] = where
            if isinstance(value, list) or is_range(value):
                raise self.wrong(where, "expected one value; axes belong in [grid] or [[zip]]")
            found[key] = self.value(value, where)
        return found

    def value(self, value: object, path: Path_) -> Value:
        if not isinstance(value, str | int | float | bool):
            raise self.wrong(path, f"expected text, a number, true or false, found {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.wrong(path, f"expected a finite number, found {value!r}")
        return value

    def flat(self, data: object, path: Path_) -> Iterator[tuple[str, object, Path_]]:
        """The keys of a table, nested tables joined by dots; each key must be an option or have a dot."""
        if not isinstance(data, Mapping):
            raise self.wrong(path, "expected a table of options and configuration keys")
        for key, value, where in self._walk(data, path, ""):
            if key not in OPTIONS and "." not in key:
                raise self.wrong(
                    where,
                    f"unknown option{did_you_mean(key, OPTIONS)}; expected an option of `palimpsest run` such as seed, "
                    "or a configuration key such as ftl.victim",
                )
            if is_label(key):
                self.expect_beside(value, where, data)
            yield key, value, where

    def expect_beside(self, value: object, where: Path_, data: Mapping[str, Any]) -> None:
        """Raises InputError for a label of no other settings, or with a value that is no text."""
        others = [name for name, _, _ in self._walk(data, where[:1], "") if not is_label(name)]
        if where[0] in ("base", "grid") or not others:
            raise self.wrong(where, "a label names the settings beside it; expected some, in [[zip]] or [[points]]")
        for each in value if isinstance(value, list) else [value]:
            if not isinstance(each, str):
                raise self.wrong(where, f"expected text, found {each!r}")

    def _walk(self, data: Mapping[str, Any], path: Path_, prefix: str) -> Iterator[tuple[str, object, Path_]]:
        for key, value in data.items():
            name, where = f"{prefix}{key}", (*path, key)
            if isinstance(value, Mapping) and not is_range(value):
                # `set` is the name of the option for configuration keys.
                yield from self._walk(value, where, prefix if name == "set" else f"{name}.")
            else:
                yield name, value, where

    def report(self, data: object) -> dict[str, str]:
        if not isinstance(data, Mapping):
            raise self.wrong(("report",), f"expected a table with some of {', '.join(_REPORT)}")
        for key, value in data.items():
            if key not in _REPORT:
                raise self.wrong(
                    ("report", key), f"unknown key{did_you_mean(key, _REPORT)}; expected one of {', '.join(_REPORT)}"
                )
            if not isinstance(value, str):
                raise self.wrong(("report", key), f"expected the name of a figure or an axis, found {value!r}")
            if key == "scale" and value not in _SCALES:
                raise self.wrong(("report", key), f"expected {' or '.join(_SCALES)}, found {value!r}")
            if key == "slo":
                try:
                    conditions(value)
                except InputError as error:
                    raise self.wrong(("report", key), str(error)) from error
            if key == "figure" and not is_figure(value):
                meant = did_you_mean(value, [".".join(metric.path) for metric in METRICS])
                said = f"no result has a figure {value}{meant}; expected one as in `palimpsest help results`"
                raise self.wrong(("report", key), said)
        return dict(data)


def to_toml(data: Mapping[str, Any]) -> str:
    """A mapping as TOML, tables inside tables inline. Raises TypeError for a value without a TOML form."""
    plain = [f"{_key(key)} = {_toml(value)}" for key, value in data.items() if not _is_table(value)]
    parts = ["\n".join(plain)] if plain else []
    for name, value in data.items():
        if _is_table(value):
            array = not isinstance(value, Mapping)
            for each in value if array else [value]:
                heading = f"[[{_key(name)}]]" if array else f"[{_key(name)}]"
                parts.append("\n".join([heading, *(f"{_key(key)} = {_toml(item)}" for key, item in each.items())]))
    return "\n\n".join(parts) + "\n"


def _is_table(value: object) -> bool:
    tables = isinstance(value, list | tuple) and bool(value) and all(isinstance(each, Mapping) for each in value)
    return isinstance(value, Mapping) or tables


def _key(key: object) -> str:
    text = str(key)
    return (
        text
        if text and all(letter.isascii() and (letter.isalnum() or letter in "_-") for letter in text)
        else _toml(text)
    )


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str | Path):
        escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if ord(c) >= 32 and ord(c) != 127 else f"\\u{ord(c):04x}" for c in escaped) + '"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if hasattr(value, "item"):  # numbers of NumPy
        return _toml(value.item())
    if hasattr(value, "tolist"):
        return _toml(value.tolist())
    raise TypeError(f"expected text, numbers, true, false, lists and tables, found {value!r}")
