"""Counters over time, as in SMART or OCP logs: bytes of the host and of the media since the drive was new.

A CSV file whose first line names a counter of the host and a counter of the media: `host_bytes`, `host_gb`, `host_tb`,
`host_data_units_written` (512,000 bytes each, as NVMe counts), and the same with `media_` or `nand_`; or the names of
the logs, `data_units_written` (SMART) and `physical_media_units_written` (bytes, OCP). Capitals and blanks do not
matter; other columns are ignored. Or a JSON file of these logs, as `nvme smart-log -o json`, `nvme ocp smart-add-log -o
json` and `smartctl -j` print them, appended to one file in order of time: one of each is a reading. `--workload` was
written to a drive of `--capacity`. A group is the time between two lines or readings.
"""

import csv
import json
import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from ..errors import InputError
from ..options import RunOptions
from ..result import Result
from .measured import How, Measurement, OneRun, Target
from .space import Drive

_UNITS = {"bytes": 1.0, "gb": 1e9, "tb": 1e12, "data_units_written": 512_000.0}
_LOGS = {"data_units_written": ("host", 512_000.0), "physical_media_units_written": ("media", 1.0)}
"""Names of NVMe's SMART log and of OCP's, with the kind and the bytes of a unit."""
COLUMNS = {kind: tuple(f"{kind}_{unit}" for unit in _UNITS) for kind in ("host", "media", "nand")}
"""Names of columns."""
_MOST = 400
"""Most compared windows; neighbours are joined in longer files."""
_TOLERANCE = 0.03
_FORGOTTEN = 4.0
"""A drive that was overwritten so often does not show how often: earlier writes are not simulated."""


def read(path: Path, how: How) -> Measurement:
    """Reads counters. Raises InputError for a wrong file, or without workload or capacity."""
    for given, option in ((how.workload, "--workload"), (how.capacity, "--capacity")):
        if not given:
            raise InputError(f"{path}: counters do not name workload and drive; expected {option} beside them")
    rows = _readings(path) if path.suffix == ".json" else _lines(path)
    step = math.ceil((len(rows) - 1) / _MOST)
    return _counters(path.name, [*rows[:-1:step], rows[-1]], how)


def is_json(path: Path) -> bool:
    """Whether a JSON file has a counter of SMART or OCP."""
    try:
        return path.suffix == ".json" and any(name in _named(path.read_text(encoding="utf-8")) for name in _LOGS)
    except (OSError, UnicodeDecodeError):
        return False


def _named(text: str) -> str:
    """A name of a counter without capitals and blanks."""
    return "_".join(text.lower().split())


def _readings(path: Path) -> list[tuple[float, float]]:
    """The counters of the host and the media of each reading. Raises InputError if one lacks a counter."""
    text, at = path.read_text(encoding="utf-8").strip(), 0
    found: dict[str, float] = {}
    rows: list[tuple[float, float]] = []
    while at < len(text):
        try:
            each, at = json.JSONDecoder().raw_decode(text, at)
        except ValueError as error:
            raise InputError(f"{path}: expected the output of nvme or smartctl in JSON: {error}") from None
        at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n,"))
        for kind, value in _in_log(path, each):
            if kind in found:
                other, tool = ("media", "nvme ocp smart-add-log") if kind == "host" else ("host", "nvme smart-log")
                raise InputError(
                    f"{path}: reading {len(rows) + 1} has no counter of the {other}; expected the output of "
                    f"`{tool} -o json` in the same file, once for each reading"
                )
            found[kind] = value
            if len(found) == 2:
                rows.append((found["host"], found["media"]))
                found = {}
                _check_order(f"{path}: reading {len(rows)}", rows)
    if len(rows) < 2:
        raise InputError(
            f"{path}: expected two readings at least, of the host's counter (`nvme smart-log -o json`) and the media's "
            f"(`nvme ocp smart-add-log -o json`), with writes between them; found {len(rows)}"
        )
    return rows


def _in_log(path: Path, data: object) -> Iterator[tuple[str, float]]:
    """The counters in a log, at any depth: host or media, and bytes. Numbers of 128 bits are text, or `hi` and `lo`."""
    if isinstance(data, list):
        for each in data:
            yield from _in_log(path, each)
    for name, value in data.items() if isinstance(data, dict) else ():
        if _named(name) not in _LOGS:
            yield from _in_log(path, value)
            continue
        kind, unit = _LOGS[_named(name)]
        try:
            whole = (int(value["hi"]) << 64) + int(value["lo"]) if isinstance(value, dict) else int(str(value))
            if whole < 0:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path}: {name} is {value!r}; expected a whole number, or its parts hi and lo") from None
        yield kind, whole * unit


def _check_order(place: str, rows: Sequence[tuple[float, float]]) -> None:
    if len(rows) > 1 and (rows[-1][0] <= rows[-2][0] or rows[-1][1] < rows[-2][1]):
        raise InputError(f"{place}: a counter is not above that of the line before; expected lines in order of time")


def _lines(path: Path) -> list[tuple[float, float]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = [line for line in csv.reader(file) if any(map(str.strip, line))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: expected a table of comma-separated values: {error}") from None
    header = list(map(_named, lines[0]))
    host, media = _column(path, header, ("host",)), _column(path, header, ("media", "nand"))
    rows: list[tuple[float, float]] = []
    for number, line in enumerate(lines[1:], start=2):
        rows.append((_number(path, number, line, *host), _number(path, number, line, *media)))
        _check_order(f"{path}:{number}", rows)
    if len(rows) < 2:
        raise InputError(f"{path}: expected two lines of counters at least, found {len(rows)}")
    return rows


def _column(path: Path, header: Sequence[str], kinds: Sequence[str]) -> tuple[int, float]:
    """Index of a counter, and bytes of its unit."""
    for at, name in enumerate(header):
        kind, _, unit = name.partition("_")
        if kind in kinds and unit in _UNITS:
            return at, _UNITS[unit]
        if name in _LOGS and _LOGS[name][0] in kinds:
            return at, _LOGS[name][1]
    names = (*(name for kind in kinds for name in COLUMNS[kind]), *(name for name in _LOGS if _LOGS[name][0] in kinds))
    known = ", ".join(names)
    raise InputError(f"{path}:1: no counter of the {kinds[0]}; expected a column {known}; found {', '.join(header)}")


def _number(path: Path, number: int, line: Sequence[str], at: int, unit: float) -> float:
    text = line[at].strip() if at < len(line) else ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(f"{path}:{number}: the counter is {text!r}; expected a number from 0")
    return value * unit


def _counters(name: str, rows: Sequence[tuple[float, float]], how: How) -> OneRun:
    """Write amplification between two lines, each at its place in passes over the capacity since the drive was new."""
    passes = [host / float(how.capacity or 1) for host, _ in rows]
    skipped = max(0.0, passes[0] - _FORGOTTEN)
    places = [place - skipped for place in passes]
    targets = tuple(
        Target(f"to {end:.4g} passes", f"to {end:.4g} passes", "write amplification", "", ratio, _TOLERANCE, end)
        for (before, after), end in zip(pairwise(rows), places[1:], strict=True)
        if (ratio := (after[1] - before[1]) / (after[0] - before[0])) > 0
    )

    def loops(groups: frozenset[str]) -> int:
        return math.ceil(max(target.at or 0.0 for target in targets if target.group in groups))

    def run(drive: Drive, groups: frozenset[str]) -> RunOptions:
        return drive.run(f"{how.workload},loops={loops(groups)}", how.precondition or "none", counted=True)

    def figures(result: Result, groups: frozenset[str]) -> dict[str, float | None]:
        written = (result.series or {})["writes"]
        host, data = written["host_bytes"], written["data_bytes"]

        def programmed(place: float) -> tuple[float, float]:
            at = host[-1] * place / loops(groups)
            after = min(len(host) - 1, max(1, bisect_left(host, at)))
            share = (at - host[after - 1]) / max(1, host[after] - host[after - 1])
            return at, data[after - 1] + share * (data[after] - data[after - 1])

        found: dict[str, float | None] = {}
        for before, end in pairwise(places):
            group = f"to {end:.4g} passes"
            if group in groups:
                (left, least), (right, most) = programmed(before), programmed(end)
                found[group] = (most - least) / (right - left) if right > left else None
        return found

    return OneRun(name, targets, run, figures)
