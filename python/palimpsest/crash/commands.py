"""What is explored: the commands, or functions of Python, and the disk that they get.

A command is for the shell. `{dev}` in it is the block device (a file, for who is not root), `{file}` the file under it,
`{mount}` the folder where its file system is mounted, `{nbd}` the NBD URI of the disk, and `{output}` the file with
what the program had said; the same names are variables of its environment. A function gets the path of the mount, or
else of the file, and a check, if it takes two arguments, what the program had said.
"""

import contextlib
import inspect
import os
import re
import shlex
import signal
import subprocess
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
    """What is explored.

    Attributes:
        setup: makes the file system and what is there before, in order; those with `{mount}` after it is mounted.
        run: the program.
        check: says whether a state is right, by status 0 or without an exception; each that has `{mount}` finds the
            file system mounted, each that has not finds it unmounted, in order.
        mounts: whether functions get the mounted file system.
        size: bytes of the disk.
        unit: bytes that a cut keeps or loses as a whole.
        cache: one of `CACHES`.
        mount_options: of the file system.
        timeout_s: most time of a check.
        run_timeout_s: most time of setup and program.
        ssd: the drive, of which the states after each flash operation are explored; None: of no drive.
        ftl: its layer.
        overrides: its settings.
        precondition: its state at first, as of a run: a drive in use collects garbage.
        seed: of what is drawn, and of the drive.
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
            raise InputError(f"--cache {self.cache}: it is not known; expected one of {', '.join(CACHES)}")
        if not self.check:
            raise InputError("--check: it is missing; expected a command that says whether a state is right")
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
        """Whether the file system must be mounted for it."""
        return "{mount}" in step if isinstance(step, str) else self.mounts

    @property
    def is_mounted(self) -> bool:
        """Whether a file system is mounted at all."""
        return any(self.wants_mount(step) for step in (*self.setup, self.run, *self.check))

    @property
    def needs_device(self) -> bool:
        """Whether there is a block device."""
        return self.is_mounted or (self.uses("dev") and os.geteuid() == 0)

    def described(self) -> dict[str, Any]:
        """What makes explorations different, for JSON."""

        def name(step: Step) -> str:
            return step if isinstance(step, str) else f"{step.__module__}.{step.__qualname__}"

        return {
            "setup": [name(step) for step in self.setup],
            "run": name(self.run),
            "check": [name(step) for step in self.check],
            "size": self.size,
            "atomic": self.unit,
            "cache": self.cache,
            "mount_options": self.mount_options,
            "ssd": self.ssd,
            "ftl": self.ftl,
            "set": list(self.overrides),
            "precondition": self.precondition,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Work:
    """The places of an enclosed process, the same in each: its folder is a file system in memory of its own."""

    folder: Path

    @property
    def mount(self) -> Path:
        """Where the file system is mounted."""
        return self.folder / "mount"

    @property
    def output(self) -> Path:
        """What the program had said."""
        return self.folder / "output"

    @property
    def socket(self) -> Path:
        """Where the disk is served by NBD."""
        return self.folder / "nbd"

    def beside(self, step: Step, file: Path) -> AbstractContextManager[None]:
        """What must be there while a step is done: the server of the disk, if it wants it."""
        return served(file, self.socket) if isinstance(step, str) and "{nbd}" in step else nullcontext()

    def places(self, file: Path, device: str | None) -> dict[str, str]:
        """Each place by its name."""
        found = (device or str(file), str(file), str(self.mount), str(self.output), uri_of(self.socket))
        return dict(zip(_PLACES, found, strict=True))


@dataclass(frozen=True)
class Outcome:
    """How a step ended.

    Attributes:
        status: 0 if well; 124 if its time was over.
        output: the last of what it wrote.
    """

    status: int
    output: str

    @property
    def line(self) -> str:
        """Its last line, or else its status."""
        if self.status == _TIMED_OUT:
            return "its time was over"
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
    """Does a step in a process of its own, and ends what is left of it.

    Args:
        step: what is done.
        places: the places by their names.
        timeout_s: most time for it.
        log: gets what it writes.
        mounted: whether a function gets the mount.
        stdout: where what it says goes, if not there.
        meanwhile: is called often.
    """
    with log.open("w+b") as written:
        out = written.fileno() if stdout is None else stdout
        process = _start(step, places, out, written.fileno(), mounted=mounted)
        deadline = time.monotonic() + timeout_s
        status = _wait(process, deadline, meanwhile)
        written.seek(max(0, written.seek(0, os.SEEK_END) - _MOST_OUTPUT))
        return Outcome(status, written.read().decode(errors="replace"))


def _start(
    step: Step, places: Mapping[str, str], out: int, errors: int, *, mounted: bool
) -> "subprocess.Popen[bytes] | int":
    if isinstance(step, str):
        text = re.sub(r"\{(dev|file|mount|output|nbd)\}", lambda found: shlex.quote(places[found[1]]), step)
        return subprocess.Popen(
            ["sh", "-c", text],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            env={**os.environ, **places},
            start_new_session=True,
        )
    child = fork()
    if child:
        return child
    status = 1
    try:
        os.setsid()
        os.dup2(out, 1)
        os.dup2(errors, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _call(step, places, mounted=mounted)
        status = 0
    except BaseException as error:
        traceback.print_exc()
        # The last line is what a finding is known by: an assertion of pytest has many.
        said = str(error).splitlines()
        print(f"{type(error).__name__}: {said[0]}" if said else type(error).__name__, file=sys.stderr)
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _call(step: Callable[..., object], places: Mapping[str, str], *, mounted: bool) -> None:
    """Calls it with the path, and with what was said if it takes that."""
    path = Path(places["mount" if mounted else "file"])
    required = [
        each
        for each in inspect.signature(step).parameters.values()
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) and each.default is each.empty
    ]
    said = Path(places["output"])
    arguments: Sequence[object] = (path, said.read_text(errors="replace")) if len(required) > 1 else (path,)
    step(*arguments)


def _wait(process: "subprocess.Popen[bytes] | int", deadline: float, meanwhile: Callable[[], None] | None) -> int:
    pid = process if isinstance(process, int) else process.pid
    pause = 0.0005
    while True:
        if isinstance(process, int):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
        else:
            code = process.poll()
            if code is not None:
                return code
        if meanwhile is not None:
            meanwhile()
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            _reap(process)
            return _TIMED_OUT
        time.sleep(pause)
        pause = min(pause * 1.2, 0.01)


def _reap(process: "subprocess.Popen[bytes] | int") -> None:
    if isinstance(process, int):
        os.waitpid(process, 0)
    else:
        process.wait()
