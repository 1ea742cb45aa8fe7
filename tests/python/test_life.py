"""The book of a drive's life: all logs, the page, the result and `image info` agree over restarts and kills.

Ignored: hours, which no test waits for.
"""

import json
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from nvme_initiator import Admin, Disk, StatusError, number
from nvme_target import BLOCK, NQN, Place, closed, result_of, served  # noqa: F401
from palimpsest.images import look
from test_nvme_placement import DRIVE

pytestmark = pytest.mark.contract

Book = dict[str, int]


@contextmanager
def service(image: Path, clock: str) -> Iterator[tuple[Popen[str], Place, str]]:
    """A service of the drive in an image, and the place of its page."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        page = f"127.0.0.1:{probe.getsockname()[1]}"
    options = ("--image", str(image), "--page", page, "--json", "--clock", clock)
    with served(*options, drive=["--nqn", NQN] if image.exists() else [*DRIVE, "--set", "fdp.unit=block"]) as (
        process,
        place,
    ):
        yield process, place, page


def work(place: Place, writes: int) -> Book:
    """Two reads, a wrong command, writes and a flush; and the counts of the host itself."""
    admin = Admin(place, NQN)
    disk = Disk(place, NQN, number=1, controller=admin.controller)
    disk.read(0, 1)
    disk.read(1, 2)
    with pytest.raises(StatusError):
        disk.read(1 << 40, 1)
    for at in range(writes):
        disk.write(at * 7 % 200, bytes([at % 251 + 1]) * BLOCK)
    disk.flush()
    return {"writes": writes, "reads": 2, "host_bytes_written": writes * BLOCK, "host_bytes_read": 3 * BLOCK}


def logs(place: Place) -> list[dict[str, Any]]:
    """The figures of SMART, OCP, endurance and FDP logs on the life, by the names of the book."""
    admin = Admin(place, NQN)
    smart, ocp, group, fdp = (admin.log(2, 512), admin.log(0xC0, 512), admin.log(9, 512, subject=1),
                              admin.log(0x22, 64, subject=1))  # fmt: skip
    return [
        {
            "reads": number(smart, 64, 16), "writes": number(smart, 80, 16), "power_cycles": number(smart, 112, 16),
            "unsafe_shutdowns": number(smart, 144, 16), "media_errors": number(smart, 160, 16),
            "error_log_entries": number(smart, 176, 16),
        },
        {
            "media_bytes_written": number(ocp, 0, 16), "media_bytes_read": number(ocp, 16, 16),
            "unsafe_shutdowns": number(ocp, 112, 4),
        },
        {"reads": number(group, 96, 16), "writes": number(group, 112, 16)},
        {
            "host_bytes_written": number(fdp, 0, 16), "media_bytes_written": number(fdp, 16, 16),
            "media_bytes_erased": number(fdp, 32, 16),
        },
        {"units": (number(smart, 32, 16), number(smart, 48, 16))},
    ]  # fmt: skip


def agree(book: Book, all_logs: list[dict[str, Any]]) -> None:
    *counted, units = all_logs
    for log in counted:
        assert log == {name: book[name] for name in log}
    assert units["units"] == tuple(-(-book[name] // 512_000) for name in ("host_bytes_read", "host_bytes_written"))


@pytest.mark.parametrize("clock", ["none", "virtual"])
def test_one_book_over_restarts_and_kills(tmp_path: Path, clock: str) -> None:
    image, done, book = tmp_path / "drive.pal", dict[str, int](), Book()
    for turn, is_killed in enumerate((False, True, True, False, False)):
        with service(image, clock) as (process, place, page):
            if turn:
                starts = {"power_cycles": turn + 1, "unsafe_shutdowns": max(0, min(turn - 1, 2))}
                agree(book | starts, logs(place))
            added = work(place, 300)
            done = {name: done.get(name, 0) + value for name, value in added.items()}
            known = logs(place)
            assert (known[0]["reads"], known[0]["writes"]) == (done["reads"], done["writes"])
            assert known[0]["error_log_entries"] == turn + 1
            with urllib.request.urlopen(f"http://{page}/live.json", timeout=30) as answer:
                agree(json.load(answer)["life"], known)
            with urllib.request.urlopen(f"http://{page}/smart.json", timeout=30) as answer:
                shown = json.load(answer)
            assert (shown["host_read_commands"], shown["host_write_commands"]) == (done["reads"], done["writes"])
            assert (shown["power_cycles"], shown["num_err_log_entries"]) == (turn + 1, turn + 1)
            # The server asks for time and errors now and then, and stores them.
            time.sleep(0.3)
            if is_killed:
                process.kill()
                process.wait()
            else:
                agree(result_of(process)["life"], known)
        book = look("info", image)["life"]
        assert {name: book[name] for name in done} == done
        agree(book, known)


def test_a_kill_loses_no_acknowledged_write(tmp_path: Path) -> None:
    image, writes = tmp_path / "drive.pal", 0
    for turn in range(5):
        with service(image, "none") as (process, place, _):
            disk = Disk(place, NQN, number=1, controller=Admin(place, NQN).controller)
            for at in range(50 + turn):
                disk.write(at, bytes([turn + 1]) * BLOCK)
            process.kill()
            process.wait()
        writes += 50 + turn
        assert look("info", image)["life"]["writes"] == writes
        assert look("info", image)["written"]["host_bytes"] == writes * BLOCK
