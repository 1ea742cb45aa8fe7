"""Identities of served drives: NQN, serial number, UUID and controller numbers of one drive, and of no other.

Ignored: collisions with drives of other machines.
"""

import os
import re
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import COMMAND, Command
from nvme_initiator import Admin, number
from nvme_target import closed, target_of  # noqa: F401

pytestmark = pytest.mark.contract

DRIVE = ("--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=32", "--seed", "1")
NAMED = f"nqn.2026-11.org.example:named.{os.getpid()}"
PROGRAM = (str(COMMAND), "nvme", "--listen", "127.0.0.1:0")


@dataclass(frozen=True)
class Identity:
    """The identity of a drive, as a host sees it."""

    nqn: str
    serial: bytes
    namespaces: tuple[bytes, ...]
    controller: int


@contextmanager
def drive(*options: str) -> Iterator[tuple[subprocess.Popen[str], Identity]]:
    """A target, and the identity that a host sees."""
    with subprocess.Popen([*PROGRAM, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, identity_of(*target_of(process))
        finally:
            process.kill()


def identity_of(place: tuple[str, int], nqn: str) -> Identity:
    admin = Admin(place, nqn)
    controller = admin.identify(1)
    assert number(controller, 78, 2) == admin.controller
    identifiers = []
    for namespace in (1, 2):
        described = admin.identify(3, namespace) if any(admin.identify(0, namespace)) else bytes(64)
        assert described[4:20] == described[24:40], "globally unique identifier and UUID"
        identifiers.append(described[4:20])
    return Identity(nqn, controller[4:24], tuple(identifiers), admin.controller)


def differ(one: Identity, other: Identity) -> bool:
    shared = set(one.namespaces) & set(other.namespaces) - {bytes(16)}
    return one.serial != other.serial and one.controller != other.controller and not shared


def test_two_drives_of_one_preset_and_seed_are_two_drives() -> None:
    halves = ("--namespace", "size=1MiB", "--namespace", "size=1MiB")
    with drive(*DRIVE, *halves) as (_, one), drive(*DRIVE, *halves) as (_, other):
        assert one.nqn != other.nqn
        assert differ(one, other)
        assert len({*one.namespaces, *other.namespaces}) == 4
        assert all(0 < found.controller < 0xFFF0 for found in (one, other))
        assert all(uuid.UUID(bytes=found).version == 4 for found in one.namespaces)


def test_one_name_after_the_other_has_other_data() -> None:
    """Without an image the data is gone, so that a host must not take the second drive for the first."""
    with drive(*DRIVE, "--nqn", NAMED) as (_, one):
        pass
    with drive(*DRIVE, "--nqn", NAMED) as (_, other):
        assert differ(one, other)


def test_an_image_keeps_its_identity(tmp_path: Path, palimpsest: Command) -> None:
    image = tmp_path / "a.pal"
    halves = ("--namespace", "size=1MiB", "--namespace", "size=1MiB")
    with drive(*DRIVE, *halves, "--image", str(image)) as (process, one):
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    for _ in range(2):
        with drive(*halves, "--image", str(image)) as (_, again):
            assert again == one
    said = palimpsest("image", "info", str(image), "--json").stdout
    assert str(uuid.UUID(bytes=one.namespaces[0])) in said
    with drive("--image", str(tmp_path / "b.pal"), *DRIVE) as (_, other):
        assert differ(one, other)


def test_a_copied_image_is_the_same_drive_until_it_is_named(tmp_path: Path) -> None:
    image, copy = tmp_path / "a.pal", tmp_path / "b.pal"
    with drive(*DRIVE, "--image", str(image)):
        pass
    shutil.copy(image, copy)
    with drive("--image", str(image)) as (_, one):
        refused = subprocess.run([*PROGRAM, "--image", str(copy)], capture_output=True, text=True, timeout=60)
        assert refused.returncode == 2, refused.stderr
        assert re.fullmatch(rf"error: --nqn {one.nqn}: [^\n]+; expected [^\n]+--nqn[^\n]*\n", refused.stderr)
        with drive("--image", str(copy), "--nqn", NAMED) as (_, other):
            assert differ(one, other)
    with drive("--image", str(copy), "--nqn", NAMED) as (_, again):
        assert again == other


def test_a_name_is_free_again_after_a_kill() -> None:
    named = (*DRIVE, "--nqn", NAMED)
    with drive(*named) as (process, _):
        done = subprocess.run([*PROGRAM, *named], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith(f"error: --nqn {NAMED}: ")
        process.kill()
        process.wait()
        with drive(*named):
            pass
