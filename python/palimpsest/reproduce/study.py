"""The runner of a paper: runs, tables, claims and figures from the description in `paper.toml`.

`paper.toml` has:

- `[constants]`, `[texts]`: names for expressions and templates (`templates`); a later one may use earlier ones.
- `[scales]`: sizes of runs. `[sizes.quick]` and `[sizes.full]` choose the scale of each role: `main`, `swept`, ....
- `[runs.NAME]`: fields of `RunOptions` as templates. `like` names a template that supplies the other fields, `let`
  computes names before them.
- `[values.AXIS.VALUE]`: further names that a value of an axis supplies. `[defaults]`: names that points may change.
- `[grids.NAME]`: `axes` (all combinations, the last axis fastest), `run`, `scale`, `set` (further names), `where`
  (cells to keep), `only = "points"` (runs at points alone).
- `[tables.NAME]`: a row for each cell of `grid`, with `keys` (axes) and `columns` (expressions over the result, and
  over results of cells `beside`, with other values of axes). `where` keeps rows, `types` and `floats` fix types,
  `spread` or `mean` combines seeds, `then` adds columns to means, `of` names a table to combine. `make` names a
  function instead.
- `[points]`: `unknowns`, `neighbours` and the table `implied`; a point changes names of all runs, `each` repeats it.
- `[sweep]`, `[near]`: grids, names and texts of the unknowns, and of the implied point and the neighbours.
- `[mechanism]`: `grids`, names for the runs at the assumed and at the `implied` setting, and `[mechanism.off.NAME]`,
  what `says` that a mechanism is off and the names that `set` it so. A claim names its `mechanism`.
- `[real]`: real traces of the workloads (`real`).
- `[claims.NAME]` (`claims.judge`), `[notes]`, `[[figures]]` (`drawing`).

Ignored: types of names. A name that is missing or misspelt ends the reproduction with an error of Python.
"""

import csv
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module, resources
from itertools import product
from types import MappingProxyType, ModuleType
from typing import Any

import polars as pl

from .. import fair
from ..options import RunOptions
from ..result import Result
from . import claims, drawing, measures, real, sweeps
from .batch import Batch
from .claims import Claim
from .figures import Figure
from .templates import Fields, evaluate, fields, fill

__all__ = ["ASSUMED_POINT", "Point", "Study", "has_implied", "load", "stated"]

Point = Mapping[str, Any]
"""Names that replace those of `[defaults]` in all runs of a table or an effect."""

ASSUMED_POINT: Point = MappingProxyType({})
"""The point that changes nothing."""


@cache
def load(name: str) -> dict[str, Any]:
    """The `paper.toml` of a paper."""
    folder = resources.files(__package__) / "papers" / name
    return tomllib.loads((folder / "paper.toml").read_text(encoding="utf-8"))


@cache
def stated(name: str) -> tuple[dict[str, str], ...]:
    """The sentences of a paper that state a number, an order or a cause, from `rows.csv`.

    `where` is the section, `says` the sentence, `claims` the names of the claims that test the sentence, with spaces
    between. If there are none, `why` has the reason.
    """
    text = (resources.files(__package__) / "papers" / name / "rows.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def has_implied(name: str) -> bool:
    """Whether a setting is known that the paper's own numbers imply."""
    return "implied" in load(name)["points"]


def _merged(one: Point, two: Point) -> dict[str, Any]:
    """`one` with the values of `two`; tables in both are merged."""
    both = {key: one[key] | two[key] for key in two if isinstance(one.get(key), dict)}
    return {**one, **two, **both}


def _parts(value: str | list[Any]) -> tuple[str, ...]:
    """The texts of a list and of nested lists, without empty texts."""
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(part for each in value for part in _parts(each))


def _fields(result: Result) -> Fields:
    return Fields({key: fields(result[key]) for key in result.keys()})  # noqa: SIM118 - a result is no mapping


class Study:
    """One paper at one size: the description, and the results of the runs.

    Args:
        name: of the paper.
        batch: runs the simulations.
        full: `sizes.full` instead of `sizes.quick`.
        replays: replays the real traces that were found in the place of their workloads, and lists only these.
    """

    def __init__(self, name: str, batch: Batch, *, full: bool = False, replays: bool = False) -> None:
        self.name = name
        self.data = load(name)
        self.batch = batch
        self.full = full
        self.functions: ModuleType = import_module(f".papers.{name}", __package__)
        self.real: dict[str, Any] = self.data.get("real", {})
        files = batch.trace_files()
        self.found = real.find(self.real, files, real.unreadable(files))
        self.replayed = self.found.files if replays else {}
        more = {**self.real.get("set", {}), **(self.real.get("full", {}) if full else {})} if replays else {}
        scales = {scale: own | more for scale, own in self.data["scales"].items()}
        sizes = self.data["sizes"]["full" if full else "quick"]
        self.scales = {**scales, **{role: scales[scale] for role, scale in sizes.items()}}
        self.names = self._names()
        self._tables: dict[tuple[str, str], pl.DataFrame] = {}

    def _names(self) -> dict[str, Any]:
        """The names of all expressions and templates."""
        names = {each: getattr(self.functions, each) for each in self.functions.__all__}
        names |= {"change": measures.change, "traces": list(self.found.others)}
        names |= {"values": self.data.get("values", {}), "claims_of": fields(self.data["claims"])}
        names |= {role: Fields(scale) for role, scale in self.scales.items()} | self.scales["main"]
        for part in ("constants", "texts"):
            for key, value in self.data.get(part, {}).items():
                names[key] = self._replayed_of(fields(fill(value, names)))
        self.names = names
        effects = self.data["sweep"]["effects"]
        if isinstance(effects, dict):
            papers = {name: self._claimed(name)["paper"] for name in effects}
            names["swept_effects"] = [{"effect": key, "text": effects[key], "paper": papers[key]} for key in effects]
        return names

    def replaying(self) -> "Study":
        """The same paper on the real traces that were found."""
        return Study(self.name, self.batch, full=self.full, replays=True)

    def _replayed_of(self, value: Any) -> Any:  # noqa: ANN401 - any constant
        """A list of workloads with the replayed ones alone; any other constant as it is."""
        kept = [each for each in value if each in self.replayed] if isinstance(value, list) else []
        return kept or value

    # Runs

    def _base(self, grid: str, point: Point) -> dict[str, Any]:
        """The names of all cells of a grid."""
        described = self.data["grids"][grid]
        scale = self.scales[point.get("scale", described.get("scale", "main"))]
        return {**self.names, **scale, **self.data.get("defaults", {}), **described.get("defaults", {}), **point}

    def _scope(self, grid: str, point: Point, keys: Mapping[str, Any]) -> dict[str, Any]:
        """The names of one cell of a grid."""
        names = self._base(grid, point)
        values = self.data.get("values", {})
        for axis, value in keys.items():
            names |= values.get(axis, {}).get(str(value), {})
            if axis == "trace":
                names |= {"path": str(self.found.others[value]), "file": self.found.others[value].name}
        names |= {**point, **keys}
        for name, template in self.data["grids"][grid].get("set", {}).items():
            names[name] = fill(template, names)
        return names

    def _template(self, name: str) -> dict[str, Any]:
        own = dict(self.data["runs"][name])
        return _merged(self._template(own.pop("like")), own) if "like" in own else own

    def options(self, grid: str, point: Point = ASSUMED_POINT, **keys: Any) -> RunOptions:  # noqa: ANN401
        """The run of one cell of a grid at a point."""
        names = self._scope(grid, point, keys)
        template = self._template(point.get("run", self.data["grids"][grid].get("run", "main")))
        for name, value in template.pop("let", {}).items():
            names[name] = fill(value, names)
        made = fill(template, names)
        made["workload"] = ",".join(_parts(made["workload"]))
        made["overrides"] = _parts(made["overrides"])
        # A study states what precedes its measurement.
        made["warmup"] = str(made["warmup"]) if made.get("warmup") is not None else "0"
        if names.get("workload") in self.replayed:
            real.replaced(self.real, made, self.replayed[names["workload"]], names)
        return RunOptions(**{key: value for key, value in made.items() if value is not None})

    def cells(self, grid: str, point: Point = ASSUMED_POINT) -> Iterator[dict[str, Any]]:
        """The values of the axes of each cell of a grid."""
        described, names = self.data["grids"][grid], self._base(grid, point)
        axes = {axis: evaluate(of, names) if isinstance(of, str) else of for axis, of in described["axes"].items()}
        for values in product(*axes.values()):
            keys = dict(zip(axes, values, strict=True))
            if "where" not in described or evaluate(described["where"], self._scope(grid, point, keys)):
                yield keys

    def runs(self, grids: Sequence[str], point: Point = ASSUMED_POINT) -> Iterator[RunOptions]:
        """The runs of grids at a point."""
        return (self.options(grid, point, **keys) for grid in grids for keys in self.cells(grid, point))

    def result(self, grid: str, point: Point = ASSUMED_POINT, **keys: Any) -> Result:  # noqa: ANN401
        """The result of one cell of a grid at a point; axes may be left out if `[defaults]` has them."""
        return self.batch[self.options(grid, point, **keys)]

    def at(self, grid: str, point: Point = ASSUMED_POINT, **fixed: Any) -> Callable[..., Result]:  # noqa: ANN401
        """A function that returns the result of a cell from the remaining axes."""
        return lambda **keys: self.result(grid, point, **fixed, **keys)

    def checks(self) -> list[fair.Finding]:
        """The findings on finished cells of the assumed setting that differ in one axis, seeds apart."""
        found: list[fair.Finding] = []
        for grid in (name for name, each in self.data["grids"].items() if "only" not in each):
            cells = [keys for keys in self.cells(grid) if self.options(grid, **keys) in self.batch]
            for axis in (axis for axis in (cells[0] if cells else ()) if axis != "seed"):
                groups: dict[str, list[tuple[str, Result]]] = {}
                for keys in cells:
                    rest = repr({key: value for key, value in keys.items() if key not in (axis, "seed")})
                    groups.setdefault(rest, []).append((str(keys[axis]), self.result(grid, **keys)))
                for pairs in groups.values():
                    found += fair.labelled(pairs)
        return fair.merged(found)

    # Points

    def _points(self, name: str, of: Point) -> list[dict[str, Any]]:
        """The points that `[points]` lists, as changes of the point `of`."""
        found = []
        for described in self.data["points"][name]:
            changed = {key: each for key, each in described.items() if key != "each"}
            for value in described.get("each", [None]):
                found.append(_merged(of, fill(changed, {**self.names, "each": value})))
        return found

    @property
    def unknowns(self) -> list[dict[str, Any]]:
        """The points that the sweep visits; the first is the default."""
        swept = self.data["sweep"]
        names = {**self.names, **self.scales["swept"], **self.data.get("defaults", {})}
        found = self._points("unknowns", swept.get("set", {}))
        return [point for point in found if evaluate(swept.get("where", "True"), {**names, **point})]

    @property
    def implied(self) -> dict[str, Any]:
        """The point that the paper's own numbers imply."""
        return dict(self.data["points"]["implied"])

    @property
    def neighbours(self) -> list[dict[str, Any]]:
        """The implied point, and points that change one thing of the implied point."""
        return self._points("neighbours", {**self.implied, **self.data["near"].get("set", {})})

    def mechanisms(self, of: Point) -> dict[str, tuple[str, dict[str, Any]]]:
        """Words and point of the runs with each of the paper's mechanisms off; the name "" is with all of them on."""
        described = self.data["mechanism"]
        own = _merged(of, described.get("implied" if of else "assumed", {}))
        off = {name: (each["says"], _merged(own, each["set"])) for name, each in described["off"].items()}
        return {"": ("", own), **off}

    # Tables

    def table(self, name: str, point: Point = ASSUMED_POINT) -> pl.DataFrame:
        """The table of this name at a point, or `sweep`; empty where no cell has a row."""
        key = (name, str(dict(point)))
        if key not in self._tables:
            made = self._sweep() if name == "sweep" else self._table(self.data["tables"][name], point)
            if self.replayed and "workload" in made.columns:
                made = made.filter(pl.col("workload").is_in([*self.replayed]))
            self._tables[key] = made
        return self._tables[key]

    def _sweep(self) -> pl.DataFrame:
        names = self.data["sweep"]["effects"]
        return sweeps.points(self.unknowns, lambda point: self.functions.effects(self, point), names)

    def _table(self, described: Mapping[str, Any], point: Point) -> pl.DataFrame:
        if "make" in described:
            made: pl.DataFrame = getattr(self.functions, described["make"])(self, point)
            return made
        if "of" in described:
            each = self.table(described["of"], point).drop(described.get("drop", []))
            return measures.with_spread(each, described["spread"])
        rows = [self._row(described, point, keys) for keys in self.cells(described["grid"], point)]
        types = {column: getattr(pl, kind) for column, kind in described.get("types", {}).items()}
        there = [row for row in rows if row is not None]
        data = pl.DataFrame(there, schema_overrides=types, infer_schema_length=None)
        if data.is_empty():
            return data
        if "floats" in described:
            data = data.with_columns(pl.all().exclude(described["floats"]).cast(pl.Float64))
        if "mean" in described:
            return measures.means(data, described["mean"], described.get("then", {}))
        return measures.with_spread(data, described["spread"]) if "spread" in described else data

    def _row(self, described: Mapping[str, Any], point: Point, keys: dict[str, Any]) -> dict[str, Any] | None:
        grid = described["grid"]
        own = _fields(self.result(grid, point, **keys))
        names = {**self._scope(grid, point, keys), **own, "own": own, **keys}
        for name, changed in described.get("beside", {}).items():
            names[name] = _fields(self.result(grid, point, **(keys | fill(changed, names))))
        if not evaluate(described.get("where", "True"), names):
            return None
        row = {name: keys[name] for name in described["keys"]}
        for name, each in described["columns"].items():
            row[name] = evaluate(each[str(keys[each["by"]])] if isinstance(each, dict) else each, names | row)
        return row

    # Claims and figures

    def claim(self, name: str, ours: float | None, of: str = "", **more: Any) -> Claim:  # noqa: ANN401
        """The claim of this name; `of` names an entry of `[claims]` that several claims share."""
        return claims.judge(name, self._claimed(name, of, **more), ours)

    def closed(self) -> list[Claim]:
        """The claims in closed form: `ours` is an expression over the names of the paper, the same at every setting.

        The note of each is the entry of `[notes.closed]`.
        """
        notes, claimed = self.data["notes"]["closed"], self.data["claims"]
        return [
            self.claim(name, evaluate(claimed[name]["ours"], self.names)).with_note(notes.get(name, ""))
            for name in claimed
            if "ours" in claimed[name]
        ]

    def _claimed(self, name: str, of: str = "", **more: Any) -> dict[str, Any]:  # noqa: ANN401
        found = self.data["claims"]
        described = found[of or (name if name in found else self.data["sweep"]["of"])]
        return dict(fill(described, {**self.names, "name": name, **more}))

    def text(self, template: str, **more: Any) -> str:  # noqa: ANN401
        """A text with the names of the paper."""
        return str(fill(template, {**self.names, **more}))

    def note(self, name: str, **more: Any) -> str:  # noqa: ANN401
        """The entry of `[notes]` of this name, filled."""
        return self.text(self.data["notes"][name], **more)

    def reason(self, name: str, number: str = ".1f") -> str:
        """Names the unknown that moves an effect most, and the value nearest to the paper's number."""
        paper, together = self._claimed(name)["paper"], self.data["sweep"].get("together", "")
        return sweeps.reason(
            self.table("sweep"), name, paper, lambda ours: self.claim(name, ours).agrees, number, together
        )

    def sentences(self, name: str) -> tuple[str, ...]:
        """The paragraphs of this name."""
        return tuple(fill(self.data[name], self.names))

    def figures(self, *, implied: bool = False) -> Iterator[Figure]:
        """The figures of the assumed or of the implied setting that have data, in the order of the file.

        A figure with the key `both`, a note, is drawn at the implied setting, too.
        """
        for each in self.data["figures"]:
            own = each
            if implied and "both" in each:
                own = {**each, "id": f"{each['id']}_implied", "note": each["both"], "implied": True}
            if own.get("implied", False) is implied:
                yield from self._all_of(own, self.implied if implied else ASSUMED_POINT)

    def figures_of(self, name: str) -> Iterator[Figure]:
        """The figures of one entry of the assumed setting; needs no run of others."""
        yield from self._all_of(next(each for each in self.data["figures"] if each["id"] == name), ASSUMED_POINT)

    def _all_of(self, own: Mapping[str, Any], point: Point) -> Iterator[Figure]:
        yield from self._drawn({**self.data["templates"][own["like"]], **own} if "like" in own else own, point)

    def _drawn(self, described: Mapping[str, Any], point: Point) -> Iterator[Figure]:
        for each in drawing.repeated(described, self.names):
            data = self.table(each["table"], point) if "table" in each else pl.DataFrame()
            if self.replayed:
                title = each["title"].replace("the synthetic workloads", "real traces")
                title += "" if "real traces" in title else ", real traces"
                each |= {"id": f"{each['id']}_real", "title": title}
                has = set(data["workload"]) if "workload" in data.columns else set(self.replayed)
                left = ", ".join(name for name in self.replayed if name not in has)
                lacks = f" Left out, because the trace has no such requests: {left}." if left else ""
                each["note"] = f"{self.found.described('')} {real.HOW}{lacks}"
            if "of" in each or not data.is_empty():
                yield drawing.figure(each, drawing.shaped(data, each, self.names), self.names)

    def figure(self, name: str) -> Figure:
        """The first figure of an entry of the assumed setting."""
        return next(self.figures_of(name))
