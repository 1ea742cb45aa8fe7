"""The commands `palimpsest list` and `cite`: names with descriptions, and the version.

Without rich, which takes longer to load than the list takes otherwise. Ignored: letters wider than a column.
"""

import contextlib
import os
import shutil
import textwrap
from collections.abc import Mapping, Sequence

import click

from . import _core, plugins
from .commands import command, echo
from .options import REGISTRIES
from .parameters import Choice

_LEAST_WIDTH = 24
"""Least columns of a description beside the name; in a narrower terminal the description is below."""


def render(found: Mapping[str, Sequence[tuple[str, str]]], width: int) -> str:
    """The entries of each kind in lines of `width` columns, with a heading for each kind if there are several."""
    if len(found) == 1:
        (entries,) = found.values()
        return "\n".join(_lines(entries, width))
    parts = []
    for kind, entries in found.items():
        lines = [f"  {line}".rstrip() for line in _lines(entries, width - 2)]
        parts.append("\n".join([click.style(kind, bold=True, underline=True), *lines]))
    return "\n\n".join(parts)


def _lines(entries: Sequence[tuple[str, str]], width: int) -> list[str]:
    rows = entries or [("(none yet)", "")]
    indent = max(len(name) for name, _ in rows) + 2
    is_narrow = width - indent < _LEAST_WIDTH
    indent = 2 if is_narrow else indent
    lines = []
    for name, about in rows:
        texts = textwrap.wrap(about, max(width - indent, 1), break_on_hyphens=False) or [""]
        head = click.style(name, bold=True)
        first = head if is_narrow else f"{head}{' ' * (indent - len(name))}{texts[0]}".rstrip()
        lines += [first, *(" " * indent + text for text in (texts if is_narrow else texts[1:]))]
    return lines


@command(short_help="Print how to cite this version.")
def cite() -> None:
    """Print the BibTeX entry of this version; a result has the same version and digest (`provenance`).

    \b
    Examples:
      palimpsest cite >> thesis.bib
    """
    echo(
        "@software{palimpsest,\n"
        "  author  = {{The Palimpsest developers}},\n"
        "  title   = {{Palimpsest: a laboratory for solid-state drives}},\n"
        f"  version = {{{_core.version()}}},\n"
        "  year    = {2026},\n"
        f"  note    = {{Simulator of flash translation layers; sources {_core.build()}}},\n"
        "}"
    )


@command("list", short_help="List the names of drives, layers, workloads, ...")
@click.argument("kind", required=False, type=Choice(REGISTRIES), metavar="[KIND]")
@click.option("--json", "as_json", is_flag=True, help='Print {"KIND": {"NAME": "DESCRIPTION"}}.')
def list_(kind: str | None, *, as_json: bool) -> None:
    """List the names of drives, layers, workloads, ...

    KIND is one of ftls, parts, ssds, workloads, traces, objects (traces of objects), policies (evictions of caches),
    victims, classifiers, schemes, codes, faults and plugins; the default is all of them.

    \b
    Examples:
      palimpsest list
      palimpsest list ftls
      palimpsest list --json | jq '.workloads | keys'
    """
    found = {each: plugins.entries(each) for each in ([kind] if kind else REGISTRIES)}
    if as_json:
        import json

        echo(json.dumps({each: dict(entries) for each, entries in found.items()}, indent=2))
        return
    # NO_COLOR turns escape codes off everywhere; FORCE_COLOR turns them on in a pipe, too.
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    is_coloured = False if is_plain else True if os.environ.get("FORCE_COLOR") else None
    echo(render(found, width()), color=is_coloured)


def width() -> int:
    """The columns of the terminal, or 80."""
    if os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    for stream in range(3):  # the list may be read through a pipe
        with contextlib.suppress(OSError):
            return os.get_terminal_size(stream).columns or 80
    return 80
