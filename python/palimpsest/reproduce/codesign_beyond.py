"""Beyond the co-design paper: one more scheme, the cost of DRAM permission exchanges, layers, hints, real traces."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from ..options import RunOptions
from . import figures
from .batch import Batch
from .codesign_runs import BY_CHANNEL, OWN, SCHEMES, WORKLOADS, Scale
from .figures import Figure
from .measures import change, response_ns

__all__ = ["figures_of", "runs"]

DEPTHS = (1, 4, 16, 64)
HAND_OVERS_US = (0, 3, 20, 100)
MODES = ("page", "dma", "spread")
COMPARED = ("rr", "hybrid", OWN)
LAYERS = ("codesign", "fs-page", "fs-subpage", "fs-spftl", "fs-mga")
STACKED = ("exchange", "msnstorage")
HINTED = (("fs-hotcold", "size"), ("fs-hotcold", "hint"), ("fs-llh", "size"), ("fs-llh", "hint"))
STACKED_TIMES = 12
"""Times the requests of the other sweeps: until the layers below collect."""
LOCALITIES = {
    "uniform": "rwmixread=0",
    "zipf:0.9": "rwmixread=0,random_distribution=zipf:0.9",
    "zipf:1.2": "rwmixread=0,random_distribution=zipf:1.2",
}

_Rows = list[dict[str, Any]]
_Keyed = dict[tuple[Any, ...], RunOptions]


def _depth_runs(scale: Scale) -> _Keyed:
    return {
        (name, depth, scheme): scale.scheme(scheme, name, f"iodepth={depth}")
        for name in WORKLOADS
        for depth in DEPTHS
        for scheme in COMPARED
    }


def _exchange_runs(scale: Scale) -> _Keyed:
    return {
        (name, time, scheme): scale.scheme(scheme, name, "", f"fs.dispatch_overhead={time}us")
        for name in WORKLOADS[:1]
        for time in HAND_OVERS_US
        for scheme in (*SCHEMES, OWN)
    }


def _mode_runs(scale: Scale) -> _Keyed:
    """The file system above flash with large pages, whose read command may name parts of a page."""
    room = (f"ssd.blocks_per_plane={scale.blocks}", "ssd.over_provisioning=40%", "fs.scheme=rr")
    return {
        (name, mode): replace(scale.scheme("rr", name), ssd="spread-16g", overrides=(*room, f"ftl.read={mode}"))
        for name in WORKLOADS
        for mode in MODES
    }


def _layer_runs(scale: Scale) -> _Keyed:
    """The file system above layers, on flash that allows several programs of a page and reads of words."""
    room = (f"ssd.blocks_per_plane={scale.blocks}", "ssd.over_provisioning=60%", "fs.dispatch_overhead=0us")
    flash = ("part.nop=4", "part.order=ascending")
    longer = replace(scale, requests=STACKED_TIMES * scale.requests)
    return {
        (name, layer): replace(
            longer.options(layer, name),
            ssd="spread-16g",
            overrides=(*room, *flash),
        )
        for name in STACKED
        for layer in LAYERS
    }


def _hint_runs(scale: Scale) -> _Keyed:
    """Hot and cold by the size of requests and by hints of the file system, with files that differ more and more."""
    room = (f"ssd.blocks_per_plane={scale.blocks // 2}", "ssd.over_provisioning=60%")
    longer = replace(scale, requests=STACKED_TIMES * scale.requests)
    return {
        (locality, layer, classifier): replace(
            longer.options(layer, "exchange", changes),
            ssd="llh-16g",
            overrides=(*room, f"ftl.classifier={classifier}"),
            fidelity="count",
        )
        for locality, changes in LOCALITIES.items()
        for layer, classifier in HINTED
    }


def _trace_runs(batch: Batch, scale: Scale) -> _Keyed:
    made: _Keyed = {}
    for name, path in batch.trace_files().items():
        # All schemes where the trace is of the paper's kind, Microsoft's production servers.
        schemes = (*SCHEMES, OWN) if path.name.startswith("msps") else COMPARED
        for scheme in (BY_CHANNEL, *schemes):
            files = () if scheme == BY_CHANNEL else ("fs.file_size=1MiB",)
            run = scale.scheme(scheme, "", "", "host.fold=true", "host.iodepth=16", *files)
            made[name, scheme] = replace(
                run,
                workload=str(path),
                requests=scale.trace_requests,
                precondition="fill:70%",
                skip_bad=True,
                volumes="overlaid",
            )
    return made


def runs(batch: Batch, scale: Scale, swept: Scale) -> Iterator[RunOptions]:
    """The runs that `figures_of` needs."""
    yield from _depth_runs(swept).values()
    yield from _exchange_runs(swept).values()
    yield from _mode_runs(swept).values()
    yield from _layer_runs(swept).values()
    yield from _hint_runs(swept).values()
    yield from _trace_runs(batch, scale).values()


def _own(batch: Batch, scale: Scale) -> Figure:
    keyed = _depth_runs(scale)
    rows: _Rows = []
    for (workload, depth, scheme), options in keyed.items():
        base = response_ns(batch[keyed[workload, depth, SCHEMES[0]]])
        latency = batch[options]["latency_ns"]
        row = {
            "workload": workload,
            "depth": str(depth),
            "scheme": scheme,
            "response_us": response_ns(batch[options]) / 1000,
        }
        row |= {"read_us": latency["read"]["mean"] / 1000, "write_us": latency["write"]["mean"] / 1000}
        rows.append(row | {"change_percent": change(response_ns(batch[options]), base)})
    data = pl.DataFrame(rows)
    draw = figures.bars("depth", "scheme", "change_percent", "%, rr = 0")
    shown = pl.col("scheme") != SCHEMES[0]
    draws = [
        (f"{name}, by requests in flight", _only(draw, shown & (pl.col("workload") == name))) for name in WORKLOADS
    ]
    note = (
        f"{OWN} uses the queue of each channel, reads and programs alike, where read-busy checks only whether there "
        "is a read, and fairness only for pages of the file."
    )
    title = f"Beyond: {OWN} against hybrid, mean response time"
    return Figure("own_scheme", title, note, data, figures.panels(data, draws, height=2.6))


def _only(draw: figures.Draw, rows: pl.Expr) -> figures.Draw:
    return lambda axes, data: draw(axes, data.filter(rows))


def _exchange(batch: Batch, scale: Scale) -> Figure:
    keyed = _exchange_runs(scale)
    rows: _Rows = []
    for (workload, time, scheme), options in keyed.items():
        result = batch[options]
        row = {"workload": workload, "hand_over_us": time, "scheme": scheme, "response_us": response_ns(result) / 1000}
        rows.append(row | {"groups": result["ftl_stats"]["fs_command_groups"]})
    data = pl.DataFrame(rows)
    draw = figures.lines("hand_over_us", "scheme", "response_us", "us an exchange", "us")
    note = "All channels share the FTL's DRAM: exchanges are serial. livemaps, mean response time."
    svg = figures.panels(data, [("Mean response time", draw)])
    return Figure("hand_over", "Cost of a DRAM permission exchange", note, data, svg)


def _read_modes(batch: Batch, scale: Scale) -> Figure:
    rows: _Rows = []
    for (workload, mode), options in _mode_runs(scale).items():
        result = batch[options]
        row = {"workload": workload, "read": mode, "response_us": response_ns(result) / 1000}
        rows.append(
            row | {"read_us": result["latency_ns"]["read"]["mean"] / 1000, "raf": result["read_amplification"]["host"]}
        )
    data = pl.DataFrame(rows)
    draws = [("Mean latency of reads", figures.bars("workload", "read", "read_us", "us"))]
    note = (
        "Drive spread-16g, pages of 16 KiB on 4 channels. Above the block map the file system writes whole pages, so "
        "that a write of less reads the rest first; reads transfer parts."
    )
    return Figure(
        "read_modes", "Beyond: the file system above reads of parts of a page", note, data, figures.panels(data, draws)
    )


def _layers(batch: Batch, scale: Scale) -> Figure:
    rows: _Rows = []
    for (workload, layer), options in _layer_runs(scale).items():
        result = batch[options]
        flash = result["flash"]
        row = {"workload": workload, "layer": layer, "response_us": response_ns(result) / 1000}
        row |= {"write_amplification": result["write_amplification"], "erases": flash["erases"]}
        row |= {"programs": flash["page_programs"], "again": flash["partial_programs"]}
        rows.append(row | {"map_kib": result["mapping"]["bytes_peak"] / 1024})
    data = pl.DataFrame(rows)
    draws = [
        (title, figures.bars("workload", "layer", value, label, log=value == "map_kib"))
        for title, value, label in (
            ("Mean response time", "response_us", "us"),
            ("Write amplification", "write_amplification", ""),
            ("Erases", "erases", ""),
            ("Map of the drive, at its peak", "map_kib", "KiB"),
        )
    ]
    note = (
        "Flash of spread-16g, pages of 16 KiB, that allows four programs of a page in any order; DRAM permission "
        "exchanges take no time. codesign and fs-page have pages of 16 KiB, the others of 4 KiB. Writes of fs-subpage "
        "and fs-spftl are acknowledged in the drive's buffer, those of the others when they are programmed."
    )
    return Figure(
        "layers", "Beyond: the file system above other layers", note, data, figures.panels(data, draws, height=2.6)
    )


def _hints(batch: Batch, scale: Scale) -> Figure:
    keyed = _hint_runs(scale)
    rows: _Rows = []
    for (locality, layer, classifier), options in keyed.items():
        result = batch[options]
        base = batch[keyed[locality, *HINTED[0]]]
        stats, flash = result["ftl_stats"], result["flash"]
        row = {"locality": locality, "layer": f"{layer}, {classifier}", "hot_percent": 100 * stats["hot_share"]}
        row |= {"erases": flash["erases"], "erases_percent": change(flash["erases"], base["flash"]["erases"])}
        row |= {"moved_by_layer": result["gc"]["moved_subpages"] - stats["fs_moved_pages"]}
        rows.append(row | {"moved_by_files": stats["fs_moved_pages"], "reprograms": flash["reprograms"]})
    data = pl.DataFrame(rows)
    draws = [
        ("Erases, fs-hotcold with size = 0", figures.bars("locality", "layer", "erases_percent", "%")),
        ("Subpages that the layer moved", figures.bars("locality", "layer", "moved_by_layer", "")),
        ("Second writes", figures.bars("locality", "layer", "reprograms", "pages")),
    ]
    note = (
        "Writes of exchange on a small llh-16g, counted. hint: hot writes are those that the file system expects to be "
        "overwritten sooner than most; size: requests below 64 KiB, the paper's rule."
    )
    return Figure("hints", "Beyond: hints of the file system", note, data, figures.panels(data, draws, height=2.6))


def _traces(batch: Batch, scale: Scale) -> list[Figure]:
    keyed = _trace_runs(batch, scale)
    rows: _Rows = []
    for (trace, scheme), options in keyed.items():
        result = batch[options]
        rr, by_address = (response_ns(batch[keyed[trace, base]]) for base in (SCHEMES[0], BY_CHANNEL))
        row = {"trace": trace, "scheme": scheme, "response_us": response_ns(result) / 1000}
        row |= {"change_percent": change(response_ns(result), rr)}
        row |= {"by_address_percent": change(response_ns(result), by_address)}
        stats, causes = result["ftl_stats"], result["flash"]["by_cause"]
        row |= {name: _percent(stats.get(f"imbalance_{name.removesuffix('_percent')}")) for name in _IMBALANCE}
        # Pages of which a part is written are read first.
        programs = causes["host"]["programs"] + causes["rmw"]["programs"]
        rows.append(row | {"partial_percent": 100 * causes["rmw"]["reads"] / programs if programs else None})
    if not rows:
        return []
    data = pl.DataFrame(rows, infer_schema_length=None)

    def over(column: str, base: str) -> figures.Draw:
        bars = figures.bars("trace", "scheme", column, "%, base = 0")
        return figures.slanted(
            lambda axes, rows: bars(axes, rows.filter(~pl.col("scheme").is_in([base, BY_CHANNEL]))), 25, 7
        )

    draws = [
        ("Mean response time over pages in turn", over("change_percent", SCHEMES[0])),
        ("Mean response time over channels by address", over("by_address_percent", BY_CHANNEL)),
    ]
    note = (
        "Not in the paper: real traces, folded into the drive, 16 requests in flight, after 70 % of it was written in "
        "order. They name no files: each MiB of addresses is one. DevToolsRelease is of the paper's family of traces."
    )
    svg = figures.panels(data, draws, height=4.2)
    return [Figure("traces", "Extra: real traces", note, data, svg)]


_IMBALANCE = ("uneven_percent", "above_1_percent")


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def figures_of(batch: Batch, scale: Scale, swept: Scale) -> list[Figure]:
    """All figures beyond the paper's."""
    return [
        _own(batch, swept),
        _exchange(batch, swept),
        _read_modes(batch, swept),
        _layers(batch, swept),
        _hints(batch, swept),
        *_traces(batch, scale),
    ]
