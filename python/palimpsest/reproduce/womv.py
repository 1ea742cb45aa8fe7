"""The WOM-v paper: Jaffer et al., "Improving the Reliability of Next Generation SSDs using WOM-v Codes" (FAST 2022).

Its abstract and the bounds of its codes, on synthetic workloads: the paper's text was not at hand.
"""

from itertools import product
from typing import Any

import polars as pl

from . import figures, outputs, sweeps_old as sweeps
from .batch import Batch
from .claims import Claim, amount, within
from .figures import Figure
from .measures import seeds_note, with_spread
from .womv_runs import (
    ABSTRACT,
    CODES,
    FULL,
    QUICK,
    SEEDS,
    UNKNOWNS,
    WORKLOADS,
    Code,
    Scale,
    erases_per_byte,
    lazy_writes,
    ratios,
    sweep_runs,
)

__all__ = ["erases_figure", "reproduce"]

SYNTHETIC = "Synthetic workloads."
_SEEDS_NOTE = f"Means of {len(SEEDS)} seeds; whiskers from the least to the greatest."
_ECC = (0.003, 0.01)
"""Shares of cells that the note on the encoding lets error correction make good."""


def _measured(batch: Batch, scale: Scale) -> pl.DataFrame:
    """A row for each workload, code and seed."""
    rows: list[dict[str, Any]] = []
    for workload, seed in product(WORKLOADS, SEEDS):
        base = batch[scale.counted(None, workload, seed=seed)]
        for code in (None, *CODES):
            result = batch[scale.counted(code, workload, seed=seed)]
            rows.append({
                "workload": workload,
                "code": "none" if code is None else code.label,
                "seed": seed,
                "bound": 1.0 if code is None else code.bound,
                "ratio": erases_per_byte(result) / erases_per_byte(base),
                "write_amplification": result["write_amplification"],
            })  # fmt: skip
    return pl.DataFrame(rows)


def erases_figure(measured: pl.DataFrame, scale: Scale) -> Figure:
    """Erases by workload and code over the uncoded drive's, with the bounds.

    Args:
        measured: a row for each workload, code and seed: `workload`, `code`, `seed`, `bound`, `ratio`,
            `write_amplification`.
        scale: of the runs.
    """
    coded = measured.filter(pl.col("code") != "none").drop("seed")
    data = with_spread(coded.drop("bound"), ("workload", "code"))
    bounds = coded.select("code", "bound").unique(maintain_order=True)
    data = data.join(bounds, on="code", maintain_order="left")
    title = "Erases, equal coded over-provisioning"
    draw = figures.bars("workload", "code", "ratio", "uncoded drive = 1", paper=("bound",), line="bound")
    note = (
        f"{SYNTHETIC} 28 % of the coded space is spare; {scale.blocks} blocks. {_SEEDS_NOTE} Marks: the bound "
        "N / (k t), which holds exactly where write amplification is the same with a code and without. A ratio below "
        "it means less amplification with a code: its blocks hold fewer subpages, and uncoded blocks as small amplify "
        "as little."
    )
    return Figure("erases", title, note, data, figures.panels(data, [(title, draw)]))


def _amplification(measured: pl.DataFrame) -> Figure:
    data = with_spread(measured.select("workload", "code", "write_amplification"), ("workload", "code"))
    title = "Write amplification, equal coded over-provisioning"
    draw = figures.bars("workload", "code", "write_amplification", "")
    note = f"{SYNTHETIC} {_SEEDS_NOTE} What moves each ratio of erases off its bound."
    return Figure("amplification", title, note, data, figures.panels(data, [(title, draw)]))


def _cost(batch: Batch, scale: Scale) -> Figure:
    rows: list[dict[str, Any]] = []
    for code, seed in product((None, *CODES), SEEDS):
        reads = batch[scale.timed(code, seed)]["latency_ns"]["read"]
        for what, name in (("mean", "mean"), ("99th percentile", "p99")):
            rows.append({"code": "none" if code is None else code.label, "of reads": what, "us": reads[name] / 1000})
    data = with_spread(pl.DataFrame(rows), ("code", "of reads"))
    title = "Response time of reads of 4 KiB"
    draw = figures.bars("code", "of reads", "us", "us", log=True)
    note = (
        f"{SYNTHETIC} 4 KiB at random, 30 % writes, 250 requests/s on one die. {_SEEDS_NOTE} A read senses a whole "
        "word line, four times tR, and so does collection. Writes end in the buffer. The abstract says "
        '"with minimal performance overheads" and gives no number; time of encoding and decoding is not counted.'
    )
    return Figure("cost", title, note, data, figures.panels(data, [(title, draw)]))


def _sweep_figure(sweep: pl.DataFrame, scale: Scale) -> Figure:
    draws = [
        (
            f"{code.label}: erases",
            figures.levels("label", code.setting, round(code.bound, 3), "uncoded drive = 1", "bound"),
        )
        for code in CODES
    ]
    note = (
        f"{SYNTHETIC} {scale.blocks} blocks, uniform writes, one seed. With the same data on the same flash the "
        f"uncoded drive has 71 % to 412 % of spare space instead of 28 %, and collects with few moves: what a code "
        f"gains is less than its bound then."
    )
    svg = figures.panels(sweep, draws, width=10, height=4.2)
    return Figure("sweep", "What the abstract does not say, one thing changed at a time", note, sweep, svg)


def _traces_figure(batch: Batch, scale: Scale) -> Figure | None:
    rows: list[dict[str, Any]] = []
    for name, path in batch.trace_files().items():
        base = batch[scale.trace(None, str(path))]
        for code in CODES:
            result = batch[scale.trace(code, str(path))]
            erased = base["flash"]["erases"] and result["flash"]["erases"]
            rows.append({
                "trace": name,
                "code": code.label,
                "erases": result["flash"]["erases"],
                "fewer": erases_per_byte(base) / erases_per_byte(result) if erased else None,
                "bound": 1 / code.bound,
            })  # fmt: skip
    if not rows:
        return None
    data = pl.DataFrame(rows, schema_overrides={"fewer": pl.Float64})
    title = "Extra: real traces, fewer erases"
    draw = figures.slanted(figures.bars("trace", "code", "fewer", "times", paper=("bound",), line="k t / N"))
    note = (
        "Real traces, folded into drives with as much coded over-provisioning. Marks: k t / N. No bar where nothing is "
        "erased."
    )
    return Figure("traces", title, note, data, figures.panels(data, [(title, draw)]))


def _erases_claim(code: Code, measured: pl.DataFrame) -> Claim:
    rows = measured.filter((pl.col("workload") == "uniform") & (pl.col("code") == code.label))
    found: list[dict[str, float | None]] = [{"ratio": ratio} for ratio in rows["ratio"]]
    name = f"erases_{code.stored}_4"
    text = f"erases, {code.label} over the uncoded drive, uniform writes, equal coded over-provisioning: N / (k t)"
    ours = sum(rows["ratio"]) / len(found)
    return amount(name, text, round(code.bound, 4), ours, "times").with_note(seeds_note(found, "ratio"))


def _abstract_claim(measured: pl.DataFrame) -> Claim:
    """The abstract's range, and why codes of fixed generations cannot reach it."""
    best = measured.filter(pl.col("code") != "none").with_columns(fewer=1 / pl.col("ratio"))
    by_workload = best.group_by("workload", "code", maintain_order=True).agg(pl.col("fewer").mean())
    row = by_workload.sort("fewer", descending=True).row(0, named=True)
    low, high = ABSTRACT
    text = (
        "times fewer erases, real workloads, with the paper's two optimizations; here the best code and synthetic "
        "workload, without them"
    )
    claim = within("fewer_erases", text, low, high, row["fewer"], "times", f"{low} to {high}")
    most = max(1 / code.bound for code in CODES)
    writes = [lazy_writes(CODES[-1], share) for share in _ECC]
    return claim.with_note(
        f"{row['code']}, {row['workload']}. A block takes t k / N times its data between two erases, {most:.2f} at "
        "most: more takes less write amplification than the uncoded drive has, or more generations. The abstract has "
        'both, "an efficient garbage collection mechanism and an encoding optimization", and does not say what they '
        "are. Were cells that mean their value already left as they are, random data could be written "
        f"{writes[0]} to {writes[1]} times in {CODES[-1].label} instead of {CODES[-1].generations} if error correction "
        f"makes {_ECC[0]:.1%} to {_ECC[1]:.0%} of the cells good: {writes[0] / 4:.1f} to {writes[1] / 4:.1f} times. "
        "That is not built."
    )


def reproduce(batch: Batch, *, full: bool = False) -> outputs.Reproduction:
    """Runs everything and draws it."""
    scale = FULL if full else QUICK
    batch.run([
        *(scale.counted(code, name, seed=seed) for seed in SEEDS for name in WORKLOADS for code in (None, *CODES)),
        *(scale.timed(code, seed) for seed in SEEDS for code in (None, *CODES)),
        *sweep_runs(QUICK),
        *(scale.trace(code, str(path)) for path in batch.trace_files().values() for code in (None, *CODES)),
    ])  # fmt: skip
    measured = _measured(batch, scale)
    sweep = sweeps.points(UNKNOWNS, lambda unknown: ratios(batch, QUICK, unknown), [code.setting for code in CODES])
    made = [erases_figure(measured, scale), _amplification(measured), _cost(batch, scale), _sweep_figure(sweep, QUICK)]
    extra = _traces_figure(batch, scale)
    found = batch.trace_files()
    return outputs.Reproduction(
        paper="womv",
        title="WOM-v: improving the reliability of next generation SSDs using WOM-v codes (Jaffer et al.)",
        about=(
            "The text of the paper was not at hand, only its abstract: drive, workloads, optimizations and figures of "
            "the paper are not known. The bounds follow from the codes; the workloads are synthetic.",
            f"Drive womv-16g with one plane of {scale.blocks} blocks, full, and the same flash under subpage without a "
            f"code. Each run writes as many bytes, so that blocks live through several lives under every code; a third "
            f"is not measured.",
            f"Real traces: {', '.join(found)}." if found else "No folder of real traces was given (--traces DIR).",
        ),
        claims=(*(_erases_claim(code, measured) for code in CODES), _abstract_claim(measured)),
        figures=(*made, *([extra] if extra else [])),
    )
