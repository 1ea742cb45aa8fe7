"""The description of a workload as one self-contained HTML page."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import charts
from . import page as shell
from .charts.common import trace
from .files import write_in_order
from .page import Section
from .trace_table import Description, miss_ratio, rows, window_of
from .units import count, exact_size, percent, size, volume_name


def _map_chart(counts: Mapping[str, Any], kind: str) -> charts.Specification | None:
    """Requests over time and address: the number in each cell."""
    cells: list[list[int]] = counts[kind]
    if not any(any(row) for row in cells):
        return None
    width, is_time = counts["column_width"], counts["is_time"]
    places = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
    end = len(cells) * counts["row_bytes"]
    place, bytes_ = next((each for each in places if end >= 2 * each[1]), places[-1])
    unit, factor = _time_unit(width * len(cells[0])) if is_time else ("", 1)
    heat = {
        "type": "heatmap",
        "x": [column * width / factor for column in range(len(cells[0]))],
        "y": [row * counts["row_bytes"] / bytes_ for row in range(len(cells))],
        # Few cells have most requests: the colour is the logarithm.
        "z": [[math.log10(number) + 0.1 if number else None for number in row] for row in cells],
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
            "yaxis": {"title": {"text": f"address ({place})"}},
        },
    }


def _time_unit(duration_ns: float) -> tuple[str, float]:
    """The largest unit of which a trace takes two or more, and its nanoseconds."""
    steps = (("h", 3600e9), ("min", 60e9), ("s", 1e9), ("ms", 1e6))
    return next(((unit, factor) for unit, factor in steps if duration_ns >= 2 * factor), ("us", 1e3))


def _sizes_chart(description: Description) -> charts.Specification | None:
    classes = description["sizes"]
    if not classes:
        return None
    names = [size(each["upto_bytes"]).replace(".00", "").replace(".0", "") for each in classes]
    bars = [
        trace(slot, type="bar", name=f"{kind}s", x=names, y=[each[kind] for each in classes])
        for slot, kind in enumerate(("read", "write"))
    ]
    axes = {"xaxis": {"title": {"text": "size, up to"}, "type": "category"}, "yaxis": {"title": {"text": "requests"}}}
    return {"data": bars, "layout": axes | {"bargap": 0.2}}


def _line(name: str, slot: int, xs: list[float], ys: list[float], **look: str) -> charts.Specification:
    return trace(slot, type="scatter", mode="lines", name=name, x=xs, y=ys, line={"width": 2} | look)


def _hot_chart(description: Description) -> charts.Specification | None:
    lines = []
    for slot, kind in enumerate(("read", "write")):
        curve = description["locality"][f"{kind}_curve"]
        if curve:
            shares = [100 * step / (len(curve) - 1) for step in range(len(curve))]
            percents = [100 * value for value in curve]
            lines.append(_line(f"{kind}s", slot, shares, percents))
    layout = {
        "xaxis": {"title": {"text": "hottest pages (% of those touched)"}, "range": [0, 100]},
        "yaxis": {"title": {"text": "their share of accesses (%)"}, "range": [0, 101]},
    }
    return {"data": lines, "layout": layout} if lines else None


_KINDS = (("all", "all", 2), ("read", "reads", 0), ("write", "writes", 1))


_MOST_TICKS = 6


def _size_ticks(mebibytes: Sequence[float]) -> dict[str, Any]:
    """Ticks of a logarithmic axis at few powers of two, in words."""
    powers = [math.log2(each) for each in mebibytes if each > 0]
    low, high = math.ceil(min(powers, default=0)), math.floor(max(powers, default=0))
    step = max(1, math.ceil((high - low + 1) / _MOST_TICKS))
    ticks = [2.0**power for power in range(low, high + 1, step)]
    return {"tickvals": ticks, "ticktext": [exact_size(round(each * 2**20)) for each in ticks]}


def _miss_chart(curves: Sequence[tuple[str, int, Mapping[str, Any]]]) -> charts.Specification | None:
    """Miss ratios by the size of an LRU cache: curves by name and slot of colour."""
    lines = []
    for name, slot, reuse in curves:
        if reuse["misses"]:
            sizes = [point["cache_bytes"] / 2**20 for point in reuse["misses"]]
            lines.append(_line(name, slot, sizes, [100 * point["miss_ratio"] for point in reuse["misses"]]))
    sizes = [size for line in lines for size in line["x"]]
    layout = {
        "xaxis": {"title": {"text": "LRU cache"}, "type": "log", **_size_ticks(sizes)},
        "yaxis": {"title": {"text": "misses (% of page accesses)"}, "range": [0, 101]},
    }
    return {"data": lines, "layout": layout} if lines else None


def _working_chart(description: Description) -> tuple[str, charts.Specification] | None:
    """The working set over time, in the shortest windows that were kept whole, and their length."""
    sets = description["working_sets"]
    at = next(index for index, each in enumerate(sets["all"]) if each["bytes"])
    window, number = sets["all"][at], len(sets["all"][at]["bytes"])
    is_time = window["window_ns"] is not None
    length = window["window_ns"] if is_time else window["window_requests"]
    unit, factor = _time_unit(length * number) if is_time else ("", 1)
    places = [index * length / factor for index in range(number)]
    lines = [
        _line(name, slot, places, [each / 2**20 for each in sets[kind][at]["bytes"]], shape="hv")
        for kind, name, slot in _KINDS
        if description["reuse"][kind]["page_accesses"]
    ]
    layout = {
        "xaxis": {"title": {"text": f"arrival ({unit})" if is_time else "request"}},
        "yaxis": {"title": {"text": "distinct pages (MiB)"}, "rangemode": "tozero"},
    }
    return (window_of(window), {"data": lines, "layout": layout}) if lines else None


_DRAWN_VOLUMES = 8
_LISTED_VOLUMES = 50


def _busiest(description: Description) -> list[Mapping[str, Any]]:
    """Volumes with reads or writes, ordered by page accesses."""
    known = [volume for volume in description["volumes"] if volume["locality"]]
    return sorted(known, key=lambda volume: -volume["locality"]["reuse"]["page_accesses"])


def _volume_table(description: Description) -> str:
    """A row for each of the busiest volumes."""
    found = _busiest(description)
    heads = ("volume", "reads", "writes", "read", "written", "footprint", "working set, mean", "largest",
             "misses, cache of 10 %")  # fmt: skip
    body = []
    for volume in found[:_LISTED_VOLUMES]:
        locality = volume["locality"]
        # As in the chart, the shortest windows that are kept completely.
        window = next(each for each in locality["working_sets"] if each["bytes"])
        cells = (
            count(volume["requests"]["read"]), count(volume["requests"]["write"]),
            size(volume["bytes_read"]), size(volume["bytes_written"]),
            size(locality["footprint_bytes"]),
            f"{size(window['mean_bytes'])} in {window_of(window)}", size(window["max_bytes"]),
            percent(miss_ratio(locality["reuse"], locality["footprint_bytes"] / 10)),
        )  # fmt: skip
        body.append((volume_name(volume), *cells))
    left = len(description["volumes"]) - len(body)
    under = f"<p>{left:,} more with fewer page accesses are in trace.json.</p>" if left else ""
    return shell.records(heads, body) + under


def _locality_charts(description: Description) -> dict[str, tuple[str, str, charts.Specification | None]]:
    """Reuse and working sets: of all, and by volume."""
    whole = _miss_chart([(name, slot, description["reuse"][kind]) for kind, name, slot in _KINDS])
    says = (
        "LRU caches of pages of 4 KiB, of all accesses or of one kind alone. The last point is that of first accesses."
    )
    found = {"misses": ("Miss ratio by size of a cache", says, whole)}
    working = _working_chart(description)
    if working:
        says = f"Distinct pages of 4 KiB that are accessed in windows of {working[0]}."
        found["working"] = ("Working set over time", says, working[1])
    volumes = _busiest(description)[:_DRAWN_VOLUMES]
    if volumes:
        curves = [(f"volume {volume_name(each)}", slot, each["locality"]["reuse"]) for slot, each in enumerate(volumes)]
        says = f"Each with a cache of its own; the {len(curves)} volumes with most page accesses."
        found["volume-misses"] = ("Miss ratio by volume", says, _miss_chart(curves))
    return found


def page(description: Description, counts: Mapping[str, Any]) -> str:
    """The page: a picture of addresses over time, sizes, the hot curve, reuse, working sets, and the figures."""
    cells = "Darker cells have more {}, by powers of ten; empty cells have none."
    specifications = {
        "writes": ("Writes over time and address", cells.format("writes"), _map_chart(counts, "write")),
        "reads": ("Reads over time and address", cells.format("reads"), _map_chart(counts, "read")),
        "sizes": ("Sizes", "Requests of at most a size, and more than the one before.", _sizes_chart(description)),
        "hot": ("Hot pages", "Share of all accesses that goes to the hottest pages of 4 KiB.", _hot_chart(description)),
        **_locality_charts(description),
    }
    drawn = {name: each for name, each in specifications.items() if each[2] is not None}
    tiles = [
        (f"{kind}: requests, bytes", f"{count(description['requests'][kind])}, {size(description['bytes'][kind])}")
        for kind in ("read", "write")
    ]
    kinds = [(f"mean {kind}", size((description[f"{kind}_bytes"] or {}).get("mean"))) for kind in ("read", "write")]
    tiles += [*kinds, ("overwrites of pages", percent(description["locality"]["overwrite_ratio"]))]
    hot, sequential = description["locality"]["hot_write_ratio"], description["sequential_ratio"]["all"]
    said = (
        f"{count(description['requests']['all'])} requests, {percent(description['read_ratio'])} reads, to "
        f"{size(description['locality']['footprint_bytes'])} of addresses; {percent(sequential)} are sequential"
        + (f", and the most written fifth of pages gets {percent(hot)} of writes." if hot is not None else ".")
    )
    sections = [Section(f"of-{name}", title, shell.chart(name, says)) for name, (title, says, _) in drawn.items()]
    return shell.fill(
        title="Workload",
        under=str(description["workload"]),
        head=f'<p class="answer">{shell.escape(said)}</p>{shell.tiles(tiles)}',
        sections=[
            *sections,
            *([Section("volumes", "Volumes", _volume_table(description))] if description["volumes"] else []),
            Section("figures", "Figures", shell.table("settings", map(shell.row, rows(description)))),
        ],
        drawn={name: chart for name, (_, _, chart) in drawn.items() if chart is not None},
    )


def write(description: Description, counts: Mapping[str, Any], folder: Path) -> None:
    """Writes trace.json and trace.html into a folder."""
    files = [("trace.json", json.dumps(description, indent=2) + "\n"), ("trace.html", page(description, counts))]
    write_in_order(folder, files)
