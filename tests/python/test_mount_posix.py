"""`palimpsest mount` answers like tmpfs: random operations of several users on both. Needs root and FUSE."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import posix_twins
from test_mount import mounted, needs_fuse

pytestmark = [pytest.mark.contract, needs_fuse]

TRUSTED = Path("/dev/shm")


@pytest.fixture
def trusted() -> Iterator[Path]:
    """A folder on tmpfs, with a path that all users may search and an empty folder for the mount."""
    if not TRUSTED.is_dir():
        pytest.skip(f"there is no {TRUSTED}")
    folder = Path(tempfile.mkdtemp(dir=TRUSTED))
    folder.chmod(0o755)
    (folder / "mount").mkdir()
    yield folder
    shutil.rmtree(folder)


def alike(seed: int, steps: int, trusted: Path) -> str:
    """Runs the operations in a separate process, which changes its user; returns the output."""
    # Links to places above a folder stay within the common part of both.
    roots = [above / f"{seed}" / "a" / "b" / "c" for above in (trusted / "mount", trusted)]
    for root in roots:
        root.mkdir(parents=True)
    command = [sys.executable, posix_twins.__file__, str(seed), str(steps), *map(str, roots)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_random_operations_are_answered_alike(trusted: Path) -> None:
    with mounted(trusted / "mount"):
        assert "31 kinds" in alike(1, 1000, trusted)


@pytest.mark.long
def test_many_random_operations_are_answered_alike(trusted: Path) -> None:
    with mounted(trusted / "mount"):
        for seed in range(100, 150):
            alike(seed, 2000, trusted)


def test_a_difference_is_found(trusted: Path) -> None:
    roots = [trusted / name for name in ("one", "other")]
    for root in roots:
        root.mkdir()
    (roots[0] / "a").mkdir()
    command = [sys.executable, posix_twins.__file__, "1", "200", *map(str, roots)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
    assert done.returncode == 1
    assert "on the other" in done.stdout
