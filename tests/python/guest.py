"""A Linux guest for tests of block devices: Debian's kernel and programs in QEMU, without a disk and without root.

The guest lives in an initramfs, reaches this machine as 10.0.2.2, and offers shells over TCP. Packages come by name
from the configured sources of apt; `~/.cache/palimpsest-guest` keeps kernel and initramfs for later runs. The guest
ends with the test program, also if that is killed. QEMU emulates the processor, because KVM inside a virtual machine
may fail. Ignored: graphics, udev, systemd.
"""

import fcntl
import lzma
import os
import platform
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

HOST = "10.0.2.2"
"""The address of this machine in the guest."""

PROGRAMS: Mapping[str, Sequence[str]] = {
    "busybox-static": ["busybox"],
    "btrfs-progs": ["mkfs.btrfs", "btrfs"],
    "e2fsprogs": ["mkfs.ext4", "e2fsck"],
    "f2fs-tools": ["mkfs.f2fs", "fsck.f2fs"],
    "fio": ["fio"],
    "nvme-cli": ["nvme"],
    "sqlite3": ["sqlite3"],
    "util-linux": ["blkzone", "blkdiscard"],
    "xfsprogs": ["mkfs.xfs", "xfs_repair"],
}
"""Packages, and the programs of each in the guest."""

MODULES = [
    "blake2b_generic", "btrfs", "crc32_generic", "crc32c_generic", "ext4", "f2fs", "null_blk", "nvme-tcp",
    "virtio_net", "virtio_pci", "xfs", "xxhash_generic", "zonefs",
]  # fmt: skip

_KERNEL = "linux-image-amd64"
_INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mount -t debugfs debug /sys/kernel/debug
ln -s /proc/self/fd /dev/fd
modprobe -a virtio_pci virtio_net nvme_tcp
ip link set lo up; ip link set eth0 up; ip address add 10.0.2.15/24 dev eth0
nc 10.0.2.2 $(sed 's/.*port=//' /proc/cmdline) -e /bin/sh
poweroff -f
"""


class GuestError(Exception):
    """A command of the guest failed, or the guest ended."""


def missing() -> str:
    """The reason why no guest can run here; empty if one can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "needs Linux on x86-64"
    if (os.cpu_count() or 1) < 2:
        return "needs two processors"
    programs = ("qemu-system-x86_64", "setpriv", "apt-get", "apt-cache", "dpkg-deb")
    gone = [name for name in programs if shutil.which(name) is None]
    return f"needs {', '.join(gone)}" if gone else ""


def _packages() -> list[str]:
    """The packages of the guest: kernel, programs, and the libraries that those depend on."""
    wanted = [_KERNEL, *PROGRAMS]
    without = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]
    command = ["apt-cache", "depends", "--recurse", *without, *wanted]
    needs: dict[str, list[str]] = {}
    name = ""
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if line[:1] not in " <|":
            needs[name := line.strip()] = []
        elif found := re.match(r"\s+\|?(?:Pre)?Depends: (\S+)", line):
            needs[name].append(found[1])
    for package in wanted:
        new = [each for each in needs.get(package, ()) if re.match(r"lib|zlib|linux-image", each)]
        wanted += [each for each in dict.fromkeys(new) if each not in wanted]
    return [package for package in wanted if package != _KERNEL]


def image() -> tuple[Path, Path]:
    """The kernel and the initramfs; made once. Skips the test if no source of packages answers."""
    if reason := missing():
        pytest.skip(reason)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "palimpsest-guest"
    cache.mkdir(parents=True, exist_ok=True)
    kernel, initramfs, made_for = cache / "vmlinuz", cache / "initramfs", cache / "made-for"
    contents = repr((PROGRAMS, MODULES, _INIT))
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made_for.is_file() or made_for.read_text() != contents:
            made_for.unlink(missing_ok=True)
            with TemporaryDirectory(dir=cache) as folder:
                root = _unpacked(Path(folder))
                shutil.copy(next(root.glob("boot/vmlinuz-*")), kernel)
                _write_initramfs(root, Path(folder) / "tree", initramfs)
            made_for.write_text(contents)
    return kernel, initramfs


def _unpacked(folder: Path) -> Path:
    """Downloads the packages into a folder; returns the folder with their files."""
    fetched, root = folder / "fetched", folder / "root"
    fetched.mkdir()
    command = ["apt-get", "download", "-qq", *_packages()]
    try:
        subprocess.run(command, cwd=fetched, capture_output=True, text=True, check=True, timeout=300)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = str(error.stderr or "").strip().splitlines()
        pytest.skip(f"apt-get cannot download the packages of the guest: {said[-1] if said else error}")
    for package in fetched.iterdir():
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
    return root


def _libraries(root: Path, program: Path) -> Iterator[Path]:
    """The shared libraries of a program, as the guest's own loader finds them; none of a static program."""
    folders = [path for path in root.glob("**/x86_64-linux-gnu") if path.is_dir()]
    folders += [path for folder in folders for path in folder.iterdir() if path.is_dir()]
    loader = next(root.glob("**/ld-linux-x86-64.so.2"))
    command: list[str | Path] = [
        loader,
        "--inhibit-cache",
        "--library-path",
        ":".join(map(str, folders)),
        "--list",
        program,
    ]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert "not found" not in listed, f"{program}: {listed}"
    return (Path(path) for path in re.findall(r" => (/\S+)", listed))


def _modules(root: Path) -> Iterator[Path]:
    """The files of `MODULES` and of all modules that those depend on."""
    files = {re.sub(r"\.ko(\.xz)?$", "", path.name).replace("-", "_"): path for path in root.glob("**/*.ko*")}
    wanted = [name.replace("-", "_") for name in MODULES]
    for name in wanted:
        path = files[name]
        content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        found = re.findall(rb"\0(?:depends=|softdep=pre: )([^\0]*)", content)
        new = re.split(r"[, ]+", b",".join(found).decode().replace("-", "_"))
        wanted += [each for each in new if each in files and each not in wanted]
        yield path


def _write_initramfs(root: Path, tree: Path, initramfs: Path) -> None:
    """Writes an initramfs with the programs and modules, whose files are gathered in `tree`."""
    for folder in ("bin", "dev", "etc", "lib64", "lib", "mnt", "proc", "run", "sys", "tmp"):
        (tree / folder).mkdir(parents=True)
    (tree / "sbin").symlink_to("bin")
    (tree / "usr").symlink_to(".")
    for name in (name for names in PROGRAMS.values() for name in names):
        program = next(path for path in root.glob(f"**/*bin/{name}"))
        shutil.copy(program, tree / "bin")
        for library in _libraries(root, program):
            shutil.copy(library, tree / "lib")
    shutil.copy(next(root.glob("**/ld-linux-x86-64.so.2")), tree / "lib64")
    shutil.copy(next(root.glob("etc/mke2fs.conf")), tree / "etc")
    version = next(root.glob("**/lib/modules/*")).name
    modules = tree / "lib" / "modules" / version
    modules.mkdir(parents=True)
    for module in _modules(root):
        shutil.copy(module, modules)
    busybox = tree / "bin" / "busybox"
    subprocess.run([busybox, "depmod", "-b", tree, version], check=True, capture_output=True)
    init = tree / "init"
    init.write_text(_INIT)
    init.chmod(0o755)
    names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    with initramfs.open("wb") as out:
        command: list[str | Path] = [busybox, "cpio", "-o", "-H", "newc", "-R", "0:0"]
        subprocess.run(command, input=names.encode(), stdout=out, stderr=subprocess.DEVNULL, cwd=tree, check=True)


class Shell:
    """A shell in the guest. `console` is the file of the kernel's messages."""

    def __init__(self, connection: socket.socket, console: Path) -> None:
        self.connection = connection
        self.console = console
        self.count = 0

    def run(self, script: str, timeout: float = 900) -> str:
        """Output and errors of a script. Raises GuestError if a command fails or the time is over."""
        self.count += 1
        end = f"END-{self.count}-"
        line = f"sh -c {shlex.quote(f'set -e; {script}')} </dev/null 2>&1; status=$?; echo; echo {end}$status\n"
        self.connection.settimeout(timeout)
        self.connection.sendall(line.encode())
        said = b""
        while not (found := re.search(rb"\n" + end.encode() + rb"(\d+)\n", said)):
            try:
                more = self.connection.recv(1 << 16)
            except TimeoutError:
                more = b""
            if not more:
                kernel = self.console.read_text(errors="replace")[-3000:]
                raise GuestError(f"{script}\nno end within {timeout} s:\n{said.decode(errors='replace')}\n{kernel}")
            said += more
        text = said[: found.start()].decode(errors="replace")
        if found[1] != b"0":
            raise GuestError(f"{script}\nended with {found[1].decode()}:\n{text}")
        return text


class Guest(Shell):
    """A running guest, and a first shell there."""

    def __init__(self, connection: socket.socket, console: Path, listener: socket.socket) -> None:
        super().__init__(connection, console)
        self.listener = listener

    @contextmanager
    def shell(self) -> Iterator[Shell]:
        """A further shell, for a command beside others."""
        self.run(f"nc {HOST} {self.listener.getsockname()[1]} -e /bin/sh >/dev/null 2>&1 &")
        connection, _ = self.listener.accept()
        with connection:
            yield Shell(connection, self.console)

    def errors(self) -> list[str]:
        """Messages of the kernel since the last call that tell of a late or failed command."""
        bad = re.compile(
            r"(nvme|blk_|buffer i/o|ext4|xfs|btrfs|f2fs|zonefs).*"
            r"(timeout|timed out|error|critical|corrupt|digest|reset|\bbug\b)",
            re.I,
        )
        return [line for line in self.run("dmesg -c").splitlines() if bad.search(line)]


@contextmanager
def booted(folder: Path) -> Iterator[Guest]:
    """Boots a guest with two processors. Skips the test where none can run."""
    kernel, initramfs = image()
    console = folder / "console"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = [
            "setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64",
            "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1024",
            "-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{console}",
            "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=",
            "-kernel", str(kernel), "-initrd", str(initramfs),
            "-append", f"console=ttyS0 panic=-1 quiet loglevel=4 mitigations=off no_timer_check nowatchdog port={port}",
        ]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            try:
                connection = _first(listener, process, console)
                with connection:
                    guest = Guest(connection, console, listener)
                    guest.run("modprobe ext4; dmesg -c")
                    yield guest
            finally:
                process.kill()


def _first(listener: socket.socket, process: subprocess.Popen[bytes], console: Path) -> socket.socket:
    """The first shell of a guest that boots."""
    listener.settimeout(1)
    for _ in range(900):
        try:
            connection = listener.accept()[0]
        except TimeoutError:
            if process.poll() is None:
                continue
            break
        listener.settimeout(900)
        return connection
    process.kill()
    said = console.read_text(errors="replace") if console.exists() else ""
    raise GuestError(
        f"the guest does not boot:\n{process.stderr.read().decode() if process.stderr else ''}\n{said[-3000:]}"
    )
