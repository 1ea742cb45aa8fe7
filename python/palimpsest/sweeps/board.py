"""Progress of a sweep, on standard error: points done, time left, and a bar for each running point at a terminal.

Elsewhere a line every ten seconds has the points done and the time left. The time left is computed from the points done
since the start of the sweep; running points count by their progress.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..progress import QUIET_S, Board, clock
from .task import Outcome

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LONGEST_LABEL = 60
_PRECONDITION = 0.5
"""Assumed share of preconditioning in the progress of a point, whose time is not known in advance."""


class SweepBoard(Board):
    """A bar for the sweep, and one for each running point; `labels` names points by identity, `what` all of them."""

    def __init__(
        self, enabled: bool | None, labels: Mapping[str, str], every_s: float | None = None, what: str = "points"
    ) -> None:
        super().__init__(enabled, every_s)
        self._labels, self._what = dict(labels), what
        self._whole: TaskID | None = None
        self._running: dict[str, tuple[TaskID | None, float]] = {}
        self._preconditioned: set[str] = set()
        self._total = self._done = self._failed = self._before = 0

    def add(self, labels: Mapping[str, str], before: int) -> None:
        """Adds points to run, by identity, and the number of those finished before."""
        self._labels |= labels
        self._total += len(labels)
        self._before += before

    def begin(self, total: int, before: int) -> None:
        """Sets the number of points to run, and of those finished before."""
        self._total, self._before = total, before
        self._started = time.monotonic()

    def watch(self, identity: str, phase: str, done: int, expected: int, simulated_ns: int) -> None:  # noqa: ARG002
        """Records the progress of a point."""
        if not (self._has_bars or self._has_lines):
            return
        of_phase = min(1.0, done / expected) if expected else 0.0
        with self._lock:
            if phase == "precondition":
                self._preconditioned.add(identity)
                share = _PRECONDITION * of_phase
            else:
                before = _PRECONDITION if identity in self._preconditioned else 0.0
                share = before + (1 - before) * of_phase * (phase == "run")
            self._running[identity] = (self._running.get(identity, (None, 0.0))[0], share)
            self._show(identity)

    def finished(self, outcome: Outcome) -> None:
        """Records the outcome of a point."""
        if not (self._has_bars or self._has_lines):
            return
        with self._lock:
            self._done += 1
            self._failed += outcome["status"] != "done"
            task, _ = self._running.pop(outcome["identity"], (None, 0.0))
            if task is not None and self._bars is not None:
                self._bars.remove_task(task)
            self._show(None)

    def _came(self) -> float:
        return self._done + sum(share for _, share in self._running.values())

    def _line(self) -> str:
        with self._lock:
            if not self._total:
                return f"{self._what}: preparing"
            elapsed, came = time.monotonic() - self._started, self._came()
            return f"{self._what}: {self._said(elapsed, came)} ({100 * came / self._total:.0f} %)"

    def _show(self, identity: str | None) -> None:
        elapsed = time.monotonic() - self._started
        if elapsed < QUIET_S or not self._has_bars:
            return
        if self._bars is None:
            self._bars = _new_bars()
            self._whole = self._bars.add_task(self._what, total=self._total, said="")
            self._bars.start()
        assert self._whole is not None
        came = self._came()
        self._bars.update(self._whole, completed=came, total=self._total, said=self._said(elapsed, came))
        if identity is not None:
            task, share = self._running[identity]
            if task is None:
                label = self._labels.get(identity, identity)
                label = label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1]}…"
                task = self._bars.add_task(f"  {label}", total=1.0, said="")
                self._running[identity] = (task, share)
            self._bars.update(task, completed=share)

    def _said(self, elapsed: float, came: float) -> str:
        parts = [f"{self._done}/{self._total}"]
        parts += [f"{self._failed} failed"] if self._failed else []
        parts += [f"{self._before} before"] if self._before else []
        if came > 0:
            parts.append(f"ETA {clock(elapsed * (self._total - came) / came)}")
        return ", ".join(parts)


def _new_bars() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn

    console = Console(stderr=True)
    columns: list[str | ProgressColumn] = [TextColumn("{task.description}", markup=False)]
    if console.width >= 60:
        columns.append(BarColumn(bar_width=min(30, console.width // 4)))
    columns += [TextColumn("{task.percentage:3.0f} %"), TextColumn("{task.fields[said]}", markup=False)]
    return Progress(*columns, console=console, transient=True)
