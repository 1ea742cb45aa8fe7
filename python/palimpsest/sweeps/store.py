"""The folder of a sweep: every finished point at once and complete, so that a crash loses only running points.

    sweep.toml          the sweep file of the last run
    sweep.json          its points: axes and identities, in order
    points/ID.json      the outcome of a point, with a checksum; ID is its identity
    sweep.parquet       a row for each finished point
    latency.parquet     the distributions of latency of each, in buckets of less than 1.6 %
    times.parquet       time and memory of the simulator for each, which vary between runs
    report.html         the page
    .lock               held while a sweep writes here

A file appears under its name when complete; links inside the folder are replaced, not followed. Points that the sweep
file no longer has stay, and count again if they return. A damaged file of a point is ignored, and the point is run
anew.
"""

import fcntl
import hashlib
import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import InputError
from ..files import is_file, named, open_new, write_whole
from .task import LASTING, Outcome

MANIFEST = "sweep.json"
TABLE = "sweep.parquet"
TIMES = "times.parquet"
LATENCY = "latency.parquet"
_POINTS = "points"
_OURS = (MANIFEST, TABLE, TIMES, LATENCY, "sweep.toml", "report.html")
_CHECKSUM = "checksum"


def is_sweep(folder: Path) -> bool:
    """Whether a folder holds a sweep."""
    return is_file(folder / MANIFEST)


class Store:
    """The locked folder of a running sweep; use as a context. Raises InputError if it is in use or not a sweep's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if (folder / "summary.json").exists():
            raise InputError(
                f"--out {folder}: there are results of `run`, `compare` or `reproduce`; expected a folder of its own"
            )
        if (folder / _POINTS).is_symlink():
            raise InputError(f"--out {folder}: {_POINTS} is a link; expected a folder, as links are not followed there")
        try:
            (folder / _POINTS).mkdir(parents=True, exist_ok=True)
            self._lock = open_new(folder / ".lock", os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise InputError(f"--out {folder}: expected a folder that can be made: {error.strerror}") from error

    def __enter__(self) -> "Store":
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.seek(0)
            owner = self._lock.read().strip() or "another process"
            self._lock.close()
            raise InputError(
                f"--out {self.folder}: {owner} is running a sweep there; expected another folder, or to wait for it"
            ) from None
        with named(self.folder / ".lock"):
            self._lock.truncate(0)
            self._lock.write(f"process {os.getpid()} on {socket.gethostname()}")
            self._lock.flush()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.truncate(0)
        self._lock.close()

    def clear(self) -> None:
        """Removes the files of earlier sweeps."""
        for path in [*(self.folder / name for name in _OURS), *(self.folder / _POINTS).glob("*.json")]:
            path.unlink(missing_ok=True)

    def keep(self, outcome: Outcome) -> None:
        """Keeps the outcome of a point, in place of an earlier one."""
        content = json.dumps(outcome | {_CHECKSUM: _checksum(outcome)}, separators=(",", ":")).encode() + b"\n"
        path = self.folder / _POINTS / f"{outcome['identity']}.json"
        if path.is_dir() and not path.is_symlink():
            path.rename(path.with_name(f"{path.name}.{os.getpid()}.other"))
        write_whole(path, content)

    def write(self, name: str, content: bytes) -> None:
        """Writes a file about the whole sweep."""
        write_whole(self.folder / name, content)

    def finished(
        self, identities: Iterable[str], note: Callable[[str], None] = lambda _: None
    ) -> Iterator[tuple[str, Outcome]]:
        """The outcomes in the folder, except failures worth another try; `note` receives damaged files."""
        for identity, outcome in read_points(
            self.folder, identities, lambda what: note(f"{what}; the point is run anew")
        ):
            if outcome["status"] == "done" or outcome["error"]["kind"] in LASTING:
                yield identity, outcome


def _checksum(outcome: Outcome) -> str:
    text = json.dumps(outcome, separators=(",", ":"), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _read_point(path: Path, identity: str) -> Outcome | None:
    """The outcome in a file, or None without a file. Raises ValueError with the reason if the file is damaged."""
    try:
        if path.is_symlink() or not path.is_file():
            if path.is_symlink() or path.exists():
                raise ValueError("the path is no regular file")
            return None
        outcome: Any = json.loads(path.read_bytes(), parse_constant=_no_number)
    except OSError as error:
        raise ValueError(str(error.strerror)) from error
    except RecursionError as error:
        raise ValueError("the file is nested too deep") from error
    if not isinstance(outcome, dict) or _CHECKSUM not in outcome:
        raise ValueError("the file has no checksum")
    if outcome.pop(_CHECKSUM) != _checksum(outcome):
        raise ValueError("the checksum is wrong")
    done, why = outcome.get("status") == "done", outcome.get("error")
    fits = isinstance(outcome.get("result"), dict) if done else isinstance(why, dict) and {"kind", "text"} <= {*why}
    if outcome.get("identity") != identity or not fits:
        raise ValueError("the file has the outcome of another point")
    return outcome


def read_points(
    folder: Path, identities: Iterable[str], note: Callable[[str], None] = lambda _: None
) -> Iterator[tuple[str, Outcome]]:
    """The outcomes of points in a folder, by identity; `note` receives a line for each damaged file."""
    for identity in dict.fromkeys(identities):
        path = folder / _POINTS / f"{identity}.json"
        try:
            outcome = _read_point(path, identity)
        except ValueError as error:
            note(f"{path}: {error}")
        else:
            if outcome is not None:
                yield identity, outcome
