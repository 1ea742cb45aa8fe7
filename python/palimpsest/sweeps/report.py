"""The page of a sweep, self-contained: any figure over any axes, all points, and failures."""

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from .. import fair
from .. import page as shell
from ..charts.common import Specification
from ..intervals import t_quantile
from ..metrics import Metric, best, is_silenced, metric_of, unit
from ..page import Section, details, escape, row, table
from ..result import flatten
from . import charts, fleet
from .checks import checks
from .finished import FinishedPoints
from .fleet import Fleet, fleets
from .frontier import Frontier, frontier
from .show import key_metrics, summary_line
from .values import axis_text, named_axes

MOST_NUMBERS = 2_000_000
"""Most numbers of a page; the page of a larger sweep has fewer figures, the table in sweep.parquet has all."""
MOST_ROWS = 2_000
MOST_REPEATS = 100
MOST_NOTES = 50
FRAGMENT_ROWS = 30


def _marks(sweep: FinishedPoints, metric: Metric, values: Sequence[float | None]) -> list[bool]:
    """Marks the points of the configurations whose mean over the seeds is the best."""
    axes = [axis for axis in sweep.axes if axis != "seed"]
    keys = [tuple(axis_text(point.axes.get(axis)) for axis in axes) for point in sweep]
    groups: dict[tuple[str, ...], list[float]] = {}
    for key, value in zip(keys, values, strict=True):
        groups.setdefault(key, []).extend([] if value is None else [value])
    means = [fmean(found) if found else None for found in groups.values()]
    marked = dict(zip(groups, best(metric, means), strict=True))
    return [marked[key] and value is not None for key, value in zip(keys, values, strict=True)]


def _rows(sweep: FinishedPoints, most: int) -> str:
    """The table of points as HTML."""
    metrics = key_metrics(sweep)
    results = (point.result for point in sweep)
    of_points = ([None if result is None else metric.of(result) for metric in metrics] for result in results)
    values = list(zip(*of_points, strict=True))
    silent = fair.silenced(checks(sweep))
    marks = [
        [False] * len(found) if is_silenced(metric.path, silent) else _marks(sweep, metric, found)
        for metric, found in zip(metrics, values, strict=True)
    ]
    axes = sweep.named
    titles = [*zip(axes, named_axes(axes), strict=True), *((each.label, each.label) for each in metrics)]
    heads = "".join(
        f'<th title="{escape(title)}"><button type="button">{escape(text)}</button></th>' for title, text in titles
    )
    rows = []
    for at, point in enumerate(sweep[:most]):
        cells = [f"<td>{escape(axis_text(point.axes.get(axis)))}</td>" for axis in axes]
        result = point.result
        if result is None:
            cells += ['<td class="failed">failed</td>', *["<td></td>"] * (len(metrics) - 1)] if metrics else []
        else:
            for column, metric in enumerate(metrics):
                value, is_best = values[column][at], marks[column][at]
                sort = "" if value is None else f' data-value="{value}"'
                mark = ' class="best"' if is_best else ""
                cells.append(f"<td{sort}{mark}>{'★ ' * is_best}{escape(metric.cell(result))}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    more = f"<p>and {len(sweep) - most:,} more, all in sweep.parquet</p>" if len(sweep) > most else ""
    body = f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return table("points", [body]) + more


def fragment(sweep: FinishedPoints) -> str:
    """The points as an HTML table without a page, for notebooks."""
    rows = _rows(sweep, FRAGMENT_ROWS).replace('<button type="button">', "").replace("</button>", "")
    failures = f"<h2>Failed points</h2>{_failures(sweep)}" if sweep.failed else ""
    return f"<p>{escape(summary_line(sweep))}</p>{rows}{failures}"


def _failures(sweep: FinishedPoints) -> str:
    items = "".join(f"<dt>{escape(point.label)}</dt><dd>{escape(point.error)}</dd>" for point in sweep.failed[:200])
    more = f"<p>and {len(sweep.failed) - 200:,} more</p>" if len(sweep.failed) > 200 else ""
    return f'<dl class="failures">{items}</dl>{more}' if sweep.failed else ""


def _shared(sweep: FinishedPoints) -> str:
    """The configuration that all points have in common."""
    same: dict[str, Any] | None = None
    for result in sweep.results():
        config = flatten(result["config"])
        same = config if same is None else {key: value for key, value in same.items() if config.get(key) == value}
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in (same or {}).items())


def _data(sweep: FinishedPoints) -> dict[str, Any]:
    """The data of the page's charts."""
    figures = charts.figures(sweep)
    most = max(8, MOST_NUMBERS // max(1, len(sweep)))
    kept = dict(list(figures.items())[:most])
    axes = [
        charts.axis(sweep, name) | {"words": words}
        for name, words in zip(sweep.named, named_axes(sweep.named), strict=True)
    ]
    places = [(axis["name"], {label: at for at, label in enumerate(axis["labels"])}) for axis in axes]
    points = [
        [None if (value := point.axes.get(name)) is None else of_labels[axis_text(value)] for name, of_labels in places]
        for point in sweep
    ]
    return {
        "axes": axes,
        "points": points,
        "figures": [
            {"name": name, "label": metric_of(name).label, "unit": unit(name), "values": values}
            | {"better": metric_of(name).better}
            for name, values in kept.items()
        ],
        # By repeats, from two on.
        "student": [t_quantile(repeats - 1) for repeats in range(2, MOST_REPEATS + 1)],
        "shown": charts.first_shown(sweep),
        "slo": None if (found := frontier(sweep)) is None else found.to_dict(),
    }


def _notes(sweep: FinishedPoints) -> str:
    compared = checks(sweep)
    notes = [*fair.texts(compared, "unfair"), *sweep.unmoved()]
    if len(sweep) < sweep.total:
        notes.append(f"{sweep.total - len(sweep):,} of {sweep.total:,} points are not finished yet.")
    figure = sweep.shown.get("figure")
    if figure is not None and figure not in charts.figures(sweep):
        notes.append(f"No point has the figure {figure} of the sweep file.")
    found = dict.fromkeys(fair.texts(compared, "said"))
    found |= dict.fromkeys(note for result in sweep.results() for note in result.get("notes", []))
    listed = "".join(f"<li>{escape(note)}</li>" for note in list(found)[:MOST_NOTES])
    folded = shell.folded(f"Notes of the runs ({len(found):,})", f"<ul>{listed}</ul>") if found else ""
    return shell.notes(notes) + folded


def _slo(found: Frontier, axes: Sequence[str]) -> str:
    """The frontier of the sweep's conditions: place of the chart, and table; empty if no configuration holds."""
    headings, *rows = found.rows(MOST_ROWS)
    in_words = dict(zip(axes, named_axes(axes), strict=True))
    figures = '<div class="chart" id="slo" role="img" aria-label="figures of the first condition"></div>' * bool(rows)
    body = [row((in_words.get(each, each).replace("\n", " ") for each in headings), "th"), *map(row, rows)]
    return f"{figures}{table('slo points', body)}" if rows else ""


def _measured(found: Sequence[Fleet]) -> list[str]:
    """The figures that some drive has."""
    return list(dict.fromkeys(name for fleet in found for name, values in fleet.values.items() if values))


def _fleets(found: Sequence[Fleet], drawn: Mapping[str, tuple[str, Specification]]) -> str:
    """The distributions over drives: a chart for each figure, and the table."""
    says = "The share of drives with at most this {}, of each fleet (of the first eight)."
    charts_ = "".join(shell.chart(place, says.format(metric_of(name).label)) for place, (name, _) in drawn.items())
    headings, *rows = fleet.rows(found)
    axes = len(found[0].axes)
    heads = [*(words.replace("\n", " ") for words in named_axes(headings[:axes])), *headings[axes:]]
    return charts_ + table("fleets points", [row(heads, "th"), *map(row, rows[:MOST_ROWS])])


def page(sweep: FinishedPoints) -> str:
    """The whole page."""
    configs = (("Sweep file", sweep.text), ("Configuration of all points", _shared(sweep)))
    axes = ", ".join(
        f"{words} ({len(sweep.values(axis))})" for axis, words in zip(sweep.named, named_axes(sweep.named), strict=True)
    )
    found, of_fleets = frontier(sweep), fleets(sweep)
    drawn = {f"fleet-{at}": (name, fleet.chart(of_fleets, name)) for at, name in enumerate(_measured(of_fleets))}
    promised = f'<p class="answer">{escape(found.sentence)}</p>' if found else ""
    sections = (
        ("conditions", "Conditions", _slo(found, sweep.axes) if found else ""),
        ("fleets", "Fleets", _fleets(of_fleets, drawn) if of_fleets else ""),
        ("failed", "Failed points", _failures(sweep)),
        ("points", "Points", _rows(sweep, MOST_ROWS)),
        ("configuration", "Configuration", "".join(details(name, escape(text)) for name, text in configs if text)),
    )
    return shell.fill(
        title=sweep.title,
        under=f"{summary_line(sweep)}. Axes: {axes or 'none'}.",
        head=f'{promised}<p class="answer" id="answer"></p>{_CHOICES}{_notes(sweep)}',
        sections=[Section(name, title, body) for name, title, body in sections if body],
        drawn={place: chart for place, (_, chart) in drawn.items()},
        data={"sweep": _data(sweep)},
        script="sweep.js",
    )


_CHOICES = """<div class="explorer"><form class="choices" id="controls" aria-label="what is drawn"></form>
<p class="caption" id="said"></p><div class="facets" id="facets"></div></div>"""
