"""Ctrl-C while the command is no command yet, or no more: one line, and status 130.

While modules load, and once a command has said its last, an interrupt ends the process at once. A KeyboardInterrupt
there would be shown with its traceback, or be lost where Python calls back (`_ModuleLock`, `__del__`): the command
would go on. While a command works it is a KeyboardInterrupt, and ends the process where Python loses it. Ignored: the
hundredths of a second in which Python itself starts.
"""

import os
import signal
import sys
from types import FrameType

STATUS = 130
_ENDS = (signal.SIGTERM, signal.SIGHUP)
_LINE = b"interrupted\n"


def end_command() -> None:
    """After an interrupt before `while_loading`: ends the process, if it is the command."""
    if is_command(sys.orig_argv[1:]):
        _end()


def while_loading() -> None:
    """From now on an interrupt ends the process at once, if it is the command, and does not ignore interrupts."""
    if is_command(sys.orig_argv[1:]) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def is_command(arguments: list[str]) -> bool:
    """Whether a process with these arguments of Python is the command: `-m palimpsest`, or the program `palimpsest`."""
    while arguments and arguments[0].startswith("-") and not arguments[0].startswith("-m"):
        # Options of Python; these two have a value.
        arguments = arguments[2 if arguments[0] in {"-X", "-W"} else 1 :]
    match arguments:
        case ["-m", "palimpsest", *_] | ["-mpalimpsest", *_]:
            return True
        case [program, *_]:
            return program.rpartition(os.sep)[2] == "palimpsest"
    return False


def at_work() -> None:
    """From now on an interrupt is a KeyboardInterrupt, and so are the signals by which systems end programs.

    What nohup ignores stays ignored.
    """
    for number in _ENDS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _lost


def at_end(status: int) -> None:
    """The command is over, with `status`: from now on an interrupt ends the process with it, and says nothing."""
    for number in _ENDS:
        if signal.getsignal(number) is signal.default_int_handler:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(status))


def _end(_number: int = signal.SIGINT, _frame: FrameType | None = None) -> None:
    """Ends the process without what else happens at an end."""
    os.write(2, _LINE)
    os._exit(STATUS)


def _lost(unraisable: "sys.UnraisableHookArgs") -> None:
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _end()
    sys.__unraisablehook__(unraisable)
