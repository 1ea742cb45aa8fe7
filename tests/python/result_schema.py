"""The shape of a result, as docs/results.md describes it: more keys may exist, none of these may be missing."""

from typing import Any

INT, NUMBER, TEXT, TABLE, LIST = "integer", "number", "text", "table", "list"
BOOL = "true or false"
INT_OR_NULL, NUMBER_OR_NULL, TEXT_OR_NULL = "integer or null", "number or null", "text or null"

NULL = "null"
LATENCY = {"mean": INT, "p50": INT, "p90": INT, "p99": INT, "p999": INT, "max": INT}
CAUSE = {"reads": INT, "programs": INT}

LATENCY_OR_NULL = LATENCY | {"": NULL}
"""Null if no request of the kind was measured."""

RESULT: dict[str, Any] = {
    "schema_version": INT,
    "ftl": TEXT,
    "ssd": TEXT,
    "workload": TEXT,
    "trace_format": TEXT_OR_NULL,
    "seed": INT,
    "fidelity": TEXT,
    "payload": TEXT,
    "promise": {"acknowledged": TEXT, "durable": TEXT},
    "config": TABLE,
    "requests": {"read": INT, "write": INT, "trim": INT, "flush": INT},
    "host": {
        "bytes_read": INT, "bytes_written": INT, "subpages_read": INT, "subpages_hit": INT, "subpages_written": INT,
        "bytes_transferred": INT, "subpages_transferred": INT,
    },
    "latency_ns": dict.fromkeys(("all", "read", "write"), LATENCY_OR_NULL),
    "throughput": {"iops": NUMBER_OR_NULL, "bytes_per_s": NUMBER_OR_NULL},
    "simulated_ns": INT_OR_NULL,
    "flash": {
        "page_reads": INT, "page_programs": INT, "partial_programs": INT, "reprograms": INT, "erases": INT,
        "consumed_bytes": INT, "bytes_sensed": INT, "bytes_transferred": INT, "read_retries": INT,
        "failed_programs": INT, "failed_erases": INT, "pair_copies": INT, "pair_rescues": INT,
        "by_cause": dict.fromkeys(
            (
                "host", "gc", "merge", "rmw", "prefetch", "metadata", "read_ahead", "checkpoint", "patrol", "parity",
                "rebuild",
            ),
            CAUSE,
        ),
    },
    "write_amplification": NUMBER_OR_NULL,
    "padding_bytes": INT,
    "read_amplification": {"host": NUMBER_OR_NULL, "gc": NUMBER_OR_NULL},
    "read_ahead": dict.fromkeys(("subpages_read", "subpages_hit", "subpages_wasted", "buffer_bytes_peak"), INT)
    | {"": NULL},
    "reliability": {"lost_subpages": TABLE, "failed_reads": INT_OR_NULL, "failed_dies": INT, "": NULL},
    "rain": {
        "parity_programs": INT, "bytes_programmed": INT, "write_amplification": NUMBER_OR_NULL, "open_stripes": INT,
        "rebuilt_reads": INT, "failed_rebuilds": INT, "moved_pages": INT, "rebuild_ns": INT_OR_NULL, "": NULL,
    },
    "checkpoint": {
        "begun": INT, "page_programs": INT, "bytes_programmed": INT, "write_amplification": NUMBER_OR_NULL, "": NULL,
    },
    "gc": {"runs": INT, "erased_blocks": INT, "moved_subpages": INT, "mean_ns": NUMBER_OR_NULL, "p99_ns": INT_OR_NULL},
    "merge": {"count": INT, "moved_subpages": INT},
    "mapping": {"bytes": INT, "bytes_peak": INT, "tables": TABLE},
    "energy_uj": dict.fromkeys(("read", "program", "reprogram", "erase", "total"), NUMBER_OR_NULL),
    "power_w": {"mean": NUMBER_OR_NULL, "peak": NUMBER_OR_NULL, "window_ns": INT_OR_NULL, "time_ns": INT_OR_NULL},
    "lifetime": {
        "mean_erases": NUMBER, "min_erases": INT, "max_erases": INT, "reused_erases": INT,
        "projected_host_bytes": INT_OR_NULL, "retired_blocks": INT, "host_bytes": INT, "worn_out": BOOL,
    },
    "endurance": dict.fromkeys(
        ("waf", "tbw", "dwpd", "dwpd_5_years", "years", "host_bytes_per_day"), NUMBER_OR_NULL
    ) | {"drive_writes": NUMBER, "full_load": BOOL + " or null"},
    "ftl_stats": TABLE,
    "basis": {
        "physical_bytes": INT, "logical_bytes": INT, "unit_bytes": INT, "unit": TEXT, "spare_blocks": INT,
        "reserved_blocks": INT, "open_blocks": INT_OR_NULL, "buffer_bytes": INT, "is_open": BOOL,
    },
    "volumes": LIST,
    "jobs": LIST,
    "sim": {"wall_s": NUMBER, "requests_per_s": NUMBER_OR_NULL, "peak_rss_bytes": INT_OR_NULL},
    "notes": LIST,
}  # fmt: skip

NULL_AT_COUNT_FIDELITY = ("latency_ns",)


def _fits(kind: str, value: Any) -> bool:
    if kind.endswith(" or null") and value is None:
        return True
    kind = kind.removesuffix(" or null")
    if isinstance(value, bool):
        return kind == BOOL
    if kind == BOOL:
        return False
    types: dict[str, type | tuple[type, ...]] = {INT: int, NUMBER: (int, float), TEXT: str, TABLE: dict, LIST: list}
    return isinstance(value, types[kind])


def problems(value: Any, schema: Any = RESULT, where: str = "") -> list[str]:
    """Places where a result departs from the shape."""
    if isinstance(schema, str):
        return [] if _fits(schema, value) else [f"{where}: expected {schema}, found {value!r}"]
    if value is None and "" in schema:
        return []
    if not isinstance(value, dict):
        return [f"{where}: expected a table, found {value!r}"]
    found = []
    for key, inner in schema.items():
        if not key:
            continue
        place = f"{where}.{key}".lstrip(".")
        if key not in value:
            found.append(f"{place}: missing")
        else:
            found += problems(value[key], inner, place)
    return found


def problems_at_count_fidelity(value: Any) -> list[str]:
    """As `problems`, for a run without times."""
    schema = {key: inner for key, inner in RESULT.items() if key not in NULL_AT_COUNT_FIDELITY}
    found = problems(value, schema)
    if value.get("latency_ns", 0) is not None:
        found.append("latency_ns: expected null at count fidelity")
    return found
