"""Figures of the volumes of a trace: response times of each, or bytes in a counted run."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..metrics import modelled
from ..result import Result
from ..units import volume_name
from .common import Specification, label, trace

DRAWN = 20
LISTED = 50
"""Most volumes of a chart, and of a table."""


def busiest(result: Result, most: int) -> list[Mapping[str, Any]]:
    """The volumes with most requests, in the order of their appearance in the trace."""
    found: list[Mapping[str, Any]] = result.get("volumes") or []
    most_requests = sorted(range(len(found)), key=lambda at: (-sum(found[at]["requests"].values()), at))[:most]
    return [found[at] for at in sorted(most_requests)]


def volumes(results: Sequence[Result]) -> Specification | None:
    """The 99th percentile of reads and writes by volume; bytes written and read in counted runs."""
    is_timed = all(volume["latency_ns"] for result in results for volume in result.get("volumes") or [])
    traces = []
    for index, result in enumerate(results):
        found = busiest(result, DRAWN)
        for slot, kind in enumerate(("read", "write")):
            values = [_value(volume, kind, is_timed) for volume in found]
            if any(values):
                unit = "%{y:,.4~g} us" if is_timed else "%{y:,.4~g} MiB"
                traces.append(
                    trace(slot + 2 * index, type="bar", name=label(result, results, f"{kind}s"),
                          x=[volume_name(volume) for volume in found], y=values,
                          hovertemplate=f"volume %{{x}}, {label(result, results, f'{kind}s')}: {unit}<extra></extra>")
                )  # fmt: skip
    if not traces:
        return None
    title = "99th percentile of response times (us)" if is_timed else "read and written (MiB)"
    layout = {
        "barmode": "group",
        "xaxis": {"title": {"text": "volume"}, "type": "category"},
        "yaxis": {"title": {"text": title}, "rangemode": "tozero"},
    }
    return {"data": traces, "layout": layout}


def _value(volume: Mapping[str, Any], kind: str, is_timed: bool) -> float | None:
    if is_timed:
        p99 = modelled(volume["latency_ns"][kind], "p99")
        return None if p99 is None else p99 / 1000
    return float(volume["bytes_read" if kind == "read" else "bytes_written"]) / 2**20
