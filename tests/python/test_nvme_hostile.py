"""`palimpsest nvme` under hostile hosts, which change neither the data nor the connection of another host."""

import random
import re
import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import nvme_initiator as nvme
from nvme_initiator import Admin, Disk, Queue, StatusError, TerminatedError, number
from nvme_target import BLOCK, NQN, Place, result_of, served

pytestmark = pytest.mark.contract

Draw = random.Random
ENDED = (EOFError, OSError, StatusError, TerminatedError, AssertionError, struct.error)
"""Ends of a session that a hostile host asks for. The initiator asserts, because the target answers nonsense."""
SPAN = 200
"""Blocks of the honest host, from the first one on. A write there by any other host would be an error."""
HOSTILE = "nqn.2026-11.org.example:hostile"


def mutated(message: bytes, draw: Draw, most: int = 4) -> bytes:
    """The message with up to `most` other bytes; the end may be cut off."""
    changed = bytearray(message)
    for at in draw.sample(range(len(message)), draw.randint(1, most)):
        changed[at] ^= draw.randrange(1, 256)
    return bytes(changed[: draw.randrange(1, len(changed))] if draw.random() < 0.2 else changed)


def ic_req(kind: int = nvme.IC_REQ, total: int = 128, version: int = 0, alignment: int = 0, digests: int = 0) -> bytes:
    head = struct.pack("<BBBBIHBBI", kind, 0, 128, 0, total, version, alignment, digests, 0)
    return head.ljust(128, b"\0")


def noise(place: Place, draw: Draw) -> socket.socket:
    raw = socket.create_connection(place, 30)
    raw.sendall(draw.randbytes(draw.randrange(1, 400)))
    return raw


def half_open(place: Place, draw: Draw) -> socket.socket:
    """Says nothing, or begins to."""
    raw = socket.create_connection(place, 30)
    raw.sendall(ic_req()[: draw.randrange(128)])
    return raw


def wrong_terms(place: Place, draw: Draw) -> socket.socket:
    raw = socket.create_connection(place, 30)
    raw.sendall(mutated(ic_req(), draw))
    return raw


def aborted_connect(place: Place, draw: Draw) -> socket.socket:
    """Hangs up within the Connect, or resets the connection."""
    raw = socket.create_connection(place, 30)
    raw.sendall(ic_req() + struct.pack("<BBBBI", nvme.COMMAND, 0, 72, 72, 72 + 1024) + draw.randbytes(700))
    if draw.random() < 0.5:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return raw


def wrong_lengths(place: Place, draw: Draw) -> socket.socket:
    """An admin queue that names any lengths and offsets."""
    admin = Admin(place, NQN, host=HOSTILE)
    kind = draw.choice([nvme.COMMAND, nvme.H2C_DATA, nvme.H2C_TERM, draw.randrange(256)])
    total = draw.choice([0, 8, 72, 73, 1 << 16, 2**32 - 1, draw.randrange(2**32)])
    head = struct.pack("<BBBBI", kind, draw.randrange(256), draw.randrange(256), draw.randrange(256), total)
    admin.socket.sendall(head + draw.randbytes(draw.randrange(200)))
    return admin.socket


def wrong_digests(place: Place, draw: Draw) -> socket.socket:
    """Writes to the blocks of the honest host, of which any byte is wrong: a digest reveals each."""
    admin = Admin(place, NQN, host=HOSTILE)
    disk = Disk(place, NQN, number=1, controller=admin.controller, host=HOSTILE,
                header_digest=True, data_digest=True)  # fmt: skip
    entry = struct.pack("<BBHIQQQI3xB", nvme.WRITE, 0x40, 7, 1, 0, 0, 0, BLOCK, 1)
    entry += struct.pack("<QI12x", draw.randrange(SPAN), 0)
    head = struct.pack("<BBBBI", nvme.COMMAND, 3, 72, 76, 76 + BLOCK + 4) + entry
    data = draw.randbytes(16) * (BLOCK // 16)
    right = head + struct.pack("<I", nvme.crc32c(head)) + data + struct.pack("<I", nvme.crc32c(data))
    disk.socket.sendall(mutated(right, draw))
    admin.close()
    return disk.socket


def unsent_data(place: Place, draw: Draw) -> socket.socket:
    """Asks for as many large writes as the queue takes, and sends none of their data."""
    admin = Admin(place, NQN, host=HOSTILE)
    disk = Disk(place, NQN, number=1, controller=admin.controller, host=HOSTILE, entries=128)
    for _ in range(draw.randrange(1, 128)):
        disk.submit(nvme.WRITE, words=struct.pack("<QI", 0, 255), named=256 * BLOCK)
    if draw.random() < 0.5:
        disk.receive()
    admin.close()
    return disk.socket


def mutated_commands(place: Place, draw: Draw) -> socket.socket:
    """Admin commands with any fields, among them reserved ones and wrong sizes."""
    admin = Admin(place, NQN, host=HOSTILE)
    for _ in range(draw.randrange(1, 6)):
        opcode = draw.choice([nvme.LOG, nvme.IDENTIFY, nvme.ABORT, nvme.SET, nvme.GET, nvme.EVENT, nvme.FABRICS])
        entry = struct.pack("<BBHIQQQI3xB", opcode, 0x40, draw.randrange(65536), 1, 0, 0, 0, 4096, 0x5A)
        head = struct.pack("<BBBBI", nvme.COMMAND, 0, 72, 0, 72)
        admin.socket.sendall(head + mutated(entry, draw, 6).ljust(40, b"\0") + draw.randbytes(24))
    return admin.socket


def left_association(place: Place, draw: Draw) -> socket.socket:
    """Queues of an association whose admin queue ends first, with reads in flight."""
    admin = Admin(place, NQN, host=HOSTILE)
    disk = Disk(place, NQN, number=draw.randrange(1, 32), controller=admin.controller, host=HOSTILE)
    for _ in range(draw.randrange(20)):
        disk.read_later(draw.randrange(SPAN), 64)
    admin.close()
    return disk.socket


SESSIONS: list[Callable[[Place, Draw], socket.socket]] = [
    noise, half_open, wrong_terms, aborted_connect, wrong_lengths, wrong_digests, unsent_data, mutated_commands,
    left_association,
]  # fmt: skip


class Honest:
    """A host that writes, and reads back all known."""

    def __init__(self, place: Place, draw: Draw) -> None:
        self.draw = draw
        self.admin = Admin(place, NQN, keep_alive_ms=120_000)
        self.disk = Disk(place, NQN, number=1, controller=self.admin.controller)
        self.known = [draw.randbytes(BLOCK) for _ in range(SPAN)]
        for at, data in enumerate(self.known):
            self.disk.write(at, data)

    def work(self) -> None:
        at, count = self.draw.randrange(SPAN - 16), self.draw.randrange(1, 16)
        assert self.disk.read(at, count) == b"".join(self.known[at : at + count])
        self.known[at] = self.draw.randbytes(BLOCK)
        self.disk.write(at, self.known[at])

    def check(self) -> None:
        self.admin.wait(self.admin.submit(nvme.KEEP_ALIVE))
        for at in range(0, SPAN, 50):
            assert self.disk.read(at, 50) == b"".join(self.known[at : at + 50])


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while Queue.opened:
        Queue.opened.pop().close()


def memory(process: int, name: str) -> int:
    """MiB of a process: `VmRSS` now, `VmHWM` at most so far."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text(encoding="utf-8"))
    assert found
    return int(found[1]) >> 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc with the memory of a process")
@pytest.mark.parametrize("sessions", [200, pytest.param(10_000, marks=pytest.mark.long)])
def test_hostile_sessions_change_nothing(sessions: int) -> None:
    draw = random.Random(sessions)
    with served("--timeout", "2s", "--json") as (process, place):
        honest = Honest(place, draw)
        Queue.opened.clear()
        begin = memory(process.pid, "VmRSS")
        held: list[socket.socket] = []
        early, whole = 0, Counter[str]()
        for turn in range(sessions):
            session = draw.choice(SESSIONS)
            with suppress(*ENDED):
                held.append(session(place, draw))
                whole[session.__name__] += 1
            while len(held) > draw.randrange(16):
                held.pop(draw.randrange(len(held))).close()
            # The sockets of hostile queues; those held go on.
            for queue in Queue.opened:
                if queue.socket not in held:
                    queue.close()
            Queue.opened = [queue for queue in Queue.opened if queue.socket in held]
            honest.work()
            if turn % 50 == 0:
                honest.check()
            if turn == sessions // 4:
                early = memory(process.pid, "VmRSS")
        honest.check()
        for session in SESSIONS:
            assert whole[session.__name__] > sessions / len(SESSIONS) / 2, f"{session.__name__} rarely ends"
        # One write of 1 MiB waits for its data in each of 64 connections, and further ones share 64 MiB.
        assert memory(process.pid, "VmHWM") - begin < 64 + 64 + 32
        assert memory(process.pid, "VmRSS") - early < 64
        for one in held:
            one.close()
        honest.disk.close()
        honest.admin.close()
        fresh = Admin(place, NQN)
        assert number(fresh.identify(0, 1), 0, 8) > SPAN
        result = result_of(process)
    assert result["requests"]["write"] >= sessions
