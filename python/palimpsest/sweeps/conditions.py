"""Conditions on the figures of a run, such as `read.p99<500us,dwpd>=1`: figure, operator and bound.

A figure has the name of docs/results.md, or a short word. The bound has a unit of the figure. Ignored: conditions that
compare two figures, or that depend on an axis.
"""

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from .. import evidence
from ..errors import InputError, did_you_mean
from ..metrics import METRICS, SHORT, Metric, is_figure, is_timed, metric_of, unit
from ..result import Result
from .values import UNITS

_OPERATORS: dict[str, tuple[Callable[[float, float], bool], str]] = {
    "<": (operator.lt, "stays below"), "<=": (operator.le, "is at most"),
    ">": (operator.gt, "stays above"), ">=": (operator.ge, "is at least"),
}  # fmt: skip
_CONDITION = re.compile(r"\s*([\w.-]+)\s*([<>=!~]+)\s*([-+0-9.eE_]*[0-9.])\s*([A-Za-z%/]*)\s*")
_UNITS_OF: dict[str, dict[str, float]] = {
    base: {name: float(factor) for name, (factor, of) in UNITS.items() if of == base}
    for base in ("ns", "bytes", "bytes_per_s")
} | {
    "uJ": {"uJ": 1, "mJ": 1e3, "J": 1e6, "kJ": 1e9}, "s": {"s": 1, "min": 60, "h": 3600}, "W": {"W": 1, "": 1},
    "TB": {"TB": 1, "": 1}, "years": {"years": 1, "year": 1, "": 1}, "": {"": 1, "%": 0.01, "k": 1e3, "M": 1e6},
}  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """A figure by name, an operator, and the bound in the figure's unit."""

    figure: str
    operator: str
    bound: float

    @cached_property
    def metric(self) -> Metric:
        """Heading, path and format of the figure."""
        return metric_of(self.figure)

    def of(self, result: Result) -> float | None:
        """The figure of a result; None if not measured or not modelled."""
        return self.metric.of(result)

    def holds(self, value: float | None) -> bool:
        """Whether a value meets the condition; a value that was not measured never does."""
        return value is not None and _OPERATORS[self.operator][0](value, self.bound)

    def known(self, result: Result) -> bool | None:
        """Whether a result meets the condition.

        None if unknown: the figure is not that of a steady drive, or its interval has the bound inside.
        """
        value, proof = self.of(result), evidence.of(result, self.figure)
        if value is None:
            return None if evidence.leaves_out(result, self.figure) else False
        return evidence.holds(self.holds, value, proof)

    def worst(self, values: list[float | None]) -> float | None:
        """The value farthest on the wrong side; None if some value is not measured."""
        known = [value for value in values if value is not None]
        return None if len(known) < len(values) or not known else (max if self.operator[0] == "<" else min)(known)

    def miss(self, value: float | None) -> float:
        """How far a value is from the bound, as a share of the larger: 0 if the condition holds, 1 if not measured."""
        if self.holds(value):
            return 0.0
        return 1.0 if value is None else abs(value - self.bound) / (max(abs(value), abs(self.bound)) or 1.0)

    @property
    def words(self) -> str:
        """The condition in a sentence: `read p99 stays below 500 us`."""
        return f"{self.metric.label} {_OPERATORS[self.operator][1]} {self.metric.show(self.bound)}"

    @property
    def limit(self) -> str:
        """Operator and bound: `< 500 us`."""
        return f"{self.operator} {self.metric.show(self.bound)}"

    def __str__(self) -> str:
        return f"{self.metric.label} {self.limit}"


def conditions(text: str) -> list[Condition]:
    """Reads conditions, separated by commas. Raises InputError with the expected form and the nearest names."""
    return [_condition(each.strip()) for each in text.split(",")]


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is no condition; expected a figure, <, <=, > or >=, and a bound: read.p99<500us")
    name, sign, digits, suffix = match.groups()
    if sign not in _OPERATORS:
        raise InputError(f"{text}: {sign} is no comparison; expected one of <, <=, > and >=")
    figure = SHORT.get(name.replace("p99.99", "p9999").replace("p99.9", "p999").lower(), name)
    if not is_figure(figure) or figure.startswith("config."):
        known = [*SHORT, *(".".join(each.path) for each in METRICS)]
        said = did_you_mean(name, known) or f"; expected one such as {', '.join((*list(SHORT)[:10], 'read.p99'))}"
        raise InputError(f"{text}: no result has a figure {name}{said}")
    factors = _UNITS_OF[unit(figure)]
    if suffix not in factors:
        shown = ", ".join(each or "none" for each in factors)
        said = f"{suffix} is no unit" if suffix else "a unit is missing"
        raise InputError(f"{text}: {said} of {figure}; expected one of {shown}")
    try:
        number = Decimal(digits.replace("_", ""))
        bound = float(number * Decimal(str(factors[suffix])))
    except ArithmeticError:
        bound = math.nan
    if not math.isfinite(bound):
        raise InputError(f"{text}: {digits} is no number; expected one such as 500 or 1.5")
    if bound < 0 or (bound == 0 and sign == "<"):
        raise InputError(f"{text}: {figure} is never below 0; expected a larger bound")
    return Condition(figure, sign, bound)


def parsed(text: str) -> str:
    """The text of conditions, for an option. Raises InputError as `conditions`."""
    conditions(text)
    return text


def judged(result: Result, wanted: list[Condition]) -> Result:
    """The result with `slo`: for each condition figure, operator, bound, unit, value, and whether it holds.

    `holds` is None if the run does not tell (`Condition.known`); `reason` is that of a figure that is not steady.
    """
    found = []
    for each in wanted:
        value, label = each.of(result), each.metric.label
        proof = evidence.of(result, each.figure)
        found.append({
            "figure": each.figure, "operator": each.operator, "bound": each.bound, "unit": unit(each.figure),
            "value": value, "holds": each.known(result), "reason": proof.reason, "condition": str(each),
            "shown": f"no {label}" if value is None else f"{label} {each.metric.show(value)}",
        })  # fmt: skip
    return Result(result.to_dict() | {"slo": found}, result.series, result.configuration)


def expect_measured(wanted: list[Condition], fidelity: str) -> None:
    """Raises InputError for a condition on a figure that a run at this fidelity does not measure."""
    for each in wanted:
        if fidelity != "timed" and is_timed(each.figure):
            what = f"{each}: {each.figure} is null at {fidelity} fidelity, which has no times"
            raise InputError(f"{what}; expected fidelity timed, or a figure such as wa")
