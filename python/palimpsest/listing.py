"""The output of `palimpsest list`: names with descriptions."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text


def pairs(rows: Iterable[tuple[str, str]]) -> Table:
    """Two columns, names and texts."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def render(found: Mapping[str, Sequence[tuple[str, str]]]) -> RenderableType:
    """The entries of each kind, with a heading for each kind if there are several."""
    parts: list[RenderableType] = []
    for kind, entries in found.items():
        table = pairs(entries or [("(none yet)", "")])
        if len(found) == 1:
            return table
        parts += [Text(kind, style="bold underline"), Padding(table, (0, 0, 1, 2))]
    return Group(*parts)
