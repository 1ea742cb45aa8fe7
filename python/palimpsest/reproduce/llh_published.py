"""LLH by the rules of the FTL that its authors published (the paper's reference 1), beside that FTL.

The paper's text and that FTL differ: it compares the cheapest victim that there is with the last five, and only where
a block for hot data is wanted and no more than two blocks are clean; it takes clean blocks first while there are more,
lets the threshold rise to 112 blocks, opens a block before it cleans, and writes what overwrites data in a merge
buffer beside it. `AUTHORS` are erases of an independent build of it over those of its own two-stream baseline, with
its pages of 32 KiB, at a true over-provisioning of 28 %. Ignored: the last page of each block, in which it keeps the
block's logical page numbers (`LADDER` has it as 27 % of over-provisioning), and its classification of reads.
"""

from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean
from typing import Any

import polars as pl

from ..options import RunOptions
from . import figures
from .batch import Batch
from .claims import Claim, within
from .figures import Figure
from .llh_runs import FULL, Variant, erases

__all__ = ["AUTHORS", "claims", "figure", "ladder", "runs"]

AUTHORS = {
    ("0.9", "OP/2"): 1.34,
    ("0.95", "OP/2"): 0.93,
    ("1", "OP/2"): 0.85,
    ("0.9", "OP/4"): 1.02,
    ("0.95", "OP/4"): 0.96,
    ("1", "OP/4"): 0.86,
}
"""Erases over those of the baseline, by exponent of Zipf and initial threshold."""

WITHIN = 0.1
"""A ratio agrees when it is at most this share off."""

SEEDS = (1, 2, 3)
_EXPONENTS = ("0.9", "0.95", "1")
_PAGE = 32
_BEFORE = ("ftl.open_block=before",)
_BASELINE = (*_BEFORE, "ftl.absorb=false")
_RULE = (*_BASELINE, "ftl.threshold_rule=published", "ftl.threshold_cap=112 blocks")

LADDER = {
    "ours": Variant("hotcold", _PAGE),
    "a block is opened before cleaning": Variant("hotcold", _PAGE, overrides=_BEFORE),
    "and nothing is absorbed": Variant("hotcold", _PAGE, overrides=_BASELINE),
    "and a page of each block is a list": Variant("hotcold", _PAGE, 27, overrides=_BASELINE),
}
"""From our baseline to that of the authors, one difference after the other."""


def _seeds() -> str:
    return f"mean over {len(SEEDS)} seeds"


def _options(exponent: str, variant: Variant, seed: int) -> RunOptions:
    return replace(FULL.options(f"zipf-{exponent}", variant), seed=seed)


def runs() -> Iterator[RunOptions]:
    """All runs: the banks of the paper's 16 GB drive, one of 16, whatever the scale of the rest."""
    for seed in SEEDS:
        for exponent in _EXPONENTS:
            yield from (_options(exponent, variant, seed) for variant in LADDER.values())
            yield from (
                _options(exponent, Variant("llh", _PAGE, 28, threshold, _RULE), seed) for threshold in ("OP/2", "OP/4")
            )


def _ratios(batch: Batch, exponent: str, threshold: str) -> list[float]:
    own = Variant("llh", _PAGE, 28, threshold, _RULE)
    base = Variant("hotcold", _PAGE, overrides=_BASELINE)
    return [
        erases(batch[_options(exponent, own, seed)]) / erases(batch[_options(exponent, base, seed)]) for seed in SEEDS
    ]


def claims(batch: Batch) -> list[Claim]:
    """The six ratios of the authors' FTL beside ours under its rules."""
    made = []
    for (exponent, threshold), authors in AUTHORS.items():
        each = _ratios(batch, exponent, threshold)
        own = fmean(each)
        name = f"published_{exponent}_{threshold.removeprefix('OP/')}"
        text = (
            f"erases over the baseline, the authors' published FTL and its rules, Zipf {exponent}, OP 28 %, {threshold}"
        )
        note = f"{_seeds().capitalize()}; {min(each):.3f} to {max(each):.3f}."
        low, high = authors * (1 - WITHIN), authors * (1 + WITHIN)
        said = f"{authors:g}, within {100 * WITHIN:g} %"
        made.append(within(name, text, low, high, own, "times", said).with_note(note))
    return made


def figure(batch: Batch) -> Figure:
    """The same as bars, with each seed in the data."""
    rows: list[dict[str, Any]] = []
    for (exponent, threshold), authors in AUTHORS.items():
        each = _ratios(batch, exponent, threshold)
        row = {"workload": f"Zipf {exponent}, {threshold}"}
        rows.append(row | {"series": "authors' FTL", "ratio": authors, "least": None, "most": None})
        rows.append(row | {"series": "ours, its rules", "ratio": fmean(each), "least": min(each), "most": max(each)})
    data = pl.DataFrame(rows, schema_overrides={"least": pl.Float64(), "most": pl.Float64()})
    title = "Erases by the rules of the authors' published FTL"
    note = (
        "Over those of a baseline of two streams that cleans and buffers in the same way. 32 KiB pages, one bank of "
        f"the paper's 16 GB drive, filled and replayed once; the workloads are synthetic, as the paper's; {_seeds()}."
    )
    draw = figures.slanted(figures.bars("workload", "series", "ratio", "erases, baseline = 1"))
    return Figure("published", title, note, data, figures.panels(data, [(title, draw)], height=3.8))


def ladder(batch: Batch) -> Figure:
    """Why the baseline of the authors' FTL erases more than ours."""
    rows = []
    for exponent in _EXPONENTS:
        first = None
        for step, variant in LADDER.items():
            own = fmean(erases(batch[_options(exponent, variant, seed)]) for seed in SEEDS)
            first = first or own
            rows.append({"workload": f"Zipf {exponent}", "series": step, "erases": own, "ratio": own / first})
    data = pl.DataFrame(rows)
    title = "The baseline: ours, and what the authors' published FTL does otherwise"
    note = (
        "Opening before cleaning leaves one more block clean, and cleaning then finds the block for hot data that has "
        "just been closed, whose pages move to the block of cold data though they are about to be overwritten. A list "
        "of logical pages in the last page of each block is 27 % instead of 28 % of over-provisioning. The workloads "
        f"are synthetic, as the paper's; {_seeds()}."
    )
    draw = figures.bars("workload", "series", "ratio", "erases, ours = 1")
    return Figure("baseline", title, note, data, figures.panels(data, [(title, draw)], height=3.8))
