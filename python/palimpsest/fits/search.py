"""The search: points of the space are evaluated, side by side, until the loss stops falling or the budget is spent.

The optimiser is CatCMAwM (Hamano et al., "CatCMA with Margin", GECCO 2025; package `cmaes`): an evolution strategy over
numbers, whole numbers and choices together, deterministic with a seed. Evaluations are kept, in memory and optionally
in a file: a restarted search asks for the same points, and finds them there.

The objective has two parts. The figures of a group come from one run, and a defect of the model moves all of them
together, so a group counts as one observation, with the mean of the squares of its residuals (the discrepancy of
Kennedy & O'Hagan, "Bayesian calibration of computer models", 2001, taken as shared by the figures of a group). The
prior is that the drive at the start is about right: a normal distribution of each number around the start
(`Key.spread`). So a key leaves the start if several runs agree, not for one detail of one run.
"""

import json
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import InputError
from ..files import named
from ..reproduce.batch import Batch
from ..sweeps.runs import Runner
from .measured import Measurement, Target, residual
from .space import Drive, Key, Values
from .work import Work


@dataclass(frozen=True)
class Task:
    """The input of a search; it sees some `groups` of each measurement, and `start` has the values of the drive."""

    drive: Drive
    keys: tuple[Key, ...]
    measurements: tuple[Measurement, ...]
    groups: tuple[frozenset[str], ...]
    start: Values = field(default_factory=dict)

    def _seen(self) -> list[tuple[int, Target]]:
        measured = enumerate(zip(self.measurements, self.groups, strict=True))
        return [(at, target) for at, (each, groups) in measured for target in each.targets if target.group in groups]

    def targets(self) -> list[Target]:
        """The targets that the search sees."""
        return [target for _, target in self._seen()]

    def early(self) -> "Task":
        """The task with the groups that find about the same drive in shorter runs, or the task itself."""
        measured = zip(self.measurements, self.groups, strict=True)
        groups = tuple(each.early(groups) if groups else groups for each, groups in measured)
        return self if groups == self.groups else replace(self, groups=groups)

    def work(self, *, counted: bool) -> float:
        """The work of a point in runs, or passes if counted."""
        measured = zip(self.measurements, self.groups, strict=True)
        return sum(each.work(groups) for each, groups in measured if groups and each.counted is counted)

    def observations(self) -> list[tuple[int, str]]:
        """Measurement and group of each target: targets of one group are one observation."""
        return [(at, target.group) for at, target in self._seen()]


@dataclass(frozen=True)
class Point:
    """An evaluated point: the values of keys, and ours for each target of the task, in order."""

    values: Values
    ours: tuple[float | None, ...]


@dataclass
class Budget:
    """The limits of a search: evaluations, and seconds."""

    evaluations: int | None = 80
    seconds: float | None = None
    spent: int = 0
    _began: float = field(default_factory=time.monotonic)

    def left(self) -> bool:
        """Whether the search may continue."""
        if self.evaluations is not None and self.spent >= self.evaluations:
            return False
        return not self.is_late()

    def is_late(self) -> bool:
        """Whether the time is over."""
        return self.seconds is not None and time.monotonic() - self._began >= self.seconds


def loss(task: Task, point: Point) -> float:
    """The root of the mean over groups of the mean squares of their residuals."""
    return math.sqrt(sum(each**2 for each in residuals(task, point)) / count(task))


def count(task: Task) -> int:
    """Number of observations: groups."""
    return len(set(task.observations()))


def residuals(task: Task, point: Point) -> list[float]:
    """Residuals in tolerances, over the root of the number of targets of the group: all groups weigh the same."""
    observations = task.observations()
    sizes = Counter(observations)
    return [
        residual(target, ours) / math.sqrt(sizes[observation])
        for target, observation, ours in zip(task.targets(), observations, point.ours, strict=True)
    ]


def departures(task: Task, values: Values) -> dict[str, float]:
    """Distance of each value from the start, in standard deviations of the prior; another choice counts as one."""
    found = {}
    for key in task.keys:
        start, value = task.start.get(key.name), values[key.name]
        if isinstance(start, float) and isinstance(value, float):
            found[key.name] = (key.part(value) - key.part(start)) / key.spread
        elif start is not None:
            found[key.name] = float(value != start)
    return found


def objective(task: Task, point: Point) -> float:
    """The loss, with departures from the start as further residuals, which hold keys that nothing determines."""
    return weighed(loss(task, point) ** 2, prior(task, point.values), count(task))


def prior(task: Task, values: Values) -> float:
    """The sum of the squares of the departures from the start."""
    return sum(each**2 for each in departures(task, values).values())


def weighed(square: float, before: float, groups: int) -> float:
    """The objective from the square of a loss over this number of groups and the squares of the departures."""
    return math.sqrt(square + before / groups)


class Evaluations:
    """Evaluated points, each once, also in a `file`, a line of JSON each.

    Entries of the file with another value of `of` are ignored; `runner` replaces threads of this process; `work` shows
    the progress.
    """

    def __init__(
        self,
        jobs: int,
        file: Path | None = None,
        of: str = "",
        runner: Runner | None = None,
        work: Work | None = None,
    ) -> None:
        self._jobs = jobs
        self.work = work or Work(enabled=False)
        self._file = file
        self._of = of
        self._runner = runner
        self._known: dict[str, tuple[float | None, ...]] = {}
        self._asked: set[str] = set()
        if file is not None and file.is_file():
            self._load(file)

    def _load(self, file: Path) -> None:
        """Lines that are no evaluations, such as an incomplete one, are run anew."""
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry = json.loads(line)
                ours = entry["ours"]
                if all(each is None or type(each) is float for each in ours):
                    self._known[str(entry["key"])] = tuple(ours)
            except (ValueError, KeyError, TypeError):
                continue

    def _name(self, task: Task, values: Values) -> str:
        drive = task.drive.at(task.keys, values)
        seen = [[each.name, *sorted(groups)] for each, groups in zip(task.measurements, task.groups, strict=True)]
        return json.dumps([self._of, drive.ssd, drive.ftl, drive.overrides, drive.seed, seen])

    def points(self, task: Task, wanted: Sequence[Values], budget: Budget) -> list[Point]:
        """Evaluates new points side by side. A drive that cannot be built gives None; other failures raise Error."""
        # Points from the file count too, so that a resumed search ends at the same point.
        asked = {self._name(task, values) for values in wanted} - self._asked
        self._asked |= asked
        budget.spent += len(asked)
        new = [values for values in wanted if self._name(task, values) not in self._known]
        batch = Batch(self._jobs, self.work.watch, runner=self._runner)
        drives = {self._name(task, values): task.drive.at(task.keys, values) for values in new}
        broken = {name for name, drive in drives.items() if not _can_be_built(drive)}
        there = [drive for name, drive in drives.items() if name not in broken]
        for measurement, groups in zip(task.measurements, task.groups, strict=True):
            if groups:
                each = measurement.work(groups)
                self.work.known(measurement.counted, (len(wanted) - len(there)) * each)
                if there:
                    one = each if measurement.counted else 1.0
                    requests = measurement.requests(there[0], groups)
                    with self.work.batch(measurement.counted, len(there) * each, one, requests):
                        measurement.prepare(batch, there, groups)
        self.work.points += len(asked)
        for name, drive in drives.items():
            found: list[float | None] = []
            for measurement, groups in zip(task.measurements, task.groups, strict=True):
                ours: Mapping[str, float | None] = (
                    {} if name in broken or not groups else measurement.ours(batch, drive, groups)
                )
                values = [ours.get(each.id) for each in measurement.targets if each.group in groups]
                found += [None if value is None else float(value) for value in values]
            self._keep(name, tuple(found))
        return [Point(values, self._known[self._name(task, values)]) for values in wanted]

    def _keep(self, name: str, ours: tuple[float | None, ...]) -> None:
        self._known[name] = ours
        if self._file is not None:
            with named(self._file), self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": name, "ours": ours}) + "\n")


def _can_be_built(drive: Drive) -> bool:
    """Whether the configuration is valid; two keys may exclude each other somewhere in the space."""
    try:
        drive.check()
    except InputError:
        return False
    return True


_STALL = 5
"""A search ends after this number of generations without an improvement of one percent."""


def minimise(task: Task, evaluations: Evaluations, budget: Budget, seed: int, start: Values) -> list[Point]:
    """Searches, and returns all evaluated points; `start` is the first, alone and with the values of the drive."""
    import numpy as np
    from cmaes import CatCMAwM

    numbers = [key for key in task.keys if not key.choices and not key.whole]
    whole = [key for key in task.keys if key.whole]
    choices = [key for key in task.keys if key.choices]
    spaces = {
        "x_space": [[0.0, 1.0] for _ in numbers] or None,
        "z_space": [list(range(round(key.low), round(key.high) + 1)) for key in whole] or None,
        "c_space": [len(key.choices) for key in choices] or None,
    }
    optimiser = CatCMAwM(**spaces, population_size=max(6, 4 + round(3 * math.log(len(task.keys) + 1))), seed=seed)
    points = evaluations.points(task, [start, {**start, **task.start}], budget)
    best, stalled = min(objective(task, point) for point in points), 0
    while budget.left() and stalled < _STALL:
        asked = [optimiser.ask() for _ in range(optimiser.population_size)]
        wanted: list[Values] = [
            {key.name: key.at(float(part)) for key, part in zip(numbers, _of(each.x), strict=True)}
            | {key.name: float(value) for key, value in zip(whole, _of(each.z), strict=True)}
            | {key.name: key.choices[int(np.argmax(row))] for key, row in zip(choices, _of(each.c), strict=True)}
            for each in asked
        ]
        found = evaluations.points(task, wanted, budget)
        losses = [objective(task, point) for point in found]
        optimiser.tell(list(zip(asked, losses, strict=True)))
        points += found
        stalled = 0 if min(losses) < 0.99 * best else stalled + 1
        best = min(best, *losses)
    return points


def _of(part: Sequence[float] | None) -> Sequence[float]:
    return () if part is None else part
