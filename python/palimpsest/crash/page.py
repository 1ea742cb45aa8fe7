"""The page of an exploration, `index.html`: findings, and the explored share of all states."""

from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Any

from ..charts.common import Specification, trace
from ..page import Section, chart, details, escape, fill, records, row, tiles
from ..units import exact_size, nanoseconds, size
from .exploring import Explored
from .findings import Finding
from .windows import EXHAUSTIVE

_BARS = 200
_SAYS = (
    "Checked states by the last request before the power cut. States with equal bytes count once, at their first cut."
)
_WINDOWS = (
    "Windows of cuts with the same durable writes and output, by number of states. Windows of up to "
    f"{EXHAUSTIVE:,} states are explored completely; larger ones are sampled."
)


def _finding(number: int, finding: Finding) -> str:
    facts = "".join(f"<p>{escape(fact[0].upper())}{escape(fact[1:])}.</p>" for fact in finding.facts)
    shown, left = finding.some_writes()
    heads = ("write", "outcome", "size", "at", "of")[: 5 if any(each.owner for each in shown) else 4]
    cells = ((f"request {each.number:,}", each.outcome, each.amount, exact_size(each.offset), each.owner)
             for each in shown)  # fmt: skip
    rows = [each[: len(heads)] for each in cells]
    writes = records(heads, rows, ["failed" if each.is_lost else "" for each in shown]) if rows else ""
    more = f"<p>And {left:,} more writes.</p>" if left else ""
    again = f"<p>{finding.count:,} states fail so. This one again: <code>--state {escape(finding.id)}</code></p>"
    output = finding.output.strip()
    full = details("Full output of the check", escape(output)) if output not in ("", finding.line) else ""
    return f"<h3>{number}. {escape(f'{finding.what}: {finding.line}')}</h3>{facts}{writes}{more}{again}{full}"


def _by_request(explored: Explored) -> Specification:
    width = -(-(len(explored.history.events) + 1) // _BARS)
    right, wrong = Counter[int](), Counter[int]()
    for line in explored.states:
        (right if line["ok"] else wrong)[line["stop"] // width * width] += 1
    places = sorted({*right, *wrong})
    traces = [
        trace(slot, type="bar", name=name, x=places, y=[counts[place] for place in places])
        for slot, name, counts in ((0, "right", right), (7, "fail", wrong))
        if counts
    ]
    layout = {
        "barmode": "stack",
        "xaxis": {"title": {"text": "requests, and lines said, before the cut"}},
        "yaxis": {"title": {"text": "states"}, "rangemode": "tozero"},
    }
    return {"data": traces, "layout": layout}


def _by_size(explored: Explored) -> Specification:
    sizes = Counter((window.size - 1).bit_length() for window in explored.found)
    most = max(sizes, default=0)
    traces = [
        trace(2, type="bar", name="windows", x=[f"{1 << bits:,}" for bits in range(most + 1)],
              y=[sizes[bits] for bits in range(most + 1)])
    ]  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "states of a window, at most"}, "type": "category"},
        "yaxis": {"title": {"text": "windows"}, "rangemode": "tozero"},
    }
    return {"data": traces, "layout": layout}


def _tiles(found: dict[str, Any]) -> str:
    explored, recorded = found["explored"], found["recorded"]
    shown = (
        ("states checked", f"{explored['states']:,}"),
        ("fail", f"{explored['failed']:,}"),
        ("states of the cache", f"{explored['of_the_cache']:,}"),
        ("cuts of the drive", f"{explored['cuts']:,}"),
        ("writes", f"{recorded['writes']:,}"),
        ("flushes", f"{recorded['flushes']:,}"),
        ("written", size(recorded["bytes"])),
    )
    return tiles(shown)


def _answer(explored: Explored, findings: Sequence[Finding], found: dict[str, Any]) -> str:
    """One paragraph: the cuts, the states that fail, and how they fail."""
    counts = found["explored"]
    cuts = f" and {counts['cuts']:,} cuts of the drive" if counts["cuts"] else ""
    said = f"Power cuts of the cache{cuts} leave {counts['states']:,} different states; "
    if findings:
        ways = f"{len(findings)} ways" if len(findings) > 1 else "1 way"
        kinds = "; ".join(f"{each.line or each.what} ({each.count:,})" for each in findings[:_NAMED])
        more = f"; and {len(findings) - _NAMED:,} more" if len(findings) > _NAMED else ""
        said += f"{counts['failed']:,} lose data, in {ways}: {kinds}{more}."
    else:
        said += "none loses data."
    return said + (" These are all states that there are." if explored.is_complete else " Not all states were checked.")


_NAMED = 3


def _settings(found: dict[str, Any]) -> str:
    plan, took = found["plan"], nanoseconds(1e9 * found["explored"]["seconds"])
    sizes = {name: exact_size(plan[name]) for name in ("size", "atomic")}
    known = {**plan, **sizes, "file system": found["file_system"], "time": took}
    values = ((name, value if isinstance(value, list) else [value]) for name, value in known.items())
    rows = (row((name, each)) for name, several in values for each in several if each not in (None, ""))
    return f'<table class="settings">{"".join(rows)}</table>'


def page(explored: Explored, findings: Sequence[Finding], found: dict[str, Any]) -> str:
    """The page; `found` is the summary of the exploration."""
    sections = [
        Section("findings", "Findings", "".join(map(_finding, count(1), findings)) or "<p>No check failed.</p>"),
        Section("states", "States", chart("by-request", _SAYS)),
        Section("windows", "Windows", chart("by-size", _WINDOWS)),
        Section("explored", "What was explored", _settings(found)),
    ]
    drawn = {"by-request": _by_request(explored), "by-size": _by_size(explored)}
    head = f'<p class="answer">{escape(_answer(explored, findings, found))}</p>{_tiles(found)}'
    return fill("Crashes", str(found["plan"]["run"] or ""), head, sections, drawn)
