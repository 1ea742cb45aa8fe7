"""The runner of a paper: the runs, tables, claims and figures that its TOML describes.

`paper.toml` has:

- `[constants]`, `[texts]`: names for expressions and templates (`templates`); a later one may use those before it.
- `[scales]`: sizes of runs; `[sizes.quick]` and `[sizes.full]` say which of them `main`, `swept`, ... are.
- `[runs.NAME]`: fields of `RunOptions` as templates; `like` names a template that supplies the other fields.
- `[values.AXIS.VALUE]`: names that a value of an axis stands beside; `[defaults]`: names that a point may change.
- `[grids.NAME]`: `axes` (all combinations, the last one fastest), `run`, `scale`, `set` (further names), `where`.
- `[tables.NAME]`: a row for each cell of `grid`: `keys` (its axes), `columns` (expressions over the result, and over
  the results of `beside`: cells with other values of axes), `where` (rows to keep), `spread` or `mean` over seeds.
- `[[unknowns]]`, `[implied]`, `[[neighbours]]`: points, which change names of all their runs; `each` repeats one.
- `[claims.NAME]`, `[[figures]]`: see `claims.judge` and `Study.figures`.

Ignored: types. A name that is missing or misspelt ends the reproduction.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module, resources
from itertools import product
from types import ModuleType
from typing import Any

import polars as pl

from ..options import RunOptions
from ..result import Result
from . import claims, drawing, measures, sweeps
from .batch import Batch
from .claims import Claim
from .figures import Figure
from .templates import Fields, evaluate, fields, fill

__all__ = ["Point", "Study", "load"]

Point = Mapping[str, Any]
"""Names that replace those of `[defaults]` and of axes in all runs of a table or an effect."""


@cache
def load(name: str) -> dict[str, Any]:
    """The `paper.toml` of a paper."""
    folder = resources.files(__package__) / "papers" / name
    return tomllib.loads((folder / "paper.toml").read_text(encoding="utf-8"))


def _merged(one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any]:
    """`one` with the values of `two`; tables in both are merged."""
    both = {key: one[key] | two[key] for key in two if isinstance(one.get(key), dict)}
    return {**one, **two, **both}


def _parts(value: str | list[Any]) -> tuple[str, ...]:
    """The texts of a list, of lists in it too, without empty ones."""
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(part for each in value for part in _parts(each))


def _fields(result: Result) -> Fields:
    return Fields({key: fields(result[key]) for key in result.keys()})  # noqa: SIM118 - a result is no mapping


class Study:
    """One paper at one size: its description, and what was run for it.

    Args:
        name: of the paper.
        batch: runs the simulations.
        full: `sizes.full` instead of `sizes.quick`.
    """

    def __init__(self, name: str, batch: Batch, *, full: bool = False) -> None:
        self.name = name
        self.data = load(name)
        self.batch = batch
        self.full = full
        self.functions: ModuleType = import_module(f".papers.{name}", __package__)
        self._tables: dict[tuple[str, str], pl.DataFrame] = {}
        scales = self.data["scales"]
        sizes = self.data["sizes"]["full" if full else "quick"]
        self.scales = {**scales, **{role: scales[scale] for role, scale in sizes.items()}}
        self.files = batch.trace_files()
        self.names: dict[str, Any] = {
            **{each: getattr(self.functions, each) for each in self.functions.__all__},
            "change": measures.change,
            "full": full,
            "traces": list(self.files),
            "values": self.data.get("values", {}),
            "claims_of": fields(self.data["claims"]),
            **{role: Fields(scale) for role, scale in self.scales.items()},
            **self.scales["main"],
        }
        for part in ("constants", "texts"):
            for key, value in self.data.get(part, {}).items():
                self.names[key] = fields(fill(value, self.names))
        self.names["swept_effects"] = self._swept_effects()

    def _swept_effects(self) -> list[dict[str, Any]]:
        """Each effect of the sweep with its text and the paper's number, for the panels of a figure."""
        effects = self.data["sweep"]["effects"]
        if not isinstance(effects, dict):
            return []
        return [{"effect": name, "text": text, "paper": self._claimed(name)["paper"]} for name, text in effects.items()]

    # Runs

    def _values(self, axis: str, value: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a value of an axis
        if axis == "trace":
            return {"path": str(self.files[value]), "file": self.files[value].name}
        found: Mapping[str, Any] = self.data.get("values", {}).get(axis, {}).get(str(value), {})
        return found

    def _base(self, grid: str, point: Point) -> dict[str, Any]:
        """The names of all cells of a grid."""
        described = self.data["grids"][grid]
        scale = self.scales[point.get("scale", described.get("scale", "main"))]
        return {**self.names, **scale, **self.data.get("defaults", {}), **described.get("defaults", {}), **point}

    def scope(self, grid: str, point: Point = {}, **keys: Any) -> dict[str, Any]:  # noqa: ANN401, B006 - never changed
        """The names of one cell of a grid."""
        described = self.data["grids"][grid]
        names = self._base(grid, point)
        for axis, value in keys.items():
            names |= self._values(axis, value)
        names |= {**point, **keys}
        for name, template in described.get("set", {}).items():
            names[name] = fill(template, names)
        return names

    def _template(self, name: str) -> dict[str, Any]:
        own = dict(self.data["runs"][name])
        return {**self._template(own.pop("like")), **own} if "like" in own else own

    def options(self, grid: str, point: Point = {}, **keys: Any) -> RunOptions:  # noqa: ANN401, B006
        """The run of one cell of a grid at a point."""
        names = self.scope(grid, point, **keys)
        run = point.get("run", self.data["grids"][grid].get("run", "main"))
        made = fill(self._template(run), names)
        made["workload"] = ",".join(_parts(made["workload"]))
        made["overrides"] = _parts(made.get("overrides", []))
        if made.get("warmup") is not None:
            made["warmup"] = str(made["warmup"])
        return RunOptions(**{key: value for key, value in made.items() if value is not None})

    def cells(self, grid: str, point: Point = {}) -> Iterator[dict[str, Any]]:  # noqa: B006
        """The values of the axes of each cell of a grid."""
        described = self.data["grids"][grid]
        names = self._base(grid, point)
        axes = {axis: evaluate(of, names) if isinstance(of, str) else of for axis, of in described["axes"].items()}
        for values in product(*axes.values()):
            keys = dict(zip(axes, values, strict=True))
            if "where" not in described or evaluate(described["where"], self.scope(grid, point, **keys)):
                yield keys

    def runs(self, grid: str, point: Point = {}) -> Iterator[RunOptions]:  # noqa: B006
        """The runs of a grid at a point."""
        return (self.options(grid, point, **keys) for keys in self.cells(grid, point))

    def result(self, grid: str, point: Point = {}, **keys: Any) -> Result:  # noqa: ANN401, B006
        """The result of one cell of a grid at a point."""
        return self.batch[self.options(grid, point, **keys)]

    def at(self, grid: str, point: Point = {}, **fixed: Any) -> Callable[..., Result]:  # noqa: ANN401, B006
        """A function that gives the result of a cell by the remaining axes."""
        return lambda **keys: self.result(grid, point, **fixed, **keys)

    # Points

    def points(self, name: str, of: Point = {}) -> list[dict[str, Any]]:  # noqa: B006
        """The points that an entry of the file lists, as changes of the point `of`."""
        listed = self.data["points"][name]
        found = [
            fill({key: value for key, value in described.items() if key != "each"}, {**self.names, "each": each})
            for described in listed
            for each in described.get("each", [None])
        ]
        return [_merged(of, point) for point in found]

    @property
    def unknowns(self) -> list[dict[str, Any]]:
        """What the paper leaves open, one thing at another value each; the first point is the default."""
        defaults = self.data.get("defaults", {})
        where = self.data["sweep"].get("where", "True")
        scale = self.scales["swept"]
        found = self.points("unknowns", self.data["sweep"].get("set", {}))
        return [
            point for point in found if evaluate(where, {**self.names, **scale, **defaults, **point})
        ]

    @property
    def implied(self) -> dict[str, Any]:
        """The point that the paper's own numbers imply."""
        return dict(self.data["points"]["implied"])

    def neighbours(self) -> list[dict[str, Any]]:
        """The implied point, and those next to it: one thing changed each."""
        return self.points("neighbours", {**self.implied, **self.data["near"].get("set", {})})

    # Tables

    def _row(self, described: Mapping[str, Any], point: Point, keys: dict[str, Any]) -> dict[str, Any] | None:
        grid = described["grid"]
        names = self.scope(grid, point, **keys)
        own = _fields(self.result(grid, point, **keys))
        names |= {**own, "own": own, **keys}
        for name, changed in described.get("beside", {}).items():
            of = keys | {axis: fill(value, names) for axis, value in changed.items()}
            names[name] = _fields(self.result(grid, point, **of))
        if not evaluate(described.get("where", "True"), names):
            return None
        row = {name: keys[name] for name in described["keys"]}
        for name, each in described["columns"].items():
            row[name] = evaluate(each[str(keys[each["by"]])] if isinstance(each, dict) else each, names | row)
        return row

    def table(self, name: str, point: Point = {}) -> pl.DataFrame:  # noqa: B006
        """The table of this name at a point; empty where no cell has a row."""
        key = (name, str(point))
        if key not in self._tables:
            self._tables[key] = self._sweep() if name == "sweep" else self._table(self.data["tables"][name], point)
        return self._tables[key]

    def _table(self, described: Mapping[str, Any], point: Point) -> pl.DataFrame:
        if "make" in described:
            made: pl.DataFrame = getattr(self.functions, described["make"])(self)
            return made
        if "of" in described:
            return measures.with_spread(self.table(described["of"], point), described["spread"])
        rows = [self._row(described, point, keys) for keys in self.cells(described["grid"], point)]
        types = {column: getattr(pl, kind) for column, kind in described.get("types", {}).items()}
        there = [row for row in rows if row is not None]
        data = pl.DataFrame(there, schema_overrides=types, infer_schema_length=None)
        if data.is_empty():
            return data
        if "mean" in described:
            return measures.means(data, described["mean"], described.get("then", {}))
        return measures.with_spread(data, described["spread"]) if "spread" in described else data

    def _sweep(self) -> pl.DataFrame:
        names = self.data["sweep"]["effects"]
        return sweeps.points(self.unknowns, lambda point: self.functions.effects(self, point), names)

    # Claims and figures

    def text(self, template: str, **more: Any) -> str:  # noqa: ANN401
        """A text with the names of the paper."""
        return str(fill(template, {**self.names, **more}))

    def claim(self, name: str, ours: float | None, of: str = "", **more: Any) -> Claim:  # noqa: ANN401
        """The claim of this name; `of` names its entry of `[claims]` where several claims share one."""
        return claims.judge(name, self._claimed(name, of, **more), ours)

    def _claimed(self, name: str, of: str = "", **more: Any) -> dict[str, Any]:  # noqa: ANN401
        found = self.data["claims"]
        described = found[of or (name if name in found else self.data["sweep"]["of"])]
        return dict(fill(described, {**self.names, "name": name, **more}))

    def note(self, name: str, **more: Any) -> str:  # noqa: ANN401
        """The entry of `[notes]` of this name, filled."""
        return self.text(self.data["notes"][name], **more)

    def reason(self, name: str, number: str = ".1f") -> str:
        """The unknown that moves an effect most, and the value that brings it nearest to the paper's."""
        swept = self.data["sweep"]
        paper = self._claimed(name)["paper"]
        together = swept.get("together", "")
        return sweeps.reason(
            self.table("sweep"), name, paper, lambda ours: self.claim(name, ours).agrees, number, together
        )

    def figures(self, *, implied: bool = False) -> Iterator[Figure]:
        """The figures of the assumed or of the implied setting that have data, in the order of the file."""
        for own in self.data["figures"]:
            described = {**self.data["templates"][own["like"]], **own} if "like" in own else own
            if described.get("implied", False) is implied:
                for each in drawing.repeated(described, self.names):
                    if not (data := self.data_of(each)).is_empty():
                        yield drawing.figure(each, data, self.names)

    def data_of(self, described: Mapping[str, Any]) -> pl.DataFrame:
        """The data of a figure."""
        data = self.table(described["table"])
        return data if data.is_empty() else drawing.shaped(data, described, self.names)

    def figure(self, name: str) -> Figure:
        """One figure of the assumed setting."""
        return next(figure for figure in self.figures() if figure.id == name)

    def sentences(self, name: str, traces: Sequence[str] = ()) -> tuple[str, ...]:
        """The paragraphs of this name, and where they say so, the real traces that were found."""
        found = f"Real traces: {', '.join(traces)}." if traces else "No folder of real traces was given (--traces DIR)."
        return tuple(fill(self.data[name], {**self.names, "found": found}))
