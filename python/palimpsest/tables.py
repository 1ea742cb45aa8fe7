"""The series of a result as data frames of polars with fixed columns, one Parquet file each, and back.

The native module writes files of numbers and texts, because loading polars takes longer than writing them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _core
from .files import parquet

if TYPE_CHECKING:
    import polars as pl

_U64, _U32, _I64, _F64, _TEXT, _BOOL = "u64", "u32", "i64", "f64", "text", "bool"
_LIST = "list "
"""A column of lists: this word, and the type of the elements."""

TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "time": (
        "timeseries.parquet",
        {
            "start_ns": _U64, "window_ns": _U64, "requests": _U64, "bytes": _U64, "read_mean_ns": _F64,
            "write_mean_ns": _F64, "read_p99_ns": _F64, "write_p99_ns": _F64, "max_ns": _U64, "outstanding": _F64,
            "programs": _U64, "reads": _U64, "erases": _U64, "gc_programs": _U64, "write_amplification": _F64,
            "power_w": _F64, "read_retries": _U64, "lost_subpages": _U64, "ecc_margin": _F64,
        },
    ),
    "latency": ("latency.parquet", {"class": _TEXT, "lower_ns": _U64, "count": _U64}),
    "wear": ("wear.parquet", {"block": _U32, "plane": _U32, "erases": _U64}),
    "utilization": ("utilization.parquet", {"kind": _TEXT, "index": _U32, "busy": _F64}),
    "writes": ("writes.parquet", {"requests": _U64, "host_bytes": _U64, "data_bytes": _U64}),
    "snapshots": (
        "snapshots.parquet",
        {
            "snapshot": _U32, "requests": _U64, "time_ns": _U64, "reads": _U64, "programs": _U64, "gc_programs": _U64,
            "flash_erases": _U64, "data_bytes": _U64, "host_bytes": _U64,
        },
    ),
    "blocks": (
        "blocks.parquet",
        {
            "snapshot": _U32, "channel": _U32, "die": _U32, "plane": _U32, "first_block": _U32, "blocks": _U32,
            "free": _U32, "open": _U32, "partial": _U32, "full": _U32, "reused": _U32, "bad": _U32, "programmed": _F64,
            "valid": _F64, "erases": _F64,
        },
    ),
    "operations": (
        "operations.parquet",
        {
            "operation": _I64, "kind": _TEXT, "cause": _TEXT, "request": _U64, "request_kind": _TEXT, "channel": _U32,
            "die": _U32, "plane": _U32, "block": _U32, "page": _U32, "bytes": _U32, "link_bytes": _U32,
            "planned_ns": _I64, "ready_ns": _I64, "start_ns": _I64, "transfer_start_ns": _I64, "transfer_end_ns": _I64,
            "array_start_ns": _I64, "array_end_ns": _I64, "end_ns": _I64, "delivered_ns": _I64, "suspended_ns": _I64,
            "suspended_at_ns": _LIST + _I64, "resumed_at_ns": _LIST + _I64, "follows": _LIST + _I64, "behind": _I64,
        },
    ),
    "requests": (
        "requests.parquet",
        {
            "request": _U64, "kind": _TEXT, "offset_bytes": _U64, "size_bytes": _U64, "arrival_ns": _I64,
            "submitted_ns": _I64, "planned_ns": _I64, "completed_ns": _I64,
        },
    ),
}  # fmt: skip
"""File and columns of each table, with their types. Times in nanoseconds; `busy`, `programmed` and `valid` shares of
one; histogram buckets by lower bound; counts of `writes` and `snapshots` since the measurement began."""

TIMELINE = ("operations", "requests")
"""The tables of a timeline, which only runs with `operations` have."""

_CELL = ("channel", "die", "plane", "first_block", "blocks")
_PER_CELL = ("programmed", "valid", "erases")
_STATES = ("free", "open", "partial", "full", "reused", "bad")


def types(schema: Mapping[str, str]) -> "dict[str, pl.DataType]":
    """The types of polars for columns with their types."""
    import polars as pl

    of = {
        _U64: pl.UInt64(), _U32: pl.UInt32(), _I64: pl.Int64(), _F64: pl.Float64(), _TEXT: pl.String(),
        _BOOL: pl.Boolean(),
    }  # fmt: skip
    return {
        name: pl.List(of[kind.removeprefix(_LIST)]) if kind.startswith(_LIST) else of[kind]
        for name, kind in schema.items()
    }


def of_series(series: Mapping[str, Any] | None) -> "dict[str, pl.DataFrame]":
    """The series of a result as data frames; empty if the result has none."""
    return {name: _frame(name, columns) for name, columns in _columns(series).items()}


def _frame(name: str, columns: Mapping[str, list[Any]]) -> "pl.DataFrame":
    import polars as pl

    return pl.DataFrame(columns, schema=types(TABLES[name][1]), strict=False)


def files(series: Mapping[str, Any] | None) -> Iterator[tuple[str, bytes]]:
    """The series of a result as Parquet files: names and contents."""
    for name, columns in _columns(series).items():
        file, schema = TABLES[name]
        if any(kind.startswith(_LIST) for kind in schema.values()):
            yield file, parquet(_frame(name, columns))
        else:
            yield file, _core.parquet_table([(column, kind, columns[column]) for column, kind in schema.items()])


def _columns(series: Mapping[str, Any] | None) -> dict[str, dict[str, list[Any]]]:
    """The columns of each table; empty if the result has no series."""
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
        name: {column: rows[name].get(column, []) for column in schema}
        for name, (_, schema) in TABLES.items()
        if name in rows
    }


_LOAD: dict[str, str] = {
    **{f"requests.{kind}": _U64 for kind in ("read", "write", "trim", "flush")},
    "bytes_read": _U64, "bytes_written": _U64,
}  # fmt: skip
_VOLUME: dict[str, str] = {
    "volume": _U32, "name": _TEXT, "offset_bytes": _U64, "size_bytes": _U64, **_LOAD,
    **{f"latency_ns.{kind}.{time}": _U64 for kind in ("read", "write")
       for time in ("mean", "p50", "p99", "max")},
}  # fmt: skip


_HANDLE: dict[str, str] = {
    "group": _U32, "handle": _U32, "usage": _TEXT, "host_bytes": _U64, "moved_bytes": _U64,
    "write_amplification": _F64, "reclaim_units": _U64, "valid_share": _F64, "left_bytes": _U64, "spilled_bytes": _U64,
}  # fmt: skip
_JOB: dict[str, str] = {
    "job": _TEXT, "copies": _U32, **_LOAD, "throughput.iops": _F64, "throughput.bytes_per_s": _F64,
    **{f"latency_ns.{kind}.{time}": _U64 for kind in ("all", "read", "write")
       for time in ("mean", "p50", "p90", "p99", "p999", "p9999", "max")},
    "latency_target.target_ns": _U64, "latency_target.window_ns": _U64, "latency_target.percentile": _F64,
    "latency_target.depths": _LIST + _U32, "latency_target.met": _BOOL,
}  # fmt: skip


_TENANT: dict[str, str] = {
    "tenant": _U32, "name": _TEXT, **_LOAD, "throughput.iops": _F64, "throughput.bytes_per_s": _F64,
    **{f"latency_ns.{kind}.{time}": _U64 for kind in ("all", "read", "write")
       for time in ("mean", "p50", "p90", "p99", "p999", "p9999", "max")},
    "bytes_programmed": _U64, "programmed_share": _F64, "write_amplification": _F64,
    **{f"alone.latency_ns.all.{time}": _U64 for time in ("mean", "p99")},
    "slowdown.mean": _F64, "slowdown.p99": _F64,
}  # fmt: skip


def of_volumes(volumes: Sequence[Mapping[str, Any]]) -> "pl.DataFrame":
    """The volumes of a trace, a row each, in order of appearance; figures are named as in the summary."""
    return _rows(volumes, _VOLUME)


def of_jobs(jobs: Sequence[Mapping[str, Any]]) -> "pl.DataFrame":
    """The sections of a job file, a row each, in their order; figures are named as in the summary."""
    return _rows(jobs, _JOB)


def of_tenants(tenants: Sequence[Mapping[str, Any]]) -> "pl.DataFrame":
    """The tenants, a row each, in their order; figures are named as in the summary."""
    return _rows(tenants, _TENANT)


def of_handles(handles: Sequence[Mapping[str, Any]]) -> "pl.DataFrame":
    """The reclaim unit handles of `fdp`, a row each; figures are named as in the summary."""
    return _rows(handles, _HANDLE)


def _rows(records: Sequence[Mapping[str, Any]], schema: dict[str, str]) -> "pl.DataFrame":
    def value(record: Mapping[str, Any], name: str) -> object:
        found: Any = record
        for key in name.split("."):
            found = found.get(key) if found else None
        return found

    import polars as pl

    return pl.DataFrame({name: [value(each, name) for each in records] for name in schema}, schema=types(schema))


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


def _blocks_of(snapshots: "pl.DataFrame", blocks: "pl.DataFrame") -> dict[str, Any] | None:
    """The inverse of `_block_rows`."""
    if blocks.is_empty():
        return None
    first = blocks.filter(blocks["snapshot"] == blocks["snapshot"][0])
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


def to_series(tables: "Mapping[str, pl.DataFrame]") -> dict[str, Any]:
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
