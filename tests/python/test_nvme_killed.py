"""`palimpsest nvme --image`, killed at any time of a random workload: what was flushed or written with FUA is there.

`crates/server/tests/killed.rs` kills the server itself more often, with more layers.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import nvme_initiator as nvme
from nvme_initiator import Admin, Disk, Queue
from nvme_target import BLOCK, NQN, served

pytestmark = pytest.mark.contract

BLOCKS = 400
Contents = list[list[bytes]]
"""The contents that each block may hold: the last write first, then all before it up to the last durable one."""


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while Queue.opened:
        Queue.opened.pop().close()


def work(disk: Disk, draw: random.Random, holds: Contents) -> None:
    """Writes, some with FUA, up to eight in flight, and flushes, until the target is gone."""
    while True:
        fua = nvme.FUA if draw.random() < 0.2 else 0
        flying = []
        for at in draw.sample(range(BLOCKS), draw.randint(1, 8)):
            holds[at].insert(0, draw.randbytes(BLOCK))
            flying.append((at, disk.write_later(at, holds[at][0], fua)))
        for at, command in flying:
            disk.wait(command)
            if fua:
                holds[at] = holds[at][:1]
        if draw.random() < 0.2:
            disk.flush()
            holds[:] = [known[:1] for known in holds]


@pytest.mark.parametrize("kills", [10, pytest.param(300, marks=pytest.mark.long)])
def test_a_killed_target_keeps_what_was_flushed(kills: int, tmp_path: Path) -> None:
    draw = random.Random(11)
    holds: Contents = [[bytes(BLOCK)] for _ in range(BLOCKS)]
    durable = 0
    for kill in range(kills):
        with served("--image", str(tmp_path / "drive.pal")) as (process, place):
            admin = Admin(place, NQN)
            disk = Disk(place, NQN, number=1, controller=admin.controller)
            for first in range(0, BLOCKS, 100):
                read = disk.read(first, 100)
                for at in range(first, first + 100):
                    found = read[(at - first) * BLOCK :][:BLOCK]
                    assert found in holds[at], f"block {at} after kill {kill}"
                    durable += len(holds[at]) == 1 and found != bytes(BLOCK)
                    holds[at] = [found]
            timer = threading.Timer(draw.random() / 4, process.kill)
            timer.start()
            with suppress(EOFError, OSError):
                work(disk, draw, holds)
            timer.join()
            process.wait(timeout=30)
        while Queue.opened:
            Queue.opened.pop().close()
    assert durable > 20 * kills
