"""fio's output in JSON, of versions 2 and 3: the options and figures of each job, and the workload that they describe.

The formats `json`, `json+` (bins join percentiles of copies) and `normal,json` (text around the JSON). Of the objects
that `--status-interval` prints, the last whole one counts. Copies of a job (`numjobs`) are joined; fio prints a job for
each copy, with the same name, or one for all with `group_reporting`. The output has no `stonewall`, but jobs after one
have the next `groupid` (jobs after `new_group` look the same). An engine that waits for each request has one in flight,
whatever `iodepth` says. Ignored: `slat`, priorities, disks.
"""

import fnmatch
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .errors import InputError

KEPT = frozenset((
    "rw", "readwrite", "rw_sequencer", "bs", "blocksize", "bssplit", "blockalign", "ba", "bsrange", "blocksize_range",
    "bs_unaligned", "blocksize_unaligned", "iodepth", "iodepth_low", "iodepth_batch", "iodepth_batch_submit",
    "iodepth_batch_complete", "iodepth_batch_complete_min", "size", "offset", "fileoffset", "offset_increment",
    "rwmixread", "rwmixwrite", "percentage_random", "random_distribution", "random_sequence_stride", "norandommap",
    "rate", "rate_iops", "rate_min", "ratemin", "rate_iops_min", "rate_cycle", "ratecycle", "rate_process", "numjobs",
    "kb_base", "random_generator", "randrepeat", "allrandrepeat", "randseed", "nrfiles", "nr_files", "filesize",
    "openfiles", "thinktime", "thinktime_blocks", "thinktime_blocks_type", "thinktime_iotime", "latency_target",
    "latency_window", "latency_percentile", "latency_run", "fsync", "sync", "writefua", "write_hint", "fdp",
    "dataplacement", "data_placement", "plids", "fdp_pli", "plid_select", "fdp_pli_select", "dp_scheme", "verify",
    "do_verify", "verify_backlog", "verify_backlog_batch", "zonemode", "zonesize", "zonerange", "zoneskip",
    "zonecapacity", "max_open_zones", "job_max_open_zones", "read_beyond_wp", "zone_reset_threshold",
    "zone_reset_frequency", "flow", "flow_id", "flow_sleep",
))  # fmt: skip
"""Options of fio that describe the requests."""
SHORTENED = frozenset({"ramp_time", "startdelay", "start_delay"})
"""Times beside that of the run. They are shortened by the same factor as the run."""
_WAITS = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "sg"})
"""Engines that wait for each request."""
_QUEUES = frozenset({
    "libaio", "io_uring", "io_uring_cmd", "posixaio", "solarisaio", "windowsaio", "spdk", "spdk_bdev", "xnvme",
})  # fmt: skip
_READ = frozenset({"ioengine", "direct", "buffered", "fdatasync", "stonewall", "wait_for_previous", "name"})
"""Options that this module reads itself; fio adds `name`."""
_OUTSIDE = (
    "*filename*", "directory", "description", "comm", "thread", "invalidate", "*group*", "runtime", "timeout",
    "time_based", "io_size", "io_limit", "number_ios", "loops", "fill_device", "fill_fs", "create_*", "fallocate",
    "fadvise_hint", "overwrite", "file_append", "filetype", "end_fsync", "fsync_on_close", "unlink*", "write_*log",
    "log_*", "per_job_logs", "*percentile*", "*reporting*", "*significant_figures", "disable_*", "disk_util", "stats",
    "*avgtime", "*gtod*", "clocksource", "job_start_clock_id", "exec_*", "ss*", "steadystate*", "cpu*", "numa_*",
    "nice", "prio*", "*cmdprio*", "uid", "gid", "mem*", "iomem*", "lockmem", "hugepage-size", "thp", "gpu_*", "*_io",
    "cgroup*", "ioscheduler", "softrandommap", "thinktime_spin", "io_submit_mode", "iodepth_batch_complete_max",
    "*buffers", "buffer_*", "dedupe_*", "verify_interval", "verify_offset", "verify_pattern*", "verify_fatal",
    "verify_dump", "verify_async*", "verify_policy", "verify_write_sequence", "verify_header_seed", "verify_state_save",
    "verifysort*", "experimental_verify", "hipri*", "sqthread_*", "fixedbufs", "registerfiles", "nonvectored",
    "uncached", "force_async", "nowait", "cmd_type", "userspace_reap", "libaio_vectored", "xnvme_*",
    "no_completion_thread", "atomic", "allow_*", "lockfile", "eta*", "unit_base", "continue_on_error", "ignore_error",
    "error_dump", "exitall*", "exit_what", "wait_for", "random_seed",
)  # fmt: skip
"""Options that do not reach the drive, or only limit the run: runs here have their own end."""
_TIME = {"d": 86_400e6, "h": 3600e6, "m": 60e6, "s": 1e6, "ms": 1e3, "us": 1.0, "": 1e6}
"""Microseconds of fio's units of time."""


def is_known(key: str) -> bool:
    """Whether an option is played, read here, or known not to change the requests."""
    return key in KEPT | SHORTENED | _READ or any(fnmatch.fnmatch(key, each) for each in _OUTSIDE)


KINDS = ("read", "write", "trim", "mixed")
"""Classes of requests with figures; `unified_rw_reporting` joins them as `mixed`."""

_EXPECTED = "expected fio's output of --output-format=json"


@dataclass(frozen=True, slots=True)
class Side:
    """Figures of a class of requests of a job. `times` are nanoseconds by name, such as `lat.mean` and `clat.p99.9`."""

    requests: int
    iops: float
    bytes_per_s: float
    times: Mapping[str, float]


class Job:
    """A job with its figures, from all its copies. `place` names the job in messages."""

    def __init__(self, place: str, name: str, copies: Sequence[Mapping[str, Any]], common: Mapping[str, Any]) -> None:
        self.place, self.name = place, name
        self.options: dict[str, Any] = {**common, **copies[0].get("job options", {})}
        self._groups = {copy.get("groupid") for copy in copies}
        found = {
            kind: [side for copy in copies if (side := copy.get(kind)) and side.get("total_ios")] for kind in KINDS
        }
        self.sides = {kind: _side(sides) for kind, sides in found.items() if sides}
        self.seconds = (
            max((float(side.get("runtime", 0)) for sides in found.values() for side in sides), default=0) / 1e3
        )

    @property
    def lines(self) -> list[str]:
        """The lines of a job file that describe the requests. Raises InputError if the output does not record them."""
        return self._described[0]

    @property
    def ignored(self) -> list[str]:
        """The options that do not reach the drive, or only end the run. Raises InputError as `lines`."""
        return self._described[1]

    @cached_property
    def _described(self) -> tuple[list[str], list[str]]:
        own = [key for key in self.options if key not in KEPT | SHORTENED]
        ignored = [key for key in own if any(fnmatch.fnmatch(key, each) for each in _OUTSIDE)]
        for key in (key for key in own if not is_known(key)):
            what = f"{key} is not modelled and may change the requests"
            raise InputError(f"{self.place}: {what}; expected jobs without it")
        if str(self.options.get("direct", "1")) == "0" or str(self.options.get("buffered", "0")) == "1":
            raise InputError(f"{self.place}: the host's page cache served these requests; expected jobs with direct=1")
        kept = {key: str(value) for key, value in self.options.items() if key in KEPT}
        if (engine := self.options.get("ioengine", "libaio")) in _WAITS:
            kept["iodepth"] = "1"
        elif str(engine).partition(":")[0] not in _QUEUES:
            known = ", ".join(sorted(_QUEUES | _WAITS))
            raise InputError(f"{self.place}: the engine {engine} is none of block requests; expected one of {known}")
        if "fdatasync" in self.options:
            # A drive is sent the same flush.
            kept["fsync"] = str(self.options["fdatasync"])
        if not {"rw", "readwrite"} & kept.keys():
            what = "expected fio's own `job options`, or `global options`"
            raise InputError(f"{self.place}: the options name no rw; {what}")
        size = kept.get("size", "")
        if not size.endswith("%"):
            # Our drive has another size than the real file or device.
            ignored += ["size"] if size else []
            kept["size"] = "100%"
        if not (size.endswith("%") and kept.get("offset_increment", "%").endswith("%")):
            ignored += ["offset_increment"] if kept.pop("offset_increment", "") else []
        return [key if value == "" else f"{key}={value}" for key, value in kept.items()], ignored

    @property
    def shortened(self) -> list[str]:
        """The options whose times are shortened as the run is."""
        return [key for key in self.options if key in SHORTENED]

    def spec(self, requests: int) -> str:
        """The specification of so many requests."""
        made = sum(side.requests for side in self.sides.values())
        return ",".join([*self.lines, *self._times(requests / made)])

    def _times(self, share: float) -> list[str]:
        """Lines of the times beside the run, of which a share is played. Raises InputError for other times."""
        found = []
        for key in self.shortened:
            ends = [re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", end) for end in str(self.options[key]).split("-")]
            if any(end is None or end[2] not in _TIME for end in ends):
                raise InputError(f"{self.place}: {key}={self.options[key]} is no time; expected one such as 10 or 5s")
            times = [round(float(end[1]) * _TIME[end[2]] * min(1.0, share)) for end in ends if end]
            found.append(f"{key}={'-'.join(f'{time}us' for time in times)}")
        return found

    def section(self, seconds: float, *, later: bool = False) -> str:
        """The section of a job file, which ends by time; `later` waits for the end of the sections before."""
        times = self._times(seconds / (self.seconds or seconds))
        head = [f"[{self.name}]", *self.lines, *times, *(["stonewall"] if later else [])]
        return "\n".join([*head, "time_based=1", f"runtime={max(1, round(1e6 * seconds))}us", ""])

    def follows(self, before: "Job") -> bool:
        """Whether the job began after the end of the job before."""
        return bool({"stonewall", "wait_for_previous"} & self.options.keys()) or not self._groups & before._groups


@dataclass(frozen=True, slots=True)
class Output:
    """The version of fio, and the jobs in their order."""

    version: str
    jobs: tuple[Job, ...]

    @property
    def notes(self) -> list[str]:
        """Notes on options that are not used, or shortened. Raises InputError as `Job.lines`."""
        ignored = ", ".join(dict.fromkeys(key for job in self.jobs for key in job.ignored))
        said = f"not used of fio's options, because requests go to the whole drive until our own end: {ignored}"
        short = ", ".join(dict.fromkeys(key for job in self.jobs for key in job.shortened))
        return [said] * bool(ignored) + [f"shortened as the run is: {short}"] * bool(short)

    def together(self) -> list[list[Job]]:
        """The jobs that ran at the same time, in order of time."""
        found = [[self.jobs[0]]]
        for job in self.jobs[1:]:
            if job.follows(found[-1][-1]):
                found.append([job])
            else:
                found[-1].append(job)
        return found


def read(path: Path) -> Output:
    """Reads an output. Raises InputError for other files, and for a job without requests."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; {_EXPECTED}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: the file is not text; {_EXPECTED}") from None
    data = _last_object(text, path)
    # With --client the jobs of all clients are followed by their sum.
    jobs = data.get("jobs") or [each for each in data.get("client_stats", ()) if each.get("jobname") != "All clients"]
    if not isinstance(jobs, list) or not all(isinstance(job, dict) and "jobname" in job for job in jobs) or not jobs:
        raise InputError(f"{path}: the output has no jobs; {_EXPECTED}")
    copies: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        copies.setdefault(str(job["jobname"]), []).append(job)
    try:
        common = data.get("global options") or {}
        made = tuple(Job(f"{path}: job {name}", name, each, common) for name, each in copies.items())
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: expected options and figures of jobs as fio prints them: {error}") from None
    for job in made:
        if not job.sides:
            expected = "expected reads, writes or trims with their response times"
            raise InputError(f"{job.place}: the job has no requests; {expected}")
    return Output(str(data.get("fio version", "fio")), made)


def _last_object(text: str, path: Path) -> dict[str, Any]:
    """The last object with jobs. Raises InputError if there is none."""
    decoder, end = json.JSONDecoder(), 0
    found: dict[str, Any] | None = None
    failure: Exception | None = None
    for begin in re.finditer(r"^\{", text, re.MULTILINE):
        if begin.start() < end:
            continue
        try:
            data, end = decoder.raw_decode(text, begin.start())
        except (ValueError, RecursionError) as error:
            failure = failure or error
            continue
        if found is None or "jobs" in data:
            found = data
    if found is not None:
        return found
    if failure is not None:
        raise InputError(f"{path}:{getattr(failure, 'lineno', 1)}: the JSON is not whole ({failure}); {_EXPECTED}")
    said = "fio's terse output" if re.match(r"\d;fio-", text) else "no JSON object"
    raise InputError(f"{path}: there is {said}; {_EXPECTED}")


def _side(copies: Sequence[Mapping[str, Any]]) -> Side:
    # Version 2 prints KiB a second only.
    rates = (float(each.get("bw_bytes", 1024 * each.get("bw", 0))) for each in copies)
    numbers = [int(each["total_ios"]) for each in copies]
    times: dict[str, float] = {}
    for name in ("lat", "clat"):
        found = [
            (each.get(f"{name}_ns") or each.get(name) or {}, 1 if f"{name}_ns" in each else 1000) for each in copies
        ]
        # Copies count by their number of requests.
        means = [
            (unit * float(each["mean"]), n) for (each, unit), n in zip(found, numbers, strict=True) if each.get("mean")
        ]
        if means:
            times[f"{name}.mean"] = sum(mean * n for mean, n in means) / sum(n for _, n in means)
        shares = _joined([each for each, _ in found])
        times |= {f"{name}.p{float(key):g}": found[0][1] * value for key, value in shares.items() if value}
    return Side(sum(numbers), sum(float(each.get("iops", 0.0)) for each in copies), sum(rates), times)


def _joined(found: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Percentiles by fio's key: those of the only copy, or of the bins of all copies; empty without either."""
    shares = found[0].get("percentile") or {}
    if len(found) == 1:
        return {key: float(value) for key, value in shares.items() if 0 < float(key) <= 100}
    if not all(each.get("bins") for each in found):
        return {}
    bins: dict[int, int] = {}
    for each in found:
        for value, count in each["bins"].items():
            bins[int(value)] = bins.get(int(value), 0) + int(count)
    joined = {}
    for key in shares:
        left = float(key) / 100 * sum(bins.values())
        for value in sorted(bins):
            left -= bins[value]
            if left <= 0:
                joined[key] = float(value)
                break
    return joined
