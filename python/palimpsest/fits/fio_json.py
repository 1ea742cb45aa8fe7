"""fio's output in JSON: its options become the workload, its figures the targets (`fio_output` reads the file).

A group is a job. Jobs that ran together become the sections of one job file, and the figures of each section are
compared; all run until simulated time ends them. The output of the fit names the options that do not reach the drive,
or only end the run; other options are refused. Ignored: that one of several jobs may have ended before the others.
"""

from pathlib import Path

from .. import fio_output
from ..errors import InputError
from ..fio_output import Job, Side
from ..options import RunOptions
from ..result import Result
from ..validate.measures import MEASURES, measure, percentile, rate
from .measured import GroupRuns, How, JobFolder, Measurement, Target, check_workload, tolerance
from .space import Drive

_LEAST, _MOST = 2_000, 20_000
_PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9")


def read(path: Path, how: How) -> Measurement:
    """Reads fio's output. Raises InputError for other files, or a job without figures."""
    found = fio_output.read(path)
    for job in found.jobs:
        check_workload(",".join(job.lines), job.place)
        if not _sides(job):
            raise InputError(f"{job.place}: the job has trims only; expected reads or writes with their response times")
    folder = JobFolder()
    together = found.together()
    files = {job.name: _job_file(folder.path, at, jobs) for at, jobs in enumerate(together) for job in jobs}
    made = {job.name: sum(side.requests for side in _sides(job).values()) for job in found.jobs}
    requests = {name: max(_LEAST, min(_MOST, number)) for name, number in made.items()}
    specs = {job.name: job.spec(requests[job.name]) for job in found.jobs}
    targets = tuple(
        Target(f"{job.name}:{name}", job.name, name, unit, real, tolerance(name))
        for job in found.jobs
        for name, (real, unit) in _figures(job).items()
        # Sections have no histogram of their own.
        if real > 0 and (files[job.name] is None or not name.endswith(".p95"))
    )

    def run(drive: Drive, group: str) -> RunOptions:
        file = files[group]
        if file is not None:
            return drive.run(str(file), how.precondition)
        return drive.run(specs[group], how.precondition, requests[group])

    def figure(target: Target, result: Result) -> float | None:
        # The folder lives as long as this function.
        return _figure(target, result, target.group if folder and files[target.group] is not None else None)

    return GroupRuns(path.name, targets, run, figure, notes=tuple(found.notes))


def _sides(job: Job) -> dict[str, Side]:
    return {kind: job.sides[kind] for kind in ("read", "write") if kind in job.sides}


def _figures(job: Job) -> dict[str, tuple[float, str]]:
    """The figures of a job, with their units."""
    found = {}
    for kind, side in _sides(job).items():
        found[f"{kind}.iops"] = (side.iops, "1/s")
        mean = side.times.get("lat.mean") or side.times.get("clat.mean")
        shares = {name: side.times.get(f"clat.{name}") or side.times.get(f"lat.{name}") for name in _PERCENTILES}
        found |= {f"{kind}.{name}": (value / 1000, "us") for name, value in {"mean": mean, **shares}.items() if value}
    return found


def _job_file(folder: Path, at: int, jobs: list[Job]) -> Path | None:
    """A job file of jobs that ran together, which ends after `_MOST` requests at the real rates; None for one job."""
    if len(jobs) == 1:
        return None
    per_second = sum(side.iops for job in jobs for side in _sides(job).values())
    path = folder / f"jobs{at}.fio"
    path.write_text("\n".join(job.section(_MOST / per_second) for job in jobs), encoding="utf-8")
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


assert all(f"{kind}.{name}" in MEASURES for kind in ("read", "write") for name in _PERCENTILES)
