"""Runs the program once on a recorded disk: a file in memory, by FUSE, and a loop device over the file if needed.

All steps run in an enclosed process. The effects of setup are durable when the program begins; recording continues
until the file system is unmounted.
"""

import contextlib
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from .. import _core, progress
from ..errors import InputError
from ..files import named
from .commands import Outcome, Plan, Step, Work, perform, text_of
from .namespaces import Enclosed, LoopDevice, kill_others, missing, mount, sync_files, unmount

_FILE = "drive"
_USUAL = ("ext4", "xfs", "btrfs", "f2fs")


def record(plan: Plan, work: Path, log: Path, say: Callable[[str], None]) -> str | None:
    """Records the program in `log`; returns the kind of the mounted file system, or None. Raises InputError."""
    gone = missing(device=plan.needs_device)
    if gone:
        what = "{mount}" if plan.is_mounted else "{dev}" if plan.needs_device else "{file}"
        raise InputError(f"{what}: {gone}")

    def body(connection: Connection) -> None:
        connection.send(("recorded", _Recorder(plan, Work(work), log).record()))

    enclosed, begin = Enclosed(work, body), time.monotonic()
    try:
        while not enclosed.connection.poll(progress.LINE_EVERY_S):
            say(f"recording the program for {progress.clock(time.monotonic() - begin)}")
        kind = enclosed.receive("the process that records was killed")
    finally:
        enclosed.end()
    return None if kind is None else str(kind)


class _Recorder:
    def __init__(self, plan: Plan, work: Work, log: Path) -> None:
        self._plan, self._work, self._log = plan, work, log
        self._device: LoopDevice | None = None

    def record(self) -> str | None:
        folder, pipe = self._work.folder / "fuse", self._work.folder / "said"
        for each in (folder, self._work.mount):
            each.mkdir()
        os.mkfifo(pipe)
        self._work.output.touch()
        try:
            recording = _core.CrashRecording(str(folder), self._plan.size, str(self._log), str(pipe))
        except OSError as error:
            raise InputError(f"/dev/fuse: {error}; expected FUSE, to record a file") from error
        said = os.open(pipe, os.O_WRONLY)
        file = folder / _FILE
        if self._plan.needs_device:
            try:
                self._device = LoopDevice(file, direct=True)
            except OSError as error:
                raise InputError(f"/dev/loop-control: {error}; expected a free loop device") from error
        kind = self._set_up(file)
        self._sync(file)
        with named(self._log):
            recording.mark("begin")
        self._do("--run", self._plan.run, file, said, recording)
        os.close(said)
        # Remaining processes would keep the file system in use.
        kill_others()
        with named(self._log):
            recording.mark("end")
        if kind is not None:
            with contextlib.suppress(OSError):
                unmount(self._work.mount)
        self._sync(file)
        if self._device is not None:
            self._device.close()
        unmount(folder)
        with named(self._log):
            recording.finish()
        return kind

    def _sync(self, file: Path) -> None:
        if self._device is not None:
            self._device.sync()
        number = os.open(file, os.O_RDWR)
        os.fsync(number)
        os.close(number)

    def _set_up(self, file: Path) -> str | None:
        kind = None
        for step in self._plan.setup:
            if kind is None and self._plan.wants_mount(step):
                kind = self._mount()
            self._do("--setup", step, file)
        if kind is None and self._plan.is_mounted:
            kind = self._mount()
        if kind is not None:
            sync_files(self._work.mount)
        return kind

    def _do(
        self,
        option: str,
        step: Step,
        file: Path,
        said: int | None = None,
        recording: "_core.CrashRecording | None" = None,
    ) -> None:
        device = None if self._device is None else self._device.path

        def listen() -> None:
            with named(self._log):
                assert recording is not None
                recording.listen()

        with self._work.beside(step, file):
            outcome: Outcome = perform(
                step, self._work.places(file, device), self._plan.run_timeout_s, self._work.folder / "log",
                mounted=self._plan.mounts, stdout=said, meanwhile=None if recording is None else listen,
            )  # fmt: skip
        if outcome.status and recording is not None:
            # A full disk under the recording is an error of the program's disk, too.
            listen()
        if outcome.status:
            what = outcome.line.replace(f"status {outcome.status}", "it printed nothing")
            failed = f"{option} {text_of(step)!r}: failed, status {outcome.status}: {what}"
            raise InputError(f"{failed}; expected status 0 on the first disk")

    def _mount(self) -> str:
        device = None if self._device is None else self._device.path
        assert device is not None
        for kind in _kinds():
            try:
                mount(device, self._work.mount, kind, self._plan.mount_options)
            except OSError as error:
                said = error
            else:
                return kind
        asked = f" with --mount-options {self._plan.mount_options}" if self._plan.mount_options else ""
        what = f"the device has no file system that can be mounted{asked} ({said.strerror or said})"
        raise InputError(f"{{mount}}: {what}; expected --setup that makes one, as 'mkfs.ext4 -q {{dev}}'")


def _kinds() -> list[str]:
    """Kinds of file systems on devices that the kernel knows, and some that it may load."""
    lines = Path("/proc/filesystems").read_text(encoding="ascii").splitlines()
    on_devices = {line.strip() for line in lines if not line.startswith("nodev")} - {"iso9660", "udf", "fuseblk"}
    return [*_USUAL, *sorted(on_devices.difference(_USUAL))]
