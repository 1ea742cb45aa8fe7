"""Commands of the NVMe target beyond reads and writes: namespaces, fused commands, copies, format, sanitize, tests."""

import random
import struct
import time
from pathlib import Path

import pytest

import nvme_initiator as nvme
import palimpsest as ps
from conftest import Command
from nvme_initiator import Admin, Disk, number
from nvme_target import (
    BLOCK,
    NQN,
    SMALL,
    TINY,
    Place,
    closed,  # noqa: F401
    refused,
    result_of,
    served,
    write_until_power_fails,
)

pytestmark = pytest.mark.contract

MIB = 1 << 20
OTHER = "nqn.2026-11.org.example:other"
NAMESPACE_EVENT, SANITIZE_EVENT = 2 | 4 << 16, 6 | 1 << 8 | 0x81 << 16


def opened(place: Place, *, host: str = nvme.HOST, host_id: bytes = nvme.HOST_ID) -> tuple[Admin, Disk]:
    admin = Admin(place, NQN, host=host, host_id=host_id)
    return admin, Disk(place, NQN, number=1, controller=admin.controller, host=host, host_id=host_id)


def block(value: int) -> bytes:
    return struct.pack("<Q", value) * (BLOCK // 8)


def listed(page: bytes) -> list[int]:
    """The numbers of a list, to the first zero."""
    numbers = [number(page, at, 4) for at in range(0, len(page), 4)]
    return numbers[: numbers.index(0)]


def test_namespaces_of_options_are_ranges_of_a_drive() -> None:
    with served("--namespace", "size=16MiB", "--namespace", "size=8MiB") as (_, place):
        admin, disk = opened(place)
        controller = admin.identify(1)
        assert listed(admin.identify(2)) == listed(admin.identify(0x10)) == [1, 2]
        assert listed(admin.identify(2, 1)) == [2]
        sizes = [number(admin.identify(0, each), 0, 8) * BLOCK for each in (1, 2)]
        assert sizes == [16 * MIB, 8 * MIB]
        assert number(controller, 296, 16) == number(controller, 280, 16) - 24 * MIB
        assert admin.identify(3, 1)[4:20] != admin.identify(3, 2)[4:20]
        second = Disk(place, NQN, number=2, controller=admin.controller)
        second.namespace = 2
        disk.write(0, block(1))
        second.write(0, block(2))
        last = 16 * MIB // BLOCK - 1
        disk.write(last, block(3))
        assert (disk.read(0, 1), second.read(0, 1), disk.read(last, 1)) == (block(1), block(2), block(3))
        disk.deallocate((0, last + 1))
        assert second.read(0, 1) == block(2)
        refused(0x80, disk, disk.read_later(last, 2))
        disk.namespace = 3
        refused(0x2, disk, disk.read_later(0, 1))


def test_hosts_create_attach_and_delete_namespaces() -> None:
    with served("--namespace", "size=16MiB") as (_, place):
        admin, disk = opened(place)
        other, others = opened(place, host=OTHER, host_id=bytes(range(1, 17)))
        blocks, free = 2048, number(admin.identify(1), 296, 16)
        made = admin.wait(admin.create(blocks)).result
        assert (made, number(admin.identify(1), 296, 16)) == (2, free - blocks * BLOCK)
        assert (listed(admin.identify(2)), listed(admin.identify(0x10))) == ([1], [1, 2])
        assert (number(admin.identify(0, 2), 0, 8), number(admin.identify(0x11, 2), 0, 8)) == (0, blocks)
        disk.namespace = others.namespace = 2
        refused(0x2, disk, disk.read_later(0, 1))
        events = admin.event(), other.event()
        admin.wait(admin.attach(2, admin.controller))
        assert admin.wait(events[0]).result == NAMESPACE_EVENT
        assert listed(admin.log(4, 4096)) == [2]
        assert listed(admin.log(4, 4096)) == [], "a read clears the log"
        attached = admin.identify(0x12, 2)
        assert (number(attached, 0, 2), number(attached, 2, 2)) == (1, admin.controller)
        assert number(admin.identify(0x13), 0, 2) == 2
        disk.write(5, block(9))
        assert disk.read(5, 1) == block(9)
        refused(0x2, others, others.read_later(0, 1))
        admin.wait(admin.attach(2, other.controller))
        assert other.wait(events[1]).result == NAMESPACE_EVENT
        assert others.read(5, 1) == block(9)
        # A host that connects again finds the attachment.
        again, queue = opened(place, host=OTHER, host_id=bytes(range(1, 17)))
        queue.namespace = 2
        assert queue.read(5, 1) == block(9)
        again.close()
        admin.wait(admin.attach(2, admin.controller, detach=True))
        refused(0x2, disk, disk.read_later(5, 1))
        admin.wait(admin.delete(2))
        assert number(admin.identify(1), 296, 16) == free
        assert admin.wait(admin.create(blocks)).result == 2
        admin.wait(admin.attach(2, admin.controller))
        assert disk.read(0, 64) == bytes(64 * BLOCK), "a new namespace has no data of an old one"
        admin.wait(admin.delete(nvme.ALL))
        assert listed(admin.identify(0x10)) == []


def test_wrong_fields_of_namespaces_are_refused() -> None:
    with served("--namespace", "size=16MiB") as (_, place):
        admin, _disk = opened(place)
        other, _ = opened(place, host=OTHER, host_id=bytes(16))
        free = number(admin.identify(1), 296, 16) // BLOCK
        refused(0x115, admin, admin.create(free + 1))
        refused(0x2, admin, admin.create(0))
        refused(0x11B, admin, admin.create(8, used=4))
        refused(0x10A, admin, admin.create(8, block_format=2))
        refused(0x2, admin, admin.create(8, namespace=3))
        refused(0x2, admin, admin.create(8, words=struct.pack("<I", 2)))
        refused(0x129, admin, admin.create(8, words=struct.pack("<II", 0, 2 << 24)))
        refused(0x2, admin, admin.delete(9))
        refused(0xB, admin, admin.delete(65))
        assert admin.wait(admin.create(8, shared=0)).result == 2
        refused(0x119, admin, admin.attach(2, admin.controller, other.controller))
        refused(0x11C, admin, admin.attach(2))
        refused(0x11C, admin, admin.attach(2, 999))
        refused(0x11C, admin, admin.attach(2, other.controller, admin.controller))
        refused(0x11A, admin, admin.attach(2, admin.controller, detach=True))
        refused(0x118, admin, admin.attach(1, admin.controller))
        refused(0xB, admin, admin.attach(65, admin.controller))
        admin.wait(admin.attach(2, admin.controller))
        refused(0x119, admin, admin.attach(2, other.controller))
        for _ in range(62):
            admin.wait(admin.create(8))
        refused(0x116, admin, admin.create(8))


@pytest.mark.parametrize("clock", ["none", "virtual", "paced"])
def test_fused_commands_are_atomic(clock: str) -> None:
    """Of fused commands that expect the same block, one succeeds, whatever is in flight beside them."""
    with served("--clock", clock) as (_, place):
        admin = Admin(place, NQN)
        disks = [Disk(place, NQN, number=at + 1, controller=admin.controller) for at in range(3)]
        disks[0].in_capsule = 0
        won = [0, 0, 0]
        for turn in range(40):
            flying = [disk.swap_later(3, block(turn), block(turn + 1)) for disk in disks]
            beside = [disk.read_later(3, 1) for disk in disks]
            done = [[disk.finish(each).status for each in pair] for disk, pair in zip(disks, flying, strict=True)]
            assert sorted(done) == [[0, 0], [0x285, 9], [0x285, 9]]
            won[done.index([0, 0])] += 1
            for disk, command in zip(disks, beside, strict=True):
                assert disk.wait(command).data in (block(turn), block(turn + 1))
        assert disks[0].read(3, 1) == block(40)
        assert sum(won) == 40
        data = bytes(2 * BLOCK)
        words = struct.pack("<QI", 3, 1)
        first = disks[1].submit(nvme.COMPARE, words=words, sends=data, fused=1)
        second = disks[1].submit(nvme.WRITE, words=words, sends=data, fused=2)
        refused(0x14, disks[1], first)
        refused(0x9, disks[1], second)
        refused(0x2, admin, admin.submit(nvme.IDENTIFY, words=struct.pack("<I", 1), receives=4096, fused=1))


@pytest.mark.parametrize("clock", ["none", "virtual"])
def test_copies_and_their_limits(clock: str) -> None:
    with served("--clock", clock, "--json") as (process, place):
        admin, disk = opened(place)
        namespace = admin.identify(0, 1)
        most = number(namespace, 76, 4)
        assert (number(namespace, 74, 2), namespace[80], number(admin.identify(1), 534, 2)) == (most, 127, 1)
        content = random.Random(4).randbytes(40 * BLOCK)
        disk.write(0, content)
        disk.wait(disk.copy_later(100, (30, 10), (0, 1), (5, 20), flags=nvme.FUA))
        expected = content[30 * BLOCK :] + content[:BLOCK] + content[5 * BLOCK : 25 * BLOCK]
        assert disk.read(100, 31) == expected
        disk.wait(disk.copy_later(200, *((at, 1) for at in range(40)), *((at, 1) for at in range(40))))
        assert disk.read(200, 80) == content + content
        refused(0x183, disk, disk.copy_later(1000, (0, most), (0, 1)))
        refused(0x183, disk, disk.copy_later(1000, *[(0, 1)] * 129))
        refused(0x187, disk, disk.copy_later(20, (0, 15), (10, 15)))
        refused(0x80, disk, disk.copy_later(number(namespace, 0, 8) - 1, (0, 2)))
        refused(0x80, disk, disk.copy_later(0, (number(namespace, 0, 8), 1)))
        refused(0x2, disk, disk.copy_later(100, (0, 1), flags=1 << 8))
        assert disk.read(20, 20) == content[20 * BLOCK :]
        disk.wait(disk.copy_later(5, (0, 30)))
        assert disk.read(5, 30) == content[: 30 * BLOCK]
        admin.close()
        disk.close()
        result = result_of(process)
    assert result["requests"]["write"] == 1 + 3 + 80 + 1
    assert result["requests"]["read"] == 3 + 80 + 1 + 4, "a copy is reads and writes of the drive"


def test_marked_blocks_cannot_be_read_until_written() -> None:
    with served("--set", "faults.power_cut_at=600") as (_, place):
        admin, disk = opened(place)
        disk.write(0, block(1) * 64)
        disk.wait(disk.mark_later(10, 20))
        for at, blocks in ((10, 1), (29, 1), (0, 11), (29, 5), (0, 64)):
            refused(0x281, disk, disk.read_later(at, blocks))
            words = struct.pack("<QI", at, blocks - 1)
            refused(0x281, disk, disk.submit(nvme.VERIFY, words=words))
            refused(0x281, disk, disk.submit(nvme.COMPARE, words=words, sends=block(1) * blocks))
            refused(0x281, disk, disk.copy_later(100, (at, blocks)))
        assert disk.read(0, 10) == block(1) * 10
        assert disk.read(30, 34) == block(1) * 34
        disk.write(12, block(2))
        assert disk.read(12, 1) == block(2)
        refused(0x281, disk, disk.read_later(11, 2))
        disk.zero(13, 1)
        disk.deallocate((14, 2))
        assert disk.read(12, 2) == block(2) + bytes(BLOCK)
        disk.read(14, 2)
        disk.flush()
        write_until_power_fails(disk)
        admin, disk = opened(place)
        assert nvme.smart(admin.log(2, 512))["unsafe"] == 1
        refused(0x281, disk, disk.read_later(16, 1))
        refused(0x80, disk, disk.mark_later(2**40, 1))


def test_formats_change_blocks_and_erase() -> None:
    with served("--namespace", "size=8MiB", "--namespace", "size=8MiB") as (_, place):
        admin, disk = opened(place)
        disk.write(0, block(1) * 8)
        disk.wait(disk.mark_later(4, 1))
        second = Disk(place, NQN, number=2, controller=admin.controller)
        second.namespace = 2
        second.write(0, block(2))

        def formats(what: int, namespace: int = 1) -> int:
            return admin.submit(nvme.FORMAT, namespace=namespace, words=struct.pack("<I", what))

        refused(0x10A, admin, formats(2))
        refused(0x10A, admin, formats(1 << 5))
        refused(0x2, admin, formats(3 << 9))
        refused(0xB, admin, formats(0, 65))
        refused(0x2, admin, formats(0, 3))
        refused(0x281, disk, disk.read_later(4, 1))
        event = admin.event()
        admin.wait(formats(0 | 1 << 9))
        assert admin.wait(event).result == NAMESPACE_EVENT
        namespace = admin.identify(0, 1)
        assert (namespace[26], number(namespace, 0, 8)) == (0, 8 * MIB // 512)
        disk.block = 512
        assert disk.read(0, 64) == bytes(8 * BLOCK)
        disk.write(3, b"\7" * 512)
        assert disk.read(2, 3) == bytes(512) + b"\7" * 512 + bytes(512)
        assert second.read(0, 1) == block(2)
        admin.wait(formats(1 | 2 << 9, nvme.ALL))
        disk.block = BLOCK
        assert (disk.read(0, 8), second.read(0, 1)) == (bytes(8 * BLOCK), bytes(BLOCK))


def test_sanitize_erases_all_namespaces() -> None:
    with served("--namespace", "size=16MiB", "--namespace", "size=8MiB") as (_, place):
        admin, disk = opened(place)
        second = Disk(place, NQN, number=2, controller=admin.controller)
        second.namespace = 2
        log = admin.log(0x81, 512)
        assert (number(log, 0, 2), number(log, 2, 2)) == (0xFFFF, 0)
        for action in (0, 3, 5, 2 | 1 << 9):
            refused(0x2, admin, admin.submit(nvme.SANITIZE, namespace=0, words=struct.pack("<I", action)))
        for action in (2, 4):
            disk.write(0, block(1) * 64)
            second.write(100, block(2))
            disk.wait(disk.mark_later(3, 1))
            event = admin.event()
            admin.wait(admin.submit(nvme.SANITIZE, namespace=0, words=struct.pack("<I", action)))
            assert admin.wait(event).result == SANITIZE_EVENT
            log = admin.log(0x81, 512)
            assert (number(log, 0, 2), number(log, 2, 2), number(log, 4, 4)) == (0xFFFF, 1 | 1 << 8, action)
            assert (disk.read(0, 64), second.read(100, 1)) == (bytes(64 * BLOCK), bytes(BLOCK))
        disk.write(0, block(1))
        assert number(admin.log(0x81, 512), 2, 2) == 1, "data was written since"


def test_commands_wait_for_a_sanitize_in_progress() -> None:
    """The drive is so slow that the write buffer is full of data while the sanitize begins."""
    with served("--clock", "scaled:2000") as (_, place):
        admin, disk = opened(place)
        blocks = number(admin.identify(0, 1), 0, 8)
        disk.write(blocks - 16, block(1) * 16)
        event = admin.event()
        admin.wait(admin.submit(nvme.SANITIZE, namespace=0, words=struct.pack("<I", 2)))
        log = admin.log(0x81, 512)
        assert number(log, 2, 2) == 2
        assert number(log, 0, 2) < 0xFFFF
        refused(0x1D, disk, disk.read_later(0, 1))
        refused(0x1D, disk, disk.write_later(0, block(1)))
        refused(0x1D, admin, admin.submit(nvme.SANITIZE, namespace=0, words=struct.pack("<I", 2)))
        refused(0x1D, admin, admin.submit(nvme.FORMAT, words=bytes(4)))
        refused(0x1D, admin, admin.submit(nvme.SELF_TEST, words=struct.pack("<I", 1)))
        admin.identify(1)
        assert admin.wait(event).result == SANITIZE_EVENT
        assert disk.read(blocks - 1, 1) == bytes(BLOCK)


def run_self_test(admin: Admin, code: int, namespace: int = 1) -> bytes:
    """The result of a self-test, after the test."""
    admin.wait(admin.submit(nvme.SELF_TEST, namespace=namespace, words=struct.pack("<I", code)))
    while (log := admin.log(6, 564))[0]:
        time.sleep(0.01)
    return log[4:32]


def test_self_tests_read_the_media() -> None:
    with served("--namespace", "size=16MiB", "--namespace", "size=8MiB", "--json") as (process, place):
        admin, disk = opened(place)
        assert {entry[0] for entry in zip(*[iter(admin.log(6, 564)[4:])] * 28, strict=True)} == {0xF}
        disk.write(0, block(1) * 64)
        result = run_self_test(admin, 2, nvme.ALL)
        assert (result[0], number(result, 12, 4)) == (0x20, nvme.ALL)
        assert run_self_test(admin, 1, 2)[0] == 0x10
        assert run_self_test(admin, 1, 0)[0] == 0x10
        refused(0x2, admin, admin.submit(nvme.SELF_TEST, words=struct.pack("<I", 3)))
        refused(0x2, admin, admin.submit(nvme.SELF_TEST, namespace=3, words=struct.pack("<I", 1)))
        refused(0xB, admin, admin.submit(nvme.SELF_TEST, namespace=65, words=struct.pack("<I", 1)))
        assert [admin.log(6, 564)[4 + 28 * at] for at in range(4)] == [0x10, 0x10, 0x20, 0xF]
        admin.close()
        counted = result_of(process)
    assert counted["host"]["bytes_read"] == (24 + 8) * MIB


def test_a_self_test_finds_an_unreadable_block() -> None:
    errors = ["--set", "part.ber_fresh=0.05%", "--set", "ecc.strength=10"]
    with served(*errors, "--namespace", "size=16MiB") as (_, place):
        admin, disk = opened(place)
        blocks = number(admin.identify(0, 1), 0, 8)
        for at in range(0, blocks, 64):
            disk.write(at, block(at) * 64)
        disk.flush()
        result = run_self_test(admin, 2)
        assert (result[0], result[1], result[2], result[24], result[25]) == (0x27, 1, 0xF, 2, 0x81)
        failed = number(result, 16, 8)
        assert nvme.smart(admin.log(2, 512))["media_errors"] > 0
        assert (failed < blocks, number(result, 12, 4)) == (True, 1)
        refused(0x281, disk, disk.read_later(failed, 1))


def test_a_self_test_can_be_aborted() -> None:
    with served("--clock", "scaled:2000") as (_, place):
        admin, disk = opened(place)
        disk.write(0, block(1) * 32)
        admin.wait(admin.submit(nvme.SELF_TEST, words=struct.pack("<I", 2)))
        refused(0x11D, admin, admin.submit(nvme.SELF_TEST, words=struct.pack("<I", 1)))
        assert (admin.log(6, 564)[0], admin.log(6, 564)[4]) == (2, 0xF)
        admin.wait(admin.submit(nvme.SELF_TEST, words=struct.pack("<I", 0xF)))
        while (log := admin.log(6, 564))[0]:
            time.sleep(0.01)
        assert log[4] == 0x21


def test_saved_features_are_those_of_a_later_controller() -> None:
    with served() as (_, place):
        admin = Admin(place, NQN)
        admin.set_feature(6, 0, save=True)
        admin.set_feature(0xB, 0x101)
        assert [admin.feature(6, select) for select in range(3)] == [0, 1, 0]
        admin.close()
        again = Admin(place, NQN)
        assert [again.feature(6, select) for select in range(3)] == [0, 1, 0]
        assert [again.feature(0xB, select) for select in range(3)] == [0x1FF, 0x1FF, 0x1FF]
        other = Admin(place, NQN, host=OTHER)
        assert [other.feature(6, select) for select in range(3)] == [1, 1, 1]
        now = 1_800_000_000_000

        def read() -> tuple[int, int]:
            found = again.wait(again.submit(nvme.GET, words=struct.pack("<I", 0xE), receives=8)).data
            return number(found, 0, 6), found[6]

        assert (read()[0] < 60_000, read()[1]) == (True, 0)
        again.wait(again.submit(nvme.SET, words=struct.pack("<I", 0xE), sends=struct.pack("<Q", now)))
        assert (now <= read()[0] < now + 60_000, read()[1]) == (True, 2)
        refused(0x10D, again, again.submit(nvme.SET, words=struct.pack("<I", 0xE | 1 << 31), sends=bytes(8)))
        refused(0xF, again, again.submit(nvme.SET, words=struct.pack("<I", 0xE), sends=bytes(16)))


def test_the_temperature_is_that_of_flash() -> None:
    heated = ["--set", "ecc.strength=40", "--set", "ecc.temperature=70", "--set", "ecc.t_retention=30d"]
    for options, kelvins in (([], 273 + 40), (heated, 273 + 70)):
        with served(*options) as (_, place):
            admin = Admin(place, NQN)
            assert (number(admin.log(2, 512), 1, 2), nvme.smart(admin.log(2, 512))["warning"]) == (kelvins, 0)
            event = admin.event()
            admin.set_feature(4, kelvins)
            assert admin.wait(event).result == 1 | 1 << 8 | 2 << 16
            assert nvme.smart(admin.log(2, 512))["warning"] == 2
            admin.set_feature(4, kelvins + 1)
            assert nvme.smart(admin.log(2, 512))["warning"] == 0
            admin.set_feature(4, 1 << 20 | kelvins)
            assert nvme.smart(admin.log(2, 512))["warning"] == 2
            assert admin.wait(admin.submit(nvme.GET, words=struct.pack("<II", 4, 1 << 20))).result == kelvins
            refused(0x2, admin, admin.submit(nvme.SET, words=struct.pack("<II", 4, 3 << 16 | 300)))


def test_few_spare_blocks_are_a_warning() -> None:
    worn = ["--set", "faults.wear_out=true", "--set", "part.endurance=10", "--set", "part.endurance_deviation=10%"]
    with served(*worn, drive=TINY) as (_, place):
        admin, disk = opened(place)
        blocks = number(admin.identify(0, 1), 0, 8)
        assert admin.log(2, 512)[3:5] == bytes([100, 10])
        event, turn = admin.event(), 0
        while not disk.finish(disk.write_later(turn * 56 % (blocks - 8), block(turn) * 8)).status:
            turn += 1
        # The warnings of a drive without blocks come in any order.
        first = admin.wait(event).result
        page, second = admin.log(2, 512), admin.event()
        assert {first, admin.wait(second).result} == {1 | 2 << 16, 1 | 2 << 8 | 2 << 16}
        assert page[3] < 10
        assert page[0] & 9 == 9
        assert admin.log(9, 512, subject=1)[0] == 9
        for command in (disk.mark_later(0, 1), disk.write_later(0, block(0))):
            refused(0x20, disk, command)
        for command in (admin.delete(1), admin.submit(nvme.FORMAT, words=bytes(4))):
            refused(0x20, admin, command)
        refused(0x20, admin, admin.submit(nvme.SANITIZE, namespace=0, words=struct.pack("<I", 2)))


def test_python_serves_an_image(tmp_path: Path) -> None:
    image = f"{tmp_path}/drive.pal"
    said: list[str] = []
    overrides = {"ssd.blocks_per_plane": 64}
    ps.serve_nvme("true", ssd="mga-8k", image=image, seed=9, say=said.append, overrides=overrides)
    again = ps.serve_nvme("true", ssd=image, image=image, say=said.append, namespaces=[4 * MIB])
    assert again["seed"] == 9
    assert [line for line in said if line.startswith(image)][1].startswith(f"{image}: the previous service ended well")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--namespace", "10GiB"], "'10GiB' is no namespace; expected one such as size=10GiB"),
        (["--namespace", "size=0"], "'size=0' is no namespace"),
        (["--namespace", "size=10TiB"], "--namespace size=10995116277760: the drive has"),
        (["--namespace", "size=512"], "expected one block of 4096 bytes at least"),
    ],
)
def test_wrong_namespaces_are_one_line(palimpsest: Command, options: list[str], named: str) -> None:
    done = palimpsest("nvme", *SMALL[:-2], *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert named in done.stderr
