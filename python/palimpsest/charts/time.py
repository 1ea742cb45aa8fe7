"""Series of a run over simulated time, or over bytes written in counted runs."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from ..result import Result
from .common import DASHES, Panel, Specification, layer, panels, part, trace, unit_of

_DECADES = 50

Values = list[float | None]
Line = tuple[str, int, int, Callable[[Result], Values]]
"""Name, slot of colour, dash, and values."""


def _lengths(result: Result) -> list[float]:
    """Seconds of each window; the last one ends with the run."""
    series = part(result, "time")
    end = result["simulated_ns"]
    return [min(series["window_ns"], max(0, end - start)) / 1e9 for start in series["start_ns"]]


def _per_second(key: str, factor: float = 1.0) -> Callable[[Result], Values]:
    def values(result: Result) -> Values:
        counts = part(result, "time").get(key, [])
        return [
            count * factor / length if length > 0 else None
            for count, length in zip(counts, _lengths(result), strict=False)
        ]

    return values


def _column(key: str, factor: float = 1.0) -> Callable[[Result], Values]:
    return lambda result: [None if value is None else value * factor for value in part(result, "time").get(key, [])]


def _amplification_so_far(result: Result) -> Values:
    """Write amplification since the measurement began, at the end of each window that has a snapshot."""
    series, seen = part(result, "time"), part(result, "blocks")
    windows: Values = [None] * len(series["start_ns"])
    for time_ns, written, data in zip(
        seen.get("time_ns", []), seen.get("host_bytes", []), seen.get("data_bytes", []), strict=True
    ):
        if written and windows:
            windows[min(time_ns // series["window_ns"], len(windows) - 1)] = data / written
    return windows


def _between(key: str, factor: float = 1.0) -> Callable[[Result], Values]:
    """A count of the snapshots over the bytes that the host wrote in between."""

    def values(result: Result) -> Values:
        seen = part(result, "blocks")
        steps = zip(pairwise(seen.get("host_bytes", [])), pairwise(seen.get(key, [])), strict=True)
        return [(b - a) / (after - before) * factor if after > before else None for (before, after), (a, b) in steps]

    return values


_Panel = tuple[str, str, tuple[Line, ...], bool]
"""Title, text of the pointer, lines, and whether the axis may be logarithmic."""

_PANELS: tuple[_Panel, ...] = (
    ("throughput (MB/s)", "%{y:,.4~g} MB/s", (("throughput", 2, 0, _per_second("bytes", 1e-6)),), False),
    ("read response time ({unit}): mean, p99 dotted", "%{{y:,.4~g}} {unit}",
     (("read mean", 0, 0, _column("read_mean_ns")), ("read p99", 0, 1, _column("read_p99_ns"))), True),
    ("write response time ({unit}): mean, p99 dotted", "%{{y:,.4~g}} {unit}",
     (("write mean", 1, 0, _column("write_mean_ns")), ("write p99", 1, 1, _column("write_p99_ns"))), True),
    ("outstanding requests (mean)", "%{y:,.4~g} requests", (("outstanding", 4, 0, _column("outstanding")),), False),
    ("write amplification (dotted: so far)", "%{y:.3~f}",
     (("write amplification", 3, 0, _column("write_amplification")), ("so far", 3, 1, _amplification_so_far)),
     True),
    ("GC and merging (pages programmed/s)", "%{y:,.4~g} pages/s",
     (("GC programs", 6, 0, _per_second("gc_programs")),), False),
    ("power of flash (W)", "%{y:,.4~g} W", (("power", 5, 0, _column("power_w")),), False),
    ("erases (blocks/s)", "%{y:,.4~g} blocks/s", (("erases", 7, 0, _per_second("erases")),), False),
)  # fmt: skip

_RELIABILITY: tuple[_Panel, ...] = (
    ("ECC margin of the worst read (%)", "%{y:,.4~g} %", (("ECC margin", 2, 0, _column("ecc_margin", 100)),), False),
    ("retries of reads (steps/s)", "%{y:,.4~g} steps/s", (("retries", 3, 0, _per_second("read_retries")),), False),
    ("lost for good (subpages/s)", "%{y:,.4~g} subpages/s", (("lost", 7, 0, _per_second("lost_subpages")),), False),
)  # fmt: skip

_PROGRESS: tuple[_Panel, ...] = (
    ("write amplification", "%{y:.3~f}", (("write amplification", 3, 0, _between("data_bytes")),), False),
    ("GC and merging (pages programmed per MiB)", "%{y:,.4~g} pages/MiB",
     (("GC programs", 6, 0, _between("gc_programs", 2**20)),), False),
    ("erases (blocks per GiB)", "%{y:,.4~g} blocks/GiB", (("erases", 7, 0, _between("flash_erases", 2**30)),), False),
)  # fmt: skip


def _axis(traces: Sequence[Specification]) -> dict[str, Any]:
    """A logarithmic axis if values are decades apart."""
    values = [value for each in traces for value in each["y"] if value]
    if max(values) < _DECADES * min(values):
        return {}
    return {"type": "log", "exponentformat": "none", "dtick": 1}


def _name(result: Result, results: Sequence[Result]) -> str:
    base = results[0]
    if result["throughput"]["iops"] is not None:
        return layer(result, results, result["throughput"]["iops"], base["throughput"]["iops"], "IOPS")
    return layer(result, results, result["write_amplification"], base["write_amplification"], "write amplification")


def time(results: Sequence[Result]) -> Specification | None:
    """Throughput, response times, queue, write amplification, collection, power and erases over simulated time."""
    return _over_time(results, _PANELS)


def reliability(results: Sequence[Result]) -> Specification | None:
    """ECC margin, retries and losses over simulated time, of runs with read errors."""
    with_errors = [result for result in results if any(_column("ecc_margin")(result))]
    return _over_time(results, _RELIABILITY) if with_errors else None


def _over_time(results: Sequence[Result], shown: Sequence[_Panel]) -> Specification | None:
    starts = [part(result, "time").get("start_ns") or [] for result in results]
    factor, unit = unit_of([start for each in starts for start in each])
    places = [[start / factor for start in each] for each in starts]
    return panels(_drawn(results, shown, places, unit, {}), f"simulated time ({unit})")


def progress(results: Sequence[Result]) -> Specification | None:
    """Write amplification, collection and erases over bytes that the host has written, for counted runs."""
    written = [part(result, "blocks").get("host_bytes", []) for result in results]
    places = [[after / 2**30 for _, after in pairwise(each)] for each in written]
    return panels(_drawn(results, _PROGRESS, places, "GiB written", {"shape": "vh"}), "written by the host (GiB)")


def _drawn(
    results: Sequence[Result], shown: Sequence[_Panel], places: Sequence[list[float]], unit: str, look: dict[str, Any]
) -> list[Panel]:
    """Panels with the lines of all results that have places."""
    drawn: list[Panel] = []
    named: set[int] = set()
    for heading, pointer, lines, may_be_log in shown:
        traces: list[Specification] = []
        title, hover, scale = heading, pointer, 1.0
        if "{unit}" in heading:
            scale, word = unit_of([value for result in results for *_, of in lines for value in of(result)])
            title, hover = heading.format(unit=word), pointer.format(unit=word)
        for index, result in enumerate(results):
            for what, slot, dash, of in lines if places[index] else ():
                values = of(result)
                if not any(values):
                    continue
                name = what if len(results) == 1 else _name(result, results)
                said = what if len(results) == 1 else f"{result['ftl']} {what}"
                traces.append(
                    trace(slot if len(results) == 1 else index, type="scatter", mode="lines", name=name,
                          x=places[index], legendgroup=name,
                          y=[None if value is None else value / scale for value in values],
                          showlegend=len(results) > 1 and index not in named,
                          hovertemplate=f"{said}: {hover}<br>%{{x:.4~g}} {unit}<extra></extra>",
                          line={"width": 1.5, "dash": DASHES[dash]} | look, connectgaps=what == "so far")
                )  # fmt: skip
                named.add(index)
        if traces:
            drawn.append((title, traces, _axis(traces) if may_be_log else {}))
    return drawn
