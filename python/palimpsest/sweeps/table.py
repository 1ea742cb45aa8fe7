"""The points of a sweep as one table: axes as typed columns, then every figure of the results.

An axis of quantities has two columns: its values as written, and numbers in the base unit at the end of the column's
name, such as `part.page_size_bytes`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..result import figures as figures_of
from ..sketches import KINDS, Sketch
from .finished import PointResult
from .values import axis_text, numbers

if TYPE_CHECKING:
    import polars as pl


def axis_columns(axes: Sequence[str], points: Sequence[PointResult]) -> dict[str, list[Any]]:
    """The axes by name, a value for each point; axes of quantities are followed by their numbers."""
    columns: dict[str, list[Any]] = {}
    for axis in axes:
        columns[axis] = [point.axes.get(axis) for point in points]
        found = numbers(axis, columns[axis])
        if found is not None:
            columns[f"{axis}_{found[1]}"] = found[0]
    return columns


def is_time(figure: str) -> bool:
    """Whether a figure is about the simulator itself, and varies between runs."""
    return figure.startswith("sim.")


def times(points: Sequence[PointResult]) -> "pl.DataFrame":
    """A row for each point: identity, and time and memory of the simulator."""
    import polars as pl

    rows = [{} if point.result is None else figures_of(point.result.to_dict()) for point in points]
    names = dict.fromkeys(name for row in rows for name in row if is_time(name))
    columns = [pl.Series("identity", [point.identity for point in points], dtype=pl.String)]
    return pl.DataFrame(columns + [_series(name, [_scalar(row.get(name)) for row in rows]) for name in names])


def data_frame(axes: Sequence[str], points: Sequence[PointResult]) -> "pl.DataFrame":
    """A row for each point; figures of failed points are null."""
    import polars as pl

    columns = axis_columns(axes, points)
    columns["status"] = [point.status for point in points]
    columns["error"] = [point.error for point in points]
    columns["identity"] = [point.identity for point in points]
    rows = [{} if point.result is None else figures_of(point.result.to_dict()) for point in points]
    found = dict.fromkeys(name for row in rows for name, value in row.items() if not isinstance(value, list | dict))
    names = [name for name in found if not is_time(name)]
    for name in names:
        columns.setdefault(name, [_scalar(row.get(name)) for row in rows])
    return pl.DataFrame([_series(name, values) for name, values in columns.items()])


def distributions(axes: Sequence[str], points: Sequence[PointResult]) -> "pl.DataFrame":
    """A row for each bucket of the distributions of latency of each point."""
    import polars as pl

    columns: dict[str, list[Any]] = {name: [] for name in (*axes, "identity", "class", "lower_ns", "count")}
    for point in points:
        for kind in KINDS if point.result is not None else ():
            sketch = None if point.result is None else Sketch.of(point.result.to_dict(), kind)
            if sketch is None:
                continue
            number = len(sketch.count)
            for axis in axes:
                columns[axis] += [point.axes.get(axis)] * number
            columns["identity"] += [point.identity] * number
            columns["class"] += [kind] * number
            columns["lower_ns"] += sketch.lower_ns
            columns["count"] += sketch.count
    return pl.DataFrame([_series(name, values) for name, values in columns.items()])


def _scalar(value: object) -> object:
    return None if isinstance(value, list | dict) else value


def _series(name: str, values: list[Any]) -> "pl.Series":
    """A column whose type holds all values; text for values of several kinds."""
    import polars as pl

    known = [value for value in values if value is not None]
    if name == "error":
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
