"""A stand-in for the native module: figures of the right shape, made up by arithmetic from the options."""

import io
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


class Error(Exception):
    """As in the native module."""


class InputError(Error):
    """As in the native module."""


class UnfitError(InputError):
    """As in the native module."""


class DeviceError(Error):
    """As in the native module."""


class PolicyError(Error):
    """As in the native module."""


class LayerError(PolicyError):
    """As in the native module."""


class RuleError(Error):
    """As in the native module."""


class WorkloadIoError(Error):
    """As in the native module."""


class Interrupted(Error):
    """As in the native module."""


Progress = Callable[[str, int, int, int], None]
FTLS = {"page": 1.0, "subpage": 0.5, "mga": 0.62, "block": 9.0}
DELAY_S = 0.0
"""Wall time of a run."""


def version() -> str:
    return "0.1.0"


def build() -> str:
    return "0123456789abcdef"


def keep_states(memory: int, folder: str | None, folder_bytes: int, is_cache: bool = False) -> None:
    assert folder is not None or not is_cache
    assert min(memory, folder_bytes) >= 0
    assert folder != ""


def state_notes() -> list[str]:
    return []


def parquet_table(columns: Sequence[tuple[str, str, Sequence[object]]]) -> bytes:
    import polars as pl

    types = {"u64": pl.UInt64(), "u32": pl.UInt32(), "i64": pl.Int64(), "f64": pl.Float64(), "text": pl.String()}
    written = io.BytesIO()
    schema = {name: types[kind] for name, kind, _ in columns}
    pl.DataFrame({name: values for name, _, values in columns}, schema=schema, strict=False).write_parquet(written)
    return written.getvalue()


def state_counts() -> tuple[int, int]:
    return 0, 0


def workload_spec(name: str) -> str | None:
    return "rw=read" if name == "trade" else None


def profile() -> str:
    return "release"


def list_registry(kind: str) -> list[tuple[str, str]]:
    if kind == "ftls":
        return [(name, f"the layer {name}, in one line") for name in FTLS]
    return [(f"{kind}-one", f"the first of the {kind}")]


def show(ssd: str, ftl: str | None, overrides: list[str]) -> str:
    if ssd == "defualt":
        raise InputError("--ssd defualt: no such drive; did you mean `default`?")
    if ftl is not None and ftl not in FTLS:
        raise InputError(f"--ftl {ftl}: no such layer; expected one of {', '.join(FTLS)}")
    lines = [f'# the drive {ssd}\n[ftl]\n# translation layer (from the preset)\nname = "{ftl or "page"}"']
    return "\n".join([*lines, *(f"# --set {override}" for override in overrides)]) + "\n"


def unread_keys(ssd: str, ftl: str | None, overrides: list[str]) -> list[list[str]]:
    show(ssd, ftl, overrides)
    keys = {override.partition("=")[0]: override for override in overrides}
    return [
        [key, f"--set {text}", f"{ftl} does not read {key}", f"ftl.name = mga, or no {key}", "mistake"]
        for key, text in keys.items()
        if key == "ftl.allocation_threshold" and ftl != "mga"
    ]


def unread_remedy(_ssd: str, _ftl: str | None, _overrides: list[str], keys: list[str]) -> str:
    return f"ftl.name = mga, or no {' and no '.join(keys)}"


def available_memory() -> int | None:
    return 16 << 30


def fit_memory(options_json: str, memory: int, most: float) -> str:
    """A drive of 32 GiB for whatever memory."""
    options = json.loads(options_json)
    factor = min(1.0, most, memory / (32 << 30))
    overrides = [*options["set"], f"ssd.blocks_per_plane={round(128 * factor)}"] if factor < 1 else options["set"]
    return json.dumps({"overrides": overrides, "factor": factor, "text": f"scaled by {factor:.4f}"})


def configuration_keys() -> list[tuple[str, list[str], str]]:
    return [("ftl.victim", ["greedy", "fifo"], "block to clean"), ("part.nop", [], "programs of a page")]


def config(ftl: str) -> dict[str, Any]:
    return {
        "ssd": {
            "part": "tlc-16k", "channels": 8, "chips_per_channel": 2, "dies_per_chip": 1, "planes_per_die": 2,
            "blocks_per_plane": 128, "over_provisioning": "28%",
        },
        "part": {"cell": "tlc", "page_size": "16KiB", "subpage_size": "4KiB", "pages_per_block": 256, "t_read": "45us"},
        "ftl": {"name": ftl, "victim": "greedy"},
        "host": {"speedup": 1.0},
    }  # fmt: skip


def latency(factor: float) -> dict[str, int]:
    shape = {"mean": 80_000, "p50": 61_000, "p90": 120_000, "p99": 812_000, "p999": 4_100_000, "max": 9_700_123}
    shape["p9999"] = 8_200_000
    return {key: round(value * factor) for key, value in shape.items()}


def flash(ftl: str, reads: int, writes: int, programs: int, gc_programs: int) -> dict[str, Any]:
    return {
        "page_reads": reads + gc_programs,
        "page_programs": programs + gc_programs,
        "partial_programs": 1234 if ftl == "mga" else 0,
        "reprograms": 0,
        "erases": (programs + gc_programs) // 256,
        "consumed_bytes": (programs + gc_programs) // 256 * 256 * 16384,
        "bytes_sensed": reads * 16384,
        "bytes_transferred": reads * 16384 + programs * 16384,
        "read_retries": 0,
        "failed_programs": 2,
        "failed_erases": 0,
        "pair_copies": 0,
        "pair_rescues": 0,
        "by_cause": {
            "host": {"reads": reads, "programs": programs},
            "gc": {"reads": gc_programs, "programs": gc_programs},
            "merge": {"reads": 0, "programs": 0},
            "rmw": {"reads": writes // 2, "programs": 0},
            "prefetch": {"reads": 0, "programs": 0},
            "metadata": {"reads": 0, "programs": 0},
            "read_ahead": {"reads": 0, "programs": 0},
            "checkpoint": {"reads": 0, "programs": 0},
            "patrol": {"reads": 0, "programs": 0},
            "parity": {"reads": 0, "programs": 0},
            "rebuild": {"reads": 0, "programs": 0},
        },
    }


def endurance(factor: float) -> dict[str, Any]:
    figures = {"waf": 3.66 * factor, "tbw": 52.8, "dwpd": 0.25, "dwpd_5_years": 0.5, "years": 10.0}
    return figures | {"host_bytes_per_day": 1e9, "full_load": True, "drive_writes": 0.01}


def precondition(options: dict[str, Any]) -> dict[str, Any]:
    return {
        "spec": options["precondition"] or "none",
        "bytes_written": 13_743_895_347,
        "last_write_amplification": 1.87,
        "converged": None,
    }


def steady(factor: float) -> dict[str, Any]:
    """A run that is steady in every figure, each within 1 %."""

    def judged(value: float) -> dict[str, Any]:
        events = {"batches": 16, "erases": 900}
        return {"verdict": "yes", "reason": None, "interval": [0.99 * value, 1.01 * value], "events": events}

    kinds = {
        kind: {key: judged(latency(factor * scale)[key]) for key in ("mean", "p50", "p99")}
        for kind, scale in (("read", 1), ("write", 2), ("all", 1.7))
    }
    own = {"iops": judged(42_100.5 / factor), "wa": judged(3.66 * factor), **kinds.pop("all")}
    return own | kinds | {"run_in": None, "needs_requests": None}


def promise(ftl: str) -> dict[str, str]:
    acknowledged = "in a protected buffer" if ftl == "subpage" else "when programmed"
    return {"acknowledged": acknowledged, "durable": "when acknowledged"}


def summary(options: dict[str, Any]) -> dict[str, Any]:
    ftl = options["ftl"] or "page"
    factor = FTLS[ftl]
    requests = options["requests"] or 100_000
    reads, writes = requests * 3 // 10, requests - requests * 3 // 10
    timed = options["fidelity"] == "timed"
    programs = round(writes * factor)
    gc_programs = programs // 3
    return {
        "schema_version": 2,
        "ftl": ftl,
        "ssd": options["ssd"],
        "workload": options["workload"],
        "trace_format": None,
        "seed": options["seed"],
        "fidelity": options["fidelity"],
        "payload": options["payload"],
        "promise": promise(ftl),
        "config": config(ftl),
        "requests": {"read": reads, "write": writes, "trim": 0, "flush": 0},
        "host": {
            "bytes_read": reads * 4096,
            "bytes_written": writes * 4096,
            "subpages_read": reads,
            "subpages_hit": reads // 100,
            "subpages_written": writes,
            "bytes_transferred": requests * 4096,
            "subpages_transferred": requests,
        },
        "latency_ns": {kind: latency(factor * scale) for kind, scale in (("all", 1.7), ("read", 1), ("write", 2))}
        if timed
        else None,
        "throughput": {
            "iops": 42_100.5 / factor if timed else None,
            "bytes_per_s": 172_443_648.0 / factor if timed else None,
        },
        "steady": steady(factor) if timed else None,
        "simulated_ns": round(requests * 23_753 * factor) if timed else 0,
        "flash": flash(ftl, reads, writes, programs, gc_programs),
        "write_amplification": 3.66 * factor,
        "padding_bytes": 4096 * 77,
        "read_amplification": {"host": 4.0, "gc": 1.31},
        **dict.fromkeys(("read_ahead", "reliability", "rain", "fdp", "zns", "checkpoint")),
        "gc": {
            "runs": 345,
            "erased_blocks": 346,
            "moved_subpages": gc_programs * 4,
            "mean_ns": 2_345_678 if timed else None,
            "p99_ns": 8_345_678 if timed else None,
        },
        "merge": {"count": 0, "moved_subpages": 0},
        "mapping": dict.fromkeys(("bytes", "bytes_peak"), round(16777216 / factor)) | {"tables": {"map": 16777216}},
        "energy_uj": {
            "read": 1e6,
            "program": 5e6 * factor,
            "reprogram": 0.0,
            "erase": 2e5,
            "total": 1.2e6 + 5e6 * factor,
        },
        "power_w": dict.fromkeys(("mean", "peak", "window_ns", "time_ns"))
        | ({"mean": 3.1, "peak": 4.4, "window_ns": 10**8, "time_ns": 3 * 10**9} if timed else {}),
        "lifetime": LIFETIME,
        "endurance": endurance(factor),
        "precondition": precondition(options),
        "ftl_stats": {"buffer_hits": 12},
        "basis": basis(timed),
        "volumes": volumes(timed) if options["workload"] == "oltp" else [],
        "jobs": [],
        **(tenancy(timed, options.get("tenant") is not None) if options["workload"] == "oltp" else {}),
        "sim": {"wall_s": 0.0123, "requests_per_s": 8_123_456.0},
        "notes": ["3 requests beyond the drive's end were folded into it (host.fold)"] if ftl == "page" else [],
    }


LIFETIME = {
    "mean_erases": 3.21,
    "min_erases": 1,
    "max_erases": 9,
    "reused_erases": 0,
    "projected_host_bytes": 52_776_558_133_248,
    "retired_blocks": 1,
    "host_bytes": 13_743_895_347,
    "worn_out": False,
}


def basis(timed: bool) -> dict[str, Any]:
    busy = {"channels": {"mean": 0.5, "max": 0.5}, "dies": {"mean": 0.25, "max": 0.25}}
    sizes = {"physical_bytes": 41 << 30, "logical_bytes": 32 << 30, "unit_bytes": 4 << 20, "unit": "block"}
    blocks = {"spare_blocks": 52, "reserved_blocks": 0, "open_blocks": 3, "buffer_bytes": 1 << 20}
    return sizes | blocks | {"busy": busy if timed else None, "is_open": False, "named": None}


def volumes(timed: bool) -> list[dict[str, Any]]:
    times = {"mean": 60_000, "p50": 50_000, "p99": 606_208, "max": 2_000_000}
    return [
        {
            "volume": number,
            "name": str(number),
            "offset_bytes": number << 30,
            "size_bytes": 1 << 30,
            "requests": {"read": 100 * number, "write": 50, "trim": 0, "flush": 0},
            "bytes_read": number << 20,
            "bytes_written": 1 << 20,
            "latency_ns": {"read": times if number else None, "write": times} if timed else None,
        }
        for number in range(3)
    ]


def tenancy(timed: bool, alone: bool) -> dict[str, Any]:
    """The tenants of `volumes`, which are faster alone: 2.00 times, 2.50 times for the last."""
    tenants = [
        {
            "tenant": volume["volume"],
            "name": f"volume {volume['volume']}",
            **{name: volume[name] for name in ("requests", "bytes_read", "bytes_written")},
            "latency_ns": dict.fromkeys(
                ("all", "read", "write"), latency((5 - number // 2) / (10 if alone else 5 - number // 2))
            )
            if timed
            else None,
            "throughput": dict.fromkeys(("iops", "bytes_per_s"), 1000.0 if timed else None),
            "bytes_programmed": 3 << 20,
            "programmed_share": 0.3,
            "write_amplification": 3.0,
        }
        for number, volume in enumerate(volumes(timed))
    ]
    shares = {"programmed_by": "owners", "bytes_programmed": 10 << 20, "bytes_without_tenant": 1 << 20}
    return {"tenants": tenants, "tenancy": shares}


def sketch() -> dict[str, Any]:
    buckets = {"lower_ns": [49_152, 98_304, 196_608], "count": [500, 300, 200]}
    return dict.fromkeys(("all", "read", "write"), buckets)


def series(ftl: str) -> dict[str, Any]:
    windows = list(range(20))
    counts = {"lower_ns": [50_000, 100_000, 200_000, 400_000, 1_600_000], "count": [500, 300, 150, 49, 1]}
    return {
        "time": {
            "window_ns": 10**8,
            "start_ns": [window * 10**8 for window in windows],
            "requests": [4000 + 10 * window for window in windows],
            "bytes": [4096 * 4000] * 20,
            "read_mean_ns": [60_000 + window * 500 for window in windows],
            "write_mean_ns": [None if window == 3 else 160_000 + window * 900 for window in windows],
            "read_p99_ns": [600_000 + window * 500 for window in windows],
            "write_p99_ns": [None if window == 3 else 900_000 + window * 900 for window in windows],
            "max_ns": [2_000_000] * 20,
            "outstanding": [16.0 + window / 8 for window in windows],
            "programs": [1000] * 20,
            "reads": [1500] * 20,
            "erases": [4] * 20,
            "gc_programs": [200] * 20,
            "write_amplification": [round(FTLS[ftl] * (1 + window / 40), 4) for window in windows],
            "power_w": [2.5 + window / 10 for window in windows],
            "read_retries": [window % 3 for window in windows],
            "lost_subpages": [0] * 19 + [2],
            "ecc_margin": [None if window == 3 else 0.5 - window / 100 for window in windows],
        },
        "latency": {"all": counts, "read": counts, "write": counts},
        "wear": {"erases": [(7 * block) % 10 for block in range(64)], "plane": [block // 2 for block in range(64)]},
        "utilization": {"channels": [0.5] * 8, "dies": [0.25] * 16},
        "writes": {
            "requests": [0, 50_000, 100_000],
            "host_bytes": [0, 143_360_000, 286_720_000],
            "data_bytes": [0, 250_000_000, 500_000_000],
        },
        "blocks": blocks(),
    }


def blocks() -> dict[str, Any]:
    """Five snapshots of four planes of eight cells of two blocks."""
    cells, snapshots = 32, range(5)
    full = [min(2, at // 8) for at in range(cells * 5)]
    return {
        "columns": 8,
        "channel": [cell // 16 for cell in range(cells)],
        "die": [cell // 16 for cell in range(cells)],
        "plane": [(0, 2, 1, 3)[cell // 8] for cell in range(cells)],
        "first_block": [2 * cell for cell in range(cells)],
        "blocks": [2] * cells,
        "requests": [20_000 * snapshot for snapshot in snapshots],
        "time_ns": [475_060_000 * snapshot for snapshot in snapshots],
        "reads": [6000 * snapshot for snapshot in snapshots],
        "programs": [5000 * snapshot for snapshot in snapshots],
        "gc_programs": [1000 * snapshot for snapshot in snapshots],
        "flash_erases": [40 * snapshot for snapshot in snapshots],
        "data_bytes": [100_000_000 * snapshot for snapshot in snapshots],
        "host_bytes": [57_344_000 * snapshot for snapshot in snapshots],
        "states": ["free", "open", "partial", "full", "reused", "bad"],
        "counts": [[2 - number for number in full], *[[0] * len(full)] * 2, full, *[[0] * len(full)] * 2],
        "programmed": [number / 2 for number in full],
        "valid": [number / 4 for number in full],
        "erases": [(7 * at) % 10 / 2 for at in range(len(full))],
    }


def timeline() -> dict[str, Any]:
    """A read on behalf of a write, the program of that write, and a suspended erase; from two requests."""
    operations: dict[str, list[Any]] = {
        "operation": [1, 2, 3], "kind": ["read", "program", "erase"], "cause": ["rmw", "host", "gc"],
        "request": [1, 1, 2], "request_kind": ["write", "write", "write"],
        "channel": [0, 1, 1], "die": [0, 1, 1], "plane": [0, 3, 1], "block": [5, 70, 40], "page": [7, 0, None],
        "bytes": [16384, 16384, 0], "link_bytes": [0, 0, 0],
        "planned_ns": [0, 0, 20_000], "ready_ns": [0, 71_000, 20_000], "start_ns": [0, 71_000, 20_000],
        "transfer_start_ns": [46_000, 72_000, None], "transfer_end_ns": [71_000, 97_000, None],
        "array_start_ns": [1_000, 97_000, 21_000], "array_end_ns": [46_000, 497_000, 3_081_000],
        "end_ns": [71_000, 497_000, 3_081_000], "delivered_ns": [None, None, None],
        "suspended_ns": [0, 0, 60_000], "suspended_at_ns": [[], [], [40_000]], "resumed_at_ns": [[], [], [100_000]],
        "follows": [[], [1], []], "behind": [None, None, None],
    }  # fmt: skip
    requests: dict[str, list[Any]] = {
        "request": [1, 2], "kind": ["write", "write"], "offset_bytes": [0, 4096], "size_bytes": [512, 4096],
        "arrival_ns": [0, 20_000], "submitted_ns": [0, 20_000], "planned_ns": [0, 20_000],
        "completed_ns": [497_000, None],
    }  # fmt: skip
    return {"operations": operations, "requests": requests}


def check_layer(options_json: str, progress: Progress | None) -> str:
    options = json.loads(options_json)
    if progress is not None:
        progress("check", 1, 2, 0)
    row = {"cases": 1, "expected": 1, "runs": 3, "requests": 204, "cuts": 2, "supported": True, "reason": None}
    rows = [{"kind": "cuts", "about": "a power cut at every operation", **row}]
    none = {"cases": 0, "expected": 0, "runs": 0, "requests": 0, "cuts": 0, "supported": False}
    rows.append({"kind": "parity", "about": "parity", **none, "reason": "no parity; expected another layer"})
    broken = {
        "case": "cuts:2", "message": "logical subpage 0 is lost", "place": "src/block.rs:12",
        "settings": ["ssd.channels=1", "ftl.slc_cache=0 blocks"],
        "form": "power cut in flash operation 3; seed of the drive 2", "requests": 68, "shortest": 1,
        "history": ["1. write 4 KiB at 0 (page 0)", "     program block 0 page 0   <- the power fails"],
    }  # fmt: skip
    is_broken = options["layer"] == "block"
    found = {
        "layer": options["layer"], "seed": options["seed"], "verdict": "failed" if is_broken else "passed",
        "cases_digest": "0" * 16, "rows": rows, "drives": [], "ssd": None, "broken": broken if is_broken else None,
    }  # fmt: skip
    return json.dumps(found)


def run(options_json: str, progress: Progress | None) -> tuple[str, str]:
    options = json.loads(options_json)
    ftl = options["ftl"] or "page"
    if ftl not in FTLS:
        raise InputError(f"--ftl {ftl}: no such layer; expected one of {', '.join(FTLS)}")
    if options["workload"].endswith("broken.csv"):
        raise InputError(f"{options['workload']}:7: expected an offset in bytes, found `x`")
    if ftl == "block":
        raise DeviceError("plane 3 has no good blocks left after 1,234 requests")
    if log := os.environ.get("FAKE_STARTED"):
        with Path(log).open("a", encoding="utf-8") as started:  # a test that waits for runs to begin counts these lines
            started.write(f"{ftl}\n")
    deadline = time.monotonic() + DELAY_S
    total = options["requests"] or 100_000
    while True:
        left = deadline - time.monotonic()
        if progress is not None:
            done = total if left <= 0 else round(total * (1 - left / DELAY_S))
            progress("run", done, total, done * 23_753)
        if left <= 0:
            break
        time.sleep(min(0.05, left))
    kept = (series(ftl) if options["series"] else {}) | (timeline() if options.get("operations") else {})
    found = summary(options) | ({"latency_sketch": sketch()} if options.get("sketch") else {})
    return json.dumps(found), json.dumps(kept or None)
