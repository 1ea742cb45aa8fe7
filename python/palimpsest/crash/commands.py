"""The explored commands, or functions of Python, and the places of their disk.

A command is for the shell. In it `{dev}` is the block device (for users other than root a file), `{file}` the file
under the device, `{mount}` the folder of its file system, `{nbd}` the NBD URI of the disk, and `{output}` the file with
the output of the program so far; the environment has variables of the same names. A function gets the path of the
mount, or else of the file; a check with two parameters also gets the output of the program.
"""

import contextlib
import inspect
import os
import re
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from .namespaces import fork
from .nbd import served, uri_of
from .windows import CACHES

Step = str | Callable[..., object]

_PLACES = ("dev", "file", "mount", "output", "nbd")
_MOST_OUTPUT = 16 << 10
_TIMED_OUT = 124


@dataclass(frozen=True)
class Plan:
    """The settings of an exploration; see `palimpsest.crash.explore`.

    Steps with `{mount}` run with the file system mounted, other steps of `check` with it unmounted; `mounts` says
    whether functions get the mount. A cut keeps or loses a `unit` of bytes as a whole. Limits of time are for a check
    (`timeout_s`), and for setup and program (`run_timeout_s`). The `precondition` is that of a run, because a drive in
    use collects garbage.
    """

    setup: tuple[Step, ...]
    run: Step
    check: tuple[Step, ...]
    mounts: bool = False
    size: int = 64 << 20
    unit: int = 4096
    cache: str = "volatile"
    mount_options: str = ""
    timeout_s: float = 60.0
    run_timeout_s: float = 600.0
    ssd: str | None = None
    ftl: str | None = None
    overrides: tuple[str, ...] = ()
    precondition: str = "none"
    seed: int = 1

    def __post_init__(self) -> None:
        if self.cache not in CACHES:
            raise InputError(f"--cache {self.cache}: unknown cache; expected one of {', '.join(CACHES)}")
        if not self.check:
            raise InputError("--check: missing; expected a command that checks a state")
        if self.unit not in (512, 4096):
            raise InputError(f"--atomic {self.unit}: expected 512 or 4096 bytes")
        if self.size < 1 << 16 or self.size % 4096 or self.size > 1 << 36:
            raise InputError(f"--size {self.size}: expected whole KiB by four, from 64KiB to 64GiB")
        if self.is_mounted and not self.setup:
            raise InputError(
                "{mount}: there is no file system; expected --setup that makes one, as 'mkfs.ext4 -q {dev}'"
            )
        if self.uses("nbd") and self.needs_device:
            raise InputError("{nbd}: the disk is a block device, too; expected {nbd} and {file}, or {mount} and {dev}")
        for step in (*self.setup, self.run, *self.check):
            unknown = isinstance(step, str) and re.search(r"\{(?!(?:dev|file|mount|output|nbd)\})[a-z]+\}", step)
            if unknown:
                expected = "expected {dev}, {file}, {mount}, {nbd} or {output}"
                raise InputError(f"{unknown[0]}: there is no such place; {expected}")

    def uses(self, place: str) -> bool:
        """Whether a command uses this place."""
        steps = (*self.setup, self.run, *self.check)
        return any(isinstance(step, str) and f"{{{place}}}" in step for step in steps)

    def wants_mount(self, step: Step) -> bool:
        """Whether the file system must be mounted for the step."""
        return "{mount}" in step if isinstance(step, str) else self.mounts

    @property
    def is_mounted(self) -> bool:
        """Whether a file system is mounted at all."""
        return any(self.wants_mount(step) for step in (*self.setup, self.run, *self.check))

    @property
    def needs_device(self) -> bool:
        """Whether a block device is needed."""
        return self.is_mounted or (self.uses("dev") and os.geteuid() == 0)

    def described(self) -> dict[str, Any]:
        """The settings that distinguish explorations, by the names of their options, for JSON."""

        def plain(value: Any) -> object:  # noqa: ANN401 - a field of any type
            if isinstance(value, tuple):
                return [plain(each) for each in value]
            return f"{value.__module__}.{value.__qualname__}" if callable(value) else value

        return {name: plain(getattr(self, field)) for field, name in OPTIONS.items()}


OPTIONS = {
    "setup": "setup", "run": "run", "check": "check", "size": "size", "unit": "atomic", "cache": "cache",
    "mount_options": "mount_options", "ssd": "ssd", "ftl": "ftl", "overrides": "set", "precondition": "precondition",
    "seed": "seed",
}  # fmt: skip
"""Fields of a plan that distinguish explorations, with the names of their options."""


def text_of(step: Step) -> str:
    """A command, or the name of a function."""
    return step if isinstance(step, str) else step.__qualname__


@dataclass(frozen=True)
class Work:
    """The places of an enclosed process, equal in each, because its folder is a private file system in memory."""

    folder: Path

    @property
    def mount(self) -> Path:
        """The mount point of the file system."""
        return self.folder / "mount"

    @property
    def output(self) -> Path:
        """The output of the program."""
        return self.folder / "output"

    @property
    def socket(self) -> Path:
        """The NBD socket of the disk."""
        return self.folder / "nbd"

    def beside(self, step: Step, file: Path) -> AbstractContextManager[None]:
        """The server of the disk during a step, if the step uses one."""
        return served(file, self.socket) if isinstance(step, str) and "{nbd}" in step else nullcontext()

    def places(self, file: Path, device: str | None) -> dict[str, str]:
        """Each place by name."""
        found = (device or str(file), str(file), str(self.mount), str(self.output), uri_of(self.socket))
        return dict(zip(_PLACES, found, strict=True))


@dataclass(frozen=True)
class Outcome:
    """The end of a step: status (0: success, 124: timeout) and the end of its output."""

    status: int
    output: str

    @property
    def line(self) -> str:
        """The last line of the output, or else the status."""
        if self.status == _TIMED_OUT:
            return "the step timed out"
        lines = [line for line in self.output.splitlines() if line.strip()]
        return lines[-1].strip()[:300] if lines else f"status {self.status}"


def perform(
    step: Step,
    places: Mapping[str, str],
    timeout_s: float,
    log: Path,
    *,
    mounted: bool,
    stdout: int | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> Outcome:
    """Runs a step in a process, and kills the processes that it leaves.

    `log` receives the output; `stdout` is a file descriptor for standard output instead; `mounted` says whether a
    function gets the mount; `meanwhile` is called often.
    """
    with log.open("w+b") as written:
        out = written.fileno() if stdout is None else stdout
        process = _start(step, places, out, written.fileno(), mounted=mounted)
        deadline = time.monotonic() + timeout_s
        status = _wait(process, deadline, meanwhile)
        written.seek(max(0, written.seek(0, os.SEEK_END) - _MOST_OUTPUT))
        return Outcome(status, written.read().decode(errors="replace"))


def _start(step: Step, places: Mapping[str, str], out: int, errors: int, *, mounted: bool) -> int:
    """Starts a step in a process; returns the process number."""
    child = fork()
    if child:
        return child
    status = 1
    try:
        os.setsid()
        for target, source in enumerate((os.open(os.devnull, os.O_RDONLY), out, errors)):
            os.dup2(source, target)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if isinstance(step, str):
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            text = re.sub(r"\{(dev|file|mount|output|nbd)\}", lambda found: shlex.quote(places[found[1]]), step)
            os.execvpe("sh", ["sh", "-c", text], {**os.environ, **places})
        sys.stdout, sys.stderr = os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)
        _call(step, places, mounted=mounted)
        status = 0
    except BaseException as error:
        traceback.print_exc()
        # A finding is identified by the last line: an assertion of pytest has many.
        said = str(error).splitlines()
        print(f"{type(error).__name__}: {said[0]}" if said else type(error).__name__, file=sys.stderr)
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _call(step: Callable[..., object], places: Mapping[str, str], *, mounted: bool) -> None:
    """Calls a function with the path, and with the output if the function takes it."""
    path = Path(places["mount" if mounted else "file"])
    required = [
        each
        for each in inspect.signature(step).parameters.values()
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) and each.default is each.empty
    ]
    said = Path(places["output"])
    arguments: Sequence[object] = (path, said.read_text(errors="replace")) if len(required) > 1 else (path,)
    step(*arguments)


def _wait(process: int, deadline: float, meanwhile: Callable[[], None] | None) -> int:
    pause = 0.0005
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if meanwhile is not None:
            meanwhile()
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return _TIMED_OUT
        time.sleep(pause)
        pause = min(pause * 1.2, 0.01)
