"""Files of `--out DIR`: written after a run, read again by `palimpsest report DIR`.

A run: summary.json, config.toml, report.html, and the tables timeseries, latency, wear, utilization, snapshots and
blocks as Parquet. A comparison: summary.json with all runs, report.html over them, and a folder of a run for each
layer.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from . import _core
from .errors import InputError
from .options import RunOptions
from .result import Result

__all__ = ["TABLES", "read_folder", "rewrite_report", "series_tables", "write_comparison", "write_run"]

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


def _header(options: RunOptions) -> str:
    """What made these results, as TOML comments above the configuration."""
    lines = ["The resolved configuration of this run; `--ssd config.toml` runs it again.", ""]
    lines += [
        f"workload = {options.workload}",
        f"precondition = {options.precondition}",
        f"requests = {options.requests or 'all'}, warmup = {options.warmup or 0}",
        f"fidelity = {options.fidelity}, payload = {options.payload}, seed = {options.seed}",
    ]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines) + "\n"


def write_run(result: Result, options: RunOptions, folder: Path) -> None:
    """Writes the files of one run into a folder, which is made if it is not there.

    Raises:
        OSError: a file could not be written.
    """
    from . import report

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(result.to_json() + "\n", encoding="utf-8")
    config = _header(options) + _core.show(options.ssd, options.ftl, list(options.overrides))
    (folder / "config.toml").write_text(config, encoding="utf-8")
    for name, table in series_tables(result.series).items():
        table.write_parquet(folder / TABLES[name][0])
    (folder / "report.html").write_text(report.page([result], {str(result["ftl"]): config}), encoding="utf-8")


def write_comparison(results: Sequence[Result], runs: Sequence[RunOptions], folder: Path) -> None:
    """Writes the files of a comparison into a folder: its own, and those of each run in a folder named after the layer.

    Raises:
        OSError: a file could not be written.
    """
    from . import report

    for result, options in zip(results, runs, strict=True):
        write_run(result, options, folder / str(result["ftl"]))
    summary = json.dumps({"runs": [result.to_dict() for result in results]}, indent=2)
    (folder / "summary.json").write_text(summary + "\n", encoding="utf-8")
    configs = {
        str(result["ftl"]): (folder / str(result["ftl"]) / "config.toml").read_text(encoding="utf-8")
        for result in results
    }
    (folder / "report.html").write_text(report.page(results, configs), encoding="utf-8")


def _read_summary(folder: Path) -> dict[str, Any]:
    path = folder / "summary.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path}: no such file; expected a folder that `palimpsest run --out` or `compare --out` wrote"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        line = getattr(error, "lineno", 1)
        raise InputError(f"{path}:{line}: expected the JSON that `run --out` wrote: {error}") from error
    if not isinstance(data, dict) or not ("runs" in data or "ftl" in data):
        raise InputError(f"{path}:1: expected a result with the keys `ftl` or `runs`")
    return data


def _read_run(data: dict[str, Any], folder: Path) -> tuple[Result, str]:
    tables = {}
    for name, (file, _) in TABLES.items():
        if (folder / file).is_file():
            try:
                tables[name] = pl.read_parquet(folder / file)
            except pl.exceptions.PolarsError as error:
                raise InputError(f"{folder / file}: expected the Parquet that `run --out` wrote: {error}") from error
    config = folder / "config.toml"
    return Result(data, _series_of(tables)), config.read_text(encoding="utf-8") if config.is_file() else ""


def read_folder(folder: Path) -> tuple[list[Result], dict[str, str]]:
    """The results in a folder that `--out` wrote, and the configuration of each by its layer.

    Raises:
        InputError: there are none, or they are not what `--out` wrote.
    """
    data = _read_summary(folder)
    runs = data.get("runs", [data])
    results, configs = [], {}
    for run in runs:
        result, config = _read_run(run, folder / str(run["ftl"]) if "runs" in data else folder)
        results.append(result)
        configs[str(run["ftl"])] = config
    if not results:
        raise InputError(f"{folder / 'summary.json'}:1: expected at least one run")
    return results, configs


def rewrite_report(folder: Path) -> Path:
    """Writes report.html from the results in a folder, and gives its path.

    Raises:
        InputError: as `read_folder`.
        OSError: the page could not be written.
    """
    from . import report

    results, configs = read_folder(folder)
    path = folder / "report.html"
    path.write_text(report.page(results, configs), encoding="utf-8")
    return path
