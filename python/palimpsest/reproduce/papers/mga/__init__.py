"""The MGA paper: Feng et al., "Mapping Granularity Adaptive FTL Based on Flash Page Re-programming" (DATE 2017).

Models Table II, Fig. 7 to 11 and the numbers of Sec. IV, on synthetic workloads with the statistics of Table II. The
paper fixes blocks of 128 pages, planes of 512 blocks, pages of 8 and 16 KiB and subpages of 4 KiB. A user's
folder of the real traces replaces them by name (`[real]`).

The implied setting. The paper's write amplifications fix the alignment: -7.42 % is 0.47 more subpages a write with
pages of 8 KiB, and -30.83 % is 2.63 with 16 KiB, where starts at any multiple of 4 KiB give 1.0 and 3.0. So half of
the writes have odd sizes, and requests start at multiples of 8 KiB, as database pages do. The bound on map bytes, 16.5
%, needs a footprint of a few percent of the drive. Times as short as the paper's need reads that transfer the
requested subpages alone, except under the page map. Reads counted for logical pages, as the paper says, would merge
every page that is written again, unless counts age within some hundred requests. A joint search found all values; the
paper states none of them, so that the setting is consistent with the paper's numbers, and no more.
"""

import math
import tomllib
from collections.abc import Callable
from typing import Any

import polars as pl

from .... import _core
from ....result import Result
from ...claims import TOLERANCE, Claim
from ...measures import change, over_seeds, response_ns, seeds_note
from ...study import Point, Study, load

__all__ = ["claims", "effects", "implied_claims", "marks", "moved", "near_claims", "without_waits"]

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


def without_waits(page: int, share: float, moved: int) -> float:
    """Change of the mean time of a request from page to mga in percent, 4 KiB requests that never wait.

    The page map reads a page, changes a part and programs the page. The times are those of the part.

    Args:
        page: KiB.
        share: of reads, in percent.
        moved: KiB on the bus for a write of mga, whose reads transfer 4 KiB.
    """
    part = tomllib.loads(_core.show("default", None, [f"ssd.part=k9-slc-{page}k"]))["part"]
    sense, program = (float(part[key].removesuffix("us")) for key in ("t_read", "t_program"))
    transfer = 1024 / float(part["bus_rate"].removesuffix("MB/s"))
    read, write = sense + page * transfer, sense + program + 2 * page * transfer
    own_read, own_write = sense + 4 * transfer, program + moved * transfer
    own, base = (share * one + (100 - share) * two for one, two in ((own_read, own_write), (read, write)))
    return 100 * (own / base - 1)


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
    """The effects of all claims at one seed, by the names of the claims; `merges_WORKLOAD` for each workload.

    `hybrid_close` and `below_page` are shares (%) of workloads and page sizes: sector-log within `TOLERANCE` of mga,
    and both below page.
    """
    names, result = study.names, study.at("compared", point, seed=seed)
    at = study.at("thresholds", point, seed=seed)
    apart = study.at("apart", point, seed=seed)
    effects = _effects(names["pages"], result)

    growth, close, below = [], [], []
    for workload in names["workloads"]:
        for page in names["pages"]:
            base, log, own = (result(ftl=ftl, workload=workload, page=page) for ftl in names["layers"])
            growth.append(change(own["mapping"]["bytes_peak"], base["mapping"]["bytes_peak"]))
            ratio = response_ns(log) / response_ns(own)
            close.append(abs(math.log(ratio)) <= math.log(1 + TOLERANCE))
            below += [response_ns(each) < response_ns(base) for each in (log, own)]

    def merged(workload: str) -> list[float]:
        found = [at(workload=workload, threshold=threshold) for threshold in names["thresholds"]]
        return [float(each["merge"]["moved_subpages"]) for each in found]

    def trade(what: str) -> Result:
        return apart(workload="trade", page=16, apart=what)

    low, *_, high = merged("trade")
    lowest, highest = (at(workload="trade", threshold=names["thresholds"][each]) for each in (0, -1))
    own = result(ftl="mga", workload="trade", page=16)
    erases_8 = change(*(result(ftl=ftl, workload="trade", page=8)["flash"]["erases"] for ftl in ("mga", "page")))
    padded = [
        change(
            response_ns(apart(workload="synth-a", page=page, apart="padding")),
            response_ns(result(ftl="page", workload="synth-a", page=page)),
        )
        for page in names["pages"]
    ]
    most = max(each for each in growth if each is not None)
    merges = {workload: max(merged(workload)) for workload in names["workloads"]}
    logged = {each: result(ftl="sector-log", workload=each, page=16)["merge"]["moved_subpages"] for each in merges}
    return (
        effects
        | {
            "map_growth": most,
            "hybrid_close": 100 * sum(close) / len(close),
            "merges_at": high / low if low else None,
            "at_postpones": _over(highest["flash"]["erases"], lowest["flash"]["erases"]),
            "below_page": 100 * sum(below) / len(below),
            "larger_pages": _less(erases_8, effects["erases_trade"]),
            "merging_reads": change(_read_ns(own), _read_ns(trade("merging"))),
            "once_erases": _over(trade("reprogramming")["flash"]["erases"], own["flash"]["erases"]),
            "once_response": response_ns(trade("reprogramming")) / response_ns(own),
            "padding": min(each for each in padded if each is not None),
            "subpage_map": 4 / (1 + most / 100),
        }
        | {f"merges_{workload}": change(moved, logged[workload]) for workload, moved in merges.items()}
        | _area_effects(result, apart)
    )


def _area_effects(result: Measured, apart: Measured) -> dict[str, float]:
    """Response times and merges of sector-log with its own area over those, or beside those, with a larger area."""
    found = {}
    for workload in ("trade", "synth-a"):
        own = result(ftl="sector-log", workload=workload, page=8)
        larger = apart(workload=workload, page=8, apart="area")
        found[f"area_short_{workload}"] = response_ns(own) / response_ns(larger)
        moved, fewer = (each["merge"]["moved_subpages"] for each in (own, larger))
        # Where nothing merges, a larger area saves nothing.
        found[f"area_merges_{workload}"] = 100 * fewer / moved if moved else 100.0
    return found


def _less(one: float | None, two: float | None) -> float | None:
    return None if one is None or two is None else one - two


def _over(one: float, two: float) -> float | None:
    return one / two if two else None


def _read_ns(result: Result) -> float:
    return float(result["latency_ns"]["read"]["mean"])


def _judged(study: Study, measured: dict[str, float | None]) -> list[Claim]:
    made = []
    for name, ours in measured.items():
        kind, _, workload = name.rpartition("_")
        if kind in study.data["claims"] and workload in study.data["constants"]["workloads"]:
            made.append(study.claim(name, ours, of=kind, workload=workload))
        else:
            made.append(study.claim(name, ours))
    return made


def near_claims(study: Study, point: Point) -> list[Claim]:
    """The claims at the first seed of a point."""
    return _judged(study, _all_effects(study, point, point["seeds"][0]))


def _over_seeds(study: Study, point: Point, said: str = "") -> list[Claim]:
    """The claims about the means over seeds, each with the spread as a note."""
    found = [_all_effects(study, point, seed) for seed in study.names["seeds"]]
    made = []
    for claim in _judged(study, over_seeds(found)):
        note = f"{said}{seeds_note(found, claim.id)}"
        if claim.id == "below_page" and not claim.agrees:
            note = f"{note} {said}not: {_not_below(study, point)}."
        elif claim.id in study.data["notes"]["because"] and not said:
            note = f"{note} {study.data['notes']['because'][claim.id]}"
        elif claim.id.startswith("merges_") and claim.ours is None:
            note = f"{said}sector-log merges nothing there."
        made.append(claim.with_note(note))
    return made


def _not_below(study: Study, point: Point) -> str:
    """The layers, workloads and pages whose mean response time is not below that of page, at the first seed."""
    result, names = study.at("compared", point, seed=study.names["seeds"][0]), study.names
    return ", ".join(
        f"{ftl} on {workload} with {page} KiB pages ({change(response_ns(own), response_ns(base)):+.0f} %)"
        for workload in names["workloads"]
        for page in names["pages"]
        for base in [result(ftl="page", workload=workload, page=page)]
        for ftl in ("sector-log", "mga")
        if response_ns(own := result(ftl=ftl, workload=workload, page=page)) >= response_ns(base)
    )


def moved(result: Any, ftl: str, page: int) -> int:  # noqa: ANN401 - a result, or its fields
    """Subpages that a run moves between host and device in the paper: under the page map whole pages of `page` KiB.

    The simulated link carries the requests alone, as that of NVMe does.
    """
    if ftl != "page":
        return int(result.host.subpages_transferred)
    host = result.flash.by_cause.host
    return int(host.reads + host.programs) * page // 4


def implied_claims(study: Study) -> list[Claim]:
    """The claims at the implied setting."""
    return _over_seeds(study, study.implied, "Implied, ")


def claims(study: Study) -> list[Claim]:
    """The claims at the assumed setting, each claim that does not agree with the measured reason."""
    made = [_explained(study, claim) for claim in _over_seeds(study, {})]
    sums = study.table("fig8").group_by("layer", maintain_order=True).agg(pl.col("subpages").sum())
    written = [study.claim(f"fig8_{layer}", subpages, of="fig8", layer=layer) for layer, subpages in sums.iter_rows()]
    return [*made, *written, *study.closed()]


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
