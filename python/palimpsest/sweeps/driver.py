"""Runs a sweep: checks every point, runs the unfinished ones, keeps each at once.

Only this module writes; engines compute. However a sweep ends, finished points are kept, and table and page are
written.
"""

import contextlib
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..distribution import need
from ..errors import Error, InputError
from ..files import parquet, read_text
from . import engines
from .conditions import conditions, expect_measured
from .definition import Definition, from_mapping, from_text
from .finished import Kept, PointResult
from .points import Point, resolve
from .results import Sweep, load, manifest
from .store import LATENCY, TABLE, TIMES, Store
from .task import OTHER_SIMULATOR, Outcome, Watch

Finished = Callable[[Outcome], None]


@dataclass(frozen=True)
class Plan:
    """A sweep with checked points, the folder for results, and notes on unread settings."""

    definition: Definition
    points: list[Point]
    folder: Path | None
    notes: list[str]

    def tasks(self, finished: Mapping[str, Kept]) -> list[dict[str, Any]]:
        """The unfinished points, each identity once."""
        left = {point.identity: point for point in self.points if point.identity not in finished}
        return [point.task() for point in left.values()]

    def manifest(self) -> bytes:
        """The content of sweep.json."""
        points = [(point.axes, point.identity) for point in self.points]
        return manifest(self.definition.title, self.definition.axes, self.definition.report, points)

    def found(self, done: Mapping[str, Kept], before: frozenset[str]) -> Sweep:
        """The finished points; those in `before` were not run again."""
        made = self.definition
        points = [
            PointResult(point.axes, point.identity, done[point.identity], point.identity in before)
            for point in self.points
            if point.identity in done
        ]
        return Sweep(made.title, made.axes, points, len(self.points), self.folder, made.text, made.report)


def plan(
    source: str | Path | Mapping[str, Any], out: str | Path | None = None, *, strict: bool = False,
    slo: str | None = None, memory: int | None = None, jobs: int = 1,
) -> Plan:  # fmt: skip
    """Reads and checks a sweep; `out` defaults to results/NAME of a file, `slo` to the conditions of the file.

    `memory` scales the drives of all points (`points.resolve`).

    Raises InputError, also as `strict` says.
    """
    if isinstance(source, Mapping):
        definition, name = from_mapping(source, Path.cwd()), None
    else:
        definition = _read(Path(source))
        name = re.sub(r"[^\w.-]", "-", Path(source).stem) or "sweep"
    if slo is not None:
        definition = replace(definition, report=definition.report | {"slo": slo})
    wanted = conditions(definition.report["slo"]) if "slo" in definition.report else []
    points, notes = resolve(definition, strict=strict, memory=memory, jobs=jobs)
    for fidelity in dict.fromkeys(point.options.fidelity for point in points):
        expect_measured(wanted, fidelity)
    folder = Path(out) if out is not None else None if name is None else Path("results") / name
    return Plan(definition, points, folder, notes)


def _read(path: Path) -> Definition:
    try:
        text = read_text(path)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the file is not UTF-8 text; expected a TOML file") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a sweep file, see `palimpsest sweep --help`") from error
    return from_text(text, str(path), path.parent.absolute())


def run(
    planned: Plan, *, engine: str = "local", address: str | None = None, jobs: int | None = None, fresh: bool = False,
    point_timeout: float | None = None, note: Callable[[str], None] = lambda _: None, watch: Watch = lambda *_: None,
    begin: Callable[[int, int], None] = lambda *_: None, finished: Finished = lambda _: None,
    show: Callable[[Sweep], None] = lambda _: None,
) -> Sweep:  # fmt: skip
    """Runs the unfinished points of a sweep, and all points if `fresh`. Finished points are kept, however it ends.

    `note` receives damaged files, whose points are run anew; `watch` the progress of points; `begin` the numbers of
    points to run and of finished ones; `finished` each kept outcome; `show` the sweep before table and page are
    written, and after a point could not be kept. Raises InputError for a wrong folder or cluster, Error if the cluster
    failed.
    """
    start = engines.find(engine, address, point_timeout)
    with contextlib.ExitStack() as opened:
        folder = planned.folder or Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="palimpsest-")))
        store = opened.enter_context(Store(folder))
        if fresh:
            store.clear()
        kept = store.finished((point.identity for point in planned.points), note)
        done = {identity: Kept.of(outcome) for identity, outcome in kept}
        before = frozenset(done)
        tasks = planned.tasks(done)
        begin(len(tasks), len(before))
        store.write("sweep.toml", planned.definition.text.encode())
        store.write("sweep.json", planned.manifest())
        is_full = False
        try:
            if tasks:
                with closing(start(tasks, address, jobs, watch)) as outcomes:  # type: ignore[type-var]
                    for outcome in outcomes:
                        try:
                            _take(outcome, store, done)
                        except OSError:
                            # A full disk has no room for table and page; this point is in memory only.
                            is_full = True
                            show(planned.found(done, before))
                            raise
                        finished(outcome)
            show(planned.found(done, before))
        finally:
            if planned.folder is not None and done and not is_full:
                write_files(planned.found(done, before), store)
        return planned.found(done, before)


def _take(outcome: Outcome, store: Store, done: dict[str, Kept]) -> None:
    error = outcome["error"]
    if error is not None and error["kind"] == OTHER_SIMULATOR:
        raise Error(error["text"])
    identity = outcome["identity"]
    assert identity not in done, f"the outcome of {identity} came twice"
    done[identity] = Kept.of(outcome)
    store.keep(outcome)


def write_files(found: Sweep, store: Store) -> None:
    """Writes the tables and the page. Only the table of times differs when the same points are run again."""
    from . import report
    from .table import times

    for name, frame in ((TABLE, found.to_polars()), (LATENCY, found.latency()), (TIMES, times(found))):
        store.write(name, parquet(frame))
    store.write("report.html", report.page(found).encode())


def rewrite(folder: Path) -> Path:
    """Writes table and page in a folder anew; returns the page. Raises InputError without finished points."""
    found = load(folder)
    if not found:
        raise InputError(f"{folder}: no point of this sweep is finished; expected at least one")
    with Store(folder) as store:
        write_files(found, store)
    return folder / "report.html"


def sweep(
    source: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    engine: str = "local",
    address: str | None = None,
    fresh: bool = False,
    point_timeout: float | None = None,
    progress: bool | None = None,
    slo: str | None = None,
) -> Sweep:
    """Runs a grid or list of configurations and workloads, on all cores or on a cluster.

    >>> sweep({"base": {"workload": "trade"}, "grid": {"ftl": ["page", "mga"], "part.nop": [1, 4]}})

    Args:
        source: sweep file, or a mapping with its tables: `base`, `grid`, `zip`, `points`, `exclude`, `report`, `title`.
        out: folder for results, in which a second call resumes; the default for a file is results/NAME, for a mapping
            none.
        jobs: points at a time; None for one a core.
        engine: `local`, `dask` or `ray`.
        address: address of the cluster, for `dask` and `ray`.
        fresh: run finished points again.
        point_timeout: seconds after which a running point fails; for `local`.
        progress: show progress on standard error; None for at a terminal only.
        slo: conditions such as `"read.p99<500us,dwpd>=1"`, whose frontier `Sweep.frontier` returns.

    Returns:
        The finished points; a failed point has its error.

    Raises:
        InputError: the sweep, the folder or the cluster is wrong; nothing was run.
        Error: the cluster failed.
        KeyboardInterrupt: the user ended the sweep; finished points are in `out`.

    Warns:
        UserWarning: some points do not read a configuration key that others read.
    """
    from ..progress import at_terminal
    from .board import SweepBoard

    need("sweep", "polars")
    planned = plan(source, out, slo=slo)
    for line in planned.notes:
        warnings.warn(line, UserWarning, stacklevel=2)
    shown = at_terminal() if progress is None else progress
    with SweepBoard(shown, {point.identity: point.label for point in planned.points}) as board:
        return run(
            planned, engine=engine, address=address, jobs=jobs, fresh=fresh, point_timeout=point_timeout,
            note=lambda what: warnings.warn(what, stacklevel=3), watch=board.watch, begin=board.begin,
            finished=board.finished,
        )  # fmt: skip
