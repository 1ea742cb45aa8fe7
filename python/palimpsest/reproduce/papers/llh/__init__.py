"""The LLH paper: Margaglia et al., "The Devil is in the Details: Implementing Flash Page Reuse with WOM Codes" (2016).

Models Tables 2 to 6, Figs. 3 to 5, 7 and 8, the estimate of Sec. 4 and the five lessons, on synthetic workloads with
the statistics of Table 6; and the savings of page reuse with codes and chips that the paper did not have. The paper
fixes 16 banks, pages of 8 and 32 KiB, blocks of 128 of them, drives of 16, 32 and 64 GB, 7 % and 28 % of
over-provisioning and initial thresholds of OP/2 and OP/4. A bank does not depend on the others and pages are striped
over the banks, so that fewer banks with the paper's blocks, and as many fewer requests, do in a bank as the whole drive
does. A user's folder of the MSR and FIU traces replaces workloads by name (`[real]`).

The FTL that the authors published (the paper's reference 1) differs from the text, and the figures `published` and
`baseline` run the published rules. That FTL compares the cheapest victim with the last five, and only where a block for
hot data is wanted and no more than two blocks are clean; takes clean blocks first while there are more; lets the
threshold rise to 112 blocks; opens a block before cleaning; and does not let new data replace data in the write buffer.
Ignored of that FTL: the last page of each block, which keeps the block's logical page numbers (a step of `baseline` has
it as 27 % of over-provisioning), and the classification of reads. The threshold's seven victims in a row, the floor of
five blocks and the reuse of partially-used blocks without a valid page are from there as well.

The implied setting. The paper's reductions with 28 % of over-provisioning are "very close" to the formula, which has
all low pages of reused blocks invalid and no data moved; so few places are written again, by the Zipf workloads too. On
the assumed drive these write all of it, the baseline then programs 2.5 pages for each page of the host, and reuse saves
half of the formula's reduction. Eight logical pages of 4 KiB are invalid at once nearly as often as two (1 point), so
that at most a few percent of hot writes look hot and then stay; not much less either, as data copied by collection
grows by half at most, and not many times over. That OP/2 saves more than OP/4 needs hot data that lives as long as OP/4
lets a block wait, and the 6 points with 7 % of over-provisioning bound that lifetime from above. A trace that writes 7
GB on a drive of 32 GB and makes the drive collect (wdev_0) needs a drive that was full before; two replays then bring
each threshold to rest, so that blocks that wait are not counted as saved. A joint search found all values, one group of
workloads after the other; the paper states none of them, so that the setting is consistent with the paper's numbers,
and no more.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import polars as pl

from .... import wear
from ....result import Result
from ...claims import Claim
from ...measures import mean, over_seeds, seeds_note
from ...study import Point, Study
from .model import (
    a16_averages,
    bars_of_fig_7,
    bit_error_rates,
    chips_of,
    draw_rates,
    energies_of_a16,
    least_overhead,
    lifetimes_lost,
    spare_of_code,
)

__all__ = [
    "bars_of_fig_7", "bit_error_rates", "by_reuse", "chip_keys", "chips_of", "claims", "draw_rates", "effects",
    "energies_of_a16", "expected", "implied_claims", "ladder", "layer_keys", "least_overhead", "lifetimes_lost",
    "near_claims", "percent_more", "published", "ratio", "response", "spare_of_code",
]  # fmt: skip

_FLOOR = 5
"""Blocks below which the threshold of the authors' published FTL does not move; smaller banks have a smaller floor."""
_Rows = list[dict[str, Any]]


# Keys of runs


def layer_keys(ftl: str, threshold: str, smaller: int, more: Sequence[str]) -> list[str]:
    """The configuration keys of a layer; keys of `more` replace the others."""
    keys: dict[str, str] = {}
    if ftl == "llh":
        keys = {"ftl.threshold_pu": threshold, "ftl.wom_failure": "0.25%"}  # paper, Sec. 4
        if smaller > 1:
            keys["ftl.threshold_floor"] = str(max(1, round(_FLOOR / smaller)))
    keys |= dict(each.split("=", 1) for each in more)
    return [f"{key}={value}" for key, value in keys.items()]


def chip_keys(chip: str, chips: Mapping[str, Sequence[float]], losses: Mapping[str, Any]) -> list[str]:
    """The keys of a drive whose cells wear as a chip's do."""
    shares = ", ".join(f'"{100 * share:g}%"' for share in reversed(losses["shares"]))
    lost = ", ".join(f'"{percent}%"' for percent in reversed(losses["reprogram"][chip]))
    return [f"part.endurance={chips[chip][3]}", f"part.reuse_shares=[{shares}]", f"part.reuse_loss=[{lost}]"]


# Measures


def ratio(own: float | None, base: float | None) -> float | None:
    """One number over another; None where either is missing or the second is zero."""
    return own / base if own is not None and base else None


def percent_more(of: float | None) -> float | None:
    """The change in percent that is a ratio of more than 1."""
    return None if of is None else 100 * (of - 1)


def expected(hot: float) -> float:
    """Ratio of erases to a drive without reuse, by the paper's formula (Sec. 4)."""
    return (5 - hot) / 5


def by_reuse(own: Mapping[str, Any], base: Mapping[str, Any]) -> float:
    """The same formula, with the reuse that a run measured."""
    stats = own["ftl_stats"]
    hot, reused, failed = (stats[key] or 0 for key in ("hot_share", "reusable_share", "wom_failure_share"))
    # The formula is of all pages programmed, of which moved ones are cold.
    hot /= base["write_amplification"]
    return float(1 - hot + hot / (1 + reused * (1 - failed) / 4))


def _erases(result: Result) -> int:
    return int(result["flash"]["erases"])


def _percent(of: float | None) -> float | None:
    return None if of is None else 100 * of - 100


def _less(one: float | None, two: float | None) -> float | None:
    return None if one is None or two is None else one - two


def _at(measured: pl.DataFrame, **values: object) -> pl.DataFrame:
    """The rows that have these values."""
    return measured.filter(*(pl.col(key) == value for key, value in values.items()))


def _mean_of(rows: pl.DataFrame, column: str) -> float | None:
    return mean(rows[column].to_list())


# Tables


def response(study: Study, point: Point) -> pl.DataFrame:
    """Response times of llh with 32 KiB pages over the baseline's, with the better initial threshold."""
    rows: _Rows = []
    for name in study.names["timed"]:
        result = study.at("timed", point, workload=name)
        base = result(ftl="hotcold")
        own = min((result(ftl="llh", threshold=each) for each in study.names["thresholds"]), key=_erases)
        for what in ("mean", "p90", "p99"):
            ours, theirs = own["latency_ns"], base["latency_ns"]
            row = {"workload": name, "series": what}
            row |= {"ours_us": ours["all"][what] / 1000, "base_us": theirs["all"][what] / 1000}
            row |= {kind: ratio(ours[of][what], theirs[of][what]) for kind, of in _RATIOS.items()}
            rows.append(row | {"erases": _erases(own), "base_erases": _erases(base)})
    return pl.DataFrame(rows, infer_schema_length=None)


_RATIOS = {"ratio": "all", "read_ratio": "read"}


def _published_ratios(study: Study, workload: str, threshold: str) -> list[float]:
    """Ratio of erases to the baseline by the rules of the authors' published FTL, for each seed."""
    made = []
    for seed in study.names["published_seeds"]:
        own = study.result("published", workload=workload, threshold=threshold, seed=seed)
        base = study.result("ladder", workload=workload, step="and nothing is absorbed", seed=seed)
        made.append(_erases(own) / _erases(base))
    return made


def published(study: Study, _point: Point) -> pl.DataFrame:
    """Those ratios beside the ratios of the authors' FTL."""
    rows: _Rows = []
    for threshold, authors in study.names["authors"].items():
        for workload, theirs in authors.items():
            each = _published_ratios(study, workload, threshold)
            row: dict[str, Any] = {"workload": f"Zipf {workload.removeprefix('zipf-')}, {threshold}"}
            rows.append(row | {"series": "authors' FTL", "ratio": theirs, "least": None, "most": None})
            row |= {"series": "ours, its rules", "ratio": fmean(each), "least": min(each), "most": max(each)}
            rows.append(row)
    return pl.DataFrame(rows, schema_overrides={"least": pl.Float64(), "most": pl.Float64()})


def ladder(study: Study, _point: Point) -> pl.DataFrame:
    """Erases from our baseline to the baseline of the authors' FTL, one difference after the other."""
    rows: _Rows = []
    for workload in study.names["published_workloads"]:
        first = None
        for step in study.names["values"]["step"]:
            result = study.at("ladder", workload=workload, step=step)
            own = fmean(_erases(result(seed=seed)) for seed in study.names["published_seeds"])
            first = first or own
            row = {"workload": f"Zipf {workload.removeprefix('zipf-')}", "series": step}
            rows.append(row | {"erases": own, "ratio": own / first})
    return pl.DataFrame(rows)


# Effects


def effects(study: Study, point: Point) -> dict[str, float | None]:
    """Reduction of erases in percent, 8 KiB pages, OP 28 %, for each group."""
    found: dict[str, float | None] = {}
    for group, name in study.names["swept_workloads"].items():
        own, base = (_erases(study.result("swept", point, workload=name, ftl=ftl)) for ftl in ("llh", "hotcold"))
        found[group] = 100 * (1 - own / base) if base else None
    return found


def _claimed(study: Study, measured: pl.DataFrame) -> dict[str, float | None]:
    """The effects of the claims on erases, by their names, from rows of one seed of the table `by_seed`."""

    def normalized(page: int, percent: int, threshold: str, **values: object) -> float | None:
        rows = _at(measured, page_kib=page, over_provisioning=percent, threshold=threshold, **values)
        return _mean_of(rows, "normalized")

    best = _at(measured, page_kib=8, over_provisioning=28, threshold="OP/2")["normalized"].drop_nulls().to_list()
    wide = _at(measured, page_kib=32, over_provisioning=28, threshold="OP/2")
    moved = wide.filter(pl.col("workload").is_in(study.names["timed"]))["moved"].drop_nulls().to_list()
    energy = _mean_of(wide.filter(pl.col("normalized") < 1), "energy")
    found = {f"erases_{group}": _percent(normalized(8, 28, "OP/2", group=group)) for group in study.names["groups"]}
    found |= {"normalized_most": max(best, default=None), "normalized_least": min(best, default=None)}
    found["op_7"] = _less(normalized(8, 28, "OP/2"), normalized(8, 7, "OP/2"))
    found["threshold"] = _less(normalized(8, 28, "OP/2"), normalized(8, 28, "OP/4"))
    for percent in study.names["over_provisionings"]:
        points = _less(normalized(32, percent, "OP/2"), normalized(8, percent, "OP/2"))
        found[f"pages_{percent}"] = None if points is None else 100 * points
    found["copied"] = _percent(max(moved, default=None))
    found["energy"] = None if energy is None else 100 - 100 * energy
    narrow = _at(measured, page_kib=32, over_provisioning=7, threshold="OP/2", group="fiu")
    for what, column in (("erases", "normalized"), ("moved", "moved"), ("energy", "energy")):
        found[f"fiu_7_{what}"] = _percent(_mean_of(narrow, column))
    found["src1_2"] = _percent(_mean_of(_at(wide, workload="src1_2"), "moved"))
    both = _at(measured, page_kib=32, threshold="OP/2").filter(pl.col("normalized") < 1)
    # Where no erases are saved, nothing is in proportion to the saved erases.
    found["inverse"] = both.select(pl.corr("normalized", "energy")).item() if both.height > 2 else 0.0
    return found


def _by_seed(study: Study, point: Point) -> list[dict[str, float | None]]:
    rows = study.table("by_seed", point)
    return [_claimed(study, _at(rows, seed=seed)) for seed in point.get("seeds", study.names["seeds"])]


# Claims


def _judged(study: Study, name: str, ours: float | None) -> Claim:
    kind, _, which = name.partition("_")
    if kind == "erases":
        rows = (study.names["values"]["workload"][workload] for workload in study.names["workloads"])
        share = mean(expected(row["hot"]) for row in rows if row["group"] == which)
        more = {"group": which, "expected_change": 100 * (share or 1) - 100}
        return study.claim(name, ours, of="erases_fiu" if which == "fiu" else "erases", **more)
    return study.claim(name, ours, of="pages", percent=which) if kind == "pages" else study.claim(name, ours)


def near_claims(study: Study, point: Point) -> list[Claim]:
    """The claims on erases at a point, means over seeds."""
    return [_judged(study, name, ours) for name, ours in over_seeds(_by_seed(study, point)).items()]


def _over_seeds(study: Study, point: Point, said: str = "") -> list[Claim]:
    found = _by_seed(study, point)
    return [claim.with_note(f"{said}{seeds_note(found, claim.id)}") for claim in near_claims(study, point)]


def implied_claims(study: Study) -> list[Claim]:
    """The claims at the implied setting: on erases, and on response times."""
    return [*_over_seeds(study, study.implied, "Implied, "), *_response_claims(study, study.implied)]


def claims(study: Study) -> list[Claim]:
    """The claims at the assumed setting, each claim that does not agree with the measured reason."""
    made = [
        *_over_seeds(study, {}),
        *_published_claims(study),
        *_response_claims(study, {}),
        *_other_claims(study),
        *_lessons(study),
        _reusable_ssd(study),
        *study.closed(),
    ]
    return [claim.with_note(f"{claim.note} {'' if claim.agrees else _why(study, claim.id)}".strip()) for claim in made]


def _published_claims(study: Study) -> list[Claim]:
    """The six ratios of the authors' FTL beside ours under the same rules."""
    made = []
    for threshold, authors in study.names["authors"].items():
        for workload, theirs in authors.items():
            each = _published_ratios(study, workload, threshold)
            exponent = workload.removeprefix("zipf-")
            more = {"exponent": exponent, "threshold": threshold, "authors": theirs}
            name = f"published_{exponent}_{threshold.removeprefix('OP/')}"
            claim = study.claim(name, fmean(each), of="published", **more)
            made.append(claim.with_note(study.note("published", each=each)))
    return made


def _response_claims(study: Study, point: Point) -> list[Claim]:
    made = []
    for which in ("mean", "p90", "p99"):
        rows = _at(study.table("response", point), series=which)
        each = ", ".join(f"{row['workload']} {row['ratio']:.2f}" for row in rows.iter_rows(named=True))
        claim = study.claim(f"response_{which}", _mean_of(rows, "ratio"), of="response", which=which)
        made.append(claim.with_note(study.note("response", each=each)))
    return made


def _other_claims(study: Study) -> list[Claim]:
    """Table 5 and Sec. 4."""
    averages = a16_averages()
    made = [
        study.claim(f"energy_{kind}", averages[what][1], of="average", what=what)
        for kind, what in (("write", "average logical write"), ("read", "average logical read"))
    ]
    for chip in ("a16", "a27", "b29"):
        life = wear.life(chip, "reprogram", 0.4)
        gain = 100 * (0.4 * 1.25 + (life.cycles / life.endurance - 0.4) - 1)
        made.append(study.claim(f"life_{chip}", gain, of="life", chip=chip.upper()))
    return made


def _reusable_ssd(study: Study) -> Claim:
    """The most that an ideal chip saves whose blocks are all reused."""
    rows = study.table("beyond").filter(pl.col("variant") == "ideal chip, cold blocks, too").sort("normalized")
    best = rows.row(0, named=True)
    return study.claim("reusable_ssd", _percent(best["normalized"])).with_note(study.note("reusable_ssd", **best))


def _lessons(study: Study) -> list[Claim]:
    """The five lessons, each as a statement with a number."""
    stats = study.result("main", workload="zipf-1", ftl="llh")["ftl_stats"]
    reused = stats["transition_partially_used_reused"]
    share = 100 * stats["reused_low_pages"] / (reused * 128) if reused else None
    pages = study.result("unreserved", workload="zipf-1")["ftl_stats"]["reused_low_pages"]
    lesson_1 = study.claim("lesson1", share).with_note(study.note("lesson1", pages=pages))
    lives = {chip.upper(): wear.life(chip, "reprogram", 1.0) for chip in study.names["chips"]}
    safe = {chip: life.cycles / life.endurance for chip, life in lives.items()}
    least = min(safe, key=lambda chip: safe[chip])
    text = ", ".join(f"{chip} {100 * value:.3g} %" for chip, value in safe.items())
    note = study.note("lesson2", text=text, lives=_chip_lives(study))
    lesson_2 = study.claim("lesson2", 100 * safe[least], least=least).with_note(note)
    return [lesson_1, lesson_2, *_lessons_of_erases(study)]


def _lessons_of_erases(study: Study) -> list[Claim]:
    """The lessons on energy, lifetime and response time."""
    rows = _at(study.table("main"), page_kib=8, over_provisioning=28, threshold="OP/2").filter(pl.col("normalized") < 1)
    saved, added = (float(sum(rows[key])) for key in ("erase_energy_saved_uj", "other_energy_added_uj"))
    note = study.note("lesson3", saved=saved, added=added)
    made = [study.claim("lesson3", saved / added if added > 0 else None).with_note(note)]
    best = rows.sort("normalized").row(0, named=True) if not rows.is_empty() else None
    gain = None if best is None else best["life_percent"] / (100 / best["normalized"] - 100)
    lesson_4 = study.claim("lesson4", gain)
    made.append(lesson_4 if best is None else lesson_4.with_note(study.note("lesson4", best=best)))
    means = _at(study.table("response"), series="mean")
    fewer = _mean_of(means.with_columns(fewer=100 * (1 - pl.col("erases") / pl.col("base_erases"))), "fewer")
    faster = None if (own := _mean_of(means, "ratio")) is None else 100 - 100 * own
    lesson_5 = study.claim("lesson5", ratio(faster, fewer))
    if fewer is not None and faster is not None:
        lesson_5 = lesson_5.with_note(study.note("lesson5", fewer=fewer, faster=faster))
    return [*made, lesson_5]


def _chip_lives(study: Study) -> str:
    """Host writes in a life on cells that wear as each chip's do, against the baseline with as much endurance."""
    base = study.result("main", workload="zipf-1", ftl="hotcold")["lifetime"]["projected_host_bytes"]
    table = study.names["table_2"]
    gains = []
    for chip in study.names["chips"]:
        own = study.result("chip", workload="zipf-1", chip=chip)["lifetime"]["projected_host_bytes"]
        if own and base:
            gains.append(f"{chip.upper()} {100 * own / (base * table[chip][3] / table['a16'][3]) - 100:+.1f} %")
    return ", ".join(gains)


# Reasons


def _reason(study: Study, group: str) -> str:
    """The unknown that moves the reduction of a group most, and the value nearest to the expected reduction."""
    workload = study.names["swept_workloads"][group]
    target = 100 * (1 - expected(study.names["values"]["workload"][workload]["hot"]))
    rows = [row for row in study.table("sweep").iter_rows(named=True) if row[group] is not None]
    if len(rows) < 2:
        return study.note("short")
    first, *others = rows
    most = max(others, key=lambda row: abs(row[group] - first[group]))
    nearest = min(others, key=lambda row: abs(row[group] - target))
    found = {"first": first[group], "most": most, "nearest": nearest}
    return study.note("reason", workload=workload, group=group, target=target, **found)


def _why(study: Study, name: str) -> str:
    """The measured reason why a claim does not agree; empty where there is none."""
    group = name.removeprefix("erases_")
    if group in study.names["swept_workloads"]:
        return _group_reason(study, group)
    measured = study.table("main")
    match name:
        case "normalized_most" | "normalized_least":
            best = _at(measured, page_kib=8, over_provisioning=28, threshold="OP/2").drop_nulls("normalized")
            least, most = (best.sort("normalized").row(index, named=True) for index in (0, -1))
            ends = "; ".join(
                f"{row['workload']} {row['normalized']:.3f} ({row['base_erases']:.0f} erases of the baseline)"
                for row in (least, most)
            )
            row = most if name == "normalized_most" else least
            return study.note("normalized", ends=ends, reason=_reason(study, str(row["group"])))
        case "threshold":
            each = [
                f"{group} {100 * (one - other):+.1f} points"
                for group in study.names["swept_workloads"]
                if (one := _mean_of(_of_group(measured, group, "OP/2"), "normalized")) is not None
                and (other := _mean_of(_of_group(measured, group, "OP/4"), "normalized")) is not None
            ]
            return study.note("threshold", each=", ".join(each))
        case "copied":
            rows = _at(measured, page_kib=32, over_provisioning=28, threshold="OP/2").drop_nulls("moved")
            each = [
                f"{row['workload']} {row['moved']:.2f} times, {100 * row['moved_share']:.1f} % of the host's writes"
                for row in rows.filter(pl.col("workload").is_in(study.names["timed"])).iter_rows(named=True)
            ]
            return study.note("copied", each="; ".join(each))
        case "pages_28" | "pages_7":
            return study.note("pages", each=_reusable(study))
        case _:
            return ""


def _of_group(measured: pl.DataFrame, group: str, threshold: str) -> pl.DataFrame:
    return _at(measured, page_kib=8, over_provisioning=28, threshold=threshold, group=group)


def _reusable(study: Study) -> str:
    text = []
    for page in study.names["pages"]:
        for percent in study.names["over_provisionings"]:
            rows = _at(study.table("main"), page_kib=page, over_provisioning=percent, threshold="OP/2")
            if (share := _mean_of(rows, "reusable_share")) is not None:
                text.append(f"{page} KiB, OP {percent} %: {100 * share:.0f} %")
    return ", ".join(text)


def _group_reason(study: Study, group: str) -> str:
    measured = study.table("main")
    rows = _of_group(measured, group, "OP/2")
    reuse, share, amplified = (_mean_of(rows, key) for key in ("by_reuse", "reusable_share", "base_amplification"))
    other = _mean_of(_of_group(measured, group, "OP/4"), "normalized")
    if reuse is None or share is None or amplified is None or other is None:
        return study.note("short")
    found = {"share": share, "amplified": amplified, "reuse": reuse, "other": other}
    return study.note("group", reason=_reason(study, group), **found)
