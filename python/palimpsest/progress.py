"""Progress of runs, on standard error: bars at a terminal, elsewhere a line every ten seconds.

Runs of less than two seconds show no bar. A run that will take more than five seconds, by its rate so far, shows its
bar at once, with the time left. A thread prints the lines, so that a phase without reports prints lines too.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from . import units
from .engine import Progress as Callback

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

QUIET_S = 2.0
"""A run shorter than this shows nothing."""

_LONG_S = 5.0
"""A run predicted to take longer shows its bar at once."""

_RATE_S = 0.25
"""The rate is unknown before this time."""

LINE_EVERY_S = 10.0
"""Seconds between two lines of progress without a terminal, and before the first."""

_UNITS = {"precondition": "units", "check": "cases"}
"""Counted things of a phase; other phases count requests."""

_SHOWN = 3
"""Runs that a line describes."""

_PATIENCE_S = 1.0
"""Most seconds that `end` waits for a line without a reader."""


class Lines:
    """Prints a line of progress every `every_s` seconds (default `LINE_EVERY_S`), from a thread."""

    def __init__(self, line: Callable[[], str], every_s: float | None = None) -> None:
        self._line = line
        self._every_s = LINE_EVERY_S if every_s is None else every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._print, name="progress", daemon=True)
        self._thread.start()

    def _print(self) -> None:
        while not self._ended.wait(self._every_s):
            # The work must continue if the reader of standard error has gone.
            with contextlib.suppress(OSError, ValueError):
                # Past the buffer of standard error, whose lock a blocked thread would hold at the end.
                os.write(sys.stderr.fileno(), f"{self._line()}\n".encode(errors="replace"))

    def end(self) -> None:
        """Stops the lines."""
        self._ended.set()
        self._thread.join(_PATIENCE_S)


class Board:
    """Progress on standard error, a context: bars (None: at a terminal), or a line every `every_s` seconds."""

    def __init__(self, enabled: bool | None, every_s: float | None) -> None:
        self._has_bars = at_terminal() if enabled is None else enabled
        self._has_lines = enabled is None and not self._has_bars and sys.stderr is not None
        self._every_s = every_s
        self._lines: Lines | None = None
        self._bars: Progress | None = None
        self._lock = threading.Lock()
        self._started = time.monotonic()

    def _line(self) -> str:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        if self._has_lines:
            self._lines = Lines(self._line, self._every_s)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Stops all output, so that standard error is free for other lines."""
        with self._lock:
            self._has_bars = self._has_lines = False
            if self._bars is not None:
                self._bars.stop()
        if self._lines is not None:
            self._lines.end()
            self._lines = None


class ProgressBoard(Board):
    """A bar for each run at a terminal, else lines that begin with `headline`."""

    def __init__(self, enabled: bool | None = None, every_s: float | None = None) -> None:
        super().__init__(enabled, every_s)
        self._running: dict[int, tuple[str, _Stage]] = {}
        self._begun = 0
        self.headline = ""
        self._tasks: dict[str, tuple[TaskID, _Stage]] = {}
        self._stages: dict[str, _Stage] = {}

    def say(self, text: str) -> None:
        """Prints a line on standard error, above the bars if there are any."""
        with self._lock:
            if self._bars is not None:
                self._bars.console.print(text, markup=False, highlight=False)
                return
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr, flush=True)

    def callback(self, label: str) -> Callback | None:
        """The callback for the simulator of the run of this name; None if nothing is shown."""
        if self._has_lines:
            return self._of_lines(label)
        if not self._has_bars:
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

    def _of_lines(self, label: str) -> Callback:
        """As `callback`, for lines: labels may repeat, as in the runs of a paper."""
        with self._lock:
            self._begun += 1
            number = self._begun

        def update(phase: str, done: int, expected: int, simulated_ns: int) -> None:  # noqa: ARG001
            now = time.monotonic()
            with self._lock:
                _, stage = self._running.get(number, (label, None))
                if stage is None or not stage.goes_on(phase, done, expected):
                    stage = _Stage(phase, expected, now, done)
                stage.done, stage.seen = done, now
                self._running[number] = (label, stage)

        return update

    def _line(self) -> str:
        """The current line: the runs that reported since the last line."""
        now = time.monotonic()
        recent = now - max(2 * (LINE_EVERY_S if self._every_s is None else self._every_s), 1.0)
        with self._lock:
            self._running = {number: each for number, each in self._running.items() if each[1].seen > recent}
            said = [f"{label} {stage.text(now)}" for label, stage in self._running.values()]
        more = [f"{len(said) - _SHOWN} more runs"] if len(said) > _SHOWN else []
        begun = [f"{self._begun} runs begun"] if self._begun > _SHOWN else []
        head = [self.headline] if self.headline else []
        parts = [*head, *begun, *said[:_SHOWN], *more]
        return "; ".join(parts) if parts else f"at work for {clock(now - self._started)}"

    def _show(self, label: str, stage: "_Stage", simulated_ns: int) -> None:
        if not self._has_bars:
            return
        if self._bars is None:
            self._bars = _new_bars()
            self._bars.start()
        task, shown = self._tasks.get(label, (None, None))
        total = stage.expected or None
        if task is None or shown is not stage:
            # A new task keeps the rate and the time left correct, because stages differ in speed.
            if task is not None:
                self._bars.remove_task(task)
            task = self._bars.add_task(f"{label} {stage.phase}", completed=stage.done, total=total, simulated="")
            self._tasks[label] = (task, stage)
        simulated = units.nanoseconds(simulated_ns) if simulated_ns else ""
        self._bars.update(task, completed=stage.done, total=total, simulated=simulated)


@dataclass
class _Stage:
    """A part of a run with requests of one rate: a phase, or filling and overwriting of the precondition."""

    phase: str
    expected: int
    began: float
    first: int
    done: int = 0
    seen: float = 0.0

    def goes_on(self, phase: str, done: int, expected: int) -> bool:
        """Whether a report with these numbers belongs to this stage."""
        return (phase, expected) == (self.phase, self.expected) and done >= self.done

    def left_s(self, now: float) -> float:
        """Seconds left at the rate so far; 0 if unknown."""
        elapsed, done = now - self.began, self.done - self.first
        if elapsed < _RATE_S or done <= 0:
            return 0.0
        return max(self.expected - self.done, 0) * elapsed / done

    def text(self, now: float) -> str:
        """Phase, requests done of all, percent, rate and time left, as far as known."""
        counted = _UNITS.get(self.phase, "requests")
        elapsed, done = now - self.began, self.done - self.first
        said = [f"{self.phase}: {self.done:,} {counted}"]
        if self.expected:
            said = [
                f"{self.phase}: {self.done:,} of {self.expected:,} {counted} ({100 * self.done / self.expected:.0f} %)"
            ]
        if elapsed >= _RATE_S and done > 0:
            said.append(f"{units.count(round(done / elapsed))}/s")
            left = self.left_s(now)
            said += [f"{clock(left)} left"] if self.expected else []
        return ", ".join(said)


def clock(seconds: float) -> str:
    """A time in minutes and seconds: `0:07`, `1:02:07`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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
            counted = "cases" if task.description.endswith(" check") else "req"
            return Text(f"{units.count(int(task.completed))} {counted}, {speed}/s")

    console = Console(stderr=True)
    columns: list[str | ProgressColumn] = [TextColumn("{task.description}"), Done()]
    if console.width >= 70:
        columns.insert(1, BarColumn(bar_width=min(30, console.width - 60)))
    if console.width >= 50:
        columns.append(TextColumn("{task.fields[simulated]}"))
    return Progress(*columns, TimeRemainingColumn(compact=True), console=console, transient=True)
