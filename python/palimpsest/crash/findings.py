"""Failures, and the shortest history that leads to each.

States that fail alike (the same check, the same line except for numbers) are one finding, represented by the state with
the earliest cut, then the fewest lost writes. Lost writes of a state of the cache are then restored, one at a time,
while the check still fails: each write that remains lost is needed for the failure.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from typing import Any

from .. import _core
from ..units import exact_size
from .checking import Whose
from .exploring import Checkers, Explored, line_of
from .history import FLUSH, TEXT, WRITE, History
from .store import Store, id_of, state_of
from .windows import EXHAUSTIVE, State, key_of

_MOST_TRIES = 200
_SHOWN = 12


@dataclass(frozen=True)
class Write:
    """A write of the program: `kept` of its changed `units` are in a state; `number` counts requests from 1."""

    number: int
    offset: int
    length: int
    kept: int
    units: int
    zeros: bool = False
    owner: str = ""

    @property
    def is_lost(self) -> bool:
        """Whether any unit is lost."""
        return self.kept < self.units

    @property
    def amount(self) -> str:
        """The length with its unit."""
        return exact_size(self.length) + " of zeros" * self.zeros

    @property
    def outcome(self) -> str:
        """The kept part."""
        if 0 < self.kept < self.units:
            return f"{self.kept:,} of {self.units:,} units kept"
        return "kept" if self.kept else "lost"


@dataclass(frozen=True)
class Finding:
    """A failure, represented by the state `id`; `count` explored states fail so.

    `said` has the last lines of output before the cut, `next` the next line, `writes` those since the last flush; `cut`
    is empty for a state of the cache.
    """

    id: str
    what: str
    line: str
    output: str
    count: int
    requests: int
    said: tuple[str, ...]
    next: str
    writes: tuple[Write, ...] = field(default=())
    cut: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The finding for JSON."""
        return asdict(self)

    @property
    def facts(self) -> list[str]:
        """When the power fails, and the output of the program."""
        when = f"in flash operation {self.cut[0]:,} of the program" if self.cut else "with a volatile cache"
        if len(self.cut) > 1:
            again = ", then ".join(f"{each:,}" for each in self.cut[1:])
            when += f", and again in operation {again} of the recovery"
        made = [f"the power fails {when}, after request {self.requests:,}"]
        if self.said or self.next:
            made.append(f"the program had said: {' | '.join(self.said) or 'nothing'}")
        if self.next:
            made.append(f"and says next: {self.next}")
        if not any(each.is_lost for each in self.writes):
            made.append("no write is lost that had reached the drive: what is missing was not written yet")
        return made

    def some_writes(self) -> tuple[list[Write], int]:
        """Lost and then kept writes, at most some of each, and the number of the others."""
        parts = [[each for each in self.writes if each.is_lost is lost][:_SHOWN] for lost in (True, False)]
        shown = [*parts[0], *parts[1]]
        return shown, len(self.writes) - len(shown)

    def lines(self) -> list[str]:
        """The lines for a terminal."""
        shown, left = self.some_writes()
        writes = [f"{'lost' if each.is_lost else 'kept'}: {_write_line(each)}" for each in shown]
        more = [f"and {left:,} more writes"] if left else []
        last = f"{self.count:,} explored states fail so; this one is {self.id}"
        return [f"{self.what}: {self.line}", *(f"  {line}" for line in (*self.facts, *writes, *more, last))]


def _write_line(write: Write) -> str:
    owner = f" ({write.owner})" if write.owner else ""
    part = f", {write.outcome}" if 0 < write.kept < write.units else ""
    return f"request {write.number:,}, {write.amount} at {exact_size(write.offset)}{owner}{part}"


def _class_of(line: dict[str, Any]) -> tuple[str, str]:
    return line["what"], re.sub(r"0x[0-9a-f]+|[0-9]+", "#", line["line"])


def _shortened(history: History, state: State) -> State:
    """The same bytes and output by the earliest cut that may leave them."""
    held = dict(state.picks)
    units: dict[int, int] = {}
    stop = state.stop
    while stop > state.said:
        event = history.events[stop - 1]
        if event.kind != WRITE:
            break
        # Only a write without any kept unit can be left out.
        if any(held.get(unit, -2) in (-2, stop - 1) for unit, _ in event.units):
            break
        stop -= 1
        for unit, _ in event.units:
            if held.get(unit) == history.version_at(unit, stop)[0]:
                units[unit] = held.pop(unit)
    return State(stop, state.said, tuple(sorted(held.items())), state.cut)


class _Shrinking:
    def __init__(self, explored: Explored, checkers: Checkers, store: Store) -> None:
        self._history, self._checkers, self._store = explored.history, checkers, store
        self._known = {line["id"]: line for line in explored.states}
        self._explored = explored

    def shrunk(self, line: dict[str, Any]) -> dict[str, Any]:
        """The line of the smallest found state that fails in the same way."""
        state, tries = _shortened(self._history, state_of(line)), 0
        wanted = _class_of(line)
        by_write: dict[int, list[tuple[int, int]]] = {}
        for unit, number in state.picks:
            by_write.setdefault(self._history.version_at(unit, state.stop)[0], []).append((unit, number))
        groups = [by_write[number] for number in sorted(by_write)]
        groups += [[pick] for group in groups if len(group) > 1 for pick in group]
        best = line
        for group in groups:
            left = tuple(pick for pick in state.picks if pick not in group)
            if len(left) == len(state.picks) or tries == _MOST_TRIES:
                continue
            tries += 1
            smaller = State(state.stop, state.said, left, ())
            found = self._line(smaller)
            if not found["ok"] and _class_of(found) == wanted:
                state, best = smaller, found
        return {**best, "stop": state.stop, "picks": [list(pick) for pick in state.picks]}

    def _line(self, state: State) -> dict[str, Any]:
        known = self._known.get(id_of(key_of(self._history, state)))
        if known is None:
            known = line_of(self._history, state, self._checkers.do([state])[0])
            self._known[known["id"]] = known
            self._store.add_states([known])
            self._explored.states.append(known)
        return known


def findings(explored: Explored, store: Store, checkers: Checkers | None) -> list[Finding]:
    """The failures, the earliest first; reduced to the shortest history if checkers are given."""
    classes: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in explored.states:
        if not line["ok"]:
            classes.setdefault(_class_of(line), []).append(line)

    def rank(line: dict[str, Any]) -> tuple[int, int]:
        state = _shortened(explored.history, state_of(line))
        return state.stop, len(state.picks)

    made = []
    for lines in classes.values():
        first = min(lines, key=rank)
        count = len(lines)
        if checkers is not None and not first["cut"]:
            first = _Shrinking(explored, checkers, store).shrunk(first)
        made.append(describe(explored.history, first, count))
    made.sort(key=lambda finding: finding.requests)
    return made if checkers is None or explored.kind is None else _named(made, checkers)


def _named(found: list[Finding], checkers: Checkers) -> list[Finding]:
    """The findings with the files whose bytes are written."""
    places = {write.offset for finding in found for write in finding.writes}
    if not places:
        return found
    (names,) = checkers.do([Whose(tuple(sorted(places)))])
    named = []
    for finding in found:
        writes = tuple(replace(write, owner=names.get(write.offset, "")) for write in finding.writes)
        named.append(replace(finding, writes=writes))
    return named


def describe(history: History, line: dict[str, Any], count: int) -> Finding:
    """A failing state as a finding."""
    state = _shortened(history, state_of(line))
    said = history.said_by(state.said).decode(errors="replace").splitlines()
    after = next((event.text for event in history.events[state.said :] if event.kind == TEXT), b"")
    held = dict(state.picks)
    flush = state.stop
    while flush and history.events[flush - 1].kind != "flush":
        flush -= 1
    first = min([flush, *(number + 1 for number in held.values() if number >= 0)])
    numbers = list(accumulate(int(event.kind != TEXT) for event in history.events[: state.stop]))
    writes = []
    for number in range(first, state.stop):
        event = history.events[number]
        if event.kind == WRITE and event.units:
            there = sum(held.get(unit, number) >= number for unit, _ in event.units)
            writes.append(Write(numbers[number], event.offset, event.length, there, len(event.units), event.zeros))
    return Finding(
        id=line["id"], what=line.get("what", ""), line=line.get("line", ""), output=line.get("output", ""),
        count=count, requests=numbers[-1] if numbers else 0, said=tuple(said[-3:]),
        next=after.decode(errors="replace").splitlines()[0] if after.strip() else "", writes=tuple(writes),
        cut=state.cut,
    )  # fmt: skip


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
