"""Blocks over the run: erases, content and state."""

import base64
import functools
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import mul
from typing import Any

from ..result import Result
from .common import Panel, Specification, label, layer, panels, part, trace

STATES = {
    "free": ("#d9d8d3", "#4a4945"),
    "open": ("#009e73", "#009e73"),
    "partial": ("#f0e442", "#f0e442"),
    "full": ("#0072b2", "#0072b2"),
    "reused": ("#d55e00", "#d55e00"),
    "bad": ("#000000", "#ffffff"),
}
"""Colours of the states of a block on a light and a dark page (Okabe and Ito's, distinct for all readers)."""

SUBPAGES = {"valid": ("#56b4e9", "#56b4e9"), "invalid": ("#e69f00", "#e69f00")}
"""Colours of the content of subpages that are not free."""

_MOST_CELLS = 2048
_FEW_ERASES = 12


def wear(results: Sequence[Result]) -> Specification | None:
    """Number of blocks by number of erases."""
    traces = []
    for index, result in enumerate(results):
        erases = part(result, "wear").get("erases") or []
        if not erases:
            continue
        counts = Counter(erases)
        numbers = sorted(counts)
        said = name = label(result, results, "blocks")
        if len(results) > 1:
            base = sum(part(results[0], "wear").get("erases") or [])
            name = layer(result, results, sum(erases), base, "erases")
        traces.append(
            trace(index, type="bar", name=name, x=numbers, y=[counts[number] for number in numbers],
                  hovertemplate=f"{said}: %{{y:,}} erased %{{x}} times<extra></extra>")
        )  # fmt: skip
    axis: dict[str, Any] = {"title": {"text": "erases of a block"}}
    numbers = [number for each in traces for number in each["x"]]
    if numbers and max(numbers) - min(numbers) < _FEW_ERASES:
        axis["dtick"] = 1  # else there would be halves
    layout = {"xaxis": axis, "yaxis": {"title": {"text": "blocks"}}, "bargap": 0.15}
    return {"data": traces, "layout": layout} if traces else None


def _mean_erases(result: Result) -> list[list[float]]:
    """Erases by plane and block; neighbours of a plane are joined if there are many. Empty without data."""
    erases, planes = part(result, "wear").get("erases") or [], part(result, "wear").get("plane") or []
    rows: dict[int, list[int]] = {}
    for number, plane in zip(erases, planes, strict=True):
        rows.setdefault(plane, []).append(number)
    if not rows:
        return []
    longest = max(map(len, rows.values()))
    group = -(-longest // max(1, _MOST_CELLS // len(rows)))
    # In the order of the map of states, if any: by channel, die and plane.
    seen = part(result, "blocks")
    order = seen["plane"][:: seen["columns"]] if seen else []
    return [
        [sum(row[at : at + group]) / len(row[at : at + group]) for at in range(0, len(row), group)]
        for row in (rows[plane] for plane in (order if len(order) == len(rows) else sorted(rows)))
    ]


def wear_map(results: Sequence[Result]) -> Specification | None:
    """Erases by the address of a block: a row for each plane, blocks from left to right; one map for each layer."""
    maps = [(result, _mean_erases(result)) for result in results]
    maps = [(result, rows) for result, rows in maps if rows]
    if not maps or not any(value for _, rows in maps for row in rows for value in row):
        return None
    values = [value for _, rows in maps for row in rows for value in row]
    drawn: list[Panel] = []
    for index, (result, rows) in enumerate(maps):
        per_plane = len(part(result, "wear")["erases"]) / len(rows)
        step = -(-per_plane // len(rows[0]))
        heat = {
            "type": "heatmap", "z": rows, "x0": 0, "dx": step, "zmin": min(values), "zmax": max(max(values), 1),
            "colorscale": "Cividis", "meta": {}, "showscale": index == 0,
            "colorbar": {"title": {"text": "erases", "side": "right"}, "thickness": 12},
            "hovertemplate": "row %{y}, blocks from %{x}: %{z:.4~g} erases<extra></extra>",
        }  # fmt: skip
        title = "mean erases of each block, by plane" if len(results) == 1 else f"{result.label}: erases, by plane"
        drawn.append((title, [heat], {"rangemode": "normal", "autorange": "reversed", "showgrid": False}))
    return panels(drawn, "block of the plane")


def _snapshot_axis(series: dict[str, Any]) -> tuple[str, list[float]]:
    """The times of the snapshots: simulated seconds, or thousands of requests in counted runs."""
    if any(series["time_ns"]):
        return "simulated time (s)", [time / 1e9 for time in series["time_ns"]]
    return "requests (thousands)", [requests / 1e3 for requests in series["requests"]]


def _mean(shares: Sequence[float], blocks: Sequence[int]) -> list[float]:
    """The share of a drive at each snapshot, in percent, from the shares of its cells."""
    cells, total = len(blocks), sum(blocks)
    return [100 * sum(map(mul, shares[at : at + cells], blocks)) / total for at in range(0, len(shares), cells)]


def _subpages(series: dict[str, Any]) -> dict[str, list[float]]:
    """Shares of all subpages by snapshot, in percent: valid, invalid, free; empty if the layer reports none."""
    if series.get("valid") is None:
        return {}
    valid, programmed = (_mean(series[name], series["blocks"]) for name in ("valid", "programmed"))
    invalid = [max(0.0, all_ - good) for all_, good in zip(programmed, valid, strict=True)]
    return {"valid": valid, "invalid": invalid, "free": [100 - all_ for all_ in programmed]}


def states(results: Sequence[Result]) -> Specification | None:
    """Content of subpages and states of blocks over the run, stacked; panels for each layer."""
    drawn: list[Panel] = []
    axis = ""

    def panel(result: Result, title: str, stacks: dict[str, list[float]], most: float, each: str) -> Panel:
        seen = {line["name"] for _, lines, _ in drawn for line in lines}
        traces = [
            {
                "type": "scatter", "mode": "lines", "name": name, "x": places, "y": numbers,
                "stackgroup": f"{result.label} {title}", "line": {"width": 0}, "legendgroup": name,
                "showlegend": name not in seen, "meta": {"state": name},
                "hovertemplate": f"{label(result, results, name)}: {each}<extra></extra>",
            }
            for name, numbers in stacks.items() if any(numbers)
        ]  # fmt: skip
        return title if len(results) == 1 else f"{result.label}: {title}", traces, {"range": [0, most]}

    for result in results:
        series = part(result, "blocks")
        if not series.get("requests"):
            continue
        cells, total = len(series["blocks"]), sum(series["blocks"])
        axis, places = _snapshot_axis(series)
        if subpages := _subpages(series):
            drawn.append(panel(result, "subpages (% of flash)", subpages, 100, "%{y:.1f} % of the subpages"))
        blocks = {
            name: [float(sum(counts[at : at + cells])) for at in range(0, len(counts), cells)]
            for name, counts in zip(series["states"], series["counts"], strict=True)
        }
        drawn.append(panel(result, "blocks in each state", blocks, total, f"%{{y:,}} of {total:,} blocks"))
    return panels(drawn, axis)


def _base64(numbers: Iterable[int], code: str = "B") -> str:
    """Whole numbers as bytes (`B`) or 16-bit words (`H`), lower byte first."""
    # Without numpy and polars, which take longer to load than the page to write.
    return base64.b64encode(array(code, numbers).tobytes()).decode("ascii")


def _encoded(values: Sequence[float], most: float, code: str) -> str:
    """Values from 0 to `most` as whole numbers from 0 to the greatest that the code has."""
    greatest, most = 255 if code == "B" else 65535, most or 1.0
    return _base64([round(value / most * greatest) for value in values], code)


def _most(names: Sequence[str], counts: Sequence[Sequence[int]]) -> list[int]:
    """The shown state of each cell: bad or open if any block is, else the most frequent one."""
    bad, open_ = names.index("bad"), names.index("open")

    @functools.cache
    def shown(cell: tuple[int, ...]) -> int:
        return bad if cell[bad] else open_ if cell[open_] else cell.index(max(cell))

    return list(map(shown, zip(*counts, strict=True)))


def frames(result: Result) -> dict[str, Any] | None:
    """The snapshots of all blocks, as the page plays them; None without snapshots.

    `state` is a byte for each cell of each snapshot (`_most`), `valid` a byte (255: all), `erases` two (65535:
    `most_erases`), lower byte first; `counts` are blocks by state and snapshot.
    """
    series = part(result, "blocks")
    if not series.get("requests"):
        return None
    names, cells = series["states"], len(series["blocks"])
    columns = series["columns"]
    places = zip(series["channel"], series["die"], series["plane"], strict=True)
    rows = [f"channel {channel}, die {die}, plane {plane}" for channel, die, plane in list(places)[::columns]]
    most = max(series["erases"], default=0.0)
    return {
        "name": result.label,
        "columns": columns,
        "rows": rows,
        "channels": series["channel"][::columns],
        "step": max(series["blocks"][:columns]),
        "blocks": series["blocks"],
        "requests": series["requests"],
        "time_ns": series["time_ns"],
        "host_bytes": series["host_bytes"],
        "state": _base64(_most(names, series["counts"])),
        "counts": [
            [sum(counts[at : at + cells]) for counts in series["counts"]]
            for at in range(0, len(series["counts"][0]), cells)
        ],
        "valid": None if series["valid"] is None else _encoded(series["valid"], 1.0, "B"),
        "erases": _encoded(series["erases"], most, "H"),
        "most_erases": most,
    }
