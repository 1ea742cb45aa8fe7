"""The group of commands: order, help, late imports, and the output of results and messages."""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from .needs import expect_packages, refuse_idle

if TYPE_CHECKING:
    from rich.console import RenderableType

_NARROW = 60


class _Help(click.HelpFormatter):
    """Help that stays readable on narrow terminals, where descriptions are below the names."""

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Writes names and descriptions."""
        super().write_dl(rows, col_max if self.width >= _NARROW else 8, col_spacing)


class _Context(click.Context):
    formatter_class = _Help


class _SingleCommand(click.Command):
    """A command that refuses options without an effect, before it starts."""

    context_class = _Context

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - as click has it
        """Runs the command. Raises click.BadParameter for an option without effect."""
        refuse_idle(ctx)
        expect_packages(ctx)
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
        click.echo(result)
        return
    from rich.console import Console

    # NO_COLOR turns escape codes off everywhere; FORCE_COLOR turns them on in a pipe, too.
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    console = Console(highlight=False, emoji=False, markup=False, color_system=colours)
    with console.capture() as captured:
        console.print(result)
    text = "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))
    click.echo(text, color=console.is_terminal)
