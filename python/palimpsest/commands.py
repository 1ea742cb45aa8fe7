"""The group of commands: order, help, late imports, and the output of results and messages."""

import contextlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from .needs import expect_packages, refuse_idle

if TYPE_CHECKING:
    from rich.console import RenderableType

_NARROW = 60
_results: TextIO | None = None
"""Standard output while a command works; `sys.stdout` is then standard error."""


class _Help(click.HelpFormatter):
    """Help that stays readable on narrow terminals, where descriptions are below the names."""

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Writes names and descriptions."""
        super().write_dl(rows, col_max if self.width >= _NARROW else 8, col_spacing)


class _Context(click.Context):
    formatter_class = _Help


@contextlib.contextmanager
def _own_output() -> Iterator[None]:
    """Keeps standard output for results of the command: what code of the user prints goes to standard error."""
    global _results
    if _results is not None:
        yield
        return
    _results, sys.stdout = sys.stdout, sys.stderr
    try:
        yield
    finally:
        _results, sys.stdout = None, _results


def echo(text: str, *, nl: bool = True, color: bool | None = None) -> None:
    """Prints a result on standard output."""
    click.echo(text, file=_results, nl=nl, color=color)


class _SingleCommand(click.Command):
    """A command that refuses options without an effect, before it starts."""

    context_class = _Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the arguments. Raises click.BadParameter for an option with one value that is given twice."""
        if not ctx.resilient_parsing:
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            for parameter, times in Counter(given).items():
                if times > 1 and isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag):
                    form = parameter.make_metavar(ctx)
                    several = (
                        f"one option, as {parameter.opts[-1]} {form}" if "," in form else "one value for a command"
                    )
                    raise click.BadParameter(f"given {times} times; expected {several}", ctx, parameter)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click has it
        """Runs the command. Raises click.BadParameter for an option without effect."""
        refuse_idle(ctx)
        expect_packages(ctx)
        with _own_output():
            return super().invoke(ctx)


class Commands(click.Group):
    """Commands in the order of use: first those of `names`, each loaded by `load` when requested."""

    context_class = _Context
    command_class = _SingleCommand
    group_class = type
    names: Sequence[str] = ()
    load: Callable[[str], click.Command | None] | None = None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the arguments; without any, a group of commands prints its help, as `palimpsest` alone does."""
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command of this name, if known."""
        if self.load and cmd_name not in self.commands:
            # Of a wrong name click suggests loaded commands.
            for name in (cmd_name,) if cmd_name in self.names else self.names:
                if loaded := self.load(name):
                    self.add_command(loaded, name)
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Returns the names in order."""
        return list(dict.fromkeys([*self.names, *self.commands]))


def forget_unknown_width() -> None:
    """Removes a COLUMNS that is no width, such as 0, because libraries would print lines of no characters."""
    given = os.environ.get("COLUMNS", "")
    if not (given.isascii() and given.isdigit() and int(given)):
        os.environ.pop("COLUMNS", None)


def help_width() -> int:
    """Returns the width of the terminal, within limits: click assumes wider ones, and long lines are hard to read."""
    return max(min(shutil.get_terminal_size().columns, 102) - 2, 30)


def command(name: str | None = None, *, short_help: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Makes a function a command for a group; `name` defaults to the name of the function."""
    return click.command(name, cls=_SingleCommand, short_help=short_help)


def say(line: str) -> None:
    """Prints a message on standard error."""
    click.echo(line, err=True)


def show(result: "str | RenderableType") -> None:
    """Prints a result on standard output: text as it is, anything else by rich; notes about states come first."""
    from . import states

    states.say(say)
    if isinstance(result, str):
        echo(result)
        return
    from rich.console import Console

    # NO_COLOR turns escape codes off everywhere; FORCE_COLOR turns them on in a pipe, too.
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    console = Console(file=_results, highlight=False, emoji=False, markup=False, color_system=colours)
    with console.capture() as captured:
        console.print(result)
    text = "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))
    echo(text, color=console.is_terminal)
