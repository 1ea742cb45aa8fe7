"""The window of a timeline: windows beyond the end of a run, before the run if its length is known, and after it."""

from collections.abc import Sequence

from .errors import InputError
from .options import RunOptions
from .result import Result
from .units import nanoseconds

_EXPECTED = "expected a window that begins before the end of the run"


def expect_inside(run: RunOptions) -> None:
    """Raises InputError for a window of requests after the last request of the run, if `requests` limits the run."""
    first = (run.operations or "").partition("..")[0].strip()
    if run.requests is not None and first.isdecimal() and int(first) > run.requests:
        what = f"the run has {run.requests:,} requests (--requests)"
        raise InputError(f"--operations-window {run.operations}: {what}; {_EXPECTED}")


def beyond_the_end(window: str | None, results: Sequence[Result]) -> str | None:
    """The refusal of a window in which no run had a request or an operation; None if any run had one."""
    ended = [result for result in results if not result.get("interrupted")]
    if window is None or not ended or any(_has_timeline(result) for result in results):
        return None
    last = max(ended, key=lambda result: sum(result["requests"].values()))
    length = f"{sum(last['requests'].values()):,} measured requests and {nanoseconds(last['simulated_ns'])}"
    return f"--operations-window {window}: the run ended before the window, after {length}; {_EXPECTED}"


def _has_timeline(result: Result) -> bool:
    """Whether the timeline of a result has a request or an operation; True without a timeline."""
    tables = [(result.series or {}).get(name) for name in ("operations", "requests")]
    return not all(tables) or any(any(table.values()) for table in tables if table)
