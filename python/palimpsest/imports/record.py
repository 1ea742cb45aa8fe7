"""The outcome of an import: keys of a drive, options of a run, and the fate of every element of the foreign file.

Each element is taken as it is (`same`), taken with a difference (`near`), or not mapped (`lost`), with a reason.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

Value = str | int | bool | list[str]

SAME, NEAR, LOST, ABSENT = "same", "approximated", "not mapped", "absent"
"""The fates of an element. `ABSENT`: the foreign simulator's default is taken."""


@dataclass(frozen=True, slots=True)
class Note:
    """The fate of one element: `theirs` is NAME = VALUE, `ours` the key or option with its value, if any."""

    fate: str
    theirs: str
    ours: str = ""
    why: str = ""
    flow: str = ""

    def line(self) -> str:
        """The note without the flow, as one line."""
        arrow = f" -> {self.ours}" if self.ours else ""
        return f"{self.theirs}{arrow}{f': {self.why}' if self.why else ''}"


@dataclass(slots=True)
class Imported:
    """A drive and a run made of foreign files; `keys` maps each key to the value and the origin of the value."""

    simulator: str
    keys: dict[str, tuple[Value, str]] = field(default_factory=dict)
    job: list[str] = field(default_factory=list)
    workload: str = ""
    options: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    flow: str = ""

    def same(self, theirs: str, *keys: tuple[str, Value]) -> None:
        """Takes an element as it is."""
        self._note(SAME, theirs, keys, "")

    def near(self, theirs: str, why: str, *keys: tuple[str, Value]) -> None:
        """Takes an element with a difference."""
        self._note(NEAR, theirs, keys, why)

    def lost(self, theirs: str, why: str) -> None:
        """Leaves an element out."""
        self.notes.append(Note(LOST, theirs, "", why, self.flow))

    def absent(self, theirs: str) -> None:
        """Names an element that the file lacks, with the default that was taken."""
        self.notes.append(Note(ABSENT, theirs, "", "", self.flow))

    def about(self, fate: str, theirs: str, ours: str, why: str = "") -> None:
        """Names an element that an option or a line of the job file takes."""
        self.notes.append(Note(fate, theirs, ours, why, self.flow))

    def _note(self, fate: str, theirs: str, keys: Iterable[tuple[str, Value]], why: str) -> None:
        ours = []
        for key, value in keys:
            self.keys[key] = (value, theirs)
            ours.append(f"{key} = {_shown(value)}")
        self.notes.append(Note(fate, theirs, ", ".join(ours), why, self.flow))

    def lines(self) -> list[str]:
        """The approximated, unmapped and absent elements for a terminal, grouped, one a line."""
        counts = ", ".join(
            f"{sum(note.fate == fate for note in self.notes)} {fate}" for fate in (SAME, NEAR, LOST, ABSENT)
        )
        lines = [f"{self.simulator}: {counts}"]
        titles = {NEAR: "approximated", LOST: "not mapped", ABSENT: f"absent, with the default of {self.simulator}"}
        for fate, title in titles.items():
            merged: dict[str, list[str]] = {}
            for note in self.notes:
                if note.fate == fate:
                    merged.setdefault(note.line(), []).append(note.flow)
            if merged:
                lines += ["", f"{title}:"]
                lines += [f"  {_of(flows)}{line}" for line, flows in merged.items()]
        return lines


def _shown(value: Value) -> str:
    if isinstance(value, list):
        return f"[{', '.join(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _of(flows: list[str]) -> str:
    named = list(dict.fromkeys(flow for flow in flows if flow))
    return f"{', '.join(named)}: " if named else ""


def size(count: int) -> str:
    """Bytes as a value of a key: `64MiB`, `448B`."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count and count % 1024**power == 0:
            return f"{count // 1024**power}{unit}"
    return f"{count}B"


def time(count: int) -> str:
    """Nanoseconds as a value of a key: `75us`, `3800us`, `13ns`."""
    for factor, unit in ((10**9, "s"), (10**6, "ms"), (10**3, "us")):
        if count and count % factor == 0:
            return f"{count // factor}{unit}"
    return f"{count}ns"


def percent(share: float) -> str:
    """A share of one as a value of a key: `7.526881720430107%`."""
    return f"{round(100 * share, 12):.12f}".rstrip("0").rstrip(".") + "%"


def largest(fits: Callable[[int], bool], wanted: int) -> int:
    """The largest number from 1 to `wanted` that fits; 1 if none does. Smaller numbers than a fitting one must fit."""
    low, high = 1, max(wanted, 1)
    if fits(high):
        return high
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
