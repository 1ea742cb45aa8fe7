"""Confidence intervals of the mean of repetitions with different seeds.

`t`: Student's t, which assumes normal figures; exact quantiles of the distribution (Abramowitz and Stegun, 26.7.3 and
26.7.4). `bootstrap`: percentiles of the means of 10,000 samples with replacement, from a fixed seed; too narrow for few
seeds. Equal values have no interval: they do not vary, and an interval of width zero would claim certainty.

Tests use the probabilities of Student's t, and of F by the continued fraction of the incomplete beta function
(Abramowitz and Stegun, 26.6.2 and 26.5.8). Holm's correction (Scandinavian Journal of Statistics 6, 1979) keeps the
chance of a false claim among several tests at the level of each.
"""

import functools
import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from .errors import InputError

METHODS = ("t", "bootstrap")
LEVEL = 0.95
"""Share of intervals that contain the true mean."""

_SAMPLES = 10_000
_SEED = 20_000


class Interval(NamedTuple):
    """A mean with its interval; a single value has no bounds, and neither have equal values."""

    mean: float
    low: float | None
    high: float | None
    deviation: float | None
    number: int


def _inside(t: float, degrees: int) -> float:
    """P(|T| < t) for this number of degrees of freedom."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2 == 1
    term, total = (cosine, 0.0) if odd else (1.0, 0.0)
    for step in range(1 if odd else 0, degrees - 1, 2):
        total += term
        term *= cosine * cosine * (step + 1) / (step + 2)
    return (angle + sine * total) * 2 / math.pi if odd else sine * total


def p_of_t(t: float, degrees: int) -> float:
    """P(|T| >= t) for one or more degrees of freedom; 0 for an infinite t."""
    return 0.0 if math.isinf(t) else max(0.0, 1 - _inside(abs(t), degrees))


_STEPS, _NEAR, _TINY = 500, 1e-14, 1e-300


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or _TINY)
    found = d
    for step in range(1, _STEPS):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        before = found
        for term in (even, odd):
            d = 1 / (1 + term * d or _TINY)
            c = 1 + term / c or _TINY
            found *= c * d
        if abs(found - before) <= _NEAR * abs(found):
            break
    return found


def _beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log) * _fraction(x, a, b) / a


def p_of_f(f: float, above: int, below: int) -> float:
    """P(F >= f) for these degrees of freedom of numerator and denominator; 0 for an infinite f."""
    return 0.0 if math.isinf(f) else _beta(below / (below + above * f), below / 2, above / 2)


def holm(probabilities: Sequence[float]) -> list[float]:
    """The p-values of several tests, corrected by Holm: reject those at most the level of all."""
    order = sorted(range(len(probabilities)), key=lambda at: probabilities[at])
    found, most = [0.0] * len(order), 0.0
    for rank, at in enumerate(order):
        most = max(most, min(1.0, (len(order) - rank) * probabilities[at]))
        found[at] = most
    return found


@functools.lru_cache(maxsize=256)
def t_quantile(degrees: int, level: float = LEVEL) -> float:
    """The t that |T| does not exceed with probability `level`, for one or more degrees of freedom."""
    low, high = 0.0, 1.0
    while _inside(high, degrees) < level:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _inside(middle, degrees) < level else (low, middle)
    return high


def interval(values: Sequence[float], method: str = "t", level: float = LEVEL) -> Interval:
    """The mean of values by seed, and its interval of this level by `t` or `bootstrap`. Raises InputError."""
    if method not in METHODS:
        raise InputError(f"interval {method!r}: expected one of {', '.join(METHODS)}")
    number, first = len(values), values[0]
    if all(value == first for value in values):
        return Interval(float(first), None, None, 0.0 if number > 1 else None, number)
    mean = math.fsum(values) / number
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (number - 1))
    if method == "t":
        half = t_quantile(number - 1, level) * deviation / math.sqrt(number)
        return Interval(mean, mean - half, mean + half, deviation, number)
    draw = random.Random(_SEED)
    means = sorted(math.fsum(draw.choices(values, k=number)) / number for _ in range(_SAMPLES))
    cut = round((1 - level) / 2 * _SAMPLES)
    return Interval(mean, means[cut], means[_SAMPLES - 1 - cut], deviation, number)
