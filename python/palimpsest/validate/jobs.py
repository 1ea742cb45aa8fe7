"""Job files of rows: sections of keys, and the folder that holds the files during the runs."""

import contextlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path


def block_size(spec: str) -> int:
    """Bytes of the requests of a specification; 0 for several sizes, or none."""
    match = re.search(r"\b(?:bs|blocksize)=(\d+)([kKmM]?)(?:i?B)?(?=,|$)", spec)
    return int(match[1]) * {"": 1, "k": 1 << 10, "m": 1 << 20}[match[2].lower()] if match else 0


def section(name: str, spec: str, *keys: str) -> str:
    """A job with the keys of `spec`, which commas separate, and `keys`. A key without a value is switched on."""
    lines = [part if "=" in part else f"{part}=1" for part in (*spec.split(","), *keys)]
    return "\n".join([f"[{name}]", *lines, ""])


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def job_folder(folder: Path | None) -> contextlib.AbstractContextManager[Path]:
    """The folder for job files, or a temporary one."""
    return _temporary() if folder is None else contextlib.nullcontext(folder)
