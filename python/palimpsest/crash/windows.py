"""The states that a power cut may leave of a recorded program.

The drive caches writes. With a volatile cache (NVMe's VWC) it writes each unit back at any time, newer before older
ones of other units, and loses unwritten data: after a cut a unit holds its contents of the last completed flush, or of
any later write, and units are independent. A write with FUA, and all writes before an acknowledged flush, are durable.
With a protected cache, or without one, acknowledged writes are durable, and each unit of the request in flight is old
or new.

A state is the contents of the disk, with the output of the program so far, because output may be a promise. So the cuts
of a program form windows with equal durable writes and output: only the last cut of a window is explored, because its
states include those of all earlier cuts (each of which loses the later writes). That holds for any program and check,
and so does this: states with the same bytes and output are equal. Nothing else is pruned; windows with too many states
are sampled.
"""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from .history import FLUSH, TEXT, History, place_of

CACHES = ("volatile", "protected", "none")

EXHAUSTIVE = 1 << 12
"""Most states of a window that is explored completely."""

_LONG = 1000


class Window:
    """Cuts with the same durable events, before `start`, and the same output, before `said`; `stop` is the last."""

    def __init__(self, history: History, start: int, stop: int, said: int) -> None:
        self.history, self.start, self.stop, self.said = history, start, stop, said

    @property
    def choices(self) -> dict[int, list[int]]:
        """Units with several possible contents: the events that wrote them, the oldest first."""
        # Programs with much output and few flushes have many long windows, which would take too much memory.
        return self._choices if self.stop - self.start <= _LONG else self._chosen()

    @cached_property
    def _choices(self) -> dict[int, list[int]]:
        return self._chosen()

    def _chosen(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for number in range(self.start, self.stop):
            event = self.history.events[number]
            for unit, _ in event.units:
                known = found.get(unit)
                if known is None:
                    known = found[unit] = [self.history.version_at(unit, self.start)[0]]
                known.append(number)
                if event.durable and number + 1 < self.stop:
                    del known[:-1]
        return {unit: known for unit, known in found.items() if len(known) > 1}

    @cached_property
    def writes(self) -> list[int]:
        """The writes that may be lost in part."""
        return sorted({number for known in self.choices.values() for number in known[1:]})

    @cached_property
    def size(self) -> int:
        """Number of states, equal ones included."""
        return prod(len(known) for known in self.choices.values())


@dataclass(frozen=True, slots=True)
class State:
    """A state after a power cut.

    Events before `stop` have reached the drive, text before `said` was printed. `picks` are units without their last
    contents, each with the event whose contents it holds. `cut` is empty for a state of the cache.
    """

    stop: int
    said: int
    picks: tuple[tuple[int, int], ...]
    cut: tuple[int, ...] = ()


def key_of(history: History, state: State) -> tuple[int, int]:
    """The same for states with the same bytes and output."""
    total = history.sum_at(state.stop)
    for unit, number in state.picks:
        total += place_of(unit, history.digest_of(unit, number))
        total -= place_of(unit, history.version_at(unit, state.stop)[1])
    return total % (1 << 128), state.said


def windows(history: History, cache: str) -> list[Window]:
    """The windows of a program, in order."""
    found: list[Window] = []
    start = said = 0

    def add(first: int, stop: int) -> None:
        new = (first, stop, said)
        if not found or (found[-1].start, found[-1].stop, found[-1].said) != new:
            found.append(Window(history, *new))

    for number, event in enumerate(history.events):
        if event.kind == TEXT:
            add(start if cache == "volatile" else number, number)
            said = number + 1
        elif event.kind == FLUSH:
            if cache == "volatile":
                add(start, number)
                start = number + 1
        elif cache != "volatile":
            add(number, number + 1)
        elif event.durable:
            add(start, number + 1)
    add(start if cache == "volatile" else len(history.events), len(history.events))
    return found


def _state(window: Window, picks: Iterable[tuple[int, int]]) -> State:
    return State(window.stop, window.said, tuple(sorted(picks)))


def _nothing(window: Window) -> Iterator[State]:
    """Nothing is lost, or everything."""
    yield _state(window, ())
    yield _state(window, ((unit, known[0]) for unit, known in window.choices.items()))


def _in_order(window: Window) -> Iterator[State]:
    """The last writes are lost, from each on."""
    for number in reversed(window.writes):
        picks = []
        for unit, known in window.choices.items():
            if known[-1] >= number:
                picks.append((unit, max(version for version in known if version < number or version == known[0])))
        yield _state(window, picks)


def _without(window: Window, lost: set[int]) -> State:
    """Exactly these writes are lost."""
    picks = []
    for unit, known in window.choices.items():
        if known[-1] in lost:
            kept = [version for version in known[1:] if version not in lost]
            picks.append((unit, kept[-1] if kept else known[0]))
    return _state(window, picks)


def _torn(window: Window) -> Iterator[State]:
    """One unit is lost, or the only kept one."""
    for unit, known in window.choices.items():
        yield _state(window, ((unit, known[-2]),))
    for unit in window.choices:
        yield _state(window, ((other, known[0]) for other, known in window.choices.items() if other != unit))


def _all(window: Window) -> Iterator[State]:
    """Every state, in order of lost units."""
    if window.size > EXHAUSTIVE:
        return
    units = list(window.choices)
    for lost in range(len(units) + 1):
        for chosen in itertools.combinations(units, lost):
            older = [[(unit, version) for version in window.choices[unit][:-1]] for unit in chosen]
            for picks in itertools.product(*older):
                yield _state(window, picks)


def _two_lost(window: Window) -> Iterator[State]:
    if window.size > EXHAUSTIVE:
        for pair in itertools.combinations(window.writes[:64], 2):
            yield _without(window, {*pair})


_STAGES: tuple[Callable[[Window], Iterator[State]], ...] = (
    _nothing,
    lambda window: (_without(window, {number}) for number in window.writes),
    _in_order,
    lambda window: (_without(window, {*window.writes} - {number}) for number in window.writes),
    _torn,
    _all,
    _two_lost,
)


def _drawn(window: Window, rng: random.Random) -> State:
    """A random state: some of the writes, or of the units, are lost or torn."""
    share = rng.choice((0.03, 0.1, 0.3, 0.5, 0.7, 0.9))
    if rng.random() < 0.3:
        return _without(window, {number for number in window.writes if rng.random() < share})
    units = window.choices.items()
    return _state(window, ((unit, rng.choice(known[:-1])) for unit, known in units if rng.random() < share))


def states(found: Sequence[Window], seed: int) -> Iterator[State]:
    """The states of all windows, with repetitions: small losses first, small windows completely, then random states."""
    for stage in _STAGES:
        left = [stage(window) for window in found]
        while left:
            turn, left = left, []
            for each in turn:
                state = next(each, None)
                if state is not None:
                    yield state
                    left.append(each)
    large = [window for window in found if window.size > EXHAUSTIVE]
    rng = random.Random(seed)
    while large:
        for window in large:
            yield _drawn(window, rng)
