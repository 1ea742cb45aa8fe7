"""Engine `dask`: the workers of a running cluster, through its scheduler.

Dask moves the points of a lost worker to others, and gives a point up after four lost workers
(`distributed.scheduler.allowed-failures`). A point has no effect except its outcome, so running a point twice is
harmless; each outcome is taken once. An outcome may also be lost with the worker that computed it, while the scheduler
lives: such a point runs again, as often as Dask would move it. When the sweep ends early or is killed, running points
end within a second.
"""

import asyncio
import contextlib
import logging
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from distributed import Client, as_completed, get_worker
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker

from ..errors import Error, InputError
from .cluster import PATIENCE_S, answers
from .task import Outcome, Task, Watch, lost, run_point

_GONE = (CommClosedError, TimeoutError, CancelledError, asyncio.CancelledError)
"""Errors of a lost outcome, or of a lost scheduler."""
_MOST_MOVES = 3


class _Unwanted(BaseException):
    """The point was cancelled."""


def _run(task: Task) -> Outcome:
    """Runs a point on a worker."""
    worker = get_worker()
    key = worker.get_current_task()

    def progress(*_: object) -> None:
        # The worker's state avoids ten requests a second to the scheduler.
        state = worker.state.tasks.get(key)
        if state is None or state.state in ("cancelled", "released"):
            raise _Unwanted

    try:
        return run_point(task, progress)
    except _Unwanted:
        return lost(task, "cancelled")


def outcomes(tasks: Sequence[Task], address: str | None, jobs: int | None, _watch: Watch) -> Iterator[Outcome]:
    """Runs points on a cluster and yields outcomes; ends all work when closed. Raises InputError, or Error later."""
    with _without_tracebacks():
        yield from _outcomes(_connect(address), tasks, address, jobs)


@contextlib.contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Keeps Dask from writing tracebacks of errors that are reported in one line."""
    loggers = [logging.getLogger(f"distributed.{name}") for name in ("client", "core", "comm", "utils")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _outcomes(client: Client, tasks: Sequence[Task], address: str | None, jobs: int | None) -> Iterator[Outcome]:
    name = uuid.uuid4().hex[:8]  # keeps tasks of other sweeps apart
    waiting = iter(tasks)
    running: dict[Any, Task] = {}
    runs: Counter[str] = Counter()

    def submit(task: Task | None) -> list[Any]:
        if task is None:
            return []
        identity = str(task["identity"])
        future = client.submit(_run, task, key=f"palimpsest-{name}-{identity}-{runs[identity]}", pure=False)
        runs[identity] += 1
        running[future] = task
        return [future]

    try:
        first = [future for _ in range(jobs or len(tasks)) for future in submit(next(waiting, None))]
        finished = as_completed(first, loop=client.loop, raise_errors=False)
        for future in finished:
            task = running.pop(future)
            try:
                outcome = _outcome(future, task)
            except _GONE:
                if not answers(str(address)):
                    raise
                times = runs[str(task["identity"])]
                if times <= _MOST_MOVES:
                    finished.update(submit(task))
                    continue
                outcome = lost(task, f"the worker with the outcome was lost {times} times, perhaps for lack of memory")
            finished.update(submit(next(waiting, None)))
            yield outcome
    except _GONE as error:
        raise Error(f"--address {address}: the scheduler is gone; finished points are kept") from error
    finally:
        with contextlib.suppress(Exception):
            client.cancel(list(running), force=True)
        client.close(timeout=5)


def _connect(address: str | None) -> Client:
    wrong = f"--address {address}: no Dask scheduler answers there; expected one such as tcp://host:8786"
    if not answers(str(address)):
        raise InputError(wrong)
    try:
        return Client(address, timeout=PATIENCE_S, set_as_default=False, direct_to_workers=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise InputError(wrong) from error


def _outcome(future: Any, task: Task) -> Outcome:  # noqa: ANN401 - a future of dask, which has no types
    if future.status == "finished":
        outcome: Outcome = future.result()
        return outcome
    if future.status in ("cancelled", "lost"):
        raise CommClosedError
    error = future.exception()
    if isinstance(error, CancelledError):  # after reading the status
        raise error
    if isinstance(error, ModuleNotFoundError):
        raise Error(f"a worker cannot run points: {error}; expected palimpsest installed on every worker")
    if isinstance(error, KilledWorker):
        return lost(task, f"{error.allowed_failures + 1} workers died with it, perhaps for lack of memory")
    return lost(task, f"the worker failed: {type(error).__name__}: {error}")
