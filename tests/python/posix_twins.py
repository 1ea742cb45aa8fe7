"""Random POSIX operations on two folders, which must answer alike: `python posix_twins.py SEED STEPS ONE OTHER`.

One folder is on the tested file system, the other on a trusted one (tmpfs). Every operation must have the same result
or the same error on both. At intervals the whole content is compared: names, types, modes, owners, links, sizes,
contents, times that were set, targets and extended attributes. Root is needed, because some operations run as other
users. The program relates to `pjdfstest` as a fuzzer to a list of examples.

Ignored: sizes and links of folders and blocks of files, because file systems count them differently; times that were
not set; ACLs, locks, devices, exchanges (RENAME_EXCHANGE is not POSIX); set-group-ID files that the group may not
execute, because the kernel makes FUSE keep the bit where local file systems drop it; changes of an owner to the same
owner, which do not reach FUSE.
"""

import ctypes
import os
import random
import re
import stat
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

USERS = ((0, 0), (1000, 1000), (1001, 1000))
NAMES = ("a", "b", "c", "d", "e", "with a blank", "\udcff\udcfe", "x" * 255)
MODES = (0o777, 0o755, 0o700, 0o644, 0o600, 0o444, 0o333, 0o000, 0o1777, 0o4755, 0o2755, 0o6711)
FLAGS = (os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_DIRECTORY, os.O_NOFOLLOW)
ATTRIBUTES = ("user.a", "user.b", "user." + "n" * 200, "user.", "nonsense", "trusted.t")
SIZES = (0, 1, 511, 4095, 4096, 4097, 8192, 20_000, 65_536)
MOST_OPEN = 8

_LIBC = ctypes.CDLL(None, use_errno=True)


def _rename(one: str, other: str, flags: int) -> None:
    """`renameat2`; Python has only the form without flags."""
    here = -100
    if _LIBC.renameat2(here, os.fsencode(one), here, os.fsencode(other), flags):
        raise OSError(ctypes.get_errno(), "renameat2")


def _status(found: os.stat_result) -> tuple[Any, ...]:
    """The attributes of a file that must be alike."""
    is_folder = stat.S_ISDIR(found.st_mode)
    own = () if is_folder else (found.st_nlink, found.st_size)
    mode = found.st_mode
    if not is_folder and not mode & stat.S_IXGRP:
        mode &= ~stat.S_ISGID
    return (oct(mode), found.st_uid, found.st_gid, *own)


def _short(shown: object) -> str:
    """The printed form, with long values cut."""
    return re.sub(r"(.)\1{20,}|((?:\\x..)+)", lambda long: f"{long[0][:4]}..", repr(shown))[:300]


def _answer(act: Callable[[], Any]) -> Any:
    """The result of an operation, or its error."""
    try:
        return act()
    except OSError as error:
        return f"errno {error.errno}: {os.strerror(error.errno or 0)}"


def _held(root: str) -> dict[str, Any]:
    """The whole content of a folder, by path."""
    held: dict[str, Any] = {}
    waiting = [""]
    while waiting:
        path = waiting.pop()
        full = root + path
        found = os.lstat(full)
        more: Any = None
        if stat.S_ISDIR(found.st_mode):
            names = sorted(os.listdir(full))
            waiting += [f"{path}/{name}" for name in names]
            more = names
        elif stat.S_ISLNK(found.st_mode):
            more = os.readlink(full)
        elif stat.S_ISREG(found.st_mode):
            with open(full, "rb") as file:
                more = file.read()
        is_file = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
        attributes = (
            sorted(name for name in os.listxattr(full) if name.startswith(("user.", "trusted."))) if is_file else []
        )
        held[path] = (_status(found), more, [(name, os.getxattr(full, name)) for name in attributes])
    return held


class Twins:
    """Two folders, and the files that are open in both.

    Attributes:
        trace: the operations so far.
    """

    def __init__(self, seed: int, roots: tuple[str, str]) -> None:
        self._rng = random.Random(seed)
        self._roots = roots
        self._open: list[tuple[int, int]] = []
        self.trace: list[str] = []

    def _path(self) -> str:
        rng = self._rng
        depth = rng.choice((1, 1, 1, 2, 2, 3))
        path = "".join("/" + rng.choice(NAMES) for _ in range(depth))
        return path + rng.choice(("", "", "", "", "", "", "", "", "/", "/.", "/..", "/" + "y" * 256))

    def _both(self, name: str, act: Callable[[str, int], Any], *shown: object) -> tuple[Any, Any]:
        """Calls `act` for both folders, with the root and the number."""
        one, other = [_answer(partial(act, root, number)) for number, root in enumerate(self._roots)]
        self.trace.append(f"{name}{_short(shown)} -> {_short(one)}")
        return one, other

    def _same(self, name: str, act: Callable[[str, int], Any], *shown: object) -> None:
        one, other = self._both(name, act, *shown)
        assert one == other, f"{self.trace[-1]}, on the other {_short(other)}"

    def _on_path(self) -> None:
        rng, path = self._rng, self._path()
        mode, size = rng.choice(MODES), rng.choice(SIZES)
        uid, gid = rng.choice(
            [(-1, 0), (-1, 1000), (0, -1), (0, 1000), (1000, -1), (1000, 0), (1001, -1), (1001, 1000)]
        )
        times = (rng.randrange(-(2**31), 2**33) * 10**9 + rng.randrange(10**9), rng.randrange(2**60))
        attribute, value = rng.choice(ATTRIBUTES), bytes(rng.choice((0, 1, 100, 3000)))
        kind = rng.choice((0, os.XATTR_CREATE, os.XATTR_REPLACE))

        def timed(root: str, _: int) -> Any:
            os.utime(root + path, ns=times, follow_symlinks=False)
            found = os.lstat(root + path)
            # A link may be on its own path, and may have been read since.
            return found.st_mtime_ns, None if stat.S_ISLNK(found.st_mode) else found.st_atime_ns

        name, act, shown = rng.choice([
            ("mkdir", lambda root, _: os.mkdir(root + path, mode), (path, oct(mode))),
            ("mkdir", lambda root, _: os.mkdir(root + path, mode), (path, oct(mode))),
            ("rmdir", lambda root, _: os.rmdir(root + path), (path,)),
            ("unlink", lambda root, _: os.unlink(root + path), (path,)),
            ("truncate", lambda root, _: os.truncate(root + path, size), (path, size)),
            ("chmod", lambda root, _: os.chmod(root + path, mode), (path, oct(mode))),
            ("chown", lambda root, _: os.chown(root + path, uid, gid), (path, uid, gid)),
            ("lchown", lambda root, _: os.lchown(root + path, uid, gid), (path, uid, gid)),
            ("utime", timed, (path, times)),
            ("mkfifo", lambda root, _: os.mkfifo(root + path, mode), (path, oct(mode))),
            ("readlink", lambda root, _: os.readlink(root + path), (path,)),
            ("stat", lambda root, _: _status(os.stat(root + path)), (path,)),
            ("lstat", lambda root, _: _status(os.lstat(root + path)), (path,)),
            ("listdir", lambda root, _: sorted(os.listdir(root + path)), (path,)),
            ("access", lambda root, _: [os.access(root + path, way, effective_ids=True) for way in (4, 2, 1)], (path,)),
            ("setxattr", lambda root, _: os.setxattr(root + path, attribute, value, kind), (path, attribute, kind)),
            ("getxattr", lambda root, _: os.getxattr(root + path, attribute), (path, attribute)),
            ("removexattr", lambda root, _: os.removexattr(root + path, attribute), (path, attribute)),
        ])  # fmt: skip
        self._same(name, act, *shown)

    def _on_two(self) -> None:
        rng, one, other = self._rng, self._path(), self._path()
        target = rng.choice((one.lstrip("/"), "../" + one.lstrip("/"), "nowhere", ".", "x" * 1023))
        flags = rng.choice((0, 1))  # RENAME_NOREPLACE
        name, act, shown = rng.choice([
            ("rename", lambda root, _: os.rename(root + one, root + other), (one, other)),
            ("renameat2", lambda root, _: _rename(root + one, root + other, flags), (one, other, flags)),
            ("link", lambda root, _: os.link(root + one, root + other, follow_symlinks=False), (one, other)),
            ("symlink", lambda root, _: os.symlink(target, root + other), (target, other)),
        ])  # fmt: skip
        self._same(name, act, *shown)

    def _open_one(self) -> None:
        rng, path, mode = self._rng, self._path(), self._rng.choice(MODES)
        flags = rng.choice((os.O_RDONLY, os.O_WRONLY, os.O_RDWR)) | os.O_NONBLOCK
        flags |= rng.choice((os.O_CREAT, 0)) | (rng.choice(FLAGS) if rng.random() < 0.5 else 0)
        opened = self._both("open", lambda root, _: os.open(root + path, flags, mode), path, oct(flags), oct(mode))
        if all(isinstance(each, int) for each in opened):
            self._open.append(opened)
            if len(self._open) > MOST_OPEN:
                self._close(rng.randrange(len(self._open)))
            return
        for each in opened:
            if isinstance(each, int):
                os.close(each)
        assert opened[0] == opened[1], f"{self.trace[-1]}, on the other {_short(opened[1])}"

    def _close(self, number: int) -> None:
        for end in self._open.pop(number):
            os.close(end)

    def _on_open(self) -> None:
        if not self._open:
            return
        rng = self._rng
        number = rng.randrange(len(self._open))
        ends = self._open[number]
        at, size, mode = rng.choice(SIZES), rng.choice(SIZES), rng.choice(MODES)
        content = bytes([rng.randrange(256)]) * size

        def written_at(_: str, end: int) -> Any:
            # In pages, because one call may write less than its argument.
            return [os.pwrite(ends[end], content[from_ : from_ + 4096], at + from_) for from_ in range(0, size, 4096)]

        def to_the_end(_: str, end: int) -> Any:
            return stat.S_ISREG(os.fstat(ends[end]).st_mode) and os.lseek(ends[end], -1, os.SEEK_END)

        name, act = rng.choice([
            ("pwrite", written_at),
            ("pwrite", written_at),
            ("write", lambda _, end: os.write(ends[end], content[:4096])),
            ("pread", lambda _, end: os.pread(ends[end], size, at)),
            ("ftruncate", lambda _, end: os.ftruncate(ends[end], size)),
            ("fstat", lambda _, end: _status(os.fstat(ends[end]))),
            ("fchmod", lambda _, end: os.fchmod(ends[end], mode)),
            ("fsync", lambda _, end: os.fsync(ends[end])),
            ("lseek", lambda _, end: os.lseek(ends[end], at, os.SEEK_SET)),
            ("lseek to the end", to_the_end),
            ("close", None),
        ])  # fmt: skip
        if act is None:
            self._close(number)
        else:
            self._same(name, act, number, at, size)

    def step(self) -> None:
        """Does one operation, with a user and a mask."""
        rng = self._rng
        uid, gid = rng.choice(USERS)
        os.umask(rng.choice((0o000, 0o022, 0o077)))
        # Back to root first, because only root may change the user.
        os.setegid(gid)
        os.seteuid(uid)
        try:
            rng.choice((self._on_path, self._on_path, self._on_two, self._open_one, self._on_open, self._on_open))()
        finally:
            os.seteuid(0)
            os.setegid(0)

    def compare(self) -> None:
        """Compares the whole content of the folders."""
        one, other = (_held(root) for root in self._roots)
        self.trace.append(f"compared {len(one)} files")
        for path in sorted(one.keys() | other.keys()):
            if one.get(path) != other.get(path):
                shown = [_short(held.get(path)) for held in (one, other)]
                raise AssertionError(f"{_short(path or '/')}: {shown[0]}, on the other {shown[1]}")


def main() -> None:
    """Runs the program of the arguments, and prints the last operations if the folders differ."""
    seed, steps, *roots = sys.argv[1:]
    os.setgroups([])
    for root in roots:
        os.chmod(root, 0o777)
    twins = Twins(int(seed), (roots[0], roots[1]))
    try:
        for step in range(int(steps)):
            twins.step()
            if step % 50 == 0:
                twins.compare()
        twins.compare()
    except AssertionError as error:
        print(f"seed {seed} after {len(twins.trace)} operations: {error}", *twins.trace[-20:], sep="\n  ")
        sys.exit(1)
    kinds = {line.partition("(")[0] for line in twins.trace if "(" in line}
    failed = sum("errno" in line for line in twins.trace)
    print(f"{steps} operations of {len(kinds)} kinds, {failed} of them refused, alike")


if __name__ == "__main__":
    main()
