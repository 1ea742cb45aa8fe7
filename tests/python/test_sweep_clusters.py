"""Sweeps on real clusters of dask and ray on this machine, with a worker killed in the middle, on the native module.

The clusters' own commands start them, as for a user; no network is needed.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import MagicMock, Mock

import polars as pl
import psutil
import pytest
from distributed.client import FutureCancelledError

from conftest import COMMAND, Command, figures, measured
from palimpsest.errors import Error
from palimpsest.sweeps import dask_engine, engines, points, task
from palimpsest.sweeps.definition import from_mapping

pytestmark = pytest.mark.contract

BIN = Path(sys.executable).parent
MIDDLE = """\
[base]
workload = "rw=randrw,rwmixread=30,bs=4k,size=64MiB,n=3e5,iodepth=8"
precondition = "none"
[grid]
ftl = ["page", "subpage"]
seed = [1, 2, 3, 4]
"""


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def below(pid: int) -> list[psutil.Process]:
    """The descendants of a process."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return list(psutil.Process(pid).children(recursive=True))
    return []


def name(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


@dataclass
class Cluster:
    """A running cluster: its address for a sweep, its first process, and the processes that run points."""

    arguments: tuple[str, ...]
    head: psutil.Process
    workers: Callable[[], list[psutil.Process]]


class Programs:
    """Programs that are ended, with all descendants, at the end of a test."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("w")
        self._all: list[subprocess.Popen[bytes]] = []

    def start(self, *command: object) -> int:
        words = [str(each) for each in command]
        environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONWARNINGS": "default"}
        self._all.append(
            subprocess.Popen(words, stdout=self._log, stderr=self._log, env=environment, start_new_session=True)
        )
        return self._all[-1].pid

    def end(self) -> None:
        started = [process for program in self._all for process in below(program.pid)]
        for program in reversed(self._all):
            program.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(10)
            program.kill()
            program.wait()
        _, alive = psutil.wait_procs(started, timeout=3)
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._log.close()


@contextlib.contextmanager
def dask_cluster(folder: Path) -> Iterator[Cluster]:
    programs = Programs(folder / "dask.log")
    file = folder / "scheduler.json"
    head = programs.start(
        BIN / "dask", "scheduler", "--host", "127.0.0.1", "--port", 0, "--scheduler-file", file, "--no-dashboard"
    )
    wait_for(file.exists)
    local = ("--local-directory", folder, "--no-dashboard", "--nthreads", 1)
    nannies = [programs.start(BIN / "dask", "worker", "--scheduler-file", file, *local) for _ in range(2)]
    address = json.loads(file.read_text())["address"]

    def workers() -> list[psutil.Process]:
        return [each for nanny in nannies for each in below(nanny) if "spawn_main" in name(each)]

    wait_for(lambda: len(workers()) == 2)
    yield Cluster(("--engine", "dask", "--address", address), psutil.Process(head), workers)
    programs.end()


@contextlib.contextmanager
def ray_cluster(logs: Path) -> Iterator[Cluster]:
    programs = Programs(logs / "ray.log")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Paths of sockets are short.
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        head = programs.start(
            BIN / "ray", "start", "--head", "--block", f"--port={port}", "--num-cpus=2", f"--temp-dir={folder}",
            "--include-dashboard=false", "--disable-usage-stats", "--object-store-memory=80000000",
        )  # fmt: skip

        def workers() -> list[psutil.Process]:
            return [each for each in below(head) if name(each).startswith("ray::run_point")]

        # The last process that the head starts, after all others.
        wait_for(lambda: "Ray runtime started" in (logs / "ray.log").read_text())
        yield Cluster(("--engine", "ray", "--address", f"127.0.0.1:{port}"), psutil.Process(head), workers)
        programs.end()


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all tests that restore it: a killed worker is replaced, interrupted work is given up.

    The last of these tests ends the cluster.
    """
    with dask_cluster(tmp_path_factory.mktemp("dask")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """As `dask`, for tests that never end the cluster."""
    with ray_cluster(tmp_path_factory.mktemp("ray")) as cluster:
        yield cluster


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "middle.toml"
    path.write_text(MIDDLE)
    return path


def sweep_with_a_worker_killed(cluster: Cluster, file: Path, out: Path) -> None:
    """Runs the sweep, and kills a worker when the first point is finished and others are running."""
    command: list[str | Path] = [COMMAND, "sweep", file, "--out", out, "--json", *cluster.arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        kept = out / "points"
        wait_for(lambda: process.poll() is not None or (list(kept.glob("*.json")) and cluster.workers()))
        victim = cluster.workers()[0]
        finished = len(list(kept.glob("*.json")))
        victim.send_signal(signal.SIGKILL)
        output, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert finished < 8, "the worker was killed after the last point"
    assert said.splitlines()[-1] == f"wrote {out}/sweep.parquet and report.html"
    assert '"done": 8' in output


@pytest.fixture(scope="module")
def here(palimpsest: Command, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """The table of the sweep on this machine."""
    folder = tmp_path_factory.mktemp("here")
    (folder / "middle.toml").write_text(MIDDLE)
    figures(palimpsest("sweep", str(folder / "middle.toml"), "--out", str(folder / "out"), "--json"))
    return measured(folder / "out")


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_a_killed_worker_loses_no_point(
    engine: str,
    palimpsest: Command,
    file: Path,
    here: pl.DataFrame,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    cluster: Cluster = request.getfixturevalue(engine)
    sweep_with_a_worker_killed(cluster, file, tmp_path / "far")
    far = measured(tmp_path / "far")
    assert far["identity"].n_unique() == far.height == 8
    assert far.equals(here)
    # Points that finished there count here.
    assert figures(palimpsest("sweep", str(file), "--out", str(tmp_path / "far"), "--json"))["reused"] == 8


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_an_interrupt_ends_the_work_on_the_cluster(
    engine: str, file: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cluster: Cluster = request.getfixturevalue(engine)
    file.write_text(MIDDLE.replace("n=3e5", "n=1e12") + "[[points]]\nrequests = 500\n")
    command: list[str | Path] = [COMMAND, "sweep", file, "--out", tmp_path / "far", "--jobs", "9", *cluster.arguments]

    def busy() -> bool:
        before = {each.pid: sum(each.cpu_times()[:2]) for each in cluster.workers()}
        time.sleep(0.6)
        with contextlib.suppress(psutil.NoSuchProcess):
            return any(sum(each.cpu_times()[:2]) - before.get(each.pid, 0) > 0.15 for each in cluster.workers())
        return False

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        # Earlier work may keep the workers busy while the command still starts.
        try:
            wait_for(lambda: process.poll() is not None or (tmp_path / "far").is_dir())
            wait_for(lambda: process.poll() is not None or (len(cluster.workers()) == 2 and busy()))
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, said
    assert said.splitlines()[-1] == "interrupted"
    wait_for(lambda: not busy(), 15)


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_a_fit_is_the_same_on_a_cluster(
    engine: str, palimpsest: Command, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The fit must not depend on the engine or on the number of jobs."""
    (tmp_path / "a.toml").write_text(
        '[[figure]]\nworkload = "rw=randread,bs=4k,iodepth=1"\nmeasure = "read.mean"\nvalue = 75\nunit = "us"\n'
        'requests = 200\nprecondition = "fill:100%"\n'
    )
    small = (
        "ssd.channels=1",
        "ssd.chips_per_channel=1",
        "ssd.dies_per_chip=1",
        "ssd.blocks_per_plane=16",
        "part.t_read_types=[]",
    )
    keys = [argument for key in small for argument in ("--set", key)]
    given = ("fit", str(tmp_path / "a.toml"), "--start", "default", *keys, "--vary", "part.t_read=30us..90us")
    budget = ("--evaluations", "8", "--json")
    here = figures(palimpsest(*given, *budget, "--jobs", "1"))
    cluster: Cluster = request.getfixturevalue(engine)
    assert figures(palimpsest(*given, *budget, *cluster.arguments)) == here
    assert here["keys"][0]["determined"]


def test_a_point_has_the_file_of_its_policy(tmp_path: Path) -> None:
    tasks = tasks_with_a_policy(tmp_path)
    same_figures([task.run_point(each) for each in tasks])
    without = tasks[1] | {"code": {}}
    assert "mine.py: No such file" in task.run_point(without)["error"]["text"]


@pytest.mark.parametrize("engine", ["local", "dask", "ray"])
def test_workers_get_the_file_of_a_policy(engine: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    tasks = tasks_with_a_policy(tmp_path)
    address = None if engine == "local" else request.getfixturevalue(engine).arguments[3]
    same_figures(list(engines.find(engine, address)(tasks, address, 1, lambda *_: None)))


@pytest.mark.parametrize(("losses", "wrong"), [(3, False), (4, True)])
def test_an_outcome_lost_with_a_worker_is_computed_again(
    losses: int, wrong: bool, dask: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, left, outcome = tasks_with_a_policy(tmp_path), [losses], dask_engine._outcome

    def losing(future: object, of: task.Task) -> task.Outcome:
        if of["identity"] == tasks[0]["identity"] and left[0]:
            left[0] -= 1
            raise FutureCancelledError("palimpsest-1", "lost")
        return outcome(future, of)

    monkeypatch.setattr(dask_engine, "_outcome", losing)
    found = list(dask_engine.outcomes(tasks, dask.arguments[3], 1, lambda *_: None))
    if wrong:
        (failed,) = [each for each in found if each["status"] == "failed"]
        assert failed["identity"] == tasks[0]["identity"]
        assert "the worker with the outcome was lost 4 times" in failed["error"]["text"]
    else:
        same_figures(found)


def test_a_lost_scheduler_is_one_line(file: Path, dask: Cluster, tmp_path: Path) -> None:
    """The last test that uses the cluster, which is gone afterwards."""
    file.write_text(MIDDLE.replace("n=3e5", "n=2e6") + "[[points]]\nrequests = 500\n")
    command: list[str | Path] = [COMMAND, "sweep", file, "--out", tmp_path / "far", *dask.arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: process.poll() is not None or list((tmp_path / "far" / "points").glob("*.json")))
        dask.head.kill()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    kept, error = (line for line in said.splitlines() if not line.startswith("points: "))
    assert "are kept in" in kept
    assert "the scheduler is gone" in error


@pytest.mark.parametrize("status", ["finished", "error"])
def test_a_scheduler_that_goes_before_a_result_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    gone = FutureCancelledError("palimpsest-1", "scheduler-connection-lost")
    future = Mock(status=status, result=Mock(side_effect=gone), exception=Mock(return_value=gone))
    monkeypatch.setattr(dask_engine, "_connect", lambda _: Mock(submit=Mock(return_value=future)))
    monkeypatch.setattr(dask_engine, "as_completed", lambda futures, **_: MagicMock(__iter__=lambda _: iter(futures)))
    with pytest.raises(Error, match=r"--address tcp://a:1: the scheduler is gone; finished points are kept"):
        list(dask_engine.outcomes([one_task(tmp_path)], "tcp://a:1", 1, lambda *_: None))


def one_task(tmp_path: Path) -> task.Task:
    trace = tmp_path / "t.csv"
    trace.write_text("time_ns,op,offset_bytes,size_bytes\n0,W,0,4096\n")
    data = {"base": {"workload": "t.csv", "precondition": "none"}}
    return points.resolve(from_mapping(data, tmp_path))[0][0].task()


def test_a_trace_that_a_worker_does_not_have_is_named(tmp_path: Path) -> None:
    one = one_task(tmp_path)
    assert task.run_point(one)["status"] == "done"
    trace = tmp_path / "t.csv"
    trace.rename(tmp_path / "u.csv")
    outcome = task.run_point(one)
    assert outcome["error"]["kind"] == "WorkloadIoError"
    expected = (
        f"workload {trace}: there is no such file on this worker; expected every worker to have it at the same path"
    )
    assert outcome["error"]["text"] == f"worker {socket.gethostname()}:{os.getpid()}: {expected}"


def tasks_with_a_policy(folder: Path) -> list[task.Task]:
    """A point with a built-in policy and one with the same in Python, whose file exists no more."""
    path = folder / "mine.py"
    path.write_text(
        "# \u00e4\nclass Fifo:\n    takes_full = True\n\n"
        "    def choose(self, blocks):\n        return blocks.age.argmax()\n",
        encoding="utf-8",
    )
    data = {
        "base": {
            "workload": "rw=randwrite,bs=8k,n=20000", "ssd": "mga-8k", "ftl": "page", "precondition": "fill:100%",
            "fidelity": "count", "ssd.blocks_per_plane": 32, "part.pages_per_block": 16,
        },
        "grid": {"ftl.victim": ["fifo", "mine.py:Fifo"]},
    }  # fmt: skip
    tasks = [json.loads(task.encode(point.task())) for point in points.resolve(from_mapping(data, folder))[0]]
    path.unlink()
    return tasks


def same_figures(outcomes: list[task.Outcome]) -> None:
    results = [outcome["result"] for outcome in outcomes]
    assert all(results), [outcome["error"] for outcome in outcomes]
    assert len({json.dumps([result["gc"], result["flash"]]) for result in results}) == 1
    assert results[0]["gc"]["erased_blocks"] > 100
    assert "mine.py:Fifo@" in "".join(result["config"]["ftl"]["victim"] for result in results)


def test_other_code_is_another_point(palimpsest: Command, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    code = tmp_path / "a" / "mine.py"
    code.write_text("class Mine:\n    def choose(self, blocks):\n        return blocks.valid.argmin()\n")
    sweep = '[base]\nworkload = "rw=randwrite,bs=4k,n=2000"\nprecondition = "none"\nftl = "page"\n'
    sweep += '[grid]\n"ftl.victim" = ["greedy", "mine.py:Mine"]\n'
    (tmp_path / "a" / "s.toml").write_text(sweep)
    arguments = ("--out", str(tmp_path / "s"), "--json")
    assert figures(palimpsest("sweep", str(tmp_path / "a" / "s.toml"), *arguments))["reused"] == 0
    # The path is no part of the identity of a point.
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert figures(palimpsest("sweep", str(tmp_path / "b" / "s.toml"), *arguments))["reused"] == 2
    (tmp_path / "b" / "mine.py").write_text(
        "class Mine:\n    def choose(self, blocks):\n        return blocks.age.argmax()\n"
    )
    assert figures(palimpsest("sweep", str(tmp_path / "b" / "s.toml"), *arguments))["reused"] == 1


def test_another_trace_of_the_same_name_is_refused(tmp_path: Path) -> None:
    one = one_task(tmp_path)
    trace = tmp_path / "t.csv"
    os.utime(trace, (1, 1))
    assert task.run_point(one)["status"] == "done"
    trace.write_text("time_ns,op,offset_bytes,size_bytes\n0,W,0,8192\n")
    assert "the file on this worker has other content" in task.run_point(one)["error"]["text"]


def test_a_worker_with_another_simulator_refuses(tmp_path: Path) -> None:
    outcome = task.run_point(one_task(tmp_path) | {"simulator": "0.0.9 (0123456789abcdef)"})
    assert outcome["error"]["kind"] == "OtherSimulator"
    assert "expected 0.0.9 (0123456789abcdef)" in outcome["error"]["text"]


@pytest.mark.parametrize(("engine", "says"), [("dask", "no Dask scheduler answers"), ("ray", "no Ray cluster answers")])
def test_no_cluster_at_the_address(palimpsest: Command, file: Path, engine: str, says: str) -> None:
    done = palimpsest("sweep", str(file), "--engine", engine, "--address", "127.0.0.1:1", cwd=file.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
