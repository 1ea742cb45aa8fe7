"""The Python interface: a drive, a workload, a run, a comparison."""

import dataclasses
import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, cast

from . import _core, engine, fitting, frames, layers, policies, states, tenants, timelines, traces, units
from .engine import Progress
from .errors import Error, InputError
from .intervals import METHODS
from .options import FIRST_OPERATIONS, RunOptions
from .replicates import Replicates
from .replicates import replicate as replicated
from .result import Comparison, Result

if TYPE_CHECKING:
    Workload: TypeAlias = str | Path | frames.Frame
else:
    Workload: TypeAlias = Any

_DEFAULT = RunOptions()


class Settings(TypedDict, total=False):
    """Options of a run; all are optional.

    Configuration keys may stand among them, as in `**{"ssd.channels": 4}`, where `overrides` is another way.

    Attributes:
        overrides: configuration keys with values.
        policies: policies in Python by key, such as `{"ftl.victim": MyVictim()}`; see `palimpsest.policies`.
        precondition: `none`, `fill:90%`, `fill:90%,random:2x` or `steady`.
        requests: number of requests, such as `1e6` or `"100k"`; None for the whole workload.
        warmup: requests, or share such as `"10%"`, at the start that are not measured.
        fidelity: `timed`, or `count` for operation counts only (latencies are then None).
        payload: `tag`: every read is compared with the last write, and in timed runs an operation or acknowledgement
            before the data that it needs raises `RuleError`; `bytes` for real data too; `none` verifies nothing.
        check: verify with at least the payload `tag`, as by default.
        seed: seed of all random numbers.
        skip_bad: count and skip bad lines of a trace instead of ending at the first.
        format: format of a trace, as in `palimpsest list traces`; None to recognise the format by content.
        columns: columns of a text without a known format, as in `--columns`.
        volumes: addresses of the volumes of a trace: `"apart"` (default if the format has volumes), `"overlaid"`, or
            the played volumes, numbers or names, such as `"3,xvda1"` or `[3, 7]`.
        arrivals: `"spread"` spreads requests of one time over the tick of the trace's clock.
        start: the share of the requests of a trace that is played last, such as `"20%"`; `"spread"` with several seeds:
            their runs begin at evenly spread requests.
        repeat: repetitions of the workload: a number, or `"2dw"` for two drive writes.
        until: `"1%"` goes on until the figures are known within 1 %, `"p99:5%"` until one is; `"worn-out"` until the
            drive can write no more (`faults.wear_out`).
        at_most: requests, or simulated time such as `"20s"`, at which `until` ends in any case; 10e6 by default.
        series: keep time series and histograms, for plots and Parquet (default).
        fit_memory: scale the drive to the memory at hand (True), or to a size such as `"16GiB"` for each run, with all
            ratios of sizes kept; `fit_memory` of the result has the factor and the scaled keys.
        operations: keep the times of the flash operations of the first 1000 requests (True), or of a window of requests
            (`"501..600"`) or times (`"10ms..12ms"`), in the tables `operations` and `requests`; `"slowest:20"` keeps
            the slowest requests of each kind, and the parts of response times as `why`.
    """

    overrides: Mapping[str, object]
    policies: Mapping[str, object]
    precondition: str
    requests: float | str | None
    warmup: int | str | None
    fidelity: str
    payload: str
    check: bool
    seed: int
    skip_bad: bool
    format: str | None
    columns: str | None
    volumes: str | int | Sequence[int | str] | None
    arrivals: str
    start: str | None
    repeat: int | str | None
    until: str | None
    at_most: float | str | None
    series: bool
    fit_memory: bool | str
    operations: bool | str


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _assignments(overrides: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(f"{key}={_text(value)}" for key, value in overrides.items())


def fio(**keys: object) -> str:
    """Returns a synthetic workload in fio's language, for the `workload` of a run, which refuses unknown keys.

    Keys are fio's, such as `rw="randwrite"`, `bs="4k"`, `size="1GiB"`, `n=1e6`, `iodepth=32`,
    `random_distribution="zipf:0.95"`, `rwmixread=30`, `rate_iops=20000`.
    """
    return ",".join(f"{key}={int(value) if isinstance(value, bool) else _text(value)}" for key, value in keys.items())


class Ssd:
    """A drive: a preset or a TOML file, a translation layer, and changes of configuration keys.

    >>> Ssd("mga-16k", ftl="mga", **{"part.nop": 4})

    Args:
        ssd: preset (`palimpsest list ssds`) or path of a TOML file.
        ftl: translation layer (`palimpsest list ftls`), or a class (`palimpsest.layers`); None for the layer of the
            preset.
        **overrides: configuration keys with values. Quantities carry units, as in `"16KiB"` or `"35us"`.

    Raises:
        InputError: the drive, layer or key is unknown, or a value is out of range.
    """

    def __init__(self, ssd: str | Path = _DEFAULT.ssd, /, ftl: str | type | None = None, **overrides: object) -> None:
        self.ssd = str(ssd)
        self.ftl = layers.name_of(ftl)
        self.overrides = _assignments(overrides)
        self._config = _core.show(self.ssd, self.ftl, list(self.overrides))

    @property
    def config(self) -> str:
        """The resolved configuration as TOML: every key with meaning and source of the value."""
        return self._config

    def __repr__(self) -> str:
        parts = [repr(self.ssd), *([f"ftl={self.ftl!r}"] if self.ftl else []), *self.overrides]
        return f"Ssd({', '.join(parts)})"

    def run(
        self, workload: Workload = _DEFAULT.workload, *, progress: Progress | None = None, alone: bool = False,
        **settings: Unpack[Settings],
    ) -> Result:  # fmt: skip
        """Runs a workload on a new drive of this kind; see `palimpsest.run`."""
        return run(workload, ssd=self, progress=progress, alone=alone, **settings)


def _whole(name: str, value: object, least: int) -> int:
    """Reads a whole number of 64 bits; `requests` may be text such as `"100k"`. Raises InputError for other values."""
    if isinstance(value, str) and name == "requests":
        try:
            return units.parse_count(value)
        except ValueError as error:
            raise InputError(f"{name}: {error}") from error
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"{name}: expected a whole number from {least} to 2^64 - 1, found {value!r}")
    number = float(value)
    if not number.is_integer() or not least <= number < 2**64:
        raise InputError(f"{name}: expected a whole number from {least} to 2^64 - 1, found {value!r}")
    # An integer keeps all its digits.
    return int(cast(Any, value))


def _mapping(overrides: object) -> Mapping[str, object]:
    if not isinstance(overrides, Mapping):
        what = 'expected a mapping of configuration keys, such as {"ftl.victim": "fifo"}'
        raise InputError(f"overrides: {what}, found {overrides!r}")
    return overrides


def _optional_text(value: object) -> str | None:
    return None if value is None else _text(value)


def _volumes(value: str | int | Sequence[int | str] | None) -> str | None:
    if value is None or isinstance(value, str | int):
        return _optional_text(value)
    return ",".join(map(str, value))


def _named(workload: Workload) -> str:
    """Returns the name of a workload; a data frame is written as a trace. Raises InputError for other types."""
    if frames.is_frame(workload):
        return str(frames.trace_of(cast("frames.Frame", workload)))
    if not isinstance(workload, str | Path):
        what = "a preset, the path of a trace, a specification, or a data frame"
        raise InputError(f"workload: expected {what}, found a {type(workload).__name__}")
    return str(workload)


def _expect_drive(ssd: object) -> None:
    """Raises InputError for a value that names no drive."""
    if not isinstance(ssd, str | Path | Ssd):
        raise InputError(f"ssd: expected a preset, the path of a TOML file, or an Ssd, found {ssd!r}")


def _keys(settings: Settings) -> dict[str, object]:
    """Configuration keys, such as `ssd.channels`, among settings: `Ssd` and `Drive` take these, too."""
    return {key: value for key, value in settings.items() if "." in key}


def _options(workload: Workload, ssd: str | Path | Ssd, ftl: str | type | None, settings: Settings) -> RunOptions:
    keys = _keys(settings)
    unknown = sorted(settings.keys() - Settings.__annotations__.keys() - keys.keys())
    if unknown:
        expected = ", ".join(Settings.__annotations__)
        raise TypeError(f"unexpected option {unknown[0]!r}; expected a configuration key, or one of {expected}")
    _expect_drive(ssd)
    drive = ssd if isinstance(ssd, Ssd) else None
    requests, warmup = settings.get("requests"), settings.get("warmup")
    operations = settings.get("operations", False)
    return RunOptions(
        ssd=drive.ssd if drive else str(ssd), ftl=layers.name_of(ftl) or (drive.ftl if drive else None),
        workload=_named(workload),
        overrides=(drive.overrides if drive else ()) + _assignments(_mapping(settings.get("overrides", {})))
        + _assignments(keys) + _assignments(policies.keys(_mapping(settings.get("policies", {})))),
        precondition=settings.get("precondition", _DEFAULT.precondition),
        requests=None if requests is None else _whole("requests", requests, 1),
        warmup=None if warmup is None else str(warmup), fidelity=settings.get("fidelity", _DEFAULT.fidelity),
        payload=settings.get("payload", _DEFAULT.payload), check=settings.get("check", False),
        seed=_whole("seed", settings.get("seed", _DEFAULT.seed), 0), skip_bad=settings.get("skip_bad", False),
        format=settings.get("format"), columns=settings.get("columns"), volumes=_volumes(settings.get("volumes")),
        arrivals=settings.get("arrivals", _DEFAULT.arrivals), repeat=_optional_text(settings.get("repeat")),
        start=settings.get("start"),
        until=settings.get("until"), at_most=_optional_text(settings.get("at_most")),
        series=settings.get("series", True),
        operations=(FIRST_OPERATIONS if operations is True else operations) or None,
    )  # fmt: skip


class Trace:
    """A workload without a drive, made by `palimpsest.trace`."""

    def __init__(self, options: traces.TraceOptions) -> None:
        self._options = options

    def info(self, progress: Progress | None = None) -> dict[str, Any]:
        """Describes the workload, as `palimpsest trace info --json` does; see `palimpsest help howto-trace`.

        Returns:
            Figures as plain data: ratios are shares of one, sizes bytes, times nanoseconds; None for a division by
                zero. `reuse` has miss ratios by the size of an LRU cache, `working_sets` distinct pages by window, each
                for `all`, `read` and `write`; `volumes` has both by volume.

        Raises:
            InputError: the workload is wrong.
            WorkloadIoError: reading failed.
        """
        return traces.describe(self._options, progress)[0]

    def __repr__(self) -> str:
        return f"trace({self._options.workload!r})"


def trace(
    workload: Workload,
    *,
    ssd: str | Path = _DEFAULT.ssd,
    requests: float | str | None = None,
    seed: int = _DEFAULT.seed,
    skip_bad: bool = False,
    format: str | None = None,  # noqa: A002 - as in a run
    columns: str | None = None,
    volumes: str | int | Sequence[int | str] | None = None,
) -> Trace:
    """Returns a trace, or any other workload, to describe without a drive.

    >>> ps.trace("web_3.csv.zst").info()["reuse"]["all"]["misses"]

    Arguments are as in `palimpsest.run`; a generated workload is laid out on `ssd`. Raises InputError for a wrong
    option; `info` opens the file.
    """
    _expect_drive(ssd)
    options = traces.TraceOptions(
        workload=_named(workload), ssd=str(ssd),
        requests=None if requests is None else _whole("requests", requests, 1), seed=_whole("seed", seed, 0),
        skip_bad=skip_bad, columns=columns, volumes=_volumes(volumes), input_format=format,
    )  # fmt: skip
    return Trace(options)


def run(
    workload: Workload = _DEFAULT.workload,
    *,
    ssd: str | Path | Ssd = _DEFAULT.ssd,
    ftl: str | type | None = None,
    progress: Progress | None = None,
    alone: bool = False,
    **settings: Unpack[Settings],
) -> Result:
    """Runs a workload on a drive.

    Args:
        workload: preset, trace file, fio job file, specification (see `fio`), or data frame with the columns of the
            trace format `parquet`.
        ssd: preset, TOML file or `Ssd`.
        ftl: translation layer, or a class; None for the layer of the drive.
        progress: called about ten times a second with phase, requests done, requests expected (0 if unknown) and
            simulated nanoseconds. An exception of this function ends the run.
        alone: run each tenant (section of a job file, volume of a trace) alone too: `tenants` of the result then have
            `slowdown`, and `tenancy` has `fairness`.
        **settings: see `palimpsest.api.Settings`.

    Raises:
        InputError: an option or the workload is wrong.
        DeviceError: the simulated drive failed, for example at the end of life.
        RuleError: the translation layer broke a rule of flash.
        WorkloadIoError: reading the workload failed.

    Warns:
        UserWarning: the file of the drive sets a key that the layer does not read.
    """
    options = _options(workload, ssd, ftl, settings)
    if alone:
        tenants.check(options)
    _check([options])
    [options] = _fitted([options], settings, 1)
    result = engine.run_one(options, progress)
    if alone:
        result, failure = tenants.compared(options, result, 1, lambda _label: progress)
        if failure is not None:
            raise failure
    states.say_problems(lambda note: warnings.warn(note, UserWarning, stacklevel=4))
    _warn_of_window(options, [result])
    return result


def serve_nvme(
    command: str,
    *,
    ssd: str | Path | Ssd = _DEFAULT.ssd,
    ftl: str | type | None = None,
    listen: str = "127.0.0.1:0",
    nqn: str | None = None,
    block: int = 4096,
    namespaces: Sequence[int] = (),
    image: str | Path | None = None,
    clock: str = "none",
    say: Callable[[str], None] = lambda _line: None,
    **settings: Unpack[Settings],
) -> Result:
    """Serves a drive as an NVMe/TCP target while `command` runs in a shell; see `palimpsest help nvme`.

    >>> ps.serve_nvme("xnvme info $uri", ssd="mga-8k")

    Args:
        command: gets the address as `$uri`, `nvme+tcp://HOST:PORT/NQN`.
        ssd: preset, TOML file or `Ssd`.
        ftl: translation layer, or a class; None for the layer of the drive.
        listen: `HOST:PORT`; port 0 is any free one.
        nqn: name of the subsystem; None makes one from the UUID of the image, or of the new drive.
        block: bytes of a logical block, 512 or 4096.
        namespaces: bytes of the namespaces; none for one of the whole drive.
        image: file that keeps the drive, made if needed; `ssd` may be an existing one, whose seed is the default.
        clock: time of the drive: `none`, `virtual`, `paced` or `scaled:10`.
        say: called with lines for the user, from any thread.
        **settings: `overrides`, `precondition` and `seed` of `palimpsest.api.Settings`.

    Raises:
        InputError: an option is wrong.
        DeviceError: the simulated drive failed.
        Error: the command failed.
    """
    taken = ("overrides", "precondition", "seed")
    unknown = sorted(settings.keys() - set(taken) - _keys(settings).keys())
    if unknown:
        raise TypeError(f"unexpected option {unknown[0]!r}; expected one of {', '.join(taken)}")
    if block not in (512, 4096):
        raise InputError(f"block: expected 512 or 4096, found {block!r}")
    given: Settings = {"precondition": "none", **settings, "payload": "bytes", "series": False}
    given["fidelity"] = "count" if clock == "none" else "timed"
    seed = None if image is None else _core.image_seed(str(image))
    if seed is not None:
        given.setdefault("seed", seed)
    options = _options("nvme", ssd, ftl, given)
    _check([options])
    if image is not None:
        added = _core.image_settings(options.ssd, options.ftl, list(options.overrides))
        options = dataclasses.replace(options, overrides=(*options.overrides, *added))
    serving: dict[str, object] = {
        "listen": [listen], "clock": clock, "page": None, "once": False, "run": command, "image_sync": False,
        "nvme": {"nqn": nqn, "hosts": [], "block_bytes": block, "namespaces": list(namespaces), "others": []},
        "image": None if image is None else str(image), "record": None, "timeout_s": 30.0,
    }  # fmt: skip
    result, status = engine.serve(options, serving, say)
    if status:
        raise Error(f"the command ended with status {status}")
    return result


def _warn_of_window(options: RunOptions, results: Sequence[Result]) -> None:
    """Warns of an empty timeline. The command line refuses such a window; a program keeps the result."""
    beyond = timelines.beyond_the_end(options.operations, results)
    if beyond is not None:
        warnings.warn(beyond.replace("--operations-window", "operations"), UserWarning, stacklevel=3)


def _check(runs: Sequence[RunOptions]) -> None:
    for run in runs:
        timelines.expect_inside(run)
    for line in engine.check(runs):
        warnings.warn(line, UserWarning, stacklevel=3)


def _fitted(runs: list[RunOptions], settings: Settings, jobs: int) -> list[RunOptions]:
    """The runs with the drives of the setting `fit_memory`. Raises InputError for a wrong size."""
    wanted = settings.get("fit_memory", False)
    if wanted is False:
        return runs
    try:
        memory = fitting.memory_of("auto" if wanted is True else str(wanted))
    except ValueError as error:
        raise InputError(f"fit_memory: {error}") from error
    return fitting.fitted(runs, memory, jobs)[0]


def replicate(
    ftls: Sequence[str | type] | Mapping[str, Mapping[str, object]] | None = None,
    *,
    seeds: Sequence[int],
    interval: str = "t",
    ssd: str | Path | Ssd = _DEFAULT.ssd,
    workload: Workload = _DEFAULT.workload,
    jobs: int = 1,
    **settings: Unpack[Settings],
) -> Replicates:
    """Repeats a run, or a comparison, with several seeds: means with 95 % confidence intervals.

    >>> replicate(["page", "mga"], seeds=range(1, 6), ssd="mga-16k", workload="trade", jobs=2)

    `ftls` is as in `compare`, None for the layer of the drive; `interval` is `t` (Student's t) or `bootstrap`. Other
    arguments and errors are those of `compare`, and InputError for wrong seeds or intervals.
    """
    if "seed" in settings:
        raise InputError("seed: `seeds` names the seed of every run; expected one of them")
    base = _options(workload, ssd, None, settings)
    runs = [base] if ftls is None else _labelled(base, ftls)
    chosen = [_whole("seeds", seed, 0) for seed in seeds]
    if not chosen or len(set(chosen)) < len(chosen):
        raise InputError("seeds: expected at least one, each once")
    if interval not in METHODS:
        raise InputError(f"interval {interval!r}: expected one of {', '.join(METHODS)}")
    _check(runs)
    made, failure = replicated(_fitted(runs, settings, jobs), chosen, interval, jobs)
    if failure is not None or made is None:
        raise failure or InputError("no run finished; expected one")
    return made


def _labelled(base: RunOptions, ftls: Sequence[str | type] | Mapping[str, Mapping[str, object]]) -> list[RunOptions]:
    if isinstance(ftls, str) or not ftls:
        raise ValueError('expected a list of translation layers, such as ["page", "subpage"]')
    if isinstance(ftls, Mapping):
        texts = [f"{label}:{','.join(_assignments(changes))}" for label, changes in ftls.items()]
        return [base.labelled(text) for text in texts]
    return [base.with_ftl(layers.name_of(ftl)) for ftl in ftls]


def load(folder: str | Path) -> Result | Comparison | Replicates:
    """Reads the results in a folder of `palimpsest run --out`, `compare --out`, or `save`, series included.

    Returns a `Result` for a run, a `Comparison` for a comparison, `Replicates` for runs with `--seeds`. Raises
    InputError without results, or for damaged ones.
    """
    from . import outputs

    return outputs.load(folder)


def compare(
    ftls: Sequence[str | type] | Mapping[str, Mapping[str, object]],
    *,
    ssd: str | Path | Ssd = _DEFAULT.ssd,
    workload: Workload = _DEFAULT.workload,
    jobs: int = 1,
    **settings: Unpack[Settings],
) -> Comparison:
    """Runs the same workload on several translation layers, or with several settings; ratios are to the first.

    >>> compare(["page", "mga"], ssd="mga-16k", workload="trade")
    >>> compare({"greedy": {"ftl.victim": "greedy"}, "cb": {"ftl.victim": "cost-benefit"}})

    `ftls` are layers, or labels with changes: configuration keys, `ftl`, `ssd`. Up to `jobs` run at a time, without
    influence on figures outside `sim`. Other arguments, errors and warnings are those of `palimpsest.run`; after an
    error no result is returned. Raises ValueError without a layer.
    """
    runs = _labelled(_options(workload, ssd, None, settings), ftls)
    _check(runs)
    runs = _fitted(runs, settings, jobs)
    results, failure = engine.run_many(runs, jobs)
    if failure is not None:
        raise failure
    _warn_of_window(runs[0], results)
    return Comparison(results)
