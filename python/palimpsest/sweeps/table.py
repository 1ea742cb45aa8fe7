"""The points of a sweep as one table: axes as typed columns, then every figure of the results.

An axis of quantities has two columns: its values as written, and numbers in the base unit at the end of the column's
name, such as `part.page_size_bytes`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..result import figures as figures_of
from ..sketches import KINDS, Sketch
from .finished import PointResult
from .values import axis_text, numbers

if TYPE_CHECKING:
    import polars as pl


_Columns = dict[str, list[Any]]
"""Values by name of the column, one for each row."""

_PART = 2_000
"""Points whose figures are lists of Python at a time."""


def axis_columns(axes: Sequence[str], points: Sequence[PointResult]) -> dict[str, list[Any]]:
    """The axes by name, a value for each point; axes of quantities are followed by their numbers."""
    columns: dict[str, list[Any]] = {}
    for axis in axes:
        columns[axis] = [point.axes.get(axis) for point in points]
        found = numbers(axis, columns[axis])
        if found is not None:
            columns[f"{axis}_{found[1]}"] = found[0]
    return columns


def is_time(key: str) -> bool:
    """Whether a key of a result is about the simulator itself, and varies between runs."""
    return key == "sim"


def times(points: Sequence[PointResult]) -> "pl.DataFrame":
    """A row for each point: identity, and time and memory of the simulator."""
    return _together(_figures(each, is_time) for each in _parts(points))


def data_frame(axes: Sequence[str], points: Sequence[PointResult]) -> "pl.DataFrame":
    """A row for each point; figures of failed points are null."""
    import polars as pl

    given = axis_columns(axes, points)
    given["status"] = [point.status for point in points]
    given["error"] = [point.error for point in points]
    given["identity"] = [point.identity for point in points]
    found = _together(_figures(each, lambda key: not is_time(key)) for each in _parts(points))
    columns = [_series(name, values) for name, values in given.items()]
    return pl.DataFrame(columns + [found[name] for name in found.columns if name not in given])


def _figures(points: Sequence[PointResult], wanted: Callable[[str], bool]) -> _Columns:
    """Identities, and the figures below the keys of a result that are `wanted`."""
    columns: _Columns = {"identity": [point.identity for point in points]}
    for at, point in enumerate(points):
        data = point.kept.data or {}
        for name, value in figures_of({key: value for key, value in data.items() if wanted(key)}).items():
            if isinstance(value, list | dict):
                continue
            if name not in columns:
                columns[name] = [None] * len(points)
            columns[name][at] = value
    return columns


def distributions(axes: Sequence[str], points: Sequence[PointResult]) -> "pl.DataFrame":
    """A row for each bucket of the distributions of latency of each point."""
    return _together(_distributions(axes, each) for each in _parts(points))


def _distributions(axes: Sequence[str], points: Sequence[PointResult]) -> _Columns:
    columns: _Columns = {name: [] for name in (*axes, "identity", "class", "lower_ns", "count")}
    for point in points:
        data = point.kept.data
        for kind in KINDS if data is not None else ():
            sketch = None if data is None else Sketch.of(data, kind)
            if sketch is None:
                continue
            number = len(sketch.count)
            for axis in axes:
                columns[axis] += [point.axes.get(axis)] * number
            columns["identity"] += [point.identity] * number
            columns["class"] += [kind] * number
            columns["lower_ns"] += sketch.lower_ns
            columns["count"] += sketch.count
    return columns


def _parts(points: Sequence[PointResult]) -> Iterator[Sequence[PointResult]]:
    """The points in parts, because lists of Python take much more memory than columns; one part if there is none."""
    return (points[at : at + _PART] for at in range(0, max(len(points), 1), _PART))


def _together(parts: Iterable[_Columns]) -> "pl.DataFrame":
    """One table of all parts. A column that a part lacks is null there."""
    import polars as pl

    found: dict[str, list[pl.Series]] = {}
    rows = 0
    for columns in parts:
        more = max((len(values) for values in columns.values()), default=0)
        for name, values in columns.items():
            of_before = [pl.Series(name, [None] * rows, dtype=pl.Null)] if rows and name not in found else []
            found.setdefault(name, of_before).append(_series(name, values))
        rows += more
        for name in found.keys() - columns.keys():
            found[name].append(pl.Series(name, [None] * more, dtype=pl.Null))
    return pl.DataFrame([_column(name, each) for name, each in found.items()])


def _column(name: str, parts: Sequence["pl.Series"]) -> "pl.Series":
    """The parts as one column whose type holds all values, as `_series` chooses."""
    import polars as pl

    types = {part.dtype for part in parts} - {pl.Null()}
    if len(types) > 1:
        if not types <= {pl.Int64(), pl.UInt64(), pl.Float64()}:
            return _series(name, [value for part in parts for value in part.to_list()])
        leasts: list[Any] = [part.min() or 0 for part in parts]
        wide = types == {pl.Int64(), pl.UInt64()} and min(leasts) >= 0
        types = {pl.UInt64() if wide else pl.Float64()}
    whole: pl.Series = pl.concat([part.cast(*types) if types else part for part in parts])
    return whole


def _scalar(value: object) -> object:
    return None if isinstance(value, list | dict) else value


def _series(name: str, values: list[Any]) -> "pl.Series":
    """A column whose type holds all values; text for values of several kinds."""
    import polars as pl

    known = [value for value in values if value is not None]
    if name in ("error", "identity"):
        return pl.Series(name, values, dtype=pl.String)
    kinds = {bool if isinstance(value, bool) else type(value) for value in known}
    if not kinds:
        return pl.Series(name, values, dtype=pl.Null)
    if kinds == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if kinds == {int}:
        wide = max(known) >= 2**63
        return pl.Series(
            name, values, dtype=pl.UInt64 if wide and min(known) >= 0 else pl.Float64 if wide else pl.Int64
        )
    if kinds <= {int, float}:
        return pl.Series(name, [None if value is None else float(value) for value in values], dtype=pl.Float64)
    texts = [None if value is None else axis_text(value) for value in values]
    return pl.Series(name, texts, dtype=pl.String)
