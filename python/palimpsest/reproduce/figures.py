"""A figure: a table of data and a picture of the table, both saved.

Pictures are SVG by Matplotlib, because a self-contained page embeds them and the same data must give the same bytes.
Offline pages of plotly hold 5 MB of script each, and the image export of plotly needs a browser.
"""

import base64
import html
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..charts import LIGHT
from ..files import parquet, write_in_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Draw", "Figure", "bars", "levels", "lines", "panels", "slanted", "write_page"]

Draw = Callable[["Axes", pl.DataFrame], None]


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes:
        id: name of the files.
        title: the measured quantity.
        note: how the figure was made, and differences from the paper.
        data: the numbers, a row for each bar or point.
        svg: the picture.
        page: the page that shows the figure; empty for the main page.
    """

    id: str
    title: str
    note: str
    data: pl.DataFrame
    svg: str
    page: str = ""

    @property
    def data_file(self) -> str:
        """Name of the file of numbers; a CSV file of the same name holds the same numbers."""
        return f"{self.id}.parquet"

    @property
    def picture_file(self) -> str:
        """Name of the picture."""
        return f"{self.id}.svg"

    def files(self) -> Iterator[tuple[str, bytes | str]]:
        """Names and contents of the files: the data as Parquet and CSV, and the picture as SVG."""
        yield self.data_file, parquet(self.data)
        yield f"{self.id}.csv", self.data.write_csv()
        yield self.picture_file, self.svg

    def image(self) -> str:
        """The picture as an address that a page can hold."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()

    def to_dict(self, folder: Path | None) -> dict[str, Any]:
        """Texts and files of the figure, for JSON.

        Args:
            folder: of the files; None if no file was written.
        """
        return {
            "id": self.id,
            "title": self.title,
            "note": self.note,
            "data": None if folder is None else str(folder / self.data_file),
            "picture": None if folder is None else str(folder / self.picture_file),
        }

    def to_html(self, prefix: str = "") -> str:
        """Title, picture and note as a block of a page, whose name begins with `prefix`."""
        title, note = html.escape(self.title), html.escape(self.note)
        return (
            f'<div id="{prefix}{self.id}"><h4>{title}</h4><img alt="{title}" src="{self.image()}">'
            f'<p class="made">{note}</p></div>'
        )


def write_page(
    folder: Path,
    name: str,
    made: dict[str, Any],
    page: str,
    figures: Sequence[Figure],
    more: Mapping[str, bytes | str] | None = None,
) -> None:
    """Writes `name`.json, `more` files, data and a picture of each figure, and index.html to a folder, in this order.

    Raises:
        OSError: a file could not be written; the error lists the files that were kept.
    """

    def files() -> Iterator[tuple[str, bytes | str]]:
        yield f"{name}.json", json.dumps(made, indent=2) + "\n"
        yield from (more or {}).items()
        for figure in figures:
            yield from figure.files()
        yield "index.html", page

    write_in_order(folder, files())


def panels(data: pl.DataFrame, draws: list[tuple[str, Draw]], width: float = 9.0, height: float = 3.4) -> str:
    """Panels below each other as SVG: a title and a drawing function for each."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    settings: dict[Any, Any] = {
        "svg.hashsalt": "palimpsest", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10,
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.grid.axis": "y",
        "grid.color": "#e2e1dc", "axes.axisbelow": True, "legend.frameon": False,
    }  # fmt: skip
    with mpl.rc_context(settings):
        canvas = Canvas(figsize=(width, height * len(draws)), layout="constrained")
        for index, (title, draw) in enumerate(draws, start=1):
            axes = canvas.add_subplot(len(draws), 1, index)
            axes.set_title(title, loc="left", fontsize=11)
            draw(axes, data)
        text = io.StringIO()
        canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def _legend(axes: "Axes", columns: int) -> None:
    """Adds the legend above the panel, at the right, because a legend inside would cover bars."""
    axes.legend(ncols=columns, loc="lower right", bbox_to_anchor=(1, 1), fontsize=9, borderaxespad=0.2)


def _short(number: float) -> str:
    """Three digits of a number, thousands as `k`."""
    return f"{number:.3g}" if abs(number) < 1000 else f"{number / 1000:.3g}k"


_MOST_NUMBERS = 90
_MOST_LEVEL = 20
"""Bars of a panel that have their numbers written above them, and of these the most whose numbers fit unturned."""


def bars(
    group: str,
    series: str,
    value: str,
    label: str,
    *,
    log: bool = False,
    paper: Sequence[str] = (),
    line: str = "paper",
) -> Draw:
    """Grouped bars: a group for each value of `group`, with a bar for each value of `series` and its number above.

    Args:
        group: column of the groups.
        series: column of the bars of a group.
        value: column of the heights; where there are columns `VALUE_low` and `VALUE_high`, whiskers between them.
        label: of the axis.
        log: whether the axis is logarithmic.
        paper: columns of the paper's numbers, or null: a mark across the bar for each number.
        line: name of the marks in the legend.
    """

    def draw(axes: "Axes", data: pl.DataFrame) -> None:
        groups = data[group].unique(maintain_order=True).to_list()
        names = data[series].unique(maintain_order=True).to_list()
        width = 0.8 / len(names)
        numbered, crowded = len(groups) * len(names) <= _MOST_NUMBERS, len(groups) * len(names) > _MOST_LEVEL
        marked: list[tuple[float, float, float]] = []
        for index, name in enumerate(names):
            rows = {row[group]: row for row in data.filter(pl.col(series) == name).iter_rows(named=True)}
            places = {each: at + (index - (len(names) - 1) / 2) * width for at, each in enumerate(groups)}
            heights = [rows[each][value] if each in rows else None for each in groups]
            shown = [height or 0 for height in heights]
            drawn = axes.bar(list(places.values()), shown, width, label=str(name), color=LIGHT[index % len(LIGHT)])
            if numbered:
                texts = ["" if height is None else _short(height) for height in heights]
                ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.75}
                axes.bar_label(drawn, texts, rotation=90 if crowded else 0, fontsize=7, padding=2, bbox=ground)
            there = [(places[each], row) for each, row in rows.items() if row[value] is not None]
            if f"{value}_low" in data.columns:
                for place, row in there:
                    axes.vlines(place, row[f"{value}_low"], row[f"{value}_high"], color="#52514e", linewidth=1)
            marked += [(place, row[each], width) for place, row in there for each in paper if row[each] is not None]
        for number, (place, height, wide) in enumerate(marked):
            named = "" if number else line
            axes.hlines(height, place - wide / 2, place + wide / 2, color="black", linewidth=2.2, label=named)
        axes.set_xticks(range(len(groups)), [str(each) for each in groups])
        axes.set_ylabel(label)
        if log:
            axes.set_yscale("log")
        if numbered and crowded:
            axes.margins(y=0.18)
        _legend(axes, len(names) + bool(marked))

    return draw


def slanted(draw: Draw, degrees: int = 30, size: int = 8) -> Draw:
    """The same with long names below the axis, aslant."""

    def drawn(axes: "Axes", data: pl.DataFrame) -> None:
        draw(axes, data)
        axes.tick_params(axis="x", rotation=degrees, labelsize=size)

    return drawn


def lines(x: str, series: str, value: str, x_label: str, label: str) -> Draw:
    """A line for each value of a column."""

    def draw(axes: "Axes", data: pl.DataFrame) -> None:
        for index, name in enumerate(data[series].unique(maintain_order=True).to_list()):
            rows = data.filter(pl.col(series) == name)
            color = LIGHT[index % len(LIGHT)]
            axes.plot(rows[x].to_list(), rows[value].to_list(), label=str(name), color=color, marker="o", markersize=3)
        axes.set_xlabel(x_label)
        axes.set_ylabel(label)
        # Too many names for the space beside the title: inside, above the lines.
        axes.margins(y=0.3)
        axes.set_ylim(bottom=0)
        axes.legend(ncols=3, loc="upper right", fontsize=9)

    return draw


def levels(group: str, value: str, paper: float, label: str, line: str = "paper") -> Draw:
    """A horizontal bar for each row, and a line at `paper`, which the legend calls `line`."""

    def draw(axes: "Axes", data: pl.DataFrame) -> None:
        groups = data[group].to_list()
        values = [number or 0 for number in data[value].to_list()]
        axes.barh(range(len(groups)), values, color=LIGHT[0])
        axes.set_yticks(range(len(groups)), groups, fontsize=8)
        axes.invert_yaxis()
        axes.axvline(paper, color=LIGHT[1], linewidth=2, label=f"{line}: {paper:g}")
        axes.set_xlabel(label)
        _legend(axes, 1)

    return draw
