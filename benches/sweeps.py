"""Processor time of a point of a sweep beyond the run itself: on this machine, on a Dask and on a Ray cluster.

    make setup && .venv/bin/python benches/sweeps.py [local] [dask] [ray]

A sweep of 1,000 short runs less one of 100, so that the start of the command does not count; all processes of a cluster
count, also while they wait. A worker of Ray counts up to half a second before its end. The time of the runs alone is
that of one process that runs the same points in a loop. Ignored: networks, as all workers are on this machine.
"""

import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from palimpsest import _core
from palimpsest.options import RunOptions

FEW, MANY = 100, 1000
WORKLOAD = "rw=randwrite,bs=4k,norandommap,n=1000"
SWEEP = f"""
[base]
ssd = "mga-8k"
precondition = "none"
workload = "{WORKLOAD}"
[grid]
seed = {{from = 1, to = POINTS, step = 1}}
"""
BIN = Path(sys.executable).parent
_MARK = "PALIMPSEST_CLUSTER"
"""An environment variable of all processes of a cluster, some of which leave their parent."""
_SEEN: dict[tuple[int, float], float] = {}
"""Seconds of the processes of a cluster, by number and start. Workers of Ray end with the command, and nothing else
counts them."""


def _alone() -> float:
    """Seconds of a run, in a process that only runs."""
    begin = time.process_time()
    for seed in range(1, FEW + 1):
        options = RunOptions(ssd="mga-8k", workload=WORKLOAD, precondition="none", seed=seed, sketch=True)
        _core.run(options.to_json(), None)
    return (time.process_time() - begin) / FEW


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cluster() -> Iterator[psutil.Process]:
    """The processes of the cluster."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(_MARK) == str(os.getpid()):
                yield process


def _of_cluster() -> float:
    """Seconds of all processes of the cluster, of their children that ended, and of processes that were seen before."""
    for process in _cluster():
        with contextlib.suppress(psutil.Error):
            _SEEN[process.pid, process.create_time()] = sum(process.cpu_times()[:4])
    return sum(_SEEN.values())


def _sweep(folder: Path, points: int, *options: str) -> float:
    """Seconds of the command and its children."""
    file = folder / f"{points}.toml"
    file.write_text(SWEEP.replace("POINTS", str(points)))
    before = _of_children()
    command: list[str | Path] = [BIN / "palimpsest", "sweep", file, "--out", folder / f"{points}", "--fresh"]
    silent = subprocess.DEVNULL
    with subprocess.Popen([*command, "--jobs", "2", *options], stdout=silent, stderr=silent) as sweep:
        while sweep.poll() is None:
            time.sleep(0.5)
            _of_cluster()
    if sweep.returncode:
        raise SystemExit(f"the sweep of {points} points failed")
    return _of_children() - before


def _a_point(folder: Path, used: Callable[[], float], *options: str) -> float:
    """Seconds of a point, by the difference of two sweeps; `used` has the seconds of a cluster."""
    took = []
    for points in (FEW, FEW, MANY):
        before = used()
        took.append(_sweep(folder, points, *options) + used() - before)
    return (took[2] - took[1]) / (MANY - FEW)


@contextlib.contextmanager
def _program(*command: object) -> Iterator[None]:
    environment = os.environ | {_MARK: str(os.getpid())}
    words, silent = [str(each) for each in command], subprocess.DEVNULL
    with subprocess.Popen(words, stdout=silent, stderr=silent, env=environment):
        try:
            yield
        finally:
            for process in _cluster():
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()


def _local(folder: Path) -> float:
    return _a_point(folder, lambda: 0.0)


def _dask(folder: Path) -> float:
    port = ("--host", "127.0.0.1", "--port", 8799, "--no-dashboard")
    address = "tcp://127.0.0.1:8799"
    local = ("--nworkers", 2, "--nthreads", 1, "--no-dashboard", "--local-directory", folder)
    with _program(BIN / "dask", "scheduler", *port), _program(BIN / "dask", "worker", address, *local):
        time.sleep(5)
        return _a_point(folder, _of_cluster, "--engine", "dask", "--address", address)


def _ray(folder: Path) -> float:
    address = "127.0.0.1:8798"
    local = ("--num-cpus", 2, "--include-dashboard", "false", "--disable-usage-stats", "--temp-dir", folder / "ray")
    with _program(BIN / "ray", "start", "--head", "--block", "--port", address.split(":")[1], *local):
        time.sleep(20)
        return _a_point(folder, _of_cluster, "--engine", "ray", "--address", address)


def main() -> None:
    """Prints a table in Markdown."""
    engines = {"local": _local, "dask": _dask, "ray": _ray}
    alone = _alone()
    print("| engine | ms of a point | beyond the run |")
    print("| --- | --- | --- |")
    print(f"| none: a loop of runs | {1000 * alone:.1f} | |", flush=True)
    for name in sys.argv[1:] or engines:
        with tempfile.TemporaryDirectory() as folder:
            took = engines[name](Path(folder))
        print(f"| {name} | {1000 * took:.1f} | {1000 * (took - alone):.1f} |", flush=True)


if __name__ == "__main__":
    main()
