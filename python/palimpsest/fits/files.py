"""The kinds of files that measurements come in, and which kind a file is.

A kind is one module with a function that reads a file, and one line in `READERS`.
"""

from collections.abc import Callable
from pathlib import Path

from ..errors import InputError
from . import counters, fio_json, fio_logs, stated, tables, traces
from .measured import How, Measurement

__all__ = ["READERS", "read"]

READERS: dict[str, tuple[Callable[[Path, How], Measurement], Callable[[Path], bool]]] = {
    "fio": (fio_json.read, lambda path: path.suffix == ".json"),
    "log": (fio_logs.read, fio_logs.is_one),
    "stated": (stated.read, lambda path: path.suffix == ".toml"),
    "trace": (traces.read, traces.is_one),
    "table": (tables.read, lambda path: path.suffix == ".csv" and not _has_counters(path)),
    "counters": (counters.read, lambda path: path.suffix == ".csv"),
}
"""Kinds of files: what reads each, and whether a path is one; the first that says so."""


def _has_counters(path: Path) -> bool:
    """Whether the first line names counters of the host's and the drive's bytes."""
    try:
        with path.open(encoding="utf-8") as file:
            head = file.readline().lower()
    except (OSError, UnicodeDecodeError):
        return False
    head = head.replace(" ", "_")
    return any(name in head for name in ("host_", "media_", "nand_", "units_written"))


def read(path: Path, how: How) -> Measurement:
    """Reads a measurement.

    Raises:
        InputError: the file is of no known kind, or not as its kind has to be; with file and line or key.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; expected measurements (see `palimpsest fit --help`)")
    for reader, is_one in READERS.values():
        if is_one(path):
            return reader(path, how)
    raise InputError(
        f"{path}: expected fio's output in JSON (.json), its logs (_lat.1.log), figures with their workloads (.toml), "
        "a table or counters (.csv), or a trace with response times: MSR Cambridge's, Systor '17's, ETW, or blkparse"
    )
