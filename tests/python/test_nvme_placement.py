"""Flexible Data Placement over NVMe/TCP, by an independent initiator: NVM Express Base Specification 2.1."""

import random
import struct
from collections.abc import Iterator
from typing import Any

import pytest

import nvme_initiator as nvme
from nvme_initiator import Admin, Disk, Queue, number
from nvme_target import NQN, Place, refused, result_of, served

pytestmark = pytest.mark.contract

BLOCK = 4096
DRIVE = [
    "--ssd", "mga-8k", "--ftl", "fdp", "--nqn", NQN, "--set", "ssd.blocks_per_plane=32", "--set", "ssd.channels=4",
    "--set", "ssd.planes_per_die=1", "--set", "part.pages_per_block=16", "--set", "ssd.over_provisioning=60%",
    "--set", "ftl.gc_start=2 blocks", "--set", "ftl.gc_stop=3 blocks", "--set", "fdp.handles=3",
]  # fmt: skip
GROUPS = [*DRIVE, "--set", "fdp.groups=2", "--set", "ftl.superblock_dies=1", "--set", "fdp.isolation=persistent"]
RECEIVE, SEND, DIRECT, DIRECTIVES = 0x12, 0x1D, 0x19, 0x1A
MODE, ENABLED = 0x1D, 0x1E
TYPES = [0x00, 0x02, 0x03, 0x80]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Closes the connections of a test."""
    yield
    while Queue.opened:
        Queue.opened.pop().close()


def connected(place: Place) -> tuple[Admin, Disk]:
    admin = Admin(place, NQN)
    return admin, Disk(place, NQN, number=1, controller=admin.controller)


def write_later(disk: Disk, at: int, data: bytes, identifier: int) -> int:
    """A write with the Data Placement directive."""
    words = struct.pack("<QII", at, len(data) // BLOCK - 1 | 2 << 20, identifier << 16)
    return disk.submit(nvme.WRITE, words=words, sends=data)


def update_later(disk: Disk, *identifiers: int, operation: int = 1) -> int:
    words = struct.pack("<I", operation | (len(identifiers) - 1) << 16)
    return disk.submit(SEND, words=words, sends=struct.pack(f"<{len(identifiers)}H", *identifiers))


def handles(disk: Disk) -> list[tuple[int, int, int]]:
    """Identifier, handle, and blocks that can be written to the unit of the handle."""
    page = disk.wait(disk.submit(RECEIVE, words=struct.pack("<II", 1, 1023), receives=4096)).data
    found = [struct.unpack_from("<HHIQ", page, 16 + 32 * at) for at in range(number(page, 14, 2))]
    assert all(left == 0 for _, _, left, _ in found)
    return [(identifier, handle, blocks) for identifier, handle, _, blocks in found]


def enable_later(admin: Admin, handle: int, types: list[int], *, on: bool = True) -> int:
    words = struct.pack("<III", ENABLED, handle | len(types) << 16, on)
    return admin.submit(nvme.SET, words=words, sends=bytes(types).ljust(255, b"\0"))


def enabled(admin: Admin, handle: int) -> dict[int, bool]:
    words = struct.pack("<II", ENABLED, handle | 255 << 16)
    done = admin.wait(admin.submit(nvme.GET, words=words, receives=510))
    return {done.data[2 * at]: bool(done.data[2 * at + 1] & 1) for at in range(done.result)}


def events(admin: Admin, *, of_host: bool) -> list[tuple[int, int | None]]:
    """Types, and the identifiers that are valid."""
    words = struct.pack("<II", 0x23 | of_host << 8 | 1023 << 16, 1 << 16)
    page = admin.wait(admin.submit(nvme.LOG, words=words, receives=4096)).data
    found = [struct.unpack_from("<BBH", page, 64 + 64 * at) for at in range(number(page, 0, 4))]
    return [(kind, identifier if flags & 1 else None) for kind, flags, identifier in found]


def statistics(admin: Admin) -> dict[str, int]:
    page = admin.log(0x22, 64, subject=1)
    return {name: number(page, at, 16) for at, name in ((0, "host"), (16, "media"), (32, "erased"))}


def configuration(admin: Admin) -> dict[str, Any]:
    page = admin.log(0x20, 4096, subject=1)
    assert (number(page, 0, 2), page[2]) == (0, 0), "one configuration"
    size, attributes, vendor, groups, count, most, namespaces, unit, limit = struct.unpack_from("<HBBIHHIQI", page, 16)
    assert number(page, 4, 4) == 16 + size == 80 + 4 * count
    assert (vendor, namespaces, limit, attributes >> 7) == (0, 1, 0, 1)
    kinds = [page[80 + 4 * at] for at in range(count)]
    return {"bits": attributes & 15, "groups": groups, "most": most + 1, "unit": unit, "kinds": kinds}


def test_identify_and_directives() -> None:
    with served(drive=DRIVE) as (_, place):
        admin, _ = connected(place)
        controller = admin.identify(1)
        assert controller[98] & 1 << 3, "endurance groups have FDP"
        assert controller[256] & 1 << 5, "directives"
        supported = admin.log(0, 1024)
        assert [supported[4 * page] for page in (0x20, 0x21, 0x22, 0x23)] == [1] * 4
        effects = admin.log(5, 4096)
        assert [effects[4 * at] for at in (DIRECT, DIRECTIVES)] == [1, 1]
        assert [effects[1024 + 4 * at] for at in (RECEIVE, SEND)] == [1, 1]
        words = struct.pack("<II", 1023, 1)
        parameters = admin.wait(admin.submit(DIRECTIVES, words=words, receives=4096)).data
        assert (parameters[0], parameters[32], parameters[64]) == (0b101, 0b101, 0b100)
        admin.wait(admin.submit(DIRECT, words=struct.pack("<III", 0, 1, 1 | 2 << 8)))
        for wrong in (2 << 8, 1 | 1 << 8, 0):
            refused(2, admin, admin.submit(DIRECT, words=struct.pack("<III", 0, 1, wrong)))
        refused(2, admin, admin.submit(DIRECTIVES, words=struct.pack("<II", 1023, 2 | 1 << 8), receives=4096))
        refused(0xB, admin, admin.submit(DIRECT, namespace=65, words=struct.pack("<III", 0, 1, 1 | 2 << 8)))
        assert admin.wait(admin.submit(nvme.GET, words=struct.pack("<II", MODE, 1))).result == 1
        refused(2, admin, admin.submit(nvme.GET, words=struct.pack("<II", MODE, 2)))
        refused(0xC, admin, admin.submit(nvme.SET, words=struct.pack("<III", MODE, 1, 0)))
        refused(2, admin, admin.submit(nvme.SET, words=struct.pack("<III", MODE, 1, 1 << 8)))
        for page in (0x20, 0x21, 0x22, 0x23):
            words = struct.pack("<II", page | 15 << 16, 2 << 16)
            refused(2, admin, admin.submit(nvme.LOG, words=words, receives=64))


def test_a_drive_without_handles_has_none_of_it() -> None:
    drive = [option for option in DRIVE if option != "fdp.handles=3"][:-1]
    drive[3] = "page"
    with served(drive=drive) as (_, place):
        admin, disk = connected(place)
        refused(1, admin, admin.submit(DIRECTIVES, words=struct.pack("<II", 1023, 1), receives=4096))
        refused(0x109, admin, admin.submit(nvme.LOG, words=struct.pack("<II", 0x22 | 15 << 16, 1 << 16), receives=64))
        refused(2, admin, admin.submit(nvme.GET, words=struct.pack("<II", MODE, 1)))
        refused(2, disk, write_later(disk, 0, bytes(BLOCK), 0))
        refused(1, disk, update_later(disk, 0))
        refused(1, disk, disk.submit(RECEIVE, words=struct.pack("<II", 1, 1023), receives=4096))


@pytest.mark.parametrize("clock", ["none", "virtual"])
def test_all_counters_equal_the_result(clock: str) -> None:
    draw = random.Random(5)
    with served("--clock", clock, "--json", drive=DRIVE) as (process, place):
        admin, disk = connected(place)
        blocks = number(admin.identify(0, 1), 0, 8)
        assert [handle for _, handle, _ in handles(disk)] == [0, 1, 2]
        assert statistics(admin) == {"host": 0, "media": 0, "erased": 0}
        admin.wait(enable_later(admin, 1, TYPES))
        assert enabled(admin, 1) == dict.fromkeys(TYPES, True)
        assert enabled(admin, 0) == dict.fromkeys(TYPES, False)
        # More than the drive holds, so that it collects garbage.
        for turn in range(3 * blocks // 32):
            placed = [write_later(disk, draw.randrange(blocks // 2), draw.randbytes(BLOCK), 1) for _ in range(24)]
            placed += [disk.write_later(blocks // 2 + turn * 8 % (blocks // 2 - 8), bytes(8 * BLOCK))]
            for command in placed:
                disk.wait(command)
        for identifier in (9, 0x8001):
            disk.wait(write_later(disk, 0, bytes(BLOCK), identifier))
        disk.wait(update_later(disk, 1, 0))
        disk.flush()
        counted, left, used = statistics(admin), handles(disk), admin.log(0x21, 64, subject=1)
        of_host, of_controller = events(admin, of_host=True), events(admin, of_host=False)
        result = result_of(process)["fdp"]
    assert counted == {
        "host": result["statistics"]["host_bytes"],
        "media": result["statistics"]["media_bytes"],
        "erased": result["statistics"]["media_erased_bytes"],
    }
    assert counted["erased"] > 0
    assert [blocks * BLOCK for _, _, blocks in left] == [handle["left_bytes"] for handle in result["handles"]]
    assert number(used, 0, 2) == 3
    usage = ["unused", "host specified"]
    assert [usage[used[8 + 8 * at]] for at in range(3)] == [handle["usage"] for handle in result["handles"]]
    counts = result["events"]
    assert counts["invalid_placement_identifier"] == 2
    # Identifiers without a handle are events of any handle that has them enabled.
    assert [event for event in of_host if event[0] == 3] == [(3, 9), (3, 0x8001)]
    assert sum(kind == 0 for kind, _ in of_host) <= counts["unit_not_fully_written"]
    assert all(identifier == 1 for kind, identifier in of_host if kind == 0)
    assert counts["media_reallocated"] > 0
    assert of_controller == [(0x80, None)] * min(63, counts["media_reallocated"])


def test_handles_of_groups_and_their_updates() -> None:
    with served("--json", drive=GROUPS) as (process, place):
        admin, disk = connected(place)
        found = configuration(admin)
        unit = found.pop("unit")
        assert found == {"bits": 1, "groups": 2, "most": 6, "kinds": [2, 2, 2]}
        identifiers = [0, 1, 2, 0x8000, 0x8001, 0x8002]
        assert handles(disk) == [(each, each & 0xFF, unit // BLOCK) for each in identifiers], (
            "units of new handles are empty"
        )
        for identifier in identifiers:
            disk.wait(write_later(disk, identifier & 0xFF, bytes([identifier & 0xFF]) * BLOCK, identifier))
        assert disk.read(0, 3) == b"".join(bytes([at]) * BLOCK for at in range(3))
        before = {identifier: blocks for identifier, _, blocks in handles(disk)}
        assert 0 < before[1] < unit // BLOCK
        admin.wait(enable_later(admin, 1, [0]))
        disk.wait(update_later(disk, 1, 0x8002))
        after = {identifier: blocks for identifier, _, blocks in handles(disk)}
        assert (after[1], after[0x8002]) == (unit // BLOCK,) * 2, "the handle refers to another unit, which is empty"
        assert after[2] == before[2]
        assert events(admin, of_host=True) == [(0, 1)], "handle 2 has no enabled events"
        admin.wait(enable_later(admin, 1, [0], on=False))
        refused(2, disk, update_later(disk, 1, 3))
        refused(2, disk, update_later(disk, 0xC000))
        refused(2, disk, update_later(disk, *[0] * 7))
        refused(2, disk, update_later(disk, 0, operation=2))
        refused(2, disk, disk.submit(RECEIVE, words=struct.pack("<II", 2, 1023), receives=4096))
        refused(0xB, disk, disk.submit(RECEIVE, namespace=65, words=struct.pack("<II", 1, 1023), receives=4096))
        refused(2, disk, disk.submit(nvme.WRITE, words=struct.pack("<QII", 0, 1 << 20, 0), sends=bytes(BLOCK)))
        refused(2, disk, disk.submit(nvme.ZEROES, words=struct.pack("<QII", 0, 2 << 20, 0)))
        refused(2, admin, enable_later(admin, 3, [0]))
        refused(2, admin, enable_later(admin, 0, [0x55]))
        result = result_of(process)["fdp"]
    assert result["events"]["unit_not_fully_written"] == 2
    written = [handle["host_bytes"] for handle in result["handles"]]
    assert written == [2 * BLOCK] * 6, "a page of 8 KiB for each write"


def test_a_power_cut_keeps_placed_data() -> None:
    with served("--set", "faults.power_cut_at=200", "--json", drive=DRIVE) as (process, place):
        durable: dict[int, bytes] = {}
        ended = 0
        for attempt in range(2):
            _, disk = connected(place)
            try:
                for turn in range(300):
                    at, data = turn % 100, struct.pack("<II", attempt, turn) * (BLOCK // 8)
                    words = struct.pack("<QII", at, 2 << 20 | 1 << 30, turn % 3 << 16)
                    disk.wait(disk.submit(nvme.WRITE, words=words, sends=data))
                    durable[at] = data
            except (nvme.StatusError, EOFError, ConnectionError):
                ended += 1
        assert ended == 1
        assert all(disk.read(at, 1) == data for at, data in durable.items())
        result = result_of(process)
    assert result["power"]["cuts"] == 1
