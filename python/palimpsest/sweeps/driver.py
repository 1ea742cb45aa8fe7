"""Runs a sweep: checks every point, runs those that are not finished, keeps each at once.

The only one that writes; engines only compute. Whatever ends a sweep early, what was finished is kept, and table and
page are written over it.
"""

import re
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import Error, InputError
from ..files import parquet, read_text
from . import engines
from .definition import Definition, from_mapping, from_text
from .finished import PointResult
from .points import Point, resolve
from .results import Sweep, load, manifest
from .store import LATENCY, TABLE, TIMES, Store, read_points
from .task import OTHER_SIMULATOR, Outcome, Watch

Finished = Callable[[Outcome], None]


@dataclass(frozen=True)
class Plan:
    """A sweep whose points are checked, and how it is to be run."""

    definition: Definition
    points: list[Point]
    folder: Path | None
    notes: list[str]

    def tasks(self, finished: Mapping[str, Outcome]) -> list[dict[str, Any]]:
        """What is left to run, each identity once."""
        left = {point.identity: point for point in self.points if point.identity not in finished}
        return [point.task() for point in left.values()]


def plan(source: str | Path | Mapping[str, Any], out: str | Path | None = None, *, strict: bool = False) -> Plan:
    """Reads a sweep and checks every point of it.

    Args:
        source: sweep file, or a mapping with its tables.
        out: folder for the results; of a file, results/NAME in the current folder where None.
        strict: refuse a setting that one of the points does not read.

    Raises:
        InputError: the file is not there or is no sweep, or a point cannot be run.
    """
    if isinstance(source, Mapping):
        definition = from_mapping(source, Path.cwd())
        points, notes = resolve(definition, strict=strict)
        return Plan(definition, points, None if out is None else Path(out), notes)
    path = Path(source)
    try:
        text = read_text(path)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the file is not UTF-8 text; expected a TOML file") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a sweep file, see `palimpsest sweep --help`") from error
    definition = from_text(text, str(path), path.parent.absolute())
    name = re.sub(r"[^\w.-]", "-", path.stem) or "sweep"
    points, notes = resolve(definition, strict=strict)
    return Plan(definition, points, Path(out) if out is not None else Path("results") / name, notes)


def run(
    planned: Plan,
    *,
    engine: str = "local",
    address: str | None = None,
    jobs: int | None = None,
    fresh: bool = False,
    point_timeout: float | None = None,
    note: Callable[[str], None] = lambda _: None,
    watch: Watch = lambda *_: None,
    begin: Callable[[int, int], None] = lambda *_: None,
    finished: Finished = lambda _: None,
    show: Callable[[Sweep], None] = lambda _: None,
) -> Sweep:
    """Runs what is left of a sweep.

    Args:
        planned: the sweep.
        engine: `local`, `dask` or `ray`.
        address: of the cluster.
        jobs: points at a time; all cores where None.
        fresh: run finished points again.
        point_timeout: seconds after which a running point is ended, and failed; only on this machine.
        note: receives a line for each stored point that is run anew because its file is damaged.
        watch: receives the progress of running points, where the engine reports it.
        begin: receives the number of points to run, and of those finished before.
        finished: receives each outcome, when it is kept.
        show: receives the sweep before table and page are written, and after a point could not be kept.

    Raises:
        InputError: the folder or the cluster cannot be used.
        Error: the cluster failed.
        KeyboardInterrupt: the user ended it. What was finished is kept, in this case and the others.
    """
    start = engines.find(engine, address, point_timeout)
    if planned.folder is None:
        with tempfile.TemporaryDirectory(prefix="palimpsest-") as folder, Store(Path(folder)) as store:
            return _drive(planned, store, start, address, jobs, note, watch, begin, finished, show, None)
    with Store(planned.folder) as store:
        if fresh:
            store.clear()
        return _drive(planned, store, start, address, jobs, note, watch, begin, finished, show, planned.folder)


def _drive(
    planned: Plan, store: Store, start: engines.Engine, address: str | None, jobs: int | None,
    note: Callable[[str], None], watch: Watch, begin: Callable[[int, int], None], finished: Finished,
    show: Callable[[Sweep], None], shown_folder: Path | None,
) -> Sweep:  # fmt: skip
    definition, points = planned.definition, planned.points
    done = store.finished((point.identity for point in points), note)
    before = frozenset(done)
    tasks = planned.tasks(done)
    begin(len(tasks), len(before))

    def gather() -> Sweep:
        found = [
            PointResult.of(point.axes, done[point.identity], reused=point.identity in before)
            for point in points
            if point.identity in done
        ]
        return Sweep(
            definition.title, definition.axes, found, len(points), shown_folder, definition.text, definition.report
        )

    store.write("sweep.toml", definition.text.encode())
    described = [(point.axes, point.identity) for point in points]
    store.write("sweep.json", manifest(definition.title, definition.axes, definition.report, described))
    is_full = False
    try:
        if tasks:
            with closing(start(tasks, address, jobs, watch)) as outcomes:  # type: ignore[type-var]
                for outcome in outcomes:
                    try:
                        _take(outcome, store, done)
                    except OSError:
                        # A full disk has no room for table and page. The figures of this point are in memory only.
                        is_full = True
                        show(gather())
                        raise
                    finished(outcome)
    except BaseException:
        found = gather()
        if shown_folder is not None and len(found) and not is_full:
            write_files(found, store)
        raise
    found = gather()
    show(found)
    if shown_folder is not None and len(found):
        write_files(found, store)
    return found


def _take(outcome: Outcome, store: Store, done: dict[str, Outcome]) -> None:
    error = outcome["error"]
    if error is not None and error["kind"] == OTHER_SIMULATOR:
        raise Error(error["text"])
    identity = outcome["identity"]
    assert identity not in done, f"the outcome of {identity} came twice"
    done[identity] = outcome
    store.keep(outcome)


def write_files(found: Sweep, store: Store) -> None:
    """Writes the tables and the page. All but the table of times are the same bytes whenever the same is run."""
    from . import report
    from .table import times

    for name, frame in ((TABLE, found.to_polars()), (LATENCY, found.latency()), (TIMES, times(found))):
        store.write(name, parquet(frame))
    store.write("report.html", report.page(found).encode())


def rewrite(folder: Path) -> Path:
    """Writes table and page of the sweep in a folder anew, as far as it has come; gives the page's path.

    Raises:
        InputError: there is no sweep, it has no finished point, or one is running there.
    """
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
) -> Sweep:
    """Runs a grid or list of configurations and workloads, on all cores or on a cluster.

    >>> sweep({"base": {"workload": "trade"}, "grid": {"ftl": ["page", "mga"], "part.nop": [1, 4]}})

    Args:
        source: sweep file, or a mapping with its tables: `base`, `grid`, `zip`, `points`, `exclude`, `report`, `title`.
        out: folder that keeps the results, where a second call resumes; of a file, results/NAME where None. A mapping
            without it keeps nothing but what is returned.
        jobs: points at a time; as many as there are cores where None.
        engine: `local`, `dask` or `ray`.
        address: of the cluster, for `dask` and `ray`.
        fresh: run finished points again.
        point_timeout: seconds after which a running point is ended, and failed; for `local`.
        progress: show progress on standard error; where None, at a terminal.

    Returns:
        The finished points. One that failed is among them, with its error.

    Raises:
        InputError: the sweep is wrong, or the folder or the cluster cannot be used; nothing was run.
        Error: the cluster failed.
        KeyboardInterrupt: the user ended it; what was finished is in `out`.

    Warns:
        UserWarning: some points do not read a configuration key that others read.
    """
    from ..progress import at_terminal
    from .board import SweepBoard

    planned = plan(source, out)
    for line in planned.notes:
        warnings.warn(line, UserWarning, stacklevel=2)
    shown = at_terminal() if progress is None else progress
    with SweepBoard(shown, {point.identity: point.label for point in planned.points}) as board:
        return run(
            planned, engine=engine, address=address, jobs=jobs, fresh=fresh, point_timeout=point_timeout,
            note=lambda what: warnings.warn(what, stacklevel=3), watch=board.watch, begin=board.begin,
            finished=board.finished,
        )  # fmt: skip


def count(points: Sequence[Point], folder: Path | None) -> int:
    """How many of the points are finished in a folder."""
    if folder is None or not folder.is_dir():
        return 0
    kept = read_points(folder, [point.identity for point in points])
    return sum(point.identity in kept for point in points)
