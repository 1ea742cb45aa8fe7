"""Clients that lose their place leave no thread and no descriptor, also while they do not read.

Ignored: systems other than Linux, which count threads in other ways.
"""

import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import COMMAND
from test_serve import READ, SMALL, Client

pytestmark = [
    pytest.mark.contract,
    pytest.mark.skipif(sys.platform != "linux", reason="threads and descriptors are counted in /proc"),
]

PLACES = 64
LIST = struct.pack(">8sII", b"IHAVEOPT", 3, 0)


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server at a socket in the file system."""
    place = str(folder / "s")
    command = [str(COMMAND), "serve", *SMALL, "--listen", f"unix:{place}", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert " at " in process.stderr.readline()
            # The thread that accepts has begun.
            Client(socket.AF_UNIX, place).socket.close()
            yield process, place
        finally:
            process.kill()


def held(process: subprocess.Popen[str]) -> tuple[int, int]:
    """Threads and descriptors of the server."""
    own = Path("/proc") / str(process.pid)
    return len(list((own / "task").iterdir())), len(list((own / "fd").iterdir()))


def flood(place: str) -> socket.socket:
    """A client in the handshake that asks for lists of exports without end, and reads none."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(0.05)
    client.connect(place)
    try:
        client.sendall(struct.pack(">I", 3))
        while True:
            client.sendall(LIST * 1000)
    except (TimeoutError, ConnectionError):
        return client


def unread(place: str) -> socket.socket:
    """A client that reads the drive, but no reply."""
    end = time.monotonic() + 20
    while True:
        try:
            client = Client(socket.AF_UNIX, place)
            break
        except (AssertionError, ConnectionError):
            # On a loaded machine no client was idle for a second yet.
            assert time.monotonic() < end
            time.sleep(0.2)
    ask = struct.pack(">IHHQQI", 0x25609513, 0, READ, 7, 0, 1 << 20)
    client.socket.sendall(ask * 2)
    return client.socket


def settled(process: subprocess.Popen[str], most: tuple[int, int]) -> tuple[int, int]:
    """Threads and descriptors, after at most a few seconds for clients that leave."""
    end = time.monotonic() + 5
    while any(map(int.__gt__, now := held(process), most)) and time.monotonic() < end:
        time.sleep(0.1)
    return now


@pytest.mark.parametrize(("client", "clock", "pause"), [(flood, "none", 0.0), (unread, "virtual", 1.2)])
def test_displaced_clients_leave_nothing(
    tmp_path: Path, client: Callable[[str], socket.socket], clock: str, pause: float
) -> None:
    with served(tmp_path, "--clock", clock, "--timeout", "60s") as (process, place):
        threads, descriptors = held(process)
        sockets = []
        for turn in range(3):
            sockets += [client(place) for _ in range(PLACES)]
            # A client in the handshake goes at once, another one after a second without a request.
            time.sleep(pause if turn < 2 else 0)
        # Requests, replies of a drive with a clock; handles for both, for the list of clients, and for the outbox.
        each = (1, 4) if clock == "none" else (2, 6)
        most = (threads + each[0] * PLACES, descriptors + each[1] * PLACES)
        now = settled(process, most)
        assert now[0] <= most[0], (threads, now)
        assert now[1] <= most[1], (descriptors, now)
        process.terminate()
        assert process.wait(timeout=20) == 0
        for one in sockets:
            one.close()
