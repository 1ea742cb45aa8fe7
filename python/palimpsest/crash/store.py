"""The folder of an exploration: the recording, and the outcome of each state, so that it can be resumed.

`recording.json` describes the recording `log.bin`. `states.jsonl` has a line for each checked state, `cuts.jsonl` one
for each tried cut of the drive; an incomplete last line is ignored. `crash.json` and `index.html` are derived. `work`
is empty: the mount point of enclosed processes.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from .. import _core
from ..errors import InputError
from ..files import named, write_in_order, write_whole
from .commands import OPTIONS, Plan
from .cuts import Cut
from .windows import State

_RECORDING, _LOG, _STATES, _CUTS = "recording.json", "log.bin", "states.jsonl", "cuts.jsonl"
_FORMAT = 1


def id_of(key: tuple[int, int]) -> str:
    """The name of states of a key: 12 hexadecimal digits."""
    return blake2b(key[0].to_bytes(16, "little") + key[1].to_bytes(8, "little"), digest_size=6).hexdigest()


def _recording(out: Path) -> dict[str, Any] | None:
    try:
        found = json.loads((out / _RECORDING).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{out / _RECORDING}: {error}; expected the recording of palimpsest crash") from error
    if not isinstance(found, dict) or found.get("format") != _FORMAT or "plan" not in found:
        raise InputError(f"{out / _RECORDING}: it is of another version; expected another --out, or --force")
    return found


def plan_in(out: Path) -> Plan | None:
    """The plan of the exploration in a folder, or None. Raises InputError if damaged."""
    found = _recording(out)
    if found is None:
        return None
    try:
        known = {field: found["plan"][name] for field, name in OPTIONS.items()}
        fields: dict[str, Any] = {
            field: tuple(value) if isinstance(value, list) else value for field, value in known.items()
        }
        return Plan(**fields, timeout_s=found["timeout_s"])
    except (KeyError, TypeError) as error:
        raise InputError(f"{out / _RECORDING}: {error} is missing; expected another --out, or --force") from error


class Store:
    """The folder, locked by this process. Raises InputError if it is in use, or has another exploration."""

    def __init__(self, out: Path, plan: Plan, *, force: bool = False) -> None:
        self.out = out
        self._is_new = not out.exists()
        try:
            out.mkdir(parents=True, exist_ok=True)
            self.work.mkdir(exist_ok=True)
            self._lock = os.open(self.work, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(f"--out {out}: expected a folder that can be made: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(
                f"--out {out}: another palimpsest crash explores there; expected another folder"
            ) from error
        if force:
            for name in (_RECORDING, _LOG, _STATES, _CUTS):
                (out / name).unlink(missing_ok=True)
        recorded = _recording(out)
        self.kind: str | None = recorded["file_system"] if recorded else None
        self.is_recorded = recorded is not None
        if recorded and recorded["plan"] != plan.described():
            differ = next(name for name, value in plan.described().items() if recorded["plan"].get(name) != value)
            what = f"it has the exploration of another --{differ.replace('_', '-')}"
            raise InputError(f"--out {out}: {what}; expected another folder, or --force to begin anew")

    @property
    def work(self) -> Path:
        """The folder for the disks of enclosed processes."""
        return self.out / "work"

    @property
    def log(self) -> Path:
        """The recording."""
        return self.out / _LOG

    def recorded(self, plan: Plan, kind: str | None) -> None:
        """Marks the recording as complete."""
        found = {
            "format": _FORMAT,
            "version": _core.version(),
            "plan": plan.described(),
            "timeout_s": plan.timeout_s,
            "file_system": kind,
        }
        write_whole(self.out / _RECORDING, json.dumps(found, indent=2).encode() + b"\n")
        self.kind, self.is_recorded = kind, True

    def write(self, found: Mapping[str, Any], page: str) -> None:
        """Writes `crash.json` and `index.html`. Raises OSError that lists the kept files."""
        write_in_order(self.out, [("crash.json", json.dumps(found, indent=2) + "\n"), ("index.html", page)])

    def close(self) -> None:
        """Unlocks the folder, and removes it if nothing was recorded."""
        if not self.is_recorded:
            # Another process may use the folder by now.
            with contextlib.suppress(OSError):
                self.log.unlink(missing_ok=True)
                self.work.rmdir()
                if self._is_new:
                    self.out.rmdir()
        os.close(self._lock)

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        path = self.out / name
        if not path.is_file():
            return
        with path.open("rb") as lines:
            good = 0
            for line in lines:
                try:
                    found = json.loads(line)
                except ValueError:
                    break
                if not line.endswith(b"\n"):
                    break
                good += len(line)
                yield found
        if good < path.stat().st_size:
            # A killed process left an incomplete line.
            with contextlib.suppress(OSError):
                os.truncate(path, good)

    def states(self) -> list[dict[str, Any]]:
        """The lines of all states, in order."""
        return list(self._lines(_STATES))

    def cuts(self) -> dict[Cut, dict[str, Any]]:
        """The tried cuts."""
        return {tuple(found["cut"]): found for found in self._lines(_CUTS)}

    def add_states(self, found: list[dict[str, Any]]) -> None:
        """Adds lines of states."""
        self._add(_STATES, found)

    def add_cuts(self, found: list[dict[str, Any]]) -> None:
        """Adds lines of cuts."""
        self._add(_CUTS, found)

    def _add(self, name: str, found: list[dict[str, Any]]) -> None:
        if found:
            with named(self.out / name), (self.out / name).open("ab") as lines:
                lines.write(b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in found))


def state_of(found: Mapping[str, Any]) -> State:
    """The state of a line."""
    picks = tuple((unit, number) for unit, number in found["picks"])
    return State(found["stop"], found["said"], picks, tuple(found["cut"]))
