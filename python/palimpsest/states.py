"""States of preconditioned drives, kept for later runs: in the memory of this process, and in a folder if asked.

A run with the same drive, preconditioning and seed continues from the kept state, and its result has the same bytes;
`docs/cli.md` lists the kept data. This module only configures the native module.
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
"""Memory for states that runs share."""

_chosen: dict[str, str] = {}
_decided = False


def size_of(value: str | int) -> int:
    """Bytes of a size such as `2GiB`. Raises InputError for any other text."""
    found = units.parse_bytes(value)
    if found is None or found < 0:
        raise InputError(f"size of states {value!r}: expected a size such as 2GiB or 500MiB")
    return found


def keep_states(folder: str | Path | None = None, size: str | int = DEFAULT_SIZE, memory: str | int = MEMORY) -> None:
    """Makes runs of this process continue from states of earlier runs with the same preconditioning.

    >>> keep_states()                            # in memory, for the runs of this program
    >>> keep_states("states", size="10GiB")      # in a folder too, for later programs

    Args:
        folder: folder for files, made if needed. Several processes may share a folder.
        size: most bytes of all files; the least recently used are deleted.
        memory: most bytes in memory, least recently used first out; 0 for none.

    Raises:
        InputError: a size is wrong, or the folder cannot be made.
    """
    global _decided
    files, kept = size_of(size), size_of(memory)
    _core.keep_states(kept, None if folder is None else str(folder), files)
    _chosen.clear()
    _decided = True
    if folder is not None:
        _chosen.update({FOLDER: str(Path(folder).absolute()), SIZE: str(files)})


def prepare() -> None:
    """Uses the folder of the environment before a run, unless `keep_states` was called."""
    if not _decided and os.environ.get(FOLDER):
        keep_states(os.environ[FOLDER], _size_in(os.environ), memory=0)


def _size_in(environment: Mapping[str, str]) -> int:
    text = environment.get(SIZE) or DEFAULT_SIZE
    try:
        return size_of(text)
    except InputError:
        raise InputError(f"{SIZE}: {text!r} is no size; expected one such as 2GiB or 500MiB") from None


def share() -> None:
    """Makes the runs of this process share states in memory, beside the chosen folder."""
    take(_chosen)


def environment() -> dict[str, str]:
    """Environment variables that make a process use the same folder."""
    return dict(_chosen)


def take(chosen: Mapping[str, str]) -> None:
    """Uses memory, and the folder that `chosen`, such as the environment, names."""
    keep_states(chosen.get(FOLDER) or None, _size_in(chosen))


def say(echo: Callable[[str], object]) -> None:
    """Passes each problem with files of states to `echo`, a line each."""
    for note in _core.state_notes():
        echo(f"note: {note}")
