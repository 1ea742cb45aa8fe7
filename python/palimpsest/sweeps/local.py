"""Engine `local`: worker processes on this machine, as many as there are cores.

Processes instead of threads, so that a point which takes all memory, or ends its process otherwise, fails alone and
does not end the sweep. Such a point is tried once more, after all others.
"""

import collections
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import IO

from .. import states
from .task import Outcome, Task, Watch, encode, lost

_ATTEMPTS = 2
_LOOKED_AT = 500
"""Most waiting points that are searched for the best one for a worker."""
_Waiting = collections.deque[tuple[Task, int]]


class _Worker:
    """One process, and the point that it runs."""

    def __init__(self) -> None:
        self.task: Task | None = None
        self.state: str | None = None
        self.since = time.monotonic()
        self._text = b""
        self._process = subprocess.Popen(
            # -P: modules of the current folder do not count.
            [sys.executable, "-P", "-m", "palimpsest.sweeps.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | states.environment(),
            start_new_session=True,  # Ctrl-C at the terminal must reach the sweep only
        )

    @property
    def output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, task: Task) -> None:
        """Sends a point. Reading the output shows whether the process has ended."""
        self.task = task
        self.state = task["state"]
        self.since = time.monotonic()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(encode(task))
            self._process.stdin.flush()
        except BrokenPipeError:
            pass

    def messages(self) -> list[dict[str, object]] | None:
        """The messages since the last call; None if the process has ended."""
        read = os.read(self.output.fileno(), 1 << 20)
        if not read:
            return None
        *lines, self._text = (self._text + read).split(b"\n")
        return [json.loads(line) for line in lines]

    def end(self) -> str:
        """Ends the process, and returns the reason in words."""
        self._process.kill() if self.task is None else self._process.terminate()
        with self._process:
            for pipe in (self._process.stdin, self._process.stdout):
                try:
                    if pipe is not None:
                        pipe.close()
                except BrokenPipeError:
                    pass
        return self._ending()

    def kill(self) -> None:
        """Ends the process in the middle of its point, even if it does not respond."""
        self.task = None
        self.end()

    def after_death(self) -> str:
        """The reason why the process ended by itself."""
        self._process.wait()
        ending = self._ending()
        self.end()
        return ending

    def _ending(self) -> str:
        code = self._process.returncode
        if code is not None and code < 0:
            memory = ", perhaps for lack of memory; try fewer --jobs" if code == -9 else ""
            return f"the worker process was killed by signal {-code}{memory}"
        return f"the worker process ended with status {code}"


def outcomes(
    tasks: Sequence[Task], address: str | None, jobs: int | None, watch: Watch, point_timeout: float | None = None
) -> Iterator[Outcome]:
    """Runs points and yields each outcome; ends those beyond `point_timeout` seconds, and all work when closed."""
    assert address is None
    waiting: _Waiting = collections.deque((task, 1) for task in tasks)
    attempts: dict[str, int] = {}
    with selectors.DefaultSelector() as selector:

        def add() -> None:
            worker = _Worker()
            selector.register(worker.output, selectors.EVENT_READ, worker)
            give(worker)

        def give(worker: _Worker) -> None:
            worker.task = None
            if waiting:
                others = {key.data.state for key in selector.get_map().values()}
                task, attempts[task["identity"]] = _take(waiting, worker.state, others)
                worker.start(task)
                return
            selector.unregister(worker.output)
            worker.end()

        try:
            for _ in range(min(jobs or cores(), len(tasks))):
                add()
            while selector.get_map():
                for key, _ in selector.select(None if point_timeout is None else 0.1):
                    worker: _Worker = key.data
                    task = worker.task
                    assert task is not None
                    said = worker.messages()
                    if said is None:
                        selector.unregister(worker.output)
                        ending = worker.after_death()
                        if attempts[task["identity"]] < _ATTEMPTS:
                            waiting.append((task, attempts[task["identity"]] + 1))
                        else:
                            yield lost(task, ending)
                        if waiting:
                            add()
                        continue
                    for message in said:
                        if "progress" in message:
                            watch(task["identity"], *message["progress"])  # type: ignore[misc]
                        else:
                            give(worker)
                            states.add_counts(message["states"])  # type: ignore[arg-type]
                            yield message["outcome"]  # type: ignore[misc]
                for worker in late(point_timeout, selector):
                    task = worker.task
                    assert task is not None
                    selector.unregister(worker.output)
                    worker.kill()
                    yield lost(task, f"the point took more than {point_timeout:g} s (--point-timeout)")
                    if waiting:
                        add()
        finally:
            for key in list(selector.get_map().values()):
                key.data.end()


def _take(waiting: _Waiting, state: str | None, others: set[str | None]) -> tuple[Task, int]:
    """The next point: one that continues from the worker's state; else from a state that no worker holds."""

    def rank(place: int) -> tuple[int, int]:
        task, attempt = waiting[place]
        return attempt, 0 if task["state"] == state else 1 + (task["state"] in others)

    place = min(range(min(len(waiting), _LOOKED_AT)), key=rank)
    taken = waiting[place]
    del waiting[place]
    return taken


def late(point_timeout: float | None, selector: selectors.BaseSelector) -> list[_Worker]:
    """The workers whose point exceeds the timeout."""
    workers: list[_Worker] = [key.data for key in selector.get_map().values()]
    now = time.monotonic()
    return [worker for worker in workers if point_timeout is not None and now - worker.since > point_timeout]


def cores() -> int:
    """Number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
