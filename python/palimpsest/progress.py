"""Progress of runs, on standard error: only at a terminal, and only for runs of more than two seconds.

What is going to take more than five seconds, by its rate so far, shows its bar at once, with the time that is left.
"""

import os
import sys
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from . import units
from .engine import Progress as Callback

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["QUIET_S", "ProgressBoard", "at_terminal"]

QUIET_S = 2.0
"""A run shorter than this shows nothing."""

_LONG_S = 5.0
"""What will take longer than this shows its bar before."""

_RATE_S = 0.25
"""A rate is known after this time."""


class ProgressBoard:
    """A bar for each run: requests done, rate, simulated time, time left.

    Use as a context; `callback(label)` gives what the simulator calls, or None where nothing is to be shown.
    """

    def __init__(self, enabled: bool | None = None) -> None:
        self._enabled = at_terminal() if enabled is None else enabled
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._bars: Progress | None = None
        self._tasks: dict[str, tuple[TaskID, _Stage]] = {}
        self._stages: dict[str, _Stage] = {}

    def __enter__(self) -> "ProgressBoard":
        self._started = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Shows nothing any more: the terminal is for other lines."""
        with self._lock:
            self._enabled = False
            if self._bars is not None:
                self._bars.stop()

    def callback(self, label: str) -> Callback | None:
        """What the simulator calls for the run of this name."""
        if not self._enabled:
            return None

        def update(phase: str, done: int, expected: int, simulated_ns: int) -> None:
            now = time.monotonic()
            with self._lock:
                stage = self._stages.get(label)
                if stage is None or not stage.goes_on(phase, done, expected):
                    stage = self._stages[label] = _Stage(phase, expected, now, done)
                stage.done = done
                if now - self._started >= QUIET_S or stage.left_s(now) >= _LONG_S:
                    self._show(label, stage, simulated_ns)

        return update

    def _show(self, label: str, stage: "_Stage", simulated_ns: int) -> None:
        if not self._enabled:
            return
        if self._bars is None:
            self._bars = _new_bars()
            self._bars.start()
        task, shown = self._tasks.get(label, (None, None))
        total = stage.expected or None
        if task is None or shown is not stage:
            # Stages differ in speed: a new task keeps the rate and the time left correct.
            if task is not None:
                self._bars.remove_task(task)
            task = self._bars.add_task(f"{label} {stage.phase}", completed=stage.done, total=total, simulated="")
            self._tasks[label] = (task, stage)
        simulated = units.nanoseconds(simulated_ns) if simulated_ns else ""
        self._bars.update(task, completed=stage.done, total=total, simulated=simulated)


@dataclass
class _Stage:
    """A part of a run in which requests take alike: a phase, or the filling and the overwriting of preconditioning."""

    phase: str
    expected: int
    began: float
    first: int
    done: int = 0

    def goes_on(self, phase: str, done: int, expected: int) -> bool:
        """Whether a report with these numbers is one of this stage."""
        return (phase, expected) == (self.phase, self.expected) and done >= self.done

    def left_s(self, now: float) -> float:
        """Seconds that are left at the rate so far; 0 where that is not known."""
        elapsed, done = now - self.began, self.done - self.first
        if elapsed < _RATE_S or done <= 0:
            return 0.0
        return max(self.expected - self.done, 0) * elapsed / done


def at_terminal() -> bool:
    """Whether standard error is a terminal that shows a bar."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _new_bars() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Done(ProgressColumn):
        """Requests done and their rate."""

        def render(self, task: Task) -> Text:
            speed = units.count(round(task.speed)) if task.speed else units.ABSENT
            return Text(f"{units.count(int(task.completed))} req, {speed}/s")

    console = Console(stderr=True)
    columns: list[str | ProgressColumn] = [TextColumn("{task.description}"), Done()]
    if console.width >= 70:
        columns.insert(1, BarColumn(bar_width=min(30, console.width - 60)))
    if console.width >= 50:
        columns.append(TextColumn("{task.fields[simulated]}"))
    return Progress(*columns, TimeRemainingColumn(compact=True), console=console, transient=True)
