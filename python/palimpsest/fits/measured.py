"""What is fitted to: figures of a real drive, in groups that were measured together, and the runs that give ours.

A kind of measurement is one module with a function that reads a file, and one line in `files.READERS`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .. import _core
from ..errors import InputError
from ..options import RunOptions
from ..reproduce.batch import Batch
from ..result import Result
from .space import Drive

TOLERANCES = {"iops": 0.03, "mean": 0.03, "p50": 0.05, "p90": 0.05, "p95": 0.05, "p99": 0.08, "p99.9": 0.2}
"""The relative deviation that counts as one, by figure."""
_OTHERS = 0.3
"""That of any further percentile."""


def tolerance(figure: str) -> float:
    """The relative deviation of `figure`, such as `mean` or `read.p99`, that counts as one."""
    return TOLERANCES.get(figure.partition(".")[2] if figure.startswith(("read.", "write.")) else figure, _OTHERS)


@dataclass(frozen=True, slots=True)
class Target:
    """A number that was measured of a real drive, and that is fitted to.

    Attributes:
        id: its name, which no other target of the measurement has.
        group: what was measured together with it: a job, a row, a pass. Groups are what is held out.
        name: what it is, such as `mean` or `write amplification`.
        unit: of `real`.
        real: the number.
        tolerance: the relative deviation that counts as one: the weight of the target is its inverse.
        at: its place on the axis of the picture; None: in the order of the targets.
    """

    id: str
    group: str
    name: str
    unit: str
    real: float
    tolerance: float
    at: float | None = None


@dataclass(frozen=True, slots=True)
class How:
    """What a measurement does not say itself.

    Attributes:
        workload: what was run, for counters, as a fio-like specification.
        capacity: of the real drive in bytes, for counters.
        precondition: state of the drive before each run; empty: that of the measurement, or none.
    """

    workload: str = ""
    capacity: int | None = None
    precondition: str = ""


class Measurement(Protocol):
    """A file of them.

    Attributes:
        name: of the file.
        targets: in order.
        counted: whether its runs count operations only, so that times play no part.
    """

    name: str
    targets: tuple[Target, ...]
    counted: bool

    def prepare(self, batch: Batch, drives: Sequence[Drive], groups: frozenset[str]) -> None:
        """Runs what these groups need of several drives, side by side."""

    def ours(self, batch: Batch, drive: Drive, groups: frozenset[str]) -> Mapping[str, float | None]:
        """Ours for the targets of these groups, by id."""


class GroupRuns(ABC):
    """A measurement whose groups each have one run, which gives ours for all their targets."""

    name: str
    targets: tuple[Target, ...]
    counted = False

    @abstractmethod
    def run(self, drive: Drive, group: str) -> RunOptions:
        """The run of a group; groups may share one."""

    @abstractmethod
    def figure(self, target: Target, result: Result) -> float | None:
        """Ours for a target, of the run of its group."""

    def _groups(self, groups: frozenset[str]) -> list[str]:
        return [group for group in dict.fromkeys(target.group for target in self.targets) if group in groups]

    def prepare(self, batch: Batch, drives: Sequence[Drive], groups: frozenset[str]) -> None:
        """Runs what these groups need of several drives, side by side."""
        batch.run(self.run(drive, group) for drive in drives for group in self._groups(groups))

    def ours(self, batch: Batch, drive: Drive, groups: frozenset[str]) -> Mapping[str, float | None]:
        """Ours by id of the target."""
        results = {group: batch[self.run(drive, group)] for group in self._groups(groups)}
        return {
            target.id: self.figure(target, results[target.group]) for target in self.targets if target.group in results
        }


def check_workload(spec: str, place: str) -> None:
    """Reads a specification that a measurement holds.

    Raises:
        InputError: a key or a value is wrong; the message begins with the place.
    """
    try:
        _core.check(RunOptions(workload=spec).to_json())
    except InputError as error:
        # A larger drive than the default may have the region.
        if str(error).startswith("--workload") and "beyond the drive" not in str(error):
            raise InputError(f"{place}: {str(error).removeprefix('--workload ')}") from None


def residual(target: Target, ours: float | None) -> float:
    """How far ours is off: the logarithm of the ratio, in tolerances of the target; 20 where ours is missing."""
    if ours is None or ours <= 0:
        return _MISSING
    return max(-_MISSING, min(_MISSING, math.log(ours / target.real) / target.tolerance))


_MISSING = 20.0
