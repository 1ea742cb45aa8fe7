"""The LLH paper: Margaglia et al., "The Devil is in the Details: Implementing Flash Page Reuse with WOM Codes" (2016).

Tables 2 to 6, Figs. 3 to 5, 7 and 8, the estimate of Sec. 4 and the five lessons, on synthetic workloads with the
statistics of Table 6; and what page reuse would save with codes and chips that the paper did not have.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from .. import wear
from ..options import RunOptions
from . import figures, implied, llh_implied, llh_published, outputs
from . import llh_figures as drawn
from .batch import Batch
from .claims import ASSUMED, BOTH, IMPLIED, Claim, amount, at_most, within
from .figures import Figure
from .llh_claims import (
    Options,
    claims_of_response,
    claims_over_seeds,
    effects,
    expected,
    mean_of,
    needed,
    normalized_erases,
    over_seeds,
    response_needed,
    response_rows,
)
from .llh_claims import at as _at
from .llh_runs import (
    BEYOND,
    FULL,
    OVER_PROVISIONING,
    PRECONDITION,
    QUICK,
    SEEDS,
    TIMED,
    UNKNOWNS,
    WORKLOADS,
    Scale,
    Unknown,
    Variant,
    erases,
)

__all__ = ["reproduce", "sweep"]

_SWEPT = {"msr": "hm_0", "fiu": "online", "zipf": "zipf-0.95"}
"""The workload that represents each group where something is changed."""
_BEYOND = ("hm_0", "prxy_0", "online", "zipf-0.95")
_CHIPS = ("a16", "a27", "b16", "b29")
_Rows = list[dict[str, Any]]


def _chip_variant(chip: str) -> Variant:
    """LLH-FTL on a drive whose cells wear as a chip's do."""
    shares = '["20%", "40%", "60%", "100%"]'
    loss = ", ".join(f'"{percent}%"' for percent in reversed(drawn.LOSSES["reprogram"][chip]))
    endurance = drawn.CHIPS[chip][3]
    keys = (f"part.endurance={endurance}", f"part.reuse_shares={shares}", f"part.reuse_loss=[{loss}]")
    return Variant("llh", overrides=keys)


def _unreserved() -> Variant:
    """LLH-FTL that may reserve no block."""
    return Variant("llh", overrides=("ftl.threshold_pu=0 blocks", "ftl.threshold_window=0"))


def _swept_options(scale: Scale, unknown: Unknown, name: str, variant: Variant) -> RunOptions:
    changes = dict(unknown.changes).get(WORKLOADS[name].group, "")
    if variant.ftl == "llh":
        variant = replace(variant, overrides=unknown.overrides)
    return scale.options(name, variant, changes, precondition=unknown.precondition)


def _traces(batch: Batch, scale: Scale) -> dict[str, dict[str, RunOptions]]:
    """Real traces by name: the runs of the baseline and of LLH-FTL."""
    made: dict[str, dict[str, RunOptions]] = {}
    for name, path in batch.trace_files().items():
        runs = {ftl: scale.options("hm_0", Variant(ftl)) for ftl in ("hotcold", "llh")}
        made[name] = {
            ftl: replace(
                run,
                workload=str(path),
                overrides=(*run.overrides, "host.fold=true"),
                requests=scale.trace_requests,
                warmup=None,
                skip_bad=True,
                volumes="overlaid",
            )
            for ftl, run in runs.items()
        }
    return made


def _by_seed(scale: Scale) -> list[Options]:
    return [partial(scale.options, seed=seed) for seed in SEEDS]


def _all_runs(batch: Batch, scale: Scale) -> Iterator[RunOptions]:
    for options in _by_seed(scale):
        yield from needed(options)
    yield from response_needed(scale.timed)
    yield from (scale.options("zipf-1", variant) for variant in (*map(_chip_variant, _CHIPS), _unreserved()))
    yield from (
        scale.options(name, replace(variant, over_provisioning=percent))
        for name in _BEYOND
        for percent in OVER_PROVISIONING
        for variant in BEYOND.values()
    )
    for unknown in UNKNOWNS:
        for name in _SWEPT.values():
            yield _swept_options(scale, unknown, name, Variant("hotcold"))
            yield _swept_options(scale, unknown, name, Variant("llh"))
    yield from llh_published.runs()
    for runs in _traces(batch, scale).values():
        yield from runs.values()


def sweep(batch: Batch, scale: Scale) -> pl.DataFrame:
    """Reduction of erases in percent, 8 KiB pages, OP 28 %: a row for each unknown, a column for each group."""
    rows: _Rows = []
    for unknown in UNKNOWNS:
        row: dict[str, Any] = {"unknown": unknown.what, "value": unknown.value, "label": unknown.label}
        for group, name in _SWEPT.items():
            own, base = (batch[_swept_options(scale, unknown, name, Variant(ftl))] for ftl in ("llh", "hotcold"))
            row[group] = 100 * (1 - erases(own) / erases(base)) if erases(base) else None
        rows.append(row)
    schema = dict.fromkeys(("unknown", "value", "label"), pl.String()) | dict.fromkeys(_SWEPT, pl.Float64())
    return pl.DataFrame(rows, schema=schema)


def _sweep_figure(points: pl.DataFrame) -> Figure:
    draws = [
        (
            f"Fewer erases, {name} (%)",
            figures.levels("label", group, 100 * (1 - expected(WORKLOADS[name].hot)), "%"),
        )
        for group, name in _SWEPT.items()
    ]
    note = f"{drawn.SYNTHETIC} 8 KiB pages, OP 28 %, threshold OP/2; the line is the paper's expected reduction."
    svg = figures.panels(points, draws, width=10, height=3.8)
    return Figure("sweep", "What the paper does not say, one thing changed at a time", note, points, svg)


def _beyond_figure(batch: Batch, scale: Scale) -> Figure:
    rows: _Rows = []
    for label, beyond in BEYOND.items():
        for percent in OVER_PROVISIONING:
            for name in _BEYOND:
                variant = replace(beyond, over_provisioning=percent)
                own, base = (batch[scale.options(name, each)] for each in (variant, variant.baseline))
                life = own["lifetime"]["projected_host_bytes"] / base["lifetime"]["projected_host_bytes"]
                rows.append(
                    {
                        "workload": name,
                        "variant": label,
                        "over_provisioning": percent,
                        "normalized": erases(own) / erases(base),
                        "energy": own["energy_uj"]["total"] / base["energy_uj"]["total"],
                        "life_percent": 100 * (life - 1),
                        "reprograms": own["flash"]["reprograms"],
                        "wom_failures": own["ftl_stats"].get("wom_failures"),
                    }
                )
    data = pl.DataFrame(rows)

    def panel(percent: int) -> figures.Draw:
        bars = figures.bars("workload", "variant", "normalized", "erases, hotcold = 1")

        def draw(axes: Any, all_rows: pl.DataFrame) -> None:  # noqa: ANN401 - Matplotlib's
            bars(axes, all_rows.filter(pl.col("over_provisioning") == percent))
            axes.axhline(1.0, color="black", linewidth=0.8)
            axes.set_ylim(0.5, 2.0)
            axes.legend(ncols=3, loc="upper right", fontsize=8)

        return draw

    note = (
        f"Not in the paper. {drawn.SYNTHETIC} An ideal chip may program a low page again after its high page (the "
        "scheme LHL, Fig. 2a, which fails on all chips measured), so that no capacity is reserved. A code with less "
        "spare area or no failures changes what it stores beside the data, not how many pages it saves: failures are "
        "one in 400 already. mga fills low pages by subpage, without a code, before their high pages; the baseline of "
        "1 is hotcold for it, too."
    )
    svg = figures.panels(
        data, [(f"Over-provisioning {percent} %", panel(percent)) for percent in OVER_PROVISIONING], width=10
    )
    return Figure("beyond", "Beyond the paper: other codes and chips, 8 KiB pages", note, data, svg)


def _traces_figure(batch: Batch, scale: Scale) -> Figure | None:
    rows: _Rows = []
    for name, runs in _traces(batch, scale).items():
        own, base = (batch[runs[ftl]] for ftl in ("llh", "hotcold"))
        if erases(base):
            rows.append(
                {
                    "trace": name,
                    "series": "erases",
                    "normalized": erases(own) / erases(base),
                    "base_erases": erases(base),
                    "hot_share": own["ftl_stats"]["hot_share"],
                    "energy": own["energy_uj"]["total"] / base["energy_uj"]["total"],
                }
            )
    if not rows:
        return None
    data = pl.DataFrame(rows)
    draw = figures.slanted(figures.bars("trace", "series", "normalized", "erases, hotcold = 1"))
    note = (
        "Not in the paper: real traces, folded into the drive of hm_0, hot below 64 KiB. Those too short to start "
        "collection are left out. In a trace that does not fill the drive anew, blocks that wait take the place of "
        "clean ones, and collection starts sooner."
    )
    svg = figures.panels(data, [("Erases, 8 KiB pages, over-provisioning 28 %", draw)], height=4.2)
    return Figure("traces", "Extra: real traces", note, data, svg)


def _other_claims() -> list[Claim]:
    """Table 5 and Sec. 4."""
    made = []
    averages = drawn.a16_averages()
    for name, what in (("energy_write", "average logical write"), ("energy_read", "average logical read")):
        made.append(amount(name, f"energy of an {what}, LLH, A16", drawn.AVERAGES[what][1], averages[what][1], "uJ"))
    for chip in ("a16", "a27", "b29"):
        life = wear.life(chip, "reprogram", 0.4)
        gain = 100 * (0.4 * 1.25 + (life.cycles / life.endurance - 0.4) - 1)
        claim = f"lifetime, rough estimate of Sec. 4, {chip.upper()}: all blocks reused up to 0.4 T"
        made.append(within(f"life_{chip}", claim, 3.99, 5.01, gain, "%", "4 to 5"))
    return made


def _lessons(batch: Batch, scale: Scale, measured: pl.DataFrame, response: pl.DataFrame) -> list[Claim]:
    """The five lessons, each as a statement with a number."""
    zipf = batch[scale.options("zipf-1", Variant("llh"))]
    stats = zipf["ftl_stats"]
    reused = stats["transition_partially_used_reused"]
    share = 100 * stats["reused_low_pages"] / (reused * 128) if reused else None
    unreserved = batch[scale.options("zipf-1", _unreserved())]
    lesson_1 = at_most(
        "lesson1", "pages programmed twice, of a reused block, zipf-1: half at most", 50, share
    ).with_note(f"With no block reserved, {unreserved['ftl_stats']['reused_low_pages']} low pages are reused.")
    unsafe = {chip.upper(): wear.life(chip, "reprogram", 1.0) for chip in _CHIPS}
    safe = {chip: life.cycles / life.endurance for chip, life in unsafe.items()}
    least = min(safe, key=lambda chip: safe[chip])
    text = ", ".join(f"{chip} {100 * value:.3g} %" for chip, value in safe.items())
    lesson_2 = at_most(
        "lesson2", f"life in which reuse is safe, least of the chips ({least})", 40, 100 * safe[least]
    ).with_note(
        f"The model, by Table 4: {text} of the endurance. Host writes in a life of zipf-1, against hotcold: "
        f"{_chip_lives(batch, scale)}; reuse up to 0.4 T, beyond what is safe, ends a life there."
    )
    rows = _at(measured, page_kib=8, over_provisioning=28, threshold="OP/2").filter(pl.col("normalized") < 1)
    saved, added = (float(sum(rows[key])) for key in ("erase_energy_saved_uj", "other_energy_added_uj"))
    ratio = saved / added if added > 0 else None
    lesson_3 = at_most(
        "lesson3", "energy of saved erases over that of the operations added, OP 28 %", 1, ratio, "times"
    ).with_note(f"All workloads whose erases fell: {saved / 1e6:.3g} J saved, {added / 1e6:.3g} J added.")
    best = rows.sort("normalized").row(0, named=True) if not rows.is_empty() else None
    gain = None if best is None else best["life_percent"] / (100 / best["normalized"] - 100)
    lesson_4 = at_most(
        "lesson4", "lifetime gained over writes gained an erase, where most erases fell", 0.5, gain, "times"
    )
    if best is not None:
        lesson_4 = lesson_4.with_note(
            f"{best['workload']}: {100 - 100 * best['normalized']:.1f} % fewer erases, {best['life_percent']:.1f} "
            f"% more host writes."
        )
    means = _at(response, series="mean")
    fewer = mean_of(means.with_columns(fewer=100 * (1 - pl.col("erases") / pl.col("base_erases"))), "fewer")
    faster = None if (own := mean_of(means, "ratio")) is None else 100 - 100 * own
    lesson_5 = at_most(
        "lesson5", "response time saved over erases saved, 32 KiB pages", 0.5, _over(faster, fewer), "times"
    )
    if fewer is not None and faster is not None:
        lesson_5 = lesson_5.with_note(
            f"Mean of the traces: {fewer:.1f} % fewer erases, {faster:.1f} % less response time."
        )
    return [lesson_1, lesson_2, lesson_3, lesson_4, lesson_5]


def _chip_lives(batch: Batch, scale: Scale) -> str:
    base = batch[scale.options("zipf-1", Variant("hotcold"))]["lifetime"]["projected_host_bytes"]
    rated = drawn.CHIPS["a16"][3]
    gains = []
    for chip in _CHIPS:
        own = batch[scale.options("zipf-1", _chip_variant(chip))]["lifetime"]["projected_host_bytes"]
        if own and base:
            gains.append(f"{chip.upper()} {100 * own / (base * drawn.CHIPS[chip][3] / rated) - 100:+.1f} %")
    return ", ".join(gains)


def _over(one: float | None, two: float | None) -> float | None:
    return one / two if one is not None and two else None


def _reason(points: pl.DataFrame, group: str) -> str:
    """Which unknown moves the reduction of a group most, and which value brings it nearest to the expected one."""
    target = 100 * (1 - expected(WORKLOADS[_SWEPT[group]].hot))
    rows = [row for row in points.iter_rows(named=True) if row[group] is not None]
    if len(rows) < 2:
        return "These runs are too short to measure it."
    first, *others = rows
    most = max(others, key=lambda row: abs(row[group] - first[group]))
    nearest = min(others, key=lambda row: abs(row[group] - target))
    return (
        f"Swept one at a time on {_SWEPT[group]}, from {first[group]:.1f} % fewer: {most['label']} moves it most, to "
        f"{most[group]:.1f} %; nearest to the expected {target:.1f} % is {nearest['label']}, with "
        f"{nearest[group]:.1f} %."
    )


def _explained(claim: Claim, measured: pl.DataFrame, points: pl.DataFrame) -> Claim:
    """The claim with the measured reason where it does not agree."""
    why = "" if claim.agrees else _why(claim, measured, points)
    return claim.with_note(f"{claim.note} {why}".strip())


def _why(claim: Claim, measured: pl.DataFrame, points: pl.DataFrame) -> str:
    group = claim.id.removeprefix("erases_")
    if group in _SWEPT:
        return _group_reason(measured, points, group)
    best = _at(measured, page_kib=8, over_provisioning=28, threshold="OP/2").drop_nulls("normalized").sort("normalized")
    least, most = (best.row(index, named=True) for index in (0, -1))
    ends = "; ".join(
        f"{row['workload']} {row['normalized']:.3f} ({row['base_erases']:.0f} erases of the baseline)"
        for row in (least, most)
    )
    match claim.id:
        case "normalized_most" | "normalized_least":
            row = most if claim.id == "normalized_most" else least
            return f"Least and most: {ends}. {_reason(points, str(row['group']))}"
        case "threshold":
            text = [
                f"{group} {100 * (one - other):+.1f} points"
                for group in _SWEPT
                if (one := mean_of(_threshold_rows(measured, group, "OP/2"), "normalized")) is not None
                and (other := mean_of(_threshold_rows(measured, group, "OP/4"), "normalized")) is not None
            ]
            return (
                f"OP/2 less OP/4: {', '.join(text)}. More reserved blocks let more low pages become invalid, and cost "
                "collection more; the replay before the measurement has given both thresholds time to converge."
            )
        case "copied":
            rows = _at(measured, page_kib=32, over_provisioning=28, threshold="OP/2")
            text = [
                f"{row['workload']} {row['moved']:.2f} times, {100 * row['moved_share']:.1f} % of the host's writes"
                for row in rows.filter(pl.col("workload").is_in(TIMED)).drop_nulls("moved").iter_rows(named=True)
            ]
            return f"Little is copied here, so that the ratio means little: {'; '.join(text)}."
        case "pages_28" | "pages_7":
            return (
                "A low page is reused when none of its logical pages is valid, two of them or eight. Share of "
                f"low pages that were, when their block was reused: {_reusable(measured)}."
            )
        case _:
            return ""


def _threshold_rows(measured: pl.DataFrame, group: str, threshold: str) -> pl.DataFrame:
    return _at(measured, page_kib=8, over_provisioning=28, threshold=threshold, group=group)


def _reusable(measured: pl.DataFrame) -> str:
    text = []
    for page in (8, 32):
        for percent in OVER_PROVISIONING:
            rows = _at(measured, page_kib=page, over_provisioning=percent, threshold="OP/2")
            if (share := mean_of(rows, "reusable_share")) is not None:
                text.append(f"{page} KiB, OP {percent} %: {100 * share:.0f} %")
    return ", ".join(text)


def _group_reason(measured: pl.DataFrame, points: pl.DataFrame, group: str) -> str:
    rows = _threshold_rows(measured, group, "OP/2")
    reuse, share, amplified = (mean_of(rows, key) for key in ("by_reuse", "reusable_share", "base_amplification"))
    other = mean_of(_threshold_rows(measured, group, "OP/4"), "normalized")
    if reuse is None or share is None or amplified is None or other is None:
        return "These runs are too short to measure it."
    return (
        "The formula has all low pages of reused blocks invalid and no data moved; here "
        f"{100 * share:.0f} % are invalid, "
        f"and the baseline programs {amplified:.2f} pages for each that the host writes. With both it gives "
        f"{100 * reuse - 100:.1f} %, without what reserved blocks cost. Threshold OP/4: {100 * other - 100:.1f} %. "
        f"{_reason(points, group)}"
    )


def _about(scale: Scale, traces: Sequence[str]) -> tuple[str, ...]:
    found = f"Real traces: {', '.join(traces)}." if traces else "No folder of real traces was given (--traces DIR)."
    return (
        "The paper's MSR and FIU traces are not public as it used them: those workloads are synthetic, "
        "with the requests, rate, write ratio, hot write ratio and writes of its Table 6. Locality is "
        "assumed, and swept. The Zipf workloads are the paper's own; its 1/alpha^n is read as n^-alpha.",
        f"Drives of the paper with {scale.banks} of its 16 banks and 1/{scale.smaller} of the blocks of a bank in the "
        f"runs that count, all banks and 1/{scale.timed_smaller} of the blocks in those that take time; requests "
        "shrink with the drive. Banks do not depend on each other.",
        f"Before the measurement the drive is filled ({PRECONDITION}) and the workload is replayed once; runs that "
        "take time replay it twice and measure the last 12 hours, as the paper did on its board. The threshold of "
        "partially-used blocks moves after seven victims in a row that point the same way, not below five blocks "
        "(fewer where banks are smaller), and a partially-used block without a valid page is reused at once: so the "
        "authors' published FTL does (the paper's reference 1), though the paper does not say so; the sweep has the "
        "rules of the text as well.",
        "Energies are Table 5's, measured on chip A16 alone, half and twice for pages of 8 and 32 KiB. Encoding is a "
        "coin of 0.25 %.",
        found,
    )


def _reproduction(about: tuple[str, ...], claims: Sequence[Claim], made: Sequence[Figure]) -> outputs.Reproduction:
    return outputs.Reproduction(
        paper="llh",
        title="LLH-FTL: implementing flash page reuse with WOM codes (Margaglia et al.)",
        about=about,
        claims=tuple(claims),
        figures=tuple(made),
    )


def reproduce(batch: Batch, *, full: bool = False, settings: str = BOTH) -> outputs.Reproduction:
    """Runs everything and draws it: under the assumed setting, the implied one, or both."""
    scale = FULL if full else QUICK
    if settings == ASSUMED:
        return _assumed(batch, scale)
    claims, added = llh_implied.claims_and_figures(batch)
    if full:
        added.append(llh_implied.neighbours(batch))
    if settings == IMPLIED:
        return _reproduction((*_about(scale, ())[:1], llh_implied.ABOUT), claims, added)
    return implied.beside(_assumed(batch, scale), llh_implied.ABOUT, claims, added)


def _assumed(batch: Batch, scale: Scale) -> outputs.Reproduction:
    batch.run(_all_runs(batch, scale))
    each = [normalized_erases(batch, options) for options in _by_seed(scale)]
    measured = over_seeds(each)
    response = response_rows(batch, scale.timed)
    points = sweep(batch, scale)
    shrunk = f"{scale.banks} banks, 1/{scale.smaller} of the blocks of each."
    timed = f"16 banks, 1/{scale.timed_smaller} of the blocks of each."
    made = [
        drawn.table_2(),
        *drawn.table_3_and_4(),
        *drawn.fig_3_to_5(),
        drawn.table_5(),
        drawn.table_6(batch, scale),
        *drawn.fig_7(measured, shrunk),
        drawn.fig_7c(response, timed),
        *drawn.fig_8(measured, shrunk),
        drawn.life_figure(measured),
        _sweep_figure(points),
        llh_published.figure(batch),
        llh_published.ladder(batch),
        _beyond_figure(batch, scale),
    ]
    traces = _traces_figure(batch, scale)
    if traces is not None:
        made.append(traces)
    claims = [
        *claims_over_seeds([effects(rows) for rows in each]),
        *llh_published.claims(batch),
        *claims_of_response(response),
        *_other_claims(),
        *_lessons(batch, scale, measured, response),
    ]
    names = [] if traces is None else traces.data["trace"].to_list()
    return _reproduction(_about(scale, names), [_explained(claim, measured, points) for claim in claims], made)
