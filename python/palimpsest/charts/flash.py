"""Flash operations by cause, and utilisation."""

from collections.abc import Sequence

from ..metrics import CAUSES, factor, relative
from ..result import Result
from .common import Specification, label, layer, part, trace


def flash(results: Sequence[Result]) -> Specification | None:
    """Flash reads and programs by cause, stacked."""
    rows = [(result, kind) for result in results for kind in ("reads", "programs")]
    totals = [sum(causes.get(kind, 0) for causes in result["flash"]["by_cause"].values()) for result, kind in rows]
    labels = []
    for index, (result, kind) in enumerate(rows):
        ratio = factor(relative(totals[index], totals[index % 2])) if index > 1 else ""
        labels.append(label(result, results, kind) + (f" {ratio}" if ratio else ""))
    traces = []
    for slot, cause in enumerate(CAUSES):
        counts = [result["flash"]["by_cause"].get(cause, {}).get(kind, 0) for result, kind in rows]
        if any(counts):
            shares = [100 * count / total if total else 0 for count, total in zip(counts, totals, strict=True)]
            traces.append(
                trace(slot, type="bar", orientation="h", name=cause, y=labels, x=counts, customdata=shares,
                      hovertemplate="%{y}, %{fullData.name}: %{x:,} pages (%{customdata:.1f} %)<extra></extra>")
            )  # fmt: skip
    if not traces:
        return None
    layout = {
        "barmode": "stack",
        "bargap": 0.35,
        "height": 150 + 34 * len(rows),
        "legend": {"traceorder": "normal"},
        "xaxis": {"title": {"text": "flash operations (pages)"}},
        "yaxis": {"autorange": "reversed", "automargin": True},
    }
    return {"data": traces, "layout": layout}


def utilization(results: Sequence[Result]) -> Specification | None:
    """Share of the simulated time that each channel and die was busy."""
    traces = []
    for index, result in enumerate(results):
        for position, kind in enumerate(("channels", "dies")):
            shares = part(result, "utilization").get(kind) or []
            if not any(shares):
                continue
            base = part(results[0], "utilization").get(kind) or []
            axes = {"xaxis": "x" if position == 0 else "x2", "yaxis": "y" if position == 0 else "y2"}
            mean = sum(shares) / len(shares)
            name = f"{kind}, mean {100 * mean:.0f} %"
            if len(results) > 1:
                first = sum(base) / len(base) if base else None
                name = layer(result, results, mean, first, f"{kind} busy") if index else f"{result.label}"
            shown, group = (True, kind) if len(results) == 1 else (position == 1, result.label)
            traces.append(
                trace(index if len(results) > 1 else position, type="bar", name=name, x=list(range(len(shares))),
                      y=[100 * share for share in shares], showlegend=shown, legendgroup=group,
                      hovertemplate=f"{label(result, results, kind[:-1])} %{{x}}: %{{y:.1f}} % busy<extra></extra>",
                      **axes)
            )  # fmt: skip
    layout = {
        "xaxis": {"domain": [0, 0.3], "title": {"text": "channel"}, "anchor": "y"},
        "xaxis2": {"domain": [0.38, 1], "title": {"text": "die"}, "anchor": "y2"},
        "yaxis": {"title": {"text": "busy (%)"}, "range": [0, 100]},
        "yaxis2": {"anchor": "x2", "range": [0, 100]},
    }
    return {"data": traces, "layout": layout} if traces else None
