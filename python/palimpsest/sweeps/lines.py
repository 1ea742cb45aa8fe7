"""The line of a key, or of its inline table, in a TOML file, for messages, because tomllib keeps no positions."""

import re
import tomllib
from collections.abc import Sequence

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")

Path = tuple[str | int, ...]


def _parts(text: str) -> tuple[str, ...]:
    """A key of TOML as its parts: `a."b.c"` gives `a`, `b.c`."""
    found: list[str] = []
    try:
        table: object = tomllib.loads(f"{text} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    while isinstance(table, dict):
        name, table = next(iter(table.items()))
        found.append(name)
    return tuple(found)


def _dotted(path: Path) -> tuple[str, ...]:
    """A path with quoted dots and nested tables alike: `("grid", "ftl.victim")` gives three parts."""
    return tuple(part for each in path for part in str(each).split("."))


def line_of(text: str, path: Sequence[str | int]) -> int:
    """The line (from 1) of a key, or of the innermost found table; numbers in `path` index arrays of tables."""
    wanted = _dotted(tuple(path))
    best, line = 0, 1
    section: Path = ()
    counts: dict[tuple[str, ...], int] = {}
    for number, content in enumerate(text.splitlines(), start=1):
        found: Path | None = None
        if header := _HEADER.fullmatch(content):
            name = _parts(header[2])
            section = name
            if header[1] == "[[":
                section = (*name, counts.get(name, 0))
                counts[name] = counts.get(name, 0) + 1
            found = section
        elif key := _KEY.match(content):
            found = (*section, *_parts(key[1]))
        here = _dotted(found) if found else ()
        if here and len(here) > best and wanted[: len(here)] == here:
            best, line = len(here), number
    return line
