"""A fit: counts first, then times; then the determined ranges, and predictions of held-out groups.

Counted targets (write amplification) do not depend on times. So the keys that change them are fitted to them alone, in
runs without an engine, and fixed; the others are fitted to the timed targets.
"""

import fnmatch
import hashlib
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .. import states
from ..errors import InputError
from ..files import digest
from ..parameters import cores
from ..sweeps.runs import Runner, runner
from ..sweeps.task import simulator
from .determined import Range, choices_of, improve, range_points, ranges, step_points
from .files import read_all
from .measured import How, Measurement, Target
from .search import Budget, Evaluations, Point, Task, minimise, objective, prior, residuals, weighed
from .space import Drive, Key, Values, default_space, parse_all, values_of
from .work import Work

EFFECT, SEARCH, CHOICES, ALL, RANGES = "effect of keys", "search", "other choices", "all groups", "ranges"
PREDICT = "predictions"
"""Steps of a stage, and of the end."""

_EVALUATIONS = "evaluations.jsonl"
"""The file of the evaluated points in the folder of a fit."""


@dataclass(frozen=True)
class Settings:
    """The settings of a fit; see `palimpsest.fit`. Minutes and evaluations limit each stage."""

    start: str
    ftl: str | None = None
    overrides: tuple[str, ...] = ()
    vary: tuple[str, ...] = ()
    hold_out: tuple[str, ...] = ()
    evaluations: int = 80
    minutes: float | None = None
    seed: int = 1
    jobs: int | None = 1
    engine: str = "local"
    address: str | None = None
    how: How = field(default_factory=How)


@dataclass(frozen=True)
class Stage:
    """A fit of `counts` or `times`; `left_out` has the residual of each group at the point that the others choose.

    `others` are points that fit as well as the best, far from it and from each other.
    """

    name: str
    task: Task
    best: Point
    ranges: tuple[Range, ...]
    others: tuple[Values, ...]
    evaluations: int
    left_out: dict[str, float]


Ours = tuple[dict[str, float | None], ...]
"""Our figures by id of the target, for each measurement."""


@dataclass(frozen=True)
class Fit:
    """The result of a fit.

    `ours` and `start` have, for each measurement, our figures by id of the target at the found drive and at the first;
    `others` at drives that fit as well, if groups are held out; `held_out` has the groups that the search did not see,
    `without_effect` the keys that change no target.
    """

    settings: Settings
    measurements: tuple[Measurement, ...]
    stages: tuple[Stage, ...]
    drive: Drive
    ours: Ours
    start: Ours
    others: tuple[Ours, ...]
    held_out: tuple[frozenset[str], ...]
    without_effect: tuple[str, ...]

    @property
    def is_validated(self) -> bool:
        """Whether any group was held out."""
        return any(self.held_out) or any(stage.left_out for stage in self.stages)

    def of(self, *, held_out: bool, at: Ours | None = None) -> list[tuple[Measurement, Target, float | None]]:
        """Figures beside ours, or figures `at` another drive, of held-out groups or of the others."""
        return [
            (measurement, target, ours.get(target.id))
            for measurement, ours, hidden in zip(self.measurements, at or self.ours, self.held_out, strict=True)
            for target in measurement.targets
            if (target.group in hidden) is held_out
        ]


def _groups(measurement: Measurement) -> list[str]:
    return list(dict.fromkeys(target.group for target in measurement.targets))


def _held_out(measurements: Sequence[Measurement], settings: Settings) -> tuple[frozenset[str], ...]:
    """The held-out groups of each measurement. Raises InputError for a wrong share or pattern, or if none is left."""
    hidden: list[set[str]] = [set() for _ in measurements]
    for text in settings.hold_out:
        before = sum(map(len, hidden))
        for measurement, out in zip(measurements, hidden, strict=True):
            groups = _groups(measurement)
            if text.endswith("%"):
                count = round(_share(text) * len(groups))
                # The last groups of a measurement in time order, else random ones.
                late = groups[len(groups) - count :]
                out |= set(late if measurement.counted else random.Random(settings.seed).sample(groups, count))
            else:
                out |= set(fnmatch.filter(groups, text))
        if sum(map(len, hidden)) == before:
            some = ", ".join(group for each in measurements for group in _groups(each)[:4])
            raise InputError(
                f"--hold-out {text}: no group is called so; expected a share such as 25%, or groups as in {some}"
            )
    if all(set(_groups(each)) <= out for each, out in zip(measurements, hidden, strict=True)):
        raise InputError("--hold-out: all groups are held out; expected some that the search may see")
    return tuple(frozenset(out) for out in hidden)


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise InputError(f"--hold-out {text}: expected a share between 0% and 100%, or a pattern of groups")
    return share


def kept(folder: Path) -> int:
    """The number of evaluated points that a fit keeps in a folder."""
    try:
        return (folder / _EVALUATIONS).read_bytes().count(b"\n")
    except OSError:
        return 0


def fit(
    paths: Sequence[Path],
    settings: Settings,
    folder: Path | None = None,
    work: Work | None = None,
) -> Fit:
    """Fits a drive; resumes from evaluations in `folder`; `work` shows the progress.

    Raises InputError, also for a varied key without effect.
    """
    # Points that differ in times share a preconditioned drive.
    states.share()
    with runner(settings.engine, settings.address, settings.jobs) as run:
        return _fit(paths, settings, folder, work, None if settings.engine == "local" else run)


def _fit(
    paths: Sequence[Path],
    settings: Settings,
    folder: Path | None,
    work: Work | None,
    run: Runner | None,
) -> Fit:
    measurements = read_all(paths, settings.how)
    drive = Drive(settings.start, settings.ftl, settings.overrides)
    try:
        drive.check()
    except InputError as error:
        # The option of the drive is `--start` here.
        raise InputError(re.sub(r"^--ssd ", "--start ", str(error))) from None
    hidden = _held_out(measurements, settings)
    seen = tuple(frozenset(_groups(each)) - out for each, out in zip(measurements, hidden, strict=True))
    evaluations = Evaluations(
        cores(settings.jobs),
        None if folder is None else folder / _EVALUATIONS,
        _depends_on(paths, settings),
        run,
        work,
    )
    keys = parse_all(settings.vary, drive) if settings.vary else _default(drive, measurements)
    task = Task(drive, keys, measurements, seen)
    if (passes := task.work(counted=True)) and not task.work(counted=False) and not _has_collected(task, settings.how):
        raise InputError(
            f"the measured drive had not begun to collect garbage, after {passes:.2g} passes over the drive; expected "
            "counters until the host has written the capacity three times, or --precondition for older writes"
        )
    _plan(evaluations.work, task, task, settings)
    counted, timed = _effective(task.early(), evaluations)
    if task.early() is not task and (idle := tuple(key for key in keys if key not in (*counted, *timed))):
        more = _effective(replace(task, keys=idle), evaluations)
        counted, timed = (*counted, *more[0]), (*timed, *more[1])
    _plan(evaluations.work, replace(task, keys=counted), replace(task, keys=timed), settings)
    useless = [key.name for key in keys if key not in counted and key not in timed]
    if useless and settings.vary:
        raise InputError(
            f"--vary {', '.join(useless)}: no figure of the measurements changes with it; "
            f"expected {_too_short(task, settings.how) or 'other keys'}"
        )
    if not counted and not timed:
        expected = _too_short(task, settings.how) or "--vary KEY=LOW..HIGH with a key that the workload depends on"
        raise InputError(f"no key that is varied moves a figure; expected {expected}")
    stages = []
    for name, own, is_counted in (("counts", counted, True), ("times", timed, False)):
        groups = tuple(
            chosen if measurement.counted is is_counted else frozenset[str]()
            for measurement, chosen in zip(measurements, seen, strict=True)
        )
        if own and any(groups):
            task = Task(drive, own, measurements, groups, values_of(drive, own))
            stage = _stage(name, task, evaluations, settings)
            stages.append(stage)
            drive = drive.at(own, stage.best.values)
    at: dict[str, float | str] = {name: value for stage in stages for name, value in stage.best.values.items()}
    alike = [{**at, **values} for stage in stages for values in stage.others] if any(hidden) else []
    first = Drive(settings.start, settings.ftl, settings.overrides)
    fitted = [key for stage in stages for key in stage.task.keys]
    with evaluations.work.step(PREDICT, True, False):
        found, *others = _ours(first, fitted, [at, *alike], task, evaluations)
        (start,) = _ours(first, [], [{}], task, evaluations)
    return Fit(settings, measurements, tuple(stages), drive, found, start, tuple(others), hidden, tuple(useless))


def _plan(work: Work, counts: Task, times: Task, settings: Settings) -> None:
    """Announces the work that each step may take."""
    for counted, task in ((True, counts), (False, times)):
        short, long = (each.work(counted=counted) if task.keys else 0.0 for each in (task.early(), task))
        others = sum(len(key.choices) - 1 for key in task.keys if key.choices)
        steps = _STEPS * step_points(task)
        last = _all(task)
        work.expect(counted, {
            EFFECT: short * sum(len(key.ends()) for key in task.keys), SEARCH: short * settings.evaluations,
            CHOICES: short * (1 + others) * (1 + steps), ALL: (long > short) * long * (_CONTENDERS + steps),
            RANGES: long * range_points(task),
            PREDICT: last.work(counted=counted) * (2 + _OTHERS * (last.groups != task.groups)),
        })  # fmt: skip


_STEPS = 2
"""Assumed steps from a point to the best near it."""


def _depends_on(paths: Sequence[Path], settings: Settings) -> str:
    """A digest of the inputs of evaluations beside the drive's overrides: simulator, files, settings."""
    start = Path(settings.start)
    files = [digest(path) for path in (*paths, *([start] if start.is_file() else []))]
    return hashlib.blake2b(repr([simulator(), files, settings.how]).encode(), digest_size=8).hexdigest()


def _default(drive: Drive, measurements: Sequence[Measurement]) -> tuple[Key, ...]:
    return default_space(
        drive, counted=any(each.counted for each in measurements), timed=any(not each.counted for each in measurements)
    )


def _all(task: Task) -> Task:
    """The task with all groups of the measurements."""
    return replace(task, groups=tuple(frozenset(_groups(each)) for each in task.measurements))


def _ours(
    drive: Drive, keys: Sequence[Key], wanted: Sequence[Values], task: Task, evaluations: Evaluations
) -> list[Ours]:
    """Our figures of all groups at each point."""
    found = []
    for point in evaluations.points(_all(replace(task, drive=drive, keys=tuple(keys))), wanted, Budget(None)):
        values = iter(point.ours)
        found.append(tuple({target.id: next(values) for target in each.targets} for each in task.measurements))
    return found


def _has_collected(task: Task, how: How) -> bool:
    """Whether counts depend on more than the writes that the buffer and open word lines hold."""
    return bool(how.precondition) or any(target.real > _COLLECTS for target in task.targets())


def _too_short(task: Task, how: How) -> str:
    """The options that describe another drive, if ours has not collected garbage; else empty."""
    passes = task.work(counted=True)
    if how.precondition or not how.capacity or task.work(counted=False) or passes >= 1:
        return ""
    return (
        f"--workload and --capacity of the real drive, because it collected garbage within the first {passes:.2g} "
        "passes over the drive, and ours does not"
    )


_COLLECTS = 1.02
"""Write amplification of a drive that has begun to collect garbage."""


def _middle(key: Key) -> float | str:
    return key.choices[0] if key.choices else key.at(0.5)


def _effective(task: Task, evaluations: Evaluations) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """The keys that change counted targets, and those that change only timed ones, each varied from end to end."""
    keys = task.keys
    middle: Values = {key.name: _middle(key) for key in keys}
    wanted = [{**middle, key.name: value} for key in keys for value in key.ends()]
    for values in wanted:
        task.drive.at(keys, values).check()
    with evaluations.work.step(EFFECT, True, False):
        points = iter(evaluations.points(task, wanted, Budget(None)))
    is_counted = [
        measurement.counted
        for measurement, chosen in zip(task.measurements, task.groups, strict=True)
        for target in measurement.targets
        if target.group in chosen
    ]
    counted, timed = [], []
    for key in keys:
        found = [next(points).ours for _ in key.ends()]
        moved = [any(each[at] != found[0][at] for each in found) for at in range(len(is_counted))]
        if any(moves and of for moves, of in zip(moved, is_counted, strict=True)):
            counted.append(key)
        elif any(moved):
            timed.append(key)
    return tuple(counted), tuple(timed)


def _stage(name: str, task: Task, evaluations: Evaluations, settings: Settings) -> Stage:
    """Searches in early groups, whose runs are short, and ends with steps in all groups."""
    seconds = None if settings.minutes is None else 60 * settings.minutes
    budget = Budget(settings.evaluations, seconds)
    early, counted = task.early(), name == "counts"
    with evaluations.work.step(SEARCH, counted):
        points = minimise(early, evaluations, budget, settings.seed, {key.name: _middle(key) for key in task.keys})
    with evaluations.work.step(CHOICES, counted):
        best, more = _choose(early, evaluations, budget, points)
        points += more
    if early is not task:
        with evaluations.work.step(ALL, counted):
            chosen = evaluations.points(task, _contenders(early, points), budget)
            best, points = improve(task, evaluations, budget, _best(task, chosen))
            points += chosen
    with evaluations.work.step(RANGES, counted):
        known, good = ranges(task, evaluations, budget, best, points)
    return Stage(name, task, best, tuple(known), _far(task, best, good), budget.spent, _left_out(task, points))


_OTHERS = 4


def _far(task: Task, best: Point, good: Sequence[Point]) -> tuple[Values, ...]:
    """At most `_OTHERS` of the points that fit as well, each the farthest from those before, in widths of the prior."""
    chosen = [best.values]
    for _ in range(_OTHERS):
        left = [point.values for point in good if point.values not in chosen]
        if left:
            chosen.append(max(left, key=lambda one: min(prior(replace(task, start=at), one) for at in chosen)))
    return tuple(chosen[1:])


def _best(task: Task, points: Sequence[Point]) -> Point:
    return min(points, key=lambda point: objective(task, point))


def _choose(task: Task, evaluations: Evaluations, budget: Budget, points: Sequence[Point]) -> tuple[Point, list[Point]]:
    """Steps from the best point and with each other choice there, until no other choice is better; all new points."""
    found: list[Point] = []
    best = _best(task, points)
    for _ in range(_CHANGES):
        best, more = improve(task, evaluations, budget, best)
        # A choice may look worse because the numbers were found with another: one step with each.
        others = evaluations.points(task, _other_choices(task, best), budget)
        for other in others:
            more += [other, *improve(task, evaluations, budget, other, rounds=1)[1]]
        found += more
        before, best = best, _best(task, [best, *more])
        if best is before or budget.is_late():
            break
    return best, found


_CHANGES = 3
"""Most changes of a choice after the search."""
_CONTENDERS = 3
"""Points that are tried in all groups: the best one of each of so many choices."""
_CONTENDER = 1.5
"""Their objective is at most this multiple of the best."""


def _contenders(task: Task, points: Sequence[Point]) -> list[Values]:
    """The best point, and those with other choices that are about as good."""
    ranked = sorted(points, key=lambda point: objective(task, point))
    most = _CONTENDER * objective(task, ranked[0])
    by_choice: dict[tuple[str, ...], Values] = {}
    for point in ranked:
        if objective(task, point) <= most:
            by_choice.setdefault(choices_of(point), point.values)
    return list(by_choice.values())[:_CONTENDERS]


def _other_choices(task: Task, best: Point) -> list[Values]:
    """The best point with each other value of each choice."""
    return [
        {**best.values, key.name: choice}
        for key in task.keys
        for choice in key.choices
        if choice != best.values[key.name]
    ]


def _left_out(task: Task, points: Sequence[Point]) -> dict[str, float]:
    """Each group predicted by the point that the other groups choose; empty for fewer than three groups."""
    groups = task.observations()
    count = len(set(groups))
    if count < 3:
        return {}
    squares = [[each**2 for each in residuals(task, point)] for point in points]
    priors = [prior(task, point.values) for point in points]
    found = {}
    for group in dict.fromkeys(groups):
        own = [at for at, each in enumerate(groups) if each == group]
        others = [at for at, each in enumerate(groups) if each != group]
        scores = [
            weighed(sum(each[at] for at in others) / (count - 1), before, count - 1)
            for each, before in zip(squares, priors, strict=True)
        ]
        chosen = squares[scores.index(min(scores))]
        where, name = group
        several = sum(map(bool, task.groups)) > 1
        label = f"{task.measurements[where].name}: {name}" if several else name
        found[label] = math.sqrt(sum(chosen[at] for at in own))
    return found
