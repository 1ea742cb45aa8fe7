"""Figures of a result by their names in tables, in the units of these tables."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..result import Result

REQUESTS = 20_000
"""Requests of a run if the table does not say how many."""

_SHARES = {"p50": "p50", "p90": "p90", "p99": "p99", "p99.9": "p999", "p99.99": "p9999"}


def percentile(result: Result, kind: str, name: str, of: Mapping[str, Any] | None = None) -> float | None:
    """A response time in microseconds: `mean` or `p99.9`, if not listed from the histogram (within 1.6 %), or None.

    `of` has the figures of a job of the run.
    """
    latencies: dict[str, Any] | None = (of or result)["latency_ns"][kind]
    if latencies is None:
        return None
    if name == "mean":
        return float(latencies["mean"]) / 1000
    if name in _SHARES:
        return float(latencies[_SHARES[name]]) / 1000
    histogram = (result.series or {})["latency"][kind]
    left = float(name.removeprefix("p")) / 100 * sum(histogram["count"])
    for lower, count in zip(histogram["lower_ns"], histogram["count"], strict=True):
        left -= count
        if left <= 0:
            return float(lower) / 1000
    return None


def rate(result: Result, *kinds: str) -> float | None:
    """Requests of these kinds a second; None for a run without time."""
    seconds = result["simulated_ns"] / 1e9
    return sum(result["requests"][kind] for kind in kinds) / seconds if seconds else None


def _flush(result: Result) -> float | None:
    """Mean time of a flush: the total time less reads and writes, because results have no class for flushes."""
    requests, latencies = result["requests"], result["latency_ns"]
    others = sum(requests[kind] * latencies[kind]["mean"] for kind in ("read", "write") if requests[kind])
    total = sum(requests[kind] for kind in ("read", "write", "flush")) * latencies["all"]["mean"]
    return (total - others) / requests["flush"] / 1000 if requests["flush"] else None


def _bytes(result: Result) -> float | None:
    speed = result["throughput"]["bytes_per_s"]
    return None if speed is None else float(speed) / 1e6


MEASURES: dict[str, Callable[[Result], float | None]] = {
    "iops": lambda result: rate(result, "read", "write"),
    "bytes_per_s": _bytes,
    "flush.mean": _flush,
    **{
        f"{kind}.{name}": partial(percentile, kind=kind, name=name)
        for kind in ("read", "write")
        for name in ("mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99")
    },
}
"""Figures that a row of a table of points may name: requests a second, MB/s, microseconds."""


def measure(name: str, result: Result) -> float | None:
    """The figure called `name`, or None."""
    return MEASURES[name](result)
