"""The SPREAD paper: Park et al., on flash with large pages that reads parts of them ("subpage-parallel reads").

Table I, Table II, Fig. 1, 2 and 6 and the numbers of Sec. V, on synthetic workloads with the statistics of Table II and
Fig. 1; beside each the closed-form bound. What goes beyond the paper is in `spread_beyond`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from ..options import RunOptions
from ..result import Result
from . import figures, implied, outputs, spread_beyond, spread_implied, sweeps_old as sweeps
from .batch import Batch
from .claims import ASSUMED, BOTH, IMPLIED, Claim, amount, at_most, effect, within
from .figures import Figure
from .measures import change, iops, seeds_note, with_spread
from .spread_runs import (
    COLLECTED,
    DEFAULT,
    EFFECTS,
    FULL,
    FULL_SWEEP,
    IN_ORDER,
    LAYERS,
    MOTIVATION,
    QUICK,
    T_READ_US,
    T_WORD_US,
    UNKNOWNS,
    WORKLOADS,
    Scale,
    Unknown,
    counted_bound,
    effects,
    effects_runs,
    options_of,
    read_ns,
    read_sizes,
    sizes_bound,
    statistics_run,
)

__all__ = ["PAPER", "fig_1", "judged", "reproduce", "table_i", "table_ii"]

SYNTHETIC = "Synthetic workloads with the statistics of the paper's."
_Rows = list[dict[str, Any]]

_COMMAND_NS = 1000
"""Length of a command in the last column of Table I."""


def _single(layer: str, words: int, command_ns: int = 0) -> RunOptions:
    """Reads of so many words of a page, one after the other, on a drive that does nothing else."""
    spec = f"rw=randread,bs={2 * words}k,blockalign=16k,size=10%,iodepth=1,norandommap"
    return QUICK.options(layer, spec, "", f"part.t_command={command_ns}ns", precondition="fill:11%")


def _table_i_runs() -> Iterator[RunOptions]:
    for words in range(1, len(T_READ_US) + 1):
        yield from (_single(layer, words) for layer in LAYERS)
        yield _single("spftl", words, _COMMAND_NS)


def table_i(batch: Batch) -> Figure:
    """Latency of single reads beside the table's."""

    def latency(layer: str, words: int, command_ns: int = 0) -> int:
        times = batch[_single(layer, words, command_ns)]["latency_ns"]["read"]
        if times["mean"] != times["max"]:
            raise AssertionError(f"single reads of {layer} differ: {times}")
        return int(times["mean"])

    rows: _Rows = []
    for words, sense in enumerate(T_READ_US, start=1):
        row: dict[str, Any] = {"size_kib": 2 * words, "paper_ns": round(1000 * (sense + T_WORD_US * words))}
        row |= {layer: latency(layer, words) for layer in LAYERS}
        rows.append(row | {"spftl, command of 1 us": latency("spftl", words, _COMMAND_NS)})
    data = pl.DataFrame(rows)
    long = data.unpivot(on=LAYERS, index="size_kib", variable_name="layer", value_name="ns")
    long = long.with_columns(us=pl.col("ns") / 1000)
    table = pl.DataFrame({"size_kib": data["size_kib"], "layer": "Table I", "us": data["paper_ns"] / 1000})
    long = pl.concat([long.select(table.columns), table])
    svg = figures.panels(long, [("Latency of one read", figures.lines("size_kib", "layer", "us", "KiB read", "us"))])
    note = (
        "Reads of each size from the start of a page, one at a time on an idle drive; every one of them took as long. "
        "Latencies include the transfer; the paper counts no time of commands, a last column has one of 1 us."
    )
    return Figure("table1", "Table I: latency of a read of n KiB, in nanoseconds", note, data, svg)


def fig_1() -> Figure:
    """Cumulated shares of the sizes of the presets' reads."""
    rows: _Rows = []
    for name in MOTIVATION[:3]:
        total = 0.0
        for size, share in sorted(read_sizes(name).items()):
            total += 100 * share
            rows.append({"workload": name, "bytes": size, "percent": 100 * share, "percent_up_to": total})
    data = pl.DataFrame(rows)
    drawn = data.with_columns(size=(pl.col("bytes").cast(pl.String) + " B"))
    svg = figures.panels(drawn, [("Share of reads", figures.bars("size", "workload", "percent", "%"))])
    note = (
        f"{SYNTHETIC} The paper's text fixes two points: over 90 % of values below 1 KB (kv1, kv2), over 99 % of "
        "lists below 4 KB (gr1). Requests are whole sectors of 512 B."
    )
    return Figure("fig1", "Fig. 1: sizes of reads in KV1, KV2 and GR1", note, data, svg)


_TABLE_II = {
    "kv": (("reads", 100.0, "%"), ("2 KiB and more, mean", None, "KiB")),
    "grp": (("reads", 100.0, "%"), ("mean read, 4 KB to 8 KB as 3:2", 5.6, "KiB")),
    "prj": (("reads", 90.0, "%"), ("mean read, 4 KB and 16 KB in halves", 10.0, "KiB")),
    "usr": (("reads", 70.0, "%"), ("mean read", 16.0, "KiB"), ("mean write", 4.0, "KiB")),
    "stg": (("reads", 30.0, "%"), ("mean read", 16.0, "KiB"), ("mean write", 4.0, "KiB")),
}


def table_ii(batch: Batch) -> Figure:
    """Mix and mean sizes of the synthetic workloads beside the table's."""
    rows: _Rows = []
    for name, facts in _TABLE_II.items():
        result = batch[statistics_run(name)]
        requests, host = result["requests"], result["host"]
        for what, paper, unit in facts:
            if what == "reads":
                own = 100 * requests["read"] / (requests["read"] + requests["write"])
            else:
                kind = "write" if "write" in what else "read"
                moved = host["bytes_written"] if kind == "write" else host["bytes_read"]
                own = moved / requests[kind] / 1024
            off = None if paper is None else 100 * (own / paper - 1)
            rows.append({"workload": name, "what": what, "unit": unit, "paper": paper, "ours": own, "off_percent": off})
    data = pl.DataFrame(rows)
    reads = data.filter(pl.col("what") == "reads")
    svg = figures.panels(reads, [("Share of reads", figures.bars("workload", "what", "ours", "%", paper=("paper",)))])
    note = f"{SYNTHETIC} Measured over the 200,000 requests of each preset; a test holds them within 2 % of the table."
    return Figure("table2", "Table II: statistics of the synthetic workloads and the paper's", note, data, svg)


def _fig_2_runs(scale: Scale) -> Iterator[RunOptions]:
    for layer in ("page-fgm", "spftl"):
        yield from (scale.options(layer, name) for name in MOTIVATION)
        yield scale.options(layer, "su", precondition=IN_ORDER)


def _fig_2(batch: Batch, scale: Scale) -> Figure:
    """Bandwidth against what the same drive gives to whole pages, and bytes sensed over bytes requested."""
    rows: _Rows = []
    for layer in ("page-fgm", "spftl"):
        ideal = batch[scale.options(layer, "su", precondition=IN_ORDER)]["throughput"]["bytes_per_s"]
        for name in MOTIVATION:
            result = batch[scale.options(layer, name)]
            own = result["throughput"]["bytes_per_s"]
            row = {"workload": name, "layer": layer, "bytes_per_s": own, "ideal_bytes_per_s": ideal}
            row |= {"percent_of_ideal": 100 * own / ideal}
            row |= {"paper": 100 + PAPER["su"] if (layer, name) == ("page-fgm", "su") else None}
            rows.append(row | {"raf": result["flash"]["bytes_sensed"] / result["host"]["bytes_read"]})
    data = pl.DataFrame(rows, infer_schema_length=None)
    draws = [
        ("Read bandwidth, ideal = 100 %", figures.bars("workload", "layer", "percent_of_ideal", "%", paper=("paper",))),
        ("Bytes sensed over bytes requested", figures.bars("workload", "layer", "raf", "", log=True)),
    ]
    note = (
        f"{SYNTHETIC} The paper shows page-fgm alone. Ideal: reads of whole pages from a drive that was written in "
        "order, as many in flight. Values of less than a code word amplify the reads of spftl, too. "
        "Mark: the paper's su."
    )
    svg = figures.panels(data, draws, height=3.0)
    return Figure("fig2", "Fig. 2: what amplified reads do to bandwidth", note, data, svg)


def _main_runs(scale: Scale, point: Unknown = DEFAULT) -> dict[tuple[str, str], tuple[RunOptions, ...]]:
    keys = [(layer, name) for name in WORKLOADS for layer in LAYERS]
    return {key: replace(scale, repeats=True).repeated(options_of(scale, point, *key)) for key in keys}


_MEASURES: dict[str, Callable[[Result], float | None]] = {
    "iops": iops,
    "bound_iops": counted_bound,
    "read_us": lambda result: read_ns(result) / 1000,
    "read_p99_us": lambda result: result["latency_ns"]["read"]["p99"] / 1000,
    "raf": lambda result: result["read_amplification"]["host"],
    "raf_gc": lambda result: result["read_amplification"]["gc"],
    "write_amplification": lambda result: result["write_amplification"],
    "collections": lambda result: result["gc"]["runs"],
    "gc_mean_ms": lambda result: (result["gc"]["mean_ns"] or 0) / 1e6,
    "gc_p99_ms": lambda result: (result["gc"]["p99_ns"] or 0) / 1e6,
}


def _measured(batch: Batch, scale: Scale, point: Unknown = DEFAULT) -> pl.DataFrame:
    """A row for each workload and layer: means over seeds, the least as `_low`, the greatest as `_high`.

    `to_page_iops`, `to_page_read_us` and `to_page_bound` are over the same of page-fgm with the same seed.
    """
    rows: _Rows = []
    main = _main_runs(scale, point)
    for (layer, workload), runs in main.items():
        for run, base in zip(runs, main["page-fgm", workload], strict=True):
            row: dict[str, Any] = {"workload": workload, "layer": layer}
            row |= {name: measure(batch[run]) for name, measure in _MEASURES.items()}
            if workload in ("kv", "grp"):
                # A drive that was written in order and is only read: there is a closed form without counting.
                row["bound_iops"] = sizes_bound(layer, workload)
            bound = sizes_bound("page-fgm", workload) if workload in ("kv", "grp") else counted_bound(batch[base])
            row |= {
                "to_page_iops": iops(batch[run]) / iops(batch[base]),
                "to_page_read_us": read_ns(batch[run]) / read_ns(batch[base]),
                "to_page_bound": row["bound_iops"] / bound,
            }
            rows.append(row)
    return with_spread(pl.DataFrame(rows, infer_schema_length=None), ("workload", "layer"))


_PAPER_TO_PAGE = {("usr", "spftl"): 1.44, ("stg", "spftl"): 1.10}
"""What the paper's text says of single workloads; of the others it says "up to 2.2x"."""


_SEEDS_NOTE = "Means of all seeds; whiskers from the least to the greatest."


def _columns(measured: pl.DataFrame, *names: str) -> pl.DataFrame:
    return measured.select("workload", "layer", *(f"{name}{end}" for name in names for end in ("", "_low", "_high")))


def _marked(data: pl.DataFrame, stated: dict[tuple[str, str], float]) -> pl.DataFrame:
    """The same with the paper's number of each workload and layer of which it states one."""
    paper = [stated.get(key) for key in data.select("workload", "layer").iter_rows()]
    return data.with_columns(pl.Series("paper", paper, dtype=pl.Float64))


def _fig_6(measured: pl.DataFrame, note: str) -> list[Figure]:
    iops_data = _marked(_columns(measured, "iops", "bound_iops", "to_page_iops", "to_page_bound"), _PAPER_TO_PAGE)
    latency = _columns(measured, "read_us", "read_p99_us", "to_page_read_us")
    raf = _marked(_columns(measured, "raf", "raf_gc"), {(name, "spftl"): 1.0 for name in ("kv", "grp", "prj")})

    def bars(column: str, label: str, *paper: str) -> figures.Draw:
        return figures.bars("workload", "layer", column, label, paper=paper)

    ratio = "page-fgm = 1"
    fig_6a = [
        ("Measured", bars("to_page_iops", ratio, "paper")),
        ("Bound in closed form", bars("to_page_bound", ratio)),
    ]
    kept = (
        " Bounds: no chip and no bus ever idle; of kv and grp from the sizes of reads, else from counted operations. "
        "Marks: what the paper says of single workloads; of the others it says up to 2.2."
    )
    made = [
        ("fig6a", "Fig. 6a: IOPS", kept, iops_data, fig_6a),
        ("fig6b", "Fig. 6b: mean latency of reads", " The paper: down to 0.44 of page-fgm's.", latency,
         [("Measured", bars("to_page_read_us", ratio))]),
        ("fig6c", "Fig. 6c: read amplification of host reads", " Marks: the paper's 'close to 1'.", raf,
         [("", bars("raf", "", "paper"))]),
    ]  # fmt: skip
    return [
        Figure(name, title, f"{SYNTHETIC} {note} {_SEEDS_NOTE}{more}", data, figures.panels(data, draws, height=3.0))
        for name, title, more, data, draws in made
    ]


def _collections(measured: pl.DataFrame, note: str) -> Figure:
    rows = measured.filter(pl.col("workload").is_in(COLLECTED))
    base = dict(rows.filter(pl.col("layer") == "page-fgm").select("workload", "gc_mean_ms").iter_rows())
    stated = {(name, "spftl"): base[name] * (1 + PAPER[f"gc_{name}"] / 100) for name in COLLECTED}
    columns = ("collections", "gc_mean_ms", "gc_p99_ms", "raf_gc", "write_amplification")
    data = _marked(_columns(rows, *columns), stated)
    draws = [
        ("Mean time", figures.bars("workload", "layer", "gc_mean_ms", "ms", paper=("paper",))),
        ("99th percentile", figures.bars("workload", "layer", "gc_p99_ms", "ms")),
    ]
    text = (
        f"{SYNTHETIC} {note} From the start of a collection to the end of its erase, waits at the chip included. "
        f"{_SEEDS_NOTE} Marks: the paper's change from page-fgm, from ours."
    )
    svg = figures.panels(data, draws, height=2.6)
    return Figure("gc", "Sec. V-B: time of a garbage collection", text, data, svg)


PAPER = {
    "iops_page": 122.0,
    "iops_dma": 90.0,
    "latency_page": -56.0,
    "latency_dma": -50.0,
    "dma_page": 18.0,
    "iops_usr": 44.0,
    "iops_stg": 10.0,
    "gc_usr": -13.0,
    "gc_stg": -7.0,
    "su": -36.0,
}
"""The paper's numbers: its text has 2.2x and 1.9x for the first two, its abstract 122 %."""

_CLAIMS = {
    "iops_page": "IOPS, spftl over page-fgm, largest of five workloads",
    "iops_dma": "IOPS, spftl over dma-fgm, largest of five workloads",
    "latency_page": "mean read latency, spftl over page-fgm, largest fall of five workloads",
    "latency_dma": "mean read latency, spftl over dma-fgm, largest fall of five workloads",
    "dma_page": "IOPS, dma-fgm over page-fgm, largest of five workloads",
    "iops_usr": "IOPS, usr, spftl over page-fgm",
    "iops_stg": "IOPS, stg, spftl over page-fgm",
    "gc_usr": "mean time of a collection, usr, spftl over page-fgm",
    "gc_stg": "mean time of a collection, stg, spftl over page-fgm",
    "su": "read bandwidth, su, page-fgm over ideal",
}


def judged(name: str, ours: float | None) -> Claim:
    """The claim of this name, with the paper's number, the measured one, and the rule for both."""
    if name == "dma_page":
        return at_most(name, _CLAIMS[name], PAPER[name], ours)
    return effect(name, _CLAIMS[name], PAPER[name], ours)


def _main_effects(
    batch: Batch, scale: Scale, measured: pl.DataFrame, point: Unknown = DEFAULT
) -> dict[str, float | None]:
    """What the claims are about: at a point, and "up to" over all workloads."""

    def gains(column: str, own: str, base: str) -> list[float]:
        values = {layer: measured.filter(pl.col("layer") == layer)[column].to_list() for layer in (own, base)}
        return [100 * (of / than - 1) for of, than in zip(values[own], values[base], strict=True)]

    return effects(batch, replace(scale, repeats=True), point) | {
        "iops_page": max(gains("iops", "spftl", "page-fgm")),
        "iops_dma": max(gains("iops", "spftl", "dma-fgm")),
        "latency_page": min(gains("read_us", "spftl", "page-fgm")),
        "latency_dma": min(gains("read_us", "spftl", "dma-fgm")),
        "dma_page": max(gains("iops", "dma-fgm", "page-fgm")),
    }


def _row(measured: pl.DataFrame, layer: str, workload: str) -> dict[str, Any]:
    return measured.row(by_predicate=(pl.col("layer") == layer) & (pl.col("workload") == workload), named=True)


def _bounds_note(measured: pl.DataFrame, name: str) -> str:
    """The bound of a claim of IOPS, and the share of it that the run reaches."""
    pairs = {
        "iops_page": ("kv", "spftl", "page-fgm"),
        "iops_dma": ("kv", "spftl", "dma-fgm"),
        "dma_page": ("kv", "dma-fgm", "page-fgm"),
        "iops_usr": ("usr", "spftl", "page-fgm"),
        "iops_stg": ("stg", "spftl", "page-fgm"),
    }
    if name not in pairs:
        return ""
    workload, *layers = pairs[name]
    own, base = (_row(measured, layer, workload) for layer in layers)
    kind = "closed form of its sizes" if workload == "kv" else "counted operations"
    return (
        f"Bound of {workload} ({kind}): {base['bound_iops']:,.0f} and {own['bound_iops']:,.0f} IOPS, "
        f"{change(own['bound_iops'], base['bound_iops']):+.0f} %; measured: {base['iops']:,.0f} and "
        f"{own['iops']:,.0f}. "
    )


_BECAUSE = {
    "iops_page": "The paper's ratio is below that of the bounds: something that it does not state contributes. ",
    "iops_dma": "The paper's ratio is below that of the bounds: something that it does not state contributes. ",
    "latency_page": "With as many requests in flight, latency is the inverse of IOPS. ",
    "latency_dma": "With as many requests in flight, latency is the inverse of IOPS. ",
    "dma_page": "",
    "iops_usr": "Reads gain what fragmentation costs them; writes and collection gain little. ",
    "iops_stg": "Seven of ten requests are writes, which gain only through shorter collections. ",
    "gc_usr": "",
    "gc_stg": "Both workloads run on drives equally full and fragmented here; the paper's are not known. ",
    "su": "Units that stay behind when a block is collected move into new pages, which fit the reads less. ",
}


def _reason(sweep: pl.DataFrame, name: str) -> str:
    return sweeps.reason(sweep, name, PAPER[name], lambda ours: judged(name, ours).agrees, together="two at once")


def _claims(
    batch: Batch, scale: Scale, measured: pl.DataFrame, sweep: pl.DataFrame, table: Figure, fig_2: Figure
) -> list[Claim]:
    main, each = _main_effects(batch, scale, measured), _by_seed(batch, scale)
    worst = max(
        abs(own - less - row["paper_ns"])
        for row in table.data.iter_rows(named=True)
        for own, less in ((row["spftl"], 0), (row["spftl, command of 1 us"], _COMMAND_NS))
    )
    made = [at_most("table_1", "single reads of 2 to 16 KiB against Table I, largest deviation", 0, worst, "ns")]
    for name in PAPER:
        claim = judged(name, main[name])
        note = f"{seeds_note(each, name)} {_bounds_note(measured, name)}"
        if not claim.agrees:
            note += _BECAUSE[name] + _reason(sweep, name)
        if name == "su":
            note += _su_note(fig_2)
        made.append(claim.with_note(note.strip()))
    return [*made, *_amplifications(measured)]


def _amplifications(measured: pl.DataFrame) -> list[Claim]:
    """The claims about what is read for nothing."""
    made = []
    for name in ("kv", "grp", "prj"):
        raf = _row(measured, "spftl", name)["raf"]
        made.append(within(f"raf_{name}", f"read amplification, {name}, spftl", 1, 1.05, raf, "times", "close to 1"))
    fragmented = min(_row(measured, "page-fgm", name)["raf"] for name in COLLECTED)
    ratio = fragmented / _row(measured, "page-fgm", "prj")["raf"]
    text = "read amplification, page-fgm, the smaller of usr and stg over prj"
    made.append(within("raf_fragmented", text, 1.0001, float("inf"), ratio, "times", "more than 1"))
    raf = _row(measured, "page-fgm", "usr")["raf_gc"]
    used = None if raf is None else 100 / raf
    note = "It sets how full the drive is here: the paper's only number about that."
    text = "read bandwidth of collection, usr, page-fgm, share that is used"
    made.append(amount("gc_bandwidth", text, 50.0, used, "%").with_note(note))
    return made


def _by_seed(batch: Batch, scale: Scale, point: Unknown = DEFAULT) -> list[dict[str, float | None]]:
    single = [replace(scale, first_seed=seed, seeds=1, repeats=True) for seed in range(1, scale.seeds + 1)]
    return [effects(batch, each, point) for each in single]


def _implied(batch: Batch) -> tuple[list[Claim], Figure]:
    """The claims at the implied setting, and the figure of what is next to it."""
    scale, swept, point = spread_implied.SCALE, spread_implied.SWEEP, spread_implied.IMPLIED.point
    batch.run(run for runs in _main_runs(scale, point).values() for run in runs)
    batch.run([*effects_runs(scale, point), *spread_implied.runs()])
    measured = _measured(batch, scale, point)
    each = _by_seed(batch, scale, point)
    main = _main_effects(batch, scale, measured, point)
    made = [judged(name, main[name]).with_note(f"Implied, {seeds_note(each, name)}") for name in PAPER]
    points = [
        (each.what, each.value, [judged(name, ours) for name, ours in effects(batch, swept, each.point).items()])
        for each in spread_implied.NEIGHBOURS
    ]
    note = f"{SYNTHETIC} {swept.blocks} blocks a chip, {swept.requests:,} requests, means of {swept.seeds} seeds."
    return [*made, *_amplifications(measured)], implied.neighbours_figure(points, note, height=6.4)


def _su_note(fig_2: Figure) -> str:
    raf = _row(fig_2.data, "page-fgm", "su")["raf"]
    # A page has 4 units; each was overwritten with probability 1 - exp(-1/4), and is then in a page of its own.
    gone = 1 - pow(2.718281828459045, -0.25)
    expected = 4 * gone + 1 - gone**4
    return f" Pages read for each page requested: {raf:.2f}; without collection it would be {expected:.2f}."


def _sweep(batch: Batch, scale: Scale) -> pl.DataFrame:
    return sweeps.points(UNKNOWNS, lambda unknown: effects(batch, scale, unknown), EFFECTS)


def _sweep_figure(sweep: pl.DataFrame, note: str) -> Figure:
    draws = [(text, figures.levels("label", name, PAPER[name], "%")) for name, text in EFFECTS.items()]
    svg = figures.panels(sweep, draws, width=10, height=7.2)
    return Figure("sweep", "What the paper does not say, one thing changed at a time", note, sweep, svg)


_OVERHEAD = "overhead of a flash command: 20 us on the bus"


def _overhead(sweep: pl.DataFrame) -> Figure:
    """What one thing that the paper does not state would explain."""
    shown = {DEFAULT.label: "ours", _OVERHEAD: "ours, 20 us more a command"}
    points = {shown[row["label"]]: row for row in sweep.iter_rows(named=True) if row["label"] in shown}
    rows: _Rows = []
    for name in PAPER:
        rows.append({"claim": name, "what": EFFECTS[name], "of": "paper", "percent": PAPER[name]})
        for of, point in points.items():
            rows.append({"claim": name, "what": EFFECTS[name], "of": of, "percent": point[name]})
    data = pl.DataFrame(rows, schema_overrides={"percent": pl.Float64()})
    note = (
        "Not in the paper, which states no overhead of its platform, a layer in the host on an open development board. "
        "The same sweep also has a slow host link, and fuller drives."
    )
    draw = figures.bars("claim", "of", "percent", "%")
    svg = figures.panels(data, [("Effects", draw)], width=10)
    return Figure("overhead", "What 20 us more for each flash command would explain", note, data, svg)


_NOT_PUBLIC = (
    "The paper's traces are not public: the workloads are synthetic, with the mixes of its "
    "Table II and Fig. 1. Locality, history of the drive and queue depth are assumed, and swept."
)


def _about(scale: Scale, traces: Sequence[str]) -> tuple[str, ...]:
    found = f"Real traces: {', '.join(traces)}." if traces else "No folder of real traces was given (--traces DIR)."
    return (
        _NOT_PUBLIC,
        f"Drive spread-16g with {scale.blocks} blocks a chip (the paper: 512) and {scale.requests:,} requests, 32 in "
        "flight. kv, grp and Fig. 1's workloads read a drive that was written whole and in order; prj uses 70 % of "
        "it, written in order; usr and stg 70 %, written in order and then overwritten once at random in units of "
        "4 KiB, so that pages hold valid and invalid units; su the whole drive, a quarter of it overwritten.",
        found,
    )


def reproduce(batch: Batch, *, full: bool = False, settings: str = BOTH) -> outputs.Reproduction:
    """Runs everything and draws it: under the assumed setting, the implied one, or both."""
    scale, swept = (FULL, FULL_SWEEP) if full else (QUICK, QUICK)
    if settings == ASSUMED:
        return _assumed(batch, scale, swept)
    claims, figure = _implied(batch)
    if settings == IMPLIED:
        return _reproduction((_NOT_PUBLIC, spread_implied.ABOUT), claims, [figure])
    return implied.beside(_assumed(batch, scale, swept), spread_implied.ABOUT, claims, [figure])


def _reproduction(about: tuple[str, ...], claims: Sequence[Claim], made: Sequence[Figure]) -> outputs.Reproduction:
    return outputs.Reproduction(
        paper="spread",
        title="SPREAD: subpage-parallel reads of large-page flash (Park et al.)",
        about=about,
        claims=tuple(claims),
        figures=tuple(made),
    )


def _assumed(batch: Batch, scale: Scale, swept: Scale) -> outputs.Reproduction:
    batch.run(
        [
            *(run for runs in _main_runs(scale).values() for run in runs),
            *effects_runs(replace(scale, repeats=True), DEFAULT),
            *_fig_2_runs(scale),
            *_table_i_runs(),
            *(statistics_run(name) for name in WORKLOADS),
            *(run for unknown in UNKNOWNS for run in effects_runs(swept, unknown)),
            *spread_beyond.runs(batch, scale, swept),
        ]
    )
    measured = _measured(batch, scale)
    sweep = _sweep(batch, swept)
    table, fig_2 = table_i(batch), _fig_2(batch, scale)
    shrunk = f"{scale.blocks} blocks a chip, the paper has 512; {scale.requests:,} requests, 32 in flight."
    beyond = spread_beyond.figures_of(batch, scale, swept)
    names = [name for figure in beyond if figure.id == "traces" for name in figure.data["trace"].unique().sort()]
    return _reproduction(
        _about(scale, names),
        _claims(batch, scale, measured, sweep, table, fig_2),
        [
            table,
            table_ii(batch),
            fig_1(),
            fig_2,
            *_fig_6(measured, shrunk),
            _collections(measured, shrunk),
            _sweep_figure(
                sweep,
                f"{SYNTHETIC} Each bar but the last two changes one thing of the first. {swept.requests:,} requests.",
            ),
            _overhead(sweep),
            *beyond,
        ],
    )
