"""The report: one self-contained HTML page, for one run or several side by side."""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import against, answers, charts, evidence, summary, tenants, units, why
from . import page as shell
from .charts import blocks, gantt
from .charts import volumes as of_volumes
from .metrics import LATENCIES, METRICS, Metric, factor, paired, relative, response_time, sections
from .page import Section, details, escape, folded, row, table, tiles
from .result import Result, flatten

_PERCENTILES = (*LATENCIES[:-1], ("p9999", "p99.99"), LATENCIES[-1])


def _section(heads: Sequence[str], title: str) -> str:
    return f'<tr class="section"><th colspan="{len(heads)}">{escape(title)}</th></tr>'


def _heads(results: Sequence[Result]) -> list[str]:
    """Heads of a table: a column for each layer, and one for the ratio to the first."""
    heads: list[str] = [""]
    for index, result in enumerate(results):
        heads += [result.label] if index == 0 else [result.label, "ratio"]
    return heads


def _exact(value: float | None) -> str:
    return "" if value is None else f' data-value="{value}"'


def _rows(results: Sequence[Result], metrics: Iterable[Metric]) -> list[str]:
    """Rows of figures with ratios to the first layer; the best of a row is strong."""
    rows = []
    for metric in metrics:
        values = [metric.of(result) for result in results]
        marks = answers.marks(metric, results)
        cells: list[str] = []
        for index, value in enumerate(values):
            text = escape(metric.cell(results[index]))
            if results[index].repeats and value:
                text += escape(evidence.spread(results[index], ".".join(metric.path)))
            cells.append(f"<td{_exact(value)}>{f'<strong>{text}</strong>' if marks[index] else text}</td>")
            if index:
                ratio = paired(metric, results[index], results[0])
                cells.append(f'<td class="ratio"{_exact(ratio)}>{factor(ratio)}</td>')
        rows.append(f'<tr><th scope="row">{escape(metric.label)}</th>{"".join(cells)}</tr>')
    return rows


def _class(name: str, results: Sequence[Result]) -> str:
    """The class of a table, with `many` if paper needs small letters for all layers."""
    return f"{name} many" if len(results) > 3 else name


def _metrics_table(results: Sequence[Result]) -> str:
    """Every figure, a column for each layer, with ratios to the first if there are several."""
    heads = _heads(results)
    rows = [row(heads, "th")]
    for section, metrics in sections(results):
        shown = [metric for metric in metrics if metric.is_shown(results)]
        rows += [_section(heads, section), *_rows(results, shown)] if shown else []
    return table(_class("figures", results), rows)


def _listed(facts: Iterable[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{escape(label)}</dt><dd>{escape(text)}</dd>' for label, text in facts)}</dl>"


def _facts(results: Sequence[Result]) -> list[tuple[str, str]]:
    """Drive and workload; the title has the name of the workload."""
    first = results[0]
    workload = summary.workload_line(first).removeprefix(f"{first['workload']}: ")
    of = [(result.label, text) for result in results if (text := summary.amplification(result))]
    found = [("write amplification", text if len(results) == 1 else f"{label}: {text}") for label, text in of]
    return [("drive", summary.drive_line(first)), ("workload", workload), *found, *evidence.rows(results)]


_TILES = {
    "read p99": "read p99", "write p99": "write p99", "write amplification": "write amplification",
    "TBW": "endurance (TBW)", "IOPS": "IOPS", "erases": "erases", "map DRAM, peak": "map DRAM",
}  # fmt: skip
"""Figures of the first screen of a run, by their labels in the table."""


def _head(results: Sequence[Result]) -> str:
    """The first screen: an answer in one sentence, cards, warnings, and the rest folded."""
    if len(results) > 1:
        said, cards = answers.comparison(results), answers.cards(results)
    else:
        said = answers.run(results[0])
        by_label = {metric.label: metric for metric in METRICS}
        shown = [(name, by_label[label].cell(results[0])) for label, name in _TILES.items()]
        cards = [(name, text, "") for name, text in shown if text != units.ABSENT]
    warnings, informing = answers.weighed_notes(results)
    speeds = [(result.label, f"{_seeds(result)}, {summary.speed_line(result)}") for result in results]
    more = "".join(f"<li>{escape(note)}</li>" for note in informing)
    promised = answers.slo(results)
    return (
        f"{f'<p class=answer>{escape(promised)}</p>' * bool(promised)}"
        f'<p class="answer">{escape(said)}</p>{tiles(cards)}{shell.notes(warnings)}{_listed(_facts(results))}'
        f"{folded('Notes and speed of the simulator', f'<ul>{more}</ul>' * bool(more) + _listed(speeds))}"
    )


def _seeds(result: Result) -> str:
    """The seeds of a run, or of the runs of which it is the mean."""
    seeds = ", ".join(str(each["seed"]) for each in result.repeats or (result,))
    return f"seeds {seeds}" if result.repeats else f"seed {seeds}"


def _repeats_table(results: Sequence[Result], places: Mapping[tuple[str, int], str]) -> str:
    """Key figures of each seed, with a link to the page of the run in `places`."""
    by_label = {metric.label: metric for metric in METRICS}
    shown = [(name, by_label[label]) for label, name in _TILES.items() if by_label[label].is_shown(results)]
    rows = [row(["run", *(name for name, _ in shown)], "th")]
    for result in results:
        for each in result.repeats:
            name, where = f"{each.label}, seed {each['seed']}", places.get((each.label, each["seed"]))
            link = f'<a href="{escape(where)}/report.html">{escape(name)}</a>' if where else escape(name)
            cells = "".join(f"<td>{escape(metric.cell(each))}</td>" for _, metric in shown)
            rows.append(f'<tr><th scope="row">{link}</th>{cells}</tr>')
    says = (
        "Figures are means over the seeds, ± half of the 95 % interval; ratios are paired by seed; response times are "
        "those of all seeds together. Charts over time, maps of blocks and timelines are on the page of each run."
    )
    return f'<p class="caption">{says}</p>{table("seeds", rows)}'


def fragment(results: Sequence[Result]) -> str:
    """The figures as HTML tables without a page, for notebooks."""
    return f"{_listed(_facts(results))}{_metrics_table(results)}"


def _percentiles(results: Sequence[Result]) -> str:
    """Percentiles of reads and writes, beside the distribution."""
    rows = []
    for kind in ("read", "write"):
        found = [Metric(name, ("latency_ns", kind, key), units.nanoseconds, "low") for key, name in _PERCENTILES]
        shown = [metric for metric in found if metric.is_shown(results)]
        if any(result["requests"][kind] for result in results) and shown:
            heads = _heads(results) if len(results) > 1 else ["", f"{kind}s"]
            rows += [row([f"{kind}s" if len(results) > 1 else "", *heads[1:]], "th"), *_rows(results, shown)]
    return table(_class("percentiles", results), rows) if rows else ""


def _amounts(
    results: Sequence[Result], of: Callable[[Result], Mapping[str, Any]], show: Callable[[float | None], str]
) -> list[str]:
    """Rows of figures by name, with ratios to the first."""
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
            rows.append(row(cells))
    return rows


_Part = tuple[str, Callable[[Result], Mapping[str, Any]], Callable[[float | None], str]]
"""A part of a table: the heading, the figures of a result by name, and their format."""


def _amounts_table(results: Sequence[Result], name: str, parts: Iterable[_Part], *, empty: str = "") -> str:
    """A table of parts; a part without figures has the row `empty`, or is left out."""
    heads = _heads(results)
    rows = [row(heads, "th")]
    for section, of, show in parts:
        found = _amounts(results, of, show) or ([row([empty, *[""] * (len(heads) - 1)])] if empty else [])
        rows += [_section(heads, section), *found] if found else []
    return table(name, rows)


def _own_table(results: Sequence[Result]) -> str:
    parts: list[_Part] = [
        ("DRAM by table", lambda result: result["mapping"]["tables"], units.size),
        ("energy by operation", lambda result: result["energy_uj"], units.energy),
        ("the layer's own figures", lambda result: result["ftl_stats"], units.own),
    ]
    return _amounts_table(results, "own", parts)


def _volume_table(results: Sequence[Result]) -> str:
    """Requests, bytes and response times of each volume, a row for each layer."""
    rows: list[str] = []
    left = 0
    for result in results:
        volumes = of_volumes.busiest(result, of_volumes.LISTED)
        left = max(left, len(result.get("volumes") or []) - len(volumes))
        for volume in volumes:
            times = volume["latency_ns"] or {}
            read, write = (times.get(kind) or {} for kind in ("read", "write"))
            cells: list[object] = [f"{units.volume_name(volume)}{f' ({result.label})' if len(results) > 1 else ''}"]
            cells += [units.count(volume["requests"][kind]) for kind in ("read", "write")]
            cells += [units.size(volume[f"bytes_{kind}"]) for kind in ("read", "written")]
            cells += [response_time(each, key) for each in (read, write) for key in ("mean", "p99", "max")]
            rows.append(row(cells))
    if not rows:
        return ""
    heads = ("volume", "reads", "writes", "read", "written", "read mean", "p99", "max", "write mean", "p99", "max")
    more = f"<p>{left:,} more volumes are in the result.</p>" if left else ""
    return table("volumes", [row(heads, "th"), *rows]) + more


def _tenant_table(results: Sequence[Result]) -> str:
    """Rates, bytes and slowdown of each tenant, and their sums; empty with one tenant."""
    tables = [(f" ({result.label})" if len(results) > 1 else "", *tenants.rows(result)) for result in results]
    heads = max((heads for _, heads, _ in tables), key=len, default=[])
    rows = [
        (name + of, *cells, *[""] * (len(heads) - len(cells))) for of, _, rows in tables for name, cells in rows
    ]  # fmt: skip
    own = [[f"{name} {fact}".removeprefix("tenants ") for name, fact in tenants.facts(result)] for result in results]
    said = [(result.label, "; ".join(facts)) for result, facts in zip(results, own, strict=True)]
    of_run = [f"{label}: {fact}" if len(results) > 1 else fact for label, fact in said if fact]
    says = "".join(f'<p class="caption">{escape(each)}</p>' for each in of_run)
    return shell.records(["tenant", *heads], rows) + says + "".join(map(_wait_table, results)) if rows else ""


def _wait_table(result: Result) -> str:
    """The waits of each tenant for the work of each; empty without recorded requests."""
    heads, rows = tenants.waits(result)
    title = f"<h3>Who waits for whom ({escape(result.label)})</h3>"
    return title + shell.records(["a request of", *heads], [(name, *cells) for name, cells in rows]) if rows else ""


def _handle_table(results: Sequence[Result]) -> str:
    """Bytes, write amplification and reclaim units of each handle, a row for each layer."""
    many = len(results) > 1
    rows = [
        row([f"{name} ({result.label})" if many else name, *cells])
        for result in results
        for name, cells in summary.handle_rows(result)
    ]
    return table("handles", [row(("", *summary.HANDLE_HEADS), "th"), *rows]) if rows else ""


def _layers(attribute: str, names: Sequence[str]) -> str:
    """The choice of a layer; none where there is one layer."""
    options = "".join(f"<option>{escape(name)}</option>" for name in names)
    return f'<select {attribute} aria-label="layer">{options}</select>' if len(names) > 1 else ""


def _player(results: Sequence[Result]) -> str:
    """The map of blocks with its controls; `assets/report.js` draws and plays the map."""
    layer = _layers("data-layer", [result["ftl"] for result in results])
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
        f'<div class="chart" id="map" data-map role="img" aria-label="{escape(says)}"></div>'
        f"<figcaption>{escape(says)} Stronger colours mean more valid data. A cell of several blocks is open "
        "or bad if any block is, else in the most frequent state. The map shows the planned state of flash."
        "</figcaption></figure>"
    )


def _timeline(names: Sequence[str]) -> str:
    """The timeline and its controls, for layers that have one; `assets/gantt.js` draws the timeline."""
    layer = _layers("data-run", names)
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
        f'<div class="chart" id="timeline" data-lanes role="img" aria-label="{escape(says)}"></div>'
        f"<figcaption>{escape(says)} Colours show causes, fainter for reads, stronger for erases. "
        "An arrow leads from the end of an operation to the start of an operation behind its gate: for the last "
        "operation under the pointer, or for all if they are few. Drag to zoom.</figcaption>"
        '<div class="wide below"><table class="operation" data-operation></table></div></figure>'
    )


def _response_times(results: Sequence[Result]) -> str:
    names = {"cdf": "distribution", "latency": "tail"}
    figures = (shell.chart(name, charts.CHARTS[name].says, hidden=name != "cdf") for name in names)
    return f'<div class="beside"><div>{shell.views(figures, names, "cdf")}</div>{_percentiles(results)}</div>'


def _waterfall(result: Result, kind: str, key: str, name: str) -> str:
    """Where the time of requests at a percentile went: a bar for each part, from the end of the part before."""
    latency = why.kinds(result)[kind][key]["latency_ns"]
    begin, rows = 0.0, []
    for part, share, is_wait in answers.waits(result, key, kind):
        percent = f"{100 * share:.0f} %" if share >= 0.01 else "< 1 %"
        rows.append(
            f'<li class="{"wait" if is_wait else "work"}"><span>{escape(part)}</span>'
            f'<i style="margin-left:{100 * begin:.2f}%;width:{100 * share:.2f}%"></i>'
            f"<b>{escape(percent)}</b><em>{units.nanoseconds(share * latency)}</em></li>"
        )
        begin += share
    head = f"{name}: {units.nanoseconds(latency)}"
    return f'<div class="fall"><h3>{escape(head)}</h3><ol>{"".join(rows)}</ol></div>'


def _difference_table(results: Sequence[Result], kind: str, key: str, name: str) -> str:
    """The parts of the difference of each result from the first; empty for one result."""
    rows = why.differences(results, kind, key)
    if not rows:
        return ""
    head = f"<h3>{escape(f'{kind} {name}: difference from {results[0].label}')}</h3>"
    return head + shell.records(["part", *(result.label for result in results[1:])], rows)


def _why(results: Sequence[Result]) -> str:
    """Waterfalls of the parts of response times, for one percentile at a time."""
    if not any(why.kinds(result) for result in results):
        return ""
    names = {f"why-{key}": name for key, name in why.PERCENTILES.items()}
    figures = []
    for key, name in why.PERCENTILES.items():
        falls = "".join(
            _waterfall(result, kind, key, f"{f'{result.label}, ' if len(results) > 1 else ''}{kind} {name}")
            for kind in ("read", "write")
            for result in results
            if kind in why.kinds(result)
        )
        parted = "".join(_difference_table(results, kind, key, name) for kind in ("read", "write"))
        hidden = "" if key == "p99" else " hidden"
        figures.append(f'<figure id="figure-why-{key}"{hidden}><div class="falls">{falls}</div>{parted}</figure>')
    says = f"{charts.CHARTS['why'].says} Blue: work for the request; orange: waits. The parts sum to the response time."
    return f'{shell.views(figures, names, "why-p99")}<p class="caption">{escape(says)}</p>'


def _sections(
    results: Sequence[Result], drawn: Mapping[str, charts.Specification], plays: bool, timed: Sequence[str]
) -> list[Section]:
    """The charts, grouped by subject."""

    def figures(*names: str) -> str:
        return "".join(shell.chart(name, charts.CHARTS[name].says) for name in names if name in drawn)

    over_time = "time" if "time" in drawn else "progress"
    bodies = (
        ("response", "Response times", "Response", _response_times(results) if "cdf" in drawn else ""),
        (
            "against",
            "Beside fio",
            "fio",
            "".join(against.html(each["against"]) for each in results if "against" in each),
        ),
        ("why", charts.CHARTS["why"].title, "Why", _why(results)),
        ("over-time", charts.CHARTS[over_time].title, "Over time", figures(over_time)),
        ("by-volume", charts.CHARTS["volumes"].title, "Volumes", figures("volumes") + _volume_table(results)),
        ("by-tenant", charts.CHARTS["tenants"].title, "Tenants", figures("tenants") + _tenant_table(results)),
        ("by-handle", charts.CHARTS["handles"].title, "Handles", figures("handles") + _handle_table(results)),
        ("operations", "Flash operations by cause", "Flash", figures("flash")),
        ("timeline-of-operations", "Timeline", "Timeline", _timeline(timed) if timed else ""),
        ("busy", "Utilisation", "Busy", figures("utilization")),
        ("states-of-blocks", "States of blocks", "Blocks", figures("states") + (_player(results) if plays else "")),
        ("wear-of-blocks", "Wear", "Wear", figures("wear", "wear_map")),
        ("reliability-of-reads", "Reliability", "Errors", figures("reliability") + _reliability_table(results)),
        ("figures", "Figures", "Figures", _metrics_table(results)),
        ("own", "DRAM, energy, layer", "Costs", _own_table(results)),
    )
    return [Section(name, title, body, short) for name, title, short, body in bodies if body]


def _reliability_table(results: Sequence[Result]) -> str:
    """Retries and losses of reads with errors; empty without such reads."""
    if not any(result.get("reliability") or result.get("rain") for result in results):
        return ""

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

    parts: list[_Part] = [
        ("subpages lost, by the cause of the read", lost, units.count),
        ("reads and blocks", rest, units.count),
    ]
    if any(result.get("rain") for result in results):
        parts.append(("parity across dies", parity, units.count))
    return _amounts_table(results, "reliability", parts, empty="none")


def _settings(text: str) -> dict[str, object]:
    try:
        return flatten(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return {}


def _marked(text: str, different: set[str]) -> str:
    """A configuration with the lines of different keys marked."""
    lines, table = [], ""
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith("[") and bare.endswith("]"):
            table = bare.strip("[]") + "."
        key = table + bare.split("=")[0].strip()
        shown = escape(line)
        lines.append(
            f"<mark>{shown}</mark>" if "=" in bare and not bare.startswith("#") and key in different else shown
        )
    return "\n".join(lines)


def _configuration(texts: Mapping[str, str]) -> str:
    """The differences between configurations, by layer, and each configuration."""
    found = {name: _settings(text) for name, text in texts.items()}
    keys = dict.fromkeys(key for settings in found.values() for key in settings)
    different = {key for key in keys if len({repr(settings.get(key)) for settings in found.values()}) > 1}
    differences = ""
    if len(found) > 1:
        rows = [row(["key", *found], "th")]
        rows += [row([key, *(each.get(key, "-") for each in found.values())]) for key in keys if key in different]
        differences = f"<p>{len(different)} of {len(keys)} keys differ; they are marked below.</p>"
        differences += table("settings", rows) if different else ""
    return differences + "".join(details(name, _marked(text, different)) for name, text in texts.items())


def page(results: Sequence[Result], places: Mapping[tuple[str, int], str] | None = None) -> str:
    """The whole page, of one run or several on the same workload.

    `places` are the folders of runs by label and seed, to which the page of means over seeds links.
    """
    specifications = {name: charts.specification(name, results) for name in charts.CHARTS if name != "why"}
    drawn = {name: chart for name, chart in specifications.items() if chart is not None}
    drawn.pop("progress" if "time" in drawn else "time", None)
    frames = [found for result in results if (found := blocks.frames(result)) is not None]
    timelines = [found for result in results if (found := gantt.timeline(result)) is not None]
    parts = _sections(results, drawn, len(frames) == len(results), [each["ftl"] for each in timelines])
    if any(result.repeats for result in results):
        parts.append(Section("each-seed", "Each seed", _repeats_table(results, places or {}), "Seeds"))
    configurations = {result.label: result.configuration for result in results if result.configuration}
    if configurations:
        parts.append(Section("configuration", "Configuration", _configuration(configurations)))
    names = ", ".join(result.label for result in results[:4])
    names += f" and {len(results) - 4} more" if len(results) > 4 else ""
    workload = str(results[0]["workload"])
    return shell.fill(
        title=f"{names} on {results[0]['ssd']}",
        under=workload if "=" in workload else workload.rpartition("/")[2],
        head=_head(results),
        sections=parts,
        drawn=drawn,
        frames=frames if len(frames) == len(results) else (),
        timelines=timelines,
    )
