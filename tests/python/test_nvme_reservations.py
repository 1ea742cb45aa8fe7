"""Reservations of the NVMe target, by hosts of an independent initiator."""

import struct
from collections.abc import Iterator
from typing import Any

import pytest

import nvme_initiator as nvme
from nvme_initiator import Admin, Disk, number
from nvme_target import BLOCK, NQN, Place, closed, refused, served, write_until_power_fails  # noqa: F401

pytestmark = pytest.mark.contract

CONFLICT = 0x83
EVENT = 6 | 0x80 << 16
PREEMPTED, RELEASED, CLEARED = 1, 2, 3


class Host:
    """A host with a key."""

    def __init__(self, place: Place, number: int) -> None:
        self.id, self.key, self.place = bytes([number]) * 16, number, place
        self.connect()

    def connect(self) -> None:
        who: dict[str, Any] = {"host": f"nqn.2026-11.org.example:host{self.key}", "host_id": self.id}
        self.admin = Admin(self.place, NQN, **who)
        self.disk = Disk(self.place, NQN, number=1, controller=self.admin.controller, **who)

    def does(self, status: int, opcode: int, what: int, *keys: int) -> None:
        """Sends a reservation command, whose status must be `status`."""
        data = struct.pack(f"<{len(keys)}Q", *keys)
        done = self.disk.finish(self.disk.submit(opcode, words=struct.pack("<I", what), sends=data))
        assert done.status == status, hex(done.status)

    def register(self, status: int = 0, new: int | None = None, flags: int = 0) -> None:
        self.does(status, nvme.REGISTER, flags, 0, self.key if new is None else new)

    def unregister(self, status: int = 0, key: int | None = None, flags: int = 0) -> None:
        self.does(status, nvme.REGISTER, 1 | flags, self.key if key is None else key, 0)

    def acquire(self, kind: int, status: int = 0) -> None:
        self.does(status, nvme.ACQUIRE, kind << 8, self.key, 0)

    def preempt(self, kind: int, key: int, status: int = 0, action: int = 1) -> None:
        self.does(status, nvme.ACQUIRE, action | kind << 8, self.key, key)

    def release(self, kind: int, status: int = 0) -> None:
        self.does(status, nvme.RELEASE, kind << 8, self.key)

    def clear(self, status: int = 0) -> None:
        self.does(status, nvme.RELEASE, 1, self.key)

    def report(self) -> tuple[int, int, dict[bytes, tuple[int, bool, int]]]:
        """The type, whether reservations persist, and key, holder and controller by host."""
        words = struct.pack("<II", 4096 // 4 - 1, 1)
        page = self.disk.wait(self.disk.submit(nvme.REPORT, words=words, receives=4096)).data
        entries = [page[at : at + 64] for at in range(64, 64 + 64 * number(page, 5, 2), 64)]
        hosts = {entry[16:32]: (number(entry, 8, 8), bool(entry[2]), number(entry, 0, 2)) for entry in entries}
        return page[4], page[9], hosts

    def generation(self) -> int:
        words = struct.pack("<II", 15, 1)
        return number(self.disk.wait(self.disk.submit(nvme.REPORT, words=words, receives=64)).data, 0, 4)

    def notice(self, event: int) -> int:
        """Waits for an event, and reads the notice."""
        assert self.admin.wait(event).result == EVENT
        page = self.admin.log(0x80, 64)
        assert number(page, 12, 4) == 1
        return page[8]


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    with served() as (_, place):
        yield [Host(place, number) for number in (1, 2, 3)]


def test_access_by_type_and_host(hosts: list[Host]) -> None:
    holder, registrant, stranger = hosts
    one = struct.pack("<QI", 0, 0)
    zero = bytes(BLOCK)
    reads: list[tuple[int, dict[str, Any]]] = [
        (nvme.READ, {"receives": BLOCK}),
        (nvme.COMPARE, {"sends": zero}),
        (nvme.VERIFY, {}),
    ]
    writes: list[tuple[int, dict[str, Any]]] = [
        (nvme.WRITE, {"sends": zero}), (nvme.ZEROES, {}), (nvme.FLUSH, {}), (nvme.UNCORRECTABLE, {}),
        (nvme.COPY, {"words": struct.pack("<QI", 9, 0), "sends": struct.pack("<8xQH14x", 5, 0)}),
        (nvme.DEALLOCATE, {"words": struct.pack("<II", 0, 4), "sends": struct.pack("<IIQ", 0, 8, 0)}),
    ]  # fmt: skip
    for kind in range(1, 7):
        holder.register()
        registrant.register()
        holder.acquire(kind)
        for host, has_key, holds in ((holder, True, True), (registrant, True, False), (stranger, False, False)):
            may = holds or (has_key and kind >= 3)
            for commands, allowed in ((reads, may or kind % 2 == 1), (writes, may)):
                for opcode, more in commands:
                    done = host.disk.finish(host.disk.submit(opcode, **{"words": one, **more}))
                    assert done.status == (0 if allowed else CONFLICT), (kind, opcode, host.key, hex(done.status))
            formatted = host.admin.submit(nvme.FORMAT, words=struct.pack("<I", 1))
            assert host.admin.finish(formatted).status == (0 if may else CONFLICT)
        holder.clear()


def test_registrations_and_the_report(hosts: list[Host]) -> None:
    first, second, _ = hosts
    first.acquire(1, CONFLICT)
    first.register(2, new=0)
    before = first.generation()
    first.register()
    first.register()
    first.register(CONFLICT, new=77)
    second.register(flags=3 << 30)
    assert first.generation() == before + 3
    controllers = [host.admin.controller for host in (first, second)]
    assert first.report() == (0, 1, {first.id: (1, False, controllers[0]), second.id: (2, False, controllers[1])})
    first.does(CONFLICT, nvme.REGISTER, 2, 9, 11)
    first.does(0, nvme.REGISTER, 2, 1, 11)
    first.key = 11
    first.acquire(3)
    first.acquire(3)
    first.acquire(1, CONFLICT)
    second.acquire(3, CONFLICT)
    assert second.report()[0] == 3
    assert second.report()[2][first.id] == (11, True, controllers[0])
    # The registration outlasts the controllers.
    first.admin.close()
    first.disk.close()
    while second.report()[2][first.id][2] != 0xFFFF:
        pass
    first.connect()
    assert second.report()[2][first.id] == (11, True, first.admin.controller)
    second.unregister(CONFLICT, key=5)
    second.unregister(key=5, flags=8)
    second.unregister(CONFLICT)
    assert list(first.report()[2]) == [first.id]


def test_hosts_notice_lost_reservations(hosts: list[Host]) -> None:
    first, second, third = hosts
    for host in hosts:
        host.register()
    first.acquire(3)
    events = [host.admin.event() for host in hosts]
    first.release(4, 2)
    second.release(3)
    assert first.report()[0] == 3, "only the holder releases"
    first.release(3)
    assert [host.notice(event) for host, event in zip(hosts[1:], events[1:], strict=True)] == [RELEASED] * 2
    second.acquire(5)
    first.preempt(1, 2)
    assert second.notice(second.admin.event()) == PREEMPTED
    assert (first.report()[0], set(first.report()[2])) == (5, {first.id, third.id}), "all registrants hold"
    first.preempt(1, 0)
    assert third.notice(third.admin.event()) == PREEMPTED
    assert first.report()[0] == 1
    third.register()
    third.admin.wait(third.admin.submit(nvme.SET, words=struct.pack("<II", 0x82, 1 << RELEASED)))
    assert third.admin.wait(third.admin.submit(nvme.GET, words=struct.pack("<I", 0x82))).result == 1 << RELEASED
    first.preempt(3, 1)
    first.unregister()
    third.acquire(4)
    first.register()
    first.clear()
    assert third.notice(third.admin.event()) == CLEARED, "the release is masked"
    assert third.admin.log(0x80, 64)[8] == 0
    assert first.report()[2] == {}
    first.clear(CONFLICT)
    # The event request of the first host was never used.
    assert events[0] not in first.admin.done


def test_preempting_takes_the_reservation(hosts: list[Host]) -> None:
    first, second, third = hosts
    for host in hosts:
        host.register()
    first.acquire(2)
    second.preempt(2, 99, CONFLICT)
    second.preempt(2, 0, 2)
    refused(CONFLICT, second.disk, second.disk.read_later(0, 1))
    second.preempt(4, 1, action=2)
    second.disk.read(0, 1)
    refused(CONFLICT, first.disk, first.disk.read_later(0, 1))
    third.disk.read(0, 1)
    assert second.report()[2][second.id][1]
    second.unregister()
    assert third.report()[0] == 0
    first.disk.read(0, 1)
    for what, keys in ((7, (3, 3)), (1 << 3, (3, 0)), (7 << 8, (3, 0)), (0, (3, 0))):
        third.does(2, nvme.ACQUIRE, what, *keys)
    third.does(2, nvme.REGISTER, 1 << 30, 0, 3)
    third.does(2, nvme.REGISTER, 3, 0, 3)
    third.does(2, nvme.RELEASE, 2, 3)
    short = third.disk.submit(nvme.REPORT, words=struct.pack("<II", 15, 0), receives=64)
    refused(0x18, third.disk, short)
    nameless = Host.__new__(Host)
    nameless.id, nameless.key, nameless.place = bytes(16), 9, third.place
    nameless.connect()
    nameless.register(0x27)


@pytest.mark.parametrize("persists", [False, True])
def test_a_power_cut_ends_what_does_not_persist(persists: bool) -> None:
    with served("--set", "faults.power_cut_at=300") as (_, place):
        first, second = Host(place, 1), Host(place, 2)
        first.register()
        words = struct.pack("<II", 0x83, persists)
        first.admin.wait(first.admin.submit(nvme.SET, words=words))
        assert first.admin.wait(first.admin.submit(nvme.GET, words=words[:4])).result == persists
        first.acquire(1)
        write_until_power_fails(first.disk)
        first.connect()
        second.connect()
        assert second.report()[:2] == ((1, 1) if persists else (0, 0))
        done = second.disk.finish(second.disk.write_later(0, bytes(BLOCK)))
        assert done.status == (CONFLICT if persists else 0)
