"""Parts of response times at percentiles, as stacked bars."""

from collections.abc import Sequence

from ..result import Result
from ..why import PARTS, PERCENTILES, kinds, share
from .common import SLOTS, Specification, label, trace


def parts(results: Sequence[Result]) -> Specification | None:
    """A bar for each percentile of each kind of request, from the shares of the parts; None without any."""
    rows = [
        (label(result, results, f"{kind} {heading}"), columns[key])
        for result in results
        for kind, columns in kinds(result).items()
        for key, heading in PERCENTILES.items()
    ]
    traces = []
    for slot, (part, name) in enumerate(PARTS.items()):
        shares = [100 * share(explained, part) for _, explained in rows]
        if any(shares):
            times = [each * explained["latency_ns"] / 1e5 for each, (_, explained) in zip(shares, rows, strict=True)]
            traces.append(
                trace(slot, type="bar", orientation="h", name=name, y=[row for row, _ in rows], x=shares,
                      customdata=times, marker={"pattern": {"shape": ("", "/", "x")[slot // SLOTS]}},
                      hovertemplate="%{y}, %{fullData.name}: %{x:.1f} %, %{customdata:,.1f} us<extra></extra>")
            )  # fmt: skip
    layout = {
        "barmode": "stack",
        "bargap": 0.35,
        "height": 150 + 34 * len(rows),
        "legend": {"traceorder": "normal"},
        "xaxis": {"title": {"text": "share of the response time (%)"}, "range": [0, 100]},
        "yaxis": {"autorange": "reversed", "automargin": True},
    }
    return {"data": traces, "layout": layout} if traces else None
