"""The description of a workload, as a table for the terminal and as one self-contained HTML page."""

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from . import charts, units
from . import page as shell
from .page import Section

__all__ = ["page", "render", "rows", "write"]

Description = Mapping[str, Any]
Row = tuple[str, str]


def _of(total: str, read: str, write: str) -> str:
    return f"{total}; reads {read}, writes {write}"


def _spread(spread: Mapping[str, Any] | None, show: Any) -> str:  # noqa: ANN401 - a formatter of units
    if spread is None:
        return units.ABSENT
    return ", ".join(f"{name} {show(spread[name])}" for name in ("mean", "p50", "p90", "p99", "max"))


_VOLUMES = 6


def _volumes(volumes: Sequence[Mapping[str, Any]]) -> str:
    """How many, and those with most requests."""
    found = sorted(volumes, key=lambda volume: -sum(volume["requests"].values()))
    shown = ", ".join(f"{each['volume']} ({units.count(sum(each['requests'].values()))})" for each in found[:_VOLUMES])
    return f"{len(found):,}; number (requests): {shown}{', ...' if len(found) > _VOLUMES else ''}"


def rows(description: Description) -> list[Row]:
    """The figures, a line each: what, and how much."""
    requests, sizes, locality = description["requests"], description["bytes"], description["locality"]
    sequential, contiguous = description["sequential_ratio"], description["contiguous_ratio"]
    sampled = locality["sampled_share"]
    estimated = "" if sampled == 1 else f" (estimated from {units.percent(sampled)} of the pages)"
    named = [("trims", requests["trim"]), ("flushes", requests["flush"])]
    others = "".join(f", {units.count(number)} {name}" for name, number in named if number)
    found: list[Row] = [
        ("workload", str(description["workload"])),
        ("format", str(description["format"] or "generated")),
        *([("volumes", _volumes(description["volumes"]))] if description.get("volumes") else []),
        ("requests", f"{units.count(requests['all'])}: {units.count(requests['read'])} reads, "
                     f"{units.count(requests['write'])} writes{others}"),
        ("read ratio", f"{units.percent(description['read_ratio'])} of requests, "
                       f"{units.percent(description['read_bytes_ratio'])} of bytes"),
        ("bytes", f"{units.size(sizes['read'])} read, {units.size(sizes['write'])} written"),
        ("read sizes", _spread(description["read_bytes"], units.size)),
        ("write sizes", _spread(description["write_bytes"], units.size)),
        ("4 KiB aligned", units.percent(description["aligned_ratio"])),
        ("footprint", _of(units.size(locality["footprint_bytes"]), units.size(locality["read_footprint_bytes"]),
                          units.size(locality["write_footprint_bytes"])) + estimated),
        ("span", f"{units.size(description['span_bytes'])}, up to byte {description['end_bytes']:,}"),
        ("overwrites", f"{units.percent(locality['overwrite_ratio'])} of page writes; "
                       f"{units.ratio(locality['writes_per_page'])} writes a written page"),
        ("hot share", f"{units.percent(locality['hot_write_ratio'])} of writes to the 20 % most written pages; reads "
                      f"{units.percent(locality['hot_read_ratio'])}"),
        ("large writes", f"{units.percent(description['large_write_ratio'])} of writes, "
                         f"{units.percent(description['large_write_bytes_ratio'])} of bytes written, from 64 KiB"),
        ("sequential", _of(*(units.percent(sequential[kind]) for kind in ("all", "read", "write")))
                       + f"; at once {units.percent(contiguous['all'])}"),
    ]  # fmt: skip
    if description["arrivals"] == "open":
        variation = units.ratio(description["interarrival_variation"])
        found += [
            ("duration", units.nanoseconds(description["duration_ns"])),
            ("gaps", f"{_spread(description['interarrival_ns'], units.nanoseconds)}; variation {variation}"),
            (
                "depth hint",
                f"requests that arrive in one millisecond: {_spread(description['arrivals_per_ms'], units.ratio)}",
            ),
        ]
    else:
        found.append(("arrivals", f"closed loop, {description['depth']} outstanding; no times"))
    found.append(("streams", units.count(description["streams"])))
    if description["files"]:
        found.append(("named files", units.count(description["files"])))
    if description["skipped_lines"]:
        found.append(("bad lines", f"{units.count(description['skipped_lines'])} skipped"))
    return found


def render(description: Description) -> Table:
    """The figures as a table for the terminal."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows(description):
        table.add_row(name, value)
    return table


def _map_chart(counts: Mapping[str, Any], kind: str) -> charts.Specification | None:
    """Requests over time and address: how many there are in each cell."""
    cells: list[list[int]] = counts[kind]
    if not any(any(row) for row in cells):
        return None
    width, is_time = counts["column_width"], counts["is_time"]
    unit, factor = _time_unit(width * len(cells[0])) if is_time else ("", 1)
    heat = {
        "type": "heatmap",
        "x": [column * width / factor for column in range(len(cells[0]))],
        "y": [row * counts["row_bytes"] / 2**30 for row in range(len(cells))],
        # Few cells have most requests: the colour is the logarithm.
        "z": [[_magnitude(count) for count in row] for row in cells],
        "text": cells,
        "hovertemplate": "%{text} requests<extra></extra>",
        "colorscale": [[0, "#cde2fb"], [0.5, "#3987e5"], [1, "#0d366b"]],
        "showscale": False,
        "meta": {},
    }
    return {
        "data": [heat],
        "layout": {
            "showlegend": False,
            "xaxis": {"title": {"text": f"arrival ({unit})" if is_time else "request"}},
            "yaxis": {"title": {"text": "address (GiB)"}},
        },
    }


def _time_unit(duration_ns: float) -> tuple[str, float]:
    """The largest unit of which a trace takes two or more, and its nanoseconds."""
    steps = (("h", 3600e9), ("min", 60e9), ("s", 1e9), ("ms", 1e6))
    return next(((unit, factor) for unit, factor in steps if duration_ns >= 2 * factor), ("us", 1e3))


def _magnitude(count: int) -> float | None:
    import math

    return math.log10(count) + 0.1 if count else None


def _sizes_chart(description: Description) -> charts.Specification | None:
    classes = description["sizes"]
    if not classes:
        return None
    names = [units.size(each["upto_bytes"]).replace(".00", "").replace(".0", "") for each in classes]
    bars = [
        {"type": "bar", "name": f"{kind}s", "x": names, "y": [each[kind] for each in classes], "meta": {"slot": slot}}
        for slot, kind in enumerate(("read", "write"))
    ]
    axes = {"xaxis": {"title": {"text": "size, up to"}, "type": "category"}, "yaxis": {"title": {"text": "requests"}}}
    return {"data": bars, "layout": axes | {"bargap": 0.2}}


def _hot_chart(description: Description) -> charts.Specification | None:
    lines = []
    for slot, kind in enumerate(("read", "write")):
        curve = description["locality"][f"{kind}_curve"]
        if curve:
            shares = [100 * step / (len(curve) - 1) for step in range(len(curve))]
            percents = [100 * value for value in curve]
            line = {"type": "scatter", "mode": "lines", "name": f"{kind}s", "x": shares, "y": percents}
            lines.append(line | {"line": {"width": 2}, "meta": {"slot": slot}})
    layout = {
        "xaxis": {"title": {"text": "hottest pages (% of those touched)"}, "range": [0, 100]},
        "yaxis": {"title": {"text": "their share of accesses (%)"}, "range": [0, 101]},
    }
    return {"data": lines, "layout": layout} if lines else None


def page(description: Description, counts: Mapping[str, Any]) -> str:
    """The page: a picture of addresses over time, sizes, the hot curve, and the figures."""
    cells = "The darker a cell, the more {} it has, by powers of ten; empty ones have none."
    specifications = {
        "writes": ("Writes over time and address", cells.format("writes"), _map_chart(counts, "write")),
        "reads": ("Reads over time and address", cells.format("reads"), _map_chart(counts, "read")),
        "sizes": ("Sizes", "Requests of at most a size, and more than the one before.", _sizes_chart(description)),
        "hot": ("Hot pages", "Share of all accesses that goes to the hottest pages of 4 KiB.", _hot_chart(description)),
    }
    drawn = {name: each for name, each in specifications.items() if each[2] is not None}
    found = rows(description)
    tiles = [
        ("requests", units.count(description["requests"]["all"])),
        ("reads", units.percent(description["read_ratio"])),
        ("footprint", units.size(description["locality"]["footprint_bytes"])),
        ("writes to the hottest 20 %", units.percent(description["locality"]["hot_write_ratio"])),
        ("sequential", units.percent(description["sequential_ratio"]["all"])),
    ]
    table = "".join(f'<tr><th scope="row">{label}</th><td>{html.escape(value)}</td></tr>' for label, value in found)
    sections = [Section(f"of-{name}", title, shell.chart(name, says)) for name, (title, says, _) in drawn.items()]
    return shell.fill(
        title="Workload",
        under=str(description["workload"]),
        head='<div class="tiles">'
        + "".join(f"<div><b>{html.escape(value)}</b><span>{label}</span></div>" for label, value in tiles)
        + "</div>",
        sections=[
            *sections,
            Section("figures", "Figures", f'<div class="wide"><table class="settings">{table}</table></div>'),
        ],
        drawn={name: chart for name, (_, _, chart) in drawn.items() if chart is not None},
    )


def write(description: Description, counts: Mapping[str, Any], folder: Path) -> None:
    """Writes trace.json and trace.html into a folder that exists.

    Raises:
        OSError: a file could not be written.
    """
    (folder / "trace.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    (folder / "trace.html").write_text(page(description, counts), encoding="utf-8")
