"""Response times of tenants beside each other, and of each alone; empty for one tenant and in counted runs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .. import tenants as figures
from ..metrics import modelled
from ..result import Result
from .common import Specification, label, trace, unit_of

_Drawn = list[tuple[str, list[str], list[float | None]]]
"""Names of traces, with places and values of their bars."""


def tenants(results: Sequence[Result]) -> Specification | None:
    """The 99th percentile of reads and writes by tenant, and in its run alone; of more runs than tenants by run."""
    most = max(len(figures.busiest(result)) for result in results) if results else 0
    drawn = _by_run(results) if len(results) > most else _by_tenant(results)
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
        "yaxis": {"title": {"text": f"99th percentile ({unit})"}, "type": "log", "range": _range(traces)},
    }
    return {"data": traces, "layout": layout}


def _range(traces: Sequence[Specification]) -> list[float]:
    """Decades of an axis on which the smallest bar has a height, too."""
    values = [value for each in traces for value in each["y"] if value]
    return [math.log10(min(values)) - 0.4, math.log10(max(values)) + 0.1]


def _by_tenant(results: Sequence[Result]) -> _Drawn:
    """Bars at each tenant, for each run and kind of request."""
    drawn: _Drawn = []
    for result in results:
        found = figures.busiest(result)
        names = [str(tenant["name"]) for tenant in found]
        for kind, part, what in _SIDES:
            values = [_p99(tenant, kind, part) for tenant in found]
            if any(values):
                drawn.append((label(result, results, what), names, values))
    return drawn


def _by_run(results: Sequence[Result]) -> _Drawn:
    """Bars at each run, for each tenant and kind of request."""
    found = [{str(tenant["name"]): tenant for tenant in figures.busiest(result)} for result in results]
    drawn: _Drawn = []
    for name in dict.fromkeys(name for tenants in found for name in tenants):
        for kind, part, what in _SIDES:
            values = [_p99(tenants.get(name, {}), kind, part) for tenants in found]
            if any(values):
                drawn.append((f"{name}, {what}", [result.label for result in results], values))
    return drawn


_SIDES = tuple(
    (kind, part, f"{kind}s{' alone' * bool(part)}") for kind in ("read", "write") for part in (None, "alone")
)


def _p99(tenant: Mapping[str, Any], kind: str, part: str | None) -> float | None:
    side = tenant if part is None else tenant.get(part) or {}
    return modelled((side.get("latency_ns") or {}).get(kind), "p99")
