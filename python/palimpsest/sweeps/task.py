"""One point as it is sent to a worker, and the outcome: plain JSON both ways.

A worker checks first that it would compute the same: the simulator was built from the same sources, and the
file of the workload is there, with the same content. All else that a point depends on is sent with it. The
outcome includes the user's mistakes; only what is wrong with the worker itself raises.
"""

import json
import os
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import _core, engine
from ..errors import Error, WorkloadIoError, one_line
from ..files import digest, holder
from ..options import RunOptions

__all__ = ["LASTING", "Outcome", "Task", "WorkloadFile", "lost", "run_point", "simulator"]

Task = dict[str, Any]
"""`identity`, `options` (as the native module takes them), `drive` (TOML, where it is a file), `file`, `simulator`, and
`state`, which points that go on from one preconditioned drive share."""
Outcome = dict[str, Any]
"""`identity`, `status` (`done` or `failed`), `result`, `error` (`kind`, `text`), `worker`, `wall_s`."""

LASTING = ("DeviceError", "RuleError", "InputError")
"""Errors that recur whenever the same point is run: it is not tried again."""

OTHER_SIMULATOR = "OtherSimulator"
"""Kind of the error of a worker that has another simulator: no point can be run on it."""


@dataclass(frozen=True)
class WorkloadFile:
    """The file of a workload: where it is, and what is in it."""

    path: str
    size: int
    mtime_ns: int
    digest: str

    @classmethod
    def read(cls, path: str) -> "WorkloadFile":
        """Takes the fingerprint of a file; of one that did not change since it was taken last, from memory.

        Raises:
            OSError: it cannot be read.
        """
        status = holder(Path(path)).stat()
        return cls(path, status.st_size, status.st_mtime_ns, digest(Path(path)))


def simulator() -> str:
    """Version of the simulator and digest of its sources: equal ones give equal figures."""
    return f"{_core.version()} ({_core.build()})"


def run_point(task: Task, progress: engine.Progress | None = None) -> Outcome:
    """Runs one point.

    Args:
        task: the point.
        progress: receives the progress; what it raises ends the run and is raised again.
    """
    begin = time.monotonic()
    outcome: Outcome = {"identity": task["identity"], "status": "failed", "result": None, "error": None}
    try:
        _expect_same_simulator(task)
        _expect_same_file(task)
        outcome |= {"status": "done", "result": _run(task, progress)}
    except Error as error:
        outcome["error"] = {"kind": type(error).__name__, "text": one_line(error)}
    return outcome | {"worker": _here(), "wall_s": time.monotonic() - begin}


class OtherSimulator(Error):
    """The worker would compute something else."""


def _expect_same_simulator(task: Task) -> None:
    if task["simulator"] != simulator():
        raise OtherSimulator(
            f"worker {_here()}: palimpsest {simulator()} is installed; expected {task['simulator']}, as where it began"
        )


def _expect_same_file(task: Task) -> None:
    if task["file"] is None:
        return
    wanted = WorkloadFile(**task["file"])
    place = f"worker {_here()}: workload {wanted.path}"
    try:
        status = holder(Path(wanted.path)).stat()
        if (status.st_size, status.st_mtime_ns) == (wanted.size, wanted.mtime_ns):
            return
        found = WorkloadFile.read(wanted.path)
    except FileNotFoundError:
        raise WorkloadIoError(
            f"{place}: there is no such file on this worker; expected every worker to have it at the same path"
        ) from None
    except OSError as error:
        raise WorkloadIoError(f"{place}: {error.strerror}; expected a file that the worker may read") from error
    if found.digest != wanted.digest:
        raise WorkloadIoError(
            f"{place}: the file on this worker is another one; expected that of the sweep's beginning"
        )


def _run(task: Task, progress: engine.Progress | None) -> dict[str, Any]:
    fields = dict(task["options"])
    options = RunOptions(**fields | {"overrides": tuple(fields["overrides"])})
    if task["drive"] is None:
        return engine.run_one(options, progress).to_dict()
    with tempfile.TemporaryDirectory(prefix="palimpsest-") as folder:
        drive = Path(folder) / "drive.toml"
        drive.write_text(task["drive"], encoding="utf-8")
        result = engine.run_one(replace(options, ssd=str(drive), ftl=None, overrides=()), progress).to_dict()
    result["config"]["name"] = result["ssd"] = task["name"]
    # The folder of the drive is gone when the worker is.
    result["provenance"]["options"] |= {name: fields[name] for name in ("ssd", "ftl", "overrides")}
    return result


def _here() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def lost(task: Task, what: str) -> Outcome:
    """The outcome of a point whose worker ended without one."""
    error = {"kind": "WorkerLost", "text": one_line(what)}
    return {
        "identity": task["identity"],
        "status": "failed",
        "result": None,
        "error": error,
        "worker": None,
        "wall_s": None,
    }


Watch = Callable[[str, str, int, int, int], None]
"""Receives the progress of a running point: its identity, then as `engine.Progress`."""


def encode(message: dict[str, Any]) -> bytes:
    """A message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
