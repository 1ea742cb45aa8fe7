"""Draws a table of series in the style of a venue. The same data give the same bytes.

A point without an interval has no whiskers, because caps of zero width would claim certainty.
"""

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from ..errors import InputError
from .series import Choice
from .styles import COLOURS, DASHES, HATCHES, MARKERS, STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENDINGS = (".pdf", ".svg", ".pgf", ".png")
_HEIGHT = 0.62
"""Height over width."""
_MARKED = 12
"""Most markers of a line."""
_METADATA: dict[str, dict[str, Any]] = {
    ".pdf": {"Creator": "palimpsest", "Producer": "palimpsest", "CreationDate": None},
    ".svg": {"Creator": "palimpsest", "Date": None},
    ".png": {"Software": "palimpsest"},
}


def draw(
    data: pl.DataFrame, choice: Choice, path: Path, *, style: str, columns: int, labels: tuple[str, str], log: str
) -> bytes:
    """The drawing of the table of `series.table`, as the bytes of the file `path`, whose ending is in ENDINGS.

    The width is 1 or 2 `columns` of the venue `style`; `log` has the logarithmic axes: `x`, `y`, `xy` or empty. Raises
    InputError if pgf lacks LaTeX.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    venue = STYLES[style]
    width = venue.column_in if columns == 1 else venue.text_in
    height = venue.column_in * _HEIGHT
    with mpl.rc_context(cast(Any, venue.parameters())):
        canvas = Canvas(figsize=(width, height), layout="constrained")
        axes = canvas.subplots()
        {"bars": _bars, "heat": _heat}.get(choice.kind, _lines)(axes, data, choice)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        if "x" in log and choice.kind not in ("bars", "heat"):
            axes.set_xscale("log")
        if "y" in log and choice.kind != "heat":
            axes.set_yscale("log")
        try:
            drawn = io.BytesIO()
            canvas.savefig(drawn, format=path.suffix[1:], metadata=_METADATA.get(path.suffix))
        except (FileNotFoundError, RuntimeError) as error:
            if path.suffix != ".pgf":
                raise
            raise InputError(
                f"{path}: pgf needs LaTeX (xelatex), which measures its letters; expected .pdf or .svg"
            ) from error
    return drawn.getvalue()


def _names(data: pl.DataFrame) -> list[str]:
    return list(dict.fromkeys(data["series"].to_list()))


def _lines(axes: "Axes", data: pl.DataFrame, choice: Choice) -> None:
    names = _names(data)
    for at, name in enumerate(names):
        rows = data.filter(pl.col("series") == name)
        dense = rows.height > _MARKED
        is_noisy = dense and choice.kind == "time"  # marks of a noisy line look like points of their own
        look = {
            "color": COLOURS[at % len(COLOURS)], "linestyle": DASHES[at % len(DASHES)],
            "marker": "" if is_noisy else MARKERS[at % len(MARKERS)], "label": name,
            "markevery": max(1, rows.height // _MARKED) if dense else 1, "fillstyle": "none",
        }  # fmt: skip
        xs, ys = rows["x"].to_list(), rows["y"].to_list()
        if choice.kind in ("cdf", "tail"):
            axes.step(xs, ys, where="post", **look)
            continue
        if rows["low"].null_count() < rows.height:
            low, high = rows["low"].to_list(), rows["high"].to_list()
            below = [math.nan if bound is None else y - bound for y, bound in zip(ys, low, strict=True)]
            above = [math.nan if bound is None else bound - y for y, bound in zip(ys, high, strict=True)]
            axes.errorbar(xs, ys, yerr=[below, above], capsize=2, elinewidth=0.7, **look)
            continue
        axes.plot(xs, ys, **look)
    if len(names) > 1:
        axes.legend(loc="best", ncols=2 if len(names) > 4 else 1)


def _bars(axes: "Axes", data: pl.DataFrame, _choice: Choice) -> None:
    names, places = _names(data), list(dict.fromkeys(data["x"].to_list()))
    width = 0.8 / len(names)
    for at, name in enumerate(names):
        rows = {row["x"]: row for row in data.filter(pl.col("series") == name).to_dicts()}
        chosen = [(index, rows[place]) for index, place in enumerate(places) if place in rows]
        errors = [
            (row["y"] - row["low"], row["high"] - row["y"]) if row["low"] is not None else (math.nan, math.nan)
            for _, row in chosen
        ]
        varies = any(row["low"] is not None for _, row in chosen)
        axes.bar(
            [index - 0.4 + width * (at + 0.5) for index, _ in chosen], [row["y"] for _, row in chosen], width,
            yerr=list(zip(*errors, strict=True)) if varies else None, capsize=2,
            color=_tint(COLOURS[(at + 1) % len(COLOURS)]), hatch=HATCHES[at % len(HATCHES)], edgecolor="black",
            linewidth=0.6, label=name,
        )  # fmt: skip
    axes.set_xticks(range(len(places)), places)
    axes.grid(visible=False, axis="x")
    if len(names) > 1:
        axes.legend(loc="best", ncols=2 if len(names) > 4 else 1)


def _tint(colour: str) -> tuple[float, ...]:
    """A lighter colour, on which a hatch shows."""
    from matplotlib.colors import to_rgb

    return tuple(0.45 + 0.55 * part for part in to_rgb(colour))


def _heat(axes: "Axes", data: pl.DataFrame, _choice: Choice) -> None:
    names, places = _names(data), list(dict.fromkeys(data["x"].to_list()))
    found = {(row["series"], row["x"]): row["y"] for row in data.to_dicts()}
    grid = [[found.get((name, place), float("nan")) for place in places] for name in names]
    # From light to dark: in grey print larger is darker.
    image = axes.imshow(grid, cmap="cividis_r", aspect="auto")
    axes.set_xticks(range(len(places)), [_short(place) for place in places])
    axes.set_yticks(range(len(names)), names)
    axes.grid(visible=False)
    axes.figure.colorbar(image, ax=axes, pad=0.02)
    known = list(found.values())
    middle = (min(known) + max(known)) / 2
    for row, name in enumerate(names):
        for column, place in enumerate(places):
            value = found.get((name, place))
            if value is not None:
                colour = "white" if value > middle else "black"
                text = f"{value:#.3g}".rstrip(".")
                axes.text(column, row, text, ha="center", va="center", color=colour, fontsize="x-small")


def _short(place: object) -> str:
    return f"{place:g}" if isinstance(place, float) else str(place)
