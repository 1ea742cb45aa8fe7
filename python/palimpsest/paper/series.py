"""The data of a figure: one table of series, from the folders of runs, comparisons and sweeps.

Columns are `series`, `x`, `y`, `low` and `high`: 95 % confidence intervals by Student's t if points are repeated (seeds
and other axes that are not shown), else null. `x` is a text for bars with names. Replicates are one series for each
label, with the response times of all seeds together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from .. import fair, outputs
from ..errors import InputError, did_you_mean
from ..intervals import Interval, interval
from ..result import Result
from ..result import figures as figures_of
from ..sketches import KINDS as REQUESTS
from ..sketches import Sketch
from ..sweeps.checks import checks
from ..sweeps.results import Sweep
from ..sweeps.results import load as load_sweep
from ..sweeps.store import is_sweep
from ..sweeps.values import axis_text, numbers

KINDS = ("cdf", "tail", "bars", "lines", "heat", "time")
_SCHEMA = {"series": pl.String(), "x": pl.Float64(), "y": pl.Float64(), "low": pl.Float64(), "high": pl.Float64()}
_Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Choice:
    """A figure: kind, figure, class of requests, and axes of a sweep (`by` has a series for each value)."""

    kind: str
    figure: str | None = None
    requests: str = "all"
    x: str | None = None
    by: str | None = None


@dataclass(frozen=True)
class Source:
    """The content of folders: results by label, with the folder of the (first) run of each, or one sweep."""

    results: dict[str, Result]
    sweep: Sweep | None
    folders: Mapping[str, Path] = field(default_factory=dict)


def load(folders: Sequence[Path]) -> Source:
    """Reads the results in the folders. Raises InputError if one has none, or a sweep is not the only folder."""
    if any(is_sweep(folder) for folder in folders):
        if len(folders) > 1:
            raise InputError(f"{folders[1]}: a figure of a sweep is of that alone; expected one folder")
        return Source({}, load_sweep(folders[0]))
    found: dict[str, Result] = {}
    places: dict[str, Path] = {}
    for folder in folders:
        of_runs = {result.label: where for result, where in reversed(outputs.runs(folder))}
        for result in outputs.contenders(folder):
            label = result.label if result.label not in found else f"{folder.name} {result.label}"
            if label in found:
                raise InputError(f"{folder}: a second result {label!r}; expected labels that differ")
            found[label], places[label] = result, of_runs[result.label]
    return Source(found, None, places)


def unfair(source: Source, shown: str | None) -> list[str]:
    """Why figures of the table `shown`, or of any, do not compare: warnings, and notes of findings that are *said*."""
    found = fair.labelled(source.results.items()) if source.sweep is None else checks(source.sweep)
    words = {"unfair": "warning", "said": "note"}
    concerned = (each for each in found if (shown or each.figures[0]) in fair.silenced([each]))
    return [f"{words[each.weight]}: {each.text}" for each in concerned]


def table(source: Source, choice: Choice) -> pl.DataFrame:
    """The series of a figure. Raises InputError if the results lack the data or the axis."""
    makers: dict[str, Callable[[Source, Choice], _Rows]] = {
        "cdf": _distribution, "tail": _distribution, "bars": _bars, "lines": _points, "heat": _points, "time": _time,
    }  # fmt: skip
    rows = makers[choice.kind](source, choice)
    if not rows:
        raise InputError(_why_empty(source, choice))
    named = any(isinstance(row["x"], str) for row in rows)
    schema = _SCHEMA | ({"x": pl.String()} if named else {})
    shown = [row | {"x": axis_text(row["x"]) if named else float(row["x"])} for row in rows]
    return pl.DataFrame([{key: row.get(key) for key in schema} for row in shown], schema=schema)


def _why_empty(source: Source, choice: Choice) -> str:
    """Why a figure has no series, and the expected input."""
    if choice.kind in ("cdf", "tail"):
        others = [kind for kind in REQUESTS if _distribution(source, replace(choice, requests=kind))]
        if others:
            return f"--class {choice.requests}: no run has such requests; expected {' or '.join(others)}"
        return f"figure {choice.kind}: the runs have no response times; expected timed runs"
    if choice.kind == "time" and not any((result.series or {}).get("time") for result in source.results.values()):
        return "figure time: the runs have no time series; expected timed runs, and --out"
    figure = choice.figure or ("write_mean_ns" if choice.kind == "time" else "write_amplification")
    return f"--figure {figure}: null in every run; expected a figure that the runs measured"


def _axis(sweep: Sweep, name: str | None, option: str) -> str:
    """The axis of that name, or by default the first of the sweep. Raises InputError."""
    axes = [axis for axis in sweep.axes if axis != "seed"] or sweep.axes
    if name is None and axes:
        return axes[0]
    if name not in sweep.axes:
        raise InputError(
            f"{option} {name}: no such axis; expected one of {', '.join(sweep.axes) or 'a sweep with axes'}"
        )
    return name


def _distribution(source: Source, choice: Choice) -> _Rows:
    if source.sweep is None:
        found = {label: _sketch(result, choice.requests) for label, result in source.results.items()}
    else:
        by = _axis(source.sweep, choice.by, "--by")
        values = source.sweep.values(by)
        found = {axis_text(value): source.sweep.sketch(choice.requests, **{by: value}) for value in values}
    rows: _Rows = []
    for label, sketch in found.items():
        if sketch is None or not sketch.count:
            continue
        times, shares = sketch.cdf()
        for time, share in zip(times, shares, strict=True):
            y = share if choice.kind == "cdf" else 1 - share
            if choice.kind == "cdf" or y > 0:
                rows.append({"series": label, "x": time / 1000, "y": y})
    return rows


def _sketch(result: Result, requests: str) -> Sketch | None:
    """The distribution of a result: its histogram if kept, else its sketch."""
    histogram = ((result.series or {}).get("latency") or {}).get(requests)
    if histogram and histogram["count"]:
        return Sketch(histogram["lower_ns"], histogram["count"], bits=11)
    return Sketch.of(result.to_dict(), requests)


def _value(result: Result, figure: str) -> float | None:
    value = figures_of(result.to_dict()).get(figure)
    return value if isinstance(value, int | float) else None


def over_repeats(result: Result, figure: str) -> Interval | None:
    """A figure with its interval over the seeds of a result; without bounds for a single run, None if not measured."""
    values = [_value(each, figure) for each in result.repeats or (result,)]
    known = [value for value in values if value is not None]
    return interval(known, result.get("interval", "t")) if known else None


def _expect(results: Sequence[Result], figure: str) -> None:
    """Raises InputError for a name that no result has."""
    known = {name for result in results for name in figures_of(result.to_dict())}
    if figure not in known:
        meant = did_you_mean(figure, sorted(known))
        said = f"no result has this figure{meant}; expected one as in `palimpsest help results`"
        raise InputError(f"--figure {figure}: {said}")


def _bars(source: Source, choice: Choice) -> _Rows:
    if source.sweep is not None:
        return _points(source, choice)
    figure = choice.figure or "write_amplification"
    _expect(list(source.results.values()), figure)
    rows: _Rows = []
    for label, result in source.results.items():
        found = over_repeats(result, figure)
        if found is not None:
            rows.append({"series": figure, "x": label, "y": found.mean, "low": found.low, "high": found.high})
    return rows


def _points(source: Source, choice: Choice) -> _Rows:
    """A figure of a sweep over an axis, a series for each value of another; repeated points as mean and interval."""
    sweep, figure = source.sweep, choice.figure or "write_amplification"
    if sweep is None:
        raise InputError(f"figure {choice.kind}: expected the folder of a sweep; bars, cdf, tail and time take runs")
    _expect([point.result for point in sweep if point.result is not None], figure)
    if choice.by is not None and choice.x is None and choice.by in sweep.axes:
        rest = [axis for axis in sweep.axes if axis not in (choice.by, "seed")]
        choice = replace(choice, x=next(iter(rest), None))
    x = _axis(sweep, choice.x, "--x")
    if x == choice.by:
        expected = ", ".join(axis for axis in sweep.axes if axis != x) or "a sweep with two axes"
        raise InputError(f"--by {x}: the x axis has this one, too; expected another of the sweep: {expected}")
    others = [axis for axis in sweep.axes if axis not in (x, "seed")]
    by = _axis(sweep, choice.by, "--by") if choice.by else next(iter(others), None)
    groups: dict[tuple[str, Any], list[float]] = {}
    scale = numbers(x, [point.axes.get(x) for point in sweep])
    for at, point in enumerate(sweep):
        value = None if point.result is None else _value(point.result, figure)
        place = point.axes.get(x) if scale is None else scale[0][at]
        if value is not None and place is not None:
            groups.setdefault(("" if by is None else axis_text(point.axes.get(by)), place), []).append(value)
    rows: _Rows = []
    for (series, place), values in groups.items():
        found = interval(values)
        rows.append({"series": series or figure, "x": place, "y": found.mean, "low": found.low, "high": found.high})
    if choice.kind == "bars" or (rows and isinstance(rows[0]["x"], str)) or len({type(row["x"]) for row in rows}) > 1:
        rows = [row | {"x": axis_text(row["x"])} for row in rows]
    return rows


def _time(source: Source, choice: Choice) -> _Rows:
    column = choice.figure or "write_mean_ns"
    rows: _Rows = []
    for label, result in source.results.items():
        if result.repeats:
            one = source.folders[label]
            raise InputError(f"figure time: windows are those of one seed; expected the folder of one, such as {one}")
        series = (result.series or {}).get("time") or {}
        if series and column not in series:
            raise InputError(
                f"--figure {column}: the time series have no such column; expected one of {', '.join(series)}"
            )
        for start, value in zip(series.get("start_ns", []), series.get(column, []), strict=True):
            if value is not None:
                rows.append({"series": label, "x": start / 1e9, "y": value / 1000 if column.endswith("_ns") else value})
    return rows
