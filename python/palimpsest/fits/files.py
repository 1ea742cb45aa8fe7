"""The kinds of files of measurements. A kind is one module with a function `read`, and one line in `READERS`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from . import counters, fio_json, fio_logs, stated, tables, traces
from .measured import How, Measurement


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of files: reader, test of a path, and the fields of `How` that are read."""

    read: Callable[[Path, How], Measurement]
    is_one: Callable[[Path], bool]
    takes: frozenset[str]


_STATE = frozenset({"precondition"})
READERS: dict[str, Kind] = {
    "smart": Kind(counters.read, counters.is_json, _STATE | {"workload", "capacity"}),
    "fio": Kind(fio_json.read, lambda path: path.suffix == ".json", _STATE),
    "log": Kind(fio_logs.read, fio_logs.is_one, _STATE | {"workload"}),
    "stated": Kind(stated.read, lambda path: path.suffix == ".toml", _STATE),
    "trace": Kind(traces.read, traces.is_one, _STATE),
    "table": Kind(tables.read, lambda path: path.suffix == ".csv" and not _has_counters(path), _STATE),
    "counters": Kind(counters.read, lambda path: path.suffix == ".csv", _STATE | {"workload", "capacity"}),
}
"""Kinds of files, in order of choice."""

_NAMED = {"logs of fio": READERS["log"], "counters over time": READERS["counters"]}


def _has_counters(path: Path) -> bool:
    """Whether the first line names counters of the host's and the drive's bytes."""
    try:
        with path.open(encoding="utf-8") as file:
            head = file.readline().lower()
    except (OSError, UnicodeDecodeError):
        return False
    head = head.replace(" ", "_")
    return any(name in head for name in ("host_", "media_", "nand_", "units_written"))


def _kind(path: Path) -> Kind | None:
    return next((kind for kind in READERS.values() if kind.is_one(path)), None)


def read_all(paths: Sequence[Path], how: How) -> tuple[Measurement, ...]:
    """Reads measurements. Raises InputError as `read`, or for an option that no file needs."""
    found = tuple(read(path, how) for path in paths)
    taken = frozenset().union(*(kind.takes for kind in map(_kind, paths) if kind is not None))
    for field in ("workload", "capacity"):
        if getattr(how, field) and field not in taken:
            kinds = " and ".join(name for name, kind in _NAMED.items() if field in kind.takes)
            raise InputError(f"--{field}: these measurements have their own; expected {kinds} beside it")
    return found


def read(path: Path, how: How) -> Measurement:
    """Reads a measurement. Raises InputError with file and line or key."""
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; expected measurements (see `palimpsest fit --help`)")
    kind = _kind(path)
    if kind is not None:
        found = kind.read(path, how)
        if not found.targets:
            raise InputError(f"{path}: the file has no figure above 0; expected at least one to fit to")
        return found
    raise InputError(
        f"{path}: expected fio's output in JSON (.json), its logs (_lat.1.log), logs of SMART and OCP (.json), figures "
        "with their workloads (.toml), a table or counters (.csv), or a trace with response times: MSR Cambridge's, "
        "Systor '17's, ETW, or blkparse"
    )
