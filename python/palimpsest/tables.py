"""The series of a result as tables, and back: time, latency, wear, utilisation, writes, states of blocks, the timeline.

A table is a data frame of polars with fixed columns, kept in one Parquet file.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

TABLES: dict[str, tuple[str, dict[str, pl.DataType]]] = {
    "time": (
        "timeseries.parquet",
        {
            "start_ns": pl.UInt64(), "window_ns": pl.UInt64(), "requests": pl.UInt64(), "bytes": pl.UInt64(),
            "read_mean_ns": pl.Float64(), "write_mean_ns": pl.Float64(), "read_p99_ns": pl.Float64(),
            "write_p99_ns": pl.Float64(), "max_ns": pl.UInt64(), "outstanding": pl.Float64(),
            "programs": pl.UInt64(), "reads": pl.UInt64(), "erases": pl.UInt64(), "gc_programs": pl.UInt64(),
            "write_amplification": pl.Float64(), "power_w": pl.Float64(), "read_retries": pl.UInt64(),
            "lost_subpages": pl.UInt64(), "ecc_margin": pl.Float64(),
        },
    ),
    "latency": ("latency.parquet", {"class": pl.String(), "lower_ns": pl.UInt64(), "count": pl.UInt64()}),
    "wear": ("wear.parquet", {"block": pl.UInt32(), "plane": pl.UInt32(), "erases": pl.UInt64()}),
    "utilization": ("utilization.parquet", {"kind": pl.String(), "index": pl.UInt32(), "busy": pl.Float64()}),
    "writes": (
        "writes.parquet",
        {"requests": pl.UInt64(), "host_bytes": pl.UInt64(), "data_bytes": pl.UInt64()},
    ),
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
    "operations": (
        "operations.parquet",
        {
            "operation": pl.Int64(), "kind": pl.String(), "cause": pl.String(), "request": pl.UInt64(),
            "request_kind": pl.String(), "channel": pl.UInt32(), "die": pl.UInt32(), "plane": pl.UInt32(),
            "block": pl.UInt32(), "page": pl.UInt32(), "bytes": pl.UInt32(), "link_bytes": pl.UInt32(),
            "planned_ns": pl.Int64(), "ready_ns": pl.Int64(), "start_ns": pl.Int64(),
            "transfer_start_ns": pl.Int64(), "transfer_end_ns": pl.Int64(), "array_start_ns": pl.Int64(),
            "array_end_ns": pl.Int64(), "end_ns": pl.Int64(), "delivered_ns": pl.Int64(), "suspended_ns": pl.Int64(),
            "suspended_at_ns": pl.List(pl.Int64()), "resumed_at_ns": pl.List(pl.Int64()),
            "follows": pl.List(pl.Int64()), "behind": pl.Int64(),
        },
    ),
    "requests": (
        "requests.parquet",
        {
            "request": pl.UInt64(), "kind": pl.String(), "offset_bytes": pl.UInt64(), "size_bytes": pl.UInt64(),
            "arrival_ns": pl.Int64(), "submitted_ns": pl.Int64(), "planned_ns": pl.Int64(), "completed_ns": pl.Int64(),
        },
    ),
}  # fmt: skip
"""File and columns of each table.

Times in nanoseconds; `busy`, `programmed` and `valid` shares of one; histogram buckets by lower bound; counts of
`writes` and `snapshots` since the measurement began.
"""

TIMELINE = ("operations", "requests")
"""The tables of a timeline, which only runs with `operations` have."""

_CELL = ("channel", "die", "plane", "first_block", "blocks")
_PER_CELL = ("programmed", "valid", "erases")
_STATES = ("free", "open", "partial", "full", "reused", "bad")


def of_series(series: Mapping[str, Any] | None) -> dict[str, pl.DataFrame]:
    """The series of a result as data frames; empty if the result has none."""
    if not series:
        return {}
    time, wear = series.get("time") or {}, series.get("wear") or {}
    windows = len(time.get("start_ns", []))
    rows: dict[str, dict[str, list[Any]]] = {
        "time": {key: value if isinstance(value, list) else [value] * windows for key, value in time.items()},
        "latency": {"class": [], "lower_ns": [], "count": []},
        "wear": wear | {"block": list(range(len(wear.get("erases", []))))},
        "utilization": {"kind": [], "index": [], "busy": []},
        "writes": series.get("writes") or {},
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
    rows |= {name: series[name] for name in TIMELINE if series.get(name)}
    if not series.keys() - set(TIMELINE):
        rows = {name: columns for name, columns in rows.items() if name in TIMELINE}
    return {
        name: pl.DataFrame({column: rows[name].get(column, []) for column in schema}, schema=schema, strict=False)
        for name, (_, schema) in TABLES.items()
        if name in rows
    }


_VOLUME: dict[str, pl.DataType] = {
    "volume": pl.UInt32(), "offset_bytes": pl.UInt64(), "size_bytes": pl.UInt64(),
    **{f"requests.{kind}": pl.UInt64() for kind in ("read", "write", "trim", "flush")},
    "bytes_read": pl.UInt64(), "bytes_written": pl.UInt64(),
    **{f"latency_ns.{kind}.{time}": pl.UInt64() for kind in ("read", "write")
       for time in ("mean", "p50", "p99", "max")},
}  # fmt: skip


def of_volumes(volumes: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """The volumes of a trace, a row each, in order of appearance; figures are named as in the summary."""

    def value(volume: Mapping[str, Any], name: str) -> object:
        found: Any = volume
        for key in name.split("."):
            found = found.get(key) if found else None
        return found

    return pl.DataFrame({name: [value(each, name) for each in volumes] for name in _VOLUME}, schema=_VOLUME)


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
        | {"columns": columns, "states": list(_STATES), "counts": [blocks[name].to_list() for name in _STATES]}
    )


def to_series(tables: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    """The inverse of `of_series`."""
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
    if "writes" in tables:
        series["writes"] = tables["writes"].to_dict(as_series=False)
    if "blocks" in tables and "snapshots" in tables:
        series["blocks"] = _blocks_of(tables["snapshots"], tables["blocks"])
    series |= {name: tables[name].to_dict(as_series=False) for name in TIMELINE if name in tables}
    return series
