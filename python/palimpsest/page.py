"""The shell of every page: one self-contained HTML file, with styles, scripts and plotly.

`assets/plotly-cartesian.min.js` is the part of plotly.js that draws bars, lines and heat maps, as published (npm:
plotly.js-cartesian-dist-min 4.1.1, under the MIT licence beside it): a third of the whole.
"""

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import zip_longest
from string import Template
from typing import Any

from . import charts
from .charts.blocks import STATES, SUBPAGES


@dataclass(frozen=True)
class Section:
    """A section of a page: anchor, heading, HTML, and the name in the navigation if other than the heading."""

    id: str
    title: str
    body: str
    short: str = ""


def escape(value: object) -> str:
    """Escapes a value for HTML."""
    return html.escape(str(value))


def row(cells: Iterable[object], tag: str = "td") -> str:
    """A row of a table; the first cell is its heading. Cells of the tag `th` are headings of columns."""
    first, *rest = map(escape, cells)
    scope = ' scope="row"' if tag == "td" else ""
    return f"<tr><th{scope}>{first}</th>{''.join(f'<{tag}>{cell}</{tag}>' for cell in rest)}</tr>"


def table(name: str, rows: Iterable[str]) -> str:
    """A table of the class `name` that scrolls where the page is narrow."""
    return f'<div class="wide"><table class="{name}">{"".join(rows)}</table></div>'


def records(heads: Sequence[str], rows: Iterable[Sequence[object]], marks: Sequence[str] = ()) -> str:
    """A table whose rows become blocks of names and values on a phone; `marks` has a class for each row, or none."""
    body = []
    for cells, mark in zip_longest(rows, marks, fillvalue=""):
        first, *rest = map(escape, cells)
        values = "".join(
            f'<td data-head="{escape(head)}">{cell}</td>' for head, cell in zip(heads[1:], rest, strict=True)
        )
        body.append(f'<tr class="{mark}"><th scope="row">{first}</th>{values}</tr>')
    return table("records", [row(heads, "th"), *body])


def tiles(shown: Iterable[Sequence[str]]) -> str:
    """Cards of key figures: label, value, and perhaps a difference."""
    tags = ("span", "b", "em")
    cards = ("".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in zip(tags, card, strict=False)) for card in shown)
    return f'<div class="tiles">{"".join(f"<div>{card}</div>" for card in cards)}</div>'


def notes(warnings: Iterable[str]) -> str:
    """Warnings that change the meaning of a figure."""
    return "".join(f'<p class="note">{escape(note)}</p>' for note in warnings)


def views(figures: Iterable[str], names: Mapping[str, str], first: str) -> str:
    """Figures by name, of which buttons show one at a time; paper shows all."""
    buttons = "".join(
        f'<button type="button" data-shows="{name}" aria-pressed="{str(name == first).lower()}">{text}</button>'
        for name, text in names.items()
    )
    return f'<div class="controls" data-views>{buttons}</div>{"".join(figures)}'


def folded(summary: str, body: str) -> str:
    """HTML that opens by a click on the summary."""
    return f"<details><summary>{escape(summary)}</summary>{body}</details>"


def details(summary: str, text: str) -> str:
    """Preformatted HTML that opens by a click on the summary."""
    return folded(summary, f"<pre>{text}</pre>")


def asset(name: str) -> str:
    """The text of a file of the page."""
    return (resources.files(__package__) / "assets" / name).read_text(encoding="utf-8")


def plotly_source() -> str:
    """plotly.js for a script element, reduced to the charts of this package."""
    return asset("plotly-cartesian.min.js")


def script_data(data: object) -> str:
    """Data as JSON inside a script element, which `</script>` would end, and `<!--<script>` keep open."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def chart(name: str, says: str, *, hidden: bool = False) -> str:
    """The place of a chart of `fill`'s data, with an explanation below."""
    label = escape(says)
    return (
        f'<figure id="figure-{name}"{" hidden" if hidden else ""}>'
        f'<div class="chart" id="{name}" role="img" aria-label="{label}"></div>'
        f"<figcaption>{label}</figcaption></figure>"
    )


def _colours(of: dict[str, tuple[str, str]]) -> list[dict[str, str]]:
    """Names with their colours on a light and a dark page, for the page's script."""
    return [{"name": name, "light": light, "dark": dark} for name, (light, dark) in of.items()]


def fill(
    title: str,
    under: str,
    head: str,
    sections: Sequence[Section],
    drawn: Mapping[str, charts.Specification],
    frames: Sequence[Mapping[str, Any]] = (),
    timelines: Sequence[Mapping[str, Any]] = (),
    style: str = "",
    data: Mapping[str, Any] | None = None,
    script: str = "",
) -> str:
    """The page: `drawn` has charts by the names of `chart`, `frames` and `timelines` data for the scripts.

    Plotly is included only if there is anything to draw. `title` and `under` are text, `head` is HTML, `style` more
    CSS, `script` the name of an asset that draws `data`.
    """
    whole = {
        "charts": drawn, "light": charts.LIGHT, "dark": charts.DARK, "frames": frames,
        "timelines": timelines,
        "states": _colours(STATES), "subpages": _colours(SUBPAGES), **(data or {}),
    }  # fmt: skip
    return Template(asset("report.template.html")).substitute(
        title=escape(title),
        under=escape(under),
        style=asset("report.css") + style,
        navigation="".join(
            f'<a href="#{each.id}">{escape(each.short or each.title)}</a>' for each in sections if len(sections) > 1
        ),
        head=head,
        sections="".join(
            f'<section id="{each.id}"><h2>{escape(each.title)}</h2>{each.body}</section>' for each in sections
        ),
        plotly=plotly_source() if drawn or frames or timelines or data else "",
        data=script_data(whole),
        script="".join(asset(name) for name in ("gantt.js", "report.js", script, "tables.js") if name),
    )


def live() -> str:
    """The page of a served drive, whose script reads `live.json` of the server."""
    return fill("Served drive", "Live figures", asset("live.html"), (), {}, data={"live": True}, script="live.js")
