"""Files of `--out DIR`: written after a run, read again by `palimpsest report DIR`.

A run: summary.json, config.toml, report.html, and the tables timeseries, latency, wear, utilization, snapshots and
blocks as Parquet. A comparison: summary.json with all runs, report.html over them, and a folder of a run for each
layer.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from .errors import InputError
from .result import Comparison, Result

__all__ = ["TABLES", "load", "rewrite_report", "save", "series_tables"]

TABLES: dict[str, tuple[str, dict[str, pl.DataType]]] = {
    "time": (
        "timeseries.parquet",
        {
            "start_ns": pl.UInt64(), "window_ns": pl.UInt64(), "requests": pl.UInt64(), "bytes": pl.UInt64(),
            "read_mean_ns": pl.Float64(), "write_mean_ns": pl.Float64(), "read_p99_ns": pl.Float64(),
            "write_p99_ns": pl.Float64(), "max_ns": pl.UInt64(), "outstanding": pl.Float64(),
            "programs": pl.UInt64(), "reads": pl.UInt64(), "erases": pl.UInt64(), "gc_programs": pl.UInt64(),
            "write_amplification": pl.Float64(),
        },
    ),
    "latency": ("latency.parquet", {"class": pl.String(), "lower_ns": pl.UInt64(), "count": pl.UInt64()}),
    "wear": ("wear.parquet", {"block": pl.UInt32(), "plane": pl.UInt32(), "erases": pl.UInt64()}),
    "utilization": ("utilization.parquet", {"kind": pl.String(), "index": pl.UInt32(), "busy": pl.Float64()}),
    "snapshots": (
        "snapshots.parquet",
        {
            "snapshot": pl.UInt32(), "requests": pl.UInt64(), "time_ns": pl.UInt64(), "reads": pl.UInt64(),
            "programs": pl.UInt64(), "gc_programs": pl.UInt64(), "flash_erases": pl.UInt64(),
            "data_bytes": pl.UInt64(), "host_bytes": pl.UInt64(),
        },
    ),
    "blocks": (
        "blocks.parquet",
        {
            "snapshot": pl.UInt32(), "channel": pl.UInt32(), "die": pl.UInt32(), "plane": pl.UInt32(),
            "first_block": pl.UInt32(), "blocks": pl.UInt32(), "free": pl.UInt32(), "open": pl.UInt32(),
            "partial": pl.UInt32(), "full": pl.UInt32(), "reused": pl.UInt32(), "bad": pl.UInt32(),
            "programmed": pl.Float64(), "valid": pl.Float64(), "erases": pl.Float64(),
        },
    ),
}  # fmt: skip
"""File and columns of each table. Times in nanoseconds; `busy`, `programmed` and `valid` shares of one; histogram
buckets by lower bound; counts of `snapshots` since the measurement began."""

_CELL = ("channel", "die", "plane", "first_block", "blocks")
_PER_CELL = ("programmed", "valid", "erases")
STATES = ("free", "open", "partial", "full", "reused", "bad")


def series_tables(series: Mapping[str, Any] | None) -> dict[str, pl.DataFrame]:
    """The series of a result as data frames; empty where the result has none."""
    if not series:
        return {}
    time, wear = series.get("time") or {}, series.get("wear") or {}
    windows = len(time.get("start_ns", []))
    rows: dict[str, dict[str, list[Any]]] = {
        "time": {key: value if isinstance(value, list) else [value] * windows for key, value in time.items()},
        "latency": {"class": [], "lower_ns": [], "count": []},
        "wear": wear | {"block": list(range(len(wear.get("erases", []))))},
        "utilization": {"kind": [], "index": [], "busy": []},
        **_block_rows(series.get("blocks") or {}),
    }
    for name, histogram in (series.get("latency") or {}).items():
        rows["latency"]["class"] += [name] * len(histogram["count"])
        rows["latency"]["lower_ns"] += histogram["lower_ns"]
        rows["latency"]["count"] += histogram["count"]
    for kind, shares in (series.get("utilization") or {}).items():
        rows["utilization"]["kind"] += [kind] * len(shares)
        rows["utilization"]["index"] += range(len(shares))
        rows["utilization"]["busy"] += shares
    return {
        name: pl.DataFrame({column: rows[name].get(column, []) for column in schema}, schema=schema, strict=False)
        for name, (_, schema) in TABLES.items()
    }


def _block_rows(seen: Mapping[str, Any]) -> dict[str, dict[str, list[Any]]]:
    """Rows of the tables `snapshots` and `blocks`."""
    if not seen:
        return {"snapshots": {}, "blocks": {}}
    cells, count = len(seen["blocks"]), len(seen["requests"])
    snapshots = {name: seen[name] for name in TABLES["snapshots"][1] if name != "snapshot"}
    blocks = {name: seen[name] * count for name in _CELL}
    blocks |= dict(zip(seen["states"], seen["counts"], strict=True))
    blocks |= {name: seen[name] if seen[name] is not None else [None] * (cells * count) for name in _PER_CELL}
    numbers = [number for number in range(count) for _ in range(cells)]
    return {"snapshots": snapshots | {"snapshot": list(range(count))}, "blocks": blocks | {"snapshot": numbers}}


def _blocks_of(snapshots: pl.DataFrame, blocks: pl.DataFrame) -> dict[str, Any] | None:
    """The inverse of `_block_rows`."""
    if blocks.is_empty():
        return None
    first = blocks.filter(pl.col("snapshot") == blocks["snapshot"][0])
    seen = first.select(_CELL).to_dict(as_series=False)
    seen |= snapshots.drop("snapshot").to_dict(as_series=False)
    seen |= {name: blocks[name].to_list() for name in _PER_CELL}
    if blocks["valid"].null_count():
        del seen["valid"]
    columns = next((at for at, plane in enumerate(seen["plane"]) if plane != seen["plane"][0]), len(first))
    return (
        {"valid": None}
        | seen
        | {"columns": columns, "states": list(STATES), "counts": [blocks[name].to_list() for name in STATES]}
    )


def _series_of(tables: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    """The inverse of `series_tables`."""
    series: dict[str, Any] = {}
    if "time" in tables:
        time: dict[str, Any] = tables["time"].to_dict(as_series=False)
        time["window_ns"] = time["window_ns"][0] if time["window_ns"] else 0
        series["time"] = time
    for name, group, columns in (("latency", "class", ["lower_ns", "count"]), ("utilization", "kind", ["busy"])):
        if name in tables:
            parts = tables[name].partition_by(group, as_dict=True, maintain_order=True)
            found = {str(key[0]): part.select(columns).to_dict(as_series=False) for key, part in parts.items()}
            series[name] = {key: part["busy"] if name == "utilization" else part for key, part in found.items()}
    if "wear" in tables:
        series["wear"] = tables["wear"].select("erases", "plane").to_dict(as_series=False)
    if "blocks" in tables and "snapshots" in tables:
        series["blocks"] = _blocks_of(tables["snapshots"], tables["blocks"])
    return series


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Failures of what is written inside name this file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno or 0, error.strerror or str(error), str(path)) from error
    except pl.exceptions.PolarsError as error:
        raise OSError(0, str(error), str(path)) from error


def _write_text(path: Path, text: str) -> None:
    with _named(path):
        path.write_text(text, encoding="utf-8")


def _write(result: Result, folder: Path) -> None:
    from . import report

    with _named(folder):
        folder.mkdir(parents=True, exist_ok=True)
    _write_text(folder / "summary.json", result.to_json() + "\n")
    _write_text(folder / "config.toml", result.configuration)
    for name, table in series_tables(result.series).items():
        with _named(folder / TABLES[name][0]):
            table.write_parquet(folder / TABLES[name][0])
    _write_text(folder / "report.html", report.page([result], {str(result["ftl"]): result.configuration}))


def save(results: Sequence[Result], folder: Path, *, together: bool) -> Path:
    """Writes the files of one run, or of a comparison, into a folder, which is made if it is not there; gives its path.

    Args:
        results: at least one; one, unless together.
        folder: where to.
        together: whether they are a comparison: its own files, and those of each run in a folder named after the layer.

    Raises:
        OSError: a file could not be written.
    """
    if not together:
        _write(results[0], folder)
        return folder
    from . import report

    for result in results:
        _write(result, folder / str(result["ftl"]))
    _write_text(folder / "summary.json", Comparison(results).to_json() + "\n")
    configurations = {str(result["ftl"]): result.configuration for result in results}
    _write_text(folder / "report.html", report.page(results, configurations))
    return folder


def load(folder: str | Path) -> Result | Comparison:
    """The results in a folder that `palimpsest run --out`, `compare --out`, or `save` wrote.

    Returns:
        A `Result` for a run, a `Comparison` for a comparison.

    Raises:
        InputError: there are none, or they are not what was written.
    """
    data, results = _read_results(Path(folder))
    return Comparison(results) if "runs" in data else results[0]


def _read_summary(folder: Path) -> dict[str, Any]:
    path = folder / "summary.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{path}: no such file; expected a folder that `palimpsest run --out` or `compare --out` wrote"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        line = getattr(error, "lineno", 1)
        raise InputError(f"{path}:{line}: expected the JSON that `run --out` wrote: {error}") from error
    if not isinstance(data, dict) or not ("runs" in data or "ftl" in data):
        raise InputError(f"{path}:1: expected a result with the keys `ftl` or `runs`")
    return data


def _read_run(data: dict[str, Any], folder: Path) -> Result:
    tables = {}
    for name, (file, _) in TABLES.items():
        if (folder / file).is_file():
            try:
                tables[name] = pl.read_parquet(folder / file)
            except pl.exceptions.PolarsError as error:
                raise InputError(f"{folder / file}: expected the Parquet that `run --out` wrote: {error}") from error
    config = folder / "config.toml"
    configuration = config.read_text(encoding="utf-8") if config.is_file() else ""
    return Result(data, _series_of(tables) if tables else None, configuration)


def _read_results(folder: Path) -> tuple[dict[str, Any], list[Result]]:
    data = _read_summary(folder)
    together = "runs" in data
    results = []
    for run in data["runs"] if together else [data]:
        if not isinstance(run, dict) or "ftl" not in run:
            raise InputError(f"{folder / 'summary.json'}:1: expected runs with the key `ftl`")
        results.append(_read_run(run, folder / str(run["ftl"]) if together else folder))
    if not results:
        raise InputError(f"{folder / 'summary.json'}:1: expected at least one run")
    return data, results


def rewrite_report(folder: Path) -> Path:
    """Writes report.html from the results in a folder, and gives its path.

    Raises:
        InputError: as `load`.
        OSError: the page could not be written.
    """
    from . import report

    _, results = _read_results(folder)
    path = folder / "report.html"
    _write_text(path, report.page(results, {str(result["ftl"]): result.configuration for result in results}))
    return path
