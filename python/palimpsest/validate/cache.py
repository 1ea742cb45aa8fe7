"""Speed within and beyond the fast cache, and its size, from the throughput of a run that fills it."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from ..result import Result

FEW = 8
"""With fewer windows the median could fall into the drop."""


def levels(moved: Sequence[float]) -> tuple[int, float, float]:
    """The index with the least squares where a series falls to another level, or the length, and both means."""
    total, squares = sum(moved), sum(value * value for value in moved)
    best, found, before = squares - total * total / len(moved), len(moved), 0.0
    for place in range(1, len(moved)):
        before += moved[place - 1]
        after = total - before
        left = squares - before * before / place - after * after / (len(moved) - place)
        falls = before / place > 1.1 * after / (len(moved) - place)
        if falls and left < best * (1 - 1e-9):
            best, found = left, place
    return found, sum(moved[:found]) / max(1, found), sum(moved[found:]) / max(1, len(moved) - found)


def _windows(result: Result) -> tuple[list[float], float]:
    """Bytes of the complete windows of a run, and their seconds."""
    series: dict[str, Any] = (result.series or {})["time"]
    moved = [float(value) for value in series["bytes"][:-1]]
    # The drive was idle before.
    begun = next((place for place, value in enumerate(moved) if value), 0)
    return moved[begun:], float(series["window_ns"]) / 1e9


def _speeds(moved: Sequence[float], place: int) -> tuple[float, float]:
    """Bytes of a window before and beyond a fall at `place`."""
    fast = moved[:place]
    # The last of few windows contains the fall.
    return median(fast) if len(fast) >= FEW else max(fast), median(moved[place:] or [0.0])


def _size(result: Result, scale: float) -> float | None:
    """The bytes until the fall, which the speeds on both sides date within the windows beside `place`."""
    moved, _ = _windows(result)
    place, *_ = levels(moved)
    if place == len(moved):
        return None
    fast, slow = _speeds(moved, place)
    shares = (min(1.0, max(0.0, (value - slow) / (fast - slow))) for value in moved[place - 1 : place + 1])
    return scale * (sum(moved[: place - 1]) + fast * sum(shares)) / 1e9


def _fast(result: Result, scale: float) -> float | None:  # noqa: ARG001
    moved, seconds = _windows(result)
    return _speeds(moved, levels(moved)[0])[0] / seconds / 1e6


def _slow(result: Result, scale: float) -> float | None:  # noqa: ARG001
    moved, seconds = _windows(result)
    place, *_ = levels(moved)
    return _speeds(moved, place)[1] / seconds / 1e6 if place < len(moved) else None


FULL = ("cache.full.size", "cache.full.fast", "cache.full.slow")
"""The same figures of a run that writes to a full drive."""

CACHE = {
    "cache.size": _size,
    "cache.fast": _fast,
    "cache.slow": _slow,
    **dict(zip(FULL, (_size, _fast, _slow), strict=True)),
}
"""Figures of a run that fills a drive: GB at the real drive's capacity; medians of the windows on each side, MB/s."""
