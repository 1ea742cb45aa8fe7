"""The folder of a sweep: every finished point at once and whole, so that a crash loses only those that were running.

    sweep.toml          the sweep file, as it was run last
    sweep.json          its points: axes and identities, in order
    points/ID.json      the outcome of a point; ID is its identity
    sweep.parquet       a row for each finished point
    report.html         the page
    .lock               held while a sweep writes here

A file appears under its name when it is complete. Points that the sweep file no longer has stay, and count again when
it has them again.
"""

import fcntl
import json
import os
import socket
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import InputError
from .task import LASTING, Outcome

__all__ = ["MANIFEST", "TABLE", "Store", "is_sweep"]

MANIFEST = "sweep.json"
TABLE = "sweep.parquet"
_POINTS = "points"
_OURS = (MANIFEST, TABLE, "sweep.toml", "report.html")


def is_sweep(folder: Path) -> bool:
    """Whether a folder holds a sweep."""
    return (folder / MANIFEST).is_file()


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that is there completely or not at all, whatever happens meanwhile."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


class Store:
    """The folder while a sweep runs. Use as a context, which holds the lock.

    Args:
        folder: made if it is not there.

    Raises:
        InputError: it cannot be made, holds something else, or another sweep is writing there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if (folder / "summary.json").exists():
            raise InputError(
                f"--out {folder}: there are results of `run`, `compare` or `reproduce`; expected a folder of its own"
            )
        try:
            (folder / _POINTS).mkdir(parents=True, exist_ok=True)
            self._lock = (folder / ".lock").open("a+", encoding="utf-8")
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
        """Removes what earlier sweeps left here."""
        for path in [*(self.folder / name for name in _OURS), *(self.folder / _POINTS).glob("*.json")]:
            path.unlink(missing_ok=True)

    def keep(self, outcome: Outcome) -> None:
        """Keeps the outcome of a point, in place of an earlier one."""
        content = json.dumps(outcome, separators=(",", ":")).encode() + b"\n"
        write_whole(self.folder / _POINTS / f"{outcome['identity']}.json", content)

    def write(self, name: str, content: bytes) -> None:
        """Writes a file about the sweep as a whole."""
        write_whole(self.folder / name, content)

    def finished(self, identities: Iterable[str]) -> dict[str, Outcome]:
        """The outcomes that are there, but for those that another try may change."""
        return {
            identity: outcome for identity, outcome in read_points(self.folder, identities).items() if _lasts(outcome)
        }


def _lasts(outcome: Outcome) -> bool:
    return outcome["status"] == "done" or outcome["error"]["kind"] in LASTING


def read_points(folder: Path, identities: Iterable[str]) -> dict[str, Outcome]:
    """The outcomes of points that are in a folder."""
    found: dict[str, Outcome] = {}
    for identity in dict.fromkeys(identities):
        try:
            outcome: Any = json.loads((folder / _POINTS / f"{identity}.json").read_bytes())
        except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
            continue
        if isinstance(outcome, dict) and outcome.get("identity") == identity:
            found[identity] = outcome
    return found
