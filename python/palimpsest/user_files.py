"""Files with code of the user, as texts: the files of a resolved configuration, and those that a worker got.

Without numpy, because every command starts with this module. Ignored: files that the code imports.
"""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SOURCES: dict[str, bytes] = {}
"""Files loaded by this process, by digest."""
SHIPPED: dict[str, bytes] = {}
"""Files that another process read, by path."""
_TEXT = ("utf-8", "surrogateescape")  # every file has a text


def located(value: str, folder: Path) -> str:
    """`FILE.py:CLASS` with the path from a folder; other values unchanged."""
    path, dot, name = value.partition(".py:")
    return f"{folder / path}{dot}{name}" if dot else value


def without_paths(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of a layer whose canonical policies have no path: the digest names the code."""
    return {key: value.rpartition(".py:")[2] if isinstance(value, str) else value for key, value in keys.items()}


def sources(config: Mapping[str, Any]) -> dict[str, str]:
    """The texts of the files with policies that a resolved configuration of this process names, by path."""
    named = [str(value).rpartition("@") for value in config["ftl"].values() if ".py:" in str(value)]
    return {place.partition(".py:")[0] + ".py": SOURCES[digest].decode(*_TEXT) for place, _, digest in named}


@contextlib.contextmanager
def shipped(texts: Mapping[str, str]) -> Iterator[None]:
    """Takes the files of these paths from texts of `sources`, which another process read."""
    SHIPPED.update({path: text.encode(*_TEXT) for path, text in texts.items()})
    try:
        yield
    finally:
        SHIPPED.clear()
