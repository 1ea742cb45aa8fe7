"""The WOM-v paper: Jaffer et al., "Improving the Reliability of Next Generation SSDs using WOM-v Codes" (FAST 2022).

Models the erases of the abstract and the bounds of the codes, on synthetic workloads. Ignores drive, workloads,
optimizations and figures of the paper, because only the abstract was at hand.
"""

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from ....result import Result
from ...claims import Claim
from ...measures import mean, seeds_note
from ...study import Point, Study

__all__ = ["claims", "effects", "erases_per_byte", "lazy_writes"]

_ECC = (0.003, 0.01)
"""Shares of cells that error correction restores, in the note on the encoding."""


def erases_per_byte(result: Mapping[str, Any] | Result) -> float:
    """Erases for each byte that the host wrote."""
    return float(result["flash"]["erases"]) / float(result["host"]["bytes_written"])


def effects(study: Study, point: Point) -> dict[str, float | None]:
    """Ratio of erases to the uncoded drive, for each code."""
    found: dict[str, float | None] = {}
    for code in study.names["codes"]:
        cell = {"code": code, "workload": "uniform", "seed": 1}
        base, own = (erases_per_byte(study.result("swept", point, **cell, coded=coded)) for coded in (False, True))
        found[code] = mean([own / base]) if base else None
    return found


def lazy_writes(stored: int, share: float) -> int:
    """Writes of random data until more than `share` of the cells would have to pass the highest level.

    A cell whose level already means the new value stays; other cells rise to the next level that means the new value:
    by 1 to 2^k - 1 levels, each as likely as staying. `stored` is k, the bits of a cell.
    """
    values, top = 2**stored, 15
    # At first a cell has level 0, and any of 0 to 2^k - 1 after the first write.
    levels = [1.0] + [0.0] * top
    for writes in range(1, 200):
        after = [0.0] * (top + 1)
        for level, chance in enumerate(levels):
            for step in range(values):
                if level + step <= top:
                    after[level + step] += chance / values
        levels = after
        if 1 - math.fsum(levels) > share:
            return writes - 1
    raise AssertionError("cells have fifteen levels")


def claims(study: Study) -> list[Claim]:
    """The bound of each code, and the range of the abstract."""
    made = []
    for code in study.names["codes"]:
        of = study.names["values"]["code"][code]
        rows = study.table("by_seed").filter((pl.col("workload") == "uniform") & (pl.col("code") == of["label"]))
        found: list[dict[str, float | None]] = [{"ratio": ratio} for ratio in rows["ratio"]]
        claim = study.claim(f"erases_{of['stored']}_4", sum(rows["ratio"]) / len(found), of="erases", **of)
        made.append(claim.with_note(seeds_note(found, "ratio")))
    return [*made, _abstract(study)]


def _abstract(study: Study) -> Claim:
    """The range of the abstract, with the reason why codes of fixed generations cannot reach the range."""
    best = study.table("by_seed").filter(pl.col("code") != "none").with_columns(fewer=1 / pl.col("ratio"))
    by_workload = best.group_by("workload", "code", maintain_order=True).agg(pl.col("fewer").mean())
    row = by_workload.sort("fewer", descending=True).row(0, named=True)
    codes = study.names["values"]["code"]
    most = max(1 / codes[code]["bound"] for code in study.names["codes"])
    last = codes[study.names["codes"][-1]]
    writes = [lazy_writes(last["stored"], share) for share in _ECC]
    note = study.text(study.data["notes"]["fewer_erases"], row=row, most=most, last=last, writes=writes, ecc=_ECC)
    return study.claim("fewer_erases", row["fewer"]).with_note(note)
