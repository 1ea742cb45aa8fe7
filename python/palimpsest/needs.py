"""Options without an effect unless others are given: the table, and the refusal of an idle option.

A command checks its rows after parsing and before the start. Only options on the command line count, because defaults
and environment variables apply to every call.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from .distribution import need
from .files import is_file
from .options import SPREAD

_Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Need:
    """An option, the condition `met` on the other values under which the command reads the option, and the refusal."""

    option: str
    met: Callable[[_Values], bool]
    refusal: str


def _beside(option: str, other: str, refusal: str) -> Need:
    return Need(option, lambda values: bool(values[other]), refusal)


def _without(option: str, other: str, refusal: str) -> Need:
    return Need(option, lambda values: not values[other], refusal)


_FORCE = _beside("force", "out", "there is no folder to replace results in; expected --out DIR beside it")
_ONE_FORMAT = _without("format", "columns", "--columns says how the text is read; expected one of them")
_SAME_FORMAT = _without("input_format", "columns", "--columns says how the text is read; expected one of them")

_RUN = (
    _without("seed", "seeds", "--seeds names the seed of every run; expected one of them"),
    Need(
        "interval",
        lambda values: len(values["seeds"] or ()) > 1,
        "an interval needs several seeds; expected --seeds 1..5 beside it",
    ),
    Need(
        "operations",
        lambda values: not (values["seeds"] and isinstance(values["operations"], Path)),
        "a timeline is that of one run; expected slowest:N, or no --seeds",
    ),
    Need(
        "start",
        lambda values: values["start"] != SPREAD or len(values["seeds"] or ()) > 1,
        "spread is for the runs of several seeds; expected --seeds 1..5 beside it, or a share such as 20%",
    ),
    _beside("at_most", "until", "it bounds --until, which is not given; expected --until 1% beside it"),
    _beside("operations_window", "operations", "expected with --operations FILE"),
    Need(
        "payload",
        lambda values: not (values["check"] and values["payload"] == "none"),
        "--check compares data, which the payload none leaves out; expected tag or bytes",
    ),
    Need(
        "state",
        lambda values: values["precondition"] != "none",
        "--precondition none leaves no state to keep; expected another state of the drive, or no --state",
    ),
    Need(
        "no_cache",
        lambda values: values["precondition"] != "none",
        "--precondition none loads no state; expected another state of the drive, or no --no-cache",
    ),
    _ONE_FORMAT,
    _FORCE,
)

_SERVED = (_beside("image_sync", "image", "there is no image; expected --image FILE"), _FORCE)

_EXPLORED = "this describes a recording, and no program is given to record; expected --run COMMAND beside it"
_ONE_STATE = "--state checks one state; expected without --state"
_NO_DRIVE = "--no-drive leaves the drive out; expected one of them"


def _records(values: _Values) -> bool:
    return bool(values["run"] or values["setup"] or values["check"])


def _mounts(values: _Values) -> bool:
    return any("{mount}" in step for step in (*values["setup"], values["run"] or "", *values["check"]))


_OF_DRIVE = ("ssd", "ftl", "overrides", "precondition")
_CRASH = (
    _beside("keep", "state", "there is no state; expected --state ID beside it"),
    *(_without(option, "state", _ONE_STATE) for option in ("budget", "minutes", "jobs", "force")),
    *(_without(option, "no_drive", _NO_DRIVE) for option in _OF_DRIVE),
    *(Need(each, _records, _EXPLORED) for each in ("cache", "size", "atomic", "seed", "no_drive", *_OF_DRIVE)),
    Need("mount_options", _mounts, "no command has {mount}, so nothing is mounted; expected a command with it"),
)

_AXES = "only a sweep has axes; expected the folder of a sweep, and one of bars, lines and heat"
_LOGARITHMIC = {"table": (), "heat": ("none",), "bars": ("none", "y")}
"""Kinds with the values of --log that they read; other kinds read all."""


def _of_sweep(*kinds: str) -> Callable[[_Values], bool]:
    def met(values: _Values) -> bool:
        return values["kind"] in kinds and any(is_file(Path(each) / "sweep.json") for each in values["results"])

    return met


_FIGURE = (
    Need(
        "figure",
        lambda values: values["kind"] in ("bars", "lines", "heat", "time"),
        "cdf and tail draw response times, and a table has its own figures; expected bars, lines, heat or time",
    ),
    Need(
        "requests",
        lambda values: values["kind"] in ("cdf", "tail"),
        "only distributions have classes of requests; expected cdf or tail",
    ),
    Need("x", _of_sweep("bars", "lines", "heat"), _AXES),
    Need("by", _of_sweep("cdf", "tail", "bars", "lines", "heat"), _AXES.replace("bars,", "cdf, tail, bars,")),
    *(
        Need(
            each,
            lambda values: bool(values["kind"] != "table"),
            "a table of LaTeX has no drawing; expected another KIND",
        )
        for each in ("style", "columns", "xlabel", "ylabel")
    ),
    Need(
        "log",
        lambda values: values["log"] in _LOGARITHMIC.get(values["kind"], (values["log"],)),
        "bars have a logarithmic y axis only, heat and table none; expected cdf, tail, lines or time",
    ),
)

NEEDS: Mapping[str, tuple[Need, ...]] = {
    "objects": (_FORCE,),
    "run": (*_RUN, _without("against", "seeds", "the figures are those of one run; expected one of them")),
    "compare": (
        *_RUN,
        _without("ftl", "runs", "expected runs as arguments, or --ftl, not both"),
        Need(
            "ssd",
            lambda values: not values["runs"] or not all(re.search(r"[:,]ssd=", run) for run in values["runs"]),
            "each RUN has a drive of its own; expected a RUN without ssd=...",
        ),
    ),
    "sweep": (
        Need(
            "state",
            lambda values: values["engine"] == "local",
            "workers of a cluster keep states in their own memory; expected --engine local",
        ),
        Need(
            "no_cache",
            lambda values: values["engine"] == "local",
            "workers of a cluster use no cache; expected --engine local",
        ),
    ),
    "figure": _FIGURE,
    "check": (
        _without("cases", "case", "--case runs one case; expected one of them"),
        _without("seconds", "case", "--case runs one case; expected one of them"),
    ),
    "trace info": (_SAME_FORMAT,),
    "trace convert": (_SAME_FORMAT,),
    "serve": _SERVED,
    "nvme": _SERVED,
    "attach": _SERVED,
    "mount": _SERVED,
    "detach": (_without("names", "everything", "--all ends every attached drive; expected one of them"),),
    "live": tuple(
        _without(option, "out", "--out writes a folder and serves nothing; expected one of them")
        for option in ("port", "no_browser")
    ),
    "crash": _CRASH,
}
"""The rows of each command, by its words."""


def name_of(context: click.Context) -> str:
    """The words of a command, without the program's."""
    words: list[str] = []
    at: click.Context | None = context
    while at is not None and at.parent is not None:
        words.insert(0, str(at.command.name))
        at = at.parent
    return " ".join(words)


def is_given(context: click.Context, option: str) -> bool:
    """Whether the user wrote an option on the command line."""
    return context.get_parameter_source(option) == ParameterSource.COMMANDLINE


_TABLES, _DRAWING = ("report", "polars"), ("report", "polars", "matplotlib")
PACKAGES = {
    "sweep": ("sweep", "polars"), "leaderboard": ("sweep", "polars"), "fit": ("sweep",), "report": _TABLES,
    "rerun": _TABLES, "why": _TABLES,
    "figure": _DRAWING, "reproduce": _DRAWING, "validate": _DRAWING,
}  # fmt: skip
"""The extra of a command, and the packages of the extra that the command uses."""


def expect_packages(context: click.Context) -> None:
    """Raises ModuleNotFoundError if a package of the command is not installed, because results would be lost later."""
    name = name_of(context)
    if name in PACKAGES:
        need(*PACKAGES[name])
    if context.params.get("operations") is not None:
        need(*_TABLES)


def refuse_idle(context: click.Context) -> None:
    """Raises click.BadParameter for the first option on the command line that the command would not read."""
    for row in NEEDS.get(name_of(context), ()):
        if is_given(context, row.option) and not row.met(context.params):
            parameter = next(each for each in context.command.params if each.name == row.option)
            raise click.BadParameter(row.refusal, context, parameter)
