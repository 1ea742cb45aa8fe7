"""The contract of `palimpsest sweep` and `palimpsest.sweep`, on the native module and this machine."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import palimpsest as ps
from conftest import COMMAND, ROOT, Command, figures, measured

pytestmark = pytest.mark.contract

SMALL = """\
[base]
workload = "rw=randrw,rwmixread=30,bs=4k,size=64MiB,n=2000,iodepth=8"
precondition = "none"

[grid]
ftl = ["page", "subpage"]
ssd.over_provisioning = ["7%", "28%"]
workload.iodepth = {from = 1, to = 4, factor = 4}
"""
ENDLESS = SMALL.replace("n=2000", "n=1e12")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_grid_gives_a_row_for_each_point(palimpsest: Command, file: Path, tmp_path: Path) -> None:
    done = palimpsest("sweep", str(file), "--json", cwd=tmp_path)
    found = figures(done)
    assert (found["total"], found["done"], found["failed"], found["reused"]) == (8, 8, 0, 0)
    assert found["axes"]["workload.iodepth"] == [1, 4]
    folder = tmp_path / "results" / "small"
    assert {"sweep.toml", "sweep.json", "sweep.parquet", "report.html", "points"} <= {
        path.name for path in folder.iterdir()
    }
    assert (folder / "sweep.toml").read_text() == SMALL
    frame = measured(folder)
    assert frame.height == frame["identity"].n_unique() == 8
    assert frame.schema["workload.iodepth"] == pl.Int64()
    assert frame["ssd.over_provisioning_share"].unique().sort().to_list() == [0.07, 0.28]
    assert done.stderr == "wrote results/small/sweep.parquet and report.html\n"


def test_a_point_has_the_figures_of_run(palimpsest: Command, file: Path, tmp_path: Path) -> None:
    palimpsest("sweep", str(file), "--out", str(tmp_path / "s"))
    workload = "rw=randrw,rwmixread=30,bs=4k,size=64MiB,n=2000,iodepth=4"
    alone = figures(
        palimpsest("run", "--json", "--ftl", "subpage", "--workload", workload, "--precondition", "none",
                   "--set", "ssd.over_provisioning=28%")
    )  # fmt: skip
    row = measured(tmp_path / "s").row(7, named=True)
    assert (row["ftl"], row["ssd.over_provisioning"], row["workload.iodepth"]) == ("subpage", "28%", 4)
    for key in ("p99", "mean", "max"):
        assert row[f"latency_ns.write.{key}"] == alone["latency_ns"]["write"][key]
    assert row["flash.page_programs"] == alone["flash"]["page_programs"]
    assert row["config.ssd.channels"] == alone["config"]["ssd"]["channels"]


def test_jobs_do_not_change_results(palimpsest: Command, file: Path, tmp_path: Path) -> None:
    for jobs in ("1", "3"):
        figures(palimpsest("sweep", str(file), "--out", str(tmp_path / jobs), "--jobs", jobs, "--json"))
    assert measured(tmp_path / "1").equals(measured(tmp_path / "3"))


def test_finished_points_are_reused_as_long_as_they_match(palimpsest: Command, file: Path, tmp_path: Path) -> None:
    arguments = ("sweep", str(file), "--out", str(tmp_path / "s"), "--json")
    first = figures(palimpsest(*arguments))
    assert figures(palimpsest(*arguments))["reused"] == 8
    file.write_text(SMALL.replace('"28%"', '"14%"'))
    changed = figures(palimpsest(*arguments))
    assert (changed["total"], changed["reused"]) == (8, 4)
    file.write_text(SMALL)
    back = figures(palimpsest(*arguments))
    assert back["reused"] == 8
    assert [point["figures"] for point in back["points"]] == [point["figures"] for point in first["points"]]
    assert figures(palimpsest(*arguments, "--fresh"))["reused"] == 0


def test_a_changed_trace_is_run_again(palimpsest: Command, tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("time_ns,op,offset_bytes,size_bytes\n0,W,0,4096\n10,R,0,4096\n")
    sweep = tmp_path / "t.toml"
    sweep.write_text('[base]\nworkload = "t.csv"\nprecondition = "none"\n[grid]\nftl = ["page", "subpage"]\n')
    arguments = ("sweep", str(sweep), "--out", str(tmp_path / "s"), "--json")
    # Paths are relative to the folder of the file, not of the command.
    assert figures(palimpsest(*arguments))["reused"] == 0
    os.utime(trace, (1, 1))
    assert figures(palimpsest(*arguments, cwd="/"))["reused"] == 2
    trace.write_text("time_ns,op,offset_bytes,size_bytes\n0,W,0,4096\n10,R,0,8192\n")
    assert figures(palimpsest(*arguments))["reused"] == 0


def test_drives_in_files(palimpsest: Command, tmp_path: Path) -> None:
    for channels in (2, 4):
        config = palimpsest("show", "--set", f"ssd.channels={channels}").stdout
        (tmp_path / f"drive{channels}.toml").write_text(config)
    sweep = tmp_path / "d.toml"
    sweep.write_text(SMALL.split("[grid]")[0] + '[grid]\nssd = ["drive2.toml", "drive4.toml", "default"]\n')
    found = figures(palimpsest("sweep", str(sweep), "--out", str(tmp_path / "s"), "--json"))
    assert found["done"] == 3
    assert measured(tmp_path / "s")["config.ssd.channels"].to_list()[:2] == [2, 4]
    workload = "rw=randrw,rwmixread=30,bs=4k,size=64MiB,n=2000,iodepth=8"
    alone = figures(
        palimpsest("run", "--json", "--ssd", str(tmp_path / "drive2.toml"), "--workload", workload,
                   "--precondition", "none")
    )  # fmt: skip
    assert found["points"][0]["figures"]["latency_ns.write.mean"] == alone["latency_ns"]["write"]["mean"]


def test_the_example_of_a_fleet_has_a_thousand_drives(palimpsest: Command, tmp_path: Path) -> None:
    example = ROOT / "examples" / "fleet.toml"
    planned = figures(palimpsest("sweep", str(example), "--dry-run", "--json", cwd=tmp_path))
    assert len(planned["points"]) == 1000
    file = tmp_path / "fleet.toml"
    file.write_text(example.read_text().replace("to = 50,", "to = 2,").replace("requests = 2000", "requests = 200"))
    done = palimpsest("sweep", str(file), "--json", cwd=tmp_path)
    fleets = figures(done)["fleets"]
    assert [each["axes"]["workload"] for each in fleets] == ["oltp-zipf", "mysql-like", "trade", "ads", "cfs"]
    for fleet in fleets:
        assert (fleet["drives"], fleet["failed"]) == (8, 0)
        assert 0 < fleet["figures"]["latency_ns.read.p99"]["p0"] <= fleet["figures"]["latency_ns.read.p99"]["p100"]
    assert any(fleet["with_read_errors"] for fleet in fleets), "old data has no errors"


def test_dry_run_lists_and_runs_nothing(palimpsest: Command, file: Path, tmp_path: Path) -> None:
    done = palimpsest("sweep", str(file), "--out", str(tmp_path / "s"), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "8 points, 8 to run" in done.stdout
    assert not (tmp_path / "s").exists()
    listed = figures(palimpsest("sweep", str(file), "--dry-run", "--json"))
    assert listed["points"][1]["axes"] == {"ftl": "page", "ssd.over_provisioning": "7%", "workload.iodepth": 4}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '[grid]\n"part.page_sise" = ["4KiB"]\n',
            ":2: part.page_sise = 4KiB: unknown key part.page_sise; did you mean",
        ),
        (
            '[base]\nftl = "pgae"\n',
            ":2: ftl = pgae: ftl.name = pgae: there is no such translation layer; did you mean page?",
        ),
        ('[base]\nworkload = "nope.csv"\n', ":2: workload = nope.csv: there is no preset, no file"),
        ('[grid]\nprecondition = ["none", "fill:190%"]\n', ":2: precondition = fill:190%: a drive can be filled"),
        ("[base]\nworkload.engine = 1\n", ":2: workload.engine = 1: unknown key; did you mean ioengine?"),
        ("[base]\nrequests = 1.5\n", ":2: requests: expected a whole number"),
        ("[base]\nseed = -1\n", ":2: seed: expected a whole number from 0"),
        ("[base]\nssd = 3\n", ":2: ssd: expected text, found 3"),
        ('[base]\nwarmup = "110%"\n', ":2: warmup = 110%: expected auto, a number of requests"),
        ('[base]\nfidelity = "exact"\n', ":2: fidelity = exact: there is no such value"),
        ('[base]\npayload = "none"\nfaults.power_cut_at = 100\n', ":3: "),
        ('[grid]\nftl = ["page"]\n[[exclude]]\nftl = "page"\n', "no point is left"),
        ('[base]\nskip_bad = true\n[grid]\nftl = ["page", "mga"]\n', ":2: skip_bad = true: the option is for traces"),
        (
            '[base]\nworkload = "rw=write,n=9"\nprecondition = "layout"\n',
            ":3: precondition = layout: the requests have",
        ),
    ],
)
def test_mistakes_end_it_before_the_first_point(palimpsest: Command, tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    done = palimpsest("sweep", str(file), "--out", str(tmp_path / "s"))
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr)
    assert f"{file}{says}" in done.stderr or says in done.stderr
    assert str(file) in done.stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no-such.toml"], "no-such.toml: No such file"),
        (["FILE", "--engine", "spark"], "expected one of local, dask, ray"),
        (["FILE", "--engine", "dask"], "expected the cluster's --address"),
        (["FILE", "--address", "tcp://x:1"], "expected --engine dask or ray"),
        (["FILE", "--out", "/dev/null/x"], "--out /dev/null/x: expected a folder that can be made"),
        (["FILE", "--jobs", "0"], "--jobs"),
    ],
)
def test_wrong_options_are_one_line(palimpsest: Command, file: Path, arguments: list[str], says: str) -> None:
    done = palimpsest("sweep", *(str(file) if each == "FILE" else each for each in arguments), cwd=file.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr)
    assert says in done.stderr


def test_points_that_contradict_themselves_are_left_out(palimpsest: Command, tmp_path: Path) -> None:
    """A former bug: the first point of a sweep of over-provisioning ended the sweep."""
    file = tmp_path / "op.toml"
    file.write_text('[base]\nssd.blocks_per_plane = 40\n[grid]\nssd.over_provisioning = ["4%", "28%"]\n')
    done = palimpsest("sweep", str(file), "--dry-run")
    assert done.returncode == 0
    assert done.stderr.startswith(f"note: a point is left out: {file}:4: ssd.over_provisioning = 4%: ")
    assert "1 point, 1 to run" in done.stdout
    assert palimpsest("sweep", str(file), "--dry-run", "--strict").returncode == 2
    # Refusals that name a single key.
    for table, values in (("ftl", '"llh", "page"'), ("ssd.capacity", '"1MiB", "16GiB"')):
        file.write_text(f'[base]\nssd = "tlc-32g"\n[grid]\n{table} = [{values}]\n')
        done = palimpsest("sweep", str(file), "--dry-run")
        assert (done.returncode, done.stderr.count("a point is left out")) == (0, 1), done.stderr
    for change in ('"4%"', '"4%", "28%", "x"'):
        file.write_text(f"[base]\nssd.blocks_per_plane = 40\n[grid]\nssd.over_provisioning = [{change}]\n")
        assert palimpsest("sweep", str(file), "--dry-run").returncode == 2


MIXED = """[base]
skip_bad = true
volumes = "overlaid"
workload.n = 200
host.speedup = 2
[grid]
workload = ["oltp-zipf", "a.csv"]
ftl = ["page", "mga"]
"""


def test_keys_of_the_base_are_for_points_that_read_them(palimpsest: Command, tmp_path: Path) -> None:
    """A former bug: `skip_bad` beside traces and generated workloads refused the sweep."""
    (tmp_path / "a.csv").write_text("time_ns,op,offset_bytes,size_bytes\n0,W,0,4096\nbad\n5,R,0,4096\n")
    file = tmp_path / "mixed.toml"
    file.write_text(MIXED)
    done = palimpsest("sweep", str(file), "--dry-run")
    assert (done.returncode, "4 points, 4 to run" in done.stdout) == (0, True), done.stderr
    for key in ("skip_bad", "volumes", "workload.n", "host.speedup"):
        assert f"note: {key}: 2 of 4 points have no use for it\n" in done.stderr
    strict = palimpsest("sweep", str(file), "--dry-run", "--strict")
    assert (strict.returncode, f"{file}:2: skip_bad = true: " in strict.stderr) == (2, True), strict.stderr
    file.write_text(MIXED.replace('"oltp-zipf", ', ""))
    done = palimpsest("sweep", str(file), "--dry-run")
    assert (done.returncode, f"{file}:4: workload.n: expected a preset" in done.stderr) == (2, True), done.stderr
    file.write_text('[base]\nworkload = "oltp-zipf"\n[[points]]\nftl = "mga"\nskip_bad = true\n')
    assert palimpsest("sweep", str(file), "--dry-run").returncode == 2


def test_a_share_of_an_unknown_number_is_refused_early(palimpsest: Command, tmp_path: Path) -> None:
    """A former bug: a sweep with a warm-up in per cent passed `--dry-run`, and each point of a trace failed."""
    (tmp_path / "a.csv").write_text("time_ns,op,offset_bytes,size_bytes\n0,W,0,4096\n5,R,0,4096\n")
    file = tmp_path / "warm.toml"
    file.write_text('[base]\nworkload = "a.csv"\nwarmup = "30%"\n')
    done = palimpsest("sweep", str(file), "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{file}:3: warmup = 30%: a share of the requests needs their number; expected --requests" in done.stderr
    file.write_text('[base]\nworkload = "a.csv"\nwarmup = "50%"\nrequests = 2\n')
    assert palimpsest("sweep", str(file), "--dry-run").returncode == 0


def test_a_missing_package_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *_: None if name in ("distributed", "ray") else find(name)
    )
    for engine in ("dask", "ray"):
        with pytest.raises(ps.InputError, match=rf"expected `pip install 'palimpsest-ssd\[{engine}\]'` before it"):
            ps.sweep(str(file), engine=engine, address="a:1", out=file.parent / "s")


def test_failed_points_are_rows_and_the_others_run(palimpsest: Command, tmp_path: Path) -> None:
    trace = tmp_path / "bad.csv"
    trace.write_text("time_ns,op,offset_bytes,size_bytes\n0,W,0,4096\n10,W,x,4096\n")
    file = tmp_path / "f.toml"
    file.write_text(
        '[base]\nprecondition = "none"\n[grid]\nworkload = ["bad.csv", "rw=randwrite,bs=4k,size=1MiB,n=100"]\n'
        'ftl = ["page", "subpage"]\n'
    )
    done = palimpsest("sweep", str(file), "--out", str(tmp_path / "s"), "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert [point["status"] for point in found["points"]] == ["failed", "failed", "done", "done"]
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: 2 of 4 points failed; the first, workload bad.csv, ftl page: ")
    assert f"{trace}:3:" in last
    frame = measured(tmp_path / "s")
    assert frame["error"].null_count() == 2
    assert f"{trace}:3:" in frame["error"][0]
    # The point would fail the same way, so it is not tried again but still reported.
    again = palimpsest("sweep", str(file), "--out", str(tmp_path / "s"), "--json")
    assert (again.returncode, json.loads(again.stdout)["reused"]) == (1, 4)


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(each) for each in found.split()]


def running(pid: int) -> bool:
    status = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return bool(status) and not status.startswith("Z")


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A sweep of a short point and of endless ones."""
    file = tmp_path / "e.toml"
    file.write_text(ENDLESS + "[[exclude]]\nftl = 'page'\n[[points]]\nrequests = 500\n[[points]]\nrequests = 600\n")
    process = subprocess.Popen(
        [COMMAND, "sweep", str(file), "--out", str(tmp_path / "s"), "--jobs", "6"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    yield process
    process.kill()
    process.communicate()


def test_interrupt_keeps_what_is_finished(begun: subprocess.Popen[str], tmp_path: Path, palimpsest: Command) -> None:
    points = tmp_path / "s" / "points"
    wait_for(lambda: len(list(points.glob("*.json"))) == 2)
    workers = children(begun.pid)
    begun.send_signal(signal.SIGINT)
    output, said = begun.communicate(timeout=60)
    assert (begun.returncode, output) == (130, "")
    # A slow machine also prints lines of progress.
    assert [line for line in said.splitlines() if not line.startswith("points: ")] == [
        f"2 of 6 points are kept in {tmp_path}/s; the same command resumes", "interrupted",
    ]  # fmt: skip
    assert len(workers) >= 4
    wait_for(lambda: not any(running(worker) for worker in workers))
    assert measured(tmp_path / "s").height == 2
    # The remaining points run later and join the finished ones.
    file = tmp_path / "e.toml"
    text = file.read_text().replace("{from = 1, to = 4, factor = 4}", "[2]")
    file.write_text(text.replace("[grid]", "requests = 700\n[grid]"))
    again = figures(palimpsest("sweep", str(file), "--out", str(tmp_path / "s"), "--json"))
    assert (again["done"], again["reused"]) == (4, 2)


def test_a_killed_sweep_leaves_no_workers_and_resumes(
    begun: subprocess.Popen[str], tmp_path: Path, palimpsest: Command
) -> None:
    wait_for(lambda: len(list((tmp_path / "s" / "points").glob("*.json"))) == 2)
    workers = children(begun.pid)
    begun.kill()
    begun.wait()
    wait_for(lambda: not any(running(worker) for worker in workers))
    assert not (tmp_path / "s" / "sweep.parquet").exists()
    done = palimpsest("report", str(tmp_path / "s"))
    assert done.returncode == 0, done.stderr
    assert measured(tmp_path / "s").height == 2
    assert "4 of 6 points are not finished yet" in (tmp_path / "s" / "report.html").read_text()


def test_a_second_sweep_is_refused(begun: subprocess.Popen[str], tmp_path: Path, palimpsest: Command) -> None:
    wait_for(lambda: (tmp_path / "s" / "sweep.json").exists())
    done = palimpsest("sweep", str(tmp_path / "e.toml"), "--out", str(tmp_path / "s"))
    assert done.returncode == 2
    assert f"process {begun.pid} on " in done.stderr
    assert "is running a sweep there" in done.stderr


def test_a_point_that_takes_too_long_is_ended() -> None:
    base = {"workload": "rw=randwrite,bs=4k,size=64MiB,n=1e12", "precondition": "none"}
    wanted = {"base": base, "points": [{"seed": 1}, {"seed": 2, "requests": 10}]}
    found = ps.sweep(wanted, jobs=1, point_timeout=3.0, progress=False)
    assert [point.status for point in found] == ["failed", "done"]
    assert "took more than 3 s" in str(found[0].error)
    with pytest.raises(ps.InputError, match="cannot end a point"):
        ps.sweep(wanted, engine="dask", address="tcp://127.0.0.1:1", point_timeout=3.0)


def test_a_lost_worker_is_tried_again_then_a_failed_point(begun: subprocess.Popen[str], tmp_path: Path) -> None:
    points = tmp_path / "s" / "points"
    wait_for(lambda: len(list(points.glob("*.json"))) == 2)
    for _ in range(2):
        wait_for(lambda: len([worker for worker in children(begun.pid) if running(worker)]) == 4)
        time.sleep(0.5)
        for worker in children(begun.pid):
            os.kill(worker, signal.SIGKILL)
    output, said = begun.communicate(timeout=60)
    assert begun.returncode == 1
    assert "4 of 6 points failed" in said
    assert "killed by signal 9" in said
    frame = measured(tmp_path / "s")
    assert (frame.height, frame["status"].value_counts().sort("count")["count"].to_list()) == (6, [2, 4])
    assert "failed" in output


def test_python_gives_the_same_and_keeps_it(palimpsest: Command, file: Path, tmp_path: Path) -> None:
    figures(palimpsest("sweep", str(file), "--out", str(tmp_path / "s"), "--json"))
    data: dict[str, Any] = {
        "base": {"workload": ps.fio(rw="randrw", rwmixread=30, bs="4k", size="64MiB", n=2e3, iodepth=8),
                 "precondition": "none"},
        "grid": {"ftl": ["page", "subpage"], "ssd": {"over_provisioning": ["7%", "28%"]}, "workload.iodepth": [1, 4]},
    }  # fmt: skip
    swept = ps.sweep(data, jobs=2)
    assert (len(swept), swept.total, swept.failed, swept.folder) == (8, 8, [], None)
    kept = ps.Sweep.load(tmp_path / "s")
    assert swept.to_polars().select(pl.exclude("^sim\\..*$")).equals(measured(tmp_path / "s"))
    assert [point.identity for point in swept] == [point.identity for point in kept]
    first = swept[0].result
    assert first is not None
    assert first.latency_ns["write"]["p99"] > 0
    assert swept.to_pandas().shape == swept.to_polars().shape
    assert swept.plot("write_amplification").data
    with pytest.raises(ps.InputError, match=r"^sweep:\d+: ftl = x: "):
        ps.sweep({"grid": {"ftl": ["x"]}})


def test_a_cluster_with_another_simulator_ends_the_sweep(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from palimpsest.sweeps import engines, task

    def other(tasks: list[task.Task], *_: object) -> Iterator[task.Outcome]:
        for each in tasks:
            yield task.run_point(each | {"simulator": "0.0.9 (0123456789abcdef)"})

    monkeypatch.setattr(engines, "find", lambda *_: other)
    with pytest.raises(ps.Error, match=r"is installed; expected 0\.0\.9 \(0123456789abcdef\)"):
        ps.sweep(file, out=file.parent / "s")
    assert not list((file.parent / "s" / "points").iterdir())
