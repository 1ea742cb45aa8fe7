"""Power cuts of the drive below a mounted file system: remaining data, and errors. Needs root and FUSE."""

import contextlib
import errno
import mmap
import os
import time
from pathlib import Path

import pytest

from test_mount import mounted, needs_fuse, refused

pytestmark = pytest.mark.contract


def is_written(path: Path) -> bool:
    """Writes a file, and returns whether the write was accepted."""
    try:
        path.write_bytes(bytes(1 << 18))
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return False
    return True


@needs_fuse
def test_a_power_cut_of_the_drive_leaves_what_was_synced(tmp_path: Path) -> None:
    with mounted(tmp_path, "--set", "faults.power_cut_at=1500"):
        with (tmp_path / "synced").open("wb", buffering=0) as file:
            file.write(b"before the cut")
            os.fsync(file.fileno())
        later = os.open(tmp_path / "later", os.O_RDWR | os.O_CREAT)
        refused = [number for number in range(100) if not is_written(tmp_path / f"file{number}")]
        assert len(refused) == 1, "the one operation in which the power failed"
        assert (tmp_path / "synced").read_bytes() == b"before the cut"
        with pytest.raises(OSError) as gone:
            os.write(later, b"x")
        assert gone.value.errno in {errno.ESTALE, errno.EIO}, "EIO where the kernel has met another by its number"
        with contextlib.suppress(OSError):
            os.close(later)
        (tmp_path / "after").write_text("works")
        assert (tmp_path / "after").read_text() == "works"


@needs_fuse
def test_files_open_in_other_operations_get_the_error_of_a_cut(tmp_path: Path) -> None:
    with mounted(tmp_path, "--set", "faults.power_cut_at=1500"):
        file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
        os.fsync(file)
        os.pwrite(file, b"not synced when the power fails", 0)
        others = 0
        while is_written(tmp_path / f"file{others}"):
            others += 1
        assert others > 5
        assert refused(lambda: os.fsync(file)) == errno.EIO, "what it had written is lost"
        os.pwrite(file, b"again ", 0)
        os.fsync(file)
        os.close(file)
        assert (tmp_path / "file").read_bytes() == b"again "


@needs_fuse
def test_the_kernel_forgets_what_a_power_cut_lost(tmp_path: Path) -> None:
    with mounted(tmp_path, "--set", "faults.power_cut_at=1500"):
        file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
        os.pwrite(file, b"synced" * 2000, 0)
        os.fsync(file)
        os.pwrite(file, b"longer, and lost" * 2000, 0)
        mapped = mmap.mmap(file, 0, prot=mmap.PROT_READ)
        assert mapped[:6] == b"longer"
        others = 0
        while is_written(tmp_path / f"file{others}"):
            others += 1
        assert others > 5
        assert refused(lambda: os.fsync(file)) == errno.EIO
        deadline = time.monotonic() + 10
        while os.pread(file, 6, 0) != b"synced" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert os.pread(file, 20000, 0) == b"synced" * 2000, "what is open shows what the drive has"
        assert mapped[:6] == b"synced"
        assert os.fstat(file).st_size == 12000
        mapped.close()
        os.close(file)
