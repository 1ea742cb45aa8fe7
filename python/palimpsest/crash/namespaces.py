"""Processes in their own namespaces, so that no mount, device or process outlives the command. For Linux.

Mounts of an enclosed process are visible to it and its children only. It is the first process of its process namespace:
when it ends, also by kill -9 of the command (the death of its parent is a signal), the kernel kills all its
descendants, unmounts its file systems, and ends its loop devices, which close with their last user. Users other than
root get a user namespace, which can mount files by FUSE, but no block device.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from ..errors import InputError

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_MNT_DETACH = 2
_PR_SET_PDEATHSIG = 1
_LOOP_CTL_GET_FREE, _LOOP_CONFIGURE, _BLKFLSBUF = 0x4C82, 0x4C0A, 0x1261
_LO_AUTOCLEAR, _LO_DIRECT_IO = 4, 16
_BLOCK = 4096
_LONGEST_END_S = 10.0

_FLAGS = {
    "ro": 1, "nosuid": 2, "nodev": 4, "noexec": 8, "sync": 16, "dirsync": 128, "noatime": 1024, "nodiratime": 2048,
    "relatime": 1 << 21, "strictatime": 1 << 24, "lazytime": 1 << 25, "rw": 0, "defaults": 0,
}  # fmt: skip
"""Options of mounts that are flags of the system call."""

_EXPECTED = (
    "expected root, or a system that gives its users namespaces "
    "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(status: int, what: str = "") -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}" if what else os.strerror(number))


def is_root() -> bool:
    """Whether block devices can be made."""
    return os.geteuid() == 0


def missing(*, device: bool) -> str:
    """The reason why recording is impossible here, with or without a block device; empty if possible."""
    if not sys.platform.startswith("linux"):
        return "writes are recorded on Linux only"
    paths = ["/dev/fuse", *(["/dev/loop-control"] if device else [])]
    if device and not is_root():
        return "a file system is mounted from a block device, which needs root; expected {file}, or root"
    gone = [path for path in paths if not os.access(path, os.R_OK | os.W_OK)]
    return f"{' and '.join(gone)}: expected to be there, and for this user to read and write" if gone else ""


def mount(source: str, place: Path, kind: str, options: str = "") -> None:
    """Mounts a file system of this kind. Raises OSError."""
    flags, data = 0, []
    for option in filter(None, options.split(",")):
        if option in _FLAGS:
            flags |= _FLAGS[option]
        else:
            data.append(option)
    arguments = (source.encode(), os.fsencode(place), kind.encode(), ctypes.c_ulong(flags), ",".join(data).encode())
    _checked(_libc().mount(*arguments), f"mount {source}")


def unmount(place: Path) -> None:
    """Unmounts a file system; a busy one is detached. Raises OSError, EBUSY for a busy one."""
    libc = _libc()
    for _ in range(100):
        if libc.umount2(os.fsencode(place), 0) == 0:
            return
        if ctypes.get_errno() != 16:
            break
        time.sleep(0.01)
    number = ctypes.get_errno()
    libc.umount2(os.fsencode(place), _MNT_DETACH)
    raise OSError(number, f"unmount {place}: {os.strerror(number)}")


class LoopDevice:
    """A block device over a file, in blocks of 4 KiB; closed with its last user. Raises OSError if none is free."""

    def __init__(self, file: Path, *, direct: bool) -> None:
        self._held = -1
        with contextlib.ExitStack() as opened:
            control, backing = (os.open(path, os.O_RDWR | os.O_CLOEXEC) for path in ("/dev/loop-control", file))
            opened.callback(os.close, control)
            opened.callback(os.close, backing)
            for _ in range(64):
                number = fcntl.ioctl(control, _LOOP_CTL_GET_FREE)
                self.path = f"/dev/loop{number}"
                held = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
                flags = _LO_AUTOCLEAR | (_LO_DIRECT_IO if direct else 0)
                # struct loop_config: file, block size, struct loop_info64 (its flags are at byte 52), reserved.
                info = struct.pack("=52xI176x", flags)
                try:
                    fcntl.ioctl(held, _LOOP_CONFIGURE, struct.pack("=II", backing, _BLOCK) + info + bytes(64))
                except OSError:
                    # Another took it first.
                    os.close(held)
                    continue
                self._held = held
                return
        raise OSError(f"{file}: no loop device could be set over it")

    def forget(self) -> None:
        """Writes and drops the caches of the kernel, because the file is about to change."""
        fcntl.ioctl(self._held, _BLKFLSBUF, 0)

    def sync(self) -> None:
        """Writes, and flushes the device."""
        os.fsync(self._held)

    def close(self) -> None:
        """Releases the device."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1


def sync_files(place: Path) -> None:
    """Writes all data of this file system, and of no other."""
    number = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _checked(_libc().syncfs(number), f"sync {place}")
    finally:
        os.close(number)


def kill_others() -> None:
    """Kills every other process of this namespace, and waits for children."""
    if os.getpid() != 1:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0)[0] > 0:
            pass


def fork() -> int:
    """As `os.fork`, without Python's warning about threads, because our children use none of their locks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _dies_with_parent(parent: int) -> None:
    _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _enter() -> None:
    """Enters new namespaces, for the children of this process. Raises OSError if the user may not."""
    user, group = os.geteuid(), os.getegid()
    own = 0 if is_root() else _CLONE_NEWUSER
    _checked(_libc().unshare(_CLONE_NEWNS | _CLONE_NEWPID | own))
    if own:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    nothing = ctypes.c_char_p(None)
    _checked(_libc().mount(nothing, b"/", nothing, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), nothing), "mount /")


class Enclosed:
    """A process in its own namespaces that runs `body(connection)`, with a file system in memory at `work`."""

    def __init__(self, work: Path, body: Callable[[Connection], None]) -> None:
        self.connection, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self._pid = fork()
        if self._pid == 0:
            status = 1
            try:
                self.connection.close()
                status = _first(work, body, theirs, parent)
            finally:
                os._exit(status)
        theirs.close()

    def receive(self, killed: str) -> Any:  # noqa: ANN401 - each request has an answer of its own type
        """Returns the next answer.

        Raises InputError (`killed` for a killed process), OSError, or RuntimeError for a bug.
        """
        try:
            kind, what = self.connection.recv()
        except EOFError:
            raise InputError(killed) from None
        if kind == "broken":
            raise RuntimeError(what)
        if kind == "failed":
            raise InputError(what)
        if kind == "system":
            raise OSError(*what)
        return what

    def end(self) -> None:
        """Ends the process and all its descendants, and waits for their end."""
        self.connection.close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGTERM)
            deadline = time.monotonic() + _LONGEST_END_S
            while os.waitpid(self._pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > deadline:
                    os.kill(self._pid, signal.SIGKILL)
                    os.waitpid(self._pid, 0)
                    break
                time.sleep(0.001)


def _first(work: Path, body: Callable[[Connection], None], connection: Connection, parent: int) -> int:
    os.setsid()
    _dies_with_parent(parent)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    inside = 0

    def end(number: int, _: object) -> None:
        """Ends this process; the kernel ends the first process of a namespace after all others."""
        if not inside:
            os._exit(128 + number)
        os.kill(inside, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    try:
        _enter()
    except OSError as error:
        # The kernel reports this also if users may have no namespaces at all.
        why = "there are as many as the system allows" if error.errno == errno.ENOSPC else error.strerror
        connection.send(("failed", f"namespaces for this user: {why}; {_EXPECTED}"))
        return 1
    # New credentials reset the signal.
    _dies_with_parent(parent)
    inside = fork()
    if inside:
        connection.close()
        _, status = os.waitpid(inside, 0)
        return os.waitstatus_to_exitcode(status) & 0xFF
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # A parent in another process namespace has the number 0.
    _dies_with_parent(0)
    try:
        mount("palimpsest", work, "tmpfs", "mode=700")
        body(connection)
    except EOFError:
        return 0
    except InputError as error:
        connection.send(("failed", str(error)))
    except OSError as error:
        connection.send(("system", (error.errno or 0, error.strerror or str(error), error.filename)))
    except BaseException:
        with contextlib.suppress(OSError):
            connection.send(("broken", traceback.format_exc()))
    return 0
