"""The page of an exploration, `index.html`: findings, and the explored share of all states."""

from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Any

from ..charts.common import Specification, trace
from ..page import Section, chart, details, escape, fill, row, tiles
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
    first, *rest = finding.lines()
    shown = "\n".join(line.strip() for line in rest)
    output = finding.output.strip()
    more = details("Full output of the check", escape(output)) if output not in ("", finding.line) else ""
    return f"<h3>{number}. {escape(first)}</h3><pre>{escape(shown)}</pre>{more}"


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
        trace(2, type="bar", name="windows", x=[f"2^{bits}" for bits in range(most + 1)],
              y=[sizes[bits] for bits in range(most + 1)])
    ]  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "states of a window, at most"}, "type": "category"},
        "yaxis": {"title": {"text": "windows"}, "rangemode": "tozero"},
    }
    return {"data": traces, "layout": layout}


def _tiles(found: dict[str, Any]) -> str:
    explored, recorded = found["explored"], found["recorded"]
    return tiles(
        [
            ("states checked", f"{explored['states']:,}"),
            ("fail", f"{explored['failed']:,}"),
            ("kinds of failures", f"{len(found['findings'])}"),
            ("more had the same bytes", f"{explored['duplicates']:,}"),
            (f"cuts of {explored['flash_operations']:,} flash operations", f"{explored['cuts']:,}"),
            (f"writes, {recorded['flushes']:,} flushes", f"{recorded['writes']:,}"),
        ]
    )


def _settings(found: dict[str, Any]) -> str:
    known = {**found["plan"], "file system": found["file_system"], "seconds": found["explored"]["seconds"]}
    values = ((name, value if isinstance(value, list) else [value]) for name, value in known.items())
    rows = (row((name, each)) for name, several in values for each in several if each not in (None, ""))
    return f'<table class="settings">{"".join(rows)}</table>'


def page(explored: Explored, findings: Sequence[Finding], found: dict[str, Any]) -> str:
    """The page; `found` is the summary of the exploration."""
    under = "A power cut loses data." if findings else "Nothing was lost in the states that were checked."
    if explored.is_complete:
        under += " These are all states that there are."
    sections = [
        Section("findings", "Findings", "".join(map(_finding, count(1), findings)) or "<p>No check failed.</p>"),
        Section("states", "States", chart("by-request", _SAYS)),
        Section("windows", "Windows", chart("by-size", _WINDOWS)),
        Section("explored", "What was explored", _settings(found)),
    ]
    drawn = {"by-request": _by_request(explored), "by-size": _by_size(explored)}
    return fill("Crashes", under, _tiles(found), sections, drawn)
