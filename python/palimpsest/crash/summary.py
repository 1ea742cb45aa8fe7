"""The summary of an exploration as one object: `crash.json`."""

from collections.abc import Sequence
from typing import Any

from .. import _core
from .exploring import Explored
from .findings import Finding
from .history import FLUSH, TEXT, WRITE
from .windows import EXHAUSTIVE


def summary(explored: Explored, found: Sequence[Finding]) -> dict[str, Any]:
    """The explored states, and the findings; sizes are bytes, times seconds."""
    history, sizes = explored.history, [window.size for window in explored.found]
    events = history.events
    return {
        "schema_version": 1,
        "version": _core.version(),
        "plan": explored.plan.described(),
        "file_system": explored.kind,
        "recorded": {
            "requests": sum(event.kind != TEXT for event in events),
            "writes": sum(event.kind == WRITE for event in events),
            "flushes": sum(event.kind == FLUSH for event in events),
            "bytes": sum(event.length for event in events if event.kind == WRITE and not event.zeros),
            "lines": history.said_by(len(events)).count(b"\n"),
        },
        "windows": {
            "count": len(sizes),
            "whole": sum(size <= EXHAUSTIVE for size in sizes),
            "largest_writes": max((len(window.writes) for window in explored.found), default=0),
        },
        "explored": {
            "states": len(explored.states),
            "failed": sum(not line["ok"] for line in explored.states),
            "of_the_cache": sum(not line["cut"] for line in explored.states),
            "of_the_drive": sum(bool(line["cut"]) for line in explored.states),
            "duplicates": explored.duplicates,
            "complete": explored.is_complete,
            "flash_operations": explored.operations,
            "cuts": explored.cuts,
            "cuts_in_recovery": explored.cuts_in_recovery,
            "seconds": round(explored.seconds, 3),
            "check_ms": _mean(explored),
        },
        "findings": [finding.to_dict() for finding in found],
    }


def _mean(explored: Explored) -> float | None:
    times = [line["ms"] for line in explored.states]
    return round(sum(times) / len(times), 3) if times else None
