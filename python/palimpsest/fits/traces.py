"""A trace with the response time of each request: replayed with its arrivals, and compared as distributions by class.

The CSV of MSR Cambridge: time in ticks of 100 ns, host, disk, Read or Write, offset, size, response time in ticks;
plain, or compressed by gzip or zstd. The first 50,000 requests are read, replayed at their own times on a drive that
is full, addresses beyond it folded into it, and held against ours of the same requests. A class, and a group, is the
reads or the writes. Ignored: requests whose response time is 0, and what the machine of the trace did besides.
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from ..errors import InputError
from ..options import RunOptions
from ..result import Result
from ..validate.measures import percentile
from . import distribution
from .measured import GroupRuns, How, Measurement, Target, tolerance
from .space import Drive

__all__ = ["is_one", "read"]

_MOST = 50_000
_COLUMNS = ("time", "host", "disk", "kind", "offset", "size", "response")
_TICK_NS = 100


def is_one(path: Path) -> bool:
    """Whether the first line is one of such a trace."""
    if not path.name.endswith((".csv", ".csv.gz", ".csv.zst")):
        return False
    try:
        first = _rows(path, 1)
    except (OSError, pl.exceptions.PolarsError):
        return False
    return first.width == len(_COLUMNS) and first.item(0, 3).strip().lower() in ("read", "write")


def read(path: Path, how: How) -> Measurement:
    """Reads a trace.

    Raises:
        InputError: a line is not one of such a trace, or none has a response time.
    """
    if how.workload:
        raise InputError(f"{path}: the trace is the workload itself; expected no --workload beside it")
    try:
        rows = _rows(path, _MOST)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{path}: expected a trace in CSV: {str(error).splitlines()[0]}") from None
    rows.columns = list(_COLUMNS)
    kinds = rows["kind"].str.strip_chars().str.to_lowercase()
    ticks = rows["response"].str.strip_chars().cast(pl.UInt64, strict=False)
    for at in (~kinds.is_in(["read", "write"]) | ticks.is_null()).fill_null(value=True).arg_true().head(1):
        raise InputError(
            f"{path}:{at + 1}: {','.join(str(cell or '') for cell in rows.row(at))[:60]!r} is no request with a "
            f"response time; expected {', '.join(_COLUMNS[:3])}, Read or Write, {', '.join(_COLUMNS[4:])}"
        )
    figures = {
        kind: found
        for kind in ("read", "write")
        if (found := distribution.figures((ticks.filter((kinds == kind) & (ticks > 0)) * _TICK_NS).to_numpy()))
    }
    if not figures:
        raise InputError(
            f"{path}: no request has a response time; expected them in the last column, in ticks of 100 ns"
        )
    return _Trace(path, figures, rows.height, how)


def _rows(path: Path, most: int) -> pl.DataFrame:
    """The first lines, as text."""
    return pl.read_csv(path, has_header=False, infer_schema=False, n_rows=most)


class _Trace(GroupRuns):
    """A group for each class; both have one run."""

    def __init__(self, path: Path, figures: Mapping[str, Mapping[str, float]], requests: int, how: How) -> None:
        self.name = path.name
        self._path, self._requests, self._how = path, requests, how
        self.targets = tuple(
            Target(f"{kind}.{name}", f"{kind}s", f"{kind}.{name}", "us", real, tolerance(name))
            for kind, each in figures.items()
            for name, real in each.items()
        )

    def run(self, drive: Drive, group: str) -> RunOptions:  # noqa: ARG002 - both groups have this run
        """The trace on a drive."""
        return drive.run(str(self._path), self._how.precondition, self._requests, form="msr")

    def figure(self, target: Target, result: Result) -> float | None:
        """Ours, of the class alone."""
        kind, _, name = target.name.partition(".")
        return percentile(result, kind, name)
