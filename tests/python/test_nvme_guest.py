"""`palimpsest nvme` used by Debian's kernel and programs in a guest: nvme-cli, file systems, fio, SQLite.

Ignored: speed, because QEMU emulates the processor.
"""

import base64
import json
import re
import shlex
import signal
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Command
from documents import blocks
from guest import HOST, Guest, GuestError, booted
from nvme_target import NQN, TINY, Place, result_of, served

pytestmark = pytest.mark.contract

DRIVE = ["--ssd", "mga-8k", "--nqn", NQN]
NAMED = "--hostnqn=nqn.2014-08.org.nvmexpress:uuid:2f1e7e0c-9f0b-4d4c-8d1a-0242ac110002"
HOST_ID = "--hostid=2f1e7e0c-9f0b-4d4c-8d1a-0242ac110002"
CONNECT = f"nvme connect -t tcp -a {HOST} -n {NQN} {NAMED} {HOST_ID} --keep-alive-tmo=60"
"""Without the port. A minute, because this machine may have little time for the guest."""


@pytest.fixture(scope="module")
def shared_guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    with booted(tmp_path_factory.mktemp("guest")) as guest:
        yield guest


@pytest.fixture
def guest(shared_guest: Guest) -> Iterator[Guest]:
    """The guest. Fails a test after which the kernel has reported a late or failed command."""
    yield shared_guest
    errors = shared_guest.errors()
    # First, because a file system on a drive without a target would wait for the target.
    shared_guest.run("nvme disconnect-all || true; umount -l /mnt 2>/dev/null || true; dmesg -c")
    assert errors == []


@contextmanager
def connected(guest: Guest, place: Place, options: str = "") -> Iterator[str]:
    """The device of the connected drive, such as /dev/nvme0; the namespace is /dev/nvme0n1."""
    guest.run(f"{CONNECT} -s {place[1]} {options}")
    yield device(guest)
    assert "disconnected 1 controller" in guest.run(f"cd /; nvme disconnect -n {NQN}")


@contextmanager
def connected_zones(guest: Guest, place: Place) -> Iterator[str]:
    """As `connected`, as Linux 6.1 needs a zoned drive.

    The scheduler keeps the order of writes to a zone. The device is the path to the drive itself, because btrfs looks
    up the device that a Zone Append has reached.
    """
    with multipath(guest, "N"), connected(guest, place) as drive:
        guest.run(f"echo mq-deadline >/sys/block/{Path(drive).name}n1/queue/scheduler")
        yield drive


@contextmanager
def multipath(guest: Guest, value: str) -> Iterator[None]:
    """The drivers of NVMe, loaded with or without devices that join the paths to a drive."""
    reload = "rmmod nvme_tcp nvme_fabrics nvme_core; modprobe nvme_core multipath={}; modprobe nvme_tcp"
    guest.run(reload.format(value))
    yield
    guest.run(reload.format("Y"))


def device(guest: Guest) -> str:
    """The device of the only drive, once the namespace is there."""
    wait = "for turn in $(seq 100); do ls /dev/nvme*n1 2>/dev/null && exit; sleep 0.1; done; exit 1"
    return guest.run(wait).strip().removesuffix("n1")


def smart(guest: Guest, drive: str) -> Any:
    return json.loads(guest.run(f"nvme smart-log {drive} -o json"))


def check_counters(counted: Any, result: Any) -> None:
    """The SMART log of the guest equals the result of the target."""
    figures = {
        "host_read_commands": result["requests"]["read"],
        "host_write_commands": result["requests"]["write"],
        "data_units_read": -(-result["host"]["bytes_read"] // 512_000),
        "data_units_written": -(-result["host"]["bytes_written"] // 512_000),
    }
    assert {name: int(counted[name]) for name in figures} == figures


def test_smoke(guest: Guest) -> None:
    with served("--json", drive=DRIVE) as (process, place):
        found = guest.run(f"nvme discover -t tcp -a {HOST} -s {place[1]} {NAMED} {HOST_ID}")
        assert f"subnqn:  {NQN}" in found
        with connected(guest, place, "--nr-io-queues=2 --hdr-digest --data-digest") as drive:
            name = f"{drive}n1"
            listed = json.loads(guest.run("nvme list -o json"))["Devices"]
            assert [(each["DevicePath"], each["ModelNumber"]) for each in listed] == [(name, "palimpsest mga-8k")]
            controller = json.loads(guest.run(f"nvme id-ctrl {drive} -o json"))
            assert controller["subnqn"] == NQN
            namespace = json.loads(guest.run(f"nvme id-ns {name} -o json"))
            assert int(guest.run(f"cat /sys/block/{Path(name).name}/size")) * 512 == namespace["nsze"] * 4096
            assert "mga-8k" in guest.run(f"nvme id-ctrl {drive} -H")
            for log in ("fw-log", "error-log", "effects-log -c 0", "endurance-log -g 1", "supported-log-pages"):
                name_of_log, _, options = log.partition(" ")
                assert guest.run(f"nvme {name_of_log} {drive} {options}"), log
            assert "Enabled" in guest.run(f"nvme get-feature {drive} -f 6 -H")
            guest.run(f"mkfs.ext4 -q {name} 256M && mount {name} /mnt")
            guest.run("dd if=/dev/urandom of=/mnt/file bs=1M count=8 && md5sum /mnt/file >/tmp/sum && umount /mnt")
            guest.run(f"echo 3 >/proc/sys/vm/drop_caches; mount {name} /mnt && md5sum -c /tmp/sum")
            trimmed = re.search(r"(\d+) bytes", guest.run("fstrim -v /mnt"))
            assert trimmed
            assert int(trimmed[1]) > 100 << 20
            guest.run(f"umount /mnt && e2fsck -fn {name}")
            guest.run(f"nvme write-zeroes {name} -s 100000 -c 7 && nvme verify {name} -s 0 -c 63")
            guest.run(f"dd if={name} of=/tmp/block bs=4096 count=1")
            guest.run(f"nvme compare {name} -s 0 -c 0 -z 4096 -d /tmp/block")
            with pytest.raises(GuestError, match=r"(?i)miscompare|compare fail"):
                guest.run(f"nvme compare {name} -s 0 -c 0 -z 4096 -d /init")
            media = json.loads(guest.run(f"nvme ocp smart-add-log {drive} -o json"))
            counted = smart(guest, drive)
        result = result_of(process)
    check_counters(counted, result)
    written = media["Physical media units written"]
    assert (written["lo"] if isinstance(written, dict) else written) == result["flash"]["page_programs"] * 8192


def test_the_documented_commands(guest: Guest) -> None:
    """Runs the commands of the pages in order, as root of the guest. Each `palimpsest nvme` there is a new target."""
    pages = [ROOT / "docs" / name for name in ("tutorial-nvme.md", "nvme.md")]
    shown = [block for page in pages for block in blocks(page) if block.language == "console"]
    listed = [line for block in shown for line in block.text.splitlines()]
    begins = [at for at, line in enumerate(listed) if line.startswith("$ palimpsest nvme")]
    for begin, end in pairwise([*begins, len(listed)]):
        options = shlex.split(re.sub(r"--(nqn|page) \S+", "", listed[begin].removeprefix("$ palimpsest nvme")))
        with served(drive=[*options, "--nqn", NQN]) as (_, place):
            lines = [line.removeprefix("# ") for line in listed[begin:end] if line.startswith("# ")]
            if lines and not any("nvme connect" in line for line in lines):
                guest.run(f"{CONNECT} -s {place[1]}")
            for line in lines:
                command = re.sub(r"-a \S+ -s \d+", f"-a {HOST} -s {place[1]}", line)
                command = re.sub(r"nqn\.\S+", NQN, command)
                guest.run(command.replace("nvme connect", f"nvme connect {NAMED} {HOST_ID} --keep-alive-tmo=60"))
                if "nvme connect" in command:
                    assert device(guest) == "/dev/nvme0"
            guest.run(f"nvme disconnect -n {NQN} || true")


FILE_SYSTEMS = {
    "ext4": ("mkfs.ext4 -q", "e2fsck -fn"),
    "xfs": ("mkfs.xfs -q", "xfs_repair -n"),
    "btrfs": ("mkfs.btrfs -q", "btrfs check"),
    "f2fs": ("mkfs.f2fs -q", "fsck.f2fs --dry-run"),
}


def use(guest: Guest, kind: str, name: str, check: str, *, trims: bool = True) -> None:
    """Writes, deletes and reads files of a file system on a device, and checks the file system."""
    guest.run(f"mount -t {kind} {name} /mnt")
    guest.run(
        "cd /mnt; for at in $(seq 40); do mkdir -p $((at % 5)); head -c $((at * 9973)) /dev/urandom >$((at % 5))/$at;"
        "done; sync; rm */*7; mv 3/3 4/moved; dd if=/dev/urandom of=large bs=1M count=12 conv=fsync;"
        "dd if=/dev/zero of=large bs=4k seek=100 count=9 conv=notrunc,fsync; find . -type f | xargs md5sum >/tmp/sums"
    )
    if trims:
        guest.run("fstrim /mnt")
    guest.run(f"umount /mnt; echo 3 >/proc/sys/vm/drop_caches; mount -t {kind} {name} /mnt")
    assert guest.run("cd /mnt; md5sum -c /tmp/sums").count(": OK") == 37
    guest.run(f"umount /mnt; {check} {name}")


@pytest.mark.long
@pytest.mark.parametrize("clock", ["none", "virtual"])
@pytest.mark.parametrize("kind", FILE_SYSTEMS)
def test_file_systems(guest: Guest, kind: str, clock: str, palimpsest: Command, tmp_path: Path) -> None:
    """The record of the session plays with the same operations of flash."""
    record = str(tmp_path / "record.parquet")
    make, check = FILE_SYSTEMS[kind]
    with served("--json", "--clock", clock, "--record", record, drive=DRIVE) as (process, place):
        with connected(guest, place) as drive:
            guest.run(f"{make} {drive}n1")
            use(guest, kind, f"{drive}n1", check)
            counted = smart(guest, drive)
        result = result_of(process)
    check_counters(counted, result)
    assert result["requests"]["trim"] > 0
    fidelity = ["--fidelity", "count" if clock == "none" else "timed"]
    options = ["--workload", record, "--precondition", "none", *fidelity, "--payload", "tag", "--json"]
    played = palimpsest("run", *DRIVE[:-2], *options)
    assert played.returncode == 0, played.stderr
    again = json.loads(played.stdout)
    compared = ("requests", "host", "flash", "gc", "write_amplification") if clock == "none" else ("requests", "host")
    for figures in compared:
        assert again[figures] == result[figures], figures


FIO = "--name=j --bs=4k,4k --rw=randrw --size=24m --iodepth=16 --verify=crc32c --verify_fatal=1 --verify_backlog=500"


@pytest.mark.long
@pytest.mark.parametrize("engine", ["io_uring", "io_uring_cmd --cmd_type=nvme", "libaio", "psync"])
def test_fio_verifies(guest: Guest, engine: str) -> None:
    with served("--json", drive=DRIVE) as (process, place):
        with connected(guest, place, "--nr-io-queues=2") as drive:
            name = f"{drive}n1" if "cmd" not in engine else f"{drive.replace('nvme', 'ng')}n1"
            direct = "" if "cmd" in engine else "--direct=1"
            options = f"--ioengine={engine} {direct} --filename={name} {FIO} --output-format=json"
            said = guest.run(f"fio {options}")
            counted = smart(guest, drive)
        result = result_of(process)
    (job,) = json.loads(said[said.index("{") :])["jobs"]
    assert job["error"] == 0
    assert job["write"]["total_ios"] > 2000
    assert result["requests"]["write"] >= job["write"]["total_ios"]
    check_counters(counted, result)


@pytest.mark.long
def test_a_collecting_drive_is_never_late(guest: Guest) -> None:
    """Random writes of several times the drive, at the time of the drive: the kernel waits less than its 30 s."""
    with served("--json", "--clock", "paced", drive=TINY) as (process, place):
        with connected(guest, place) as drive:
            guest.run(
                f"fio --name=j --ioengine=io_uring --direct=1 --filename={drive}n1 --rw=randwrite --bs=4k --iodepth=32"
                " --loops=4",
            )
            counted = smart(guest, drive)
        result = result_of(process)
    assert result["gc"]["runs"] > 0
    check_counters(counted, result)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "f2fs"])
def test_sqlite_survives_kills_of_the_target(guest: Guest, kind: str, tmp_path: Path) -> None:
    """Each transaction that SQLite has committed is there after a kill of the target, a reconnect and a mount."""
    image = ["--image", str(tmp_path / "drive.pal")]
    kills = 4
    for kill in range(kills):
        with served(*image, drive=DRIVE) as (process, place):
            guest.run(f"{CONNECT} -s {place[1]} --ctrl-loss-tmo=1")
            name = f"{device(guest)}n1"
            if kill == 0:
                guest.run(f"{FILE_SYSTEMS[kind][0]} {name} && mount -t {kind} {name} /mnt; echo 0 >/tmp/acked")
                guest.run("sqlite3 /mnt/db 'create table t (n integer primary key, b blob); pragma journal_mode=wal'")
            else:
                guest.run(f"mount -t {kind} {name} /mnt")
            assert guest.run("sqlite3 /mnt/db 'pragma integrity_check'").strip() == "ok"
            last, acked = (int(each) for each in guest.run(
                "sqlite3 /mnt/db 'select coalesce(max(n), 0) from t'; tail -n 1 /tmp/acked").split())  # fmt: skip
            assert last >= acked, f"{kind}: transaction {acked} is lost after kill {kill}"
            assert int(guest.run("sqlite3 /mnt/db 'select count(*) from t'")) == last, "none is missing between"
            guest.run(f"""awk 'BEGIN {{ for (n = {last} + 1;; n++)
                printf "insert into t values (%d, randomblob(3000)); select %d;\\n", n, n }}' |
                sqlite3 -cmd 'pragma synchronous=full' /mnt/db >>/tmp/acked 2>/dev/null &
                for turn in $(seq 300); do
                    [ $(tail -n 1 /tmp/acked) -ge $(({last} + 20 + {kill} * 7)) ] && exit; sleep 0.2; done; exit 1""")
            process.send_signal(signal.SIGKILL)
            process.wait()
        guest.run(f"nvme disconnect -n {NQN} || true; killall sqlite3 || true; sleep 1; umount /mnt")
        guest.run("dmesg -c")


def offered(palimpsest: Command, *options: str) -> list[str]:
    """Options of a drive. Skips the test if the target does not offer such a drive yet."""
    drive = [*DRIVE, *options]
    done = palimpsest("nvme", *drive, "--listen", "127.0.0.1:0", "--run", "true")
    if done.returncode:
        pytest.skip(f"the target refuses {' '.join(options)}: {done.stderr.strip()}")
    return drive


@pytest.fixture(scope="module")
def zoned(palimpsest: Command) -> list[str]:
    return offered(palimpsest, "--ftl", "zns")


def zones_of(guest: Guest, name: str) -> list[dict[str, Any]]:
    """The zones as nvme-cli reports them."""
    listed: list[dict[str, Any]] = json.loads(guest.run(f"nvme zns report-zones {name} -o json"))["zone_list"]
    return listed


@pytest.mark.long
def test_blkzone_and_nvme_zns(guest: Guest, zoned: list[str]) -> None:
    with served("--json", drive=zoned) as (process, place):
        with connected_zones(guest, place) as drive:
            name = f"{drive}n1"
            queue = f"/sys/block/{Path(name).name}/queue"
            assert guest.run(f"cat {queue}/zoned").strip() == "host-managed"
            size = int(guest.run(f"cat {queue}/chunk_sectors")) // 8
            listed = zones_of(guest, name)
            assert len(listed) == int(guest.run(f"cat {queue}/nr_zones"))
            assert all(zone["slba"] == at * size and zone["wp"] == zone["slba"] for at, zone in enumerate(listed))
            assert guest.run(f"blkzone report {name}").count("start:") == len(listed)
            assert "zns command set identify namespace" in guest.run(f"nvme zns id-ns {name} -H").lower()
            guest.run(f"nvme zns id-ctrl {drive}")
            guest.run("head -c 8192 /dev/urandom >/tmp/data")
            for turn in range(3):
                appended = guest.run(f"nvme zns zone-append {name} -s {size} -z 8192 -d /tmp/data")
                assert appended.split()[-1] == f"{size + 2 * turn:x}", appended
            assert zones_of(guest, name)[1]["wp"] == size + 6
            guest.run(f"nvme read {name} -s {size + 2} -c 1 -z 8192 -d /tmp/read && cmp /tmp/read /tmp/data")
            with pytest.raises(GuestError):
                guest.run(f"dd if=/tmp/data of={name} bs=4096 seek={size + 9} count=1 oflag=direct")
            guest.run("dmesg -c")
            guest.run(f"dd if=/tmp/data of={name} bs=4096 seek={size + 6} count=2 oflag=direct")
            guest.run(f"nvme zns finish-zone {name} -s {size} && nvme zns open-zone {name} -s {2 * size}")
            guest.run(f"nvme zns close-zone {name} -s {2 * size}")
            states = [zone["state"] for zone in zones_of(guest, name)[1:3]]
            assert states == ["FULL", "CLOSED"] or states == [0xE, 4], states
            guest.run(f"blkzone reset -o {size * 8} -c 1 {name} && nvme zns reset-zone {name} -s {2 * size}")
            assert all(zone["wp"] == zone["slba"] for zone in zones_of(guest, name))
            counted = smart(guest, drive)
        result = result_of(process)
    check_counters(counted, result)


@pytest.mark.long
def test_fio_verifies_zones(guest: Guest, zoned: list[str]) -> None:
    with served(drive=zoned) as (_, place), connected_zones(guest, place) as drive:
        zone = int(guest.run(f"cat /sys/block/{Path(drive).name}n1/queue/chunk_sectors")) * 512
        said = guest.run(
            f"fio --name=j --ioengine=io_uring --direct=1 --filename={drive}n1 --zonemode=zbd --rw=randwrite --bs=16k"
            f" --iodepth=8 --size={4 * zone} --io_size=32m --verify=crc32c --max_open_zones=4 --output-format=json",
        )
    assert json.loads(said[said.index("{") :])["jobs"][0]["error"] == 0


def zonefs_superblock() -> bytes:
    """The first block of zonefs (Linux, fs/zonefs/zonefs.h), as mkzonefs would write."""
    head = struct.pack("<I", 0x5A4F4653)
    body = bytes(64) + bytes(range(16)) + struct.pack("<QIII", 0, 0, 0, 0o640)
    block = (head + bytes(4) + body).ljust(4096, b"\0")
    return head + struct.pack("<I", zlib.crc32(block) ^ 0xFFFFFFFF) + block[8:]


@pytest.mark.long
def test_zonefs(guest: Guest, zoned: list[str]) -> None:
    with served(drive=zoned) as (_, place), connected_zones(guest, place) as drive:
        block = base64.b64encode(zonefs_superblock()).decode()
        guest.run(f"echo {block} | base64 -d >/tmp/super; dd if=/tmp/super of={drive}n1 bs=4096 oflag=direct")
        guest.run(f"mount -t zonefs {drive}n1 /mnt")
        # Asynchronous, because zonefs of Debian's kernel 6.1.192 refuses synchronous writes, also on its own null_blk.
        for zone in (0, 3):
            guest.run(
                f"fio --name=j --ioengine=libaio --direct=1 --filename=/mnt/seq/{zone} --rw=write --bs=64k --iodepth=8"
                " --size=576k --file_append=1 --verify=crc32c --do_verify=0"
            )
        guest.run(f"md5sum /mnt/seq/0 /mnt/seq/3 >/tmp/sums; umount /mnt; mount -t zonefs {drive}n1 /mnt")
        assert guest.run("md5sum -c /tmp/sums").count(": OK") == 2
        assert guest.run("truncate -s 0 /mnt/seq/0; stat -c %s /mnt/seq/0 /mnt/seq/3").split() == ["0", f"{9 << 16}"]
        guest.run("umount /mnt")


@pytest.mark.long
def test_btrfs_on_zones(guest: Guest, zoned: list[str]) -> None:
    with served(drive=zoned) as (_, place), connected_zones(guest, place) as drive:
        guest.run(f"mkfs.btrfs -q -O zoned -d single -m single {drive}n1")
        use(guest, "btrfs", f"{drive}n1", "btrfs check", trims=False)


@pytest.mark.long
def test_f2fs_on_zones(guest: Guest, zoned: list[str]) -> None:
    """The metadata is on a second device, because all zones are sequential."""
    with served(drive=zoned) as (_, place), connected_zones(guest, place) as drive:
        guest.run("modprobe null_blk nr_devices=1 gb=1 bs=4096 memory_backed=1")
        guest.run(f"mkfs.f2fs -q -m -c {drive}n1 /dev/nullb0")
        use(guest, "f2fs", "/dev/nullb0", "fsck.f2fs --dry-run")
        guest.run("rmmod null_blk")


@pytest.mark.long
def test_nvme_fdp(guest: Guest, palimpsest: Command) -> None:
    """Handles, usage, statistics and events, after writes that name a handle."""
    with served("--json", drive=offered(palimpsest, "--ftl", "fdp")) as (process, place):
        with connected(guest, place) as drive:
            for what in ("configs", "usage", "stats"):
                assert guest.run(f"nvme fdp {what} {drive} --endgrp-id=1")
            guest.run(f"nvme fdp events {drive} --endgrp-id=1 && nvme fdp status {drive}n1")
            guest.run("head -c 65536 /dev/urandom >/tmp/data")
            for handle in (0, 1):
                guest.run(f"nvme write {drive}n1 -s {handle * 16} -c 15 -z 65536 -d /tmp/data -T 2 -S {handle}")
                guest.run(
                    f"nvme read {drive}n1 -s {handle * 16} -c 15 -z 65536 -d /tmp/read && cmp /tmp/read /tmp/data"
                )
            stats = json.loads(guest.run(f"nvme fdp stats {drive} --endgrp-id=1 -o json"))
        result = result_of(process)
    assert int(stats["hbmw"]) == result["host"]["bytes_written"] == 2 * 65536
