"""Where response times come from: the parts of the requests at each percentile, for a terminal.

`why` of a result has sums over the requests in a histogram's bucket of the percentile; see docs/operations.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import units
from .result import Result

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

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


def _parts_ns(result: Result, kind: str, key: str) -> dict[str, float]:
    """The mean time of each part of the requests at a percentile, in nanoseconds; empty if not recorded."""
    explained = kinds(result).get(kind, {}).get(key)
    return {part: share(explained, part) * explained["latency_ns"] for part in PARTS} if explained else {}


def _signed(nanoseconds: float) -> str:
    """A difference of times: `+120 us`, `-1.20 ms`, or a dash for none."""
    sign = "+" if nanoseconds > 0 else "-"
    return f"{sign}{units.nanoseconds(abs(nanoseconds))}" if nanoseconds else units.ABSENT


def differences(results: Sequence[Result], kind: str, key: str) -> list[tuple[str, list[str]]]:
    """The parts of the difference of each result from the first at a percentile: rows of a name and a cell for each.

    The first row has the whole difference, of which the parts are the sum, the largest first. No rows without at least
    two results with parts.
    """
    found = [_parts_ns(result, kind, key) for result in results]
    if len(found) < 2 or not all(found):
        return []
    base, others = found[0], found[1:]
    by_part = {part: [each[part] - base[part] for each in others] for part in PARTS}
    order = sorted(
        (part for part, of in by_part.items() if any(of)), key=lambda part: -max(abs(each) for each in by_part[part])
    )
    whole = [sum(column) for column in zip(*by_part.values(), strict=True)]
    rows = [("difference", [_signed(each) for each in whole])]
    return rows + [(PARTS[part], [_signed(each) for each in by_part[part]]) for part in order]


def _difference_tables(results: Sequence[Result]) -> Iterator["RenderableType"]:
    """A table of differences at p99 for each kind of request."""
    from rich.table import Table
    from rich.text import Text

    for kind in dict.fromkeys(kind for result in results for kind in kinds(result)):
        rows = differences(results, kind, "p99")
        if rows:
            # A title of a narrow table would be wrapped.
            yield Text(f"{kind}s at p99, difference from {results[0].label}", style="italic")
            table = Table(box=None)
            table.add_column("")
            for result in results[1:]:
                table.add_column(result.label, justify="right")
            for at, (name, cells) in enumerate(rows):
                table.add_row(name, *cells, style="" if at else "bold")
            yield table


def render(results: Sequence[Result]) -> "Group":
    """A table for each kind of request of each result, then the differences from the first result by part."""
    from rich.console import Group
    from rich.table import Table

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
    return Group(*tables, *_difference_tables(results))
