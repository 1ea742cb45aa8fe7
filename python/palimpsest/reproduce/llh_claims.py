"""Figures 7 and 8 of the LLH paper: erases, moved data, energy and response times over the baseline's, and the claims.

`normalized_erases` is of one seed, `over_seeds` the mean of several; `effects` are the numbers that the claims are
about, and `judged` has the rule of each claim. The expected reduction is the paper's formula (Sec. 4).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import polars as pl

from ..options import RunOptions
from .batch import Batch
from .claims import Claim, amount, at_most, effect, within
from .llh_runs import OVER_PROVISIONING, THRESHOLDS, TIMED, WORKLOADS, Variant, erases
from .measures import mean, seeds_note, with_spread
from .measures import over_seeds as mean_over_seeds

__all__ = [
    "CASES",
    "CLAIMED",
    "Case",
    "Options",
    "at",
    "claims_of_response",
    "claims_over_seeds",
    "effects",
    "expected",
    "judged",
    "mean_of",
    "needed",
    "normalized_erases",
    "over_seeds",
    "response_needed",
    "response_rows",
]

Options = Callable[[str, Variant], RunOptions]
"""The run of a workload on a layer."""

Case = tuple[int, int, str]
"""KiB of a page, percent of over-provisioning, and initial threshold."""
CASES: tuple[Case, ...] = tuple(product((8, 32), OVER_PROVISIONING, THRESHOLDS))
CLAIMED: tuple[Case, ...] = ((8, 28, "OP/2"), (8, 28, "OP/4"), (8, 7, "OP/2"), (32, 28, "OP/2"), (32, 7, "OP/2"))
"""Those that `effects` needs."""

_KEYS = ("workload", "group", "page_kib", "over_provisioning", "threshold")


def expected(hot: float) -> float:
    """Erases over those without reuse, by the paper's formula (Sec. 4)."""
    return (5 - hot) / 5


def needed(options: Options, cases: Iterable[Case] = CASES) -> Iterator[RunOptions]:
    """The runs that `normalized_erases` needs."""
    for page, percent, threshold in cases:
        variant = Variant("llh", page, percent, threshold)
        for name in WORKLOADS:
            yield from (options(name, each) for each in (variant, variant.baseline))


def normalized_erases(batch: Batch, options: Options, cases: Iterable[Case] = CASES) -> pl.DataFrame:
    """Erases of llh over those of hotcold: a row for each workload, page, over-provisioning and threshold.

    Columns beside those: `normalized`; `expected` by the paper's formula from Table 6; `by_reuse` by the same from what
    the run reused, X of all pages programmed: (1 - X) + X / (1 + y (1 - p) / 4); `moved` and `energy` over the
    baseline's; `life_percent`, the change of what the host can write in a life.
    """
    rows = [
        _row(batch, options, name, Variant("llh", page, percent, threshold))
        for page, percent, threshold in cases
        for name in WORKLOADS
    ]
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.all().exclude(_KEYS).cast(pl.Float64))


def over_seeds(each: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Rows of `normalized_erases` as means over seeds, the least and greatest of each column as `_low`, `_high`."""
    return with_spread(pl.concat(each), _KEYS)


def response_needed(timed: Options) -> Iterator[RunOptions]:
    """The runs that `response_rows` needs."""
    for name in TIMED:
        yield timed(name, Variant("hotcold", 32))
        yield from (timed(name, Variant("llh", 32, 28, threshold)) for threshold in THRESHOLDS)


def _ratio(own: float | None, base: float | None) -> float | None:
    return own / base if own is not None and base else None


def _row(batch: Batch, options: Options, name: str, variant: Variant) -> dict[str, Any]:
    own, base = (batch[options(name, each)] for each in (variant, variant.baseline))
    stats = own["ftl_stats"]
    hot, reused, failed = (stats[key] or 0 for key in ("hot_share", "reusable_share", "wom_failure_share"))
    # The formula is of all pages programmed, of which moved ones are cold.
    hot /= base["write_amplification"]
    life = _ratio(own["lifetime"]["projected_host_bytes"], base["lifetime"]["projected_host_bytes"])
    return {
        "workload": name,
        "group": WORKLOADS[name].group,
        "page_kib": variant.page,
        "over_provisioning": variant.over_provisioning,
        "threshold": variant.threshold,
        "erases": erases(own),
        "base_erases": erases(base),
        "normalized": _ratio(erases(own), erases(base)),
        "expected": expected(WORKLOADS[name].hot),
        "by_reuse": 1 - hot + hot / (1 + reused * (1 - failed) / 4),
        "reusable_share": stats["reusable_share"],
        "base_amplification": base["write_amplification"],
        "moved": _ratio(own["gc"]["moved_subpages"], base["gc"]["moved_subpages"]),
        "moved_share": own["gc"]["moved_subpages"] / max(1, own["host"]["subpages_written"]),
        "energy": _ratio(own["energy_uj"]["total"], base["energy_uj"]["total"]),
        "life_percent": None if life is None else 100 * (life - 1),
        "base_energy_uj": base["energy_uj"]["total"],
        "erase_energy_saved_uj": base["energy_uj"]["erase"] - own["energy_uj"]["erase"],
        "other_energy_added_uj": own["energy_uj"]["total"] - own["energy_uj"]["erase"]
        - (base["energy_uj"]["total"] - base["energy_uj"]["erase"]),
    }  # fmt: skip


def response_rows(batch: Batch, timed: Options) -> pl.DataFrame:
    """Response times of llh with 32 KiB pages over the baseline's, with the better initial threshold."""
    rows: list[dict[str, Any]] = []
    for name in TIMED:
        base = batch[timed(name, Variant("hotcold", 32))]
        runs = [batch[timed(name, Variant("llh", 32, 28, threshold))] for threshold in THRESHOLDS]
        own = min(runs, key=erases)
        for what in ("mean", "p90", "p99"):
            rows.append(
                {
                    "workload": name,
                    "series": what,
                    "ours_us": own["latency_ns"]["all"][what] / 1000,
                    "base_us": base["latency_ns"]["all"][what] / 1000,
                    "ratio": _ratio(own["latency_ns"]["all"][what], base["latency_ns"]["all"][what]),
                    "read_ratio": _ratio(own["latency_ns"]["read"][what], base["latency_ns"]["read"][what]),
                    "erases": erases(own),
                    "base_erases": erases(base),
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def claims_of_response(response: pl.DataFrame) -> list[Claim]:
    """The claims on response times, with each trace as a note."""
    made = []
    for what in ("mean", "p99"):
        rows = at(response, series=what)
        each = ", ".join(f"{row['workload']} {row['ratio']:.2f}" for row in rows.iter_rows(named=True))
        made.append(judged(f"response_{what}", mean_of(rows, "ratio")).with_note(f"By trace: {each}."))
    return made


def at(measured: pl.DataFrame, **values: object) -> pl.DataFrame:
    """The rows that have these values."""
    return measured.filter(*(pl.col(key) == value for key, value in values.items()))


def mean_of(rows: pl.DataFrame, column: str) -> float | None:
    """The mean of a column; None where nothing was measured."""
    return mean(rows[column].to_list())


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * ratio - 100


def _less(one: float | None, two: float | None) -> float | None:
    return None if one is None or two is None else one - two


def effects(measured: pl.DataFrame) -> dict[str, float | None]:
    """What the claims are about, by their names, from `normalized_erases` of one seed over `CLAIMED` at least."""

    def normalized(page: int, percent: int, threshold: str, **values: object) -> float | None:
        rows = at(measured, page_kib=page, over_provisioning=percent, threshold=threshold, **values)
        return mean_of(rows, "normalized")

    best = at(measured, page_kib=8, over_provisioning=28, threshold="OP/2")["normalized"].drop_nulls().to_list()
    wide = at(measured, page_kib=32, over_provisioning=28, threshold="OP/2")
    moved = wide.filter(pl.col("workload").is_in(TIMED))["moved"].drop_nulls().to_list()
    energy = mean_of(wide.filter(pl.col("normalized") < 1), "energy")
    found = {f"erases_{group}": _percent(normalized(8, 28, "OP/2", group=group)) for group in _GROUPS}
    found |= {"normalized_most": max(best, default=None), "normalized_least": min(best, default=None)}
    found["op_7"] = _less(normalized(8, 28, "OP/2"), normalized(8, 7, "OP/2"))
    found["threshold"] = _less(normalized(8, 28, "OP/2"), normalized(8, 28, "OP/4"))
    for percent in OVER_PROVISIONING:
        points = _less(normalized(32, percent, "OP/2"), normalized(8, percent, "OP/2"))
        found[f"pages_{percent}"] = None if points is None else 100 * points
    found["copied"] = _percent(max(moved, default=None))
    found["energy"] = None if energy is None else 100 - 100 * energy
    return found


_GROUPS = {"msr": "MSR", "fiu": "FIU", "zipf": "Zipf"}
_POINTS = {28: 1.0, 7: 6.0}
"""By how many points 32 KiB pages save less, by over-provisioning (Sec. 6)."""


def judged(name: str, ours: float | None) -> Claim:
    """The claim of this name, with the paper's number, the measured one, and the rule for both."""
    kind, _, which = name.partition("_")
    if kind == "response":
        claim = f"response time, {which}, 32 KiB pages, OP 28 %: almost unchanged, mean of the traces"
        return within(name, claim, 0.95, 1.05, ours, "times", "about 1")
    if kind == "erases":
        hot = [expected(row.hot) for row in WORKLOADS.values() if row.group == which]
        paper = 100 * (mean(hot) or 1) - 100
        if which == "fiu":
            claim = "erases, FIU, OP 28 %: fewer, by less than expected (a naive classifier), mean"
            return within(name, claim, paper, 0, ours, "%", f"{paper:.1f} to 0")
        claim = f"erases, {_GROUPS[which]}, OP 28 %: very close to the expected reduction, mean"
        return effect(name, claim, round(paper, 4), ours)
    if kind == "pages":
        claim = f"normalized erases, 32 KiB pages less 8 KiB, OP {which} %, mean"
        return amount(name, claim, _POINTS[int(which)], ours, "points")
    match name:
        case "normalized_most":
            return at_most(name, "normalized erases, OP 28 %: at most those of the baseline", 1, ours, "times")
        case "normalized_least":
            return within(name, "normalized erases, OP 28 %: down to", 0.8, 1.0, ours, "times", "0.8 to 1")
        case "op_7":
            claim = "normalized erases, OP 28 % less OP 7 %, mean: less is saved with 7 %"
            return at_most(name, claim, 0, ours, "times")
        case "threshold":
            claim = "normalized erases, OP 28 %, threshold OP/2 less OP/4, mean"
            return at_most(name, claim, 0, ours, "times")
        case "copied":
            claim = "data copied by collection, 32 KiB pages, OP 28 %, the timed traces: up to 50 % more"
            return at_most(name, claim, 50, ours)
        case _:
            claim = "energy saved where erases fell, 32 KiB pages, OP 28 %, mean: none"
            return at_most(name, claim, 0, ours)


def claims_over_seeds(found: Sequence[dict[str, float | None]], what: str = "") -> list[Claim]:
    """The claims about the means over seeds, each with its spread as a note; `found` has the effects of each seed."""
    means = mean_over_seeds(found)
    return [judged(name, ours).with_note(f"{what}{seeds_note(found, name)}") for name, ours in means.items()]
