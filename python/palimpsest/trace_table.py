"""The description of a workload as a table for the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from .units import ABSENT, count, nanoseconds, percent, ratio, size, volume_name

Description = Mapping[str, Any]
Row = tuple[str, str]


def _of(total: str, read: str, write: str) -> str:
    return f"{total}; reads {read}, writes {write}"


def _spread(spread: Mapping[str, Any] | None, show: Any) -> str:  # noqa: ANN401 - a formatter of units
    if spread is None:
        return ABSENT
    return ", ".join(f"{name} {show(spread[name])}" for name in ("mean", "p50", "p90", "p99", "max"))


_VOLUMES = 6


def _volumes(volumes: Sequence[Mapping[str, Any]]) -> str:
    """The number of volumes, and the busiest ones."""
    found = sorted(volumes, key=lambda volume: -sum(volume["requests"].values()))
    shown = ", ".join(f"{volume_name(each)} ({count(sum(each['requests'].values()))})" for each in found[:_VOLUMES])
    return f"{len(found):,}; name (requests): {shown}{', ...' if len(found) > _VOLUMES else ''}"


_CACHES = tuple(2**exponent for exponent in range(20, 64, 4))
"""Sizes of caches with a miss ratio in the table: 1 MiB, 16 MiB, 256 MiB, ..."""

_WINDOWS = (10**9, 60 * 10**9, 3600 * 10**9, 86_400 * 10**9)
"""Windows with a working set in the table, in nanoseconds."""


def miss_ratio(reuse: Mapping[str, Any], cache_bytes: float) -> float | None:
    """The share of page accesses that miss in an LRU cache, of the largest size of the curve up to `cache_bytes`."""
    if not reuse["page_accesses"]:
        return None
    fitting = [point["miss_ratio"] for point in reuse["misses"] if point["cache_bytes"] <= cache_bytes]
    return fitting[-1] if fitting else 1.0


def window_of(working_set: Mapping[str, Any]) -> str:
    """The length of a window, as text."""
    if working_set["window_ns"] is None:
        return f"{working_set['window_requests']:,} requests"
    units_of_time = (("d", 86_400e9), ("h", 3600e9), ("min", 60e9), ("s", 1e9))
    unit, factor = next((each for each in units_of_time if working_set["window_ns"] >= each[1]), ("ms", 1e6))
    return f"{working_set['window_ns'] / factor:g} {unit}"


def _locality(description: Description) -> list[Row]:
    """Reuse, misses of caches and working sets."""
    reuse = description["reuse"]["all"]
    found: list[Row] = []
    if reuse["distance_bytes"]:
        known = reuse["distance_bytes"]
        distances = ", ".join(f"{name} {size(known[name])}" for name in ("p50", "p90", "p99", "max"))
        estimated = "" if reuse["sampled_share"] == 1 else f" (from {percent(reuse['sampled_share'])} of the pages)"
        found.append(("reuse", f"{distances} of other pages before a page comes again{estimated}"))
        largest = reuse["misses"][-1]["cache_bytes"]
        sizes = [each for each in _CACHES if each < largest]
        shown = [f"{size(each)} {percent(miss_ratio(reuse, each))}" for each in (*sizes, largest)]
        found.append(("LRU misses", f"of page accesses, by size of the cache: {', '.join(shown)}"))
    if reuse["page_accesses"]:
        sets = description["working_sets"]["all"]
        usual = [each for each in sets if each["window_ns"] in _WINDOWS] or sets[:1]
        shown = [f"{size(each['mean_bytes'])}, max {size(each['max_bytes'])} in {window_of(each)}"
                 for each in usual]  # fmt: skip
        found.append(("working set", f"mean {'; '.join(shown)}"))
    return found


def rows(description: Description) -> list[Row]:
    """The figures, a line each: name and value."""
    requests, sizes, locality = description["requests"], description["bytes"], description["locality"]
    sequential, contiguous = description["sequential_ratio"], description["contiguous_ratio"]
    sampled = locality["sampled_share"]
    estimated = "" if sampled == 1 else f" (estimated from {percent(sampled)} of the pages)"
    named = [("trims", requests["trim"]), ("flushes", requests["flush"])]
    others = "".join(f", {count(number)} {name}" for name, number in named if number)
    found: list[Row] = [
        ("workload", str(description["workload"])),
        *(("note", note) for note in description.get("notes") or ()),
        ("format", str(description["format"] or "generated")),
        *([("volumes", _volumes(description["volumes"]))] if description.get("volumes") else []),
        ("requests", f"{count(requests['all'])}: {count(requests['read'])} reads, "
                     f"{count(requests['write'])} writes{others}"),
        ("read ratio", f"{percent(description['read_ratio'])} of requests, "
                       f"{percent(description['read_bytes_ratio'])} of bytes"),
        ("bytes", f"{size(sizes['read'])} read, {size(sizes['write'])} written"),
        ("read sizes", _spread(description["read_bytes"], size)),
        ("write sizes", _spread(description["write_bytes"], size)),
        ("4 KiB aligned", percent(description["aligned_ratio"])),
        ("footprint", _of(size(locality["footprint_bytes"]), size(locality["read_footprint_bytes"]),
                          size(locality["write_footprint_bytes"])) + estimated),
        ("span", f"{size(description['span_bytes'])}, up to byte {description['end_bytes']:,}"),
        ("overwrites", f"{percent(locality['overwrite_ratio'])} of page writes; "
                       f"{ratio(locality['writes_per_page'])} writes a written page"),
        ("hot share", f"{percent(locality['hot_write_ratio'])} of writes to the 20 % most written pages; reads "
                      f"{percent(locality['hot_read_ratio'])}"),
        *_locality(description),
        ("large writes", f"{percent(description['large_write_ratio'])} of writes, "
                         f"{percent(description['large_write_bytes_ratio'])} of bytes written, from 64 KiB"),
        ("sequential", _of(*(percent(sequential[kind]) for kind in ("all", "read", "write")))
                       + f"; at once {percent(contiguous['all'])}"),
    ]  # fmt: skip
    if description["arrivals"] == "open":
        variation = ratio(description["interarrival_variation"])
        found += [
            ("duration", nanoseconds(description["duration_ns"])),
            ("gaps", f"{_spread(description['interarrival_ns'], nanoseconds)}; variation {variation}"),
            (
                "depth hint",
                f"requests that arrive in one millisecond: {_spread(description['arrivals_per_ms'], ratio)}",
            ),
        ]
    else:
        found.append(("arrivals", f"closed loop, {description['depth']} outstanding; no times"))
    found.append(("streams", count(description["streams"])))
    if description["files"]:
        found.append(("named files", count(description["files"])))
    if description["skipped_lines"]:
        found.append(("bad lines", f"{count(description['skipped_lines'])} skipped"))
    return found


def render(description: Description) -> Table:
    """The figures as a table for the terminal: names and texts."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows(description):
        table.add_row(*row)
    return table
