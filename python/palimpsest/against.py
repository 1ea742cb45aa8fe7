"""`palimpsest run --against`: the figures that fio measured on a real drive, beside those of a simulated run.

The percentiles are those of fio's list. fio's `lat` counts from the start of a request, `clat` from its submission;
`lat` is compared if fio printed percentiles of it (`lat_percentiles=1`). Ours counts from the arrival of a request at
the host. Ignored: the time of the host's software, which fio's figures include, and response times of trims.
"""

import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from . import fio_output, page, units
from .errors import InputError
from .files import is_file
from .fio_output import Job, Output
from .metrics import change, factor
from .options import RunOptions
from .result import Result
from .sketches import Sketch

MOST, _PLANNED = 1_000_000, 5e5
"""Requests that an output without a job file plays at most, and about, if the drive is as fast as the real one."""

_LISTED = {"mean": "mean", "p50": "p50", "p90": "p90", "p99": "p99", "p99.9": "p999", "p99.99": "p9999"}
_BYTES = {"read": ("bytes_read",), "write": ("bytes_written",), "mixed": ("bytes_read", "bytes_written")}
_HISTOGRAM_BITS = 11
_SHOWN = 5
_HEAD = 1 << 20
"""Characters of a file that may be a job file."""
_LATENCIES = {
    "lat": "fio's lat, from the start of a request to its end",
    "clat": "fio's clat, from submission to completion (lat_percentiles=1 prints lat)",
}
_HEADS = ("", "fio", "simulated", "ratio", "difference")


class Against:
    """An output of fio and the run to compare with its figures.

    The run is `options`: of their workload if `given`, else of the jobs of the output, as a file in the folder `out` or
    a temporary one. Raises InputError if the output has none of the jobs of a job file, or the run has no times.
    """

    def __init__(self, path: Path, options: RunOptions, out: Path | None, *, given: bool) -> None:
        if options.fidelity == "count":
            raise InputError("--against: a run at count fidelity has no times; expected --fidelity timed")
        self.path, self._output = path, fio_output.read(path)
        self.options = replace(options, series=True)
        self._jobs, self._given = "", given
        if given:
            _expect_jobs(Path(options.workload), self._output, path)
            return
        groups = self._output.together()
        if len(self._output.jobs) == 1:
            made = options.requests or min(_requests(groups[0]), MOST)
            self.options = replace(self.options, workload=self._output.jobs[0].spec(made), requests=made)
            return
        # A simulated drive may be faster than the real one.
        self.options = replace(self.options, requests=options.requests or MOST)
        ends = (
            min(max(job.seconds for job in jobs), _PLANNED / len(groups) / max(1.0, _rate(jobs))) for jobs in groups
        )
        sections = (
            job.section(end, later=at > 0 and job is jobs[0])
            for at, (jobs, end) in enumerate(zip(groups, ends, strict=True))
            for job in jobs
        )
        self._jobs = "\n".join(sections)
        if out is None:
            out = Path(tempfile.mkdtemp(prefix="palimpsest-"))
            weakref.finalize(self, shutil.rmtree, out, ignore_errors=True)
        self.options = replace(self.options, workload=str(out / "against.fio"))

    def begin(self) -> None:
        """Writes the job file, if the output is the workload; the folder must exist."""
        if self._jobs:
            Path(self.options.workload).write_text(self._jobs, encoding="utf-8")

    def compared(self, result: Result) -> Result:
        """The result with `against`: fio's figures beside its own. Raises InputError if no job is in both."""
        return _compared(result, self._output, self.path, [] if self._given else self._output.notes)


def _rate(jobs: Sequence[Job]) -> float:
    return sum(side.iops for job in jobs for side in job.sides.values())


def _requests(jobs: Sequence[Job]) -> int:
    return sum(side.requests for job in jobs for side in job.sides.values())


def _expect_jobs(file: Path, output: Output, path: Path) -> None:
    """Raises InputError if the workload has no job of the output, as far as its text says before the run."""
    text = ""
    if is_file(file):
        with file.open(encoding="utf-8", errors="replace") as opened:
            text = opened.read(_HEAD)
    elif len(output.jobs) > 1:
        raise InputError(_unlike(path, output, []))
    names = [name for name in re.findall(r"^[ \t]*\[([^\]\n]+)\]", text, re.MULTILINE) if name != "global"]
    if names and not re.search(r"^\s*include\b", text, re.MULTILINE) and not _matched(names, output):
        raise InputError(_unlike(path, output, names))


def _unlike(path: Path, output: Output, names: Sequence[str]) -> str:
    ran, found = (", ".join(each[:_SHOWN]) for each in ([job.name for job in output.jobs], names or ["one workload"]))
    return f"{path}: fio ran {ran}; the run has {found}; expected the output of the same jobs"


def _matched(names: Sequence[str], output: Output) -> dict[str, list[str]]:
    """The sections of each job of the output. With `group_reporting` fio prints a group by its first job's name."""
    known = {job.name: job for job in output.jobs}
    found: dict[str, list[str]] = {}
    group = ""
    for name in names:
        if name in known:
            group = name
            found[name] = [name]
        elif group and "group_reporting" in known[group].options:
            found[group].append(name)
    return found


def _compared(result: Result, output: Output, path: Path, notes: Sequence[str]) -> Result:
    names = [job["job"] for job in result.get("jobs") or []]
    matched = _matched(names, output) if names else {output.jobs[0].name: []}
    notes = [*notes]
    if not matched or (not names and len(output.jobs) > 1):
        raise InputError(_unlike(path, output, names))
    rows: list[dict[str, Any]] = []
    for job in output.jobs:
        if job.name not in matched:
            notes.append(f"fio ran {job.name}, which this run has not")
            continue
        sections = matched[job.name]
        # The only job has all requests of the run, and its histograms.
        parts = [] if len(output.jobs) == 1 and len(sections) == len(names) else sections
        rows += _rows(job, [each for each in result.get("jobs") or [] if each["job"] in parts], result)
    others = [name for name in names if not any(name in sections for sections in matched.values())]
    notes += [f"the run has {name}, which fio did not run" for name in others]
    used = {row["figure"].partition(".")[0] for row in rows} & _LATENCIES.keys()
    notes += _absent(rows)
    notes += [f"latency: {_LATENCIES[name]}; ours from arrival to completion" for name in _LATENCIES if name in used]
    data = result.to_dict() | {"against": {"file": path.name, "fio": output.version, "rows": rows, "notes": notes}}
    return Result(data, result.series, result.configuration)


def _absent(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Notes on percentiles that only one side has."""
    shares = [row for row in rows if ".p" in row["figure"]]
    ours = dict.fromkeys(row["figure"].partition(".")[2] for row in shares if row["ours"] is None)
    if ours:
        few = f"{', '.join([*ours][:_SHOWN])}{' and more' * (len(ours) > _SHOWN)}"
        yield f"not compared, because a section has p50, p90, p99, p99.9 and p99.99 and trims none: {few}"
    found = {row["figure"].partition(".")[2] for row in shares}
    lacking = [name for name in _LISTED if name != "mean" and name not in found]
    if shares and lacking:
        yield f"not compared, because fio printed other percentiles (percentile_list): {', '.join(lacking)}"


def _rows(job: Job, parts: Sequence[Mapping[str, Any]], result: Result) -> Iterator[dict[str, Any]]:
    """The figures of a job, of the whole run without `parts`."""
    for kind, side in job.sides.items():
        shown = "lat" if any(name.startswith("lat.p") for name in side.times) else "clat"
        if not any(name.startswith(f"{shown}.") for name in side.times):
            shown = "lat"
        times = {name: value for name, value in side.times.items() if name.startswith(f"{shown}.")}
        figures = {"iops": side.iops, "bytes_per_s": side.bytes_per_s, **times}
        for name, real in figures.items():
            ours = _ours(kind, name, parts, result)
            ratio = ours / real if ours is not None and real else None
            yield {"job": job.name, "kind": kind, "figure": name, "fio": real, "ours": ours, "ratio": ratio}


def _ours(kind: str, name: str, parts: Sequence[Mapping[str, Any]], result: Result) -> float | None:
    if name in ("iops", "bytes_per_s"):
        rates = [_ours_rate(kind, name, part, part["throughput"]["iops"]) for part in parts]
        known = [each for each in (rates or [_ours_rate(kind, name, result, result["throughput"]["iops"])]) if each]
        return sum(known) if known else None
    if len(parts) > 1:
        return None
    percentile, of_kind = name.partition(".")[2], "all" if kind == "mixed" else kind
    times = ((parts[0] if parts else result)["latency_ns"] or {}).get(of_kind)
    if not times:
        return None
    if percentile in _LISTED:
        return float(times[_LISTED[percentile]])
    histogram = None if parts else ((result.series or {}).get("latency") or {}).get(of_kind)
    if not histogram:
        return None
    return Sketch(histogram["lower_ns"], histogram["count"], _HISTOGRAM_BITS).percentile(float(percentile[1:]))


def _ours_rate(kind: str, name: str, of: Mapping[str, Any] | Result, iops: float | None) -> float | None:
    """Requests or bytes of a kind a second, from the rate of all requests and the share of the kind."""
    requests, moved = of["requests"], of.get("host", of)
    total = sum(requests.values())
    if not iops or not total:
        return None
    if name == "bytes_per_s":
        return iops * float(sum(moved[key] for key in _BYTES[kind])) / total if kind in _BYTES else None
    served = sum(requests[each] for each in ("read", "write", "trim")) if kind == "mixed" else requests[kind]
    return float(iops * served / total)


_Show = Callable[[float | None], str]
_UNITS: dict[str, tuple[str, _Show]] = {"iops": ("IOPS", units.count), "bytes_per_s": ("bandwidth", units.rate)}


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    label, show = _UNITS.get(row["figure"], (row["figure"].replace(".", " ", 1), units.nanoseconds))
    found = row["ratio"]
    said = (factor(found), change(found)) if found else (units.ABSENT, units.ABSENT)
    return (label, show(row["fio"]), show(row["ours"]), *said)


def _groups(found: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """The rows of each class of requests of each job, with its heading."""
    groups: dict[str, list[tuple[str, ...]]] = {}
    for row in found["rows"]:
        plural = "reads and writes" if row["kind"] == "mixed" else f"{row['kind']}s"
        cells = groups.setdefault(f"{row['job']}: {plural}", [])
        if row["ours"] is not None or row["figure"] == "iops":
            cells.append(_cells(row))
    yield from groups.items()


def _heading(found: Mapping[str, Any]) -> str:
    return f"beside {found['fio']} ({found['file']})"


def render(found: Mapping[str, Any]) -> Group:
    """The comparison for rich, from `against` of a result."""
    table = Table(title=_heading(found), box=None, padding=(0, 1, 0, 0), pad_edge=False, title_justify="left")
    for head in _HEADS:
        table.add_column(head, justify="right" if head else "left", no_wrap=True)
    for heading, rows in _groups(found):
        table.add_row(Text(heading, style="bold underline"))
        for label, *cells in rows:
            table.add_row(f"  {label}", *cells)
    return Group(table, *(Text(f"note: {note}", style="yellow") for note in found["notes"]))


def html(found: Mapping[str, Any]) -> str:
    """The comparison as an HTML table with its notes."""
    rows = [page.row(_HEADS, "th")]
    for heading, cells in _groups(found):
        rows.append(f'<tr class="section"><th colspan="{len(_HEADS)}">{page.escape(heading)}</th></tr>')
        rows += map(page.row, cells)
    notes = "".join(f"<p>{page.escape(note)}</p>" for note in (_heading(found), *found["notes"]))
    return page.table("figures", rows) + notes
