"""Distributions of response times in a few kilobytes, which can be merged: histograms of 64 buckets an octave.

A percentile is the middle of its bucket: within 0.8 % of the exact one, also after merging. Times below 128 ns are
exact.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

KINDS = ("all", "read", "write")
"""Classes of requests with a sketch in a result."""

_BITS = 7


class Sketch:
    """Counts of times by the smallest time of a bucket. Bounds have `bits` bits: 7, or 11 in histograms of a run."""

    def __init__(self, lower_ns: Sequence[int] = (), count: Sequence[int] = (), bits: int = _BITS) -> None:
        self._bits = bits
        self.lower_ns = list(lower_ns)
        self.count = list(count)

    @classmethod
    def of(cls, data: Mapping[str, Any], kind: str = "all") -> "Sketch | None":
        """The sketch of a class of requests in a result of `run --json`; None if the result has none."""
        found = (data.get("latency_sketch") or {}).get(kind)
        return cls(found["lower_ns"], found["count"]) if found and found["count"] else None

    @property
    def total(self) -> int:
        """Number of times."""
        return sum(self.count)

    def percentile(self, percent: float) -> int | None:
        """The time in nanoseconds that this percentage does not exceed; None without times."""
        rank, seen = max(1.0, self.total * percent / 100), 0
        for lower, count in zip(self.lower_ns, self.count, strict=True):
            seen += count
            if seen >= rank - 1e-9:
                return lower + self._width(lower) // 2
        return None

    def cdf(self) -> tuple[list[int], list[float]]:
        """Times in nanoseconds, ascending, and the share of one that does not exceed each, from 0."""
        times, shares, seen = [], [], 0
        if self.lower_ns:
            times, shares = [self.lower_ns[0]], [0.0]
        for lower, count in zip(self.lower_ns, self.count, strict=True):
            seen += count
            times.append(lower + self._width(lower))
            shares.append(seen / self.total)
        return times, shares

    def _width(self, lower: int) -> int:
        return 1 << max(0, lower.bit_length() - self._bits)


def merged(sketches: Iterable[Sketch]) -> Sketch:
    """The sketch of all times of all sketches."""
    counts: dict[int, int] = {}
    for sketch in sketches:
        for lower, count in zip(sketch.lower_ns, sketch.count, strict=True):
            counts[lower] = counts.get(lower, 0) + count
    lower_ns = sorted(counts)
    return Sketch(lower_ns, [counts[lower] for lower in lower_ns])
