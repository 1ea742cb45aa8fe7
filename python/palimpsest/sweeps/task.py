"""One point as a message to a worker, and the outcome: plain JSON both ways.

A worker first checks that it would compute the same: its simulator was built from the same sources, and it has the file
of the workload, with the same content. All other inputs are in the message. Mistakes of the user are outcomes; only
defects of the worker raise.
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

from .. import _core, engine, plugins, user_files
from ..errors import Error, WorkloadIoError, one_line
from ..files import digest, holder
from ..options import RunOptions

Task = dict[str, Any]
"""`identity`, `options` (for the native module), `drive` (TOML, if from a file), `file`, `simulator`, `plugins` (with
digests), and `state`, equal for points that continue from one preconditioned drive. Optional: `jobs`, the text of a job
file; `code`, texts of files with policies by path; and `series`, names of series to return."""
Outcome = dict[str, Any]
"""`identity`, `status` (`done` or `failed`), `result`, `error` (`kind`, `text`), `worker`, `wall_s`; `series` if the
task names some."""

LASTING = ("DeviceError", "RuleError", "InputError")
"""Errors that recur whenever the same point is run, so it is not tried again."""

OTHER_SIMULATOR = "OtherSimulator"
"""Kind of the error of a worker with another simulator, which cannot run any point."""


@dataclass(frozen=True)
class WorkloadFile:
    """The file of a workload: path, size, time of change and digest."""

    path: str
    size: int
    mtime_ns: int
    digest: str

    @classmethod
    def read(cls, path: str) -> "WorkloadFile":
        """Takes the fingerprint of a file; the digest is cached until the file changes. Raises OSError."""
        status = holder(Path(path)).stat()
        return cls(path, status.st_size, status.st_mtime_ns, digest(Path(path)))


def simulator() -> str:
    """Version of the simulator and digest of its sources: equal ones give equal figures."""
    return f"{_core.version()} ({_core.build()})"


def run_point(task: Task, progress: engine.Progress | None = None) -> Outcome:
    """Runs one point; an exception of `progress` ends the run and is raised again."""
    begin = time.monotonic()
    outcome: Outcome = {"identity": task["identity"], "status": "failed", "result": None, "error": None}
    try:
        _expect_same_simulator(task)
        _expect_same_file(task)
        result, series = _run(task, progress)
        outcome |= {"status": "done", "result": result} | ({"series": series} if "series" in task else {})
    except Error as error:
        outcome["error"] = {"kind": type(error).__name__, "text": one_line(error)}
    return outcome | {"worker": _here(), "wall_s": time.monotonic() - begin}


class OtherSimulator(Error):
    """The worker would compute other figures."""


def _expect_same_simulator(task: Task) -> None:
    if task["simulator"] != simulator():
        raise OtherSimulator(
            f"worker {_here()}: palimpsest {simulator()} is installed; expected {task['simulator']}, as where it began"
        )
    for owner, digest_of in task["plugins"].items():
        found = plugins.digest(owner)
        if found != digest_of:
            installed = "is not installed" if found is None else f"has the digest {found}"
            raise OtherSimulator(f"worker {_here()}: the plug-in {owner} {installed}; expected the digest {digest_of}")


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
            f"{place}: the file on this worker has other content; expected the content at the beginning of the sweep"
        )


def _run(task: Task, progress: engine.Progress | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The result, and the series that the task names."""
    fields = dict(task["options"])
    options = RunOptions(**fields | {"overrides": tuple(fields["overrides"])})
    replaced: tuple[str, ...] = ()
    with tempfile.TemporaryDirectory(prefix="palimpsest-") as folder, user_files.shipped(task.get("code", {})):
        if task.get("jobs") is not None:
            options, replaced = replace(options, workload=_written(folder, "jobs.fio", task["jobs"])), ("workload",)
        if task["drive"] is not None:
            drive = _written(folder, "drive.toml", task["drive"])
            options, replaced = replace(options, ssd=drive, ftl=None, overrides=()), (*replaced, *_DRIVE)
        found = engine.run_one(options, progress)
    result, series = found.to_dict(), found.series or {}
    if task["drive"] is not None:
        result["config"]["name"] = result["ssd"] = task["name"]
    # The folder does not outlive the worker.
    result["provenance"]["options"] |= {name: fields[name] for name in replaced}
    return result, {name: series[name] for name in task.get("series", ()) if name in series}


_DRIVE = ("ssd", "ftl", "overrides")


def _written(folder: str, name: str, text: str) -> str:
    path = Path(folder) / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def _here() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def lost(task: Task, what: str) -> Outcome:
    """The outcome of a point whose worker ended without one."""
    error = {"kind": "WorkerLost", "text": one_line(what)}
    return {
        "identity": task["identity"], "status": "failed", "result": None, "error": error, "worker": None,
        "wall_s": None,
    }  # fmt: skip


Watch = Callable[[str, str, int, int, int], None]
"""Receives the progress of a running point: its identity, then as `engine.Progress`."""


def encode(message: dict[str, Any]) -> bytes:
    """A message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
