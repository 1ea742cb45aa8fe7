"""Verdicts on a figure of two or more contenders: better, worse, the same within a bound, or undecided.

Runs with several seeds are compared by the logarithms of their ratios, paired by seed, because a seed acts on both runs
alike. Student's t tests whether the ratio differs from 1; two one-sided tests (Schuirmann, Journal of Pharmacokinetics
and Biopharmaceutics 15, 1987) whether the ratio is within the bound. Holm corrects both over all pairs of contenders. A
randomized-block analysis of variance tests whether three or more contenders differ at all.

A single run is judged by the interval of its own windows (`evidence`), and only if the run is steady. So are seeds that
change no figure. Ignored: the dependence of single runs with the same seed, which makes their intervals too wide.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from . import evidence, fair
from .intervals import LEVEL, holm, p_of_f, p_of_t, t_quantile
from .metrics import METRICS, Metric, is_silenced
from .result import Result

BOUND = 0.05
"""The bound of `same`: a ratio within 1/1.05 and 1.05."""
_ALPHA = 1 - LEVEL
_ROUNDING = 1e-12

Word = Literal["better", "worse", "same", "undecided"]


@dataclass(frozen=True)
class Verdict:
    """The verdict on one contender against another; `ratio` is a geometric mean with its 95 % interval.

    `p` is the probability of such a ratio if both were equal, corrected by Holm; None without a test. `within` says
    that the ratio is within `BOUND`, which a difference can be, too. `lasting` is False if the verdict is only on runs
    of this length, because they are not steady. `reason` says why nothing is decided.
    """

    word: Word
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    within: bool = False
    lasting: bool = True
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the bound."""
        return {
            "verdict": self.word, "ratio": self.ratio, "low": self.low, "high": self.high, "p": self.p,
            "within": self.within, "bound": BOUND, "lasting": self.lasting, "reason": self.reason,
        }  # fmt: skip


@dataclass(frozen=True)
class _Estimate:
    """The logarithm of a ratio, its standard error and degrees of freedom; without an error the ratio is exact."""

    log: float
    error: float
    degrees: int
    lasting: bool

    def tests(self) -> tuple[float, float]:
        """P of the ratio 1, and p of a ratio beyond the bound."""
        bound = math.log1p(BOUND)
        if not self.error:
            return float(not self.log), float(abs(self.log) > bound)
        equal = p_of_t(abs(self.log) / self.error, self.degrees)
        nearest = (bound - abs(self.log)) / self.error
        half = p_of_t(abs(nearest), self.degrees) / 2
        return equal, half if nearest > 0 else 1 - half

    def bounds(self) -> tuple[float, float]:
        """The 95 % interval of the ratio."""
        half = self.error and t_quantile(self.degrees) * self.error
        return math.exp(self.log - half), math.exp(self.log + half)


def _values(metric: Metric, result: Result) -> list[float | None]:
    return [metric.of(each) for each in result.repeats or (result,)]


def _of_run(metric: Metric, result: Result) -> tuple[float, float, int] | str:
    """The logarithm of a figure of one run, its error, and the degrees of freedom; or why they are unknown."""
    value, found = metric.of(result), evidence.of(result, ".".join(metric.path))
    if not value or value < 0:
        return f"{result.label} has no such figure"
    if found.verdict != "yes":
        return f"{result.label}: {found.reason}"
    if found.half is None or found.batches < 2:
        return math.log(value), 0.0, 1
    return math.log(value), found.half / t_quantile(found.batches - 1), found.batches - 1


def _of_runs(metric: Metric, one: Result, other: Result) -> _Estimate | str:
    """The ratio of single runs by the intervals of their windows; degrees of freedom by Welch and Satterthwaite."""
    mine, base = _of_run(metric, one), _of_run(metric, other)
    if isinstance(mine, str) or isinstance(base, str):
        return mine if isinstance(mine, str) else str(base)
    squares = mine[1] ** 2 + base[1] ** 2
    spread = mine[1] ** 4 / mine[2] + base[1] ** 4 / base[2]
    return _Estimate(mine[0] - base[0], math.sqrt(squares), max(1, int(squares**2 / spread)) if spread else 1, True)


def _paired(logs: Sequence[float], lasting: bool = True) -> _Estimate:
    """The mean of two or more logarithms of ratios, and its error."""
    mean = math.fsum(logs) / len(logs)
    squares = math.fsum((log - mean) ** 2 for log in logs)
    error = math.sqrt(squares / (len(logs) - 1) / len(logs))
    # Rounding of equal ratios is no spread.
    return _Estimate(
        mean if abs(mean) > _ROUNDING else 0.0, error if error > _ROUNDING else 0.0, len(logs) - 1, lasting
    )


def _estimate(metric: Metric, one: Result, other: Result) -> _Estimate | str:
    """The ratio of a figure of two contenders; or why it is unknown."""
    mine, base = _values(metric, one), _values(metric, other)
    if len(mine) < 2 or len(mine) != len(base):
        return _of_runs(metric, *(each.repeats[0] if each.repeats else each for each in (one, other)))
    if not all(value and value > 0 for value in (*mine, *base)):
        return "not every run has the figure, or it is 0"
    logs = [math.log(a or 1) - math.log(b or 1) for a, b in zip(mine, base, strict=True)]
    if len(set(mine)) == len(set(base)) == 1:
        # The seed acts on neither figure, so that seeds are no sample.
        return _of_runs(metric, one.repeats[0], other.repeats[0])
    return _paired(logs, all(evidence.of(each, ".".join(metric.path)).verdict == "yes" for each in (one, other)))


def _differ(metric: Metric, results: Sequence[Result]) -> float | None:
    """P of equal contenders in randomized blocks, a block for each seed; None without at least two seeds."""
    rows = [_values(metric, result) for result in results]
    seeds, number = len(rows[0]), len(rows)
    if seeds < 2 or number < 2 or not all(len(row) == seeds and all(v and v > 0 for v in row) for row in rows):
        return None
    logs = [[math.log(value or 1) for value in row] for row in rows]
    whole = math.fsum(map(math.fsum, logs)) / (seeds * number)
    means = [math.fsum(row) / seeds for row in logs]
    blocks = [math.fsum(column) / number for column in zip(*logs, strict=True)]
    between = seeds * math.fsum((mean - whole) ** 2 for mean in means)
    rest = math.fsum(
        (logs[at][seed] - means[at] - blocks[seed] + whole) ** 2 for at in range(number) for seed in range(seeds)
    )
    if rest <= 1e-24 * seeds * number:
        # Equal ratios with every seed: exact, or figures on which the seed does not act.
        return None
    degrees = (number - 1) * (seeds - 1)
    return p_of_f(between / (number - 1) / (rest / degrees), number - 1, degrees)


@dataclass(frozen=True)
class Judged:
    """The verdicts on one figure of several contenders, by label; `differ` is p of contenders that are all equal."""

    metric: Metric
    values: Mapping[str, float | None]
    differ: float | None
    _pairs: Mapping[tuple[str, str], Verdict]

    def between(self, one: str, other: str) -> Verdict:
        """The verdict on `one` against `other`."""
        if (one, other) in self._pairs:
            return self._pairs[one, other]
        found = self._pairs[other, one]
        words: dict[Word, Word] = {"better": "worse", "worse": "better"}
        ratio, low, high = (each and 1 / each for each in (found.ratio, found.high, found.low))
        word = words.get(found.word, found.word)
        return Verdict(word, ratio, low, high, found.p, found.within, found.lasting, found.reason)

    def leaders(self) -> list[str]:
        """The contender with the best value, and all that are not decided to be worse; the best first."""
        known = [(label, value) for label, value in self.values.items() if value]
        known.sort(key=lambda each: each[1] if self.metric.better == "low" else -each[1])
        if not known:
            return []
        best = known[0][0]
        return [best, *(label for label, _ in known[1:] if self.between(label, best).word != "worse")]

    def same(self) -> bool:
        """Whether all contenders are known to be within the bound of each other."""
        return bool(self._pairs) and all(each.within for each in self._pairs.values())

    def reason(self) -> str | None:
        """Why a pair is undecided; None if every pair is decided."""
        return next((each.reason for each in self._pairs.values() if each.word == "undecided"), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the figure, leaders, the test of all, and a verdict for each pair."""
        pairs = [{"label": one, "to": other} | self.between(one, other).to_dict() for other, one in self._ordered()]
        return {
            "figure": ".".join(self.metric.path), "leaders": self.leaders(),
            "differ": None if self.differ is None else {"p": self.differ, "method": "randomized blocks"},
            "pairs": pairs,
        }  # fmt: skip

    def _ordered(self) -> list[tuple[str, str]]:
        return list(combinations(self.values, 2))


def _unfair(metric: Metric, one: Result, other: Result) -> str | None:
    """The condition that differs between two contenders, so that the figure does not compare."""
    found = (each for each in fair.checks([other, one]) if is_silenced(metric.path, fair.silenced([each])))
    return next((f"they differ in {each.rule}" for each in found), None)


def judge(metric: Metric, results: Sequence[Result]) -> Judged:
    """The verdicts on a figure that has a better side. Labels must differ, and repeats must be paired by seed."""
    estimates: dict[tuple[str, str], _Estimate | str] = {}
    is_fair = True
    for other, one in combinations(results, 2):
        unfair = _unfair(metric, one, other)
        is_fair = is_fair and not unfair
        estimates[one.label, other.label] = unfair or _estimate(metric, one, other)
    tested = {pair: each.tests() for pair, each in estimates.items() if isinstance(each, _Estimate)}
    unequal = dict(zip(tested, holm([equal for equal, _ in tested.values()]), strict=True))
    within = dict(zip(tested, holm([beyond for _, beyond in tested.values()]), strict=True))
    pairs: dict[tuple[str, str], Verdict] = {}
    for pair, found in estimates.items():
        if isinstance(found, str):
            pairs[pair] = Verdict("undecided", reason=found)
            continue
        is_same = within[pair] <= _ALPHA
        low, high = found.bounds()
        word: Word = "same" if is_same else "undecided"
        if unequal[pair] <= _ALPHA and found.log:
            word = "better" if (found.log < 0) == (metric.better == "low") else "worse"
        more = f", too wide for {len(tested)} pairs" if low > 1 or high < 1 else ""
        reason = f"the ratio is {low:.3g} to {high:.3g}{more}" if word == "undecided" else None
        pairs[pair] = Verdict(word, math.exp(found.log), low, high, unequal[pair], is_same, found.lasting, reason)
    values = {each.label: metric.of(each) for each in results}
    return Judged(metric, values, _differ(metric, results) if is_fair else None, pairs)


def leading(values: Mapping[str, Sequence[float]], better: str) -> list[str]:
    """The label with the best geometric mean of positive figures, and all that are not decided to be worse.

    Figures of equal places are of one seed; Holm corrects the paired tests against the best. One figure each decides
    nothing, and then the best is alone.
    """
    logs = {label: [math.log(value) for value in of] for label, of in values.items()}
    sign = -1 if better == "high" else 1
    order = sorted(logs, key=lambda label: sign * math.fsum(logs[label]) / len(logs[label]))
    if not order or len(logs[order[0]]) < 2:
        return [label for label in order if logs[label] == logs[order[0]]]
    best, others = order[0], order[1:]
    tested = [_paired([a - b for a, b in zip(logs[label], logs[best], strict=True)]).tests()[0] for label in others]
    return [best, *(label for label, p in zip(others, holm(tested), strict=True) if p > _ALPHA)]


def verdict(metric: Metric, one: Result, other: Result) -> Verdict:
    """The verdict on a figure of `one` against `other`, each a run or the mean of repeats."""
    return judge(metric, [other, one]).between(one.label, other.label)


def all_verdicts(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The verdicts on every figure that has a better side and that some result has, as plain data."""
    if len(results) < 2:
        return []
    shown = [metric for metric in METRICS if metric.better and any(metric.of(result) for result in results)]
    return [judge(metric, results).to_dict() for metric in shown]
