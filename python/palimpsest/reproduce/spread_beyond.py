"""Beyond the SPREAD paper: what its result depends on, its read command under other layers, and real traces.

Times for other words and slopes are computed from the paper's Table I and are assumed: linear between its entries, and
for one KiB the continuation of its first two.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from ..options import RunOptions
from ..result import Result
from . import figures
from .batch import Batch
from .figures import Figure
from .measures import iops
from .spread_runs import COLLECTED, LAYERS, T_READ_US, T_WORD_US, Scale, collection_ns, mean, read_ns, sizes_bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["figures_of", "runs", "sensing_table"]

_Rows = list[dict[str, Any]]
_Keyed = dict[tuple[Any, ...], RunOptions]
_Measure = Callable[[Result], float | None]

DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SLOPES = (0.0, 0.25, 0.5, 0.75, 1.0)
RATES_GBPS = (0.4, 0.8, 1.2, 1.6, 2.4, 3.6)
"""Of a pin; the bus has eight, so that 0.8 Gb/s are 800 MB/s."""
WORDS_KIB = (1, 2, 4)
MODES = ("page", "dma", "spread")
MAPPED = ("subpage", "mga", "sector-log")
"""Layers with a map of subpages."""
PAGE_KIB = 16
REPROGRAM = ("part.nop=4", "part.order=ascending", "ssd.over_provisioning=28%")
"""What mga and sector-log need of the part that the paper's does not have; subpage is run on the same."""


def _times(values: list[float]) -> str:
    return "[" + ",".join(f'"{round(1000 * value)}ns"' for value in values) + "]"


def sensing_table(word_kib: int) -> list[float]:
    """Microseconds to sense 1, 2, ... words of another size: Table I, linear between its entries."""

    def sense(kib: float) -> float:
        at = min(max(int(kib // 2), 1), len(T_READ_US) - 1)
        low, high = T_READ_US[at - 1], T_READ_US[at]
        return low + (kib - 2 * at) / 2 * (high - low)

    return [sense(word_kib * count) for count in range(1, PAGE_KIB // word_kib + 1)]


def _depth_runs(scale: Scale) -> _Keyed:
    return {
        (layer, depth): scale.options(layer, "kv", f"iodepth={depth}") for layer in LAYERS for depth in DEPTHS
    }  # fmt: skip


def _slope_runs(scale: Scale) -> _Keyed:
    """Sensing a share x of a page takes 99 us times 1 - slope (1 - x): 0 is no gain, 1 is proportional."""
    made: _Keyed = {}
    for workload in ("kv", "grp", "usr"):
        for slope in SLOPES:
            times = [T_READ_US[-1] * (1 - slope * (1 - count / 8)) for count in range(1, 9)]
            made[workload, slope] = scale.options("spftl", workload, "", f"part.t_read_words={_times(times)}")
        made[workload, None] = scale.options("page-fgm", workload)
    return made


def _bus_runs(scale: Scale) -> _Keyed:
    return {
        (workload, layer, rate): scale.options(
            layer, workload, "", "part.t_dma_words=[]", f"part.bus_rate={round(1000 * rate)}MB/s"
        )
        for workload in ("kv", "usr")
        for layer in LAYERS
        for rate in RATES_GBPS
    }


def _word_runs(scale: Scale) -> _Keyed:
    made: _Keyed = {}
    for workload in ("kv1", "kv", "usr"):
        for word in WORDS_KIB:
            count = PAGE_KIB // word
            overrides = (
                f"part.word_size={word}KiB",
                f"part.t_read_words={_times(sensing_table(word))}",
                "part.e_read_words=[]",
                f"part.t_dma_words={_times([T_WORD_US / 2 * word * each for each in range(1, count + 1)])}",
            )
            made[workload, word] = scale.options("spftl", workload, "", *overrides)
    return made


def _mode_runs(scale: Scale) -> _Keyed:
    return {
        (workload, ftl, mode): scale.options(ftl, workload, "", f"ftl.read={mode}", *REPROGRAM)
        for workload in ("usr", "kv")
        for ftl in MAPPED
        for mode in MODES
    }


_REACHES = {
    "any words": (),
    "one run": ("part.spread_reach=run",),
    "one run, gaps sensed where faster": ("part.spread_reach=run", "ftl.read_gap=true"),
}


def _gap_runs(scale: Scale) -> _Keyed:
    return {
        (workload, reach): scale.options("spftl", workload, "", *overrides)
        for workload in COLLECTED
        for reach, overrides in _REACHES.items()
    }


def _trace_runs(batch: Batch, scale: Scale) -> _Keyed:
    made: _Keyed = {}
    for name, path in batch.trace_files().items():
        for layer in LAYERS:
            run = scale.options(layer, "usr", "", "host.fold=true", precondition="fill:90%,random:1x")
            made[name, layer] = replace(
                run, workload=str(path), requests=scale.trace_requests, skip_bad=True, volumes="overlaid"
            )
    return made


def runs(batch: Batch, scale: Scale, swept: Scale) -> Iterator[RunOptions]:
    """The runs that `figures_of` needs."""
    for part in (_depth_runs, _slope_runs, _bus_runs, _word_runs, _mode_runs, _gap_runs):
        yield from (run for options in part(swept).values() for run in swept.repeated(options))
    yield from _trace_runs(batch, scale).values()


def _mean(batch: Batch, scale: Scale, options: RunOptions, measure: _Measure) -> float | None:
    return mean((batch[run] for run in scale.repeated(options)), measure)


def _us(value: float | None) -> float | None:
    return None if value is None else value / 1000


def _raf(result: Result) -> float | None:
    """Of the host's reads; over the bytes requested, where every read is the host's."""
    if result["requests"]["write"]:
        found: float | None = result["read_amplification"]["host"]
        return found
    return float(result["flash"]["bytes_sensed"] / result["host"]["bytes_read"])


def _log_x(draw: figures.Draw) -> figures.Draw:
    def drawn(axes: "Axes", rows: pl.DataFrame) -> None:
        draw(axes, rows)
        axes.set_xscale("log", base=2)

    return drawn


def _only(draw: figures.Draw, column: str, value: object) -> figures.Draw:
    return lambda axes, rows: draw(axes, rows.filter(pl.col(column) == value))


def _queue_depth(batch: Batch, scale: Scale) -> Figure:
    rows: _Rows = []
    for (layer, depth), options in _depth_runs(scale).items():
        result = batch[options]
        row = {"layer": layer, "depth": depth, "iops": iops(result), "bound_iops": sizes_bound(layer, "kv")}
        rows.append(row | {"read_us": read_ns(result) / 1000})
    data = pl.DataFrame(rows)
    svg = figures.panels(data, [("IOPS of kv", _log_x(figures.lines("depth", "layer", "iops", "in flight", "IOPS")))])
    note = "The paper states no queue depth. Ratios of the layers hardly depend on it; the bound is the closed form's."
    return Figure("queue_depth", "Beyond: queue depth", note, data, svg)


def _sensing_slope(batch: Batch, scale: Scale) -> Figure:
    keyed = _slope_runs(scale)
    rows: _Rows = []
    for (workload, slope), options in keyed.items():
        if slope is not None:
            base = _mean(batch, scale, keyed[workload, None], iops)
            own = _mean(batch, scale, options, iops)
            rows.append({"workload": workload, "slope": slope, "iops": own, "page_fgm_iops": base})
    data = pl.DataFrame(rows).with_columns(to_page=pl.col("iops") / pl.col("page_fgm_iops"))
    draw = figures.lines("slope", "workload", "to_page", "slope", "page-fgm = 1")
    note = (
        "Sensing a share x of a page takes 99 us times 1 - slope (1 - x): with 0 only the transfer gets shorter, with "
        f"1 the time is proportional. Table I has {(1 - T_READ_US[0] / T_READ_US[-1]) * 8 / 7:.2f}."
    )
    svg = figures.panels(data, [("IOPS of spftl", draw)])
    return Figure("sensing_slope", "Beyond: how far sensing time follows size", note, data, svg)


def _bus(batch: Batch, scale: Scale) -> Figure:
    rows: _Rows = []
    for (workload, layer, rate), options in _bus_runs(scale).items():
        rows.append({"workload": workload, "layer": layer, "gbps": rate, "iops": _mean(batch, scale, options, iops)})
    data = pl.DataFrame(rows)
    draw = figures.lines("gbps", "layer", "iops", "Gb/s a pin", "IOPS")
    draws = [(f"IOPS of {workload}", _only(draw, "workload", workload)) for workload in ("kv", "usr")]
    note = "Transfers take their size over the rate, not Table I's times. The faster the bus, the less dma-fgm gains."
    return Figure("bus", "Beyond: speed of the bus", note, data, figures.panels(data, draws))


def _word_size(batch: Batch, scale: Scale) -> Figure:
    rows: _Rows = []
    for (workload, word), options in _word_runs(scale).items():
        row = {"workload": workload, "word": f"{word} KiB", "iops": _mean(batch, scale, options, iops)}
        rows.append(row | {"raf": _mean(batch, scale, options, _raf)})
    data = pl.DataFrame(rows)
    draws = [
        ("IOPS of spftl", figures.bars("workload", "word", "iops", "IOPS")),
        ("Bytes sensed over bytes requested", figures.bars("workload", "word", "raf", "")),
    ]
    note = (
        "Sensing times of words of 1 and 4 KiB are linear between the entries of Table I, transfers 1.25 us a KiB. "
        "What shorter words cost in correction is not modelled; energies are not measured."
    )
    return Figure("word_size", "Beyond: size of a code word", note, data, figures.panels(data, draws, height=3.0))


def _read_modes(batch: Batch, scale: Scale) -> Figure:
    rows: _Rows = []
    for (workload, ftl, mode), options in _mode_runs(scale).items():
        row = {"workload": workload, "ftl": ftl, "read": mode, "iops": _mean(batch, scale, options, iops)}
        row |= {"read_us": _us(_mean(batch, scale, options, read_ns)), "raf": _mean(batch, scale, options, _raf)}
        rows.append(row | {"gc_mean_us": _us(_mean(batch, scale, options, collection_ns))})
    data = pl.DataFrame(rows, schema_overrides={"gc_mean_us": pl.Float64()})
    draw = figures.bars("ftl", "read", "read_us", "us")
    draws = [(f"Mean latency of reads, {each}", _only(draw, "workload", each)) for each in ("usr", "kv")]
    note = (
        "Every layer with a map of subpages, with each read command. For mga and sector-log the part allows four "
        "programs a page in ascending order, and the drive has 28 % of over-provisioning; both are assumed."
    )
    svg = figures.panels(data, draws, height=3.0)
    return Figure("read_modes", "Beyond: the read command under other layers", note, data, svg)


_GAP_MEASURES: dict[str, _Measure] = {
    "page_reads": lambda result: result["flash"]["page_reads"],
    "raf": lambda result: result["read_amplification"]["host"],
    "raf_gc": lambda result: result["read_amplification"]["gc"],
}


def _read_gap(batch: Batch, scale: Scale) -> Figure:
    rows: _Rows = []
    for (workload, reach), options in _gap_runs(scale).items():
        row = {"workload": workload, "reach": reach, "iops": _mean(batch, scale, options, iops)}
        row |= {name: _mean(batch, scale, options, measure) for name, measure in _GAP_MEASURES.items()}
        rows.append(row | {"gc_mean_us": _us(_mean(batch, scale, options, collection_ns))})
    data = pl.DataFrame(rows, schema_overrides=dict.fromkeys((*_GAP_MEASURES, "gc_mean_us"), pl.Float64()))
    first = {name: pl.col(name).first().over("workload") for name in ("iops", "page_reads", "gc_mean_us")}
    data = data.with_columns(**{f"{name}_to_any": pl.col(name) / base for name, base in first.items()})
    draws = [
        ("Read commands, any words = 1", figures.bars("workload", "reach", "page_reads_to_any", "")),
        ("Mean time of a collection, any words = 1", figures.bars("workload", "reach", "gc_mean_us_to_any", "")),
        ("IOPS, any words = 1", figures.bars("workload", "reach", "iops_to_any", "")),
    ]
    note = (
        "The paper's command names any words by a bitmap (Fig. 3b). A part whose command names one run of words (Fig. "
        "3a) needs a command for each run, or senses what lies between where that takes less time."
    )
    svg = figures.panels(data, draws, height=3.0)
    return Figure("read_gap", "Beyond: a bitmap against a run of words", note, data, svg)


def _traces(batch: Batch, scale: Scale) -> list[Figure]:
    keyed = _trace_runs(batch, scale)
    rows: _Rows = []
    for (trace, layer), options in keyed.items():
        result = batch[options]
        if result["requests"]["read"]:
            row = {"trace": trace, "layer": layer, "read_us": read_ns(result) / 1000}
            row |= {"to_page": read_ns(result) / read_ns(batch[keyed[trace, LAYERS[0]]])}
            rows.append(row | {"raf": result["read_amplification"]["host"]})
    if not rows:
        return []
    data = pl.DataFrame(rows, schema_overrides={"raf": pl.Float64()})
    draw = figures.slanted(figures.bars("trace", "layer", "to_page", "page-fgm = 1"), 25, 7)
    note = (
        "Not in the paper: real traces, folded into the drive, with their own arrival times, after 90 % of it was "
        "written in order and overwritten once at random."
    )
    svg = figures.panels(data, [("Mean latency of reads", draw)], height=4.2)
    return [Figure("traces", "Extra: real traces", note, data, svg)]


def figures_of(batch: Batch, scale: Scale, swept: Scale) -> list[Figure]:
    """All figures beyond the paper's."""
    parts = (_queue_depth, _sensing_slope, _bus, _word_size, _read_modes, _read_gap)
    return [*(part(batch, swept) for part in parts), *_traces(batch, scale)]
