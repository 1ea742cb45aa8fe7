"""The first operations of a timeline as lanes of planes and channels, which `assets/gantt.js` draws."""

from collections.abc import Sequence
from typing import Any

from ..result import Result
from .common import part

MOST_DRAWN = 20_000
"""Most operations of a page: some 2 MB."""

_SINCE_PLANNED = (
    "ready_ns", "start_ns", "transfer_start_ns", "transfer_end_ns", "array_start_ns", "array_end_ns", "end_ns",
    "delivered_ns",
)  # fmt: skip
_WORDS = ("kind", "cause", "request_kind")
_AS_THEY_ARE = (
    "request", "channel", "die", "plane", "block", "page", "bytes",
    "suspended_at_ns", "resumed_at_ns", "follows", "behind",
)  # fmt: skip


def timeline(result: Result) -> dict[str, Any] | None:
    """Lanes, operations and requests of a result; None without a timeline.

    `lanes` are in the order of the page: each channel, then the planes of its dies; only those with operations.
    `operation` and `planned_ns` are relative to the previous operation, each other time to `planned_ns` of the same
    operation. Columns of words are places in `words`.
    """
    rows, requests = part(result, "operations"), part(result, "requests")
    if not rows or not rows["operation"]:
        return None
    shown = {name: column[:MOST_DRAWN] for name, column in rows.items()}
    planned: Sequence[int] = shown["planned_ns"]
    places = sorted(set(zip(shown["channel"], shown["die"], shown["plane"], strict=True)))
    lanes: list[dict[str, Any]] = []
    for channel, die, plane in places:
        if not lanes or lanes[-1]["channel"] != channel:
            lanes.append({"name": f"channel {channel}", "channel": channel, "plane": None})
        lanes.append({"name": f"die {die}, plane {plane}", "channel": channel, "plane": plane})
    operations = {name: shown[name] for name in _AS_THEY_ARE}
    words = {word: at for at, word in enumerate(dict.fromkeys(word for name in _WORDS for word in shown[name]))}
    operations |= {name: [words[word] for word in shown[name]] for name in _WORDS}
    for name in ("operation", "planned_ns"):
        column: Sequence[int] = shown[name]
        operations[name] = [now - before for before, now in zip([0, *column], column, strict=False)]
    for name in _SINCE_PLANNED:
        operations[name] = [
            None if time is None else time - since for time, since in zip(shown[name], planned, strict=True)
        ]
    return {
        "ftl": result.label,
        "lanes": lanes,
        "words": list(words),
        "operations": operations,
        "requests": {name: requests.get(name, []) for name in ("request", "kind", "planned_ns", "completed_ns")},
        "left_out": len(rows["operation"]) - len(planned),
    }
