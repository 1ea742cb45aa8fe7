"""A small NVMe/TCP initiator, written from the specifications: NVMe base 2.0, NVM command set 1.0, TCP transport 1.0.

It shares no code with the target. One thread, blocking sockets. A `Queue` keeps any number of commands in flight.
"""

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

DISCOVERY = "nqn.2014-08.org.nvmexpress.discovery"
HOST = "nqn.2014-08.org.nvmexpress:uuid:2f1e7e0c-9f0b-4d4c-8d1a-0242ac110002"
HOST_ID = bytes(range(16))

IC_REQ, IC_RESP, H2C_TERM, C2H_TERM, COMMAND, RESPONSE, H2C_DATA, C2H_DATA, R2T = 0, 1, 2, 3, 4, 5, 6, 7, 9
HEADER_DIGEST, DATA_DIGEST, LAST, SUCCESS = 1, 2, 4, 8
FLUSH, WRITE, READ, COMPARE, ZEROES, DEALLOCATE, VERIFY = 0, 1, 2, 5, 8, 9, 0xC
LOG, IDENTIFY, ABORT, SET, GET, EVENT, KEEP_ALIVE, FABRICS = 2, 6, 8, 9, 0xA, 0xC, 0x18, 0x7F
UNCORRECTABLE, REGISTER, REPORT, ACQUIRE, RELEASE, COPY = 4, 0xD, 0xE, 0x11, 0x15, 0x19
MANAGE, SELF_TEST, ATTACH, FORMAT, SANITIZE = 0xD, 0x14, 0x15, 0x80, 0x84
FUA = 1 << 30
ALL = 0xFFFFFFFF


def _table() -> list[int]:
    """The table of CRC32C (polynomial 0x1EDC6F41, reflected)."""
    entries = []
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        entries.append(crc)
    return entries


_TABLE = _table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


class StatusError(Exception):
    """A command failed: status type and code in one number, without retry bits, and the result."""

    def __init__(self, status: int, result: int) -> None:
        super().__init__(f"status {status:#x}, result {result:#x}")
        self.status = status
        self.result = result


class TerminatedError(Exception):
    """The target ended the connection with C2HTermReq."""

    def __init__(self, fatal: int, at: int) -> None:
        super().__init__(f"fatal error status {fatal}, field {at}")
        self.fatal = fatal
        self.field = at


@dataclass
class Done:
    """A completed command."""

    status: int
    result: int
    data: bytes


@dataclass
class Flight:
    """A command in flight."""

    wanted: int
    data: bytes = b""
    sends: bytes = b""
    got: bytearray = field(default_factory=bytearray)


class Queue:
    """One connection: one queue of a controller. `opened` has all that a test must close."""

    opened: ClassVar[list["Queue"]] = []

    def __init__(
        self, place: tuple[str, int], subsystem: str, *, number: int = 0, controller: int = 0xFFFF, entries: int = 64,
        header_digest: bool = False, data_digest: bool = False, alignment: int = 0, keep_alive_ms: int = 0,
        host: str = HOST, host_id: bytes = HOST_ID, flow_control: bool = True, in_capsule: int = 8192,
    ) -> None:  # fmt: skip
        self.socket = socket.create_connection(place, 30)
        self.opened.append(self)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.header_digest, self.data_digest, self.alignment = header_digest, data_digest, alignment
        self.in_capsule = in_capsule
        self.flow_control = flow_control
        self.flights: dict[int, Flight] = {}
        self.done: dict[int, Done] = {}
        self.next_id = 0
        self.requested = 0
        asked = struct.pack("<HBBI", 0, alignment, header_digest | data_digest << 1, 0)
        self.socket.sendall(struct.pack("<BBBBI", IC_REQ, 0, 128, 0, 128) + asked.ljust(120, b"\0"))
        response = self.take(128)
        assert response[0] == IC_RESP, response[0]
        assert response[11] == header_digest | data_digest << 1
        self.most_data = struct.unpack_from("<I", response, 12)[0]
        data = host_id + struct.pack("<H", controller)
        data = data.ljust(256, b"\0") + subsystem.encode().ljust(256, b"\0") + host.encode().ljust(512, b"\0")
        words = struct.pack("<HHHBBI", 0, number, entries - 1, 0 if flow_control else 4, 0, keep_alive_ms)
        done = self.wait(self.submit(FABRICS, namespace=1, words=words, sends=data))
        self.controller = done.result & 0xFFFF

    # The transport

    def take(self, count: int) -> bytes:
        """The next bytes of the target. Raises EOFError at the end."""
        taken = b""
        while len(taken) < count:
            more = self.socket.recv(count - len(taken))
            if not more:
                raise EOFError(f"the target hung up after {len(taken)} of {count} bytes")
            taken += more
        return taken

    def send(self, kind: int, header: bytes, data: bytes = b"", flags: int = 0) -> None:
        """Sends a PDU with digests as agreed."""
        length = 8 + len(header)
        begin = length + 4 * self.header_digest
        end = begin + len(data) + (4 if data and self.data_digest else 0)
        flags |= (HEADER_DIGEST if self.header_digest else 0) | (DATA_DIGEST if data and self.data_digest else 0)
        pdu = struct.pack("<BBBBI", kind, flags, length, begin if data else 0, end) + header
        if self.header_digest:
            pdu += struct.pack("<I", crc32c(pdu))
        pdu += data
        if data and self.data_digest:
            pdu += struct.pack("<I", crc32c(data))
        self.socket.sendall(pdu)

    def receive(self) -> None:
        """Handles the next PDU of the target."""
        kind, flags, length, begin, end = struct.unpack("<BBBBI", common := self.take(8))
        header = self.take(length - 8)
        if kind == C2H_TERM:
            raise TerminatedError(*struct.unpack_from("<HI", header))
        read = length
        if flags & HEADER_DIGEST:
            assert self.header_digest
            assert struct.unpack("<I", self.take(4))[0] == crc32c(common + header)
            read += 4
        if kind == RESPONSE:
            assert end == read
            self._response(header)
        elif kind == R2T:
            self._send_data(*struct.unpack_from("<HHII", header))
        elif kind == C2H_DATA:
            command, _, offset, count = struct.unpack_from("<HHII", header)
            assert begin % ((self.alignment + 1) * 4) == 0
            self.take(begin - read)
            data = self.take(count)
            if flags & DATA_DIGEST:
                assert self.data_digest
                assert struct.unpack("<I", self.take(4))[0] == crc32c(data)
            flight = self.flights[command]
            assert offset == len(flight.got)
            flight.got += data
            if flags & SUCCESS:
                assert flags & LAST
                assert not self.flow_control
                self._finish(command, 0, 0)
        else:
            raise AssertionError(f"a PDU of type {kind} from the target")

    def _response(self, entry: bytes) -> None:
        result, head, _, command, status = struct.unpack("<QHHHH", entry)
        assert head == 0xFFFF or self.flow_control
        self._finish(command, status >> 1, result)

    def _finish(self, command: int, status: int, result: int) -> None:
        flight = self.flights.pop(command)
        if status == 0 and flight.wanted:
            assert len(flight.got) == flight.wanted, (len(flight.got), flight.wanted)
        self.done[command] = Done(status & 0x3FFF, result, bytes(flight.got))

    def _send_data(self, command: int, tag: int, offset: int, count: int) -> None:
        self.requested += 1
        data = self.flights[command].sends
        assert offset + count <= len(data)
        for at in range(offset, offset + count, self.most_data):
            part = data[at : min(at + self.most_data, offset + count)]
            last = LAST if at + len(part) == offset + count else 0
            self.send(H2C_DATA, struct.pack("<HHIII", command, tag, at, len(part), 0), part, last)

    # Commands

    def submit(
        self, opcode: int, *, namespace: int = 1, words: bytes = b"", receives: int = 0, sends: bytes = b"",
        named: int | None = None, flags: int = 0x40, fused: int = 0,
    ) -> int:  # fmt: skip
        """Sends a command whose dwords 10 to 15 are `words`; returns its identifier. `named` is another SGL length."""
        command = self.next_id = (self.next_id + 1) % 0xFFFF
        capsule = sends if len(sends) <= self.in_capsule else b""
        length = (receives or len(sends)) if named is None else named
        kind = 0x01 if capsule else 0x5A
        entry = struct.pack("<BBHIQQ", opcode, flags | fused, command, namespace, 0, 0)
        entry += struct.pack("<QI3xB", 0, length, kind) + words.ljust(24, b"\0")
        assert len(entry) == 64
        self.flights[command] = Flight(wanted=receives, sends=sends)
        self.send(COMMAND, entry, capsule)
        return command

    def finish(self, command: int) -> Done:
        """Waits for a command, whatever its status."""
        while command not in self.done:
            self.receive()
        return self.done.pop(command)

    def wait(self, command: int) -> Done:
        """Waits for a command. Raises StatusError if it failed."""
        done = self.finish(command)
        if done.status:
            raise StatusError(done.status, done.result)
        return done

    def close(self) -> None:
        self.socket.close()


class Admin(Queue):
    """The admin queue of a controller, enabled."""

    def __init__(self, place: tuple[str, int], subsystem: str, *, enable: bool = True, **terms: Any) -> None:
        super().__init__(place, subsystem, **terms)
        if enable:
            self.set_property(0x14, 0x460001)
            assert self.property(0x1C) == 1

    def property(self, at: int, size: int = 4) -> int:
        words = struct.pack("<BxxxI", size == 8, at)
        return self.wait(self.submit(FABRICS, namespace=4, words=words)).result

    def set_property(self, at: int, value: int) -> None:
        self.wait(self.submit(FABRICS, namespace=0, words=struct.pack("<BxxxIQ", 0, at, value)))

    def identify(self, what: int, namespace: int = 0, command_set: int = 0) -> bytes:
        words = struct.pack("<III", what, command_set << 24, 0)
        return self.wait(self.submit(IDENTIFY, namespace=namespace, words=words, receives=4096)).data

    def log(self, page: int, length: int, *, offset: int = 0, retain: bool = False, subject: int = 0) -> bytes:
        dwords = length // 4 - 1
        first = page | retain << 15 | (dwords & 0xFFFF) << 16
        words = struct.pack("<IIQ", first, dwords >> 16 | subject << 16, offset)
        return self.wait(self.submit(LOG, namespace=0xFFFFFFFF, words=words, receives=length)).data

    def feature(self, number: int, select: int = 0) -> int:
        return self.wait(self.submit(GET, words=struct.pack("<I", number | select << 8))).result & 0xFFFFFFFF

    def set_feature(self, number: int, value: int, *, save: bool = False) -> int:
        words = struct.pack("<II", number | save << 31, value)
        return self.wait(self.submit(SET, words=words)).result & 0xFFFFFFFF

    def event(self) -> int:
        return self.submit(EVENT, namespace=0)

    def create(
        self, blocks: int, *, used: int | None = None, block_format: int = 1, shared: int = 1, **more: Any
    ) -> int:
        """Begins to create a namespace; the number is the result."""
        data = struct.pack("<QQ10xB2xBB", blocks, blocks if used is None else used, block_format, 0, shared)
        return self.submit(MANAGE, **{"namespace": 0, "words": bytes(4), "sends": data.ljust(4096, b"\0"), **more})

    def delete(self, namespace: int) -> int:
        return self.submit(MANAGE, namespace=namespace, words=struct.pack("<I", 1))

    def attach(self, namespace: int, *controllers: int, detach: bool = False) -> int:
        data = struct.pack(f"<{len(controllers) + 1}H", len(controllers), *controllers).ljust(4096, b"\0")
        return self.submit(ATTACH, namespace=namespace, words=struct.pack("<I", detach), sends=data)


class Disk(Queue):
    """An I/O queue with the block commands of one namespace."""

    block = 4096
    namespace = 1

    def read_later(self, at: int, blocks: int) -> int:
        words = struct.pack("<QI", at, blocks - 1)
        return self.submit(READ, namespace=self.namespace, words=words, receives=blocks * self.block)

    def write_later(self, at: int, data: bytes, flags: int = 0) -> int:
        words = struct.pack("<QI", at, len(data) // self.block - 1 | flags)
        return self.submit(WRITE, namespace=self.namespace, words=words, sends=data)

    def read(self, at: int, blocks: int) -> bytes:
        return self.wait(self.read_later(at, blocks)).data

    def write(self, at: int, data: bytes, flags: int = 0) -> None:
        self.wait(self.write_later(at, data, flags))

    def flush(self) -> None:
        self.wait(self.submit(FLUSH))

    def zero(self, at: int, blocks: int, *, unmap: bool = False) -> None:
        self.wait(self.submit(ZEROES, words=struct.pack("<QI", at, blocks - 1 | unmap << 25)))

    def verify(self, at: int, blocks: int) -> None:
        self.wait(self.submit(VERIFY, words=struct.pack("<QI", at, blocks - 1)))

    def swap_later(self, at: int, old: bytes, new: bytes) -> tuple[int, int]:
        """Fused commands for a block: compares with `old`, and writes `new`."""
        words = struct.pack("<QI", at, 0)
        first = self.submit(COMPARE, namespace=self.namespace, words=words, sends=old, fused=1)
        return first, self.submit(WRITE, namespace=self.namespace, words=words, sends=new, fused=2)

    def copy_later(self, to: int, *ranges: tuple[int, int], flags: int = 0) -> int:
        """Copies ranges of first block and number of blocks."""
        data = b"".join(struct.pack("<8xQH14x", at, blocks - 1) for at, blocks in ranges)
        words = struct.pack("<QI", to, len(ranges) - 1 | flags)
        return self.submit(COPY, namespace=self.namespace, words=words, sends=data)

    def mark_later(self, at: int, blocks: int) -> int:
        """Marks blocks as unreadable."""
        return self.submit(UNCORRECTABLE, namespace=self.namespace, words=struct.pack("<QI", at, blocks - 1))

    def compare(self, at: int, data: bytes) -> None:
        self.wait(self.submit(COMPARE, words=struct.pack("<QI", at, len(data) // self.block - 1), sends=data))

    def deallocate(self, *ranges: tuple[int, int], acts: bool = True, buffer: int = 0) -> None:
        """Unmaps ranges. Linux sends a buffer of 4096 bytes for any number of them."""
        data = b"".join(struct.pack("<IIQ", 0, count, at) for at, count in ranges).ljust(buffer, b"\xff")
        words = struct.pack("<II", len(ranges) - 1, 4 if acts else 0)
        self.wait(self.submit(DEALLOCATE, words=words, sends=data))


def number(data: bytes, at: int, size: int) -> int:
    """A little-endian number in a structure."""
    return int.from_bytes(data[at : at + size], "little")


def smart(page: bytes) -> Mapping[str, int]:
    """Counters of the SMART log."""
    fields = {
        "units_read": 32, "units_written": 48, "reads": 64, "writes": 80, "unsafe": 144, "media_errors": 160,
        "errors": 176,
    }  # fmt: skip
    return {name: number(page, at, 16) for name, at in fields.items()} | {"warning": page[0], "used": page[5]}
