"""Single runs on the engines of sweeps, results in order. Job files and drives are sent, traces must be on workers."""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from .. import _core, errors
from ..errors import Error
from ..files import holder
from ..options import RunOptions
from ..result import Result
from . import engines
from .task import Outcome, Task, WorkloadFile, simulator

Runner = Callable[[Sequence[RunOptions]], tuple[list[Result], BaseException | None]]
"""As `engine.run_many`: the finished results, in order, and the exception that ended the others."""

_SERIES = ("latency", "writes")
"""Series that come back, if a run keeps series."""
_JOB_FILE_BYTES = 1 << 16


@contextlib.contextmanager
def runner(engine: str, address: str | None, jobs: int | None) -> Iterator[Runner]:
    """Runs by an engine of sweeps, whose cluster is joined once, at the first run. Raises InputError."""
    start = engines.find(engine, address)
    with contextlib.ExitStack() as joined:
        is_joined = False

        def run(runs: Sequence[RunOptions]) -> tuple[list[Result], BaseException | None]:
            nonlocal is_joined
            tasks: list[Task] = []
            found: dict[str, Result] = {}
            try:
                tasks += [_task(options) for options in runs]
                if not is_joined:
                    joined.enter_context(engines.session(engine, address))
                    is_joined = True
                each = list({task["identity"]: task for task in tasks}.values())
                with closing(start(each, address, jobs, lambda *_: None)) as outcomes:  # type: ignore[type-var]
                    for outcome in outcomes:
                        found[outcome["identity"]] = _result(outcome)
            except (Error, KeyboardInterrupt) as error:
                return [found[task["identity"]] for task in tasks if task["identity"] in found], error
            return [found[task["identity"]] for task in tasks], None

        yield run


def _task(options: RunOptions) -> Task:
    config = json.loads(_core.check(options.to_json()))
    is_preset = _core.workload_spec(options.workload.partition(",")[0]) is not None
    path = Path(options.workload)
    file = text = None
    # A long specification is no valid file name.
    with contextlib.suppress(OSError):
        if not is_preset and holder(path).is_file():
            if path.suffix == ".fio" and path.stat().st_size <= _JOB_FILE_BYTES:
                text = path.read_text(encoding="utf-8")
            else:
                file = dataclasses.asdict(WorkloadFile.read(str(path)))
    fields = dataclasses.asdict(options)
    drive = _core.show(options.ssd, options.ftl, list(options.overrides))
    name = [fields | {"workload": None if text is not None else options.workload}, drive, text, file]
    return {
        "identity": hashlib.blake2b(json.dumps(name).encode(), digest_size=16).hexdigest(), "options": fields,
        "drive": drive, "name": config["name"], "file": file, "jobs": text, "simulator": simulator(), "state": None,
        "series": _SERIES if options.series else (),
    }  # fmt: skip


def _result(outcome: Outcome) -> Result:
    error = outcome["error"]
    if error is None:
        return Result(outcome["result"], outcome["series"], "")
    kind = getattr(errors, error["kind"], Error)
    raise (kind if isinstance(kind, type) and issubclass(kind, Error) else Error)(error["text"])
