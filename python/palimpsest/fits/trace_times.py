"""Formats of traces with the response time of each request.

A format is one function that yields the requests in the order of replay, and one line in `FORMATS`. The core reads the
requests itself, by the format or columns named here; these functions read kinds and response times only.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

Lines = Sequence[str]
Answered = tuple[str, float | None]
"""A request: `read`, `write` or another kind, and its response time in nanoseconds, if known."""


class Wrong(ValueError):
    """A line of another format: its number, and the expected content."""

    def __init__(self, number: int, expected: str) -> None:
        super().__init__(expected)
        self.number = number


@dataclass(frozen=True, slots=True)
class Format:
    """A format: recognition, requests of lines, options of the core, place of response times, and lines a request."""

    is_one: Callable[[Lines], bool]
    requests: Callable[[Lines], Iterator[Answered]]
    run: Mapping[str, str]
    where: str
    lines: int = 1


_KINDS = {"read": "read", "write": "write", "r": "read", "w": "write"}


def _msr_cells(line: str) -> tuple[str, float] | None:
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != 7 or cells[3].lower() not in ("read", "write") or not cells[6].isdecimal():
        return None
    return cells[3].lower(), 100.0 * int(cells[6])


def _is_msr(lines: Lines) -> bool:
    cells = lines[0].split(",") if lines else []
    return len(cells) == 7 and cells[3].strip().lower() in ("read", "write")


def _msr(lines: Lines) -> Iterator[Answered]:
    for number, line in enumerate(lines, start=1):
        found = _msr_cells(line)
        if found is None:
            raise Wrong(number, "time, host, disk, Read or Write, offset, size, response")
        yield found[0], found[1] or None


_SYSTOR = re.compile(r"\s*\d+\.\d+\s*,\s*(\d*\.?\d*)\s*,\s*([RWrw]?)\s*,\s*\d+\s*,\s*\d+\s*,\s*\d+\s*")
_SYSTOR_HEAD = "timestamp,response,iotype"


def _is_systor(lines: Lines) -> bool:
    return bool(lines) and (lines[0].lower().startswith(_SYSTOR_HEAD) or _SYSTOR.fullmatch(lines[0]) is not None)


def _systor(lines: Lines) -> Iterator[Answered]:
    for number, line in enumerate(lines, start=1):
        if number == 1 and line.lower().startswith(_SYSTOR_HEAD):
            continue
        found = _SYSTOR.fullmatch(line)
        if found is None or not found[2]:
            raise Wrong(number, "time in s, response in s, R or W, LUN, offset, size")
        yield _KINDS[found[2].lower()], float(found[1]) * 1e9 if found[1].strip(".") else None


_ETW = {"DiskRead": "read", "DiskWrite": "write", "DiskFlush": "flush"}
_ETW_ELAPSED = 7
"""Column of the published traces."""


def _is_etw(lines: Lines) -> bool:
    return any(line.strip() == "BeginHeader" or line.split(",")[0].strip() in _ETW for line in lines[:1])


def _etw(lines: Lines) -> Iterator[Answered]:
    elapsed = dict.fromkeys(("DiskRead", "DiskWrite"), _ETW_ELAPSED)
    in_header = False
    for number, line in enumerate(lines, start=1):
        if line.strip() in ("BeginHeader", "EndHeader"):
            in_header = line.strip() == "BeginHeader"
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] not in _ETW:
            continue
        if in_header:
            if cells[0] in elapsed and "ElapsedTime" in cells:
                elapsed[cells[0]] = cells.index("ElapsedTime")
            continue
        if cells[0] not in elapsed:
            yield _ETW[cells[0]], None
            continue
        at = elapsed[cells[0]]
        if at >= len(cells) or not cells[at].isdecimal():
            raise Wrong(number, "ElapsedTime in microseconds, as the header has it")
        yield _ETW[cells[0]], 1000.0 * int(cells[at]) or None


_BLKPARSE = re.compile(
    r"\s*(\d+,\d+)\s+\d+\s+\d+\s+(\d+)\.(\d{1,9})\s+\d+\s+([A-Z]{1,2})\s+([A-Z]+)(?:\s+(\d+)(?:\s+\+\s+(\d+))?)?\s.*"
)


def _is_blkparse(lines: Lines) -> bool:
    return any(_BLKPARSE.fullmatch(f"{line} ") is not None for line in lines[:1])


def _blkparse(lines: Lines) -> Iterator[Answered]:
    """Issues, or queued requests without early issues, as in the core; a completion ends the newest request there."""
    events = [event for line in lines if (event := _BLKPARSE.fullmatch(f"{line} ")) is not None]
    action = "D" if any(event[4] == "D" for event in events) else "Q"
    found: list[Answered] = []
    begun: dict[tuple[str, str], tuple[int, int]] = {}
    for event in events:
        letters, sectors = event[5], int(event[7] or 0)
        kind = "trim" if "D" in letters else "write" if "W" in letters else "read" if "R" in letters else ""
        time = int(event[2]) * 10**9 + int(event[3].ljust(9, "0"))
        if event[4] == action and (sectors or "F" in letters):
            begun[event[1], event[6] or ""] = len(found), time
            found.append((kind if sectors else "flush", None))
        elif event[4] == "C" and (event[1], event[6] or "") in begun:
            at, since = begun.pop((event[1], event[6] or ""))
            found[at] = found[at][0], float(time - since) or None
    yield from found


FORMATS = {
    "msr": Format(_is_msr, _msr, {"format": "msr"}, "in the last column, in ticks of 100 ns"),
    "systor": Format(
        _is_systor, _systor, {"columns": "time=1:s,op=3,offset=5,size=6"}, "in the second column, in seconds"
    ),
    "etw": Format(_is_etw, _etw, {"format": "etw"}, "as ElapsedTime of DiskRead and DiskWrite", lines=8),
    "blkparse": Format(
        _is_blkparse, _blkparse, {"format": "blkparse"}, "as completions (C) beside issues (D) or what was queued (Q)",
        lines=12,
    ),
}  # fmt: skip
"""Formats by name."""


def format_of(lines: Lines) -> Format | None:
    """The format of a file with these first lines, or None."""
    return next((each for each in FORMATS.values() if each.is_one(lines)), None)


def times(requests: Iterator[Answered], most: int) -> tuple[int, dict[str, list[float]]]:
    """The number of requests among the first `most`, and the known response times by kind."""
    count, found = 0, dict[str, list[float]]()
    for kind, nanoseconds in islice(requests, most):
        count += 1
        if nanoseconds is not None and nanoseconds > 0 and math.isfinite(nanoseconds):
            found.setdefault(kind, []).append(nanoseconds)
    return count, found
