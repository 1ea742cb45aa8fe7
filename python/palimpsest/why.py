"""Where response times come from: the parts of the requests at each percentile, for a terminal.

`why` of a result has sums over the requests in a histogram's bucket of the percentile; see docs/operations.md.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table

from . import units
from .result import Result

PARTS = {
    "host": "wait in the host",
    "controller": "controller",
    "link": "host link",
    "map": "map and records",
    "read": "flash reads",
    "retry": "read retries",
    "modify": "read-modify-write",
    "program": "flash programs",
    "suspend": "suspensions",
    "bus": "channel bus",
    "codec": "code",
    "behind_reads": "behind host reads",
    "behind_programs": "behind host programs",
    "collection": "collection",
    "erase": "erases",
    "upkeep": "patrol, parity, rebuild",
    "gather": "until the page is full",
    "earlier": "before the measurement",
}
"""The parts of a latency, from the core, in the order of tables and charts."""

PERCENTILES = {"p50": "p50", "p99": "p99", "p999": "p99.9", "max": "max"}
"""Columns: the key in a result, and the heading."""

Explained = Mapping[str, Any]


def share(explained: Explained, part: str) -> float:
    """The share of a part in the latency of the requests at a percentile."""
    parts: Mapping[str, int] = explained["parts_ns"]
    return parts.get(part, 0) / (sum(parts.values()) or 1)


def kinds(result: Result) -> Mapping[str, Mapping[str, Explained]]:
    """The explained percentiles of each kind of request; empty if the run did not record the slowest requests."""
    return result.get("why") or {}


def render(results: Sequence[Result]) -> Group:
    """A table for each kind of request of each result."""
    tables = []
    for result in results:
        for kind, columns in kinds(result).items():
            name = f"{result.label}: {kind}" if len(results) > 1 else kind
            table = Table(title=f"{name}s, shares of the response time", box=None, title_justify="left")
            table.add_column("")
            for heading in PERCENTILES.values():
                table.add_column(heading, justify="right")
            found = [columns[key] for key in PERCENTILES]
            table.add_row("response time", *(units.nanoseconds(each["latency_ns"]) for each in found), style="bold")
            table.add_row("requests", *(units.count(each["requests"]) for each in found))
            for part, label in PARTS.items():
                shares = [100 * share(each, part) for each in found]
                if any(shares):
                    table.add_row(label, *(f"{each:.1f} %" if each else units.ABSENT for each in shares))
            tables.append(table)
    return Group(*tables)
