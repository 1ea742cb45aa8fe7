"""The report: one HTML page that needs nothing but itself, for one run or several side by side."""

import html
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import charts, summary, units
from . import page as shell
from .charts import blocks, gantt
from .charts import volumes as of_volumes
from .metrics import (
    SECTIONS,
    best,
    factor,
    modelled,
    relative,
    response_time,
    unequal_promises,
    verdicts,
)
from .page import Section
from .result import Result, flatten

_PERCENTILES = (
    ("mean", "mean"), ("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p999", "p99.9"), ("p9999", "p99.99"),
    ("max", "max"),
)  # fmt: skip


def _escape(value: object) -> str:
    return html.escape(str(value))


def _row(cells: Sequence[object], tag: str = "td", row_class: str = "") -> str:
    first, *rest = cells
    body = f'<th scope="row">{_escape(first)}</th>' if tag == "td" else f"<th>{_escape(first)}</th>"
    body += "".join(f"<{tag}>{_escape(cell)}</{tag}>" for cell in rest)
    return f'<tr class="{row_class}">{body}</tr>' if row_class else f"<tr>{body}</tr>"


def _heads(results: Sequence[Result]) -> list[str]:
    """Heads of a table with a column for each layer, and one for its ratio to the first."""
    heads: list[str] = [""]
    for index, result in enumerate(results):
        heads += [result.label] if index == 0 else [result.label, "ratio"]
    return heads


def _metrics_table(results: Sequence[Result]) -> str:
    """Every figure, a column for each layer, with ratios to the first where there are several."""
    heads = _heads(results)
    rows = [_row(heads, "th")]
    for section, metrics in SECTIONS:
        shown = [metric for metric in metrics if metric.is_shown(results)]
        if shown:
            rows.append(f'<tr class="section"><th colspan="{len(heads)}">{_escape(section)}</th></tr>')
        for metric in shown:
            values = [metric.of(result) for result in results]
            marks = best(metric, values)
            cells: list[str] = []
            for index, value in enumerate(values):
                text = _escape(metric.cell(results[index]))
                cells.append(f"<td>{f'<strong>{text}</strong>' if marks[index] else text}</td>")
                if index:
                    cells.append(f'<td class="ratio">{factor(relative(value, values[0]))}</td>')
            rows.append(f'<tr><th scope="row">{_escape(metric.label)}</th>{"".join(cells)}</tr>')
    return f'<div class="wide"><table class="figures">{"".join(rows)}</table></div>'


def _facts(results: Sequence[Result]) -> str:
    first = results[0]
    facts = [("drive", summary.drive_line(first)), ("workload", summary.workload_line(first))]
    for result in results:
        name = "layer" if len(results) == 1 else result.label
        speed = f"simulated in {summary.speed_line(result)}"
        facts.append((name, f"{result.label}; seed {result['seed']}; {speed}" if len(results) == 1 else speed))
    return "".join(f"<dt>{_escape(label)}</dt><dd>{_escape(text)}</dd>" for label, text in facts)


def _tiles(result: Result) -> str:
    """The key figures of a run."""
    latency = result["latency_ns"] or {}
    throughput = result["throughput"] or {}
    tiles = [
        ("IOPS", units.count(throughput.get("iops"))),
        ("read p99", response_time(latency.get("read"), "p99")),
        ("write p99", response_time(latency.get("write"), "p99")),
        ("write amplification", units.ratio(result["write_amplification"])),
        ("erases", units.count(result["flash"]["erases"])),
        ("map DRAM, peak", units.size(result["mapping"]["bytes_peak"])),
    ]
    shown = [(label, value) for label, value in tiles if value != units.ABSENT]
    return "".join(f"<div><b>{_escape(value)}</b><span>{_escape(label)}</span></div>" for label, value in shown)


def _notes(results: Sequence[Result]) -> str:
    notes = [
        note if len(results) == 1 else f"{result.label}: {note}"
        for result in results
        for note in result.get("notes", [])
    ]
    unequal = unequal_promises((result.label, result) for result in results)
    sentences = verdicts(results)
    return (
        (f'<p class="note">{_escape(unequal)}</p>' if unequal else "")
        + "".join(f"<p>{_escape(text)}</p>" for text in sentences)
        + "".join(f'<p class="note">{_escape(note)}</p>' for note in notes)
    )


def fragment(results: Sequence[Result]) -> str:
    """The figures as HTML tables without a page around them, for notebooks."""
    return f"<dl>{_facts(results)}</dl>{_metrics_table(results)}"


def _percentiles(results: Sequence[Result]) -> str:
    """Percentiles of reads and writes, beside the distribution."""
    rows = []
    for kind in ("read", "write"):
        figures = [(result["latency_ns"] or {}).get(kind) or {} for result in results]
        if not any(result["requests"][kind] and found for result, found in zip(results, figures, strict=True)):
            continue
        heads = _heads(results)
        heads[0] = f"{kind}s" if len(results) > 1 else ""
        rows.append(_row(heads if len(results) > 1 else ["", f"{kind}s"], "th"))
        for key, name in _PERCENTILES:
            if any(key in found for found in figures):
                cells: list[object] = [name]
                for index, found in enumerate(figures):
                    cells.append(response_time(found, key))
                    if index:
                        cells.append(factor(relative(modelled(found, key), modelled(figures[0], key))))
                rows.append(_row(cells))
    return f'<div class="wide"><table class="percentiles">{"".join(rows)}</table></div>' if rows else ""


def _amounts(
    results: Sequence[Result], of: Callable[[Result], Mapping[str, Any]], show: Callable[[float | None], str]
) -> list[str]:
    """Rows of a table of whatever a layer reports, ratios to the first beside it."""
    found = [of(result) for result in results]
    rows = []
    for name in dict.fromkeys(name for figures in found for name in figures):
        values = [figures.get(name) for figures in found]
        if any(isinstance(value, int | float) and value for value in values):
            cells: list[object] = [name.replace("_", " ")]
            for index, value in enumerate(values):
                cells.append(show(value) if isinstance(value, int | float | None) else value)
                if index:
                    known = isinstance(value, int | float) and isinstance(values[0], int | float)
                    cells.append(factor(relative(value, values[0])) if known else "")
            rows.append(_row(cells))
    return rows


def _own_table(results: Sequence[Result]) -> str:
    """DRAM by table, energy by operation, and what the layers count themselves."""
    heads = _heads(results)
    rows = [_row(heads, "th")]
    parts: tuple[tuple[str, Callable[[Result], Mapping[str, Any]], Callable[[float | None], str]], ...] = (
        ("DRAM by table", lambda result: result["mapping"]["tables"], units.size),
        ("energy by operation", lambda result: result["energy_uj"], units.energy),
        ("the layer's own figures", lambda result: result["ftl_stats"], units.own),
    )
    for section, of, show in parts:
        found = _amounts(results, of, show)
        if found:
            rows += [f'<tr class="section"><th colspan="{len(heads)}">{_escape(section)}</th></tr>', *found]
    return f'<div class="wide"><table class="own">{"".join(rows)}</table></div>'


def _volume_table(results: Sequence[Result]) -> str:
    """Requests, bytes and response times of each volume, a row for each layer where there are several."""
    rows: list[str] = []
    left = 0
    for result in results:
        volumes = of_volumes.busiest(result, of_volumes.LISTED)
        left = max(left, len(result.get("volumes") or []) - len(volumes))
        for volume in volumes:
            times = volume["latency_ns"] or {}
            read, write = (times.get(kind) or {} for kind in ("read", "write"))
            cells: list[object] = [f"{volume['volume']}{f' ({result.label})' if len(results) > 1 else ''}"]
            cells += [units.count(volume["requests"][kind]) for kind in ("read", "write")]
            cells += [units.size(volume[f"bytes_{kind}"]) for kind in ("read", "written")]
            cells += [response_time(each, key) for each in (read, write) for key in ("mean", "p99", "max")]
            rows.append(_row(cells))
    if not rows:
        return ""
    heads = ("volume", "reads", "writes", "read", "written", "read mean", "p99", "max", "write mean", "p99", "max")
    more = f"<p>{left:,} more volumes are in the result.</p>" if left else ""
    return f'<div class="wide"><table class="volumes">{_row(heads, "th")}{"".join(rows)}</table></div>{more}'


def _player(results: Sequence[Result]) -> str:
    """The map of blocks with its controls; `assets/report.js` draws and plays it."""
    names = "".join(f"<option>{_escape(result['ftl'])}</option>" for result in results)
    layer = f'<select data-layer aria-label="layer">{names}</select>' if len(results) > 1 else ""
    shown = "".join(
        f'<button type="button" data-quantity="{name}" aria-pressed="{str(name == "state").lower()}">{text}</button>'
        for name, text in (("state", "state"), ("valid", "valid share"), ("erases", "erases"))
    )
    says = "A row for each plane, by channel and die; a cell for each block, or for neighbours that share it."
    return (
        f'<h3>Map of blocks</h3><figure data-player><div class="controls">{layer}{shown}</div>'
        '<div class="controls"><button type="button" data-play>play</button>'
        '<input type="range" data-slider min="0" value="0" step="1" aria-label="moment of the run">'
        '<output data-output></output></div><div class="key" data-key></div>'
        f'<div class="chart" id="map" data-map role="img" aria-label="{_escape(says)}"></div>'
        f"<figcaption>{_escape(says)} The stronger its colour, the more is valid. A cell of several blocks is open "
        "or bad where one of them is, else what most of them are. Flash is as it is planned at that moment."
        "</figcaption></figure>"
    )


def _timeline(names: Sequence[str]) -> str:
    """The timeline with what moves it, of the layers that have one; `assets/gantt.js` brings it to life."""
    options = "".join(f"<option>{_escape(name)}</option>" for name in names)
    layer = f'<select data-run aria-label="layer">{options}</select>' if len(names) > 1 else ""
    moves = (
        ("earlier", "earlier"), ("later", "later"), ("closer", "zoom in"), ("farther", "zoom out"),
        ("everything", "all"),
    )  # fmt: skip
    buttons = "".join(f'<button type="button" data-{name}>{text}</button>' for name, text in moves)
    fields = "".join(
        f'<label>{text}<input type="number" min="1" step="1" data-{name}></label>'
        for name, text in (("request", "request"), ("number", "operation"))
    )
    says = "Commands and transfers on the bus of each channel, work in the array of each plane; gates as arrows."
    return (
        f'<figure data-timeline><div class="controls">{layer}{buttons}{fields}<output data-sight></output></div>'
        f'<div class="chart" id="timeline" data-lanes role="img" aria-label="{_escape(says)}"></div>'
        f"<figcaption>{_escape(says)} The colour is that of the cause, fainter for reads, stronger for erases. "
        "An arrow goes from the end of an operation to the start of one whose gate it closed: those of the operation "
        "pointed at last, or all where they are few. Drag to zoom.</figcaption>"
        '<div class="wide below"><table class="operation" data-operation></table></div></figure>'
    )


def _response_times(results: Sequence[Result]) -> str:
    views = (("cdf", "distribution"), ("latency", "tail"))
    buttons = "".join(
        f'<button type="button" data-shows="{name}" aria-pressed="{str(name == "cdf").lower()}">{text}</button>'
        for name, text in views
    )
    figures = "".join(shell.chart(name, charts.CHARTS[name].says, hidden=name != "cdf") for name, _ in views)
    return (
        f'<div class="beside"><div><div class="controls" data-views>{buttons}</div>{figures}</div>'
        f"{_percentiles(results)}</div>"
    )


def _sections(
    results: Sequence[Result], drawn: Mapping[str, charts.Specification], plays: bool, timed: Sequence[str]
) -> list[Section]:
    """The charts, those on one subject together."""

    def figures(*names: str) -> str:
        return "".join(shell.chart(name, charts.CHARTS[name].says) for name in names if name in drawn)

    over_time = "time" if "time" in drawn else "progress"
    bodies = (
        ("response", "Response times", _response_times(results) if "cdf" in drawn else ""),
        ("over-time", charts.CHARTS[over_time].title, figures(over_time)),
        ("by-volume", charts.CHARTS["volumes"].title, figures("volumes") + _volume_table(results)),
        ("operations", "Flash operations by cause", figures("flash")),
        ("timeline-of-operations", "Timeline", _timeline(timed) if timed else ""),
        ("busy", "Utilisation", figures("utilization")),
        ("states-of-blocks", "States of blocks", figures("states") + (_player(results) if plays else "")),
        ("wear-of-blocks", "Wear", figures("wear", "wear_map")),
        ("reliability-of-reads", "Reliability", figures("reliability") + _reliability_table(results)),
        ("figures", "Figures", _metrics_table(results)),
        ("own", "DRAM, energy, layer", _own_table(results)),
    )
    return [Section(name, title, body) for name, title, body in bodies if body]


def _reliability_table(results: Sequence[Result]) -> str:
    """What reads with errors took and lost; nothing where reads have none."""
    if not any(result.get("reliability") or result.get("rain") for result in results):
        return ""
    heads = _heads(results)
    rows = [_row(heads, "th")]

    def lost(result: Result) -> Mapping[str, Any]:
        return (result.get("reliability") or {}).get("lost_subpages") or {}

    def rest(result: Result) -> Mapping[str, Any]:
        return {
            "reads of the host that failed": (result.get("reliability") or {}).get("failed_reads"),
            "steps of retries": result["flash"]["read_retries"],
            "dies that failed": (result.get("reliability") or {}).get("failed_dies"),
            "blocks refreshed": result["ftl_stats"].get("refreshed_blocks"),
            "blocks retired": result["lifetime"]["retired_blocks"],
        }

    def parity(result: Result) -> Mapping[str, Any]:
        rain = result.get("rain") or {}
        shown = {
            "pages of parity programmed": "parity_programs",
            "reads rebuilt": "rebuilt_reads",
            "reads that could not be": "failed_rebuilds",
            "pages moved from dead dies": "moved_pages",
        }
        return {name: rain[key] for name, key in shown.items() if key in rain}

    sections = [("subpages lost, by the cause of the read", lost), ("reads and blocks", rest)]
    if any(result.get("rain") for result in results):
        sections.append(("parity across dies", parity))
    for section, of in sections:
        found = _amounts(results, of, units.count) or [_row(["none", *[""] * (len(heads) - 1)])]
        rows += [f'<tr class="section"><th colspan="{len(heads)}">{_escape(section)}</th></tr>', *found]
    return f'<div class="wide"><table class="reliability">{"".join(rows)}</table></div>'


def _settings(text: str) -> dict[str, object]:
    try:
        return flatten(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return {}


def _marked(text: str, different: set[str]) -> str:
    """A configuration with the lines of the keys that differ marked."""
    lines, table = [], ""
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith("[") and bare.endswith("]"):
            table = bare.strip("[]") + "."
        key = table + bare.split("=")[0].strip()
        shown = _escape(line)
        lines.append(
            f"<mark>{shown}</mark>" if "=" in bare and not bare.startswith("#") and key in different else shown
        )
    return "\n".join(lines)


def _configuration(texts: Mapping[str, str]) -> str:
    """What differs between the configurations, by layer, and all of each."""
    found = {name: _settings(text) for name, text in texts.items()}
    keys = dict.fromkeys(key for settings in found.values() for key in settings)
    different = {key for key in keys if len({repr(settings.get(key)) for settings in found.values()}) > 1}
    table = ""
    if len(found) > 1:
        rows = [_row(["key", *found], "th")]
        rows += [_row([key, *(each.get(key, "-") for each in found.values())]) for key in keys if key in different]
        table = f"<p>{len(different)} of {len(keys)} keys differ; they are marked below.</p>" + (
            f'<div class="wide"><table class="settings">{"".join(rows)}</table></div>' if different else ""
        )
    return table + "".join(
        f"<details><summary>{_escape(name)}</summary><pre>{_marked(text, different)}</pre></details>"
        for name, text in texts.items()
    )


def page(results: Sequence[Result]) -> str:
    """The whole page, of one run or several on the same workload."""
    specifications = {name: charts.specification(name, results) for name in charts.CHARTS}
    drawn = {name: chart for name, chart in specifications.items() if chart is not None}
    drawn.pop("progress" if "time" in drawn else "time", None)
    frames = [found for result in results if (found := blocks.frames(result)) is not None]
    timelines = [found for result in results if (found := gantt.timeline(result)) is not None]
    sections = _sections(results, drawn, len(frames) == len(results), [each["ftl"] for each in timelines])
    configurations = {result.label: result.configuration for result in results if result.configuration}
    if configurations:
        sections.append(Section("configuration", "Configuration", _configuration(configurations)))
    names = ", ".join(result.label for result in results)
    tiles = f'<div class="tiles">{_tiles(results[0])}</div>' if len(results) == 1 else ""
    return shell.fill(
        title=f"{names} on {results[0]['ssd']}",
        under=str(results[0]["workload"]),
        head=f"{tiles}{_notes(results)}<dl>{_facts(results)}</dl>",
        sections=sections,
        drawn=drawn,
        frames=frames if len(frames) == len(results) else (),
        timelines=timelines,
    )
