"""Explores the states of a program, on all cores: the choice and order of states, and the limits.

Work is done in batches: some states of the cache, and some cuts of the drive, whose states follow. Batches are fixed in
advance, and kept in order, so the explored states do not depend on the number of cores; only a time limit, or an
interrupt, ends at another place. A state with the bytes and output of an earlier state is not checked.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from ..errors import InputError
from .checking import Verdict, Whose, check_tasks
from .commands import Plan
from .cuts import Cut, Cuts, again, smallest, spread
from .history import History
from .namespaces import Enclosed
from .recording import record
from .store import Store, id_of, state_of
from .windows import EXHAUSTIVE, State, Window, key_of, states, windows

_STATES, _CUTS = 64, 32
_LONG_SCRIPT = 4000
"""Requests of a script above which a batch has fewer cuts, because each cut replays all requests."""
_MOST_SEEN = 4096
"""After this number of drawn states in a row that are duplicates, no more are drawn."""

_KILLED = "a process that checks states was killed; expected to go on with the same --out"

Say = Callable[[str], None]
Progress = Callable[[int, int, int], None]


@dataclass
class Limits:
    """The limits: checked states of the folder, and seconds, or None."""

    states: int = 1000
    seconds: float | None = None


@dataclass
class Explored:
    """The explored states: a line for each in `states`, and the number of `duplicates` of these.

    `found` are the windows of the program, `kind` that of its file system, `operations` its flash operations.
    """

    plan: Plan
    history: History
    found: list[Window]
    kind: str | None
    states: list[dict[str, Any]] = field(default_factory=list)
    duplicates: int = 0
    cuts: int = 0
    cuts_in_recovery: int = 0
    operations: int = 0
    is_complete: bool = False
    seconds: float = 0.0


class Checkers:
    """Enclosed processes that check states, one for each job."""

    def __init__(self, jobs: int, plan: Plan, history: History, store: Store, cuts: Cuts | None) -> None:
        def body(link: Connection) -> None:
            check_tasks(plan, history, store.kind, store.work, cuts, link)

        self._all: list[Enclosed] = []
        try:
            for _ in range(jobs):
                self._all.append(Enclosed(store.work, body))
            for each in self._all:
                each.receive(_KILLED)
        except BaseException:
            self.end()
            raise

    def do(
        self,
        tasks: Sequence[State | Cut | Whose],
        until: float | None = None,
        done: Callable[[int], None] | None = None,
    ) -> list[Any]:
        """The outcome of each task, in order; fewer after the time limit."""
        results: list[Any] = [None] * len(tasks)
        by_link = {each.connection: each for each in self._all}
        idle, doing, following = list(by_link), dict[Connection, int](), 0
        left = len(tasks)
        while left:
            over = until is not None and time.monotonic() > until
            while idle and following < len(tasks) and not over:
                link = idle.pop()
                link.send(tasks[following])
                doing[link] = following
                following += 1
            if not doing:
                break
            for ready in wait(list(doing), timeout=0.2):
                assert isinstance(ready, Connection)
                number = doing.pop(ready)
                results[number] = by_link[ready].receive(_KILLED)
                idle.append(ready)
                left -= 1
                if done is not None:
                    done(len(tasks) - left)
        return results[:following]

    def end(self) -> None:
        """Ends all processes."""
        for each in self._all:
            each.end()


def prepare(plan: Plan, store: Store, say: Say) -> tuple[Plan, History]:
    """Records the program, unless recorded, and reads the record. Raises InputError if recording fails."""
    sized = plan if plan.ssd is None else smallest(plan)
    if not store.is_recorded:
        begin = time.monotonic()
        kind = record(plan, store.work, store.log, say)
        store.recorded(plan, kind)
        say(f"recorded the program in {time.monotonic() - begin:.3g} s")
    history = History.read(store.log, plan.size, plan.unit)
    if not any(event.units for event in history.events):
        raise InputError("--run: the program wrote nothing to the disk; expected one that writes to its disk")
    return sized, history


def explore_in(
    plan: Plan, store: Store, limits: Limits, jobs: int, say: Say, progress: Progress | None = None
) -> tuple[Explored, Checkers]:
    """Explores the states of a program; the caller must end the checkers. Raises InputError for a useless check."""
    begin = time.monotonic()
    sized, history = prepare(plan, store, say)
    cuts = None if sized.ssd is None else Cuts(sized, history)
    explored = Explored(sized, history, windows(history, plan.cache), store.kind)
    explored.operations = 0 if cuts is None else cuts.operations
    checkers = Checkers(jobs, sized, history, store, cuts)
    try:
        _Exploration(explored, store, limits, checkers, cuts, progress).explore(begin)
    except KeyboardInterrupt:
        checkers.end()
        explored.seconds = time.monotonic() - begin
        raise Interrupted(explored) from None
    except BaseException:
        checkers.end()
        raise
    explored.seconds = time.monotonic() - begin
    return explored, checkers


class Interrupted(KeyboardInterrupt):
    """The user ended the exploration; explored states are kept."""

    def __init__(self, explored: Explored) -> None:
        super().__init__()
        self.explored = explored


@dataclass
class _Exploration:
    explored: Explored
    store: Store
    limits: Limits
    checkers: Checkers
    cuts: Cuts | None
    progress: Progress | None

    def __post_init__(self) -> None:
        self.seen: set[tuple[int, int]] = set()
        self.failed = 0
        self.tried = self.store.cuts()

    def explore(self, begin: float) -> None:
        explored, history, limits = self.explored, self.explored.history, self.limits
        until = None if limits.seconds is None else begin + limits.seconds
        for line in self.store.states():
            self.seen.add(key_of(history, state_of(line)))
            explored.states.append(line)
            self.failed += not line["ok"]
        # A cut is repeated if its state was not checked.
        checked = {line["id"] for line in explored.states}
        self.tried = {cut: line for cut, line in self.tried.items() if line["id"] is None or line["id"] in checked}
        self._count_cuts()
        self._try_check()
        source = self._sources()
        while len(explored.states) < limits.states and (until is None or time.monotonic() < until):
            batch = next(source, None)
            if batch is None:
                explored.is_complete = all(window.size <= EXHAUSTIVE for window in explored.found)
                return
            chosen, cuts = batch
            self._check([*chosen, *self._left_by(cuts, until)] if cuts else chosen, until)

    def _count_cuts(self) -> None:
        self.explored.cuts = len(self.tried)
        self.explored.cuts_in_recovery = sum(len(cut) > 1 for cut in self.tried)

    def _try_check(self) -> None:
        """The check must accept the state before the program, and the state at the end."""
        history = self.explored.history
        stop = len(history.events)
        ends = [(State(0, 0, ()), "before the program ran"), (State(stop, history.last_said(stop), ()), "at its end")]
        fresh = [each for each in ends if key_of(history, each[0]) not in self.seen]
        verdicts = self.checkers.do([state for state, _ in fresh])
        for (state, when), verdict in zip(fresh, verdicts, strict=True):
            if not verdict.ok:
                what = f"the check fails on the state {when}, where nothing was lost: {verdict.line}"
                raise InputError(f"--check {verdict.what!r}: {what}")
            self._keep([state], [verdict])
            self.seen.add(key_of(history, state))

    def _sources(self) -> Iterator[tuple[list[State], list[Cut]]]:
        """Batches of new states, and of new cuts."""
        history = self.explored.history
        of_cache: Iterator[State] | None = states(self.explored.found, self.explored.plan.seed)
        count = 0 if self.cuts is None else self.cuts.operations
        first = iter(spread(count))
        most_cuts = _CUTS if self.cuts is None else max(2, min(_CUTS, _CUTS * _LONG_SCRIPT // self.cuts.steps))
        self.deeper: list[Cut] = [deeper for cut, line in self.tried.items() for deeper in again(cut, line["recovery"])]
        while True:
            chosen: list[State] = []
            seen_in_a_row = 0
            while of_cache is not None and len(chosen) < _STATES:
                state = next(of_cache, None)
                if state is None or seen_in_a_row > _MOST_SEEN:
                    of_cache = None
                    break
                key = key_of(history, state)
                if key in self.seen:
                    self.explored.duplicates += 1
                    seen_in_a_row += 1
                    continue
                seen_in_a_row = 0
                self.seen.add(key)
                chosen.append(state)
            cuts: list[Cut] = []
            while len(cuts) < most_cuts:
                cut = self.deeper.pop(0) if self.deeper and len(cuts) % 2 else None
                if cut is None:
                    number = next(first, None)
                    cut = (number,) if number is not None else self.deeper.pop(0) if self.deeper else None
                if cut is None:
                    break
                if cut not in self.tried:
                    cuts.append(cut)
            if not chosen and not cuts:
                return
            yield chosen, cuts

    def _left_by(self, cuts: list[Cut], until: float | None) -> list[State]:
        """The new states that cuts leave."""
        history, new, lines = self.explored.history, list[State](), list[dict[str, Any]]()
        before = len(self.explored.states)
        for cut, left in zip(cuts, self.checkers.do(cuts, until, lambda _: self._report(before)), strict=False):
            line: dict[str, Any] = {"cut": list(cut), "recovery": left.recovery, "id": None}
            if left.state is not None:
                key = key_of(history, left.state)
                line["id"] = id_of(key)
                if key in self.seen:
                    self.explored.duplicates += 1
                else:
                    self.seen.add(key)
                    new.append(left.state)
            self.tried[cut] = line
            self.deeper += again(cut, left.recovery)
            lines.append(line)
        self.store.add_cuts(lines)
        self._count_cuts()
        return new

    def _check(self, chosen: list[State], until: float | None) -> None:
        chosen = chosen[: self.limits.states - len(self.explored.states)]
        before = len(self.explored.states)

        self._keep(chosen, self.checkers.do(chosen, until, lambda count: self._report(before + count)))

    def _report(self, states: int) -> None:
        if self.progress is not None:
            self.progress(states, self.limits.states, self.failed)

    def _keep(self, chosen: Sequence[State], verdicts: Sequence[Verdict]) -> None:
        lines = [line_of(self.explored.history, *each) for each in zip(chosen, verdicts, strict=False)]
        self.store.add_states(lines)
        self.explored.states += lines
        self.failed += sum(not line["ok"] for line in lines)


def line_of(history: History, state: State, verdict: Verdict) -> dict[str, Any]:
    """The entry of a state in the file of states."""
    line: dict[str, Any] = {
        "id": id_of(key_of(history, state)), "stop": state.stop, "said": state.said,
        "picks": [list(pick) for pick in state.picks], "cut": list(state.cut), "ok": verdict.ok,
        "ms": round(verdict.seconds * 1000, 2),
    }  # fmt: skip
    if not verdict.ok:
        line |= {"what": verdict.what, "line": verdict.line, "output": verdict.output[-4000:]}
    return line
