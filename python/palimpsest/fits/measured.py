"""Targets of a fit: figures of a real drive, in groups that were measured together, and the runs for ours."""

import math
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from .. import _core
from ..errors import InputError
from ..options import RunOptions
from ..reproduce.batch import Batch
from ..result import Result
from ..validate.jobs import block_size
from ..validate.points import host_bytes
from .space import Drive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

TOLERANCES = {"iops": 0.03, "mean": 0.03, "p50": 0.05, "p90": 0.05, "p95": 0.05, "p99": 0.08, "p99.9": 0.2}
"""The relative deviation that counts as one, by figure."""
_OTHERS = 0.3
"""The tolerance of other percentiles."""


def tolerance(figure: str) -> float:
    """The relative deviation of `figure`, such as `mean` or `read.p99`, that counts as one."""
    return TOLERANCES.get(figure.partition(".")[2] if figure.startswith(("read.", "write.")) else figure, _OTHERS)


@dataclass(frozen=True, slots=True)
class Target:
    """A measured number of a real drive, with a unique id.

    Targets of one group (job, row, pass) are held out together. `tolerance` is the relative deviation that counts as
    one; the weight is its inverse. `at` is the place on the axis of the picture.
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
    """Data that a measurement lacks: workload and bytes of the real drive, for counters, and the precondition."""

    workload: str = ""
    capacity: int | None = None
    precondition: str = ""


class Measurement(Protocol):
    """A file of measurements; if `counted`, its runs count operations only, and times have no effect.

    `notes` say what of the file is not used.
    """

    name: str
    targets: tuple[Target, ...]
    counted: bool
    notes: tuple[str, ...]

    def prepare(self, batch: Batch, drives: Sequence[Drive], groups: frozenset[str]) -> None:
        """Runs these groups on several drives, side by side."""

    def ours(self, batch: Batch, drive: Drive, groups: frozenset[str]) -> Mapping[str, float | None]:
        """Ours for the targets of these groups, by id."""

    def work(self, groups: frozenset[str]) -> float:
        """The time of the runs of one drive, in runs, or in passes if counted."""

    def early(self, groups: frozenset[str]) -> frozenset[str]:
        """The groups that find about the same drive as all of `groups`, in shorter runs."""

    def requests(self, drive: Drive, groups: frozenset[str]) -> float:
        """About the requests of a run, if the simulator cannot know; else 0."""


class SingleRuns:
    """A run for each group."""

    targets: tuple[Target, ...]

    def work(self, groups: frozenset[str]) -> float:
        """The number of groups."""
        return float(len(groups))

    def early(self, groups: frozenset[str]) -> frozenset[str]:
        """Every third of seven groups or more: rows between others say little more."""
        ordered = [group for group in dict.fromkeys(target.group for target in self.targets) if group in groups]
        return frozenset(ordered[::3]) if len(ordered) >= _MANY else groups

    def requests(self, drive: Drive, groups: frozenset[str]) -> float:  # noqa: ARG002
        """0: the simulator knows."""
        return 0.0


_MANY = 7
"""With fewer groups, less than three would be left."""


@dataclass
class GroupRuns(SingleRuns):
    """A measurement with one run for each group; groups may share one. `figure` gives ours for a target."""

    name: str
    targets: tuple[Target, ...]
    run: Callable[[Drive, str], RunOptions]
    figure: Callable[[Target, Result], float | None]
    counted: bool = False
    notes: tuple[str, ...] = ()

    def _groups(self, groups: frozenset[str]) -> list[str]:
        return [group for group in dict.fromkeys(target.group for target in self.targets) if group in groups]

    def prepare(self, batch: Batch, drives: Sequence[Drive], groups: frozenset[str]) -> None:
        """Runs these groups on several drives, side by side."""
        batch.run(self.run(drive, group) for drive in drives for group in self._groups(groups))

    def ours(self, batch: Batch, drive: Drive, groups: frozenset[str]) -> Mapping[str, float | None]:
        """Ours for the targets of these groups, by id."""
        results = {group: batch[self.run(drive, group)] for group in self._groups(groups)}
        return {
            target.id: self.figure(target, results[target.group]) for target in self.targets if target.group in results
        }


@dataclass
class OneRun:
    """A counted measurement whose groups share one run of the options `run`; `figures` gives ours by id."""

    name: str
    targets: tuple[Target, ...]
    run: Callable[[Drive, frozenset[str]], RunOptions]
    figures: Callable[[Result, frozenset[str]], Mapping[str, float | None]]
    counted: bool = True
    notes: tuple[str, ...] = ()

    def prepare(self, batch: Batch, drives: Sequence[Drive], groups: frozenset[str]) -> None:
        """Runs these groups on several drives, side by side."""
        batch.run(self.run(drive, groups) for drive in drives)

    def ours(self, batch: Batch, drive: Drive, groups: frozenset[str]) -> Mapping[str, float | None]:
        """Ours for the targets of these groups, by id."""
        return self.figures(batch[self.run(drive, groups)], groups)

    def requests(self, drive: Drive, groups: frozenset[str]) -> float:
        """Bytes of the host over those of a request, by the passes; 0 for requests of several sizes."""
        run = self.run(drive, groups)
        size = block_size(run.workload)
        return self.work(groups) * host_bytes(run) / size if size else 0.0

    def _ends(self, groups: frozenset[str]) -> dict[str, float]:
        """The last place of each group."""
        return {each.group: each.at or 0.0 for each in self.targets if each.group in groups}

    def work(self, groups: frozenset[str]) -> float:
        """The passes of the run."""
        return max(self._ends(groups).values(), default=0.0)

    def early(self, groups: frozenset[str]) -> frozenset[str]:
        """The groups of the first passes: later passes repeat them, because the drive has become steady."""
        ends = self._ends(groups)
        limit = min(ends.values(), default=0.0) + _EARLY
        chosen = frozenset(group for group, end in ends.items() if end < limit)
        return chosen if len(chosen) < len(groups) and limit < _SAVING * max(ends.values()) else groups


_EARLY = 6.0
"""Passes in which a drive becomes steady."""
_SAVING = 0.7
"""Shorter runs are worth more runs if they take at most this part."""


class JobFolder:
    """A temporary folder for job files, which are the same for all drives, so that runs go side by side."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="palimpsest-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def check_workload(spec: str, place: str) -> None:
    """Raises InputError at `place` if the specification is wrong."""
    try:
        _core.check(RunOptions(workload=spec).to_json())
    except InputError as error:
        # A larger drive than the default may have the region.
        if str(error).startswith("--workload") and "beyond the drive" not in str(error):
            raise InputError(f"{place}: {str(error).removeprefix('--workload ')}") from None


def residual(target: Target, ours: float | None) -> float:
    """The logarithm of the ratio of ours to real, in tolerances of the target; 20 if ours is missing."""
    if ours is None or ours <= 0:
        return _MISSING
    return max(-_MISSING, min(_MISSING, math.log(ours / target.real) / target.tolerance))


_MISSING = 20.0


_SHARES = {"p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
_BEYOND = 10
"""Requests that must exceed a percentile."""


def reduced(nanoseconds: "ArrayLike") -> dict[str, float]:
    """Mean and percentiles in microseconds, of response times in nanoseconds; empty without times.

    >>> reduced([1000.0, 3000.0])
    {'mean': 2.0}
    """
    import numpy as np

    times = np.sort(np.asarray(nanoseconds, dtype=float)) / 1000
    if not times.size:
        return {}
    kept = {name: share for name, share in _SHARES.items() if len(times) * (1 - share) >= _BEYOND}
    at = {name: float(times[min(len(times) - 1, int(np.ceil(share * len(times))) - 1)]) for name, share in kept.items()}
    return {"mean": float(times.mean()), **at}
