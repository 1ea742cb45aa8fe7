"""The configurations of a sweep that hold conditions, and the cheapest of them.

The cost is what the sweep varies: fewer dies, less over-provisioning or memory are cheaper, and more load on the same
drive is better. A sweep without such an axis compares the DRAM of the map. No configuration on the frontier is beaten
in all costs by another one that holds. Seeds repeat a configuration, which must hold with each. Ignored: prices, and
values between the points.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import evidence
from ..evidence import holding
from ..metrics import metric_of, unit
from ..result import Result
from .conditions import Condition, conditions
from .finished import FinishedPoints
from .values import Value, axis_text, measures, named_axes

if TYPE_CHECKING:
    import polars as pl

_DRAM = "mapping.bytes_peak"
_COSTS: dict[str, tuple[int, str]] = {
    "ssd.over_provisioning": (1, "over-provisioning of {}"), "ssd.channels": (1, "{} channels"),
    "ssd.chips_per_channel": (1, "{} chips a channel"), "ssd.dies_per_chip": (1, "{} dies a chip"),
    "ssd.planes_per_die": (1, "{} planes a die"), "ssd.blocks_per_plane": (1, "{} blocks a plane"),
    "ftl.cmt": (1, "a cached map of {}"), "buffer.size": (1, "a buffer of {}"),
    "workload.rate_iops": (-1, "{} requests/s"), "workload.rate": (-1, "{} bytes/s"),
    "workload.iodepth": (-1, "a queue depth of {}"), "host.iodepth": (-1, "a queue depth of {}"),
    "workload.numjobs": (-1, "{} jobs"), "host.speedup": (-1, "arrivals {} times as fast"),
}  # fmt: skip
"""Axes with the sign of their cost and their words: 1 where less is cheaper, -1 where more is better."""

_SENTENCES = 3
_REPEATED = "seed"


@dataclass(frozen=True)
class Configuration:
    """A configuration: its axes without seeds, the worst value of each condition's figure, costs, and the verdict."""

    axes: dict[str, Value | None]
    values: tuple[float | None, ...]
    costs: tuple[float, ...]
    holds: bool | None
    """None: unknown, because a figure is not that of a steady drive."""


class Frontier:
    """The configurations of a sweep in order, and the `cheapest` of those that hold `conditions`."""

    def __init__(self, wanted: Sequence[Condition], costs: Sequence[str], found: Sequence[Configuration]) -> None:
        self.conditions = list(wanted)
        self.costs = list(costs)
        self.configurations = list(found)
        self.cheapest = _cheapest(found)

    @property
    def holding(self) -> list[Configuration]:
        """The configurations that hold all conditions, the cheapest ones first."""
        known = {id(each) for each in self.cheapest}
        return self.cheapest + [each for each in self.configurations if each.holds and id(each) not in known]

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        known = [each.holds for each in self.configurations]
        of = holding.counted(known)
        wanted = " and ".join(each.words for each in self.conditions)
        if self.cheapest:
            parts = [self._words(each) for each in self.cheapest[:_SENTENCES]]
            if len(parts) == 1:
                return f"With {parts[0]}, {wanted} {of}."
            more = len(self.cheapest) - _SENTENCES
            rest = f"; {more:,} more are as good" if more > 0 else ""
            return f"{wanted[:1].upper()}{wanted[1:]} with {'; or with '.join(parts)}{rest} {of}."
        asked = " and ".join(map(str, self.conditions))
        said = holding.none_of(asked, known)
        measured = [each for each in self.configurations if None not in each.values]
        if not measured:
            return f"{said}: no figure was measured."
        near = min(measured, key=lambda each: max(map(Condition.miss, self.conditions, each.values)))
        pairs = zip(self.conditions, near.values, strict=True)
        shown = (f"{each.metric.label} of {each.metric.show(value)}" for each, value in pairs)
        return f"{said}; the nearest is {self._words(near)}, with {' and '.join(shown)}."

    def _words(self, each: Configuration) -> str:
        parts = []
        for axis, value in each.axes.items():
            sign, phrase = _COSTS.get(axis, (0, f"{named_axes([axis])[0].partition(' (')[0]} {{}}"))
            text = phrase.format(_number(value))
            if axis in self.costs and self._reaches(each, axis):
                text = f"{text} or more" if sign > 0 else f"up to {text}"
            parts.append(text)
        return ", ".join(parts) or "the base"

    def _reaches(self, each: Configuration, axis: str) -> bool:
        """Whether the dearer (for a load, the lighter) values of an axis hold too, the other axes the same."""
        at, others = self.costs.index(axis), each.axes | {axis: None}
        dearer = [one for one in self.configurations if one.axes | {axis: None} == others]
        dearer = [one for one in dearer if one.costs[at] > each.costs[at]]
        return bool(dearer) and all(one.holds for one in dearer)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: conditions, costs, the sentence, and each configuration with its figures."""
        cheapest = {id(each) for each in self.cheapest}
        names = [each.figure for each in self.conditions]
        return {
            "conditions": [
                {"figure": each.figure, "operator": each.operator, "bound": each.bound, "unit": unit(each.figure)}
                for each in self.conditions
            ],
            "costs": self.costs, "sentence": self.sentence,
            "configurations": [
                {
                    "axes": each.axes, "figures": dict(zip(names, each.values, strict=True)), "holds": each.holds,
                    "cheapest": id(each) in cheapest,
                }
                for each in self.configurations
            ],
        }  # fmt: skip

    def to_polars(self) -> "pl.DataFrame":
        """A row for each configuration: axes, the worst value of each condition's figure, `holds` and `cheapest`."""
        import polars as pl

        rows = self.to_dict()["configurations"]
        return pl.DataFrame(
            [{**row["axes"], **row["figures"], "holds": row["holds"], "cheapest": row["cheapest"]} for row in rows],
            infer_schema_length=None, strict=False,
        )  # fmt: skip

    def rows(self, most: int) -> Iterator[list[str]]:
        """The configurations that hold as text: axes, figures, and a mark of the cheapest; headings come first."""
        axes = list(self.configurations[0].axes) if self.configurations else []
        yield [*axes, *(f"{each.metric.label}\n{each.limit}" for each in self.conditions), ""]
        for at, each in enumerate(self.holding[:most]):
            shown = (of.metric.show(value) for of, value in zip(self.conditions, each.values, strict=True))
            yield [*map(axis_text, each.axes.values()), *shown, "cheapest" if at < len(self.cheapest) else ""]


def _number(value: Value | None) -> str:
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else axis_text(value)


def _cheapest(found: Sequence[Configuration]) -> list[Configuration]:
    """Those that hold and that no other one that holds beats: at least as cheap in all costs, and cheaper in one."""
    best: list[Configuration] = []
    for each in sorted((each for each in found if each.holds), key=lambda each: each.costs):
        beaten = any(one.costs != each.costs and _covers(one.costs, each.costs) for one in best)
        best += [] if beaten else [each]
    return best


def _covers(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))


def frontier(sweep: FinishedPoints) -> Frontier | None:
    """The frontier of a sweep; None for a sweep without conditions. Raises InputError for wrong ones."""
    if "slo" not in sweep.shown:
        return None
    wanted = conditions(sweep.shown["slo"])
    axes = [axis for axis in sweep.axes if axis != _REPEATED]
    places = dict(_places(sweep, axes))
    # Without an axis that costs, memory is the cost.
    costs = list(places) or [_DRAM]
    found = []
    for key, points in sweep.grouped(axes):
        results = [point.result for point in points]
        values = tuple(of.worst([None if each is None else of.of(each) for each in results]) for of in wanted)
        at = tuple(places[axis][axis_text(key[axis])] for axis in places) or (_memory(results),)
        known = [False if each is None else of.known(each) for each in results for of in wanted]
        found.append(Configuration(key, values, at, evidence.all_hold(known)))
    return Frontier(wanted, costs, found)


def _places(sweep: FinishedPoints, axes: Sequence[str]) -> Iterator[tuple[str, Mapping[str, float]]]:
    """The axes that cost, with the cost of each value."""
    for axis in axes:
        values = sweep.values(axis)
        known = measures(axis, values) if axis in _COSTS and len(values) > 1 else None
        if known is not None:
            sign = _COSTS[axis][0]
            numbers = {axis_text(value): sign * (number or 0.0) for value, number in zip(values, known[0], strict=True)}
            yield axis, {**numbers, axis_text(None): 0.0}


def _memory(results: Sequence[Result | None]) -> float:
    found = [metric_of(_DRAM).of(result) for result in results if result is not None]
    return max((value for value in found if value is not None), default=0.0)
