"""A trace with the response time of each request: replayed with its arrivals, and compared as distributions by class.

`trace_times` has the formats; plain, or compressed by gzip or zstd. The first 50,000 requests are replayed at their own
times on a full drive, addresses beyond the drive folded. A class, and a group, is the reads or the writes. Ignored:
requests without a response time, and other load of the traced machine. Times of an ETW trace are completions, from
which arrivals are replayed.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ..errors import InputError
from ..options import RunOptions
from ..result import Result
from ..validate.measures import percentile
from .measured import GroupRuns, How, Measurement, Target, reduced, tolerance
from .space import Drive
from .trace_times import Wrong, format_of, times

_MOST = 50_000
_FIRST = 4


def is_one(path: Path) -> bool:
    """Whether the first lines are from such a trace."""
    try:
        return format_of(_lines(path, _FIRST)) is not None
    except (OSError, pl.exceptions.PolarsError):
        return False


def read(path: Path, how: How) -> Measurement:
    """Reads a trace. Raises InputError for a wrong line, or a trace without response times."""
    if how.workload:
        raise InputError(f"{path}: the trace is the workload itself; expected no --workload beside it")
    try:
        form = format_of(_lines(path, _FIRST))
        assert form is not None
        lines = _lines(path, form.lines * _MOST)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{path}: expected a trace as text: {str(error).splitlines()[0]}") from None
    try:
        count, found = times(form.requests(lines), _MOST)
    except Wrong as wrong:
        raise InputError(
            f"{path}:{wrong.number}: {lines[wrong.number - 1][:60]!r} is no request with a response time; "
            f"expected {wrong}"
        ) from None
    figures = {kind: reduced(found[kind]) for kind in ("read", "write") if found.get(kind)}
    if not figures:
        raise InputError(f"{path}: no request has a response time; expected them {form.where}")
    targets = tuple(
        Target(f"{kind}.{name}", f"{kind}s", f"{kind}.{name}", "us", real, tolerance(name))
        for kind, each in figures.items()
        for name, real in each.items()
    )

    def run(drive: Drive, _group: str) -> RunOptions:
        return drive.run(str(path), how.precondition, count, trace=form.run)

    return GroupRuns(path.name, targets, run, _figure)


def _figure(target: Target, result: Result) -> float | None:
    kind, _, name = target.name.partition(".")
    return percentile(result, kind, name)


def _lines(path: Path, most: int) -> Sequence[str]:
    """The first lines."""
    return [
        line or ""
        for line in pl.read_csv(
            path, has_header=False, infer_schema=False, n_rows=most, separator="\x1f", quote_char=None,
            truncate_ragged_lines=True,
        ).to_series()
    ]  # fmt: skip
