"""The report: one HTML page that needs nothing but itself, for one run or several side by side."""

import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template

from . import charts, comparison, summary, units
from .result import Result

__all__ = ["fragment", "page"]


def _escape(value: object) -> str:
    return html.escape(str(value))


def _row(cells: Sequence[object], tag: str = "td", row_class: str = "") -> str:
    first, *rest = cells
    body = f'<th scope="row">{_escape(first)}</th>' if tag == "td" else f"<th>{_escape(first)}</th>"
    body += "".join(f"<{tag}>{_escape(cell)}</{tag}>" for cell in rest)
    return f'<tr class="{row_class}">{body}</tr>' if row_class else f"<tr>{body}</tr>"


def _metrics_table(results: Sequence[Result]) -> str:
    """Every figure, a column for each layer, with ratios to the first where there are several."""
    heads: list[str] = [""]
    for index, result in enumerate(results):
        heads += [str(result["ftl"])] if index == 0 else [str(result["ftl"]), "ratio"]
    rows = [_row(heads, "th")]
    for section, metrics in comparison.SECTIONS:
        shown = [metric for metric in metrics if any(metric.of(result) for result in results)]
        if shown:
            rows.append(f'<tr class="section"><th colspan="{len(heads)}">{_escape(section)}</th></tr>')
        for metric in shown:
            values = [metric.of(result) for result in results]
            marks = comparison.best(metric, values)
            cells: list[str] = []
            for index, value in enumerate(values):
                text = _escape(metric.show(value))
                cells.append(f"<td>{f'<strong>{text}</strong>' if marks[index] else text}</td>")
                if index:
                    cells.append(f'<td class="ratio">{comparison.factor(comparison.relative(value, values[0]))}</td>')
            rows.append(f'<tr><th scope="row">{_escape(metric.label)}</th>{"".join(cells)}</tr>')
    return f'<div class="wide"><table class="figures">{"".join(rows)}</table></div>'


def _facts(results: Sequence[Result]) -> str:
    first = results[0]
    facts = [("drive", summary.drive_line(first)), ("workload", summary.workload_line(first))]
    for result in results:
        name = "layer" if len(results) == 1 else str(result["ftl"])
        speed = f"simulated in {summary.speed_line(result)}"
        facts.append((name, f"{result['ftl']}; seed {result['seed']}; {speed}" if len(results) == 1 else speed))
    return "".join(f"<dt>{_escape(label)}</dt><dd>{_escape(text)}</dd>" for label, text in facts)


def _tiles(result: Result) -> str:
    """The few figures that one looks at first."""
    latency = result["latency_ns"] or {}
    throughput = result["throughput"] or {}
    tiles = [
        ("IOPS", units.count(throughput.get("iops"))),
        ("read p99", units.nanoseconds((latency.get("read") or {}).get("p99"))),
        ("write p99", units.nanoseconds((latency.get("write") or {}).get("p99"))),
        ("write amplification", units.ratio(result["write_amplification"])),
        ("erases", units.count(result["flash"]["erases"])),
        ("map DRAM, peak", units.size(result["mapping"]["bytes_peak"])),
    ]
    shown = [(label, value) for label, value in tiles if value != units.ABSENT]
    return "".join(f"<div><b>{_escape(value)}</b><span>{_escape(label)}</span></div>" for label, value in shown)


def _notes(results: Sequence[Result]) -> str:
    notes = [
        note if len(results) == 1 else f"{result['ftl']}: {note}"
        for result in results
        for note in result.get("notes", [])
    ]
    sentences = comparison.verdicts(results)
    return "".join(f"<p>{_escape(text)}</p>" for text in sentences) + "".join(
        f'<p class="note">{_escape(note)}</p>' for note in notes
    )


def fragment(results: Sequence[Result]) -> str:
    """The figures as HTML tables without a page around them, for notebooks."""
    return f"<dl>{_facts(results)}</dl>{_metrics_table(results)}"


def page(results: Sequence[Result], configs: Mapping[str, str]) -> str:
    """The whole page.

    Args:
        results: one run, or several on the same workload.
        configs: the resolved configuration of each, by its layer.
    """
    from plotly.offline import get_plotlyjs

    specifications = {name: charts.specification(name, results) for name in charts.CHARTS}
    drawn = {name: chart for name, chart in specifications.items() if chart is not None}
    names = ", ".join(str(result["ftl"]) for result in results)
    template = Template((resources.files(__package__) / "report.template.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=_escape(f"{names} on {results[0]['ssd']}"),
        workload=_escape(results[0]["workload"]),
        tiles=f'<div class="tiles">{_tiles(results[0])}</div>' if len(results) == 1 else "",
        facts=_facts(results),
        notes=_notes(results),
        figures=_metrics_table(results),
        charts="".join(
            f'<section><h2>{_escape(charts.CHARTS[name][0])}</h2><div class="chart" id="{name}"></div></section>'
            for name in drawn
        ),
        configs="<h2>Configuration</h2>"
        + "".join(
            f"<details><summary>{_escape(name)}</summary><pre>{_escape(text)}</pre></details>"
            for name, text in configs.items()
            if text
        ),
        plotly=get_plotlyjs(),
        # `</` would end the script element.
        data=json.dumps({"charts": drawn, "light": charts.LIGHT, "dark": charts.DARK}).replace("</", "<\\/"),
    )
