"""fio's logs (`write_lat_log`, `write_bw_log`, `write_iops_log`): measurements of requests or windows of time.

A line has the time in milliseconds, the value, the direction (0 reads, 1 writes, 2 trims), and the block size, which is
0 for a window of `log_avg_msec`. Latencies (`_lat`, `_clat`) are in nanoseconds; of windows only the mean is fitted,
because windows have no percentiles of requests. Bandwidth (`_bw`, KiB/s) and IOPS (`_iops`) must be logs of windows,
because values of single requests are no rate of the job. `--workload` describes the requests, as one job. A group is a
direction. Offsets and priorities are ignored.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from ..options import RunOptions
from ..result import Result
from ..validate.measures import measure, rate
from .measured import GroupRuns, How, Measurement, Target, reduced, tolerance
from .space import Drive

_NAME = re.compile(r"_(?P<kind>lat|clat|slat|bw|iops)(\.\d+)?\.log$")
_DIRECTIONS = ("read", "write", "trim")
_LEAST, _MOST = 2_000, 20_000
_FIELDS = 4
_KIB = 1024


def is_one(path: Path) -> bool:
    """Whether fio gives this name to logs."""
    return _NAME.search(path.name) is not None


def read(path: Path, how: How) -> Measurement:
    """Reads a log. Raises InputError without a workload, for a wrong line, or a log without figures to fit to."""
    match = _NAME.search(path.name)
    kind = match["kind"] if match else ""
    if kind == "slat":
        raise InputError(f"{path}: submission latencies are of the host; expected a log of lat, clat, bw or iops")
    if not how.workload:
        raise InputError(f"{path}: a log does not describe its workload; expected --workload beside it")
    samples = _samples(path)
    windows = {direction for direction, found in samples.items() if not any(sample.block for sample in found)}
    if kind in ("bw", "iops") and windows != samples.keys():
        raise InputError(f"{path}: lines of single requests are no rate of the job; expected one with log_avg_msec")
    figures = {
        direction: _figures(kind, [sample.value for sample in found], is_windows=direction in windows)
        for direction, found in samples.items()
    }
    requests = max(_LEAST, min(_MOST, max(map(len, samples.values()))))
    targets = tuple(
        Target(f"{kind}.{name}", f"{kind}s", f"{kind}.{name}", unit, real, tolerance(name.replace("bandwidth", "iops")))
        for kind, each in figures.items()
        for name, (real, unit) in each.items()
    )

    def run(drive: Drive, _group: str) -> RunOptions:
        return drive.run(how.workload, how.precondition, requests)

    return GroupRuns(path.name, targets, run, _figure)


@dataclass(frozen=True, slots=True)
class _Sample:
    value: float
    block: int


def _samples(path: Path) -> dict[str, list[_Sample]]:
    """The lines of reads and of writes."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected a log of fio: {error}") from None
    found: dict[str, list[_Sample]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) < _FIELDS or not all(re.fullmatch(r"\d+", field) for field in fields[:_FIELDS]):
            raise InputError(
                f"{path}:{number}: {line[:60]!r} is no line of a log of fio; expected time, value, direction and block "
                "size, such as 12, 81234, 0, 4096"
            )
        value, direction, block = map(int, fields[1:_FIELDS])
        if direction >= len(_DIRECTIONS):
            raise InputError(f"{path}:{number}: the direction is {direction}; expected 0 (read), 1 (write) or 2 (trim)")
        if value and direction < len(_DIRECTIONS) - 1:
            found.setdefault(_DIRECTIONS[direction], []).append(_Sample(float(value), block))
    if not found:
        raise InputError(f"{path}: the log has no reads and no writes; expected lines of them")
    return found


def _figures(kind: str, values: list[float], *, is_windows: bool) -> dict[str, tuple[float, str]]:
    """Figures of a direction with their units."""
    mean = math.fsum(values) / len(values)
    if kind == "bw":
        return {"bandwidth": (mean * _KIB / 1e6, "MB/s")}
    if kind == "iops":
        return {"iops": (mean, "1/s")}
    figures = {"mean": mean / 1000} if is_windows else reduced(values)
    return {name: (value, "us") for name, value in figures.items()}


def _figure(target: Target, result: Result) -> float | None:
    """Ours, of the direction alone."""
    kind, _, name = target.name.partition(".")
    if name == "iops":
        return rate(result, kind)
    if name == "bandwidth":
        moved = result["host"]["bytes_read" if kind == "read" else "bytes_written"]
        seconds = result["simulated_ns"] / 1e9
        return moved / seconds / 1e6 if seconds else None
    return measure(target.name, result)
