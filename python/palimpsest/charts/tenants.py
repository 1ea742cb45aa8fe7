"""Response times of tenants beside each other, and of each alone; empty for one tenant and in counted runs."""

from collections.abc import Sequence

from .. import tenants as figures
from ..metrics import modelled
from ..result import Result
from .common import Specification, label, trace, unit_of


def tenants(results: Sequence[Result]) -> Specification | None:
    """The 99th percentile of reads and writes by tenant, and in its run alone."""
    drawn: list[tuple[str, list[str], list[float | None]]] = []
    for result in results:
        found = figures.busiest(result)
        names = [str(tenant["name"]) for tenant in found]
        for kind in ("read", "write"):
            for part, what in ((None, f"{kind}s"), ("alone", f"{kind}s alone")):
                sides = [tenant if part is None else tenant.get(part) or {} for tenant in found]
                times = [(side.get("latency_ns") or {}).get(kind) for side in sides]
                values = [modelled(each, "p99") for each in times]
                if any(values):
                    drawn.append((label(result, results, what), names, values))
    if not drawn:
        return None
    factor, unit = unit_of([value for _, _, values in drawn for value in values])
    traces = [
        trace(slot, type="bar", name=name, x=names, y=[None if value is None else value / factor for value in values],
              hovertemplate=f"%{{x}}, {name}: %{{y:,.4~g}} {unit}<extra></extra>")
        for slot, (name, names, values) in enumerate(drawn)
    ]  # fmt: skip
    layout = {
        "barmode": "group",
        "xaxis": {"type": "category", "automargin": True},
        "yaxis": {"title": {"text": f"99th percentile ({unit})"}, "type": "log"},
    }
    return {"data": traces, "layout": layout}
