"""`palimpsest nvme` as a process, for the tests of its target."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from conftest import COMMAND
from nvme_initiator import FUA, Disk, Queue, StatusError

NQN = f"nqn.2026-11.org.example:test.{os.getpid()}"
"""A name of this process: another target of the machine with this name would be refused."""
SMALL = ["--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=64", "--nqn", NQN]
TINY = [
    "--ssd", "mga-8k", "--nqn", NQN, "--set", "ssd.blocks_per_plane=24", "--set", "ssd.channels=2",
    "--set", "ssd.planes_per_die=1", "--set", "part.pages_per_block=16", "--set", "ssd.over_provisioning=60%",
    "--set", "ftl.gc_start=2 blocks", "--set", "ftl.gc_stop=3 blocks",
]  # fmt: skip
"""A drive of a few MiB, which collects soon."""
BLOCK = 4096

Place = tuple[str, int]


def target_of(process: subprocess.Popen[str]) -> tuple[Place, str]:
    """Address and NQN of the target of a starting command."""
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    connect = next((line for line in lines if line.startswith("nvme connect ")), "")
    found = re.fullmatch(r"nvme connect -t tcp -a (127\.0\.0\.1) -s (\d+) -n (\S+)\n", connect)
    assert found, connect
    return (found[1], int(found[2])), found[3]


@contextmanager
def served(*options: str, drive: Sequence[str] = SMALL) -> Iterator[tuple[subprocess.Popen[str], Place]]:
    """The command, and the address of its target."""
    command = [str(COMMAND), "nvme", *drive, "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            place, nqn = target_of(process)
            assert nqn in drive
            yield process, place
        finally:
            process.kill()


def result_of(process: subprocess.Popen[str]) -> Any:
    """Ends the service; its result."""
    process.send_signal(signal.SIGTERM)
    printed, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return json.loads(printed)


def refused(status: int, queue: Queue, command: int) -> None:
    done = queue.finish(command)
    assert (done.status, done.data) == (status, b""), hex(done.status)


def write_until_power_fails(disk: Disk) -> None:
    """Writes a block again and again until a power cut ends the connection."""
    try:
        for _ in range(2000):
            disk.write(200, bytes(BLOCK), FUA)
    except (StatusError, EOFError, ConnectionError):
        return
    raise AssertionError("the power did not fail")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Closes the connections of a test."""
    yield
    while Queue.opened:
        Queue.opened.pop().close()
