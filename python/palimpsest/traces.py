"""`palimpsest trace`: descriptions of workloads, and workloads written as traces in any format.

Both stream: memory does not grow with the trace, except for names of files (see `palimpsest._core` and, for pages in a
description, `metrics::profile` of the crate `lab`).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from .engine import Progress
from .errors import Interrupted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_KINDS = ("read", "write", "trim", "flush")
_LOSSES = {
    "trims": "trims left out", "flushes": "flushes left out", "times": "arrival times rounded down",
    "sizes": "sizes rounded up", "streams": "streams (devices, volumes) dropped",
    "directives": "FUA, placement handles or lifetimes of writes dropped", "names": "file names dropped",
    "changed_names": "file names changed: the format allows no blanks",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """A workload to describe or to write.

    `file` says whether the workload must be a file; generated workloads are laid out on `ssd`. Formats are recognised,
    or named by the ending of `output`, if None. `of_generated` are given options that a trace does not read, which are
    refused.
    """

    workload: str
    file: bool = False
    ssd: str = "default"
    requests: int | None = None
    seed: int = 1
    skip_bad: bool = False
    columns: str | None = None
    volumes: str | None = None
    input_format: str | None = None
    output: str = ""
    output_format: str | None = None
    of_generated: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The form for the native module."""
        return json.dumps(asdict(self))


Conversion = Mapping[str, Any]
"""The written trace: `input_format`, `output_format`, requests `read` and `written`, `skipped_lines`, requests
`sorted` by time and `late` (beyond the sorted window), `disorder` (a note on both), `without_times`, and `losses`, in
requests."""


def describe(options: TraceOptions, progress: Progress | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Describes a workload: figures (as `Trace.info`), and counts by address and time. Raises as `palimpsest.run`."""
    try:
        description, counts = _core.trace_info(options.to_json(), progress)
    except Interrupted as error:
        raise KeyboardInterrupt from error
    return json.loads(description), json.loads(counts)


def convert(options: TraceOptions, progress: Progress | None = None) -> Conversion:
    """Writes a workload as a trace, and removes an incomplete file. Raises as `palimpsest.run`."""
    try:
        written: Conversion = json.loads(_core.trace_convert(options.to_json(), progress))
    except Interrupted as error:
        raise KeyboardInterrupt from error
    return written


class Requests(NamedTuple):
    """The requests of a workload, one element each: kind as in `ps.Drive`, arrival in ns, first byte, bytes.

    `depth` is that of a closed loop, whose arrivals have no meaning; None if requests arrive at their times.
    """

    kind: "npt.NDArray[np.str_]"
    time: "npt.NDArray[np.int64]"
    offset: "npt.NDArray[np.int64]"
    size: "npt.NDArray[np.int64]"
    depth: int | None


def requests(options: TraceOptions, drive_bytes: int) -> Requests:
    """Reads a workload for a drive of `drive_bytes` into memory.

    Raises as `palimpsest.run`, and InputError if the order of requests depends on the drive.
    """
    try:
        (kinds, *numbers), depth = _core.trace_requests(options.to_json(), drive_bytes)
    except Interrupted as error:
        raise KeyboardInterrupt from error
    import numpy as np

    time, offset, size = (np.frombuffer(column, np.int64) for column in numbers)
    return Requests(np.array(_KINDS)[np.frombuffer(kinds, np.uint8)], time, offset, size, depth)


def losses(done: Conversion, output: Path) -> list[str]:
    """The data that the format could not hold, a line each."""
    lines = [f"{_LOSSES[name]}: {count:,} requests" for name, count in done["losses"].items() if count]
    if done["without_times"]:
        lines.append("arrival times: the workload is a closed loop and has none, so all are 0; rate_iops gives it some")
    if done["skipped_lines"]:
        lines.append(f"bad lines skipped: {done['skipped_lines']:,}")
    if done["disorder"]:
        lines.append(done["disorder"])
    return [f"{output} ({done['output_format']}): {line}" for line in lines]
