"""`palimpsest mount`: what programs expect of a file system, on the mounted one. Needs root and FUSE."""

import contextlib
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import COMMAND, Command

pytestmark = pytest.mark.contract

SMALL = ["--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=128"]
TINY = ["--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=12"]


def missing() -> str:
    """Why nothing can be mounted here; empty if it can."""
    if os.geteuid() != 0:
        return "needs root"
    return "" if os.access("/dev/fuse", os.R_OK | os.W_OK) else "needs /dev/fuse"


needs_fuse = pytest.mark.skipif(bool(missing()), reason=missing())


@contextmanager
def mounted(at: Path, *options: str, drive: list[str] = SMALL) -> Iterator[subprocess.Popen[str]]:
    """The command, with its file system at `at`."""
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
        with pytest.raises(OSError) as refused:
            os.setxattr(two, "user.x", b"y")
        assert refused.value.errno == errno.EOPNOTSUPP


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

    def sync(self) -> None:
        os.fsync(self.file)

    def open(self) -> None:
        os.close(self.file)
        self.file = os.open(self.path, os.O_RDWR)

    def run(self, steps: int) -> None:
        kinds = (
            [self.write] * 6 + [self.read] * 5 + [self.truncate, self.punch, self.map, self.map, self.sync, self.open]
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
        # The kernel says that a file was closed when it comes to it; until then the file outlives its name.
        until = time.monotonic() + 30
        while os.statvfs(tmp_path).f_bavail < free.f_bavail * 0.99:
            assert time.monotonic() < until, os.statvfs(tmp_path)
            time.sleep(0.05)


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


def is_written(path: Path) -> bool:
    """Writes a file; whether that is not refused."""
    try:
        path.write_bytes(bytes(1 << 18))
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return False
    return True


@needs_fuse
def test_a_power_cut_of_the_drive_leaves_what_was_synced(tmp_path: Path) -> None:
    with mounted(tmp_path, "--set", "faults.power_cut_at=1500"):
        with (tmp_path / "synced").open("wb", buffering=0) as file:
            file.write(b"before the cut")
            os.fsync(file.fileno())
        later = os.open(tmp_path / "later", os.O_RDWR | os.O_CREAT)
        refused = [number for number in range(100) if not is_written(tmp_path / f"file{number}")]
        assert len(refused) == 1, "the one operation in which the power failed"
        assert (tmp_path / "synced").read_bytes() == b"before the cut"
        with pytest.raises(OSError) as gone:
            os.write(later, b"x")
        assert gone.value.errno in {errno.ESTALE, errno.EIO}, "EIO where the kernel has met another by its number"
        with contextlib.suppress(OSError):
            os.close(later)
        (tmp_path / "after").write_text("works")
        assert (tmp_path / "after").read_text() == "works"


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
