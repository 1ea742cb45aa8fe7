"""Figures of reclaim unit handles (Flexible Data Placement): bytes that the host wrote and that collection moved."""

from collections.abc import Sequence

from ..metrics import handle_name
from ..result import Result
from .common import Specification, label, trace


def handles(results: Sequence[Result]) -> Specification | None:
    """Bytes written by the host and moved by collection, by handle."""
    traces = []
    for index, result in enumerate(results):
        fdp = result.get("fdp") or {}
        found = [*fdp.get("handles", ()), *filter(None, [fdp.get("controller")])]
        names = [handle_name(each) for each in found]
        for slot, (key, what) in enumerate((("host_bytes", "written"), ("moved_bytes", "moved"))):
            named = label(result, results, what)
            if found:
                traces.append(
                    trace(slot + 2 * index, type="bar", name=named, offsetgroup=str(index),
                          x=names, y=[each[key] / 2**30 for each in found],
                          hovertemplate=f"handle %{{x}}, {named}: %{{y:,.4~g}} GiB<extra></extra>")
                )  # fmt: skip
    if not traces:
        return None
    layout = {
        "barmode": "stack",
        "xaxis": {"title": {"text": "reclaim unit handle"}, "type": "category"},
        "yaxis": {"title": {"text": "written and moved (GiB)"}, "rangemode": "tozero"},
    }
    return {"data": traces, "layout": layout}
