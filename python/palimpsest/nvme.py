"""The command `palimpsest nvme`: a simulated drive as an NVMe/TCP target, for hosts without a kernel module."""

import ipaddress
import re
import socket
from typing import Any

import click

from . import units
from .commands import command
from .parameters import DURATION, Parsed
from .run_options import in_order, seed_option
from .serving import CLOCK, DRIVE, KEPT, OUTCOME, PAGE, listen_option, run_drive, run_option

PLACE = "127.0.0.1:4420"
"""The default place: the port of NVMe over Fabrics, for programs of this machine only."""

BLOCKS = ("512", "4096")


def _qualified(text: str) -> str:
    if not text.startswith("nqn.") or len(text.encode()) >= 224 or any(mark.isspace() for mark in text):
        what = "expected an NVMe qualified name such as nqn.2026-11.org.example:drive, below 224 bytes"
        raise ValueError(f"{text!r} is no name of a subsystem or host; {what}")
    return text


def _namespace(text: str) -> int:
    size = units.parse_bytes(text.removeprefix("size="))
    if not text.startswith("size=") or size is None or size <= 0:
        raise ValueError(f"{text!r} is no namespace; expected one such as size=10GiB")
    return size


def _other(text: str) -> tuple[str, str]:
    """A subsystem and its address, `IP:PORT`."""
    name, _, address = text.partition("@")
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)):([1-9][0-9]{0,4})", address)
    try:
        is_place = found and int(found[3]) < 1 << 16 and ipaddress.ip_address(found[1] or found[2])
    except ValueError:
        is_place = False
    if not is_place or (found and found[1] and ":" not in found[1]):
        raise ValueError(f"{text!r} is no subsystem; expected one such as nqn.2026-11.org.example:two@127.0.0.1:4421")
    return _qualified(name), address


def _advertised(text: str) -> str:
    """The address and port of `HOST:PORT`."""
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch(r"[1-9][0-9]{0,4}", port) or int(port) >= 1 << 16:
        raise ValueError(f"{text!r} is no address; expected HOST:PORT such as 192.0.2.7:4420")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0][4][0]
    except OSError as error:
        raise ValueError(f"{host}: {error.strerror}; expected a host that this machine can look up") from error
    return f"[{found}]:{port}" if ":" in str(found) else f"{found}:{port}"


_OPTIONS = (
    *DRIVE,
    listen_option(f"HOST:PORT (port 0: any free one); may be repeated.  [default: {PLACE}]"),
    click.option(
        "--nqn",
        type=Parsed("NQN", _qualified),
        help="Name of the subsystem.  [default: from the UUID of image or drive]",
    ),
    click.option(
        "--host", "hosts", type=Parsed("NQN", _qualified), multiple=True, help="Only this host may connect; repeatable."
    ),
    click.option("--block", type=click.Choice(BLOCKS), default="4096", help="Bytes of a logical block."),
    click.option(
        "--namespace",
        "namespaces",
        type=Parsed("size=SIZE", _namespace),
        multiple=True,
        help="A namespace; repeatable. Hosts may make more of the rest.  [default: one of the whole drive]",
    ),
    click.option(
        "--discover",
        "others",
        type=Parsed("NQN@IP:PORT", _other),
        multiple=True,
        help="Name a subsystem of another process in the discovery log too; repeatable.",
    ),
    click.option(
        "--advertise",
        type=Parsed("HOST:PORT", _advertised),
        help="Address for the discovery log, such as one outside NAT.  [default: the one at which a host connects]",
    ),
    PAGE,
    click.option("--once", is_flag=True, help="End when the last host that used the drive has gone."),
    run_option("the address as $uri"),
    *KEPT,
    CLOCK,
    seed_option,
    click.option("--timeout", type=DURATION, default="30s", help="Most time for a connect, a message or asked data."),
    *OUTCOME,
)


@command(short_help="Serve a drive to NVMe hosts (NVMe/TCP).")
@in_order(*_OPTIONS)
def nvme(
    listen: tuple[str, ...], *, nqn: str | None, hosts: tuple[str, ...], block: str, namespaces: tuple[int, ...],
    others: tuple[tuple[str, str], ...], advertise: str | None, once: bool, timeout: float,
    **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Serve a simulated drive as an NVMe/TCP target, and print its figures at the end.

    Any Linux connects to the drive with nvme-cli (the printed line), and gets /dev/nvmeXn1. The target needs no root
    and no kernel module. Without --image the data is lost at the end.

    \b
    Examples:
      palimpsest nvme
      palimpsest nvme --ssd mga-16k --ftl mga --nqn nqn.2026-11.org.example:drive --json
      palimpsest nvme --clock paced --ssd tlc-32g --page 127.0.0.1:8080
      palimpsest nvme --image drive.pal --ssd mga-16k --block 512
      palimpsest nvme --ssd mga-16k --namespace size=4GiB --namespace size=2GiB
      palimpsest nvme --record run.parquet --once
      palimpsest nvme --ssd mga-8k --ftl zns --set zns.zone_dies=1
    """
    subsystem = {
        "nqn": nqn, "hosts": list(hosts), "block_bytes": int(block), "namespaces": list(namespaces),
        "others": list(others), "advertise": advertise,
    }  # fmt: skip
    serving = {"listen": list(listen or [PLACE]), "nvme": subsystem, "once": once, "timeout_s": timeout}
    run_drive("nvme", options, serving)
