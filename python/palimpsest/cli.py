"""The command line: `palimpsest run`, `compare`, `sweep`, `reproduce`, `validate`, `report`, `list`, `show`, ....

Results go to standard output; progress and messages to standard error. Exit status 0: done; 2: wrong input, with a
message of one line; 130: interrupted, finished results are kept; 1: any other failure. The module of a command is
imported when the command runs, or when the help lists all, because importing all takes longer than most commands.
"""

import contextlib
import importlib
import io
import os
import signal
import sys
from typing import NoReturn

import click

from . import _core, distribution, errors, interrupts, native
from .commands import Commands, forget_unknown_width, help_width, say

_COMPLETE = "_PALIMPSEST_COMPLETE"
"""The environment variable that has the request of a shell's completion."""
_COMMANDS = {
    "demo": ("demo", "demo"),
    "run": ("run_commands", "run"),
    "compare": ("run_commands", "compare"),
    "sweep": ("sweeps.command", "sweep"),
    "leaderboard": ("leaderboard.command", "leaderboard"),
    "reproduce": ("reproduce.command", "reproduce"),
    "validate": ("validate.command", "validate"),
    "fit": ("fits.command", "fit"),
    "report": ("folder_commands", "report"),
    "figure": ("paper.command", "figure"),
    "rerun": ("folder_commands", "rerun"),
    "cite": ("listing", "cite"),
    "why": ("folder_commands", "why_"),
    "help": ("manual", "help_"),
    "list": ("listing", "list_"),
    "show": ("run_commands", "show_"),
    "trace": ("trace_commands", "trace"),
    "objects": ("objects", "objects"),
    "import": ("imports.command", "import_"),
    "image": ("images", "image_group"),
    "serve": ("serving", "serve"),
    "nvme": ("nvme", "nvme"),
    "attach": ("attaching", "attach"),
    "detach": ("attaching", "detach"),
    "mount": ("mounting", "mount"),
    "crash": ("crash.command", "crash"),
    "new-layer": ("new_layer", "new_layer"),
    "check": ("checking", "check"),
    "live": ("live_lab", "live"),
    "completion": ("completion", "completion"),
}
"""Module and function of each command, in the order of the help."""


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "terminal_width": help_width()},
    epilog="See `palimpsest COMMAND --help` for options and examples.",
)
@click.version_option(
    # Runs are slower with the module of `make dev`.
    _core.version() + (" (dev build)" if _core.profile() == "dev" else ""),
    prog_name="palimpsest",
    message="%(prog)s %(version)s",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Simulate solid-state drives, and compare flash translation layers on them.

    \b
    palimpsest run                               a full present-day drive under an OLTP load
    palimpsest compare --ftl page,subpage        two translation layers side by side
    palimpsest list                              names of drives, layers, workloads, ...
    """
    if native.PROBLEM:
        raise errors.InputError(native.PROBLEM)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _load(name: str) -> click.Command | None:
    """The command of this name; None if there is none."""
    if name not in _COMMANDS:
        return None
    module, function = _COMMANDS[name]
    command: click.Command = getattr(importlib.import_module(f".{module}", __package__), function)
    return command


cli.load, cli.names = _load, tuple(_COMMANDS)


def _fail(error: BaseException) -> NoReturn:
    """Prints the cause of a failure in one line, and exits with the matching status."""
    if shown := error if os.environ.get("PALIMPSEST_DEBUG") else errors.of_the_user(error):
        import traceback

        traceback.print_exception(shown)
    status, text = _ending(error)
    if isinstance(error, OSError) and not error.filename:
        _drop_output()
    interrupts.at_end(status)
    if status == errors.EXIT_INTERRUPTED:
        say(text)
    else:
        _say(text)
    sys.exit(status)


def _ending(error: BaseException) -> tuple[int, str]:
    """Returns status and message for the exception that ended the command."""
    if isinstance(error, KeyboardInterrupt | errors.Interrupted | click.Abort):
        return errors.EXIT_INTERRUPTED, "interrupted"
    if isinstance(error, click.UsageError):
        return errors.EXIT_INPUT, _usage_text(error)
    if isinstance(error, click.ClickException):
        return errors.EXIT_FAILURE, error.format_message()
    if isinstance(error, errors.Error):
        return errors.exit_status(error), str(error)
    if isinstance(error, OSError):
        return errors.EXIT_FAILURE, f"{error.filename or 'standard output'}: {error.strerror or error}"
    if isinstance(error, ModuleNotFoundError) and (text := distribution.missing(error.name)):
        return errors.EXIT_FAILURE, str(error) if distribution.NAME in str(error) else text
    what = f"unexpected {type(error).__name__}: {error} (PALIMPSEST_DEBUG=1 shows where; please report it)"
    return errors.EXIT_FAILURE, what


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        say(f"error: {errors.one_line(text)}")


def _usage_text(error: click.UsageError) -> str:
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter) and error.param:
        name = next((name for name in error.param.opts if name.startswith("--")), error.param.human_readable_name)
        source = error.ctx.get_parameter_source(error.param.name or "") if error.ctx else None
        # The user set the environment variable, not the option.
        if source == click.core.ParameterSource.ENVIRONMENT and isinstance(error.param.envvar, str):
            name = error.param.envvar
        if "expected" in error.message:
            return f"{name}: {error.message}"
        error = click.UsageError(f"{name}: {error.message}", error.ctx)
    given = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] in _COMMANDS else ""
    command = error.ctx.command_path if error.ctx else f"palimpsest {given}".rstrip()
    return f"{error.format_message().rstrip('.')}; expected as `{command} --help` says"


def _drop_output() -> None:
    """Redirects standard output, which cannot be written, because Python would try again at exit, and fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _buffer_output() -> None:
    """Buffers standard output under PYTHONUNBUFFERED too, because the rest of a short write would be lost."""
    if isinstance(sys.stdout, io.TextIOWrapper) and isinstance(sys.stdout.buffer, io.RawIOBase):
        encoding, wrong = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(sys.stdout.detach()), encoding, wrong)


def main() -> NoReturn:
    """Runs the command; ends the process with the status that the contract names."""
    if os.environ.get(_COMPLETE):
        from . import completion

        sys.exit(completion.answer(cli, os.environ[_COMPLETE]))
    if sys.stdout is None:
        _say("standard output is closed; expected a terminal, a pipe or a file")
        sys.exit(errors.EXIT_FAILURE)
    try:
        interrupts.at_work()
        forget_unknown_width()
        _buffer_output()
        # cli.main() has other messages and statuses for failures.
        with cli.make_context("palimpsest", sys.argv[1:]) as ctx:
            cli.invoke(ctx)
        sys.stdout.flush()
        interrupts.at_end(0)
    except click.exceptions.Exit as end:
        interrupts.at_end(end.exit_code)
        sys.exit(end.exit_code)
    except SystemExit:
        raise
    except BrokenPipeError:
        # The reader has gone, so end without a message, as programs in a pipe do.
        _drop_output()
        sys.exit(128 + signal.SIGPIPE)
    except BaseException as error:
        _fail(error)
    sys.exit(0)
