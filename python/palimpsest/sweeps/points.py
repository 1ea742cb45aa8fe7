"""The points of a sweep, resolved: options, checks, and the name of each result.

The identity of a point is a digest of all inputs of its figures: the simulator, the resolved configuration, the
workload (of a file, its content), the seed and the other options. Points with the same identity are run once.
"""

import dataclasses
import functools
import hashlib
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

from .. import _core, engine, fitting, plugins, units, user_files
from ..errors import InputError, UnfitError
from ..files import holder, is_file, is_there
from ..options import RunOptions
from .definition import OPTIONS, Definition, Settings
from .task import Task, WorkloadFile, simulator
from .values import Value, is_label

_TEXTS = ("ssd", "ftl", "workload", "precondition", "fidelity", "payload", "format", "columns", "volumes", "arrivals")
_WORKLOAD_KEY = "workload."
_NOT_OF_STATES = ("name", "host", "controller", "sim")
_SPELLED = {"format": "from"}
"""Options of the command line whose names differ from their keys."""
_PLACE = re.compile(r"--([a-z-]+) (\S+?): (.*)")
_OF_TRACES = ("skip_bad", "format", "columns", "volumes", "arrivals", "host.speedup", "host.compact")
# The refusal of an option of traces by a workload that reads none, and of a change of a file.
_OF_OTHERS = re.compile(
    r"expected (no host\.\w+, (or )?)?(a|rate_iops, or a|none, or) trace(=FILE.*)?$|a specification; .* is a file$"
)


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a sweep: axes and run; a workload `file`, or a `drive` file as TOML.

    Of the resolved configuration a point has the name of the drive, its plug-ins and files with policies, and its
    preconditioned `state`, because workers need no more and a sweep has many points.
    """

    axes: dict[str, Value | None]
    options: RunOptions
    file: WorkloadFile | None
    drive: str | None
    identity: str
    state: str
    name: str
    plugins: dict[str, str]
    code: dict[str, str]

    @property
    def label(self) -> str:
        """The values of the axes in a few words."""
        return " ".join(f"{key}={_text(value)}" for key, value in self.axes.items() if value is not None) or "the base"

    def task(self) -> Task:
        """The point as a message."""
        return {
            "identity": self.identity, "options": dataclasses.asdict(self.options), "drive": self.drive,
            "name": self.name, "file": None if self.file is None else dataclasses.asdict(self.file),
            "simulator": simulator(), "plugins": self.plugins, "state": self.state, "code": self.code,
        }  # fmt: skip


def state_of(config: dict[str, Any], options: RunOptions) -> str:
    """Equal for runs that probably continue from the same preconditioned state: used to choose workers."""
    drive = {table: keys for table, keys in config.items() if table not in _NOT_OF_STATES}
    state = [drive, (options.precondition, options.payload, options.seed)]
    return hashlib.blake2b(json.dumps(state).encode(), digest_size=8).hexdigest()


def resolve(
    definition: Definition, *, strict: bool = False, memory: int | None = None, jobs: int = 1
) -> tuple[list[Point], list[str]]:
    """All points, checked without running, and a line for each setting that some do not read. Raises InputError.

    A point of a grid whose values make no drive together is left out with a line, unless `strict` or no point is left.
    With `memory` (`fitting.scale_of`, for `jobs` points at a time) all drives are scaled by one factor.
    """
    points, notes = _resolved(definition, None, strict=strict)
    if memory is None:
        return points, notes
    scale = fitting.scale_of(memory, [point.options for point in points], jobs)
    points, notes = _resolved(definition, scale, strict=strict)
    return points, [*notes, *fitting.lines([point.options for point in points])]


def _resolved(definition: Definition, scale: fitting.Scale | None, *, strict: bool) -> tuple[list[Point], list[str]]:
    resolver = _Resolver(definition, scale, strict=strict)
    listed, points = [], []
    left: Counter[str] = Counter()
    refused: InputError | None = None
    for table, settings in definition.points():
        try:
            points.append(resolver.point(table, settings))
            listed.append((table, settings))
        except InputError as error:
            if strict or table != "grid" or not isinstance(error, UnfitError):
                raise
            refused = refused or error
            left[_reason(str(error))] += 1
    notes = dict.fromkeys(
        f"{'a point is' if number == 1 else f'{number:,} points are'} left out: {why}" for why, number in left.items()
    )
    notes |= dict.fromkeys(resolver.left_out())
    if not points:
        empty = InputError(f"{definition.name}: no point is left; expected [grid], [[zip]] or [[points]] to give some")
        raise refused or empty
    runs = [point.options for point in points]
    found = engine.unread(runs)
    try:
        engine.expect_read(runs, found, strict=strict)
    except engine.UnreadError as mistake:
        raise resolver.placed(*listed[mistake.run], InputError(str(mistake))) from None
    notes |= dict.fromkeys(each.what for each in found)
    return points, list(notes)


def _reason(text: str) -> str:
    """A conflict of keys in short: without the key that repeats its place, and without the sources of the others."""
    place, _, said = text.partition(": ")
    rest = re.sub(r" \([^()]*:\d+\)| \((?:default|--set[^()]*)\)", "", said)
    key, _, keys = rest.partition(": ")
    others, _, reason = keys.removeprefix(f"{key}, ").partition(": ")
    return f"{place}: {key}: with {others}, {reason}" if keys.startswith(f"{key}, ") else f"{place}: {rest}"


class _Resolver:
    def __init__(self, definition: Definition, scale: fitting.Scale | None, *, strict: bool) -> None:
        self.definition, self._strict = definition, strict
        self._scale = scale
        self._drives: dict[tuple[Any, ...], str] = {}
        # Seeds change no configuration, and many points differ in nothing else.
        self._check = functools.lru_cache(maxsize=1024)(_core.check)
        self._dictionaries: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        # Keys of the base by the number of points that read them, and the refusals of points that do not.
        self._read: Counter[str] = Counter()
        self._refused: dict[str, list[InputError]] = {}

    def point(self, table: str, over: Settings) -> Point:
        """A point, without the keys of the base that only workloads of another kind read."""
        settings, left = self.definition.base | over, dict[str, InputError]()
        key: str | None
        while True:
            try:
                point = self._point(settings)
                break
            except _Wrong as wrong:
                key, what = wrong.key, str(wrong)
                error = InputError(f"{self.definition.place(table, key)}: {key}: {what}")
            except InputError as of_core:
                key, what = _key_and_rest(settings, str(of_core))
                error = self.placed(table, settings, of_core)
            is_of_base = key is not None and key in self.definition.base and key not in over
            if key is None or not is_of_base or self._strict or not _is_of_others(key, what):
                raise error
            left[key] = error
            del settings[key]
        for key, error in left.items():
            self._refused.setdefault(key, []).append(error)
        self._read.update(self.definition.base.keys() & settings.keys())
        return point

    def left_out(self) -> list[str]:
        """A note for each key of the base that some points do not read. Raises InputError if none reads a key."""
        for key, errors in self._refused.items():
            if not self._read[key]:
                raise errors[0]
        return [
            f"{key}: {len(errors):,} of {len(errors) + self._read[key]:,} points have no use for it"
            for key, errors in self._refused.items()
        ]

    def _point(self, settings: Settings) -> Point:
        options, file = self._options(settings)
        if self._scale is not None:
            options = self._scale.fitted(options)
        config = json.loads(self._check(dataclasses.replace(options, seed=1).to_json()))
        drive = self._drive(options) if options.ssd.endswith(".toml") or "/" in options.ssd else None
        axes = {axis: _value(axis, settings, config) for axis in self.definition.axes}
        return Point(
            axes, options, file, drive, _identity(options, config, file), state_of(config, options),
            sys.intern(config["name"]), self._shared(plugins.used(config, options.format)),
            self._shared(user_files.sources(config)),
        )  # fmt: skip

    def _shared(self, texts: dict[str, str]) -> dict[str, str]:
        """An equal dictionary that an earlier point has, if any."""
        return self._dictionaries.setdefault(tuple(texts.items()), texts)

    def _options(self, settings: Settings) -> tuple[RunOptions, WorkloadFile | None]:
        fields: dict[str, Any] = {
            key: _option(key, value) for key, value in settings.items() if key in OPTIONS and key != "workload"
        }
        if "ssd" in fields and ("/" in fields["ssd"] or fields["ssd"].endswith(".toml")):
            fields["ssd"] = str(self.definition.folder / fields["ssd"])
        if "ftl" in fields:
            fields["ftl"] = user_files.located(fields["ftl"], self.definition.folder)
        changes = {
            key.removeprefix(_WORKLOAD_KEY): value for key, value in settings.items() if key.startswith(_WORKLOAD_KEY)
        }
        workload = _option("workload", settings.get("workload", RunOptions().workload))
        fields["workload"], file = self._workload(workload, changes)
        apart = (*OPTIONS, *filter(is_label, settings))
        keys = {key: value for key, value in settings.items() if key not in apart and not key.startswith(_WORKLOAD_KEY)}
        folder = self.definition.folder
        overrides = tuple(f"{key}={user_files.located(_text(value), folder)}" for key, value in keys.items())
        return RunOptions(overrides=overrides, sketch=True, **fields), file

    def _workload(self, text: str, changes: Settings) -> tuple[str, WorkloadFile | None]:
        path = self.definition.folder / text
        is_preset = _core.workload_spec(text.partition(",")[0]) is not None
        if is_preset or not is_there(holder(path)):
            return (_changed(text, changes) if changes else text), None
        if changes:
            raise _Wrong(
                f"{_WORKLOAD_KEY}{next(iter(changes))}", f"expected a preset or a specification; {text} is a file"
            )
        if not is_file(holder(path)):
            raise _Wrong("workload", f"{path}: expected a plain file, which can be read many times")
        try:
            return str(path), WorkloadFile.read(str(path))
        except OSError as error:
            raise _Wrong("workload", f"{path}: {error.strerror}; expected a file that can be read") from error

    def _drive(self, options: RunOptions) -> str:
        key = (options.ssd, options.ftl, options.overrides)
        if key not in self._drives:
            self._drives[key] = _core.show(options.ssd, options.ftl, list(options.overrides))
        return self._drives[key]

    def placed(self, table: str, settings: Settings, error: InputError) -> InputError:
        """Converts an error of the native module into one of its class with the line of the sweep file."""
        text = str(error)
        key, what = _key_and_rest(settings, text)
        if key is None:
            workload = str(self.definition.folder / str(settings.get("workload", "")))
            key = "workload" if text.startswith(f"{workload}:") else None
            return type(error)(f"{self.definition.place(table, key)}: {text}")
        value = f" = {_text(settings[key])}" if key in settings else ""
        beside = ""
        if key == "workload" and "there is no preset, no file" in what:
            beside = f" (files are looked for in {self.definition.folder})"
        what = what.removeprefix(f"{key}: ")
        return type(error)(f"{self.definition.place(table, key)}: {key}{value}: {what}{beside}")


def _is_of_others(key: str, what: str) -> bool:
    """Whether the refusal of a key says that only workloads of another kind read the key."""
    return key.startswith((*_OF_TRACES, _WORKLOAD_KEY)) and _OF_OTHERS.search(what) is not None


def _key_and_rest(settings: Settings, text: str) -> tuple[str | None, str]:
    """The key of an error of the native module, and the rest; None if the error names no single key."""
    for key, value in settings.items():
        option = f"set {key}=" if "." in key else f"{_SPELLED.get(key, key.replace('_', '-'))} "
        for prefix in (f"--{option}{_text(value)}: ", f"--{option.rstrip()}: ", f"{key}: "):
            if text.startswith(prefix):
                return key, text.removeprefix(prefix)
    match = _PLACE.fullmatch(text)
    if match is None:
        return None, text
    option, word, what = match.groups()
    in_workload = option == "workload" and f"{_WORKLOAD_KEY}{word}" in settings
    return f"{_WORKLOAD_KEY}{word}" if in_workload else option.replace("-", "_"), what


class _Wrong(ValueError):
    """A value that its key does not take."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(what)
        self.key = key


def _option(key: str, value: Value) -> Any:  # noqa: ANN401 - each option has a type of its own
    if key in _TEXTS:
        if not isinstance(value, str):
            raise _Wrong(key, f"expected text, found {value!r}")
        return value
    if key == "skip_bad":
        if not isinstance(value, bool):
            raise _Wrong(key, f"expected true or false, found {value!r}")
        return value
    if key == "seed":
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**64:
            raise _Wrong(key, f"expected a whole number from 0 to 2^64 - 1, found {value!r}")
        return value
    if key == "requests":
        try:
            return units.parse_count(_text(value))
        except ValueError as error:
            raise _Wrong(key, str(error)) from error
    return _text(value)


def _text(value: Value | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _changed(text: str, changes: Settings) -> str:
    """A specification, or a preset with keys after the name, with some keys changed."""
    parts = text.split(",")
    for key, value in changes.items():
        shown = f"{key}={int(value) if isinstance(value, bool) else _text(value)}"
        places = [index for index, part in enumerate(parts) if part.partition("=")[0].strip() == key]
        if places:
            parts[places[0]] = shown
        else:
            parts.append(shown)
    return ",".join(parts)


def _value(axis: str, settings: Settings, config: dict[str, Any]) -> Value | None:
    """The value of a point on an axis: as set, or else resolved from the drive and the defaults."""
    if axis in settings:
        return settings[axis]
    if axis == "ftl":
        return str(config["ftl"]["name"])
    if axis in OPTIONS:
        found = getattr(RunOptions(), axis)
    else:
        table, _, key = axis.partition(".")
        found = config.get(table, {}).get(key) if isinstance(config.get(table), dict) else None
    return found if isinstance(found, str | int | float | bool) else None


def _identity(options: RunOptions, config: dict[str, Any], file: WorkloadFile | None) -> str:
    drive = {key: value for key, value in config.items() if key != "name"}
    depends_on = {
        "simulator": simulator(), "config": drive | {"ftl": user_files.without_paths(config["ftl"])},
        "workload": {"file": file.digest} if file is not None else {"spec": options.workload},
        "precondition": options.precondition or "none", "requests": options.requests,
        "warmup": options.warmup or "auto",
        "fidelity": options.fidelity, "payload": options.payload, "seed": options.seed, "skip_bad": options.skip_bad,
    }  # fmt: skip
    # Defaults are left out, because identities of older points lack these options.
    usual = RunOptions()
    replayed = {
        name: getattr(options, name)
        for name in ("format", "columns", "volumes", "arrivals", "start", "repeat", "until", "at_most")
    }
    depends_on |= {name: value for name, value in replayed.items() if value != getattr(usual, name)}
    of_plugins = plugins.used(config, options.format)
    depends_on |= {"plugins": of_plugins} if of_plugins else {}
    return hashlib.blake2b(json.dumps(depends_on, sort_keys=True).encode(), digest_size=16).hexdigest()
