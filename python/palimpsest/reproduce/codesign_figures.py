"""Figures of the co-design paper, from runs of three seeds, with the paper's values in them.

What goes beyond the paper is in `codesign_beyond`, the setting that its numbers imply in `codesign_implied`.
"""

from dataclasses import replace
from typing import Any

import polars as pl

from ..options import RunOptions
from . import figures
from .batch import Batch
from .codesign_runs import (
    BY_CHANNEL,
    OWN,
    SCHEMES,
    SEEDS,
    STATIC,
    STATISTICS,
    UNEVEN,
    WORKLOADS,
    Scale,
    statistics_run,
)
from .figures import Figure
from .measures import change, iops, response_ns, with_spread

__all__ = [
    "LONG",
    "PAPER",
    "PAPER_THROUGHPUT",
    "SYNTHETIC",
    "fig_2",
    "headroom",
    "long_run",
    "main_run",
    "main_runs",
    "maps",
    "measure",
    "metadata",
    "responses",
    "round_robins",
    "statistics",
    "value",
]

SYNTHETIC = "Synthetic workloads with the statistics of the paper's."
BASELINES = ("page", "fs-page")
ROUND_ROBINS = (SCHEMES[0], BY_CHANNEL, STATIC)
LONG = 4
"""How many times as long the runs are in which metadata is counted."""
ENDS = ("least", "most")
MARKS = ("paper_least", "paper_most")
MARKS_NOTE = "Marks: the least and the most gain of four workloads that the paper states of a scheme."
SEEDS_NOTE = f"Means of {len(SEEDS)} seeds; whiskers from the least to the greatest."
_Rows = list[dict[str, Any]]

PAPER = {
    "fairness_least": -7.0,
    "fairness_most": -23.1,
    "read-busy_least": -7.4,
    "read-busy_most": -17.2,
    "depth_least": -7.8,
    "depth_most": -15.5,
    "hybrid_least": -14.4,
    "hybrid_most": -24.4,
}
"""Sec. IV: mean response time over round robin."""
PAPER_THROUGHPUT = {
    "fairness_least": 7.5,
    "fairness_most": 30.1,
    "read-busy_least": 8.0,
    "read-busy_most": 20.7,
    "depth_least": 8.4,
    "depth_most": 18.4,
    "hybrid_least": 16.8,
    "hybrid_most": 32.3,
}
"""Sec. IV: throughput over round robin; each is 1 / (1 + the change of response time) - 1 to 0.1."""


def main_run(scale: Scale, scheme: str, workload: str, seed: int = SEEDS[0]) -> RunOptions:
    """The run of a workload on a scheme, a meaning of round robin, or a page map below or without the file system."""
    run = scale.options if scheme in BASELINES else scale.scheme
    # How busy dies and channels were is in the series.
    return replace(run(scheme, workload, seed=seed), series=scheme in ROUND_ROBINS)


def main_runs(scale: Scale) -> dict[tuple[str, str, int], RunOptions]:
    """By scheme, workload and seed."""
    schemes = (*SCHEMES, OWN, BY_CHANNEL, STATIC)
    made = [(scheme, name) for name in WORKLOADS for scheme in schemes]
    made += [(layer, name) for name in WORKLOADS for layer in BASELINES]
    return {(*key, seed): main_run(scale, *key, seed) for key in made for seed in SEEDS}


def long_run(scale: Scale, workload: str) -> RunOptions:
    """For seconds, so that commits come."""
    return replace(scale, requests=LONG * scale.requests).scheme(SCHEMES[0], workload)


def statistics(batch: Batch) -> Figure:
    """Read ratio and mean request of the synthetic workloads beside the paper's."""
    rows: _Rows = []
    for name, paper in STATISTICS.items():
        result = batch[statistics_run(name)]
        requests, host = result["requests"], result["host"]
        total = requests["read"] + requests["write"]
        own = (100 * requests["read"] / total, (host["bytes_read"] + host["bytes_written"]) / total / 1024)
        for what, unit, of, ours in zip(("reads", "mean request"), ("%", "KiB"), paper, own, strict=True):
            off = 100 * (ours / of - 1)
            rows.append({"workload": name, "what": what, "unit": unit, "paper": of, "ours": ours, "off_percent": off})
    data = pl.DataFrame(rows)
    draw = figures.bars("workload", "what", "ours", "% or KiB", paper=("paper",))
    note = f"{SYNTHETIC} Measured over the 200,000 requests of each preset; a test holds them within 2 % of the paper."
    svg = figures.panels(data, [("Share of reads, and mean request", draw)])
    return Figure("statistics", "Sec. IV: statistics of the synthetic workloads and the paper's", note, data, svg)


def measure(batch: Batch, scale: Scale) -> pl.DataFrame:
    """A row for each workload and scheme: means over seeds, the least as `_low` and the greatest as `_high`."""
    rows: _Rows = []
    for (scheme, workload, seed), options in main_runs(scale).items():
        result, base = batch[options], batch[main_run(scale, SCHEMES[0], workload, seed)]
        stats, latency = result["ftl_stats"], result["latency_ns"]
        own = {
            "response_us": response_ns(result) / 1000,
            "read_us": latency["read"]["mean"] / 1000,
            "write_us": latency["write"]["mean"] / 1000,
            "iops": iops(result),
            "response_change_percent": change(response_ns(result), response_ns(base)),
            "throughput_change_percent": change(iops(result), iops(base)),
            "map_bytes": result["mapping"]["bytes"],
            "groups": stats.get("fs_command_groups"),
            "page_state_bytes": stats.get("fs_page_state_bytes"),
            "files": stats.get("imbalance_files"),
            "uneven_percent": _percent(stats.get("imbalance_uneven")),
            "above_1_percent": _percent(stats.get("imbalance_above_1")),
        }
        rows.append({"workload": workload, "scheme": scheme} | own)
    return with_spread(pl.DataFrame(rows, infer_schema_length=None), ("workload", "scheme"))


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def value(measured: pl.DataFrame, scheme: str, workload: str, column: str) -> float:
    """One number of `measure`."""
    row = measured.row(by_predicate=(pl.col("scheme") == scheme) & (pl.col("workload") == workload), named=True)
    return float(row[column])


def fig_2(batch: Batch, scale: Scale) -> Figure:
    """How unevenly files lie over the channels at the end of a run."""
    rows: _Rows = []
    for workload, (uneven, above) in UNEVEN.items():
        for scheme in SCHEMES[:2]:
            stats = batch[main_run(scale, scheme, workload)]["ftl_stats"]
            before = 0.0
            for name, share in stats.items():
                if name.startswith("imbalance_cdf_"):
                    row = {"workload": workload, "scheme": scheme, "rate": float(name.removeprefix("imbalance_cdf_"))}
                    rows.append(row | {"pdf_percent": 100 * (share - before), "cdf_percent": 100 * share})
                    before = share
        row = {"workload": workload, "scheme": "rr, paper", "pdf_percent": None}
        rows += [row | {"rate": 0.0, "cdf_percent": 100 - uneven}, row | {"rate": 1.0, "cdf_percent": 100 - above}]
    data = pl.DataFrame(rows, infer_schema_length=None).with_columns(line=pl.col("workload") + ", " + pl.col("scheme"))
    own = data.filter(pl.col("pdf_percent").is_not_null()).with_columns(upto=pl.col("rate").cast(pl.String))
    between = figures.bars("upto", "line", "pdf_percent", "%")
    draws: list[tuple[str, figures.Draw]] = [
        ("Files with a rate of at most", figures.lines("rate", "line", "cdf_percent", "imbalance rate", "%")),
        ("Files between this rate and the one before", lambda axes, _: between(axes, own)),
    ]
    note = (
        f"{SYNTHETIC} At the end of the run; the sizes of files in the presets are chosen such that the two shares "
        "that the paper states (at rates of 0 and 1) come out under round robin."
    )
    return Figure("fig2", "Fig. 2: imbalance rate of files", note, data, figures.panels(data, draws, height=3.0))


def _of(measured: pl.DataFrame, schemes: tuple[str, ...], *columns: str) -> pl.DataFrame:
    kept = [name for column in columns for name in (column, f"{column}_low", f"{column}_high")]
    return measured.filter(pl.col("scheme").is_in(schemes)).select("workload", "scheme", *kept)


def _ends(data: pl.DataFrame, paper: dict[str, float]) -> pl.DataFrame:
    """The same with the paper's least and most of each scheme."""
    return data.with_columns(
        pl.col("scheme")
        .replace_strict({scheme: paper[f"{scheme}_{which}"] for scheme in SCHEMES[1:]}, default=None)
        .alias(f"paper_{which}")
        for which in ENDS
    )


def responses(measured: pl.DataFrame, note: str) -> list[Figure]:
    """Fig. 6 to 8: mean response times and throughput."""
    fig_6 = _of(measured, (*BASELINES, SCHEMES[0]), "response_us", "read_us", "write_us")
    similar = fig_6.filter(pl.col("scheme") == "page").select("workload", paper="response_us")
    fig_6 = fig_6.join(similar, on="workload", maintain_order="left").with_columns(
        paper=pl.when(pl.col("scheme") == SCHEMES[0]).then(pl.col("paper"))
    )
    fig_7 = _of(measured, (*SCHEMES, OWN), "response_us", "read_us", "write_us", "response_change_percent")
    fig_8 = _of(measured, (*SCHEMES, OWN), "iops", "throughput_change_percent")
    own = f" {OWN} is not in the paper. {MARKS_NOTE}"
    made = [
        ("fig6", "Fig. 6: page map and co-design, mean response time", fig_6, "response_us", "us", ("paper",)),
        (
            "fig7",
            "Fig. 7: mean response time by scheme",
            _ends(fig_7, PAPER),
            "response_change_percent",
            "%, rr = 0",
            MARKS,
        ),
        (
            "fig8",
            "Fig. 8: throughput by scheme",
            _ends(fig_8, PAPER_THROUGHPUT),
            "throughput_change_percent",
            "%, rr = 0",
            MARKS,
        ),
    ]
    figures_made = []
    for name, title, data, column, label, marks in made:
        drawn = data if name == "fig6" else data.filter(pl.col("scheme") != SCHEMES[0])
        svg = figures.panels(drawn, [("", figures.bars("workload", "scheme", column, label, paper=marks))])
        more = " Marks: similar to the page map, as the paper says." if name == "fig6" else own
        figures_made.append(Figure(name, title, f"{SYNTHETIC} {note} {SEEDS_NOTE}{more}", data, svg))
    return figures_made


def round_robins(measured: pl.DataFrame) -> Figure:
    """The schemes against each meaning of round robin."""
    rows: _Rows = []
    for name in WORKLOADS:
        for base in (SCHEMES[0], BY_CHANNEL, STATIC):
            of = value(measured, base, name, "response_us")
            for scheme in (*SCHEMES[1:], OWN):
                ours = change(value(measured, scheme, name, "response_us"), of)
                row = {"workload": name, "base": base, "scheme": scheme, "change_percent": ours}
                rows.append(row | {f"paper_{which}": PAPER.get(f"{scheme}_{which}") for which in ENDS})
    data = pl.DataFrame(rows, infer_schema_length=None)
    draw = figures.bars("workload", "scheme", "change_percent", "%", paper=MARKS)

    def against(base: str) -> figures.Draw:
        return lambda axes, rows: draw(axes, rows.filter(pl.col("base") == base))

    draws = [
        ("Against pages in turn, as they come", against(SCHEMES[0])),
        ("Against channels by address", against(BY_CHANNEL)),
        ("Against channels and planes by address", against(STATIC)),
    ]
    note = (
        f"{SYNTHETIC} The paper compares with round robin and does not say which. Its Fig. 1 gives requests the byte "
        "offset at which they start on the disk, it cites work in which round robin is a static allocation, and it "
        "holds its schemes against static allocation: all of that means page n of the disk on channel n mod 8. Where "
        "the address names the channel only, and a channel's planes take turns, the drive is about as fast as with "
        "pages in turn. Where it names the plane too, the pages of two planes that wait together are seldom at the "
        "same place of their blocks, so that there are few plane commands: that, not channels, is what the third panel "
        f"shows; the sweep has it without plane commands. {MARKS_NOTE}"
    )
    svg = figures.panels(data, draws, height=3.0)
    return Figure("round_robin", "Three meanings of round robin: mean response time", note, data, svg)


def headroom(batch: Batch, scale: Scale) -> tuple[Figure, dict[tuple[str, str], float]]:
    """What a scheme that removes no work can gain at most over each meaning of round robin, by base and workload.

    With a fixed number of requests in flight, mean response time falls by at most 1 - rho, where rho is the share of
    the time that dies, or channels if these are busier, work under the baseline: then they work all the time.
    """
    rows: _Rows = []
    bounds: dict[tuple[str, str], float] = {}
    for name in WORKLOADS:
        for base in ROUND_ROBINS:
            shares: dict[str, float] = {}
            for seed in SEEDS:
                busy = batch[main_run(scale, base, name, seed)].to_polars("utilization")
                for kind, mean in busy.group_by("kind").agg(pl.col("busy").mean()).iter_rows():
                    shares[kind] = shares.get(kind, 0.0) + mean / len(SEEDS)
            bounds[base, name] = 100 * (max(shares.values()) - 1)
            row = {"workload": name, "base": base, "dies_percent": 100 * shares["dies"]}
            rows.append(row | {"channels_percent": 100 * shares["channels"], "bound_percent": bounds[base, name]})
    data = pl.DataFrame(rows)
    draws = [
        ("Share of the time that dies work, mean of all", figures.bars("workload", "base", "dies_percent", "%")),
        ("Most that mean response time can change", figures.bars("workload", "base", "bound_percent", "%")),
    ]
    note = (
        f"{SYNTHETIC} A scheme that removes no work cannot keep dies, or channels where these are busier, more than "
        "always at work: with a fixed number in flight response time changes by -(1 - rho) at most. The paper's least "
        f"and most of hybrid are {PAPER['hybrid_least']} and {PAPER['hybrid_most']} %. depth does remove work, where "
        "planes share a command."
    )
    made = Figure(
        "headroom", "What channels that wait leave to gain", note, data, figures.panels(data, draws, height=3.0)
    )
    return made, bounds


def maps(measured: pl.DataFrame, note: str) -> Figure:
    """Bytes of the drive's map, and what the file system keeps instead."""
    data = _of(measured, (*BASELINES, SCHEMES[0]), "map_bytes", "page_state_bytes", "groups")
    base = data.filter(pl.col("scheme") == "fs-page").select("workload", paper=pl.col("map_bytes") / 256)
    data = data.join(base, on="workload", maintain_order="left").with_columns(
        paper=pl.when(pl.col("scheme") == SCHEMES[0]).then(pl.col("paper"))
    )
    draw = figures.bars("workload", "scheme", "map_bytes", "bytes", log=True, paper=("paper",))
    draws = [("Bytes of the map in the drive", draw)]
    text = (
        f"{SYNTHETIC} {note} The map that the drive saves is kept by the file system instead: pointers of 4 bytes "
        "a page in inodes and indirect pages, written with each commit, and two bits a page in the host's memory. "
        "Marks: the paper's 1/256 of a page map."
    )
    return Figure("maps", "Sec. III-A: maps", text, data, figures.panels(data, draws, height=3.0))


def metadata(batch: Batch, scale: Scale) -> Figure:
    """Pages of metadata among all that are programmed, in longer runs."""
    rows: _Rows = []
    for name in WORKLOADS:
        result = batch[long_run(scale, name)]
        programs = {cause: counts["programs"] for cause, counts in result["flash"]["by_cause"].items()}
        row = {"workload": name, "seconds": result["simulated_ns"] / 1e9}
        row |= {"commits": result["ftl_stats"]["fs_commits"], "what": "metadata"}
        row |= {cause: programs[cause] for cause in ("host", "gc", "metadata")}
        row |= {"percent": 100 * programs["metadata"] / sum(programs.values())}
        rows.append(row | {"paper": 1.0})
    data = pl.DataFrame(rows)
    svg = figures.panels(
        data,
        [("Pages of metadata, of all programmed", figures.bars("workload", "what", "percent", "%", paper=("paper",)))],
    )
    note = (
        f"{SYNTHETIC} rr, {LONG * scale.requests:,} requests, so that commits come: every 5 s, after 65,536 pages, or "
        "when collection needs the blocks that it cleaned. They are in all totals and in write amplification. "
        "Marks: the paper's 'negligible', read as 1 %."
    )
    return Figure("metadata", "Sec. IV: pages of metadata", note, data, svg)
