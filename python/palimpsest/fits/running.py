"""A fit: counts first, then times; then the determined ranges, and predictions of held-out groups.

Counted targets (write amplification) do not depend on times. So the keys that change them are fitted to them alone, in
runs without an engine, and fixed; the others are fitted to the timed targets.
"""

import fnmatch
import hashlib
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import InputError
from ..files import digest
from ..parameters import cores
from ..sweeps.runs import Runner, runner
from ..sweeps.task import simulator
from .determined import Range, improve, ranges
from .files import read_all
from .measured import How, Measurement, Target
from .search import Budget, Evaluations, Point, Task, Watching, minimise, objective, prior, residuals, weighed
from .space import Drive, Key, Values, default_space, parse_all, values_of


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
    """A fit of `counts` or `times`; `left_out` has the residual of each group at the point that the others choose."""

    name: str
    task: Task
    best: Point
    ranges: tuple[Range, ...]
    evaluations: int
    left_out: dict[str, float]


@dataclass(frozen=True)
class Fit:
    """The result of a fit.

    `ours` and `start` have, for each measurement, our figures by id of the target at the found drive and at the first;
    `held_out` the groups that the search did not see; `without_effect` the keys that change no target.
    """

    settings: Settings
    measurements: tuple[Measurement, ...]
    stages: tuple[Stage, ...]
    drive: Drive
    ours: tuple[dict[str, float | None], ...]
    start: tuple[dict[str, float | None], ...]
    held_out: tuple[frozenset[str], ...]
    without_effect: tuple[str, ...]

    @property
    def is_validated(self) -> bool:
        """Whether any group was held out."""
        return any(self.held_out) or any(stage.left_out for stage in self.stages)

    def of(self, *, held_out: bool) -> list[tuple[Measurement, Target, float | None]]:
        """Figures beside ours, of held-out groups or of the others."""
        return [
            (measurement, target, ours.get(target.id))
            for measurement, ours, hidden in zip(self.measurements, self.ours, self.held_out, strict=True)
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


def fit(
    paths: Sequence[Path],
    settings: Settings,
    folder: Path | None = None,
    report: Callable[[str, int], None] | None = None,
    progress: Watching = lambda _label: None,
) -> Fit:
    """Fits a drive; resumes from evaluations in `folder`. Raises InputError, also for a varied key without effect."""
    with runner(settings.engine, settings.address, settings.jobs) as run:
        return _fit(paths, settings, folder, report, progress, None if settings.engine == "local" else run)


def _fit(
    paths: Sequence[Path],
    settings: Settings,
    folder: Path | None,
    report: Callable[[str, int], None] | None,
    progress: Watching,
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
        None if folder is None else folder / "evaluations.jsonl",
        _depends_on(paths, settings),
        run,
        progress,
    )
    keys = parse_all(settings.vary, drive) if settings.vary else _default(drive, measurements)
    counted, timed = _effective(drive, keys, measurements, seen, evaluations)
    useless = [key.name for key in keys if key not in counted and key not in timed]
    if useless and settings.vary:
        raise InputError(
            f"--vary {', '.join(useless)}: no figure of the measurements changes with it; expected other keys"
        )
    if not counted and not timed:
        raise InputError("no key that is varied moves a figure; expected --vary KEY=LOW..HIGH")
    stages = []
    for name, own, is_counted in (("counts", counted, True), ("times", timed, False)):
        groups = tuple(
            chosen if measurement.counted is is_counted else frozenset[str]()
            for measurement, chosen in zip(measurements, seen, strict=True)
        )
        if own and any(groups):
            stage = _stage(
                name, Task(drive, own, measurements, groups, values_of(drive, own)), evaluations, settings, report
            )
            stages.append(stage)
            drive = drive.at(own, stage.best.values)
    everything = tuple(frozenset(_groups(each)) for each in measurements)
    start = Drive(settings.start, settings.ftl, settings.overrides)
    at_start, found = (_ours(each, measurements, everything, evaluations) for each in (start, drive))
    return Fit(settings, measurements, tuple(stages), drive, found, at_start, hidden, tuple(useless))


def _depends_on(paths: Sequence[Path], settings: Settings) -> str:
    """A digest of the inputs of evaluations beside the drive's overrides: simulator, files, settings."""
    start = Path(settings.start)
    files = [digest(path) for path in (*paths, *([start] if start.is_file() else []))]
    return hashlib.blake2b(repr([simulator(), files, settings.how]).encode(), digest_size=8).hexdigest()


def _default(drive: Drive, measurements: Sequence[Measurement]) -> tuple[Key, ...]:
    return default_space(
        drive, counted=any(each.counted for each in measurements), timed=any(not each.counted for each in measurements)
    )


def _ours(
    drive: Drive, measurements: tuple[Measurement, ...], groups: tuple[frozenset[str], ...], evaluations: Evaluations
) -> tuple[dict[str, float | None], ...]:
    task = Task(drive, (), measurements, groups)
    point = evaluations.points(task, [{}], Budget(None))[0]
    values = iter(point.ours)
    return tuple({target.id: next(values) for target in measurement.targets} for measurement in measurements)


def _middle(key: Key) -> float | str:
    return key.choices[0] if key.choices else key.at(0.5)


def _effective(
    drive: Drive,
    keys: tuple[Key, ...],
    measurements: tuple[Measurement, ...],
    groups: tuple[frozenset[str], ...],
    evaluations: Evaluations,
) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """The keys that change counted targets, and those that change only timed ones, each varied from end to end."""
    middle: Values = {key.name: _middle(key) for key in keys}
    task = Task(drive, keys, measurements, groups)
    wanted = [{**middle, key.name: value} for key in keys for value in key.ends()]
    for values in wanted:
        drive.at(keys, values).check()
    points = iter(evaluations.points(task, wanted, Budget(None)))
    is_counted = [
        measurement.counted
        for measurement, chosen in zip(measurements, groups, strict=True)
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


def _stage(
    name: str, task: Task, evaluations: Evaluations, settings: Settings, report: Callable[[str, int], None] | None
) -> Stage:
    seconds = None if settings.minutes is None else 60 * settings.minutes
    budget = Budget(settings.evaluations, seconds)
    evaluations.report = (lambda spent: report(name, spent)) if report is not None else (lambda _: None)
    points = minimise(task, evaluations, budget, settings.seed, {key.name: _middle(key) for key in task.keys})
    best = min(points, key=lambda point: objective(task, point))
    best, more = improve(task, evaluations, budget, best)
    points += more
    # A choice may look worse because the numbers were found with another.
    for values in _other_choices(task, best):
        other, more = improve(task, evaluations, budget, evaluations.points(task, [values], budget)[0])
        points += [other, *more]
        best = min((best, other), key=lambda point: objective(task, point))
    known = ranges(task, evaluations, budget, best, points)
    return Stage(name, task, best, tuple(known), budget.spent, _left_out(task, points))


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
