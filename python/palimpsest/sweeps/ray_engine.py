"""Engine `ray`: a running Ray cluster.

Ray restarts a point up to three times after losing its worker. A point has no effect except its outcome, so running a
point twice is harmless; each outcome is taken once. When the sweep ends early, the workers of running points are ended;
if the sweep is killed, Ray ends them. Ray also ends this process a minute after losing the head of the cluster.
"""

import collections
import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import Error, InputError

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when ray is imported; no usage is reported

import ray
import ray.exceptions

from .cluster import answers
from .task import Outcome, Task, Watch, lost, run_point

_RETRIES = 3


def outcomes(tasks: Sequence[Task], address: str | None, jobs: int | None, _watch: Watch) -> Iterator[Outcome]:
    """Runs points on a cluster and yields outcomes; ends all work when closed. Raises InputError, or Error later."""
    with session(address):
        yield from _outcomes(tasks, address, jobs)


@contextlib.contextmanager
def session(address: str | None) -> Iterator[None]:
    """Joins the cluster for all points in the context, which share its workers. Raises InputError without a cluster."""
    ours = _connect(address)
    try:
        yield
    finally:
        if ours:
            ray.shutdown()


def _outcomes(tasks: Sequence[Task], address: str | None, jobs: int | None) -> Iterator[Outcome]:
    run: Any = ray.remote(num_cpus=1, max_retries=_RETRIES)(run_point)
    waiting = collections.deque(tasks)
    running: dict[Any, Task] = {}
    try:
        most = jobs or max(16, 2 * int(ray.cluster_resources().get("CPU", 1)))
        while waiting or running:
            while waiting and len(running) < most:
                task = waiting.popleft()
                running[run.remote(task)] = task
            # Short waits: an interrupt is seen in between.
            for reference in ray.wait(list(running), timeout=0.5)[0]:
                outcome = _outcome(reference, running[reference])
                del running[reference]
                yield outcome
    except ConnectionError as error:
        raise Error(f"--address {address}: the cluster is gone; finished points are kept") from error
    finally:
        for reference in running:
            with contextlib.suppress(Exception):
                ray.cancel(reference, force=True)


def _connect(address: str | None) -> bool:
    """Joins the cluster unless joined already; returns whether it did."""
    if ray.is_initialized():
        return False
    wrong = (
        f"--address {address}: no Ray cluster answers there; expected one such as host:6379, or auto on its machines"
    )
    if not answers(str(address)):
        raise InputError(wrong)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(wrong) from error
    return True


def _outcome(reference: Any, task: Task) -> Outcome:  # noqa: ANN401 - a reference of ray
    try:
        outcome: Outcome = ray.get(reference)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.NodeDiedError) as error:
        return lost(task, f"its workers died {_RETRIES + 1} times: {type(error).__name__}")
    except ray.exceptions.RaySystemError as error:
        raise Error(f"the cluster cannot run points: {error}") from error
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, ModuleNotFoundError):
            raise Error(
                f"a worker cannot run points: {error.cause}; expected palimpsest installed on every worker"
            ) from error
        return lost(task, f"the worker failed: {type(error.cause).__name__}: {error.cause}")
    except ray.exceptions.RayError as error:
        return lost(task, f"the worker failed: {type(error).__name__}: {error}")
    return outcome
