"""Zones over NVMe/TCP: commands, states and statuses, by an independent initiator against a model of the host."""

import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import nvme_initiator as nvme
import nvme_zones as zns
from conftest import Command
from nvme_initiator import Admin, Queue, StatusError, number
from nvme_target import NQN, Place, refused, result_of, served
from nvme_zones import Zoned

pytestmark = pytest.mark.contract

BLOCK = 4096
DRIVE = [
    "--ssd", "mga-8k", "--ftl", "zns", "--nqn", NQN, "--set", "ssd.channels=4", "--set", "ssd.planes_per_die=1",
    "--set", "ssd.blocks_per_plane=16", "--set", "part.pages_per_block=16", "--set", "zns.zone_dies=1",
    "--set", "zns.max_open=3", "--set", "zns.max_active=5",
]  # fmt: skip
HOLES = [*DRIVE, "--set", "zns.zone_capacity=96KiB", "--set", "zns.zone_size=128KiB"]
"""Zones of 32 blocks, 24 of which can be written."""
AREAS = [
    *DRIVE, "--set", "buffer.ack=buffer", "--set", "buffer.flush=free", "--set", "zns.zrwa=32KiB",
    "--set", "zns.zrwa_zones=2", "--set", "zns.zrwa_granularity=8KiB",
]  # fmt: skip
SIZE, CAPACITY = 32, 24


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Closes the connections of a test."""
    yield
    while Queue.opened:
        Queue.opened.pop().close()


def connected(place: Place) -> tuple[Admin, Zoned]:
    admin = Admin(place, NQN, enable=False)
    # All command sets of the controller.
    admin.set_property(0x14, 0x460061)
    assert admin.property(0x1C) == 1
    return admin, Zoned(place, NQN, number=1, controller=admin.controller)


def content(*name: int, blocks: int = 1) -> bytes:
    return random.Random(repr(name)).randbytes(blocks * BLOCK)


def test_identify_and_logs_name_the_zones() -> None:
    with served(drive=HOLES) as (_, place):
        admin, disk = connected(place)
        namespace = admin.identify(0, 1)
        blocks = number(namespace, 0, 8)
        assert (namespace[25], namespace[26] & 15, number(namespace, 128, 4)) == (0, 0, 12 << 16)
        assert admin.identify(3, 1)[40:45] == b"\4\1\0\0\2"
        assert number(admin.identify(0x1C), 0, 8) == 0b101
        assert zns.limits(admin) == {
            "support": 1, "active": 4, "open": 2, "areas": 0, "granularity": 0, "area": 0, "commits": 0,
            "size": SIZE, "extension": 0,
        }  # fmt: skip
        assert blocks % SIZE == 0
        assert admin.identify(5, 1, 0) == bytes(4096)
        assert admin.identify(6, 0, 2)[0] == admin.identify(1)[77], "an append may be as long as a transfer"
        assert admin.identify(6, 0, 0)[1] == admin.identify(1)[77], "and so may zeroes"
        for what in (7, 0x1A):
            assert admin.identify(what, 0, 2)[:8] == struct.pack("<II", 1, 0)
            assert admin.identify(what, 0, 0) == bytes(4096)
            command = admin.submit(nvme.IDENTIFY, namespace=0, words=struct.pack("<II", what, 1 << 24), receives=4096)
            refused(2, admin, command)
        assert admin.identify(1)[95] & 1 << 3, "zones that change are an event"
        for command_set, opcodes in ((0, {}), (2, {zns.SEND: 3, zns.RECEIVE: 1, zns.APPEND: 3})):
            words = struct.pack("<IIQI", 5 | 1023 << 16, 0, 0, command_set << 24)
            effects = admin.wait(admin.submit(nvme.LOG, words=words, receives=4096)).data
            found = {at: effects[1024 + 4 * at] for at in range(0x70, 256) if effects[1024 + 4 * at]}
            assert found == opcodes
        assert admin.log(0, 1024)[4 * 0xBF] == 1
        assert zns.changed(admin) == (0, [])
        assert admin.feature(0x19) == 0
        refused(0x12B, admin, admin.submit(nvme.SET, words=struct.pack("<II", 0x19, 1)))
        count, zones = disk.report()
        assert count == len(zones) == blocks // SIZE
        assert zones == [zns.Zone(zns.EMPTY, 0, CAPACITY, at * SIZE, at * SIZE) for at in range(count)]


def test_writes_follow_the_pointer() -> None:
    with served("--json", drive=HOLES) as (process, place):
        _, disk = connected(place)
        disk.write(0, content(1, blocks=5))
        assert disk.zone(0) == zns.Zone(zns.IMPLICIT, 0, CAPACITY, 0, 5)
        refused(zns.INVALID_WRITE, disk, disk.write_later(4, content(2)))
        refused(zns.INVALID_WRITE, disk, disk.write_later(6, content(2)))
        refused(zns.BOUNDARY, disk, disk.write_later(5, content(2, blocks=20)))
        assert disk.append(0, content(3, blocks=2)) == 5
        refused(2, disk, disk.append_later(1, content(3)))
        refused(2, disk, disk.append_later(0, content(3, blocks=257)))
        assert disk.append(SIZE, content(4)) == SIZE
        # Appends in flight together have places of their own.
        flying = {disk.append_later(SIZE, content(5, at)): at for at in range(10)}
        places = {disk.wait(command).result: at for command, at in flying.items()}
        assert sorted(places) == list(range(SIZE + 1, SIZE + 11))
        for place_of, at in places.items():
            assert disk.read(place_of, 1) == content(5, at)
        disk.zero(7, 3)
        refused(zns.INVALID_WRITE, disk, disk.submit(nvme.ZEROES, words=struct.pack("<QI", 7, 2)))
        disk.write(10, content(6, blocks=14), nvme.FUA)
        assert disk.zone(0) == zns.Zone(zns.FULL, 0, CAPACITY, 0, zns.NOWHERE)
        refused(zns.IS_FULL, disk, disk.write_later(24, content(7)))
        whole = content(1, blocks=5) + content(3, blocks=2) + bytes(3 * BLOCK) + content(6, blocks=14)
        assert disk.read(0, SIZE + 1) == whole + bytes(8 * BLOCK) + content(4), "reads cross zones"
        disk.deallocate((0, SIZE))
        assert disk.read(0, 24) == whole, "only a reset drops data"
        disk.verify(0, 24)
        disk.compare(0, whole)
        result = result_of(process)
    errors = {name: times for name, times in result["zns"]["errors"].items() if times}
    assert errors == {"zone_invalid_write": 3, "zone_boundary_error": 1, "zone_is_full": 1}
    assert result["zns"]["appends"] == 12
    assert result["requests"]["write"] == 15
    assert result["host"]["bytes_written"] == (24 + 11) * BLOCK


def test_actions_on_zones() -> None:
    with served("--json", drive=DRIVE) as (process, place):
        _, disk = connected(place)
        zones = disk.report()[0]
        disk.send_zone(zns.OPEN)
        assert disk.zone(5).state == zns.EXPLICIT, "any block names the zone of a report"
        disk.send_zone(zns.CLOSE)
        assert disk.zone(0).state == zns.CLOSED
        disk.write(SIZE, content(1))
        disk.send_zone(zns.FINISH, SIZE)
        assert disk.zone(SIZE).pointer == zns.NOWHERE
        assert disk.read(SIZE, SIZE) == content(1) + bytes(31 * BLOCK)
        refused(zns.INVALID_TRANSITION, disk, disk.send_later(zns.OPEN, SIZE))
        refused(zns.INVALID_TRANSITION, disk, disk.send_later(zns.CLOSE, 2 * SIZE))
        refused(zns.INVALID_TRANSITION, disk, disk.send_later(zns.OFFLINE, 2 * SIZE))
        disk.send_zone(zns.RESET, SIZE)
        assert disk.zone(SIZE) == zns.Zone(zns.EMPTY, 0, SIZE, SIZE, SIZE)
        assert disk.read(SIZE, 1) == bytes(BLOCK)
        refused(2, disk, disk.send_later(zns.RESET, 1))
        refused(2, disk, disk.send_later(zns.OPEN, 0, zns.OPTION))
        for action in (0, 6, 0x10, 0x12, 0xFF):
            refused(2, disk, disk.send_later(action))
        refused(0x80, disk, disk.send_later(zns.RESET, zones * SIZE))
        refused(0xB, disk, disk.submit(zns.SEND, namespace=65, words=struct.pack("<QII", 0, 0, zns.OPEN)))
        # Three open and five active zones.
        for at in (2, 3):
            disk.send_zone(zns.OPEN, at * SIZE)
        disk.write(4 * SIZE, content(2))
        disk.write(5 * SIZE, content(2))
        assert disk.zone(4 * SIZE).state == zns.CLOSED, "the drive closes it for zone 5"
        refused(zns.TOO_MANY_ACTIVE, disk, disk.write_later(6 * SIZE, content(2)))
        refused(zns.TOO_MANY_ACTIVE, disk, disk.send_later(zns.OPEN, 6 * SIZE))
        disk.send_zone(zns.OPEN, 5 * SIZE)
        refused(zns.TOO_MANY_OPEN, disk, disk.append_later(0, content(2)))
        states = [zone.state for zone in disk.report()[1][:7]]
        assert states == [zns.CLOSED, zns.EMPTY, *[zns.EXPLICIT] * 2, zns.CLOSED, zns.EXPLICIT, zns.EMPTY]
        refused(zns.TOO_MANY_OPEN, disk, disk.send_later(zns.OPEN, 0, zns.ALL))
        disk.send_zone(zns.CLOSE, 77, zns.ALL)
        assert [zone.state for zone in disk.report(only=4)[1]] == [zns.CLOSED] * 5
        disk.send_zone(zns.RESET, 0)
        disk.send_zone(zns.RESET, 2 * SIZE)
        disk.send_zone(zns.OPEN, 0, zns.ALL)
        assert [zone.start for zone in disk.report(only=3)[1]] == [3 * SIZE, 4 * SIZE, 5 * SIZE]
        disk.send_zone(zns.OFFLINE, 0, zns.ALL)
        disk.send_zone(zns.FINISH, 0, zns.ALL)
        assert disk.report(only=5)[0] == 3
        disk.send_zone(zns.RESET, 0, zns.ALL)
        assert disk.report(only=1)[0] == zones
        result = result_of(process)
    assert (result["zns"]["finishes"], result["zns"]["states"]["empty"]) == (4, zones)


def test_reports_have_filters_and_parts() -> None:
    with served(drive=DRIVE) as (_, place):
        _, disk = connected(place)
        zones = disk.report()[0]
        for at in (3, 5, 6):
            disk.write(at * SIZE, content(at))
        disk.send_zone(zns.FINISH, 5 * SIZE)
        assert disk.report(room=4) == (zones, disk.report()[1][:4])
        assert disk.report(room=4, flags=zns.PARTIAL)[0] == 4
        assert disk.report(room=100, flags=zns.PARTIAL)[0] == zones
        assert [zone.start for zone in disk.report(4 * SIZE + 7)[1]] == [at * SIZE for at in range(4, zones)]
        assert [zone.start for zone in disk.report(only=2)[1]] == [3 * SIZE, 6 * SIZE]
        assert disk.report(4 * SIZE, only=2, room=0)[0] == 1
        assert (disk.report(only=5)[0], disk.report(only=6)[0], disk.report(only=7)[0]) == (1, 0, 0)
        for wrong in (1, 2, 0xFF, 8 << 8):
            refused(2, disk, disk.report_later(0, 4096, wrong))
        refused(2, disk, disk.report_later(0, 32))
        refused(0x80, disk, disk.report_later(zones * SIZE, 4096))
        words = struct.pack("<QII", 0, 1023, 0)
        refused(0xF, disk, disk.submit(zns.RECEIVE, words=words, receives=4096, named=512))
        refused(0xB, disk, disk.submit(zns.RECEIVE, namespace=65, words=words, receives=4096))


def test_a_host_of_one_command_set_has_no_zones() -> None:
    with served(drive=DRIVE) as (_, place):
        admin = Admin(place, NQN)
        disk = Zoned(place, NQN, number=1, controller=admin.controller)
        refused(1, disk, disk.send_later(zns.OPEN))
        refused(1, disk, disk.report_later(0, 4096))
        refused(1, disk, disk.append_later(0, bytes(BLOCK)))


def test_random_write_areas() -> None:
    with served("--json", drive=AREAS) as (process, place):
        admin, disk = connected(place)
        known = zns.limits(admin)
        assert [known[name] for name in ("support", "areas", "granularity", "area", "commits")] == [3, 2, 2, 8, 1]
        disk.send_zone(zns.OPEN, 0, zns.OPTION)
        assert disk.zone(0).attributes == 1 << 3
        disk.write(4, content(1, blocks=2))
        disk.write(0, content(2, blocks=6))
        assert (disk.zone(0).pointer, disk.read(0, 8)) == (0, content(2, blocks=6) + bytes(2 * BLOCK))
        disk.send_zone(zns.COMMIT, 3)
        assert disk.zone(0).pointer == 4
        refused(zns.INVALID_WRITE, disk, disk.write_later(3, content(3)))
        refused(2, disk, disk.send_later(zns.COMMIT, 3))
        refused(2, disk, disk.send_later(zns.COMMIT, 4))
        refused(2, disk, disk.send_later(zns.COMMIT, 13))
        refused(2, disk, disk.send_later(zns.COMMIT, 5, zns.ALL))
        disk.write(12, content(4, blocks=2))
        assert disk.zone(0).pointer == 6, "a write behind the area commits what makes room"
        refused(zns.INVALID_OPERATION, disk, disk.append_later(0, content(5)))
        refused(zns.INVALID_OPERATION, disk, disk.send_later(zns.COMMIT, SIZE + 1))
        refused(2, disk, disk.send_later(zns.OPEN, 0, zns.OPTION | zns.ALL))
        disk.send_zone(zns.OPEN, SIZE, zns.OPTION)
        refused(zns.NO_AREA, disk, disk.send_later(zns.OPEN, 2 * SIZE, zns.OPTION))
        disk.send_zone(zns.FINISH, 0)
        expected = content(2, blocks=6) + bytes(6 * BLOCK) + content(4, blocks=2) + bytes(18 * BLOCK)
        assert (disk.zone(0).state, disk.zone(0).attributes, disk.read(0, SIZE)) == (zns.FULL, 0, expected)
        result = result_of(process)["zns"]["zrwa"]
    assert (result["explicit_commits"], result["implicit_commits"]) == (1, 1)
    assert result["overwritten_bytes"] == 2 * BLOCK


class Host:
    """The host's view of zones: contents up to the write pointers."""

    def __init__(self, zones: int) -> None:
        self.written = [b""] * zones

    def check(self, disk: Zoned, flushed: list[bytes] | None = None) -> None:
        """Reads all zones. After a cut a zone holds at least the flushed data, and a beginning of the written data."""
        for at, zone in enumerate(disk.report()[1]):
            blocks = SIZE if zone.pointer == zns.NOWHERE else zone.pointer - zone.start
            found = disk.read(zone.start, blocks) if blocks else b""
            expected = self.written[at]
            if flushed is None:
                assert found[: len(expected)] == expected, f"zone {at}"
                assert zone.state == zns.FULL or len(found) == len(expected), f"zone {at}"
            else:
                held = expected[: len(found)]
                assert found[: len(held)] == held, f"zone {at}"
                assert len(found) >= len(flushed[at]), f"zone {at} lost flushed data"
                assert not any(found[len(held) :]), f"zone {at}"
            self.written[at] = found


@pytest.mark.parametrize("clock", ["none", "virtual", "paced"])
def test_random_commands_on_every_clock(clock: str) -> None:
    draw = random.Random(clock)
    with served("--clock", clock, "--json", drive=DRIVE) as (process, place):
        _, disk = connected(place)
        zones = disk.report()[0]
        host, writes, statuses = Host(zones), 0, []
        for _ in range(60 if clock == "paced" else 300):
            at = draw.randrange(6)
            data = draw.randbytes(draw.randrange(1, 9) * BLOCK)
            try:
                match draw.randrange(10):
                    case 0:
                        disk.send_zone(zns.RESET, at * SIZE)
                        host.written[at] = b""
                    case 1:
                        disk.send_zone(draw.choice([zns.OPEN, zns.CLOSE, zns.FINISH]), at * SIZE)
                    case 2:
                        disk.flush()
                    case 3 | 4:
                        # Behind a full zone is the next one.
                        disk.write(at * SIZE + min(len(host.written[at]) // BLOCK, SIZE - 1), data)
                        host.written[at] += data
                        writes += 1
                    case _:
                        placed = disk.append(at * SIZE, data)
                        assert placed == at * SIZE + len(host.written[at]) // BLOCK
                        host.written[at] += data
                        writes += 1
            except StatusError as error:
                statuses.append(error.status)
        host.check(disk)
        result = result_of(process)
    assert result["requests"]["write"] == writes > 0
    assert sum(result["zns"]["errors"].values()) == len(statuses) > 0
    assert set(statuses) <= {
        zns.BOUNDARY, zns.IS_FULL, zns.INVALID_TRANSITION, zns.TOO_MANY_ACTIVE, zns.TOO_MANY_OPEN,
    }  # fmt: skip


def test_a_power_cut_closes_open_zones() -> None:
    with served("--set", "faults.power_cut_at=40", "--json", drive=DRIVE) as (process, place):
        host, flushed = Host(0), [b""]
        ended = 0
        for _ in range(2):
            _, disk = connected(place)
            if not ended:
                host, flushed = Host(disk.report()[0]), []
                flushed = list(host.written)
            else:
                states = {zone.state for zone in disk.report()[1]}
                assert not states & {zns.IMPLICIT, zns.EXPLICIT}
                host.check(disk, flushed)
            try:
                for turn in range(60):
                    at = turn % 4
                    if disk.zone(at * SIZE).state == zns.FULL:
                        continue
                    data = content(ended, turn, blocks=3)
                    if len(host.written[at]) + len(data) > SIZE * BLOCK:
                        continue
                    host.written[at] += data
                    disk.append(at * SIZE, data)
                    if turn % 5 == 0:
                        disk.flush()
                        flushed = list(host.written)
            except (StatusError, EOFError, ConnectionError):
                ended += 1
        assert ended == 1
        result = result_of(process)
    assert result["power"]["cuts"] == 1


def test_a_killed_target_keeps_zones_in_its_image(tmp_path: Path) -> None:
    draw, image = random.Random(7), str(tmp_path / "zones.pal")
    host: Host | None = None
    flushed: list[bytes] = []
    for _ in range(4):
        with served("--image", image, drive=DRIVE) as (process, place):
            _, disk = connected(place)
            if host is None:
                host = Host(disk.report()[0])
            else:
                host.check(disk, flushed)
            for _ in range(40):
                at = draw.randrange(4)
                data = draw.randbytes(draw.randrange(1, 5) * BLOCK)
                if disk.zone(at * SIZE).state == zns.FULL or len(host.written[at]) + len(data) > SIZE * BLOCK:
                    disk.send_zone(zns.RESET, at * SIZE)
                    disk.flush()
                    host.written[at] = b""
                    flushed = list(host.written)
                host.written[at] += data
                disk.append(at * SIZE, data)
                if draw.randrange(3) == 0:
                    disk.flush()
                    flushed = list(host.written)
            disk.flush()
            flushed = list(host.written)
            for at in range(4):
                if len(host.written[at]) < SIZE * BLOCK and disk.zone(at * SIZE).state != zns.FULL:
                    data = draw.randbytes(BLOCK)
                    host.written[at] += data
                    disk.append_later(at * SIZE, data)
            process.kill()
            process.wait(timeout=30)


@pytest.mark.parametrize("clock", ["none", "virtual"])
def test_zones_of_a_failed_die_are_an_event(clock: str) -> None:
    with served("--set", "faults.die_failure=at:60@1", "--clock", clock, "--json", drive=DRIVE) as (process, place):
        admin, disk = connected(place)
        quiet, _ = connected(place)
        admin.set_feature(0xB, 0x1FF | 1 << 27)
        event, other = admin.submit(nvme.EVENT), quiet.submit(nvme.EVENT)
        statuses = set()
        for turn in range(200):
            at = turn % 4 * SIZE
            done = disk.finish(disk.append_later(at, content(turn, blocks=2)))
            statuses.add(done.status)
            if done.status == zns.IS_FULL:
                disk.send_zone(zns.RESET, at)
        assert zns.IS_OFFLINE in statuses
        done = admin.wait(event)
        assert (done.result & 0xFFFFFFFF, done.result >> 32) == (2 | 0xEF << 8 | 0xBF << 16, 1)
        lost = [zone.start for zone in disk.report(only=7)[1]]
        assert lost
        assert all(disk.zone(at).pointer == zns.NOWHERE for at in lost)
        assert zns.changed(admin, retain=True) == zns.changed(admin) == (len(lost), lost)
        assert zns.changed(admin) == (0, [])
        assert zns.changed(quiet) == (len(lost), lost), "each host has a list of its own"
        refused(zns.IS_OFFLINE, disk, disk.read_later(lost[0], 1))
        refused(zns.INVALID_TRANSITION, disk, disk.send_later(zns.RESET, lost[0]))
        words = struct.pack("<II", 0xBF | 1023 << 16, 0)
        refused(2, admin, admin.submit(nvme.LOG, namespace=0xFFFFFFFF, words=words, receives=4096))
        assert quiet.wait(quiet.submit(nvme.ABORT, words=struct.pack("<HH", 0, other))).result == 0
        result = result_of(process)["zns"]
    assert result["changed_zones"]["zones"] == [at // SIZE for at in lost]
    assert result["states"]["offline"] == len(lost)


def test_a_record_plays_the_same_commands(palimpsest: Command, tmp_path: Path) -> None:
    record = str(tmp_path / "run.parquet")
    with served("--record", record, "--json", drive=DRIVE) as (process, place):
        _, disk = connected(place)
        disk.append(0, content(1, blocks=3))
        disk.write(3, content(2))
        disk.send_zone(zns.OPEN, SIZE)
        disk.send_zone(zns.FINISH, 0)
        disk.send_zone(zns.RESET, 0)
        disk.flush()
        live = result_of(process)
    options = ["--workload", record, "--precondition", "none", "--fidelity", "count", "--payload", "tag", "--json"]
    drive = [option for option in DRIVE if option not in ("--nqn", NQN)]
    played = palimpsest("run", *drive, *options)
    assert played.returncode == 0, played.stderr
    again = json.loads(played.stdout)
    for figures in ("requests", "host", "flash", "zns"):
        assert again[figures] == live[figures], figures


@pytest.mark.parametrize(
    ("command", "options", "named"),
    [
        ("nvme", ["--block", "512"], "error: --block 512: these zones are written in blocks of 4096 bytes; expected"),
        ("serve", [], "error: --ftl: these clients send no commands of zones; expected a layer without zones, or"),
        ("nvme", ["--image", "new.pal", "--set", "zns.zrwa=32KiB"], "zns.zrwa"),
    ],
)
def test_a_mistake_is_one_line(
    palimpsest: Command, tmp_path: Path, command: str, options: list[str], named: str
) -> None:
    drive = [option for option in DRIVE if option not in ("--nqn", NQN)]
    done = palimpsest(command, *drive, "--listen", "127.0.0.1:0", *options, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert named in done.stderr
