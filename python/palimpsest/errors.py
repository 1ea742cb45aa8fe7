"""The errors a user meets, and the exit status each one has on the command line.

The classes are defined by the native module, which raises them; this module names them for users and for the command
line. Every one carries one line of text, the same that the command line prints.
"""

from ._core import DeviceError, Error, InputError, Interrupted, RuleError, WorkloadIoError

__all__ = [
    "EXIT_FAILURE",
    "EXIT_INPUT",
    "EXIT_INTERRUPTED",
    "DeviceError",
    "Error",
    "InputError",
    "Interrupted",
    "RuleError",
    "WorkloadIoError",
    "exit_status",
    "one_line",
]

EXIT_FAILURE = 1
EXIT_INPUT = 2
EXIT_INTERRUPTED = 130


def exit_status(error: BaseException) -> int:
    """Exit status of a command that ended with this error."""
    if isinstance(error, InputError):
        return EXIT_INPUT
    if isinstance(error, Interrupted | KeyboardInterrupt):
        return EXIT_INTERRUPTED
    return EXIT_FAILURE


def one_line(error: BaseException | str) -> str:
    """The text of an error as one line, whatever it was made of."""
    text = " ".join(str(error).split())
    return text or type(error).__name__
