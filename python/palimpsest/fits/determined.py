"""The keys that measurements determine: the range of each within which the fit is as good, and flat directions.

At the best point the residuals r, weighted as in the search, are taken as linear in the numbers, each as a part of its
range; J are their derivatives, by differences. The mean square of r over g groups changes by 2 r'J d / g + d' (J'J / g)
d in a direction d: the best point is not its minimum, because the search also holds to the start. The fit is as good
while this grows by no more than `SLACK` of itself, or the square of Student's t over the degrees of freedom of the
residuals, or is no larger than the drive against itself with other seeds. Degrees of freedom: figures of a group share
a defect of the model, so m of them count as sqrt(m) observations; less one for each number. The ends of a range are the
largest moves along any direction within this limit, so keys that can replace each other have wide ranges. A direction
is flat if the fit is still as good half of the space away.

Choices are as good if an evaluated point with the choice is. Chance depends on choices: greedy collection varies less
between seeds than cost-benefit, so the chance of one must not exclude the other. So the best points of other choices,
the rivals, move to the minimum of the linear model and run with other seeds too, and ranges hold for the drives of all
choices that are as good; the derivatives are those at the best point.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from .search import Budget, Evaluations, Point, Task, count, departures, loss, objective, residuals
from .space import Key, Values

SLACK = 0.21
"""Allowed growth of the mean square of the residuals: the root grows by a tenth."""
_LEAST = 0.01
"""The same for an exact fit: a tenth of a tolerance."""
_STEP = 0.04
_SEEDS = (2, 3, 4)
"""Seeds of the runs that estimate chance; other runs have seed 1."""
_BETTER = 0.99
_DAMPINGS = (1e-3, 3e-2, 1.0)
"""Steps that are tried side by side: damping as a part of the mean of the squares of the derivatives."""
_RIVALS = 3
"""Most combinations of other choices that run with other seeds."""
_RIVAL = 4.0
"""Their mean square is at most this multiple of the allowed one: the root is twice as large."""


def step_points(task: Task) -> int:
    """Points of a step of `improve`."""
    return 2 * sum(not key.choices for key in task.keys) + len(_DAMPINGS)


def range_points(task: Task) -> int:
    """Points of `ranges`."""
    choices = math.prod(len(key.choices) or 1 for key in task.keys)
    rivals = min(_RIVALS, choices - 1)
    return 2 * sum(not key.choices for key in task.keys) + len(_SEEDS) + (1 + len(_SEEDS)) * rivals


@dataclass(frozen=True)
class Range:
    """The range of a key with equally good fits, or the equally good choices.

    `leans` is `low` or `high` if the best value is that bound of the space; `flat` has keys that can replace this one.
    """

    key: Key
    best: float | str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    leans: str = ""
    flat: tuple[str, ...] = ()

    @property
    def is_determined(self) -> bool:
        """Whether the range is less than half of the space, and one choice is best."""
        if self.key.choices:
            return len(self.choices) == 1
        assert self.low is not None
        assert self.high is not None
        return not self.flat and self.key.part(self.high) - self.key.part(self.low) < 0.5


@dataclass(frozen=True)
class _Chance:
    """The variance of a residual between seeds, and the mean square that 19 of 20 seeds do not exceed.

    `groups` is the number of groups that vary, as a count of independent observations.
    """

    variance: float
    most: float
    groups: float = 1.0


def _chance(task: Task, evaluations: Evaluations, budget: Budget, best: Point) -> _Chance:
    """Runs the best point with other seeds; measurements whose runs have no seed have no chance.

    A group is one observation: the difference of two seeds is a sum over n groups of squares of normal numbers, with
    variances estimated from a few seeds: 1 + 2 sqrt(2 / n) of its mean, times the ratio of Student's t to normal.
    """
    others = [replace(task, drive=replace(task.drive, seed=seed)) for seed in _SEEDS]
    found = [best, *(evaluations.points(other, [best.values], budget)[0] for other in others)]
    pairs = list(combinations([residuals(task, point) for point in found], 2))
    by_group: dict[tuple[int, str], float] = {}
    for at, group in enumerate(task.observations()):
        square = sum((one[at] - other[at]) ** 2 for one, other in pairs) / len(pairs)
        by_group[group] = by_group.get(group, 0.0) + square / 2
    total = sum(by_group.values())
    if not total:
        return _Chance(0.0, 0.0)
    noisy = total**2 / sum(each**2 for each in by_group.values())
    most = 2 * total * (1 + 2 * math.sqrt(2 / noisy)) * (_student(len(_SEEDS) * noisy) / _NORMAL) ** 2
    return _Chance(total / count(task), most / count(task), noisy)


_NORMAL = 1.96


def _student(degrees: float) -> float:
    """Student's t at the normal quantile `_NORMAL`, by the expansion of Cornish and Fisher."""
    z = _NORMAL
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


def _allowed(task: Task, best: Point, chance: _Chance) -> float:
    """The mean square up to which a fit is as good as the best: the chance of the true drive."""
    observations = sum(map(math.sqrt, Counter(task.observations()).values()))
    degrees = max(1.0, observations - sum(not key.choices for key in task.keys))
    square = loss(task, best) ** 2
    return max(square * (1 + max(SLACK, _student(degrees) ** 2 / degrees)) + _LEAST, chance.most)


def choices_of(point: Point) -> tuple[str, ...]:
    """The choices of a point."""
    return tuple(value for value in point.values.values() if isinstance(value, str))


def _rivals(task: Task, allowed: float, best: Point, points: Sequence[Point]) -> list[Point]:
    """The best point of each combination of other choices that may be as good, given its own chance."""
    found = {choices_of(best): best}
    for point in sorted(points, key=lambda point: loss(task, point)):
        if loss(task, point) ** 2 <= _RIVAL * allowed:
            found.setdefault(choices_of(point), point)
    return list(found.values())[1 : 1 + _RIVALS]


def _is_likely(task: Task, best: Point, chance: _Chance, rival: Point, own: _Chance) -> bool:
    """Whether a rival passes a test of likelihoods: much chance explains every residual, but predicts none.

    Residuals are taken as normal, with the variance of two seeds and of the defect of the model: the residual of the
    best point beyond chance.
    """
    square = loss(task, best) ** 2
    defect = max(_LEAST, square - 2 * chance.variance)
    before, after = (2 * each.variance + defect for each in (chance, own))
    ratio = math.log(after / before) + loss(task, rival) ** 2 / after - square / before
    return ratio * min(chance.groups, own.groups) <= _NORMAL**2


def _moved(key: Key, values: Values, by: float) -> Values:
    value = values[key.name]
    assert isinstance(value, float)
    if key.whole:
        return {**values, key.name: min(key.high, max(key.low, value + math.copysign(1.0, by)))}
    return {**values, key.name: key.at(key.part(value) + by)}


def _derivatives(
    task: Task, evaluations: Evaluations, budget: Budget, best: Point, keys: Sequence[Key]
) -> tuple[list[list[float]], list[Point]]:
    """A column for each key, and the points evaluated for them."""
    wanted = [_moved(key, best.values, by) for key in keys for by in (-_STEP, _STEP)]
    points = evaluations.points(task, wanted, budget)
    columns = []
    for at, key in enumerate(keys):
        below, above = points[2 * at : 2 * at + 2]
        least, most = (key.part(_number(point.values, key)) for point in (below, above))
        columns.append(
            [(b - a) / (most - least) for a, b in zip(residuals(task, below), residuals(task, above), strict=True)]
        )
    return columns, points


def _number(values: Values, key: Key) -> float:
    value = values[key.name]
    assert isinstance(value, float)
    return value


def improve(
    task: Task, evaluations: Evaluations, budget: Budget, best: Point, rounds: int = 6
) -> tuple[Point, list[Point]]:
    """Levenberg-Marquardt steps from the best point; the last better point, and all evaluated ones."""
    import numpy as np

    keys = [key for key in task.keys if not key.choices and not key.whole]
    points: list[Point] = []
    for _ in range(rounds if keys else 0):
        if budget.is_late():
            break
        columns, found = _derivatives(task, evaluations, budget, best, keys)
        points += found
        away = departures(task, best.values)
        prior = [[1 / key.spread if key.name == name else 0.0 for key in keys] for name in away]
        jacobian = np.vstack([np.array(columns).T, *prior])
        wrong = [*residuals(task, best), *away.values()]
        normal = jacobian.T @ jacobian
        tried: list[Values] = []
        for damping in _DAMPINGS:
            damped = normal + (damping * np.trace(normal) / len(keys) + 1e-12) * np.eye(len(keys))
            step = -np.linalg.solve(damped, jacobian.T @ wrong)
            parts = {
                key.name: key.at(key.part(_number(best.values, key)) + float(by))
                for key, by in zip(keys, step, strict=True)
            }
            tried.append({**best.values, **parts})
        found = evaluations.points(task, tried, budget)
        points += found
        better = min([best, *found, *points], key=lambda point: objective(task, point))
        if objective(task, better) > _BETTER * objective(task, best):
            return min((best, better), key=lambda point: objective(task, point)), points
        best = better
    return best, points


@dataclass(frozen=True)
class _Linear:
    """The residuals as linear in the numbers: derivatives at the best point, and the growth of the mean square."""

    task: Task
    keys: Sequence[Key]
    jacobian: Any
    values: Any
    vectors: Any

    @classmethod
    def of(cls, task: Task, keys: Sequence[Key], columns: Sequence[Sequence[float]], variance: float) -> "_Linear":
        """From derivatives of residuals that have a `variance` between seeds."""
        import numpy as np

        jacobian = np.array(columns).reshape(len(keys), len(task.targets())).T
        growth = jacobian.T @ jacobian / count(task)
        # Chance in the differences would make keys look better determined than they are.
        growth -= np.diag([min(2 * variance / (2 * _STEP) ** 2, 0.9 * part) for part in np.diag(growth)])
        return cls(task, keys, jacobian, *np.linalg.eigh(growth))

    def reach(self, point: Point, room: float) -> tuple[list[float], list[float]]:
        """The place of the minimum in parts of the ranges, and the moves from there if the mean square grows by room.

        The growth counts from the point.
        """
        import numpy as np

        # No move is longer than the space.
        inverse = self.vectors @ np.diag(1 / np.maximum(self.values, room)) @ self.vectors.T
        gradient = self.jacobian.T @ np.array(residuals(self.task, point)) / count(self.task)
        parts = np.array([key.part(_number(point.values, key)) for key in self.keys])
        widths = np.sqrt((room + float(gradient @ inverse @ gradient)) * np.diag(inverse))
        return (parts - inverse @ gradient).tolist(), widths.tolist()

    def flat(self, room: float) -> dict[str, tuple[str, ...]]:
        """The keys that can replace each other: the fit is as good half of the space away in their direction."""
        found: dict[str, tuple[str, ...]] = {}
        for value, vector in zip(self.values, self.vectors.T, strict=True):
            share = [key.name for key, part in zip(self.keys, vector, strict=True) if abs(part) > 0.35]
            for name in share if value < room / 0.25 else ():
                found[name] = tuple(dict.fromkeys((*found.get(name, ()), *share)))
        return found


def ranges(
    task: Task, evaluations: Evaluations, budget: Budget, best: Point, points: Sequence[Point]
) -> tuple[list[Range], list[Point]]:
    """The range of each key, and the points that fit as well as the best; `points` are all evaluated ones."""
    chance = _chance(task, evaluations, budget, best)
    allowed = _allowed(task, best, chance)
    keys = [key for key in task.keys if not key.choices]
    columns, found = _derivatives(task, evaluations, budget, best, keys)
    linear = _Linear.of(task, keys, columns, chance.variance)
    points = [*points, *found]
    room = allowed - loss(task, best) ** 2
    limits = {choices_of(best): allowed}
    centres = [best]
    for rival in _rivals(task, allowed, best, points):
        # The search moved the numbers with other choices, or in some groups alone.
        parts, _ = linear.reach(rival, room)
        values = {**rival.values, **{key.name: key.at(part) for key, part in zip(keys, parts, strict=True)}}
        moved = evaluations.points(task, [values], budget)[0]
        points.append(moved)
        centre = min(rival, moved, key=lambda point: loss(task, point))
        own = _chance(task, evaluations, budget, centre)
        limit = max(allowed, own.most) if _is_likely(task, best, chance, centre, own) else allowed
        limits[choices_of(rival)] = limit
        centres += [centre] if loss(task, centre) ** 2 <= limit else []
    ends: list[tuple[float, ...]] = [() for _ in keys]
    for centre in centres:
        reached = linear.reach(centre, max(_LEAST, limits[choices_of(centre)] - loss(task, centre) ** 2))
        ends = [(*each, part - width, part + width) for each, part, width in zip(ends, *reached, strict=True)]
    spans = {key.name: each for key, each in zip(keys, ends, strict=True)}
    good = [point for point in points if loss(task, point) ** 2 <= limits.get(choices_of(point), allowed)]
    return [_range(key, best, good, spans.get(key.name, ()), linear.flat(room)) for key in task.keys], good


def _range(
    key: Key, best: Point, good: Sequence[Point], ends: Sequence[float], flat: dict[str, tuple[str, ...]]
) -> Range:
    value = best.values[key.name]
    if isinstance(value, str):
        chosen = {str(point.values[key.name]) for point in good} | {value}
        return Range(key, value, choices=tuple(each for each in key.choices if each in chosen))
    part = key.part(value)
    reached = [part, *ends, *(key.part(_number(point.values, key)) for point in good)]
    leans = "low" if part < 0.01 else "high" if part > 0.99 else ""
    low, high = key.at(min(reached)), key.at(max(reached))
    return Range(key, value, low, high, leans=leans, flat=flat.get(key.name, ()))
