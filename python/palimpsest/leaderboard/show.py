"""A leaderboard for a terminal: a table for each drive, a row for each layer."""

import math
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from .. import fair
from ..evidence.best import STAR
from ..evidence.life import NEEDS
from ..intervals import Interval
from ..summary import ByWidth
from ..sweeps.show import GAP, rows_of_text
from .standings import FIGURES, SHORT, Board, Standing, metric

_DIGITS = 3
_NARROW = 0.005
"""Share of a ratio below which half of the interval is not shown."""
MISSING = "-"
"""The cell of a figure that some run lacks."""
_STAR = "★"


def ratio(found: Interval) -> str:
    """A ratio to the digit that is known, and half its interval: `0.83±0.02`."""
    half = 0.0 if found.low is None or found.high is None else (found.high - found.low) / 2
    if half < _NARROW * found.mean:
        return f"{found.mean:.{_DIGITS}g}"
    known = -math.floor(math.log10(min(half, found.mean)))
    return f"{round(found.mean, known):.{max(known, 0)}f}±{round(half, known):.{max(known, 0)}f}"


def headings() -> list[str]:
    """The columns of a table."""
    return ["layer", *SHORT]


def cells(each: Standing, *, narrow: bool = False) -> list[str]:
    """A row of a table; the best have a star. `narrow` leaves the intervals out."""
    found = {name: each.ratios[name] for name in FIGURES if name in each.ratios}
    shown = {name: ratio(of._replace(low=None) if narrow else of) for name, of in found.items()}
    return [each.layer, *(shown.get(name, MISSING) + _STAR * (name in each.best) for name in FIGURES)]


def under(found: Board, drive: str) -> list[str]:
    """Lines below the table of a drive: unfair conditions, layers that failed, and layers without a run."""
    lines = [f"{each.layer}: {each.error}" for each in found.drives[drive] if each.error]
    for layer, checks in found.checks[drive].items():
        lines += [f"{layer} beside {found.reference}: {text}" for text in fair.texts(checks, "unfair")]
    left = found.left_out[drive]
    if any(name not in each.ratios for each in found.drives[drive] for name in FIGURES):
        lines.append(f"{MISSING}: not every run has the figure; a TBW needs {NEEDS}")
    return lines + ([f"not on this drive: {', '.join(left)}"] if left else [])


def said(found: Board, seeds: int, workloads: Sequence[str]) -> str:
    """How to read the numbers."""
    repeated = f", ± half of the 95 % interval over {seeds} seeds" if seeds > 1 else ""
    others = [each for layers in found.drives.values() for each in layers if each.layer != found.reference]
    if any(ratio.deviation == 0 for each in others for ratio in each.ratios.values()):
        repeated += " (none where all seeds give one ratio)"
    return (
        f"Figures over those of {found.reference}: geometric mean over {', '.join(workloads)}{repeated}; "
        f"{STAR}. By {metric(found.by).label}. Every read verified; "
        "every acknowledgement checked."
    )


def _width(rows: Sequence[Sequence[str]]) -> int:
    columns = zip(headings(), *rows, strict=True)
    return sum(max(map(len, column)) + GAP for column in columns) - GAP


def render(found: Board, seeds: int, workloads: Sequence[str]) -> RenderableType:
    """The leaderboard for rich."""

    def tables(width: int) -> Iterator[RenderableType]:
        # Tables of one form, so that their columns compare.
        narrow = any(_width([cells(each) for each in layers]) > width for layers in found.drives.values())
        for drive, layers in found.drives.items():
            yield Text(drive, style="bold")
            yield from rows_of_text(headings(), [cells(each, narrow=narrow) for each in layers], 1, width)
            yield from (Text(line, style="yellow") for line in under(found, drive))
            yield Text()
        if narrow:
            yield Text("The intervals, for which this terminal is too narrow, are on the page.\n")

    return Group(ByWidth(tables), Text(said(found, seeds, workloads)))
