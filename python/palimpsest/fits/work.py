"""Progress of a fit on standard error: a bar at a terminal, elsewhere a line, with the time left from the first run on.

The unit of work is a run, or a pass over the drive where one run covers passes. Each stage states the units that its
steps may take; a step that ends early gives the rest back. The time left is the units left at the rate so far, which
running simulations count in by their own progress: an estimate exists before the first point ends. Counted and timed
runs have different rates. Not modelled: that some points are slower than others.
"""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..engine import Progress
from ..progress import QUIET_S, Board, clock

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_PRECONDITION = 0.5
"""Assumed share of preconditioning in a run, as in a sweep."""


class Work(Board):
    """The work of a fit, done and left; shown unless `enabled` is false."""

    def __init__(self, enabled: bool | None = None, every_s: float | None = None) -> None:
        super().__init__(enabled, every_s)
        self.points = 0
        self._left: dict[tuple[bool, str], float] = {}
        self._step = ""
        self._done = {True: 0.0, False: 0.0}
        self._seconds = {True: 0.0, False: 0.0}
        self._batch: tuple[bool, float, float] | None = None
        self._shares: dict[int, float] = {}
        self._last: dict[int, int] = {}
        self._runs = 0
        self._requests = 0.0
        self._bar: tuple[Bars, TaskID] | None = None

    def expect(self, counted: bool, units: Mapping[str, float]) -> None:
        """Sets the units that steps of a stage may take, in counted or in timed runs."""
        with self._lock:
            self._left |= {(counted, step): most for step, most in units.items()}

    @contextlib.contextmanager
    def step(self, name: str, *kinds: bool) -> Iterator[None]:
        """A step in counted or timed runs, or both; its units that are left at the end are dropped."""
        self._step = name
        yield
        with self._lock:
            for counted in kinds:
                self._left.pop((counted, name), None)

    @contextlib.contextmanager
    def batch(self, counted: bool, units: float, each: float, requests: float) -> Iterator[None]:
        """Runs of together `units` of work, `each` in a run, of `requests` if the simulator does not know how many."""
        with self._lock:
            self._batch, self._shares, self._last = (counted, time.monotonic(), each), {}, {}
            self._requests = requests
        yield
        with self._lock:
            self._seconds[counted] += time.monotonic() - self._batch[1]
            self._done[counted] += units
            self._batch, self._shares = None, {}
            self._spend(counted, units)

    def known(self, counted: bool, units: float) -> None:
        """Drops units of the step that need no run, because an earlier one had the same."""
        with self._lock:
            self._spend(counted, units)

    def _spend(self, counted: bool, units: float) -> None:
        step = (counted, self._step)
        if step in self._left:
            self._left[step] = max(0.0, self._left[step] - units)

    def watch(self, _label: str) -> Progress | None:
        """The callback of the next run of the batch; None if nothing is shown."""
        if not (self._has_bars or self._has_lines):
            return None
        with self._lock:
            self._runs += 1
            number = self._runs
            # The run before of this thread has ended, whatever it said last.
            if (before := self._last.get(threading.get_ident())) is not None:
                self._shares[before] = 1.0
            self._last[threading.get_ident()] = number
        is_preconditioned = False

        def update(phase: str, done: int, expected: int, _simulated_ns: int) -> None:
            nonlocal is_preconditioned
            all_of_them = expected or self._requests
            share = min(1.0, done / all_of_them) if all_of_them else 0.0
            if phase == "precondition":
                is_preconditioned, share = True, _PRECONDITION * share
            elif is_preconditioned:
                share = _PRECONDITION + (1 - _PRECONDITION) * share * (phase == "run")
            with self._lock:
                if self._batch is not None:
                    self._shares[number] = share
                    self._show()

        return update

    def text(self) -> str:
        """Points done, the share of the work, and the time left."""
        running = dict.fromkeys((True, False), 0.0)
        seconds = dict(self._seconds)
        if self._batch is not None:
            counted, began, each = self._batch
            running[counted] = each * sum(self._shares.values())
            seconds[counted] += time.monotonic() - began
        left = dict.fromkeys((True, False), 0.0)
        for (counted, _), units in self._left.items():
            left[counted] += units
        wait = sum(
            max(0.0, left[kind] - running[kind]) * seconds[kind] / came
            for kind in (True, False)
            if (came := self._done[kind] + running[kind]) > 0
        )
        spent = time.monotonic() - self._started
        said = f"fit: {self._step or 'start'}: {self.points} points"
        return said if not wait else f"{said}, {100 * spent / (spent + wait):.0f} %, about {clock(wait)} left"

    def _line(self) -> str:
        with self._lock:
            return self.text()

    def _show(self) -> None:
        """Draws the bar: its length is the time left at first."""
        if not self._has_bars or time.monotonic() - self._started < QUIET_S:
            return
        if self._bar is None:
            self._bars = _new_bars()
            self._bar = self._bars, self._bars.add_task("", total=100.0)
            self._bars.start()
        bars, task = self._bar
        said = self.text()
        share = next((part.removesuffix(" %") for part in said.split(", ") if part.endswith(" %")), "0")
        bars.update(task, description=said, completed=float(share))


def _new_bars() -> "Bars":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=min(30, console.width // 4)))
    return Progress(*columns, console=console, transient=True)
