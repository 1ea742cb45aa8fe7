"""Response times: the distribution as a whole, and its tail."""

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from ..metrics import modelled, response_time
from ..result import Result
from .common import DASHES, Specification, label, layer, part, tick, trace

_TICKS = {1.0: "all", 0.5: "p50", 0.1: "p90", 0.01: "p99", 0.001: "p99.9", 1e-4: "p99.99", 1e-5: "p99.999"}
_TICKS_APART = 1e-3

_STEP = 1.004
_SHARE = 0.002


def _thinned(lower: Sequence[int], counts: Sequence[int]) -> list[tuple[int, int]]:
    """Buckets, neighbours joined within 0.4 % of a time and 0.2 % of all requests, which no picture shows."""
    total, kept, left = sum(counts), list[tuple[int, int]](), 0
    for bound, count in zip(lower, counts, strict=True):
        if kept and count and bound < kept[-1][0] * _STEP and left + count < _SHARE * total:
            kept[-1] = (kept[-1][0], kept[-1][1] + count)
            left += count
        elif count:
            kept.append((bound, count))
            left = count
    return kept


def exceedance(lower: Sequence[int], counts: Sequence[int]) -> tuple[list[float], list[float]]:
    """Response times in microseconds, and the share of requests that took at least as long, from a histogram."""
    found, total = _thinned(lower, counts), sum(counts)
    done = accumulate((count for _, count in found[:-1]), initial=0)
    return [bound / 1000 for bound, _ in found], [(total - before) / total for before in done] if found else []


def cumulative(lower: Sequence[int], counts: Sequence[int]) -> tuple[list[float], list[float]]:
    """Response times in microseconds, and the share of requests in per cent that took at most about as long."""
    found, total = _thinned(lower, counts), sum(counts)
    done = accumulate(count for _, count in found)
    return [bound / 1000 for bound, _ in found], [100 * so_far / total for so_far in done]


def _lines(
    results: Sequence[Result], points: Callable[[Sequence[int], Sequence[int]], tuple[list[float], list[float]]],
    hover: str,
) -> list[Specification]:  # fmt: skip
    """A line for each kind of request of each result, named with the 99th percentile and its ratio to the first's."""
    traces = []
    for index, result in enumerate(results):
        for position, kind in enumerate(("read", "write")):
            histogram = part(result, "latency").get(kind)
            if not histogram or not sum(histogram["count"]):
                continue
            times, shares = points(histogram["lower_ns"], histogram["count"])
            if not any(times):
                # 0 ns has no place on a logarithmic axis.
                continue
            found, first = ((each["latency_ns"] or {}).get(kind) for each in (result, results[0]))
            p99, base = modelled(found, "p99"), modelled(first, "p99")
            name = f"{kind}s, p99 {response_time(found, 'p99')}"
            if len(results) > 1:
                ratio = layer(result, results, p99, base).removeprefix(result.label)
                name = label(result, results, name) + (f" ({ratio.strip()})" if ratio else "")
            traces.append(
                trace(index if len(results) > 1 else position, type="scatter", mode="lines", name=name, x=times,
                      y=shares, hovertemplate=f"{label(result, results, f'{kind}s')}: {hover}<extra></extra>",
                      line={"shape": "hv", "width": 2, "dash": DASHES[position] if len(results) > 1 else "solid"})
            )  # fmt: skip
    return traces


_DIGITS = (
    *(tuple(1 + step * at for at in range(round(9 / step))) for step in (0.1, 0.2, 0.5, 1)), (1, 2, 5), (1, 3), (1,),
)  # fmt: skip
"""Digits of ticks, from many to few."""
_APART = 0.15
"""The least distance of ticks as a share of the axis, which a phone has room for."""
_END = 99.9
_MOVES = 1.0
"""A share of requests in per cent that a step has where percentiles begin to move."""


def _time_axis(low: float, high: float) -> dict[str, Any]:
    """A logarithmic axis between two times in microseconds, with ticks in words, such as `2 ms`."""
    span, ticks = math.log10(high / low) + 0.01, [low]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in _DIGITS:
        found = [digit * 10.0**decade for decade in decades for digit in digits]
        ticks = [value for value in found if 0.999 * low <= value <= 1.001 * high] or ticks
        if all(math.log10(after / before) >= _APART * span for before, after in pairwise(ticks)):
            break
    return {
        "type": "log", "title": {"text": "response time"}, "tickvals": ticks, "ticktext": list(map(tick, ticks)),
        "range": [math.log10(low) - 0.02 * span, math.log10(high) + 0.02 * span],
    }  # fmt: skip


def cdf(results: Sequence[Result]) -> Specification | None:
    """Share of requests that take at most a response time, from the first percentile that moves to p99.9."""
    traces = _lines(results, cumulative, "%{y:.3f} % take at most %{x:,.1f} us")
    if not traces:
        return None
    firsts, lasts = [], []
    for each in traces:
        points = [(time, share) for time, share in zip(each["x"], each["y"], strict=True) if time > 0]
        firsts.append(next(point for point in points if point[1] >= _MOVES))
        lasts.append(next(time for time, share in points if share >= _END))
    bottom = max(0, 5 * math.floor((min(share for _, share in firsts) - 5) / 5))
    axis = {"title": {"text": "requests (%)"}, "range": [bottom, 100 + (100 - bottom) / 100]}
    return {
        "data": traces,
        "layout": {"xaxis": _time_axis(min(time for time, _ in firsts), max(lasts)), "yaxis": axis},
    }


def latency(results: Sequence[Result]) -> Specification | None:
    """Share of requests that take at least a response time: p99 is at 1 %."""
    traces = _lines(results, exceedance, "%{y:.3%} take at least %{x:,.1f} us")
    if not traces:
        return None
    # With many decades the label of p50 has no room.
    least = min(share for each in traces for share in each["y"])
    ticks = {share: name for share, name in _TICKS.items() if least > _TICKS_APART or name != "p50"}
    axis = {
        "type": "log", "title": {"text": "share of requests that take longer"},
        "tickvals": list(ticks), "ticktext": list(ticks.values()),
    }  # fmt: skip
    times = [time for each in traces for time in each["x"] if time > 0]
    return {"data": traces, "layout": {"xaxis": _time_axis(min(times), max(times)), "yaxis": axis}}
