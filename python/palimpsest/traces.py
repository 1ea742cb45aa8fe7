"""`palimpsest trace`: descriptions of workloads, and workloads written as traces in any format.

Both stream: memory does not grow with the trace, but for the names of files where it has them (see `palimpsest._core`
and, for what the description keeps of pages, `metrics::profile` of the crate `lab`).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import _core
from .engine import Progress
from .errors import Interrupted

_LOSSES = {
    "trims": "trims left out",
    "flushes": "flushes left out",
    "times": "arrival times rounded down",
    "sizes": "sizes rounded up",
    "streams": "streams (devices, volumes) dropped",
    "names": "file names dropped",
    "changed_names": "file names changed: the format allows no blanks",
}


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """A workload to describe or to write.

    Attributes:
        workload: trace file, job file, preset or specification.
        file: whether it must be a file.
        ssd: the drive that a generated workload is laid out on; a trace needs none.
        requests: requests to take; all where None.
        seed: seed of everything random.
        skip_bad: whether bad lines of a trace are counted and skipped.
        columns: where a text without a known format has what.
        volumes: `apart`, `overlaid`, or numbers of some; where None apart in a description, overlaid in a new trace.
        input_format: format that a trace is read as, instead of recognising it.
        output: file to write.
        output_format: format of it; by its ending where None.
        of_generated: options of the user that only a generated workload reads: a description of a trace refuses them.
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
        """The form that the native module takes."""
        return json.dumps(asdict(self))


Conversion = Mapping[str, Any]
"""What was written: `input_format`, `output_format`, requests `read` and `written`, `skipped_lines`, `without_times`,
and `losses`, in requests."""


def describe(options: TraceOptions, progress: Progress | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The description of a workload.

    Returns:
        The description (ratios as shares of one, sizes in bytes, times in nanoseconds; null where there is nothing to
        divide by), and the counts for a picture: rows of rising address, columns of time.

    Raises:
        InputError: the workload is wrong.
        WorkloadIoError: it could not be read.
        KeyboardInterrupt: the user ended it.
    """
    try:
        description, counts = _core.trace_info(options.to_json(), progress)
    except Interrupted as error:
        raise KeyboardInterrupt from error
    return json.loads(description), json.loads(counts)


def convert(options: TraceOptions, progress: Progress | None = None) -> Conversion:
    """Writes a workload as a trace. A file that was not written whole is removed.

    Raises:
        InputError: the workload, the name of the output or a format is wrong.
        WorkloadIoError: reading or writing failed.
        KeyboardInterrupt: the user ended it.
    """
    try:
        written: Conversion = json.loads(_core.trace_convert(options.to_json(), progress))
    except Interrupted as error:
        raise KeyboardInterrupt from error
    return written


def losses(done: Conversion, output: Path) -> list[str]:
    """What the format could not hold, a line each."""
    lines = [f"{_LOSSES[name]}: {count:,} requests" for name, count in done["losses"].items() if count]
    if done["without_times"]:
        lines.append("arrival times: the workload is a closed loop and has none, so all are 0; rate_iops gives it some")
    if done["skipped_lines"]:
        lines.append(f"bad lines skipped: {done['skipped_lines']:,}")
    return [f"{output} ({done['output_format']}): {line}" for line in lines]
