"""States of preconditioned drives, kept for later runs: in the memory of this process, and in a folder.

The folder is the user's choice, or for commands the cache of the user; programs use no cache unless they name one. A
run with the same drive, preconditioning and seed continues from the kept state, and its result has the same bytes;
`docs/cli.md` lists the kept data. This module only configures the native module.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from . import _core, units
from .errors import InputError

FOLDER = "PALIMPSEST_STATE"
"""Environment variable of `--state`."""
SIZE = "PALIMPSEST_STATE_SIZE"
"""Environment variable of `--state-size`."""
NO_CACHE = "PALIMPSEST_NO_CACHE"
"""Environment variable of `--no-cache`."""
_IS_CACHE = "PALIMPSEST_STATE_IS_CACHE"
"""Environment variable that tells a worker that the folder of `FOLDER` is the cache."""
DEFAULT_SIZE = "4GiB"
MEMORY = "1GiB"
"""Memory for states that runs share."""

_chosen: dict[str, str] = {}
_decided = False
_counts = [0, 0]
"""States loaded from the cache and stored there by workers, since they were last said."""


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
    _keep(folder, size_of(size), size_of(memory))


def _keep(folder: str | Path | None, size: int, memory: int, *, is_cache: bool = False) -> None:
    global _decided
    _core.keep_states(memory, None if folder is None else str(folder), size, is_cache)
    _chosen.clear()
    _decided = True
    if folder is not None:
        _chosen.update({FOLDER: str(Path(folder).absolute()), SIZE: str(size)})
        if is_cache:
            _chosen[_IS_CACHE] = "1"


def cache_folder() -> Path | None:
    """The folder of states in the cache of the user; None without a home."""
    named = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    try:
        # Relative paths are invalid (XDG Base Directory Specification).
        cache = Path(named) if Path(named).is_absolute() else Path.home() / _CACHES.get(sys.platform, ".cache")
    except RuntimeError:
        return None
    return cache / "palimpsest" / "states" if cache.is_absolute() else None


_CACHES = {"darwin": "Library/Caches", "win32": "AppData/Local"}


def use_cache(size: int) -> None:
    """Makes runs of this process continue from states in the cache of the user, of at most `size` bytes."""
    folder = cache_folder()
    _keep(folder, size, 0, is_cache=folder is not None)


def use_none() -> None:
    """Makes runs of this process precondition every drive."""
    _keep(None, 0, 0)


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
    """Environment variables that make a process use the same folder, or none if this process decided so."""
    return dict(_chosen) or ({FOLDER: ""} if _decided else {})


def take(chosen: Mapping[str, str]) -> None:
    """Uses memory, and the folder that `chosen`, such as the environment, names."""
    _keep(chosen.get(FOLDER) or None, _size_in(chosen), size_of(MEMORY), is_cache=_IS_CACHE in chosen)


def say_problems(echo: Callable[[str], object]) -> None:
    """Passes each problem with files of states to `echo`, a line each."""
    for note in _core.state_notes():
        echo(f"note: {note}")


def take_counts() -> tuple[int, int]:
    """States loaded from the cache and stored there since the last call."""
    (loaded, stored), (more, new) = _core.state_counts(), _counts
    _counts[:] = 0, 0
    return loaded + more, stored + new


def add_counts(counts: tuple[int, int]) -> None:
    """Adds the `take_counts` of a worker."""
    _counts[:] = _counts[0] + counts[0], _counts[1] + counts[1]


def say(echo: Callable[[str], object]) -> None:
    """Passes each problem, and a line on the use of the cache, to `echo`."""
    say_problems(echo)
    loaded, stored = take_counts()
    done = [f"{count} {what}" for count, what in ((loaded, "loaded"), (stored, "stored for later runs")) if count]
    if done:
        drives = "drive" if loaded + stored == 1 else "drives"
        off = "--no-cache preconditions anew" if loaded else "--no-cache stores none"
        echo(f"note: {_chosen.get(FOLDER)}: preconditioned {drives}: {', '.join(done)} ({off})")
