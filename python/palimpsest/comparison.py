"""Several runs side by side, for a terminal: a column for each layer, ratios to the first.

`*` marks the best of a row, so the mark shows without colour; rows of equal values have no mark. A table that is too
wide is split; the first layer, the base of the ratios, is not repeated.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from . import summary, units
from .metrics import best, factor, labelled_notes, relative, sections, unequal_promises, verdicts
from .result import Result

_LABEL_WIDTH = 21
_RATIO_WIDTH = 7
_COLUMN_WIDTH = 20


def _cell(shown: str, ratio: float | None, is_best: bool, is_first: bool) -> Text:
    if shown == units.NOT_MODELLED:
        # These words take the place of the ratio.
        return Text(f"{shown} ", no_wrap=True)
    times = "" if is_first else factor(ratio)
    text = Text(f"{shown}{'*' if is_best else ' '}{'' if is_first else times.rjust(_RATIO_WIDTH)}", no_wrap=True)
    if is_best:
        text.stylize("bold green")
    return text


def _side_by_side(results: Sequence[Result], width: int) -> Iterator[RenderableType]:
    """The tables, as many layers in each as fit."""
    # A blank precedes each column but the first.
    fitting, total = max(1, (width - _LABEL_WIDTH + 1) // _COLUMN_WIDTH), len(results)
    for start in range(0, total, fitting):
        if start:
            yield Text()
        yield _table(results, list(range(start, min(start + fitting, total))))


def _table(results: Sequence[Result], group: list[int]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", no_wrap=True)
    for index in group:
        name = results[index].label
        heading = "" if index == 0 else " " + "ratio".rjust(_RATIO_WIDTH)
        apart = " " if index > group[0] else ""
        table.add_column(f"{apart}{name}{heading or ' '}", justify="right", header_style="bold", no_wrap=True)
    for section, metrics in sections(results):
        rows = [metric for metric in metrics if metric.is_shown(results)]
        if rows:
            table.add_row(Text(section, style="bold underline"))
        for metric in rows:
            values = [metric.of(result) for result in results]
            marks = best(metric, values)
            cells = [
                Text(" " if index > group[0] else "")
                + _cell(metric.cell(results[index]), relative(values[index], values[0]), marks[index], index == 0)
                for index in group
            ]
            table.add_row(f"  {metric.label}", *cells)
    return table


def render(results: Sequence[Result]) -> RenderableType:
    """The comparison for rich."""
    first = results[0]
    before = first.get("precondition") or {}
    lines = [("drive", summary.drive_line(first)), ("workload", summary.workload_line(first))]
    head = summary.facts([lines[0], *([("before", str(before["spec"]))] if before else []), lines[1]])
    unequal = unequal_promises((result.label, result) for result in results)
    parts: list[RenderableType] = [head, Text(), *([Text(unequal, style="yellow"), Text()] if unequal else [])]
    parts += [summary.ByWidth(partial(_side_by_side, results)), Text()]
    if len(results) > 1:
        parts.append(Text(f"ratio: to {first.label}; * best of its row", style="dim"))
        parts += [Text(sentence) for sentence in verdicts(results)]
    parts += [Text(f"note: {note}", style="yellow") for note in labelled_notes(results)]
    speed = "; ".join(f"{result.label} {summary.speed_line(result)}" for result in results)
    parts.append(Text(f"simulator: {speed}", style="dim"))
    return Group(*parts)
