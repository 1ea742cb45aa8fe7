"""Several runs side by side, for a terminal: a column for each layer, ratios to the first.

`*` marks the best of a row, so the mark shows without colour; rows of equal values have no mark. A table that is too
wide is split; the first layer, the base of the ratios, is not repeated.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from . import answers, evidence, fair, summary, units
from .metrics import Metric, best, factor, is_silenced, labelled_notes, relative, sections
from .result import Result

_ROOMY = 50
_Column = tuple[str, list[list[Text]]]
"""Heading, and the cells of each section."""


def _column(results: Sequence[Result], index: int, gap: int, silent: Sequence[str]) -> _Column:
    """The column of a layer: values with the mark of the best, and their ratios, each aligned to the right."""
    shown = [
        [_cell(results, index, metric, gap, silent) for metric in metrics if metric.is_shown(results)]
        for _, metrics in sections(results)
    ]
    values, ratios = (max((len(cell[at]) for cells in shown for cell in cells), default=0) for at in (0, 1))
    heading = results[index].label
    values, ratios = max(values, len(heading) + 1), max(ratios, len("ratio") + gap) * (index > 0)
    texts = [[_text(value, ratio, values, ratios) for value, ratio in cells] for cells in shown]
    return f"{heading} ".rjust(values) + ("ratio".rjust(ratios) if index else ""), texts


def _text(value: str, ratio: str, values: int, ratios: int) -> Text:
    """A value and its ratio in columns of these widths, or words across both."""
    if value.strip() == units.NOT_MODELLED:
        return Text(value.strip().rjust(values + ratios))
    return Text(value.rjust(values) + ratio.rjust(ratios), "bold green" * ("*" in value))


def _cell(results: Sequence[Result], index: int, metric: Metric, gap: int, silent: Sequence[str]) -> tuple[str, str]:
    """A value, and its ratio to the first layer after a gap; words take the place of a ratio.

    Figures of the tables `silent` have no best.
    """
    values = [metric.of(each) for each in results]
    shown, is_best = metric.cell(results[index]), best(metric, values)[index] and not is_silenced(metric.path, silent)
    ratio = factor(relative(values[index], values[0])) if index and shown != units.NOT_MODELLED else ""
    return f"{shown}{'*' if is_best else ' '}", ratio and " " * gap + ratio


def _side_by_side(results: Sequence[Result], silent: Sequence[str], width: int) -> Iterator[RenderableType]:
    """The tables, as many layers in each as fit."""
    # A value ends in a blank or its mark, so that a narrow gap is enough.
    gap, indent = (2, "  ") if width >= _ROOMY else (1, "")
    columns = [_column(results, index, gap, silent) for index in range(len(results))]
    of = sections(results)
    labels = [[f"{indent}{metric.label}" for metric in metrics if metric.is_shown(results)] for _, metrics in of]
    left = max((len(label) for names in labels for label in names), default=0)
    while columns:
        room, fitting = width - left, 0
        while fitting < len(columns) and (not fitting or room >= len(columns[fitting][0]) + gap):
            room -= len(columns[fitting][0]) + gap
            fitting += 1
        table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
        for heading in ("", *(heading for heading, _ in columns[:fitting])):
            table.add_column(heading, header_style="bold", no_wrap=True)
        for at, (section, _) in enumerate(of):
            if labels[at]:
                table.add_row(Text(section, style="bold underline"))
            for number, label in enumerate(labels[at]):
                table.add_row(label, *(cells[at][number] for _, cells in columns[:fitting]))
        yield table
        columns = columns[fitting:]
        if columns:
            yield Text()


def _legend(results: Sequence[Result], silent: Sequence[str]) -> str:
    """The meaning of the mark, if a row has one; it depends on the evidence for the figures of the marked rows."""
    known = []
    for _, metrics in sections(results):
        for metric in metrics:
            values = [metric.of(result) for result in results]
            marks = best(metric, values)
            if any(marks) and not is_silenced(metric.path, silent):
                proofs = [evidence.of(result, ".".join(metric.path)) for result in results]
                known.append(evidence.is_best(marks, values, proofs))
    return f"; {evidence.legend(known)}" if known else ""


def render(results: Sequence[Result]) -> RenderableType:
    """The comparison for rich."""
    first = results[0]
    before = first.get("precondition") or {}
    lines = [("drive", summary.drive_line(first)), ("workload", summary.workload_line(first))]
    head = summary.facts(
        [lines[0], *([("before", str(before["spec"]))] if before else []), lines[1], *evidence.rows(results)]
    )
    found = fair.checks(results)
    silent = fair.silenced(found)
    promised = answers.slo(results)
    parts: list[RenderableType] = [Text(promised, style="bold"), Text()] if promised else []
    parts += [head, Text(), *fair.warnings(found)]
    parts += [summary.ByWidth(partial(_side_by_side, results, silent)), Text()]
    if len(results) > 1:
        parts.append(Text(f"ratio: to {first.label}{_legend(results, silent)}", style="dim"))
        parts += [Text(sentence) for sentence in answers.versus(results)]
    split = {result.label: summary.amplification(result) for result in results}
    parts += [Text(f"write amplification of {label}: {of}") for label, of in split.items() if of]
    parts += [Text(f"note: {note}", style="yellow") for note in labelled_notes(results)]
    parts += [Text(f"differs: {said}", style="dim") for said in fair.texts(found, "said")]
    speed = "; ".join(f"{result.label} {summary.speed_line(result)}" for result in results)
    parts.append(Text(f"simulator: {speed}", style="dim"))
    return Group(*parts)
