"""Ctrl-C before a command starts and after its end: one line, and status 130.

While modules load, and after the last output of a command, an interrupt ends the process at once. A KeyboardInterrupt
there would print a traceback, or get lost in callbacks of Python (`_ModuleLock`, `__del__`), and the command would
continue. While a command works, an interrupt is a KeyboardInterrupt, and ends the process if Python loses the
exception. Not handled: the hundredths of a second in which Python itself starts.
"""

import os
import signal
import sys
from types import FrameType

STATUS = 130
_ENDS = (signal.SIGTERM, signal.SIGHUP)
_LINE = b"interrupted\n"


def end_command() -> None:
    """Ends the command after an interrupt before `while_loading`; does nothing in other programs."""
    if is_command(sys.orig_argv[1:]):
        _end()


def while_loading() -> None:
    """Makes an interrupt end the command at once; does nothing in other programs, or if interrupts are ignored."""
    if is_command(sys.orig_argv[1:]) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def is_command(arguments: list[str]) -> bool:
    """True for arguments of Python that run the command: `-m palimpsest`, or the program `palimpsest`."""
    while arguments and arguments[0].startswith("-") and not arguments[0].startswith("-m"):
        # Options of Python, of which two have a value.
        arguments = arguments[2 if arguments[0] in {"-X", "-W"} else 1 :]
    match arguments:
        case ["-m", "palimpsest", *_] | ["-mpalimpsest", *_]:
            return True
        case [program, *_]:
            return program.rpartition(os.sep)[2] == "palimpsest"
    return False


def at_work() -> None:
    """Makes interrupts and ending signals KeyboardInterrupts; signals that nohup ignores stay ignored."""
    for number in _ENDS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _lost


def at_end(status: int) -> None:
    """Makes an interrupt end the process with `status`, silently, because the command is over."""
    for number in _ENDS:
        if signal.getsignal(number) is signal.default_int_handler:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(status))


def _end(_number: int = signal.SIGINT, _frame: FrameType | None = None) -> None:
    """Exits without running cleanup handlers."""
    os.write(2, _LINE)
    os._exit(STATUS)


def _lost(unraisable: "sys.UnraisableHookArgs") -> None:
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _end()
    sys.__unraisablehook__(unraisable)
