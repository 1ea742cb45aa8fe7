"""Runs: one, or several side by side in threads. The only module that calls the simulator.

The native module releases the interpreter's lock, so threads run in parallel. A result depends on its options alone,
never on the number of parallel runs; only the figures under `sim` (wall time, memory) do.
"""

import contextlib
import dataclasses
import json
import sys
import threading
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from . import _core, native, plugins, states
from .errors import InputError, Interrupted
from .files import digest, holder, is_file
from .options import RunOptions
from .result import Result

Progress = Callable[[str, int, int, int], None]
"""Callback about ten times a second: phase (`precondition`, `warmup` or `run`), requests done, requests expected (0 if
unknown), simulated nanoseconds."""

_LOOK_EVERY_S = 0.1


def peak_rss_bytes() -> int | None:
    """Peak memory of this process in bytes; None if the operating system does not report it."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def check(runs: Sequence[RunOptions], *, strict: bool = False) -> list[str]:
    """Resolves each configuration; returns lines for settings that some run does not read. Raises InputError."""
    if native.PROBLEM:
        raise InputError(native.PROBLEM)
    found = unread(runs)
    expect_read(runs, found, strict=strict)
    return list(dict.fromkeys(f"{each.place}: {each.what}" for each in found))


def expect_read(runs: Sequence[RunOptions], found: Sequence["Unread"], *, strict: bool = False) -> None:
    """Raises InputError for the first setting that no run reads, with a remedy for all such settings of its run."""
    refused = next((each for each in found if each.is_mistake or strict), None)
    if refused is None:
        return
    keys = [each.key for each in found if each.run == refused.run and (each.is_mistake or strict)]
    run = runs[refused.run]
    remedy = _core.unread_remedy(run.ssd, run.ftl, list(run.overrides), keys)
    raise UnreadError(f"{refused.place}: {refused.what}; expected {remedy}", refused.run)


class UnreadError(InputError):
    """A setting of the run at index `run` that nothing reads."""

    def __init__(self, message: str, run: int) -> None:
        super().__init__(message)
        self.run = run


@dataclasses.dataclass(frozen=True, slots=True)
class Unread:
    """A setting that the run at index `run` does not read; a mistake if no run reads the setting."""

    run: int
    key: str
    place: str
    what: str
    is_mistake: bool


def unread(runs: Sequence[RunOptions]) -> list[Unread]:
    """Returns the settings that some runs do not read. Raises InputError for a wrong drive, layer or key."""
    known: dict[tuple[str, str | None, tuple[str, ...]], list[list[str]]] = {}
    # Layers in Python first: the other runs may set keys that they declare.
    named = {name for name, _ in plugins.names("ftl.name")}
    for run in sorted(runs, key=lambda run: ":" not in (run.ftl or "") and run.ftl not in named):
        drive = (run.ssd, run.ftl, run.overrides)
        if drive not in known:
            known[drive] = _core.unread_keys(run.ssd, run.ftl, list(run.overrides))
    each = [known[run.ssd, run.ftl, run.overrides] for run in runs]
    keys = {key for found in each for key, *_ in found}
    # A run that reads a key excuses runs with the same source of the key that do not.
    read = {
        (key, _setter(run, key))
        for run, found in zip(runs, each, strict=True)
        for key in keys - {one[0] for one in found}
    }
    return [
        Unread(at, key, place, what, gravity == "mistake" and (key, _setter(run, key)) not in read)
        for at, (run, found) in enumerate(zip(runs, each, strict=True))
        for key, place, what, _expected, gravity in found
        if gravity != "harmless"
    ]


def _setter(run: RunOptions, key: str) -> str:
    """The source of a key of a run: options, or else the file of the drive."""
    by_option = any(each.partition("=")[0].strip() == key for each in run.overrides)
    return "--set" if by_option else run.ssd


def layer_of(options: RunOptions) -> str:
    """Returns the name of the layer of a run, resolved from the drive."""
    shown = _core.show(options.ssd, options.ftl, list(options.overrides))
    return str(tomllib.loads(shown)["ftl"]["name"])


_KEPT = ("series", "sketch", "operations", "strict", "label")
"""Options without influence on figures: they select the kept data, the end at a failed command, and the label."""


def provenance(options: RunOptions) -> dict[str, Any]:
    """The origin of figures: version and sources of the simulator, options, and digests of regular files."""
    found = {}
    for name in ("workload", "ssd"):
        path = Path(getattr(options, name))
        is_drive = name == "ssd" and not ("/" in options.ssd or options.ssd.endswith((".toml", ".pal")))
        with contextlib.suppress(OSError):
            is_preset = name == "workload" and _core.workload_spec(options.workload.partition(",")[0]) is not None
            if not is_drive and not is_preset and is_file(holder(path)):
                found[name] = digest(path)
    given = json.loads(json.dumps(dataclasses.asdict(options)))
    return {
        "version": _core.version(),
        "sources": _core.build(),
        "files_blake2b": found,
        "options": {name: value for name, value in given.items() if name not in _KEPT},
    }


def made_from(summary: Path) -> list[dict[str, Any]] | None:
    """The options of the results in a `summary.json`; None if the file has none."""
    try:
        data = json.loads(summary.read_bytes())
        return [run["provenance"]["options"] for run in data.get("runs", [data])]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def run_one(options: RunOptions, progress: Progress | None = None, *, keep_interrupted: bool = False) -> Result:
    """Runs one simulation. Raises the errors of `palimpsest.run`, and KeyboardInterrupt.

    With `keep_interrupted` an interrupted run returns the figures measured before Ctrl-C; the result's `interrupted` is
    then true.
    """
    states.prepare()
    configuration = options.described() + _core.show(options.ssd, options.ftl, list(options.overrides))
    try:
        summary, series = _core.run(options.to_json(), progress)
    except Interrupted as error:
        raise KeyboardInterrupt from error
    result = _result(options, summary, series, configuration)
    if result.get("interrupted") and not keep_interrupted:
        raise KeyboardInterrupt
    return result


def _result(options: RunOptions, summary: str, series: str, configuration: str) -> Result:
    data = json.loads(summary)
    if options.label is not None:
        data["label"] = options.label
    if options.fitted is not None:
        data["fit_memory"] = json.loads(options.fitted)
        data["notes"] = [*data.get("notes", []), f"--fit-memory: {data['fit_memory']['text']}"]
    data["provenance"] = provenance(options)
    if of_plugins := plugins.used(data["config"], options.format):
        data["provenance"]["plugins"] = of_plugins
    data.setdefault("sim", {})["peak_rss_bytes"] = peak_rss_bytes()
    return Result(data, json.loads(series), configuration)


def serve(
    options: RunOptions, serving: Mapping[str, object], say: Callable[[str], None], progress: Progress | None = None
) -> tuple[Result, int]:
    """Serves a drive to real programs until a signal, or an event that `serving` names.

    `serving` has `listen` (places), `nvme` (a subsystem instead of NBD, or absent), `clock`, `page` (`place` and
    `html`, or None), `once`, `run` (a command or None), `image` (a file or None), `image_sync`, `record` (a file or
    None), `timeout_s`. `say` receives messages, from any thread; the first names the place of the drive. Returns the
    result, and the status of the command beside the drive (0 without one, 1 after a signal).
    """
    configuration = options.described() + _core.show(options.ssd, options.ftl, list(options.overrides))
    try:
        summary, series, status = _core.serve(options.to_json(), json.dumps(serving), say, progress)
    except Interrupted as error:
        raise KeyboardInterrupt from error
    run = serving.get("run") is not None
    return _result(options, summary, series, configuration), 0 if not run else 1 if status is None else status


class _Stopped(Exception):
    """Another run failed or the user interrupted, so this run must end."""


def _watching(stop: threading.Event, progress: Progress | None) -> Progress:
    def callback(phase: str, done: int, expected: int, simulated_ns: int) -> None:
        if stop.is_set():
            raise _Stopped
        if progress is not None:
            progress(phase, done, expected, simulated_ns)

    return callback


def run_many(
    runs: Sequence[RunOptions], jobs: int = 1, progress: Callable[[str], Progress | None] = lambda _label: None,
    *, seeds: bool = False,
) -> tuple[list[Result], BaseException | None]:  # fmt: skip
    """Runs up to `jobs` at a time; returns the results in order, and the exception that ended other runs, or None.

    `progress` gets the label of each run, with `seeds` followed by the seed.
    """
    stop = threading.Event()

    def one(options: RunOptions) -> Result:
        if stop.is_set():
            raise _Stopped
        try:
            callback = progress(f"{options.label or options.ftl or 'run'}{f', seed {options.seed}' * seeds}")
            return run_one(options, callback if jobs == 1 else _watching(stop, callback))
        except BaseException:
            stop.set()
            raise

    if jobs == 1:
        results: list[Result] = []
        for options in runs:
            try:
                results.append(one(options))
            except BaseException as error:
                return results, error
        return results, None

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(one, options) for options in runs]
        failure: BaseException | None = None
        try:
            pending = set(futures)
            while pending:
                # The timeout lets this thread see a signal that another thread took.
                _, pending = wait(pending, timeout=_LOOK_EVERY_S)
        except KeyboardInterrupt as error:
            failure = error
            stop.set()
            wait(futures)
    errors = [future.exception() for future in futures]
    # The native module raises the callback's exception as it is, or as the cause of an interrupt.
    stops = (_Stopped, KeyboardInterrupt, Interrupted)
    first = next((error for error in errors if error is not None and not isinstance(error, stops)), None)
    done = [future.result() for future, error in zip(futures, errors, strict=True) if error is None]
    return done, failure or first
