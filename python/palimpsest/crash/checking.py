"""Builds states, and checks them: an enclosed process for each core.

A state is a sparse file in memory, written anew for each check, because checks change it (mounting ext4 replays its
journal). Its loop device stays, and drops its caches. The image of a state is the image at its cut, with its picks.
Processes that a check leaves running are killed.
"""

import contextlib
import errno
import os
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from ..files import named
from .commands import Outcome, Plan, Step, Work, perform, text_of
from .cuts import Cuts
from .history import History, adjacent
from .namespaces import LoopDevice, kill_others, mount, unmount
from .owners import owners
from .windows import State

_KEPT_IMAGES = 64


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check: the failed step, the last line and the end of its output, and the time taken."""

    ok: bool
    what: str = ""
    line: str = ""
    output: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Whose:
    """A request for the owners of these bytes at the end."""

    places: tuple[int, ...]


def image_of(history: History, state: State) -> dict[int, bytes]:
    """The digest of each unit of a state that does not hold zeros."""
    return _picked(history, history.image_at(state.stop), state)


def _picked(history: History, image: Mapping[int, bytes], state: State) -> dict[int, bytes]:
    found = dict(image)
    for unit, number in state.picks:
        digest = history.digest_of(unit, number)
        if digest:
            found[unit] = digest
        else:
            found.pop(unit, None)
    return found


def write_image(history: History, image: Mapping[int, bytes], file: Path) -> None:
    """Makes `file` hold these units, and zeros elsewhere. Raises OSError that names the file."""
    number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with named(file):
            os.ftruncate(number, 0)
            os.ftruncate(number, history.size)
            for first, digests in adjacent(sorted(image.items())):
                contents = [history.contents[digest] for digest in digests]
                if os.pwritev(number, contents, first * history.unit) < sum(map(len, contents)):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(number)


class Checker:
    """Checks states of a program, in an enclosed process."""

    def __init__(self, plan: Plan, history: History, kind: str | None, work: Work) -> None:
        self._plan, self._history, self._kind, self._work = plan, history, kind, work
        self._file = work.folder / "disk"
        self._device: LoopDevice | None = None
        self._images: OrderedDict[int, dict[int, bytes]] = OrderedDict()
        work.mount.mkdir()

    def check(self, state: State) -> Verdict:
        """Builds a state, and checks it."""
        begin = time.monotonic()
        self.build(state)
        self._work.output.write_bytes(self._history.said_by(state.said))
        verdict = self._checked()
        return Verdict(verdict.ok, verdict.what, verdict.line, verdict.output, time.monotonic() - begin)

    def whose(self, asked: Whose) -> dict[int, str]:
        """The owners of bytes at the end, by place."""
        stop = len(self._history.events)
        self.build(State(stop, 0, ()))
        return owners(self._file, asked.places)

    def build(self, state: State) -> None:
        """Makes the file, and with it the device, hold a state."""
        if self._device is not None:
            self._device.forget()
        image = self._images.get(state.stop)
        if image is None:
            image = self._images[state.stop] = self._history.image_at(state.stop)
            if len(self._images) > _KEPT_IMAGES:
                self._images.popitem(last=False)
        write_image(self._history, _picked(self._history, image, state), self._file)
        if self._device is None and self._plan.needs_device:
            self._device = LoopDevice(self._file, direct=False)

    def _checked(self) -> Verdict:
        mounted = False
        try:
            for step in self._plan.check:
                if self._plan.wants_mount(step) != mounted:
                    if mounted:
                        self._unmount()
                        mounted = False
                    else:
                        try:
                            self._mount()
                        except OSError as error:
                            return Verdict(False, "mount", f"the file system cannot be mounted: {error.strerror}")
                        mounted = True
                outcome = self._do(step)
                if outcome.status:
                    return Verdict(False, text_of(step), outcome.line, outcome.output)
        finally:
            kill_others()
            if mounted:
                self._unmount()
        return Verdict(True)

    def _do(self, step: Step) -> Outcome:
        device = None if self._device is None else self._device.path
        places, log = self._work.places(self._file, device), self._work.folder / "log"
        with self._work.beside(step, self._file):
            return perform(step, places, self._plan.timeout_s, log, mounted=self._plan.mounts)

    def _mount(self) -> None:
        assert self._device is not None
        assert self._kind is not None
        mount(self._device.path, self._work.mount, self._kind, self._plan.mount_options)

    def _unmount(self) -> None:
        try:
            unmount(self._work.mount)
        except OSError:
            # A remaining process holds the mount, so the next state gets another file and device.
            if self._device is not None:
                self._device.close()
            self._device = None
            with contextlib.suppress(OSError):
                self._file.unlink()


def check_tasks(
    plan: Plan, history: History, kind: str | None, work: Path, cuts: Cuts | None, link: Connection
) -> None:
    """Serves requests until the connection ends: checks states, and computes the states after cuts of the drive."""
    checker = Checker(plan, history, kind, Work(work))
    link.send(("ready", None))
    while True:
        task = link.recv()
        if isinstance(task, State):
            link.send(("checked", checker.check(task)))
        elif isinstance(task, Whose):
            link.send(("whose", checker.whose(task)))
        else:
            assert cuts is not None
            link.send(("cut", cuts.left(task)))
