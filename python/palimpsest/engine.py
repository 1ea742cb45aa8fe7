"""Runs: one, or several side by side in threads. The only module that calls the simulator.

The native module releases the interpreter's lock, so that threads run in parallel. A result depends on its options
alone, never on how many others run beside it; only the figures under `sim` (wall time, memory) do.
"""

import contextlib
import dataclasses
import json
import sys
import threading
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from . import _core, native, states
from .errors import InputError, Interrupted
from .files import digest, holder
from .options import RunOptions
from .result import Result

Progress = Callable[[str, int, int, int], None]
"""Called about ten times a second with the phase (`precondition`, `warmup` or `run`), requests done, requests expected
(0 where unknown) and simulated nanoseconds."""


_LOOK_EVERY_S = 0.1


def peak_rss_bytes() -> int | None:
    """Peak memory of this process in bytes; None where the operating system does not report it."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def check(runs: Sequence[RunOptions], *, strict: bool = False) -> list[str]:
    """Resolves the configuration of each run, so that a mistake in one is found before any has started.

    Args:
        runs: what is to run side by side.
        strict: refuse a setting that one of the runs does not read; otherwise only one that none of them reads.

    Returns:
        A line for each setting that some run does not read.

    Raises:
        InputError: a drive, layer or configuration key is wrong, no run reads a setting, or the native module that the
            environment names is wrong.
    """
    if native.PROBLEM:
        raise InputError(native.PROBLEM)
    found = unread(runs)
    for each in found:
        if each.is_mistake or strict:
            raise InputError(f"{each.place}: {each.what}; expected {each.expected}")
    return list(dict.fromkeys(f"{each.place}: {each.what}" for each in found))


@dataclasses.dataclass(frozen=True, slots=True)
class Unread:
    """A setting that a run does not read.

    Attributes:
        run: position of the run.
        place: `FILE:LINE`, or `--set key=value`.
        what: who does not read it.
        expected: what would read it.
        is_mistake: whether no run at all reads what is set there.
    """

    run: int
    place: str
    what: str
    expected: str
    is_mistake: bool


def unread(runs: Sequence[RunOptions]) -> list[Unread]:
    """The settings that some of the runs do not read.

    Raises:
        InputError: a drive, layer or configuration key is wrong.
    """
    known: dict[tuple[str, str | None, tuple[str, ...]], list[list[str]]] = {}
    for run in runs:
        drive = (run.ssd, run.ftl, run.overrides)
        if drive not in known:
            known[drive] = _core.unread_keys(run.ssd, run.ftl, list(run.overrides))
    each = [known[run.ssd, run.ftl, run.overrides] for run in runs]
    keys = {key for found in each for key, *_ in found}
    # Whoever sets a key and reads it excuses the runs that do not.
    read = {
        (key, _setter(run, key))
        for run, found in zip(runs, each, strict=True)
        for key in keys - {one[0] for one in found}
    }
    return [
        Unread(at, place, what, expected, gravity == "mistake" and (key, _setter(run, key)) not in read)
        for at, (run, found) in enumerate(zip(runs, each, strict=True))
        for key, place, what, expected, gravity in found
        if gravity != "harmless"
    ]


def _setter(run: RunOptions, key: str) -> str:
    """Where a run has a key from: its options, or else the file of its drive."""
    by_option = any(each.partition("=")[0].strip() == key for each in run.overrides)
    return "--set" if by_option else run.ssd


def layer_of(options: RunOptions) -> str:
    """The name of the layer of a run, that of the drive included."""
    shown = _core.show(options.ssd, options.ftl, list(options.overrides))
    return str(tomllib.loads(shown)["ftl"]["name"])


_KEPT = ("series", "sketch", "operations", "label")
"""Options of what is kept of a run and what it is called: no figure depends on them."""


def provenance(options: RunOptions) -> dict[str, Any]:
    """What figures came from: version and digest of the simulator's sources, options, and digests of their files.

    A file that cannot be read twice, such as a pipe, has none.
    """
    found = {}
    for name in ("workload", "ssd"):
        path = Path(getattr(options, name))
        is_drive = name == "ssd" and not ("/" in options.ssd or options.ssd.endswith((".toml", ".pal")))
        with contextlib.suppress(OSError):
            is_preset = name == "workload" and _core.workload_spec(options.workload.partition(",")[0]) is not None
            if not is_drive and not is_preset and holder(path).is_file():
                found[name] = digest(path)
    given = json.loads(json.dumps(dataclasses.asdict(options)))
    return {
        "version": _core.version(),
        "sources": _core.build(),
        "files_blake2b": found,
        "options": {name: value for name, value in given.items() if name not in _KEPT},
    }


def made_from(summary: Path) -> list[dict[str, Any]] | None:
    """The options of the results in a `summary.json`; None where it does not say them."""
    try:
        data = json.loads(summary.read_bytes())
        return [run["provenance"]["options"] for run in data.get("runs", [data])]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def run_one(options: RunOptions, progress: Progress | None = None, *, keep_interrupted: bool = False) -> Result:
    """Runs one simulation.

    Args:
        options: what to run.
        progress: receives the progress.
        keep_interrupted: return what was measured before Ctrl-C (the result's `interrupted` is then true) instead of
            raising KeyboardInterrupt.

    Raises:
        InputError: the options or the workload are wrong.
        DeviceError: the simulated drive failed.
        RuleError: the layer broke a rule of flash.
        WorkloadIoError: the workload could not be read.
        KeyboardInterrupt: the user ended it.
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
    data["provenance"] = provenance(options)
    data.setdefault("sim", {})["peak_rss_bytes"] = peak_rss_bytes()
    return Result(data, json.loads(series), configuration)


def serve(
    options: RunOptions, serving: Mapping[str, object], say: Callable[[str], None], progress: Progress | None = None
) -> tuple[Result, int]:
    """Serves a drive to real programs until a signal, or what `serving` says, ends that.

    Args:
        options: the drive; it stores bytes.
        serving: how it is served: `listen` (places), `clock`, `page`,
            `once`, `run` (a command or None), `image` (a file or None),
            `image_sync`, `record` (a file or None), `timeout_s`.
        say: gets a line, from any thread, where there is something to say: first where the drive is served.
        progress: receives the progress of preconditioning.

    Returns:
        The result, and the status of the command that ran beside it (0 without one, 1 where a signal ended it).

    Raises:
        InputError: the options are wrong, or a place cannot be listened at.
        DeviceError: the simulated drive failed.
        RuleError: the layer broke a rule of flash.
        KeyboardInterrupt: the user ended it before it was served.
    """
    configuration = options.described() + _core.show(options.ssd, options.ftl, list(options.overrides))
    try:
        summary, series, status = _core.serve(options.to_json(), json.dumps(serving), say, progress)
    except Interrupted as error:
        raise KeyboardInterrupt from error
    run = serving.get("run") is not None
    return _result(options, summary, series, configuration), 0 if not run else 1 if status is None else status


class _Stopped(Exception):
    """Another run failed or the user interrupted: this one is to end as well."""


def _watching(stop: threading.Event, progress: Progress | None) -> Progress:
    def callback(phase: str, done: int, expected: int, simulated_ns: int) -> None:
        if stop.is_set():
            raise _Stopped
        if progress is not None:
            progress(phase, done, expected, simulated_ns)

    return callback


def run_many(
    runs: Sequence[RunOptions],
    jobs: int = 1,
    progress: Callable[[str], Progress | None] = lambda _label: None,
) -> tuple[list[Result], BaseException | None]:
    """Runs several simulations, up to `jobs` at a time.

    Args:
        runs: what to run; results come back in this order.
        jobs: threads.
        progress: gives the progress callback of one run, by its label (the layer's name).

    Returns:
        The results of the runs that finished, and what ended the others (None if nothing did). A failure ends the runs
        that come after it; what was finished is kept.
    """
    stop = threading.Event()

    def one(options: RunOptions) -> Result:
        if stop.is_set():
            raise _Stopped
        try:
            callback = progress(options.label or options.ftl or "run")
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
                # With an end: where another thread took the signal, this one sees it between two waits.
                _, pending = wait(pending, timeout=_LOOK_EVERY_S)
        except KeyboardInterrupt as error:
            failure = error
            stop.set()
            wait(futures)
    return _gather(futures, failure)


def _gather(
    futures: list["Future[Result]"], failure: BaseException | None
) -> tuple[list[Result], BaseException | None]:
    results = []
    for future in futures:
        error = future.exception()
        if error is None:
            results.append(future.result())
        elif failure is None and not _is_stop(error):
            failure = error
    return results, failure


def _is_stop(error: BaseException) -> bool:
    # The native module raises the callback's exception as it is, or as the cause of an interrupt.
    return isinstance(error, _Stopped | KeyboardInterrupt | Interrupted)
