"""The MGA paper: Feng et al., "Mapping Granularity Adaptive FTL Based on Flash Page Re-programming" (DATE 2017).

Models Table II, Fig. 7 to 11 and the numbers of Sec. IV, on synthetic workloads with the statistics of Table II. The
paper fixes blocks of 128 pages, planes of 512 blocks, pages of 8 and 16 KiB and subpages of 4 KiB. Ignores the traces,
because they are not public.

The implied setting. The paper's write amplifications fix the alignment: -7.42 % is 0.47 more subpages a write with
pages of 8 KiB, and -30.83 % is 2.63 with 16 KiB, where starts at any multiple of 4 KiB give 1.0 and 3.0. So half of
the writes have odd sizes, and requests start at multiples of 8 KiB, as database pages do. The bound on map bytes, 16.5
%, needs a footprint of a few percent of the drive. Times as short as the paper's need reads that transfer the
requested subpages alone, except under the page map. Reads counted for logical pages, as the paper says, would merge
every page that is written again, unless counts age within some hundred requests. A joint search found all values; the
paper states none of them, so that the setting is consistent with the paper's numbers, and no more.
"""

import math
from collections.abc import Callable

import polars as pl

from ....result import Result
from ...claims import TOLERANCE, Claim
from ...measures import change, over_seeds, response_ns, seeds_note
from ...study import Point, Study, load

__all__ = ["claims", "effects", "implied_claims", "marks", "near_claims"]

Measured = Callable[..., Result]
"""The result by `ftl`, `workload`, `page` in KiB and allocation `threshold` (the second by default)."""

_MARKS = {
    ("mean_us", "trade", 8): "response_trade",
    ("mean_us", "trade", 16): "response_trade",
    ("mean_us", "synth-a", 8): "response_synth_a",
    ("mean_us", "synth-a", 16): "response_synth_a",
    ("erases", "trade", 16): "erases_trade",
    ("write_amplification", "trade", 8): "wa_trade_8k",
    ("write_amplification", "trade", 16): "wa_trade_16k",
}
"""The claim on a column for a workload and page size in KiB, a change from page to mga."""


def marks(data: pl.DataFrame, column: str, page: int) -> pl.Series:
    """The paper's number of a column in each row of mga, from the row of page with the same workload."""
    claimed = load("mga")["claims"]
    base = dict(data.filter(pl.col("ftl") == "page").select("workload", column).iter_rows())
    paper = [
        base[workload] * (1 + claimed[claim]["paper"] / 100)
        if ftl == "mga" and (claim := _MARKS.get((column, workload, page)))
        else None
        for workload, ftl in data.select("workload", "ftl").iter_rows()
    ]
    return pl.Series("paper", paper, dtype=pl.Float64)


def effects(study: Study, point: Point) -> dict[str, float | None]:
    """The effects that the sweep measures at a point."""
    return _effects(study.names["pages"], study.at("swept", point))


def _effects(pages: list[int], result: Measured) -> dict[str, float | None]:
    """Effects on `trade` and `synth-a`; response times: the larger reduction of the page sizes ("up to")."""

    def pair(workload: str, page: int) -> tuple[Result, Result]:
        own, base = (result(ftl=ftl, workload=workload, page=page) for ftl in ("mga", "page"))
        return own, base

    def response(workload: str) -> float | None:
        found = [change(response_ns(own), response_ns(base)) for own, base in (pair(workload, page) for page in pages)]
        return min(each for each in found if each is not None)

    (own_8, base_8), (own_16, base_16) = pair("trade", 8), pair("trade", 16)
    return {
        "response_trade": response("trade"),
        "response_synth_a": response("synth-a"),
        "erases_trade": change(own_16["flash"]["erases"], base_16["flash"]["erases"]),
        "wa_trade_8k": change(own_8["write_amplification"], base_8["write_amplification"]),
        "wa_trade_16k": change(own_16["write_amplification"], base_16["write_amplification"]),
        "map_growth": change(own_16["mapping"]["bytes_peak"], base_16["mapping"]["bytes_peak"]),
    }


def _all_effects(study: Study, point: Point, seed: int) -> dict[str, float | None]:
    """The effects of all claims at one seed.

    Beside the effects of the sweep: `map_growth`, the largest of all workloads and page sizes; `hybrid_close`, the
    share (%) of workloads and page sizes where the mean response time of sector-log is within `TOLERANCE` of mga's;
    `merges_at`, subpages that merges move at the highest allocation threshold over those at the lowest; `merges`, the
    most of the three thresholds against sector-log (%). The last two are of trade with 16 KiB pages.
    """
    names, result = study.names, study.at("compared", point, seed=seed)

    def moved(ftl: str, threshold: str) -> float:
        cell = {"ftl": ftl, "workload": "trade", "page": 16, "threshold": threshold}
        return float(result(**cell)["merge"]["moved_subpages"])

    growth, close = [], []
    for workload in names["workloads"]:
        for page in names["pages"]:
            base, log, own = (result(ftl=ftl, workload=workload, page=page) for ftl in names["layers"])
            growth.append(change(own["mapping"]["bytes_peak"], base["mapping"]["bytes_peak"]))
            ratio = response_ns(log) / response_ns(own)
            close.append(abs(math.log(ratio)) <= math.log(1 + TOLERANCE))
    merged = [moved("mga", threshold) for threshold in names["thresholds"]]
    return _effects(names["pages"], result) | {
        "map_growth": max(each for each in growth if each is not None),
        "hybrid_close": 100 * sum(close) / len(close),
        "merges_at": merged[-1] / merged[0] if merged[0] else None,
        "merges": change(max(merged), moved("sector-log", names["thresholds"][1])),
    }


def _judged(study: Study, measured: dict[str, float | None]) -> list[Claim]:
    return [study.claim(name, measured[name]) for name in study.data["claims"]]


def near_claims(study: Study, point: Point) -> list[Claim]:
    """The claims at the first seed of a point."""
    return _judged(study, _all_effects(study, point, point["seeds"][0]))


def _over_seeds(study: Study, point: Point, said: str = "") -> list[Claim]:
    """The claims about the means over seeds, each with the spread as a note."""
    found = [_all_effects(study, point, seed) for seed in study.names["seeds"]]
    return [claim.with_note(f"{said}{seeds_note(found, claim.id)}") for claim in _judged(study, over_seeds(found))]


def implied_claims(study: Study) -> list[Claim]:
    """The claims at the implied setting."""
    return _over_seeds(study, study.implied, "Implied, ")


def claims(study: Study) -> list[Claim]:
    """The claims at the assumed setting, each claim that does not agree with the measured reason."""
    return [_explained(study, claim) for claim in _over_seeds(study, {})]


def _explained(study: Study, claim: Claim) -> Claim:
    if claim.agrees or claim.id not in study.data["sweep"]["effects"]:
        return claim
    note = study.reason(claim.id)
    if claim.id == "map_growth":
        note = study.note("map_growth", reason=note)
    if claim.id.startswith("response"):
        workload = "trade" if claim.id == "response_trade" else "synth-a"
        rows = study.table("main").filter((pl.col("workload") == workload) & (pl.col("page_kib") == 16))
        p50, means = (dict(rows.select("ftl", column).iter_rows()) for column in ("p50_us", "mean_us"))
        fall = -(change(p50["mga"], p50["page"]) or 0)
        note = study.note("response", reason=note, fall=fall, page=means["page"], mga=means["mga"])
    return claim.with_note(f"{claim.note} {note}".strip())
