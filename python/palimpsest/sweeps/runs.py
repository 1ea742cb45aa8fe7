"""Single runs on the engines of sweeps, results in order, kept in a folder if asked.

Job files and drives are sent, traces must be on workers. The identity of a run is a digest of the simulator, the
options, the drive and the workload's file, so a changed version or setting is run again.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from .. import _core, errors, plugins, user_files
from ..errors import Error
from ..files import holder, is_file
from ..options import RunOptions
from ..result import Result
from . import engines
from .board import SweepBoard
from .points import state_of
from .store import Store
from .task import Outcome, Task, WorkloadFile, simulator

Runner = Callable[[Sequence[RunOptions]], tuple[list[Result], BaseException | None]]
"""As `engine.run_many`: the finished results, in order, and the exception that ended the others."""

_SERIES = ("latency", "writes", "utilization")
"""Series that come back, if a run keeps series."""
_JOB_FILE_BYTES = 1 << 16


@contextlib.contextmanager
def runner(
    engine: str, address: str | None, jobs: int | None, board: SweepBoard | None = None, store: Store | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator["Runs"]:  # fmt: skip
    """Runs by an engine of sweeps, whose cluster is joined once, at the first run. Raises InputError.

    `board` shows the progress; `store` keeps each outcome at once, and its finished runs are not run again; `note`
    receives damaged files.
    """
    start = engines.find(engine, address)
    board = board or SweepBoard(enabled=False, labels={})
    with contextlib.ExitStack() as joined:
        join = functools.cache(lambda: joined.enter_context(engines.session(engine, address)))
        yield Runs(lambda tasks: start(tasks, address, jobs, board.watch), join, board, store, note)


@dataclasses.dataclass
class Runs:
    """Runs on one engine; `join` joins the cluster."""

    start: Callable[[Sequence[Task]], Iterator[Outcome]]
    join: Callable[[], object]
    board: SweepBoard
    store: Store | None
    note: Callable[[str], None]
    _planned: dict[str, Outcome | None] = dataclasses.field(default_factory=dict)
    _task: Callable[[RunOptions], Task] = dataclasses.field(default_factory=lambda: functools.cache(_task))

    def plan(self, runs: Iterable[RunOptions]) -> None:
        """Reads the finished ones of these runs, and adds the others to the board. Raises InputError."""
        new = {task["identity"]: task for task in map(self._task, runs) if task["identity"] not in self._planned}
        kept = {} if self.store is None else dict(self.store.finished(new, self.note))
        self._planned |= {name: kept.get(name) for name in new}
        self.board.add({name: _label(task) for name, task in new.items() if name not in kept}, len(kept))

    def __call__(self, runs: Sequence[RunOptions]) -> tuple[list[Result], BaseException | None]:
        """The results in order, as `Runner`."""
        tasks: list[Task] = []
        found: dict[str, Result] = {}
        try:
            self.plan(runs)
            tasks += map(self._task, runs)
            kept = {task["identity"]: self._planned[task["identity"]] for task in tasks}
            found |= {name: _result(outcome) for name, outcome in kept.items() if outcome is not None}
            if each := [*{task["identity"]: task for task in tasks if task["identity"] not in found}.values()]:
                self.join()
                with closing(self.start(each)) as outcomes:  # type: ignore[type-var]
                    for outcome in outcomes:
                        if self.store is not None:
                            self.store.keep(outcome)
                        self.board.finished(outcome)
                        found[outcome["identity"]] = _result(outcome)
        except (Error, KeyboardInterrupt) as error:
            return [found[task["identity"]] for task in tasks if task["identity"] in found], error
        return [found[task["identity"]] for task in tasks], None


def _label(task: Task) -> str:
    options = task["options"]
    return " ".join(str(options[name]) for name in ("ssd", "ftl", "workload") if options[name])


def _task(options: RunOptions) -> Task:
    config = json.loads(_core.check(options.to_json()))
    is_preset = _core.workload_spec(options.workload.partition(",")[0]) is not None
    path = Path(options.workload)
    file = text = None
    with contextlib.suppress(OSError):
        if not is_preset and is_file(holder(path)):
            if path.suffix == ".fio" and path.stat().st_size <= _JOB_FILE_BYTES:
                text = path.read_text(encoding="utf-8")
            else:
                file = dataclasses.asdict(WorkloadFile.read(str(path)))
    fields = dataclasses.asdict(options)
    drive = _core.show(options.ssd, options.ftl, list(options.overrides))
    content = None if file is None else file["digest"]
    workload = None if text is not None or file is not None else options.workload
    of_plugins = plugins.used(config, options.format)
    name = [simulator(), fields | {"workload": workload}, drive, text, content, *of_plugins.items()]
    return {
        "identity": hashlib.blake2b(json.dumps(name).encode(), digest_size=16).hexdigest(), "options": fields,
        "drive": drive, "name": config["name"], "file": file, "jobs": text, "simulator": simulator(),
        "plugins": of_plugins, "state": state_of(config, options), "code": user_files.sources(config),
        "series": _SERIES if options.series else (),
    }  # fmt: skip


def _result(outcome: Outcome) -> Result:
    error = outcome["error"]
    if error is None:
        return Result(outcome["result"], outcome["series"], "")
    kind = getattr(errors, error["kind"], Error)
    raise (kind if isinstance(kind, type) and issubclass(kind, Error) else Error)(error["text"])
