"""The page of a sweep, self-contained: any figure over any axes, all points, and failures."""

import json
from collections.abc import Sequence
from importlib import resources
from string import Template
from typing import Any

from .. import charts as colours
from ..metrics import metric_of, unit
from ..page import asset, details, escape, plotly_source, row, script_data, table
from ..result import flatten
from . import charts
from .finished import FinishedPoints
from .frontier import frontier
from .show import key_metrics, promises, summary_line
from .values import axis_text

MOST_NUMBERS = 2_000_000
"""Most numbers of a page; the page of a larger sweep has fewer figures, the table in sweep.parquet has all."""
MOST_ROWS = 2_000
FRAGMENT_ROWS = 30


def _rows(sweep: FinishedPoints, most: int) -> str:
    """The table of points as HTML."""
    metrics = key_metrics(sweep)
    heads = "".join(
        f'<th><button type="button">{escape(name)}</button></th>'
        for name in [*sweep.axes, *(metric.label for metric in metrics)]
    )
    rows = []
    for point in sweep[:most]:
        cells = [f"<td>{escape(axis_text(point.axes.get(axis)))}</td>" for axis in sweep.axes]
        if point.result is None:
            cells += ['<td class="failed">failed</td>', *["<td></td>"] * (len(metrics) - 1)] if metrics else []
        else:
            for metric in metrics:
                value = metric.of(point.result)
                sort = "" if value is None else f' data-value="{value}"'
                cells.append(f"<td{sort}>{escape(metric.cell(point.result))}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    more = f"<p>and {len(sweep) - most:,} more, all in sweep.parquet</p>" if len(sweep) > most else ""
    body = f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return table("points", [body]) + more


def fragment(sweep: FinishedPoints) -> str:
    """The points as an HTML table without a page, for notebooks."""
    rows = _rows(sweep, FRAGMENT_ROWS).replace('<button type="button">', "").replace("</button>", "")
    return f"<p>{escape(summary_line(sweep))}</p>{rows}{_failures(sweep)}"


def _failures(sweep: FinishedPoints) -> str:
    if not sweep.failed:
        return ""
    items = "".join(f"<dt>{escape(point.label)}</dt><dd>{escape(point.error)}</dd>" for point in sweep.failed[:200])
    more = f"<p>and {len(sweep.failed) - 200:,} more</p>" if len(sweep.failed) > 200 else ""
    return f'<h2>Failed points</h2><dl class="failures">{items}</dl>{more}'


def _shared(sweep: FinishedPoints) -> str:
    """The configuration that all points have in common."""
    configs = [flatten(point.result["config"]) for point in sweep if point.result is not None]
    if not configs:
        return ""
    same = {key: value for key, value in configs[0].items() if all(config.get(key) == value for config in configs)}
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in same.items())


def _data(sweep: FinishedPoints) -> dict[str, Any]:
    """The data of the page's charts."""
    figures = charts.figures(sweep)
    most = max(8, MOST_NUMBERS // max(1, len(sweep)))
    kept = dict(list(figures.items())[:most])
    axes = [charts.axis(sweep, name) for name in sweep.axes]
    points = [[_index(axis["labels"], point.axes.get(axis["name"])) for axis in axes] for point in sweep]
    return {
        "axes": axes,
        "points": points,
        "figures": [
            {"name": name, "label": metric_of(name).label, "unit": unit(name), "values": values}
            for name, values in kept.items()
        ],
        "shown": charts.first_shown(sweep),
        "slo": None if (found := frontier(sweep)) is None else found.to_dict(),
        "light": colours.LIGHT,
        "dark": colours.DARK,
    }


def _index(labels: Sequence[str], value: object) -> int | None:
    return None if value is None else labels.index(axis_text(value))


def _notes(sweep: FinishedPoints) -> str:
    unequal = promises(sweep)
    notes = [unequal] if unequal else []
    if len(sweep) < sweep.total:
        notes.append(f"{sweep.total - len(sweep):,} of {sweep.total:,} points are not finished yet.")
    figure = sweep.shown.get("figure")
    if figure is not None and figure not in charts.figures(sweep):
        notes.append(f"No point has the figure {figure} of the sweep file.")
    found = dict.fromkeys(note for point in sweep if point.result is not None for note in point.result.get("notes", []))
    if found:
        notes.append(f"Notes of the runs ({len(found):,} different), such as: {next(iter(found))}")
    return "".join(f'<p class="note">{escape(note)}</p>' for note in notes)


def _slo(sweep: FinishedPoints) -> str:
    """The frontier of the sweep's conditions: sentence, place of the chart, and table; empty without conditions."""
    if (found := frontier(sweep)) is None:
        return ""
    headings, *rows = found.rows(MOST_ROWS)
    figures = '<div class="chart" id="slo" role="img" aria-label="figures of the first condition"></div>' * bool(rows)
    body = [row((each.replace("\n", " ") for each in headings), "th"), *map(row, rows)]
    listed = table("slo points", body) if rows else ""
    return f"<h2>Conditions</h2><p><b>{escape(found.sentence)}</b></p>{figures}{listed}"


def page(sweep: FinishedPoints) -> str:
    """The whole page."""
    template = Template((resources.files(__package__) / "sweep.template.html").read_text(encoding="utf-8"))
    configs = (("Sweep file", sweep.text), ("Configuration of all points", _shared(sweep)))
    axes = ", ".join(f"{axis} ({len(sweep.values(axis))})" for axis in sweep.axes)
    return template.substitute(
        title=escape(sweep.title),
        under=escape(f"{summary_line(sweep)}. Axes: {axes or 'none'}."),
        notes=_notes(sweep),
        failures=_failures(sweep),
        points=_rows(sweep, MOST_ROWS),
        configs="".join(details(name, escape(text)) for name, text in configs if text),
        slo=_slo(sweep),
        plotly=plotly_source(),
        tables=asset("tables.js"),
        data=script_data(_data(sweep)),
    )
