"""Commands of zones for the initiator, written from the ZNS command set specification 1.1."""

import struct
from dataclasses import dataclass
from typing import Any

from nvme_initiator import IDENTIFY, LOG, Admin, Disk, number

SEND, RECEIVE, APPEND = 0x79, 0x7A, 0x7D
CLOSE, FINISH, OPEN, RESET, OFFLINE, COMMIT = 1, 2, 3, 4, 5, 0x11
EMPTY, IMPLICIT, EXPLICIT, CLOSED, READ_ONLY, FULL, GONE = 1, 2, 3, 4, 0xD, 0xE, 0xF
ALL, OPTION, PARTIAL = 1 << 8, 1 << 9, 1 << 16
NOWHERE = 2**64 - 1

INVALID_OPERATION, NO_AREA, BOUNDARY, IS_FULL, IS_READ_ONLY, IS_OFFLINE = 0x1B6, 0x1B7, 0x1B8, 0x1B9, 0x1BA, 0x1BB
INVALID_WRITE, TOO_MANY_ACTIVE, TOO_MANY_OPEN, INVALID_TRANSITION = 0x1BC, 0x1BD, 0x1BE, 0x1BF


@dataclass(frozen=True)
class Zone:
    """A zone descriptor, in blocks."""

    state: int
    attributes: int
    capacity: int
    start: int
    pointer: int


class Zoned(Disk):
    """An I/O queue of a namespace with zones."""

    def send_later(self, action: int, at: int = 0, flags: int = 0) -> int:
        return self.submit(SEND, words=struct.pack("<QII", at, 0, action | flags))

    def send_zone(self, action: int, at: int = 0, flags: int = 0) -> None:
        self.wait(self.send_later(action, at, flags))

    def append_later(self, at: int, data: bytes, flags: int = 0) -> int:
        words = struct.pack("<QI", at, len(data) // self.block - 1 | flags)
        return self.submit(APPEND, words=words, sends=data)

    def append(self, at: int, data: bytes) -> int:
        """The block that the drive chose."""
        return self.wait(self.append_later(at, data)).result

    def report_later(self, at: int, size: int, how: int = 0) -> int:
        return self.submit(RECEIVE, words=struct.pack("<QII", at, size // 4 - 1, how), receives=size)

    def report(self, at: int = 0, *, room: int = 1000, only: int = 0, flags: int = 0) -> tuple[int, list[Zone]]:
        """The number that the header states, and the descriptors there is room for."""
        page = self.wait(self.report_later(at, 64 * (room + 1), only << 8 | flags)).data
        assert page[8:64] == bytes(56)
        found = [page[begin : begin + 64] for begin in range(64, len(page), 64)]
        zones = [descriptor for descriptor in found if descriptor != bytes(64)]
        assert all(zone[0] == 2 and zone[32:] == bytes(32) for zone in zones)
        parsed = [Zone(zone[1] >> 4, zone[2], *struct.unpack_from("<QQQ", zone, 8)) for zone in zones]
        return number(page, 0, 8), parsed

    def zone(self, at: int) -> Zone:
        return self.report(at, room=1)[1][0]


def changed(admin: Admin, *, retain: bool = False, namespace: int = 1) -> tuple[int, list[int]]:
    """The Changed Zone List: the number, and the first blocks of the zones."""
    words = struct.pack("<II", 0xBF | retain << 15 | 1023 << 16, 0)
    page = admin.wait(admin.submit(LOG, namespace=namespace, words=words, receives=4096)).data
    count = number(page, 0, 2)
    return count, [number(page, 8 + 8 * at, 8) for at in range(count if count < 0xFFFF else 0)]


def limits(admin: Admin) -> dict[str, Any]:
    """The namespace as the command set sees it."""
    words = struct.pack("<II", 5, 2 << 24)
    page = admin.wait(admin.submit(IDENTIFY, namespace=1, words=words, receives=4096)).data
    places = {
        "support": (2, 2), "active": (4, 4), "open": (8, 4), "areas": (44, 4), "granularity": (48, 2), "area": (50, 2),
        "commits": (52, 1), "size": (2816, 8), "extension": (2824, 1),
    }  # fmt: skip
    return {name: number(page, at, size) for name, (at, size) in places.items()}
