"""fio's output in JSON (`--output-format=json`): its options become the workload, its figures the targets.

A group is a job. Copies of a job (`numjobs`) are joined, and run as copies here; fio prints a job for each copy, with
the same name, or one for all with `group_reporting`. Jobs that ran together become the sections of one job file, and
the figures of each section are compared; all run until simulated time ends them. The output has no `stonewall`, but
jobs after one have the next `groupid` (jobs after `new_group` look the same). An engine that waits for each request has
one in flight, whatever `iodepth` says. The output of the fit names the options that do not reach the drive, or only end
the run; other options are refused. Ignored: that one of several jobs may have ended before the others.
"""

import fnmatch
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..options import RunOptions
from ..result import Result
from ..validate.measures import MEASURES, measure, percentile, rate
from .measured import GroupRuns, How, JobFolder, Measurement, Target, check_workload, tolerance
from .space import Drive

KEPT = frozenset((
    "rw", "readwrite", "bs", "blocksize", "bssplit", "blockalign", "ba", "bsrange", "iodepth", "size", "offset",
    "rwmixread", "rwmixwrite", "percentage_random", "random_distribution", "norandommap", "rate", "rate_iops",
    "rate_min", "rate_iops_min", "rate_cycle", "ratecycle", "rate_process", "numjobs", "kb_base",
    "random_generator", "randrepeat", "randseed", "nrfiles", "filesize", "openfiles", "thinktime",
    "thinktime_blocks", "thinktime_blocks_type", "latency_target", "latency_window", "latency_percentile",
    "latency_run", "fsync", "sync", "write_hint", "plids", "fdp_pli",
))  # fmt: skip
"""Options of fio that describe the requests."""
_WAITS = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "sg"})
"""Engines that wait for each request."""
_QUEUES = frozenset({
    "libaio", "io_uring", "io_uring_cmd", "posixaio", "solarisaio", "windowsaio", "spdk", "spdk_bdev", "xnvme",
})  # fmt: skip
_READ = frozenset({"ioengine", "direct", "buffered", "fdatasync", "stonewall", "wait_for_previous", "name"})
"""Options that this module reads itself; fio adds `name`."""
_OUTSIDE = (
    "*filename*", "directory", "description", "thread", "invalidate", "*group*", "runtime", "timeout", "time_based",
    "*delay", "ramp_time", "io_size", "io_limit", "number_ios", "loops", "fill_device", "create_*", "fallocate",
    "end_fsync", "fsync_on_close", "file_append", "unlink*", "*log*", "*percentile*", "*reporting*",
    "*significant_figures", "disable_*", "*gtod*", "clocksource", "exec_*", "ss*", "steadystate*", "cpu*", "numa_*",
    "nice", "prio*", "mem", "iomem*", "lockmem", "hugepage-size", "*buffers", "buffer_*", "dedupe_*", "hipri*",
    "sqthread_*", "fixedbufs", "registerfiles", "nonvectored", "uncached", "force_async", "cmd_type",
    "userspace_reap", "allow_mounted_write", "eta*", "unit_base", "*error*", "exitall*", "random_seed",
    "allrandrepeat",
)  # fmt: skip
"""Options that do not reach the drive, or only limit the run: runs here have their own end."""
_LEAST, _MOST = 2_000, 20_000
_PERCENTILES = {"50.000000": "p50", "90.000000": "p90", "95.000000": "p95", "99.000000": "p99", "99.900000": "p99.9"}


def read(path: Path, how: How) -> Measurement:
    """Reads fio's output. Raises InputError for other files, or a job without figures."""
    try:
        text = path.read_text(encoding="utf-8")
        # fio prints its warnings before the object.
        data = json.loads(text[max(0, text.find("{")) :])
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: expected fio's output of --output-format=json: {error}") from None
    jobs = data.get("jobs") if isinstance(data, dict) else None
    if not isinstance(jobs, list) or not jobs or not all(isinstance(job, dict) for job in jobs):
        raise InputError(f"{path}: the output has no jobs; expected fio's output of --output-format=json")
    groups: dict[str, list[dict[str, Any]]] = {}
    for at, job in enumerate(jobs, start=1):
        groups.setdefault(str(job.get("jobname", f"job {at}")), []).append(job)
    try:
        common = data.get("global options", {})
        made = [_Job(f"{path}: job {name}", name, each, common) for name, each in groups.items()]
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{path}: expected options and figures of jobs as fio prints them: {error}") from None
    together = _together(made)
    folder = JobFolder()
    files = {job.name: _job_file(folder.path, at, jobs) for at, jobs in enumerate(together) for job in jobs}
    by_name = {job.name: job for job in made}
    targets = tuple(
        Target(f"{job.name}:{name}", job.name, name, unit, real, tolerance(name))
        for job in made
        for name, real, unit in job.figures
        # Sections have no histogram of their own.
        if real > 0 and (files[job.name] is None or not name.endswith(".p95"))
    )

    def run(drive: Drive, group: str) -> RunOptions:
        job, file = by_name[group], files[group]
        if file is not None:
            return drive.run(str(file), how.precondition)
        return drive.run(job.spec, how.precondition, max(_LEAST, min(_MOST, job.requests)))

    def figure(target: Target, result: Result) -> float | None:
        # The folder lives as long as this function.
        return _figure(target, result, target.group if folder and files[target.group] is not None else None)

    ignored = ", ".join(dict.fromkeys(key for job in made for key in job.ignored))
    note = f"not used of fio's options, because requests go to the whole drive until our own end: {ignored}"
    return GroupRuns(path.name, targets, run, figure, notes=(note,) if ignored else ())


def _together(jobs: "Sequence[_Job]") -> "list[list[_Job]]":
    """The jobs that ran at the same time, in order of time."""
    found = [[jobs[0]]]
    for job in jobs[1:]:
        if job.follows(found[-1][-1]):
            found.append([job])
        else:
            found[-1].append(job)
    return found


def _job_file(folder: Path, at: int, jobs: "Sequence[_Job]") -> Path | None:
    """A job file of jobs that ran together, which ends after `_MOST` requests at the real rates; None for one job."""
    if len(jobs) == 1:
        return None
    per_second = sum(value for job in jobs for name, value, _ in job.figures if name.endswith(".iops"))
    runtime = f"runtime={max(1, round(1e6 * _MOST / per_second))}us"
    path = folder / f"jobs{at}.fio"
    sections = ["\n".join([f"[{job.name}]", *job.lines, "time_based=1", runtime, ""]) for job in jobs]
    path.write_text("\n".join(sections), encoding="utf-8")
    return path


def _figure(target: Target, result: Result, section: str | None) -> float | None:
    """Ours, of the run or of a section: rates of reads and writes are counted apart."""
    kind, _, name = target.name.partition(".")
    if section is None:
        return rate(result, kind) if name == "iops" else measure(target.name, result)
    job = next(each for each in result["jobs"] if each["job"] == section)
    if name != "iops":
        return percentile(result, kind, name, of=job)
    served = sum(job["requests"].values())
    return (job["throughput"]["iops"] or 0.0) * job["requests"][kind] / served if served else None


class _Job:
    """A job with its figures, from all its copies."""

    def __init__(self, place: str, name: str, copies: Sequence[Mapping[str, Any]], common: Mapping[str, Any]) -> None:
        self.name = name
        self.options = {**common, **copies[0].get("job options", {})}
        self._numbers = {copy.get("groupid") for copy in copies}
        own = [key for key in self.options if key not in KEPT]
        self.ignored = [key for key in own if any(fnmatch.fnmatch(key, each) for each in _OUTSIDE)]
        for key in {*own} - _READ - {*self.ignored}:
            raise InputError(f"{place}: {key} is not modelled and may change the requests; expected jobs without it")
        if str(self.options.get("direct", "1")) == "0" or str(self.options.get("buffered", "0")) == "1":
            raise InputError(f"{place}: the host's page cache served these requests; expected jobs with direct=1")
        kept = {key: str(value) for key, value in self.options.items() if key in KEPT}
        if (engine := self.options.get("ioengine", "libaio")) in _WAITS:
            kept["iodepth"] = "1"
        elif str(engine).partition(":")[0] not in _QUEUES:
            known = ", ".join(sorted(_QUEUES | _WAITS))
            raise InputError(f"{place}: the engine {engine} is none of block requests; expected one of {known}")
        if "fdatasync" in self.options:
            # A drive is sent the same flush.
            kept["fsync"] = str(self.options["fdatasync"])
        if not {"rw", "readwrite"} & kept.keys():
            raise InputError(f"{place}: the options name no rw; expected fio's own `job options`, or `global options`")
        size = kept.get("size", "")
        if not size.endswith("%"):
            # Our drive has another size than the real file or device.
            self.ignored += ["size"] if size else []
            kept["size"] = "100%"
        self.lines = [key if value == "" else f"{key}={value}" for key, value in kept.items()]
        self.spec = ",".join(self.lines)
        check_workload(self.spec, place)
        self.figures: list[tuple[str, float, str]] = []
        self.requests = 0
        for kind in ("read", "write"):
            sides = [side for copy in copies if (side := copy.get(kind)) and side.get("total_ios")]
            if sides:
                self._add(kind, sides)
        if not self.figures:
            raise InputError(f"{place}: the job has no requests; expected reads or writes with their response times")

    def follows(self, before: "_Job") -> bool:
        """Whether the job began after the end of the job before."""
        return bool({"stonewall", "wait_for_previous"} & self.options.keys()) or not self._numbers & before._numbers

    def _add(self, kind: str, sides: Sequence[Mapping[str, Any]]) -> None:
        self.requests += sum(int(side["total_ios"]) for side in sides)
        self.figures.append((f"{kind}.iops", sum(float(side.get("iops", 0.0)) for side in sides), "1/s"))
        times = [side.get("lat_ns") or side.get("clat_ns") or {} for side in sides]
        # Mean of all requests: copies count by their number of requests.
        means = [(float(each["mean"]), int(side["total_ios"])) for each, side in zip(times, sides, strict=True)
                 if each.get("mean")]  # fmt: skip
        if means:
            mean = sum(mean * number for mean, number in means) / sum(number for _, number in means)
            self.figures.append((f"{kind}.mean", mean / 1000, "us"))
        if len(sides) == 1:
            shares = (sides[0].get("clat_ns") or {}).get("percentile") or times[0].get("percentile") or {}
            for key, name in _PERCENTILES.items():
                if shares.get(key):
                    self.figures.append((f"{kind}.{name}", float(shares[key]) / 1000, "us"))


assert all(f"{kind}.{name}" in MEASURES for kind in ("read", "write") for name in _PERCENTILES.values())
