"""`palimpsest serve` on the native module: the command, its result and its end. A small client speaks NBD."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import at_work
import palimpsest as ps
from conftest import COMMAND, Command
from documents import examples

pytestmark = pytest.mark.contract

SMALL = ["--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=64"]
READ, WRITE, FLUSH, TRIM = 0, 1, 3, 4


class Client:
    """A connection to a served drive, one request at a time."""

    def __init__(self, family: socket.AddressFamily, address: str | tuple[str, int]) -> None:
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(30)
        self.socket.connect(address)
        assert self.take(18)[:8] == b"NBDMAGIC"
        self.socket.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, 0))
        self.size = struct.unpack(">QH", self.take(10))[0]

    def take(self, count: int) -> bytes:
        """The next bytes of the server."""
        taken = b""
        while len(taken) < count:
            more = self.socket.recv(count - len(taken))
            assert more, "the server hung up"
            taken += more
        return taken

    def ask(self, kind: int, offset: int, length: int, data: bytes = b"") -> bytes:
        """The data of a read; empty for other requests."""
        self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, kind, 7, offset, length) + data)
        magic, error, cookie = struct.unpack(">IIQ", self.take(16))
        assert (magic, error, cookie) == (0x67446698, 0, 7)
        return self.take(length) if kind == READ else b""


@contextmanager
def served(*options: str, stdin: int | None = None) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The command, and the addresses of its drive."""
    command = [str(COMMAND), "serve", *SMALL, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=stdin, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert " at " in line, line
            yield process, line.rpartition(" at ")[2].split(" and ")
        finally:
            process.kill()


def tcp(uri: str) -> Client:
    host, _, port = uri.strip().removeprefix("nbd://").rpartition(":")
    assert host == "127.0.0.1", "the default is for this machine only"
    return Client(socket.AF_INET, (host, int(port)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_its_result(number: signal.Signals, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with served("--listen", "127.0.0.1:0", "--json", "--out", str(out)) as (process, places):
        client = tcp(places[0])
        client.ask(WRITE, 8192, 5, b"hello")
        assert client.ask(READ, 8191, 7) == b"\0hello\0"
        process.send_signal(number)
        printed, said = process.communicate(timeout=30)
        client.socket.close()
    result = json.loads(printed)
    assert (process.returncode, said) == (0, f"wrote {out}/report.html, summary.json, config.toml and Parquet tables\n")
    # A write of part of a sector reads the sector first.
    assert (result["workload"], result["requests"]["read"], result["requests"]["write"]) == ("nbd", 2, 1)
    assert (result["payload"], result["interrupted"]) == ("bytes", False)
    assert result["sim"]["wall_s"] > 0
    loaded = ps.load(out)
    assert isinstance(loaded, ps.Result)
    assert loaded["host"] == result["host"]


def test_once_ends_with_the_last_client(tmp_path: Path) -> None:
    path = tmp_path / "drive.sock"
    with served("--listen", f"unix:{path}", "--listen", "127.0.0.1:0", "--once", "--clock", "virtual") as (
        process,
        at,
    ):
        assert path.stat().st_mode & 0o777 == 0o600
        client = Client(socket.AF_UNIX, str(path))
        assert at[0] == f"nbd+unix:///?socket={path}"
        client.ask(WRITE, 0, 4096, b"x" * 4096)
        other = tcp(at[1])
        client.socket.close()
        assert other.ask(READ, 0, 4096) == b"x" * 4096
        other.socket.close()
        printed, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert re.search(r"workload +nbd: 2 requests", printed)
    assert not path.exists()


@pytest.mark.parametrize(("clock", "fidelity"), [("none", "count"), ("virtual", "timed")])
def test_a_record_plays_as_a_workload(palimpsest: Command, tmp_path: Path, clock: str, fidelity: str) -> None:
    record = str(tmp_path / "run.parquet")
    with served("--listen", "127.0.0.1:0", "--record", record, "--clock", clock, "--json") as (process, at):
        clients = [tcp(at[0]), tcp(at[0])]
        for number in range(300):
            clients[number % 2].ask(WRITE, number * 37 % 91 * 4096, 12288, bytes(12288))
            clients[0].ask(READ, number * 51 % 80 * 4096, 4096)
            if number % 50 == 0:
                clients[1].ask(TRIM, number * 4096, 65536)
                clients[0].ask(FLUSH, 0, 0)
        process.send_signal(signal.SIGTERM)
        live = json.loads(process.communicate(timeout=30)[0])
        for client in clients:
            client.socket.close()
    options = ["--workload", record, "--precondition", "none", "--fidelity", fidelity, "--payload", "tag", "--json"]
    played = palimpsest("run", *SMALL, *options)
    assert played.returncode == 0, played.stderr
    again = json.loads(played.stdout)
    assert live["requests"] == {"read": 300, "write": 300, "trim": 6, "flush": 6}
    for figures in ("requests", "host", "flash", "gc", "write_amplification", "latency_ns"):
        assert again[figures] == live[figures], figures


def test_a_record_may_be_in_the_new_folder_of_the_results(palimpsest: Command, tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    files = ["--record", str(out / "run.parquet"), "--out", f"{tmp_path}/new/./folder"]
    with served("--listen", "127.0.0.1:0", *files) as (process, at):
        client = tcp(at[0])
        client.ask(WRITE, 0, 8192, bytes(8192))
        client.socket.close()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0
    assert (out / "run.parquet").is_file()
    again = palimpsest("rerun", str(out))
    assert again.returncode == 0, again.stderr
    files = ["--record", "made/run.parquet", "--out", "other"]
    other = palimpsest("serve", *SMALL, "--listen", "127.0.0.1:0", "--run", "true", *files, cwd=tmp_path)
    assert other.returncode == 2
    assert other.stderr == "error: --record: made/run.parquet: there is no folder made; expected one\n"
    assert not (tmp_path / "other").exists()


def test_a_command_beside_it_gives_the_status(palimpsest: Command) -> None:
    done = palimpsest("serve", *SMALL, "--listen", "127.0.0.1:0", "--run", "echo $uri; exit 5")
    assert done.returncode == 5
    assert done.stdout.startswith("nbd://127.0.0.1:")


def test_a_signal_ends_all_of_the_command_beside_it(tmp_path: Path) -> None:
    marker = f"sleep 97{os.getpid()}"

    def running() -> bool:
        return subprocess.run(["pgrep", "-f", marker], capture_output=True, check=False).returncode == 0

    begun = tmp_path / "begun"
    run = f"{marker} & (trap '' TERM; touch {begun}; {marker})"
    with served("--listen", "127.0.0.1:0", "--run", run, stdin=subprocess.DEVNULL) as (process, _):
        deadline = time.monotonic() + 30
        while not begun.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert running()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert not running(), "what refuses SIGTERM is killed"


def test_a_second_command_at_the_same_place_is_refused(palimpsest: Command, tmp_path: Path) -> None:
    place = f"unix:{tmp_path}/s"
    with served("--listen", place):
        again = palimpsest("serve", *SMALL, "--listen", place)
    assert again.returncode == 2
    assert again.stderr.startswith(f"error: --listen {place}: ")
    assert again.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--listen", "10809"], "--listen: '10809' is no place"),
        (["--listen", "127.0.0.1:99999"], "--listen 127.0.0.1:99999: "),
        (["--clock", "fast"], "--clock: 'fast' is no clock"),
        (["--clock", "scaled:0"], "--clock scaled:0: "),
        (["--page", "0.0.0.0:0"], "--page 0.0.0.0:0: other machines could read it"),
        (["--record", "run.csv"], "expected a name that ends in .parquet"),
        (["--timeout", "5"], "--timeout: expected a time"),
        (["--ssd", "nothing"], "nothing"),
        (["--set", "part.nop"], "part.nop"),
        (["--precondition", "half"], "half"),
        (["--workload", "trade"], "No such option"),
    ],
)
def test_a_mistake_is_one_line(palimpsest: Command, options: list[str], named: str) -> None:
    done = palimpsest("serve", *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert named in done.stderr


def test_an_interrupt_before_it_is_served_is_one_line() -> None:
    command = [str(COMMAND), "serve", "--ssd", "llh-64g", "--precondition", "fill:100%,random:90x"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        at_work.wait(process)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=30)
    assert (process.returncode, printed, said) == (130, "", "interrupted\n")


def test_examples_of_the_help(palimpsest: Command) -> None:
    """Each with a free port, and with a command that ends the service, because other programs may be missing."""
    found = examples(palimpsest("serve", "--help").stdout)
    assert len(found) > 3
    for example in found:
        options = re.sub(
            r"(--run '[^']*'|--(listen|out|record|page|image) \S+)", "", example.removeprefix("palimpsest serve")
        ).split()
        done = palimpsest("serve", *options, "--listen", "127.0.0.1:0", "--run", "true")
        assert done.returncode == 0, f"{example}\n{done.stderr}"
