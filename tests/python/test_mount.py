"""`palimpsest mount`: programs' expectations of a mounted file system. Needs root and FUSE."""

import ctypes
import errno
import json
import mmap
import os
import random
import shutil
import signal
import stat
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from conftest import COMMAND, Command

pytestmark = pytest.mark.contract

SMALL = ["--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=128"]
TINY = ["--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=12"]


def missing() -> str:
    """The reason why nothing can be mounted here; empty if mounting works."""
    if os.geteuid() != 0:
        return "needs root"
    return "" if os.access("/dev/fuse", os.R_OK | os.W_OK) else "needs /dev/fuse"


needs_fuse = pytest.mark.skipif(bool(missing()), reason=missing())


@contextmanager
def mounted(at: Path, *options: str, drive: list[str] = SMALL) -> Iterator[subprocess.Popen[str]]:
    """The command, with the file system at `at`."""
    command = [str(COMMAND), "mount", str(at), *drive, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            while line.endswith("a new image\n"):
                line = process.stderr.readline()
            assert line.startswith("mounted mga-8k"), line
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(timeout=30)


@contextmanager
def mounted_again(at: Path, image: Path) -> Iterator[None]:
    """The file system that `image` keeps, at `at`."""
    command = [str(COMMAND), "mount", str(at), "--image", str(image)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            while not (line := process.stderr.readline()).startswith("mounted"):
                assert line, "it is mounted"
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)


@needs_fuse
def test_names_links_modes_and_times(tmp_path: Path) -> None:
    with mounted(tmp_path):
        one, two = tmp_path / "one", tmp_path / "two"
        one.write_text("hello")
        two.hardlink_to(one)
        (tmp_path / "link").symlink_to("one")
        assert (tmp_path / "link").read_text() == "hello"
        assert (one.stat().st_nlink, one.stat().st_ino) == (2, two.stat().st_ino)
        one.unlink()
        assert (two.read_text(), two.stat().st_nlink) == ("hello", 1)
        other = tmp_path / "other"
        other.write_text("x")
        other.rename(two)
        assert two.read_text() == "x"
        os.chown(two, 12, 34)
        two.chmod(0o4751)
        os.utime(two, ns=(-5, 17_179_869_183_999_999_999 // 4))
        found = two.stat()
        assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o4751, 12, 34)
        assert (found.st_atime_ns, found.st_mtime_ns) == (-5, 17_179_869_183_999_999_999 // 4)
        nested = tmp_path / "a" / "b"
        nested.mkdir(parents=True)
        with pytest.raises(OSError, match="Invalid argument"):
            (tmp_path / "a").rename(nested / "c")
        with pytest.raises(OSError, match="not empty"):
            (tmp_path / "a").rmdir()
        raw = os.fsencode(tmp_path) + b"/\xff\xfe\n"
        os.mkfifo(raw)
        assert stat.S_ISFIFO(os.lstat(raw).st_mode)
        assert b"\xff\xfe\n" in [os.fsencode(entry.name) for entry in tmp_path.iterdir()]
        with pytest.raises(OSError, match="too long"):
            (tmp_path / ("x" * 256)).touch()


@needs_fuse
def test_files_outlive_their_names_while_they_are_open(tmp_path: Path) -> None:
    with mounted(tmp_path):
        path = tmp_path / "file"
        with path.open("w+") as opened:
            path.unlink()
            opened.write("still here")
            opened.flush()
            opened.seek(0)
            assert opened.read() == "still here"
            assert os.fstat(opened.fileno()).st_nlink == 0
        with path.open("ab") as one, path.open("ab") as other:
            for end in (one, other, one):
                end.write(b"12345")
                end.flush()
        assert path.stat().st_size == 15


class Fsx:
    """A file and its shadow, under random operations."""

    MOST = 400_000

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.random = random.Random(seed)
        self.shadow = bytearray()
        self.file = os.open(path, os.O_RDWR | os.O_CREAT)

    def place(self) -> tuple[int, int]:
        at = self.random.randrange(self.MOST)
        return at, 1 + self.random.randrange(min(self.random.choice([100, 9000, 70_000]), self.MOST - at))

    def reach(self, size: int) -> None:
        self.shadow.extend(bytes(max(0, size - len(self.shadow))))

    def write(self) -> None:
        at, length = self.place()
        data = self.random.randbytes(length)
        self.reach(at + length)
        self.shadow[at : at + length] = data
        assert os.pwrite(self.file, data, at) == length

    def read(self) -> None:
        at, length = self.place()
        assert os.pread(self.file, length, at) == self.shadow[at : at + length]

    def truncate(self) -> None:
        size = self.random.randrange(self.MOST)
        os.ftruncate(self.file, size)
        del self.shadow[size:]
        self.reach(size)

    def punch(self) -> None:
        at, length = self.place()
        libc = ctypes.CDLL(None, use_errno=True)
        keep_size, punch_hole = 1, 2
        arguments = (self.file, keep_size | punch_hole, ctypes.c_long(at), ctypes.c_long(length))
        assert libc.fallocate(*arguments) == 0, os.strerror(ctypes.get_errno())
        end = min(at + length, len(self.shadow))
        if at < end:
            self.shadow[at:end] = bytes(end - at)

    def map(self) -> None:
        at, length = self.place()
        end = min(at + length, len(self.shadow))
        if at < end:
            with mmap.mmap(self.file, len(self.shadow)) as mapped:
                assert mapped[at:end] == self.shadow[at:end]
                data = self.random.randbytes(end - at)
                mapped[at:end] = data
                self.shadow[at:end] = data

    def allocate(self) -> None:
        at, length = self.place()
        os.posix_fallocate(self.file, at, length)
        self.reach(at + length)

    def sync(self) -> None:
        os.fsync(self.file)

    def open(self) -> None:
        os.close(self.file)
        self.file = os.open(self.path, os.O_RDWR)

    def run(self, steps: int) -> None:
        kinds = (
            [self.write] * 6
            + [self.read] * 5
            + [self.truncate, self.punch, self.map, self.map, self.sync, self.open, self.allocate]
        )
        for _ in range(steps):
            self.random.choice(kinds)()
            assert os.fstat(self.file).st_size == len(self.shadow)
        os.close(self.file)
        assert self.path.read_bytes() == self.shadow


@needs_fuse
def test_a_file_under_random_operations(tmp_path: Path) -> None:
    for seed, options in ((1, ()), (2, ("--ftl", "page", "--clock", "virtual"))):
        with mounted(tmp_path, *options):
            Fsx(tmp_path / "fsx", seed).run(400)


@pytest.mark.long
@needs_fuse
def test_files_under_many_random_operations(tmp_path: Path) -> None:
    for seed in range(10):
        ftl = ("block", "page", "subpage", "mga")[seed % 4]
        with mounted(tmp_path, "--ftl", ftl):
            Fsx(tmp_path / "fsx", seed).run(6000)


@needs_fuse
def test_programs(palimpsest: Command, tmp_path: Path) -> None:
    source = Path(__file__).parent
    script = f"""
        cd $mount; cp -r {source} tests; diff -r {source} tests; git init -q . && git add tests
        git -c user.name=a -c user.email=a@b commit -qm x && git fsck --strict 2>&1 && git status --short >&2
        rm -rf tests && git checkout -q . && diff -r {source} tests
    """
    if shutil.which("sqlite3"):
        script += (
            "sqlite3 db 'pragma journal_mode=wal; create table t(a); insert into t values(1); pragma integrity_check'"
        )
    if shutil.which("git") is None:
        script = f"cp -r {source} $mount/tests && diff -r {source} $mount/tests"
    done = palimpsest(
        "mount",
        str(tmp_path),
        *SMALL,
        "--json",
        "--out",
        str(tmp_path.parent / "out"),
        "--run",
        f"set -e; ({script}) >&2",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["workload"], result["ftl"]) == ("files", "block")
    assert any("the file system wrote" in note for note in result["notes"])
    assert not os.path.ismount(tmp_path)


@needs_fuse
def test_it_is_full_when_it_says_so(tmp_path: Path) -> None:
    small = ("--set", "ssd.over_provisioning=800%", "--ftl", "page")
    with mounted(tmp_path, *small):
        free = os.statvfs(tmp_path)
        room, written = free.f_bavail * free.f_bsize, 0
        with (tmp_path / "all").open("wb", buffering=0) as file:

            def fill() -> None:
                nonlocal written
                while True:
                    written += file.write(bytes(1 << 16))

            with pytest.raises(OSError) as full:
                fill()
        assert full.value.errno == errno.ENOSPC
        assert room * 0.95 <= written <= room
        (tmp_path / "all").unlink()
        # The kernel reports the close of a file with a delay; until then the file outlives its name.
        until = time.monotonic() + 30
        while os.statvfs(tmp_path).f_bavail < free.f_bavail * 0.99:
            assert time.monotonic() < until, os.statvfs(tmp_path)
            time.sleep(0.05)


def refused(act: Callable[[], object]) -> int:
    """The number of the error with which an operation is refused."""
    with pytest.raises(OSError) as error:
        act()
    return error.value.errno or 0


def used_inodes(at: Path) -> int:
    """Inodes in use."""
    found = os.statvfs(at)
    return found.f_files - found.f_ffree


@needs_fuse
def test_extended_attributes(tmp_path: Path) -> None:
    at, image = tmp_path / "at", tmp_path / "files.pal"
    at.mkdir()
    with mounted(at, "--image", str(image), drive=TINY):
        path, folder = at / "file", at / "folder"
        path.write_text("x")
        folder.mkdir()
        for place in (path, folder):
            os.setxattr(place, "user.one", b"1")
            os.setxattr(place, "user.large", bytes(range(256)) * 200)
            os.setxattr(place, "trusted.root", b"")
            assert sorted(os.listxattr(place)) == ["trusted.root", "user.large", "user.one"]
            os.setxattr(place, "user.one", b"two", os.XATTR_REPLACE)
            assert os.getxattr(place, "user.one") == b"two"
            assert refused(partial(os.setxattr, place, "user.one", b"", os.XATTR_CREATE)) == errno.EEXIST
            assert refused(partial(os.setxattr, place, "user.no", b"", os.XATTR_REPLACE)) == errno.ENODATA
            assert refused(partial(os.getxattr, place, "user.no")) == errno.ENODATA
            assert refused(partial(os.removexattr, place, "user.no")) == errno.ENODATA
            acl = "system.posix_acl_access"
            assert refused(partial(os.setxattr, place, acl, b"\2\0\0\0")) == errno.EOPNOTSUPP
        (at / "linked").hardlink_to(path)
        assert os.getxattr(at / "linked", "user.one") == b"two"
        os.removexattr(path, "user.large")
        subprocess.run(["cp", "-a", str(path), str(at / "copy")], check=True)
        assert os.getxattr(at / "copy", "user.one") == b"two"
        path.unlink()
        subprocess.run(["sync", str(folder)], check=True)
        before = used_inodes(at)
        shutil.rmtree(folder)
        until = time.monotonic() + 30
        while used_inodes(at) > before - 2:
            assert time.monotonic() < until, "they are gone with their folder, when the kernel forgets it"
            time.sleep(0.05)
    with mounted_again(at, image):
        assert os.getxattr(at / "linked", "user.one") == b"two"
        assert os.listxattr(at / "linked") == os.listxattr(at / "copy")


@needs_fuse
def test_room_can_be_had_before_it_is_written(tmp_path: Path) -> None:
    small = ("--set", "ssd.over_provisioning=800%", "--ftl", "page")
    libc = ctypes.CDLL(None, use_errno=True)
    keep_size, zero_range = 1, 16

    def allocate(file: int, mode: int, at: int, length: int) -> int:
        done = libc.fallocate(file, mode, ctypes.c_long(at), ctypes.c_long(length))
        return ctypes.get_errno() if done else 0

    with mounted(tmp_path, *small):
        file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
        room = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_bsize
        os.write(file, b"abc")
        os.posix_fallocate(file, 0, 1 << 20)
        assert os.fstat(file).st_size == 1 << 20
        assert os.fstat(file).st_blocks * 512 >= 1 << 20
        assert os.pread(file, 6, 0) == b"abc\0\0\0"
        assert allocate(file, keep_size, 1 << 20, 1 << 20) == 0
        assert os.fstat(file).st_size == 1 << 20
        assert os.fstat(file).st_blocks * 512 >= 2 << 20
        assert allocate(file, keep_size, 0, room * 2) == errno.ENOSPC
        assert allocate(file, zero_range, 1, 100) == 0
        assert os.pread(file, 3, 0) == b"a\0\0"
        other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
        assert refused(lambda: [os.write(other, bytes(1 << 16)) for _ in range(room >> 16)]) == errno.ENOSPC
        # The reserved room must accept writes.
        for at in range(0, 2 << 20, 1 << 16):
            assert os.pwrite(file, b"z" * (1 << 16), at) == 1 << 16
        os.ftruncate(other, 12_345)
        os.ftruncate(file, 1)
        os.fsync(file)
        assert os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_bsize >= room * 0.95
        os.close(file)
        os.close(other)


@needs_fuse
def test_a_file_can_be_cut_where_there_is_no_room(tmp_path: Path) -> None:
    small = ("--set", "ssd.over_provisioning=800%", "--ftl", "page")
    with mounted(tmp_path, *small):
        number = 0

        def fill() -> None:
            nonlocal number
            while True:
                (tmp_path / f"file{number}").write_bytes(b"x" * 10_000)
                number += 1

        assert refused(fill) == errno.ENOSPC
        for each in range(0, number, 7):
            os.truncate(tmp_path / f"file{each}", 1234)
        assert (tmp_path / "file0").read_bytes() == b"x" * 1234


@needs_fuse
def test_holes_are_found(tmp_path: Path) -> None:
    with mounted(tmp_path), (tmp_path / "sparse").open("w+b", buffering=0) as file:
        page = os.statvfs(tmp_path).f_bsize
        os.pwrite(file.fileno(), b"x", 10 * page + 5)
        os.ftruncate(file.fileno(), 30 * page)
        places = [(0, os.SEEK_DATA), (0, os.SEEK_HOLE), (10 * page + 7, os.SEEK_DATA), (10 * page, os.SEEK_HOLE)]
        assert [os.lseek(file.fileno(), *place) for place in places] == [10 * page, 0, 10 * page + 7, 11 * page]
        assert refused(lambda: os.lseek(file.fileno(), 12 * page, os.SEEK_DATA)) == errno.ENXIO
        assert refused(lambda: os.lseek(file.fileno(), 30 * page, os.SEEK_HOLE)) == errno.ENXIO


@needs_fuse
def test_a_folder_that_is_read_again_has_its_new_entries(tmp_path: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.opendir.restype = ctypes.c_void_p
    libc.readdir.restype = ctypes.c_void_p

    def names(folder: ctypes.c_void_p) -> set[bytes]:
        found = set()
        while entry := libc.readdir(folder):
            found.add(ctypes.string_at(entry + 19))
        return found

    with mounted(tmp_path):
        (tmp_path / "one").touch()
        folder = ctypes.c_void_p(libc.opendir(os.fsencode(tmp_path)))
        assert names(folder) == {b".", b"..", b"one"}
        (tmp_path / "two").touch()
        libc.rewinddir(folder)
        assert names(folder) == {b".", b"..", b"one", b"two"}
        libc.closedir(folder)


def as_an_unprivileged_user(act: Callable[[], object]) -> int:
    """Runs an action as a user without rights, in another process, and returns the status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            act()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@needs_fuse
def test_who_changes_a_program_takes_its_rights(tmp_path: Path) -> None:
    with mounted(tmp_path):
        path = tmp_path / "program"
        path.write_text("#!/bin/sh")
        # The folders above belong to root alone.
        folder = os.open(tmp_path, os.O_RDONLY)

        def write() -> None:
            os.write(os.open("program", os.O_WRONLY, dir_fd=folder), b"x")

        def cut() -> None:
            os.ftruncate(os.open("program", os.O_WRONLY, dir_fd=folder), 3)

        for change in (write, cut):
            path.chmod(0o6777)
            os.setxattr(path, "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))
            assert as_an_unprivileged_user(change) == 0
            assert stat.S_IMODE(path.stat().st_mode) == 0o777
            assert os.listxattr(path) == []
        path.chmod(0o6755)
        os.chown(path, 1, 1)
        assert stat.S_IMODE(path.stat().st_mode) == 0o755
        os.close(folder)


@needs_fuse
def test_figures_are_shown_meanwhile(tmp_path: Path) -> None:
    at = tmp_path / "at"
    at.mkdir()
    command = [str(COMMAND), "mount", str(at), *SMALL, "--page", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("figures at http://127.0.0.1:"), line
        process.stderr.readline()
        (at / "file").write_bytes(bytes(100_000))
        with urllib.request.urlopen(line.split()[-1] + "/live.json", timeout=10) as answer:
            assert json.load(answer)["host"]["bytes_written"] >= 100_000
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 0


@needs_fuse
def test_what_a_killed_one_leaves_is_removed(tmp_path: Path) -> None:
    with mounted(tmp_path) as process:
        process.kill()
        process.wait(timeout=30)
    command = [str(COMMAND), "mount", str(tmp_path), *SMALL, "--run", "touch $mount/x; ls $mount"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{tmp_path}: its server was killed; unmounted it" in done.stderr
    assert done.stdout.startswith("x\n")


@needs_fuse
def test_an_image_keeps_it(tmp_path: Path) -> None:
    at, image = tmp_path / "at", tmp_path / "files.pal"
    at.mkdir()
    with mounted(at, "--image", str(image), drive=TINY) as process:
        (at / "kept").write_text("before the kill")
        (at / "also").symlink_to("kept")
        descriptor = os.open(at / "kept", os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        (at / "later").write_text("not synced")
        process.kill()
        process.wait(timeout=30)
    for name in ("second", "third"):
        script = f"cat $mount/also; echo x > $mount/{name}"
        command = [str(COMMAND), "mount", str(at), "--image", str(image), "--run", script]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.startswith("before the kill"), done.stderr
    done = subprocess.run([*command[:-1], "ls $mount"], capture_output=True, text=True, check=True)
    assert {"also", "kept", "second", "third"} <= set(done.stdout.split("drive ")[0].split())


@needs_fuse
def test_umount_ends_it(tmp_path: Path) -> None:
    with mounted(tmp_path, "--json") as process:
        (tmp_path / "x").write_text("y")
        subprocess.run(["umount", str(tmp_path)], check=True)
        stdout, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        assert json.loads(stdout)["host"]["bytes_written"] > 0


@needs_fuse
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--scheme", "best"], "--scheme best: expected one of rr, static"),
        (["--clock", "paced"], "'paced' is not one of"),
    ],
)
def test_mistakes_are_one_line(palimpsest: Command, tmp_path: Path, options: list[str], said: str) -> None:
    done = palimpsest("mount", str(tmp_path), *options, "--ssd", "mga-8k", "--run", "true")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert said in done.stderr


@needs_fuse
def test_only_an_empty_folder_is_mounted_at(palimpsest: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    with mounted(tmp_path / "empty"):
        for place, said in (
            ("missing", "No such file"),
            ("file", "Not a directory"),
            ("", "not empty"),
            ("empty", "mounted"),
        ):
            done = palimpsest("mount", str(tmp_path / place), *SMALL, "--run", "true")
            assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
            assert said in done.stderr
            assert "expected an empty folder to mount at" in done.stderr
