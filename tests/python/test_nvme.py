"""`palimpsest nvme` on the native module, used by an independent initiator: commands, digests, ends, crashes."""

import json
import os
import random
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nvme_initiator as nvme
import palimpsest as ps
from conftest import Command
from documents import examples
from nvme_initiator import Admin, Disk, Queue, StatusError, TerminatedError, number
from nvme_target import BLOCK, NQN, SMALL, TINY, Place, closed, refused, result_of, served  # noqa: F401

pytestmark = pytest.mark.contract

SHARED = f"{NQN}.shared"
"""The name of the target that tests share, beside targets of single tests."""


@pytest.fixture(scope="module")
def target() -> Iterator[Place]:
    with served(drive=[*SMALL[:-1], SHARED]) as (_, place):
        yield place


def test_connect_identify_and_discover(target: Place) -> None:
    admin = Admin(target, SHARED)
    controller = admin.identify(1)
    assert number(controller, 78, 2) == admin.controller
    assert controller[768 : 768 + len(SHARED) + 1] == SHARED.encode() + b"\0"
    assert controller[24:64].rstrip() == b"palimpsest mga-8k"
    assert (controller[512], controller[513], controller[111], number(controller, 80, 4)) == (0x66, 0x44, 1, 0x20000)
    assert number(controller, 516, 4) == number(controller, 540, 4) == 64
    namespace = admin.identify(0, 1)
    blocks = number(namespace, 0, 8)
    assert number(controller, 280, 16) == number(namespace, 48, 16) == blocks * BLOCK
    formatted = number(namespace, 128 + 4 * (namespace[26] & 15), 4)
    assert formatted == 12 << 16
    assert admin.identify(2, 0)[:8] == struct.pack("<II", 1, 0) == admin.identify(0x10, 0)[:8]
    assert admin.identify(2, 1)[:4] == bytes(4)
    descriptors = admin.identify(3, 1)
    assert (descriptors[0], descriptors[1], descriptors[20], descriptors[40:45]) == (2, 16, 3, b"\4\1\0\0\0")
    assert descriptors[4:20] == namespace[104:120]
    assert admin.identify(6, 0)[0] == controller[77], "a verify may be as long as a transfer"
    assert admin.identify(8, 1)[14] == 1
    assert number(admin.identify(0x1C, 0), 0, 8) == 1
    for what in (0x16, 0x20, 0xFF):
        refused(2, admin, admin.submit(nvme.IDENTIFY, words=struct.pack("<I", what), receives=4096))
    assert admin.identify(0, 2) == bytes(4096), "a number without a namespace"
    refused(0xB, admin, admin.submit(nvme.IDENTIFY, namespace=65, words=struct.pack("<I", 0), receives=4096))
    refused(0xF, admin, admin.submit(nvme.IDENTIFY, words=struct.pack("<I", 1), receives=4096, named=512))
    discovery = Admin(target, nvme.DISCOVERY)
    log = discovery.log(0x70, 2048)
    assert (number(log, 8, 8), log[1024], log[1026]) == (1, 3, 2)
    assert log[1024 + 32 : 1024 + 64].strip() == str(target[1]).encode()
    assert log[1280 : 1280 + len(SHARED)] == SHARED.encode()
    assert log[1536:1792].strip() == b"127.0.0.1"
    assert discovery.identify(1)[111] == 2
    refused(2, discovery, discovery.submit(nvme.IDENTIFY, words=struct.pack("<I", 0), receives=4096))
    discovery.close()
    admin.close()


OTHER = "nqn.2026-11.org.example:other"
WRONG_PLACES = (
    "localhost:4420", "::1:4421", "[fe80::1%eth0]:4421", "[127.0.0.1]:4421", "300.0.0.1:4420", "127.0.0.1:70000",
    "127.0.0.1:+1", "127.0.0.1:0", "127.0.0.1", "",
)  # fmt: skip


def test_the_discovery_log_names_subsystems_of_other_processes() -> None:
    others = ["--discover", f"{OTHER}@127.0.0.1:4421", "--discover", f"{OTHER}6@[::1]:4422"]
    with served(*others) as (_, place):
        discovery = Admin(place, nvme.DISCOVERY)
        log = discovery.log(0x70, 4096)
        discovery.close()
    assert number(log, 8, 8) == 3
    found = [
        (
            log[at + 1],
            log[at + 256 : at + 512].rstrip(b"\0"),
            log[at + 512 : at + 768].strip(),
            log[at + 32 : at + 64].strip(),
        )
        for at in (1024, 2048, 3072)
    ]
    assert found == [
        (1, NQN.encode(), b"127.0.0.1", str(place[1]).encode()),
        (1, OTHER.encode(), b"127.0.0.1", b"4421"),
        (2, f"{OTHER}6".encode(), b"::1", b"4422"),
    ]


def test_wrong_connects_are_refused(target: Place) -> None:
    admin = Admin(target, SHARED, enable=False)
    wrong: dict[str, tuple[dict[str, Any], int, int]] = {
        "another subsystem": ({"subsystem": "nqn.2026-11.org.example:other"}, 0x182, 256 | 1 << 16),
        "no such controller": ({"number": 1, "controller": 4000}, 0x182, 16 | 1 << 16),
        "a controller of one's choice": ({"controller": 3}, 0x182, 16 | 1 << 16),
        "too many entries": ({"entries": 1000}, 0x182, 44),
        "another host": ({"number": 1, "controller": admin.controller, "host": nvme.HOST + "0"}, 0x182, 512 | 1 << 16),
        "not enabled": ({"number": 1, "controller": admin.controller}, 0xC, 0),
    }
    for name, (terms, status, result) in wrong.items():
        with pytest.raises(StatusError) as failed:
            Queue(target, **{"subsystem": SHARED, **terms})
        assert (failed.value.status, failed.value.result) == (status, result), name
    refused(0xC, admin, admin.submit(nvme.IDENTIFY, words=struct.pack("<I", 1), receives=4096))
    admin.set_property(0x14, 0x460001)
    # The identifier of a host is that of its admin queue.
    disk = Disk(target, SHARED, number=1, controller=admin.controller, host_id=bytes(16))
    with pytest.raises(StatusError, match="0xc,"):
        Disk(target, SHARED, number=1, controller=admin.controller)
    disk.close()
    admin.close()


@pytest.mark.parametrize("clock", ["none", "virtual", "paced"])
@pytest.mark.parametrize("terms", [{}, {"header_digest": True, "data_digest": True, "alignment": 31}])
def test_random_commands_against_an_array(clock: str, terms: dict[str, Any]) -> None:
    """Commands of two queues, each with several in flight in its own half of the drive."""
    draw = random.Random(17)
    with served("--clock", clock, "--json") as (process, place):
        admin = Admin(place, NQN, **terms)
        blocks = number(admin.identify(0, 1), 0, 8)
        number_of = admin.controller
        disks = [
            Disk(place, NQN, number=at + 1, controller=number_of, flow_control=at == 0, **terms) for at in range(2)
        ]
        span = 300
        counts = {"read": 0, "write": 0}
        for disk, first in zip(disks, (0, blocks - span), strict=True):
            array = bytearray(span * BLOCK)
            for _ in range(30 if terms else 60):
                # Ranges in flight together do not overlap.
                cuts = sorted(draw.sample(range(span + 1), 12))
                flying: list[tuple[int, bytes | None]] = []
                for at, end in zip(cuts[::2], cuts[1::2], strict=True):
                    here = slice(at * BLOCK, end * BLOCK)
                    match draw.randrange(8):
                        case 0:
                            disk.zero(first + at, end - at, unmap=draw.random() < 0.5)
                            array[here] = bytes(here.stop - here.start)
                        case 1:
                            disk.compare(first + at, bytes(array[here]))
                            counts["read"] += 1
                        case 2 | 3 | 4:
                            data = draw.randbytes(here.stop - here.start)
                            fua = nvme.FUA if draw.random() < 0.2 else 0
                            flying.append((disk.write_later(first + at, data, fua), None))
                            array[here] = data
                            counts["write"] += 1
                        case _:
                            flying.append((disk.read_later(first + at, end - at), bytes(array[here])))
                            counts["read"] += 1
                draw.shuffle(flying)
                for command, expected in flying:
                    done = disk.wait(command)
                    assert expected is None or done.data == expected
                disk.flush()
            for at in range(0, span, 100):
                assert disk.read(first + at, 100) == array[at * BLOCK : (at + 100) * BLOCK]
                counts["read"] += 1
            assert disk.requested > 0, "long writes are asked for"
            assert disk.in_capsule >= BLOCK
        for queue in (*disks, admin):
            queue.close()
        result = result_of(process)
    assert result["workload"] == "nvme"
    assert result["requests"]["read"] == counts["read"]
    assert result["requests"]["write"] >= counts["write"], "zeroes are writes"
    assert result["requests"]["flush"] >= 60


def test_commands_with_wrong_fields_have_no_effect(target: Place) -> None:
    admin = Admin(target, SHARED)
    blocks = number(admin.identify(0, 1), 0, 8)
    disk = Disk(target, SHARED, number=1, controller=admin.controller)
    earlier = nvme.smart(admin.log(2, 512))["errors"]
    disk.write(7, b"\7" * BLOCK)

    def at(first: int, count: int, flags: int = 0) -> bytes:
        return struct.pack("<QI", first, count - 1 | flags)

    one = bytes(BLOCK)
    read = nvme.READ
    refused(0x80, disk, disk.submit(read, words=at(blocks, 1), receives=BLOCK))
    refused(0x80, disk, disk.submit(read, words=at(2**64 - 1, 2), receives=2 * BLOCK))
    refused(0x80, disk, disk.submit(nvme.WRITE, words=at(blocks - 1, 2), sends=bytes(2 * BLOCK)))
    refused(0x2, disk, disk.submit(read, words=at(0, 257), receives=257 * BLOCK))
    refused(0xF, disk, disk.submit(read, words=at(7, 1), receives=2 * BLOCK))
    refused(0xF, disk, disk.submit(nvme.WRITE, words=at(7, 2), sends=one))
    refused(0xB, disk, disk.submit(read, namespace=65, words=at(7, 1), receives=BLOCK))
    refused(0xB, disk, disk.submit(nvme.WRITE, namespace=0xFFFFFFFF, words=at(7, 1), sends=one))
    refused(0x1, disk, disk.submit(0x7D, words=at(7, 1), sends=one))
    refused(0x2, disk, disk.submit(nvme.WRITE, words=at(7, 1), sends=one, flags=0))
    refused(0x2, disk, disk.submit(nvme.WRITE, words=at(7, 1), sends=one, fused=1))
    refused(0x2, disk, disk.submit(nvme.WRITE, words=at(7, 1, 2 << 20), sends=one))
    refused(0x285, disk, disk.submit(nvme.COMPARE, words=at(7, 1), sends=one))
    beyond = struct.pack("<IIQ", 0, 2, blocks - 1)
    refused(0x80, disk, disk.submit(nvme.DEALLOCATE, words=struct.pack("<II", 0, 4), sends=beyond))
    refused(0xF, disk, disk.submit(nvme.DEALLOCATE, words=struct.pack("<II", 1, 4), sends=bytes(16)))
    disk.deallocate((7, 1), acts=False)
    disk.verify(7, 1)
    assert disk.read(7, 1) == b"\7" * BLOCK
    disk.deallocate((0, 16), (100, 0), (32, 16), buffer=4096)
    assert disk.read(7, 1) == one
    assert nvme.smart(admin.log(2, 512))["errors"] == earlier + 15
    newest = admin.log(1, 128)
    count = number(newest, 0, 8)
    assert (count, number(newest, 8, 2), number(newest, 12, 2) >> 1 & 0x3FFF) == (earlier + 15, 1, 0xF)
    assert (number(newest, 64, 8), number(newest, 76, 2) >> 1 & 0x3FFF) == (count - 1, 0x80)
    disk.close()
    admin.close()


def test_features_logs_and_aborts(target: Place) -> None:
    admin = Admin(target, SHARED)
    assert admin.set_feature(7, 3 | 3 << 16) == 31 | 31 << 16
    assert (admin.feature(6), admin.feature(6, 1), admin.feature(6, 3)) == (1, 1, 5)
    admin.set_feature(6, 0)
    assert (admin.feature(6), admin.feature(6, 1)) == (0, 1)
    disk = Disk(target, SHARED, number=1, controller=admin.controller)
    refused(0xC, admin, admin.submit(nvme.SET, words=struct.pack("<II", 7, 0)))
    disk.close()
    refused(0x2, admin, admin.submit(nvme.SET, words=struct.pack("<II", 6, 2)))
    refused(0x10D, admin, admin.submit(nvme.SET, words=struct.pack("<II", 0xF | 1 << 31, 1)))
    refused(0x2, admin, admin.submit(nvme.GET, words=struct.pack("<I", 0x55)))
    assert admin.wait(admin.submit(nvme.GET, words=struct.pack("<II", 0x81, 1), receives=16)).data == nvme.HOST_ID
    refused(0x109, admin, admin.submit(nvme.LOG, words=struct.pack("<I", 0x99 | 3 << 16), receives=16))
    refused(0x2, admin, admin.submit(nvme.LOG, words=struct.pack("<IIQ", 2 | 3 << 16, 0, 516), receives=16))
    pages = admin.log(0, 1024)
    listed = [at for at in range(256) if pages[4 * at] & 1]
    assert listed == [0, 1, 2, 3, 4, 5, 6, 9, 0x80, 0x81, 0xC0]
    for page in listed:
        admin.log(page, 512, subject=1)
    assert admin.log(2, 256, offset=256) == admin.log(2, 512)[256:]
    effects = admin.log(5, 4096)
    supported = [at for at in range(256) if effects[1024 + 4 * at] & 1]
    assert supported == [0, 1, 2, 4, 5, 8, 9, 0xC, 0xD, 0xE, 0x11, 0x15, 0x19]
    assert [at for at in supported if effects[1024 + 4 * at] & 2] == [1, 4, 8, 9, 0x19]
    events = [admin.submit(nvme.EVENT) for _ in range(4)]
    refused(0x105, admin, admin.submit(nvme.EVENT))
    assert admin.wait(admin.submit(nvme.ABORT, words=struct.pack("<HH", 0, events[1]))).result == 0
    refused(0x7, admin, events[1])
    assert admin.wait(admin.submit(nvme.ABORT, words=struct.pack("<HH", 1, 9))).result == 1
    admin.wait(admin.submit(nvme.KEEP_ALIVE))
    admin.close()


@pytest.mark.parametrize("clock", ["none", "virtual"])
def test_smart_equals_the_result(clock: str) -> None:
    draw = random.Random(3)
    with served("--clock", clock, "--json", drive=TINY) as (process, place):
        admin = Admin(place, NQN)
        blocks = number(admin.identify(0, 1), 0, 8)
        disk = Disk(place, NQN, number=1, controller=admin.controller)
        zero = nvme.smart(admin.log(2, 512))
        assert (zero["reads"], zero["writes"], zero["units_read"], zero["units_written"]) == (0, 0, 0, 0)
        # More than the drive holds, so that it collects garbage.
        for _ in range(3 * blocks // 64):
            flying = [disk.write_later(draw.randrange(blocks - 8), bytes(8 * BLOCK)) for _ in range(8)]
            for command in flying:
                disk.wait(command)
            disk.read(draw.randrange(blocks), 1)
        disk.flush()
        counted, media = nvme.smart(admin.log(2, 512)), admin.log(0xC0, 512)
        group = admin.log(9, 512, subject=1)
        admin.close()
        disk.close()
        result = result_of(process)
    host, flash = result["host"], result["flash"]
    assert result["gc"]["runs"] > 0
    assert counted["reads"] == result["requests"]["read"]
    assert counted["writes"] == result["requests"]["write"]
    assert counted["units_read"] == -(-host["bytes_read"] // 512_000)
    assert counted["units_written"] == -(-host["bytes_written"] // 512_000)
    assert media[496:512] == bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")
    page = 8192
    assert number(media, 0, 16) == flash["page_programs"] * page
    assert number(media, 16, 16) == flash["bytes_sensed"]
    assert number(group, 80, 16) == -(-flash["page_programs"] * page // 10**9)


def test_a_host_without_keep_alive_is_gone() -> None:
    with served() as (_, place):
        admin = Admin(place, NQN, keep_alive_ms=600)
        assert admin.feature(0xF) == 1000, "seconds are the unit"
        disk = Disk(place, NQN, number=1, controller=admin.controller)
        for _ in range(3):
            time.sleep(0.6)
            admin.wait(admin.submit(nvme.KEEP_ALIVE))
        disk.read(0, 1)
        begin = time.monotonic()
        with pytest.raises((EOFError, ConnectionError)):
            disk.take(1)
        assert 0.8 < time.monotonic() - begin < 10
        with pytest.raises((EOFError, ConnectionError)):
            admin.take(1)


def test_the_end_of_the_admin_queue_ends_all_queues(target: Place) -> None:
    for end in ("close", "disable", "shut down"):
        admin = Admin(target, SHARED)
        disks = [Disk(target, SHARED, number=at, controller=admin.controller) for at in (1, 2)]
        disks[0].write(0, bytes(BLOCK))
        if end == "close":
            admin.close()
        else:
            admin.set_property(0x14, 0x460000 if end == "disable" else 0x464001)
            assert admin.property(0x1C) == (0 if end == "disable" else 9)
        for disk in disks:
            with pytest.raises((EOFError, ConnectionError)):
                disk.take(1)
        admin.close()


@pytest.fixture
def admin(target: Place) -> Admin:
    return Admin(target, SHARED)


@pytest.fixture
def harmed(target: Place, admin: Admin) -> Iterator[None]:
    """Checks that the data and the connection of another host outlast a test."""
    disk = Disk(target, SHARED, number=1, controller=admin.controller)
    content = os.urandom(64 * BLOCK)
    disk.write(500, content)
    disk.zero(600, 64)
    yield
    assert disk.read(500, 64) == content
    assert disk.read(600, 64) == bytes(64 * BLOCK)


def pdu(kind: int, length: int, total: int, rest: bytes, *, offset: int = 0, flags: int = 0) -> bytes:
    """A PDU with any header."""
    return struct.pack("<BBBBI", kind, flags, length, offset, total) + rest


@pytest.mark.parametrize(
    ("sent", "fatal"),
    [
        pytest.param(pdu(0x55, 24, 24, bytes(16)), 1, id="an unknown type"),
        pytest.param(pdu(nvme.IC_REQ, 128, 128, bytes(120)), 2, id="a second ICReq"),
        pytest.param(pdu(nvme.COMMAND, 24, 24, bytes(16)), 1, id="a short header"),
        pytest.param(pdu(nvme.COMMAND, 72, 2**32 - 1, b"", offset=72), 1, id="a huge PDU"),
        pytest.param(pdu(nvme.COMMAND, 72, 72, bytes(64), flags=1), 1, id="a digest that was not agreed"),
        pytest.param(pdu(nvme.COMMAND, 72, 200, bytes(192), offset=8), 1, id="data within the header"),
        pytest.param(pdu(nvme.H2C_DATA, 24, 24 + BLOCK, bytes(16), offset=24), 1, id="data for no R2T"),
    ],
)
@pytest.mark.usefixtures("harmed")
def test_malformed_pdus_end_their_connection(target: Place, admin: Admin, sent: bytes, fatal: int) -> None:
    other = Disk(target, SHARED, number=9, controller=admin.controller)
    other.socket.sendall(sent)
    with pytest.raises(TerminatedError) as ended:
        other.receive()
    assert ended.value.fatal == fatal


@pytest.mark.parametrize(
    ("change", "fatal"),
    [
        pytest.param((0, 0, BLOCK, 0), 4, id="out of order"),
        pytest.param((0, 0, 0, 64 * BLOCK), 4, id="too much"),
        pytest.param((1, 0, 0, 0), 1, id="another command"),
        pytest.param((0, 1, 0, 0), 1, id="another tag"),
    ],
)
@pytest.mark.usefixtures("harmed")
def test_wrong_data_ends_its_connection(target: Place, admin: Admin, change: tuple[int, ...], fatal: int) -> None:
    other = Disk(target, SHARED, number=9, controller=admin.controller)
    command = other.submit(nvme.WRITE, words=struct.pack("<QI", 600, 63), named=64 * BLOCK)
    assert other.take(8)[0] == nvme.R2T
    asked, tag, offset, count = struct.unpack("<HHII4x", other.take(16))
    assert (asked, offset, count) == (command, 0, 64 * BLOCK)
    fields = [known + more for known, more in zip((command, tag, 0, BLOCK), change, strict=True)]
    other.send(nvme.H2C_DATA, struct.pack("<HHII4x", *fields), bytes(fields[3]))
    with pytest.raises(TerminatedError) as ended:
        other.receive()
    assert ended.value.fatal == fatal


@pytest.mark.usefixtures("harmed")
def test_a_queue_has_no_more_commands_than_entries(target: Place, admin: Admin) -> None:
    flooding = Disk(target, SHARED, number=9, controller=admin.controller, entries=4)
    for _ in range(5):
        flooding.submit(nvme.WRITE, words=struct.pack("<QI", 600, 63), named=64 * BLOCK)
    kinds: list[int] = []
    while not kinds or kinds[-1] != nvme.C2H_TERM:
        kinds.append(flooding.take(8)[0])
        flooding.take(16)
    assert kinds == [nvme.R2T] * 4 + [nvme.C2H_TERM]


@pytest.mark.usefixtures("harmed")
def test_noise_and_wrong_digests_write_nothing(target: Place, admin: Admin) -> None:
    draw = random.Random(5)
    for turn in range(60):
        # The number of a closed queue may still be in use.
        other = Disk(target, SHARED, number=9 + turn % 20, controller=admin.controller)
        noise = bytearray(pdu(nvme.COMMAND, 72, 72, draw.randbytes(64)))
        noise[9] = 0x40
        for _ in range(draw.randrange(4)):
            noise[draw.randrange(len(noise))] = draw.randrange(256)
        # Noise may be a valid command, so those that write are left out.
        if noise[8] in (nvme.WRITE, nvme.ZEROES, nvme.DEALLOCATE):
            noise[8] = nvme.READ
        other.socket.sendall(noise)
        other.close()
    other = Disk(target, SHARED, number=30, controller=admin.controller, header_digest=True, data_digest=True)
    entry = struct.pack("<BBHIQQQI3xB", nvme.WRITE, 0x40, 77, 1, 0, 0, 0, BLOCK, 1) + struct.pack("<QI12x", 600, 0)
    head = pdu(nvme.COMMAND, 72, 76 + BLOCK + 4, entry, offset=76, flags=3)
    right, data = nvme.crc32c(head), b"x" * BLOCK
    other.socket.sendall(head + struct.pack("<I", right) + data + struct.pack("<I", nvme.crc32c(data) ^ 1))
    other.flights[77] = nvme.Flight(wanted=0)
    refused(0x22, other, 77)
    other.socket.sendall(head + struct.pack("<I", right ^ 1) + data + struct.pack("<I", nvme.crc32c(data)))
    with pytest.raises(TerminatedError) as ended:
        other.receive()
    assert ended.value.fatal == 3


def test_a_power_cut_ends_the_association() -> None:
    with served("--set", "faults.power_cut_at=300", "--json") as (process, place):
        content: dict[int, bytes] = {}
        ended = 0
        for attempt in range(2):
            admin = Admin(place, NQN)
            disk = Disk(place, NQN, number=1, controller=admin.controller)
            try:
                for at in range(400):
                    data = struct.pack("<II", attempt, at) * (BLOCK // 8)
                    disk.write(at, data, nvme.FUA)
                    content[at] = data
            except (StatusError, EOFError, ConnectionError):
                ended += 1
        assert ended == 1
        for at in range(400):
            assert disk.read(at, 1) == content[at]
        assert nvme.smart(admin.log(2, 512))["unsafe"] == 1
        result = result_of(process)
    assert result["power"]["cuts"] == 1


def test_a_worn_out_drive_reports_an_event() -> None:
    worn = ["--set", "faults.wear_out=true", "--set", "part.endurance=10", "--set", "part.endurance_deviation=10%"]
    with served(*worn, drive=TINY) as (_, place):
        admin = Admin(place, NQN)
        blocks = number(admin.identify(0, 1), 0, 8)
        disk = Disk(place, NQN, number=1, controller=admin.controller)
        # A warning of few spare blocks would come first.
        admin.set_feature(0xB, 0b1100)
        event = admin.submit(nvme.EVENT)
        status = 0
        for turn in range(20 * blocks):
            status = disk.finish(disk.write_later(turn * 56 % (blocks - 8), bytes(8 * BLOCK))).status
            if status:
                break
        assert status == 0x20
        assert admin.wait(event).result == 1 | 2 << 16
        assert nvme.smart(admin.log(2, 512))["warning"] & 8
        disk.read(0, 1)
        refused(0x20, disk, disk.write_later(0, bytes(BLOCK)))


def test_only_listed_hosts_connect() -> None:
    with served("--host", nvme.HOST, "--once", "--json") as (process, place):
        with pytest.raises(StatusError, match="0x184"):
            Admin(place, NQN, host="nqn.2026-11.org.example:stranger")
        admin = Admin(place, NQN)
        admin.close()
        printed, _ = process.communicate(timeout=30)
    assert json.loads(printed)["requests"]["read"] == 0


def test_a_record_plays_the_same_operations(palimpsest: Command, tmp_path: Path) -> None:
    record = str(tmp_path / "run.parquet")
    with served("--record", record, "--json") as (process, place):
        admin = Admin(place, NQN)
        disk = Disk(place, NQN, number=1, controller=admin.controller)
        for turn in range(200):
            disk.write(turn * 37 % 91, bytes(3 * BLOCK))
            disk.read(turn * 51 % 80, 1)
        disk.deallocate((0, 32))
        disk.flush()
        live = result_of(process)
    options = ["--workload", record, "--precondition", "none", "--fidelity", "count", "--payload", "tag", "--json"]
    played = palimpsest("run", *SMALL[:-2], *options)
    assert played.returncode == 0, played.stderr
    again = json.loads(played.stdout)
    for figures in ("requests", "host", "flash", "gc", "write_amplification"):
        assert again[figures] == live[figures], figures


def test_python_serves_while_a_command_runs() -> None:
    said: list[str] = []
    overrides = {"ssd.blocks_per_plane": 64}
    result = ps.serve_nvme("echo $uri >&2", ssd="mga-8k", nqn=NQN, say=said.append, overrides=overrides, seed=4)
    assert (result["workload"], result["seed"], result["requests"]["write"]) == ("nvme", 4, 0)
    assert said[1].startswith("nvme connect -t tcp -a 127.0.0.1 -s ")
    with pytest.raises(ps.Error, match="status 5"):
        ps.serve_nvme("exit 5", ssd="mga-8k", overrides=overrides)
    with pytest.raises(ps.InputError, match="block"):
        ps.serve_nvme("true", ssd="mga-8k", block=1024)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--nqn", "drive"], "--nqn: 'drive' is no name of a subsystem or host"),
        (["--nqn", nvme.DISCOVERY], "nqn.2014-08.org.nvmexpress.discovery"),
        *((["--discover", f"{NQN}@{place}"], "is no subsystem; expected one such as") for place in WRONG_PLACES),
        (["--discover", f"{nvme.DISCOVERY}@127.0.0.1:4420"], "nqn.2014-08.org.nvmexpress.discovery"),
        (["--listen", "unix:socket"], "--listen unix:socket: NVMe/TCP has TCP only; expected HOST:PORT"),
        (["--block", "1024"], "1024"),
        (["--image-sync"], "there is no image"),
    ],
)
def test_a_mistake_is_one_line(palimpsest: Command, options: list[str], named: str) -> None:
    done = palimpsest("nvme", *SMALL[:-2], *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert named in done.stderr


def test_examples_of_the_help(palimpsest: Command, tmp_path: Path) -> None:
    """Each with a free port, and with a command that ends the service."""
    found = examples(palimpsest("nvme", "--help").stdout)
    assert len(found) > 3
    for example in found:
        options = re.sub(r"--(out|record|page|image) \S+", "", example.removeprefix("palimpsest nvme")).split()
        run = ["--listen", "127.0.0.1:0", "--run", "echo $uri"]
        done = palimpsest("nvme", *options, *run, cwd=tmp_path)
        assert done.returncode == 0, f"{example}\n{done.stderr}"
        assert "nvme+tcp://127.0.0.1:" in done.stdout + done.stderr
