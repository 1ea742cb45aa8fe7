"""The errors a user meets, and their exit statuses. The native module defines and raises the classes."""

from collections.abc import Iterable

from ._core import (
    DeviceError,
    Error,
    InputError,
    Interrupted,
    LayerError,
    PolicyError,
    RuleError,
    UnfitError,
    WorkloadIoError,
)

__all__ = [
    "EXIT_CAUTION", "EXIT_FAILURE", "EXIT_INPUT", "EXIT_INTERRUPTED", "DeviceError", "Error", "InputError",
    "Interrupted", "LayerError", "PolicyError", "RuleError", "UnfitError", "WorkloadIoError", "did_you_mean",
    "exit_status", "of_the_user", "one_line",
]  # fmt: skip

_LONGEST = 160
EXIT_FAILURE = 1
EXIT_INPUT = 2
EXIT_CAUTION = 3
"""The command ended, and its verdict is that the object should not be used, or not for every question."""
EXIT_INTERRUPTED = 130


def exit_status(error: BaseException) -> int:
    """Exit status of a command that ended with this error."""
    if isinstance(error, InputError):
        return EXIT_INPUT
    if isinstance(error, Interrupted | KeyboardInterrupt):
        return EXIT_INTERRUPTED
    return EXIT_FAILURE


def of_the_user(error: BaseException) -> BaseException | None:
    """The exception in code of the user that ended the run, without frames of the simulator; None for others."""
    cause = error.__cause__ if isinstance(error, PolicyError | RuleError) else None
    if not isinstance(error, PolicyError) or isinstance(error, LayerError):
        return cause  # The simulator calls a layer without frames of its own.
    return cause and cause.with_traceback(cause.__traceback__ and cause.__traceback__.tb_next)


def one_line(error: BaseException | str) -> str:
    """The text of an error as one line; the middle of a word that fills more than a line is left out."""
    words = str(error).split()
    text = " ".join(each if len(each) <= _LONGEST else f"{each[:24]}...{each[-8:]}" for each in words)
    return text or type(error).__name__


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """The part of a message that names the closest of `names`, from its semicolon on; empty if none is close."""
    import difflib

    near = difflib.get_close_matches(word, list(names), n=1)
    return f"; did you mean {near[0]}?" if near else ""
