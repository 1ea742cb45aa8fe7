"""`palimpsest attach` and `detach`: a file system on the device, and its content afterwards."""

import json
import mmap
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import COMMAND, Command

pytestmark = pytest.mark.contract

SMALL = ["--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=64"]
BASE = Path("/run/palimpsest")


def missing() -> str:
    """The reason why no drive can be attached here; empty if one can."""
    if os.geteuid() != 0:
        return "needs root"
    gone = [path for path in ("/dev/fuse", "/dev/loop-control") if not os.access(path, os.R_OK | os.W_OK)]
    gone += [name for name in ("losetup", "mkfs.ext4", "fstrim", "mount") if shutil.which(name) is None]
    return f"needs {', '.join(gone)}" if gone else ""


needs_devices = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.fixture
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """A name for this test; the fixture removes any leftovers."""
    name = f"test-{os.getpid()}-{request.node.name[5:20].replace('[', '-')}"
    yield name
    subprocess.run([str(COMMAND), "detach", name], capture_output=True, check=False)
    assert nothing_left(name)


def nothing_left(name: str) -> bool:
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    devices = subprocess.run(["losetup", "-l"], capture_output=True, text=True, check=True).stdout
    return not any(f"/{name}" in text for text in (mounts, devices)) and not list(BASE.glob(f"{name}*"))


@contextmanager
def attached(name: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the device."""
    command = [str(COMMAND), "attach", *SMALL, "--name", name, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert line.startswith("attached ")
            assert f"as {name}: /dev/loop" in line, line
            yield process, line.split(f"as {name}: ")[1].split()[0]
        finally:
            process.kill()


def sh(command: str) -> str:
    return subprocess.run(["sh", "-ec", command], capture_output=True, text=True, check=True, timeout=60).stdout


@needs_devices
def test_a_file_system_on_the_device(palimpsest: Command, name: str, tmp_path: Path) -> None:
    script = f"""
        mkfs.ext4 -q $dev; mount $dev {tmp_path}
        head -c 4000000 /dev/urandom > {tmp_path}/data; cp {tmp_path}/data {tmp_path}/copy; sync -d {tmp_path}/copy
        rm {tmp_path}/copy; fstrim -v {tmp_path} >&2; umount {tmp_path}
        e2fsck -fn $dev >&2; mount $dev {tmp_path}; wc -c < {tmp_path}/data >&2; exit 3
    """
    done = palimpsest("attach", *SMALL, "--name", name, "--json", "--run", script)
    assert done.returncode == 3, done.stderr
    assert "bytes) trimmed" in done.stderr
    assert "4000000" in done.stderr
    assert f"unmounted {tmp_path}" in done.stderr, "the end unmounts"
    result = json.loads(done.stdout)
    assert result["workload"] == "device"
    requests = result["requests"]
    assert requests["trim"] > 0
    assert requests["flush"] > 0
    assert result["host"]["bytes_written"] > 4_000_000
    assert nothing_left(name)


@needs_devices
def test_it_is_detached_and_prints_its_result(palimpsest: Command, name: str, tmp_path: Path) -> None:
    with attached(name, "--clock", "virtual", "--json") as (process, device):
        sh(f"mkfs.ext4 -q {device}; mount {device} {tmp_path}; touch {tmp_path}/file; sync")
        assert Path("/sys/block", device[5:], "loop/dio").read_text(encoding="ascii") == "1\n"
        again = palimpsest("attach", *SMALL, "--name", name)
        assert (again.returncode, len(again.stderr.splitlines())) == (2, 1)
        assert "it is attached" in again.stderr
        assert palimpsest("detach", device).stderr == f"detached {name}\n"
        assert nothing_left(name)
        stdout, _ = process.communicate(timeout=30)
        assert json.loads(stdout)["latency_ns"]["write"]["mean"] > 0
        assert process.returncode == 0
        assert palimpsest("detach", name).returncode == 2


@needs_devices
def test_a_program_that_uses_it_does_not_keep_it(name: str, tmp_path: Path) -> None:
    with attached(name) as (process, device):
        sh(f"mkfs.ext4 -q {device}; mount {device} {tmp_path}")
        with (tmp_path / "file").open("w", encoding="ascii") as busy:
            busy.write("x")
            busy.flush()
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=30)
            assert process.returncode == 0
            assert f"{tmp_path}: a program uses it" in stderr
            assert not list(BASE.glob(f"{name}*"))


@needs_devices
def test_what_a_killed_one_leaves_is_removed(palimpsest: Command, name: str, tmp_path: Path) -> None:
    with attached(name) as (process, device):
        sh(f"mkfs.ext4 -q {device}; mount {device} {tmp_path}")
        process.kill()
        process.wait(timeout=30)
        assert not nothing_left(name)
        done = palimpsest("detach", name)
        assert done.returncode == 0
        assert f"{name}: its server was killed; removed {device} and the mount at {BASE / name}" in done.stderr
        assert f"unmounted {tmp_path}" in done.stderr
        deadline = time.monotonic() + 10
        while not nothing_left(name) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert nothing_left(name)


@needs_devices
@pytest.mark.parametrize("clock", ["none", "virtual"])
def test_after_a_power_cut_the_kernel_shows_nothing_that_is_lost(name: str, clock: str) -> None:
    size, lost = 1 << 20, b"not flushed " * 128
    cut = ("--set", "faults.power_cut_at=400", "--clock", clock)
    with attached(name, *cut) as (process, device), (BASE / name / "drive").open("r+b", buffering=0) as file:
        disk = os.open(device, os.O_RDONLY)
        for place in (file.fileno(), disk):
            assert os.pread(place, 4096, size) == bytes(4096)
        os.pwrite(file.fileno(), lost, size)
        assert os.pread(file.fileno(), len(lost), size) == lost, "the kernel has it"

        def write_until_it_fails() -> None:
            for number in range(1000):
                os.pwrite(file.fileno(), bytes([number % 255 + 1]) * 65536, number % 10 * 65536)

        with pytest.raises(OSError, match="Input/output error"):
            write_until_it_fails()
        assert process.stderr is not None
        while "the drive is back at" not in (line := process.stderr.readline()):
            assert line, "it comes back"
        for place in (file.fileno(), disk):
            with pytest.raises(OSError, match="Input/output error"):
                os.pread(place, 4096, size)
        os.close(disk)
        # All readers must see the present content of the drive.
        direct = os.open(line.split()[-1], os.O_RDONLY | os.O_DIRECT)
        with mmap.mmap(-1, 4096) as memory:
            os.preadv(direct, [memory], size)
            held = memory[:]
        os.close(direct)
        with (BASE / name / "drive").open("rb") as again:
            again.seek(size)
            assert again.read(4096) == held


@needs_devices
def test_a_file_without_a_device(palimpsest: Command, name: str) -> None:
    script = 'echo "$dev" >&2; echo hello | dd of=$file conv=notrunc,fsync 2>/dev/null; head -c 5 $file >&2; : > $file'
    done = palimpsest("attach", *SMALL, "--name", name, "--file", "--json", "--run", script)
    assert done.returncode == 2, "a file of another size is refused"
    assert f"{BASE / name}/drive\nhello" in done.stderr
    assert json.loads(done.stdout)["requests"]["flush"] == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["attach", "--name", "a/b"], "expected up to 32 letters, digits, - and _"),
        (["detach"], "expected the name of an attached drive, or --all"),
    ],
)
def test_mistakes_are_one_line(palimpsest: Command, options: list[str], said: str) -> None:
    done = palimpsest(*options)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert said in done.stderr
