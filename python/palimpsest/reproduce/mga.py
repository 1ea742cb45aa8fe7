"""The MGA paper: Feng et al., "Mapping Granularity Adaptive FTL Based on Flash Page Re-programming" (DATE 2017).

Table II, Fig. 7 to 11 and the numbers of Sec. IV, on synthetic workloads with the statistics of Table II.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import polars as pl

from ..options import RunOptions
from . import figures, implied, mga_implied, outputs, sweeps_old as sweeps
from .batch import Batch
from .claims import ASSUMED, BOTH, IMPLIED, TOLERANCE, Claim, at_most, effect, more_than
from .figures import Figure
from .measures import change, over_seeds, response_ns, seeds_note, with_spread
from .mga_runs import (
    EFFECTS,
    FULL,
    FULL_SWEEP,
    PAGES,
    QUICK,
    SEEDS,
    TABLE_II,
    THRESHOLDS,
    UNKNOWNS,
    WORKLOADS,
    Scale,
    all_effects,
    effects,
    effects_runs,
    needed,
)

__all__ = ["PAPER", "judged", "judged_all", "reason", "reproduce", "statistics_run", "table_ii"]

LAYERS = ("page", "sector-log", "mga")
SYNTHETIC = "Synthetic workloads with the statistics of the paper's."
_TABLE_DRIVE = "ssd.blocks_per_plane=512"
_Rows = list[dict[str, Any]]


def statistics_run(workload: str) -> RunOptions:
    """The run that counts what a workload preset generates."""
    # As many requests as the preset has, on a drive that takes them without collection.
    return RunOptions(
        ssd="mga-16k", ftl="page", workload=workload, overrides=(_TABLE_DRIVE,), precondition="none", fidelity="count"
    )


def _run(scale: Scale, seed: int, ftl: str, workload: str, page: int, threshold: str = THRESHOLDS[1]) -> RunOptions:
    changed = () if threshold == THRESHOLDS[1] else (f"ftl.allocation_threshold={threshold}",)
    return scale.options(ftl, workload, page, "", *changed, seed=seed)


def _prefixes(scale: Scale, ftl: str, page: int) -> list[RunOptions]:
    """The first requests of trade, one more each time: differences are what each one transfers."""
    whole = QUICK.options(ftl, "trade", page)
    return [replace(whole, requests=count, fidelity="count") for count in range(1, scale.first + 1)]


def _traces(batch: Batch, scale: Scale) -> dict[str, dict[str, RunOptions]]:
    made: dict[str, dict[str, RunOptions]] = {}
    for name, path in batch.trace_files().items():
        runs = {ftl: scale.options(ftl, "trade", 16, "", "host.fold=true") for ftl in LAYERS}
        made[name] = {
            ftl: replace(run, workload=str(path), requests=scale.trace_requests, skip_bad=True, volumes="overlaid")
            for ftl, run in runs.items()
        }
    return made


def _all_runs(batch: Batch, scale: Scale) -> Iterator[RunOptions]:
    for seed in SEEDS:
        yield from (_run(scale, seed, *run) for run in needed())
        yield from (_run(scale, seed, "subpage", name, page) for name in WORKLOADS for page in PAGES)
        yield from (_run(scale, seed, "mga", name, 16, threshold) for name in WORKLOADS for threshold in THRESHOLDS)
    yield from (statistics_run(name) for name in WORKLOADS)
    for ftl, page in _FIG_8:
        yield from _prefixes(scale, ftl, page)
    for runs in _traces(batch, scale).values():
        yield from runs.values()


def table_ii(batch: Batch) -> Figure:
    """Mean sizes and mix of the synthetic workloads beside the paper's."""
    rows: _Rows = []
    for name, (read, write, reads) in TABLE_II.items():
        result = batch[statistics_run(name)]
        requests, host = result["requests"], result["host"]
        ours = (
            host["bytes_read"] / requests["read"] / 4096,
            host["bytes_written"] / requests["write"] / 4096,
            100 * requests["read"] / (requests["read"] + requests["write"]),
        )
        for what, paper, own in zip(
            ("mean read", "mean write", "share of reads"), (read, write, reads), ours, strict=True
        ):
            unit = "%" if what.startswith("share") else "4 KiB"
            off = 100 * (own / paper - 1)
            rows.append({"workload": name, "what": what, "unit": unit, "paper": paper, "ours": own, "off_percent": off})
    data = pl.DataFrame(rows)
    svg = figures.panels(data, [("Measured less Table II", figures.bars("workload", "what", "off_percent", "%"))])
    note = f"{SYNTHETIC} Measured over the 200,000 requests of each preset; a test holds them within 2 % of the table."
    return Figure("table2", "Table II: statistics of the synthetic workloads and the paper's", note, data, svg)


def _measured(batch: Batch, scale: Scale) -> pl.DataFrame:
    rows: _Rows = []
    for ftl, workload, page, seed in product((*LAYERS, "subpage"), WORKLOADS, PAGES, SEEDS):
        result = batch[_run(scale, seed, ftl, workload, page)]
        rows.append(
            {
                "workload": workload,
                "ftl": ftl,
                "page_kib": page,
                "mean_us": response_ns(result) / 1000,
                "p50_us": result["latency_ns"]["all"]["p50"] / 1000,
                "p99_us": result["latency_ns"]["all"]["p99"] / 1000,
                "erases": result["flash"]["erases"],
                "write_amplification": result["write_amplification"],
                "subpages_transferred": result["host"]["subpages_transferred"],
                "merges": result["merge"]["count"],
                "map_bytes": result["mapping"]["bytes_peak"],
            }
        )
    return with_spread(pl.DataFrame(rows), ("workload", "ftl", "page_kib"))


_MARKS = {
    ("mean_us", "trade", 8): "response_trade",
    ("mean_us", "trade", 16): "response_trade",
    ("mean_us", "synth-a", 8): "response_synth_a",
    ("mean_us", "synth-a", 16): "response_synth_a",
    ("erases", "trade", 16): "erases_trade",
    ("write_amplification", "trade", 8): "wa_trade_8k",
    ("write_amplification", "trade", 16): "wa_trade_16k",
}
"""What the paper says of a column for a workload and page size in KiB: the claim with its change from page to mga."""


def _by_page(measured: pl.DataFrame, name: str, title: str, column: str, label: str, note: str) -> list[Figure]:
    """A figure for each size of pages: a group for each workload, a bar for each layer."""
    made = []
    for letter, page in zip("ab", PAGES, strict=True):
        rows = measured.filter((pl.col("page_kib") == page) & (pl.col("ftl") != "subpage"))
        shown = (column, "p50_us", "p99_us") if column == "mean_us" else (column,)
        keep = [each + end for each in shown for end in ("", "_low", "_high")]
        base = dict(rows.filter(pl.col("ftl") == "page").select("workload", column).iter_rows())
        paper = [
            base[workload] * (1 + PAPER[claim] / 100)
            if ftl == "mga" and (claim := _MARKS.get((column, workload, page)))
            else None
            for workload, ftl in rows.select("workload", "ftl").iter_rows()
        ]
        marks = pl.Series("paper", paper, dtype=pl.Float64)
        data = rows.select("workload", "ftl", "page_kib", *keep).with_columns(marks)
        heading = f"{title}, {page} KiB pages"
        draw = figures.bars("workload", "ftl", column, label, log=column == "mean_us", paper=("paper",))
        svg = figures.panels(data, [(heading, draw)])
        suffix = letter if name.startswith("fig") else f"_{page}k"
        made.append(Figure(f"{name}{suffix}", heading, f"{SYNTHETIC} {note} {_SEEDS_NOTE} {_PAPER_NOTE}", data, svg))
    return made


_SEEDS_NOTE = f"Means of {len(SEEDS)} seeds; whiskers from the least to the greatest."
_PAPER_NOTE = "Marks: the change from page to mga that the paper states, from our page map."
_FIG_8 = (("page", 8), ("page", 16), ("sector-log", 16), ("mga", 8), ("mga", 16))


def _fig_8(batch: Batch, scale: Scale) -> Figure:
    rows: _Rows = []
    for ftl, page in _FIG_8:
        before = 0
        for number, options in enumerate(_prefixes(scale, ftl, page), start=1):
            total = batch[options]["host"]["subpages_transferred"]
            rows.append({"layer": f"{ftl}, {page} KiB", "request": number, "subpages": total - before})
            before = total
    data = pl.DataFrame(rows)
    draw = figures.lines("request", "layer", "subpages", "request of trade", "subpages transferred")
    title = "Fig. 8: subpages transferred between host and device, first requests of trade"
    note = f"{SYNTHETIC} The paper's sequence is not known, so the numbers of single requests are not comparable."
    return Figure("fig8", title, note, data, figures.panels(data, [(title, draw)]))


def _fig_10(batch: Batch, scale: Scale) -> Figure:
    rows: _Rows = []
    for name, seed in product(WORKLOADS, SEEDS):
        merge = batch[_run(scale, seed, "sector-log", name, 16)]["merge"]
        rows.append({"workload": name, "layer": "sector-log", **_merges(merge)})
        for threshold in THRESHOLDS:
            merge = batch[_run(scale, seed, "mga", name, 16, threshold)]["merge"]
            rows.append({"workload": name, "layer": f"mga, AT 0.{threshold[:2]}", **_merges(merge)})
    data = with_spread(pl.DataFrame(rows), ("workload", "layer"))
    draws = [
        ("Merges", figures.bars("workload", "layer", "merges", "merges")),
        ("Subpages moved by merges", figures.bars("workload", "layer", "moved_subpages", "subpages")),
    ]
    title = "Fig. 10: subpage merges, 16 KiB pages"
    note = f"{SYNTHETIC} {_SEEDS_NOTE} The paper: fewer than sector-log at each AT, and more the higher AT is."
    return Figure("fig10", title, note, data, figures.panels(data, draws, height=3.0))


def _merges(merge: dict[str, int]) -> dict[str, int]:
    return {"merges": merge["count"], "moved_subpages": merge["moved_subpages"]}


def _fig_11(measured: pl.DataFrame) -> Figure:
    base = measured.filter(pl.col("ftl") == "page").select("workload", "page_kib", base="map_bytes")
    spread = ("map_bytes", "map_bytes_low", "map_bytes_high")
    data = (
        measured.select("workload", "ftl", "page_kib", *spread)
        .join(base, on=["workload", "page_kib"], maintain_order="left")
        .with_columns((pl.col(each) / pl.col("base")).alias(each.replace("map_bytes", "to_page")) for each in spread)
        .drop("base")
        .with_columns(paper=pl.when(pl.col("ftl") == "mga").then(1 + PAPER["map_growth"] / 100))
    )

    def drawn(page: int) -> figures.Draw:
        draw = figures.bars("workload", "ftl", "to_page", "map bytes, page = 1", paper=("paper",))
        return lambda axes, rows: draw(axes, rows.filter(pl.col("page_kib") == page))

    svg = figures.panels(data, [(f"{page} KiB pages", drawn(page)) for page in PAGES], height=3.0)
    note = (
        f"{SYNTHETIC} Peak bytes, 8 an address. What mga needs grows with the share of logical pages written small. "
        f"{_SEEDS_NOTE} Marks: the paper's bound for mga, 1.165. That subpage is 3.X of mga says the same: 4 / 1.165."
    )
    return Figure("fig11", "Fig. 11: bytes of the mapping tables", note, data, svg)


def _sweep(batch: Batch, scale: Scale) -> pl.DataFrame:
    return sweeps.points(UNKNOWNS, lambda unknown: effects(batch, scale, unknown), EFFECTS)


PAPER = {
    "response_trade": -53.0,
    "response_synth_a": -72.0,
    "erases_trade": -40.0,
    "wa_trade_8k": -7.42,
    "wa_trade_16k": -30.83,
    "map_growth": 16.5,
}
"""The paper's numbers."""

_CLAIMS = {
    "response_trade": "mean response time, trade, mga against page (the better of 8 and 16 KiB pages)",
    "response_synth_a": "mean response time, synth-a, mga against page (the better of 8 and 16 KiB pages)",
    "erases_trade": "erases, trade, 16 KiB pages, mga against page",
    "wa_trade_8k": "write amplification, trade, 8 KiB pages, mga against page",
    "wa_trade_16k": "write amplification, trade, 16 KiB pages, mga against page",
}


def _sweep_figure(sweep: pl.DataFrame, note: str) -> Figure:
    draws = [(text, figures.levels("label", name, PAPER[name], "%")) for name, text in EFFECTS.items()]
    svg = figures.panels(sweep, draws, width=10, height=5.2)
    return Figure("sweep", "What the paper does not say, one thing changed at a time", note, sweep, svg)


def judged(name: str, ours: float | None) -> Claim:
    """The claim of this name, with the paper's number, the measured one, and the rule for both."""
    if name == "merges":
        return at_most(name, "subpages merged, trade, most of the three AT, mga against sector-log", 0, ours)
    if name == "merges_at":
        claim = "subpages merged, trade, mga, highest AT over lowest"
        return more_than(name, claim, 1, ours, "times", "more")
    if name == "hybrid_close":
        claim = f"sector-log's mean response time within {TOLERANCE:.0%} of mga's, share of workloads and page sizes"
        return more_than(name, claim, 50, ours, "%", "most")
    if name == "map_growth":
        return at_most(name, "map bytes, mga against page, largest of all workloads", 16.5, ours)
    return effect(name, _CLAIMS[name], PAPER[name], ours)


def reason(sweep: pl.DataFrame, name: str, number: str = ".1f") -> str:
    """Which unknown moves an effect most, and which value brings it nearest to the paper's, from the sweep."""
    return sweeps.reason(sweep, name, PAPER[name], lambda ours: judged(name, ours).agrees, number)


def judged_all(effects: dict[str, float | None]) -> list[Claim]:
    """All claims, from the effects of `mga_runs.all_effects`."""
    return [judged(name, effects[name]) for name in (*PAPER, "hybrid_close", "merges_at", "merges")]


def _over_seeds(found: list[dict[str, float | None]], what: str = "") -> list[Claim]:
    """The claims about the means over seeds, each with its spread as a note."""
    return [claim.with_note(f"{what}{seeds_note(found, claim.id)}") for claim in judged_all(over_seeds(found))]


def _implied(batch: Batch, scale: Scale, swept: Scale) -> tuple[list[Claim], Figure]:
    """The claims at the implied setting, and the figure of what is next to it."""
    batch.run(run for setting in mga_implied.BY_SEED for run in mga_implied.runs(scale, setting))
    batch.run(run for setting in mga_implied.NEIGHBOURS for run in mga_implied.runs(swept, setting))
    points = [
        (each.what, each.value, judged_all(mga_implied.effects(batch, swept, each))) for each in mga_implied.NEIGHBOURS
    ]
    note = f"{SYNTHETIC} {swept.blocks} blocks a plane with 16 KiB pages, {swept.requests:,} requests each."
    found = [mga_implied.effects(batch, scale, setting) for setting in mga_implied.BY_SEED]
    return _over_seeds(found, "Implied, "), implied.neighbours_figure(points, note, height=5.2)


def _explained(claim: Claim, sweep: pl.DataFrame, measured: pl.DataFrame) -> Claim:
    """The claim with the measured reason where it does not agree."""
    if claim.agrees or claim.id not in PAPER:
        return claim
    note = reason(sweep, claim.id)
    if claim.id == "map_growth":
        note = f"Here the largest of all workloads and pages; in the sweep, trade with 16 KiB pages. {note}"
    if claim.id.startswith("response"):
        workload = "trade" if claim.id == "response_trade" else "synth-a"
        rows = measured.filter((pl.col("workload") == workload) & (pl.col("page_kib") == 16))
        p50 = dict(rows.select("ftl", "p50_us").iter_rows())
        means = dict(rows.select("ftl", "mean_us").iter_rows())
        note += (
            f" With 16 KiB pages the median falls by {-(change(p50['mga'], p50['page']) or 0):.0f} %; the means "
            f"({means['page']:.0f} and {means['mga']:.0f} us) hold waits behind collection."
        )
    return claim.with_note(f"{claim.note} {note}".strip())


def _about(scale: Scale, traces: Sequence[str]) -> tuple[str, ...]:
    found = f"Real traces: {', '.join(traces)}." if traces else "No folder of real traces was given (--traces DIR)."
    return (
        "The paper's traces are not public: the workloads are synthetic, with the mean sizes and "
        "the mix of its Table II. Sizes around the mean, locality and arrivals are assumed, and swept.",
        f"Drives mga-8k and mga-16k with {scale.blocks * 2} and {scale.blocks} blocks a plane (the paper: 512) and "
        f"{scale.requests:,} requests: the drive is shrunk, its pages and blocks are not.",
        "Before each run 90 % of the host's space is written once in order. Collection starts at 20 % free blocks and "
        "stops at 40 %, so that a run begins with exclusive allocation and then passes the thresholds of 0.25 to "
        "0.35 again and again (Sec. IV-B.3); random overwriting in units of 4 KiB would have given every logical page "
        "a fine map before the run starts. Response times are means of all requests, waits behind collection included.",
        found,
    )


def _traces_figure(batch: Batch, scale: Scale) -> Figure | None:
    rows: _Rows = []
    for name, runs in _traces(batch, scale).items():
        results = {ftl: batch[options] for ftl, options in runs.items()}
        for ftl, result in results.items():
            if result["requests"]["write"]:
                row = {
                    "trace": name,
                    "ftl": ftl,
                    "mean_us": response_ns(result) / 1000,
                    "erases": result["flash"]["erases"],
                }
                row["write_amplification"] = result["write_amplification"]
                row["response_to_page"] = response_ns(result) / response_ns(results["page"])
                rows.append(row)
    if not rows:
        return None
    data = pl.DataFrame(rows)
    draws = [
        ("Mean response time, page = 1", figures.bars("trace", "ftl", "response_to_page", "ratio")),
        ("Write amplification", figures.bars("trace", "ftl", "write_amplification", "", log=True)),
    ]

    svg = figures.panels(data, [(title, figures.slanted(draw, 25, 7)) for title, draw in draws], height=4.2)
    note = "Not in the paper: real traces, folded into the drive, with their own arrival times, 16 KiB pages."
    return Figure("traces", "Extra: real traces", note, data, svg)


def reproduce(batch: Batch, *, full: bool = False, settings: str = BOTH) -> outputs.Reproduction:
    """Runs everything and draws it: under the assumed setting, the implied one, or both."""
    scale, swept = (FULL, FULL_SWEEP) if full else (QUICK, QUICK)
    if settings == ASSUMED:
        return _assumed(batch, scale, swept)
    claims, figure = _implied(batch, scale, swept)
    if settings == IMPLIED:
        return _reproduction((*_about(scale, ()), mga_implied.ABOUT), claims, [figure])
    return implied.beside(_assumed(batch, scale, swept), mga_implied.ABOUT, claims, [figure])


def _reproduction(about: tuple[str, ...], claims: Sequence[Claim], made: Sequence[Figure]) -> outputs.Reproduction:
    return outputs.Reproduction(
        paper="mga",
        title="MGA-FTL: mapping granularity adaptive FTL based on flash page re-programming (Feng et al.)",
        about=about,
        claims=tuple(claims),
        figures=tuple(made),
    )


def _assumed(batch: Batch, scale: Scale, swept: Scale) -> outputs.Reproduction:
    batch.run([*_all_runs(batch, scale), *(run for unknown in UNKNOWNS for run in effects_runs(swept, unknown))])
    measured = _measured(batch, scale)
    sweep = _sweep(batch, swept)
    shrunk = f"{scale.blocks} blocks a plane with 16 KiB pages, the paper has 512; {scale.requests:,} requests."
    made = [
        table_ii(batch),
        *_by_page(measured, "fig7", "Fig. 7: mean response time", "mean_us", "us", f"Logarithmic. {shrunk}"),
        _fig_8(batch, scale),
        *_by_page(measured, "fig9", "Fig. 9: erases", "erases", "erases", shrunk),
        _fig_10(batch, scale),
        _fig_11(measured),
        *_by_page(measured, "wa", "Write amplification", "write_amplification", "", shrunk),
        _sweep_figure(sweep, f"{SYNTHETIC} Each bar changes one thing of the first. {swept.requests:,} requests each."),
    ]
    traces = _traces_figure(batch, scale)
    if traces is not None:
        made.append(traces)
    names = [] if traces is None else traces.data["trace"].unique(maintain_order=True).to_list()
    found = [all_effects(lambda *run, seed=seed: batch[_run(scale, seed, *run)]) for seed in SEEDS]
    claims = [_explained(claim, sweep, measured) for claim in _over_seeds(found)]
    return _reproduction(_about(scale, names), claims, made)
