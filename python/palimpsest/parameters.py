"""Types of values of options on the command line, and options that several commands share."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
from click.core import ParameterSource

from . import states, units
from .errors import InputError, did_you_mean
from .files import is_there

_Command = TypeVar("_Command", bound=Callable[..., object])
_Value = TypeVar("_Value")


class Choice(click.Choice[str]):
    """A few names."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:  # noqa: ANN401, ARG002
        """The message for any other value."""
        meant = did_you_mean(str(value).lower(), self.choices)
        return f"{value!r} is not known{meant}; expected one of {', '.join(self.choices)}"


class Folder(click.Path):
    """A folder, which must be there only if `exists`."""

    def __init__(self, *, exists: bool = False) -> None:
        super().__init__(path_type=Path, file_okay=False, exists=exists)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Returns the path; fails for an empty name or any other kind of file."""
        if value == "":
            self.fail("the name is empty; expected a folder", param, ctx)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            what = "this is not a folder" if is_there(value) else "there is no such folder"
            self.fail(f"{value}: {what}; expected a folder", param, ctx)


class ImageFile(click.Path):
    """A file that keeps a drive, which must be there only if `exists`."""

    name = "FILE"

    def __init__(self, *, exists: bool = False) -> None:
        super().__init__(exists=exists, dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Returns the path; fails for a folder, or for a missing file."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            what = "this is a folder" if is_there(value) else "there is no such file"
            self.fail(f"{value}: {what}; expected an image of a drive", param, ctx)


class ParquetFile(click.Path):
    """A Parquet file to write, in a folder that is there or that `--out` makes."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Returns the path; fails if the file cannot be written or has another ending."""
        path = Path(value)
        if path.suffix != ".parquet":
            self.fail(f"{value}: expected a name that ends in .parquet", param, ctx)
        if path.is_dir():
            self.fail(f"{value}: this is a folder; expected a file", param, ctx)
        if not path.parent.exists() and ctx is not None and _is_made(path.parent, ctx.params.get("out")):
            return path
        if not path.parent.is_dir():
            self.fail(f"{value}: there is no folder {path.parent}; expected one", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"{value}: this may not be written; expected a file that can be", param, ctx)
        return path


class OperationsFile(ParquetFile):
    """A Parquet file to write, or the window `slowest:N`, whose operations only `--out` writes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        """Returns the path, or the window as text; fails as a `ParquetFile`."""
        window, colon, number = str(value).partition(":")
        if (window, colon) != ("slowest", ":"):
            return super().convert(value, param, ctx)
        if not (number.isascii() and number.isdecimal() and 1 <= int(number[:9]) <= 1000):
            self.fail(f"{value}: expected 1 to 1000 requests, such as slowest:20", param, ctx)
        return value


def _is_made(folder: Path, out: object) -> bool:
    """Whether making the folder `out` of `--out`, if given, makes `folder` too."""
    if not isinstance(out, Path):
        return False
    whole = out.absolute()
    return folder.absolute() in (whole, *whole.parents)


def make_folder(folder: Path) -> None:
    """Makes the folder of `--out` before any run, so that a wrong one costs no simulation. Raises InputError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: expected a folder that can be made: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(
            f"--out {folder}: the folder may not be written; expected another, or permission to write there"
        )


class Parsed(click.ParamType[_Value]):
    """A value that `read` makes of a text; the ValueError or InputError of `read` is the message."""

    def __init__(self, name: str, read: Callable[[str], _Value]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> _Value:  # noqa: ANN401
        """Returns the value of the text, or fails with the expected form."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # a default, which is a value
        try:
            return self._read(value)
        except (ValueError, InputError) as error:
            self.fail(str(error), param, ctx)


def _seed(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number < 2**64:
        raise ValueError(f"{text!r} is not a seed; expected a whole number from 0 to 2^64 - 1")
    return number


def _seeds(text: str) -> tuple[int, ...]:
    first, dots, last = text.partition("..")
    try:
        numbers = range(int(first), int(last) + 1) if dots else [int(each) for each in text.split(",")]
    except ValueError:
        numbers = []
    found = tuple(numbers[:1001])
    if len(found) == 1 and 0 <= found[0] < 2**64:
        raise ValueError(f"{text!r} names one seed; expected several, such as 1..3, or --seed {found[0]} for one")
    if not 0 < len(set(found)) == len(found) <= 1000 or not all(0 <= number < 2**64 for number in found):
        raise ValueError(
            f"{text!r} is no list of seeds; expected seeds such as 1..5 or 1,2,7, each once and at most 1000"
        )
    return found


def _duration(text: str) -> float:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|min|h)", text)
    seconds = float(match[1]) * {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}[match[2]] if match else 0.0
    if not 0 < seconds < 1e8:
        raise ValueError("expected a time such as 90s, 10min or 2h")
    return seconds


SEED = Parsed("N", _seed)
SEEDS = Parsed("1..5|1,2,7", _seeds)
DURATION = Parsed("TIME", _duration)
"""Seconds of wall-clock time."""
COUNT = Parsed("N", units.parse_count)


def size_type(examples: str) -> Parsed[int]:
    """An amount of data in bytes; the message for any other text has `examples`."""

    def read(text: str) -> int:
        if not (found := units.parse_bytes(text)) or found < 0:
            raise ValueError(f"{text!r} is no size; expected one such as {examples}")
        return found

    return Parsed("SIZE", read)


def jobs_option(what: str = "Runs") -> Callable[[_Command], _Command]:
    """The option `--jobs`; `cores` has the default."""
    return click.option("--jobs", type=COUNT, help=f"{what} at a time.  [default: as many as there are cores]")


def cores(jobs: int | None) -> int:
    """The value of `--jobs`, or the number of cores."""
    return jobs or os.cpu_count() or 1


def out_option(does: str, *, required: bool = False) -> Callable[[_Command], _Command]:
    """The option `--out`, a folder, with the help `does`. Eager, because other options name files in that folder."""
    return click.option("--out", type=Folder(), metavar="DIR", required=required, help=does, is_eager=True)


def json_option(what: str) -> Callable[[_Command], _Command]:
    """The option `--json`: `what` is printed as one object."""
    return click.option("--json", "as_json", is_flag=True, help=f"Print {what} as one JSON object.")


def _size(ctx: click.Context, param: click.Parameter, value: str) -> None:
    try:
        ctx.meta[states.SIZE] = states.size_of(value)
    except InputError:
        raise click.BadParameter(f"{value!r} is no size; expected one such as 2GiB or 500MiB", ctx, param) from None


def _no_cache(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001
    ctx.meta[states.NO_CACHE] = value


def _state(ctx: click.Context, param: click.Parameter, value: Path | None) -> None:
    def is_given(option: str) -> bool:
        return ctx.get_parameter_source(option) == ParameterSource.COMMANDLINE

    def refuse(option: str, what: str) -> NoReturn:
        raise click.BadParameter(what, ctx, next(each for each in ctx.command.params if each.name == option))

    if is_given("no_cache"):
        if is_given(str(param.name)):
            refuse("no_cache", "--state names a folder in place of the cache; expected one of them")
        if is_given("state_size"):
            refuse("state_size", "--no-cache keeps no states; expected one of them")
        states.use_none()
    elif value is not None:
        states.keep_states(value, ctx.meta[states.SIZE], memory=0)
    elif ctx.meta[states.NO_CACHE]:
        states.use_none()
    else:
        states.use_cache(ctx.meta[states.SIZE])


def state_options(command: _Command) -> _Command:
    """The options `--state`, `--state-size` and `--no-cache`, which take effect during parsing."""
    command = click.option(
        "--no-cache",
        is_flag=True,
        envvar=states.NO_CACHE,
        callback=_no_cache,
        is_eager=True,
        expose_value=False,
        help="Precondition every drive, instead of starting from drives kept in the user's cache folder.",
    )(command)
    command = click.option(
        "--state",
        type=Folder(),
        metavar="DIR",
        envvar=states.FOLDER,
        callback=_state,
        expose_value=False,
        help="Keep preconditioned drives in DIR instead of the user's cache folder: the same figures, sooner.",
    )(command)
    return click.option(
        "--state-size",
        default=states.DEFAULT_SIZE,
        metavar="SIZE",
        envvar=states.SIZE,
        callback=_size,
        is_eager=True,
        expose_value=False,
        help="Most bytes of DIR or the cache; the least recently used states are deleted.",
    )(command)
