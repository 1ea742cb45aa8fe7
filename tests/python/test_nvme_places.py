"""Places of served drives: sockets before the drive is ready, advertised and open addresses, sizes that hosts read.

Ignored: machines other than this one.
"""

import re
import signal
import socket
import subprocess
import time

import pytest

import nvme_initiator as nvme
from conftest import COMMAND, Command
from nvme_initiator import Admin, number
from nvme_target import NQN, SMALL, closed, served  # noqa: F401

pytestmark = pytest.mark.contract


@pytest.mark.parametrize(("ftl", "map_blocks"), [("page", 2), ("subpage", 1)])
def test_sizes_of_writes_are_pages_and_programs(ftl: str, map_blocks: int) -> None:
    """Pages of 8 KiB in dies of four planes, blocks of 4 KiB: granularity, alignment, both of trims, optimal size."""
    drive = [*SMALL, "--ftl", ftl, "--set", "ssd.planes_per_die=4"]
    with served(drive=drive) as (_, place):
        namespace = Admin(place, NQN).identify(0, 1)
    assert [1 + number(namespace, at, 2) for at in (64, 66, 68, 70, 72)] == [2, 2, map_blocks, map_blocks, 8]


def test_discovery_has_the_advertised_address() -> None:
    command = [str(COMMAND), "nvme", *SMALL, "--listen", "127.0.0.1:0", "--advertise", "192.0.2.7:4421"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        serving, connect = process.stderr.readline(), process.stderr.readline()
        assert connect == f"nvme connect -t tcp -a 192.0.2.7 -s 4421 -n {NQN}\n"
        port = re.search(r"127\.0\.0\.1:(\d+)", serving)
        assert port, serving
        log = Admin(("127.0.0.1", int(port[1])), nvme.DISCOVERY).log(0x70, 2048)
        process.kill()
    assert (log[1536:1792].strip(), log[1056:1088].strip()) == (b"192.0.2.7", b"4421")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [("4420", "expected HOST:PORT"), ("host:0", "expected HOST:PORT"), ("no.such.host.invalid:1", "can look up")],
)
def test_wrong_advertised_addresses_are_refused(palimpsest: Command, wrong: str, said: str) -> None:
    done = palimpsest("nvme", "--advertise", wrong)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --advertise: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["nvme", "serve"])
def test_clients_are_refused_until_the_drive_is_ready(command: str) -> None:
    """A client that connects while the drive is preconditioned must not wait for an answer."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = [str(COMMAND), command, "--ssd", "mga-16k", "--precondition", "fill:100%,random:99x"]
    with subprocess.Popen([*program, "--listen", f"127.0.0.1:{port}"], stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 3
        while time.monotonic() < end and process.poll() is None:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            time.sleep(0.1)
        assert process.poll() is None, "preconditioning takes longer than the test"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130


@pytest.mark.parametrize("command", ["nvme", "serve"])
def test_an_open_address_is_named_with_a_warning(command: str) -> None:
    program = [str(COMMAND), command, "--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=32", "--listen", "0.0.0.0:0"]
    with subprocess.Popen([*program, "--run", "echo $uri"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        printed, said = (text.decode() for text in process.communicate(timeout=60))
    assert process.returncode == 0
    assert "warning: every machine that reaches the address can read and write the drive" in said
    own = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    if others := [address for address in own if "." in address and not address.startswith("169.254.")]:
        assert "0.0.0.0" not in printed + said
        assert any(f"{other}:" in printed for other in others)
