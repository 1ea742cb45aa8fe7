"""States of preconditioned drives, kept for later runs: in the memory of this process, and in a folder if asked.

A run whose drive, preconditioning and seed are those of an earlier one goes on from what that made, and its result is
the same, byte for byte; `docs/cli.md` says what is kept. This module only sets what the native module does.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from . import _core, units
from .errors import InputError

FOLDER = "PALIMPSEST_STATE"
"""Environment variable of `--state`."""
SIZE = "PALIMPSEST_STATE_SIZE"
"""Environment variable of `--state-size`."""
DEFAULT_SIZE = "4GiB"
MEMORY = "1GiB"
"""What memory keeps where runs share states."""

_chosen: dict[str, str] = {}
_decided = False


def size_of(value: str | int) -> int:
    """Bytes of a size such as `2GiB`.

    Raises:
        InputError: it is none.
    """
    found = units.parse_bytes(value)
    if found is None or found < 0:
        raise InputError(f"size of states {value!r}: expected a size such as 2GiB or 500MiB")
    return found


def keep_states(folder: str | Path | None = None, size: str | int = DEFAULT_SIZE, memory: str | int = MEMORY) -> None:
    """From now on, runs of this process go on from states that earlier runs left, where these are the same.

    >>> keep_states()                            # in memory, for the runs of this program
    >>> keep_states("states", size="10GiB")      # in a folder too, for later programs

    Args:
        folder: keeps them in files, too; made if it is not there. Several processes may share it.
        size: bytes that all files may take; those used least recently go.
        memory: bytes that memory keeps, of those used last; 0 for none.

    Raises:
        InputError: a size is none, or the folder cannot be made.
    """
    global _decided
    files, kept = size_of(size), size_of(memory)
    _core.keep_states(kept, None if folder is None else str(folder), files)
    _chosen.clear()
    _decided = True
    if folder is not None:
        _chosen.update({FOLDER: str(Path(folder).absolute()), SIZE: str(files)})


def prepare() -> None:
    """Before a run: uses the folder that the environment names, where nothing else was said."""
    if not _decided and os.environ.get(FOLDER):
        keep_states(os.environ[FOLDER], _size_in(os.environ), memory=0)


def _size_in(environment: Mapping[str, str]) -> int:
    text = environment.get(SIZE) or DEFAULT_SIZE
    try:
        return size_of(text)
    except InputError:
        raise InputError(f"{SIZE}: {text!r} is no size; expected one such as 2GiB or 500MiB") from None


def share() -> None:
    """The runs of this process share states in memory, beside the folder that was chosen before."""
    take(_chosen)


def environment() -> dict[str, str]:
    """What a process gets in its environment to use the same folder."""
    return dict(_chosen)


def take(chosen: Mapping[str, str]) -> None:
    """Uses memory, and the folder that `chosen`, such as the environment, names."""
    keep_states(chosen.get(FOLDER) or None, _size_in(chosen))


def say(echo: Callable[[str], object]) -> None:
    """Gives what was wrong with files of states, a line each."""
    for note in _core.state_notes():
        echo(f"note: {note}")
