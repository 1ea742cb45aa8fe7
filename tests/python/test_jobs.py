"""Jobs of one run: figures of each section, and depths that meet a target."""

import os
from pathlib import Path

import polars as pl
import pytest

import palimpsest as ps
from conftest import Command, figures

ONE_DIE = {"ssd.channels": 1, "ssd.chips_per_channel": 1, "ssd.dies_per_chip": 1, "ssd.blocks_per_plane": 64}
"""A drive whose reads wait for each other."""
SMALL = ("--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=64", "--precondition", "fill:90%")
LOAD = "bs=4k,iodepth=64,runtime=40ms,rate_process=poisson,norandommap,name=load,numjobs=2,rw=randrw,rwmixwrite=99,"
PROBE = "rate_iops=100,9900,name=probe,rw=randrw,rate_iops=5000"

pytestmark = pytest.mark.contract


def test_a_probe_beside_a_load_has_figures_of_its_own(palimpsest: Command, tmp_path: Path) -> None:
    # A run-in fills the write buffer, behind which the jobs do not reach their rates.
    rested = (*SMALL, "--warmup", "0")
    result = figures(palimpsest("run", *rested, "--workload", LOAD + PROBE, "--json"))
    load, probe = result["jobs"]
    assert (load["job"], load["copies"], probe["job"], probe["copies"]) == ("load", 2, "probe", 1)
    for kind in ("read", "write", "trim", "flush"):
        assert load["requests"][kind] + probe["requests"][kind] == result["requests"][kind]
    assert load["bytes_written"] + probe["bytes_written"] == result["host"]["bytes_written"]
    for job, reads, writes in ((load, 200, 19_800), (probe, 5000, 5000)):
        assert job["latency_target"] is None
        assert job["throughput"]["iops"] == pytest.approx(reads + writes, rel=0.15)
        assert job["requests"]["write"] / 0.04 == pytest.approx(writes, rel=0.2)
    longest = [job["latency_ns"][kind]["max"] for job in (load, probe) for kind in ("read", "write")]
    assert max(longest) == result["latency_ns"]["all"]["max"]
    # The same as a job file.
    (tmp_path / "job.fio").write_text("\n".join(_sections(LOAD + PROBE)))
    again = figures(palimpsest("run", *rested, "--workload", str(tmp_path / "job.fio"), "--json"))
    assert again["jobs"] == result["jobs"]
    shown = palimpsest("run", *rested, "--workload", LOAD + PROBE).stdout
    assert all(row in shown for row in ("load write", "probe read", "probe write"))
    counted = figures(palimpsest("run", *rested, "--workload", LOAD + PROBE, "--fidelity", "count", "--json"))
    assert [job["latency_ns"] for job in counted["jobs"]] == [None, None]


def test_a_ramp_comes_before_the_figures(palimpsest: Command, tmp_path: Path) -> None:
    """Reads of one page take the same time each, so the number of requests is a closed form."""
    line = (*SMALL, "--json", "--workload", str(tmp_path / "job.fio"))
    for ramp in (0, 2):
        text = f"[a]\nrw=read\nsize=4k\nramp_time={ramp}ms\nruntime=4ms\ntime_based\n"
        (tmp_path / "job.fio").write_text(text)
        result = figures(palimpsest("run", *line))
        period = 1e9 / result["throughput"]["iops"]
        assert result["requests"]["read"] == pytest.approx(4e6 / period, abs=1)
        assert result["simulated_ns"] == pytest.approx(4e6, abs=period)
    # The requests of the ramp do not count.
    assert figures(palimpsest("run", *line, "--requests", "3"))["requests"]["read"] == 3
    done = palimpsest("run", *line, "--warmup", "9")
    assert (done.returncode, "--warmup: the workload has a ramp_time" in done.stderr) == (2, True)


def test_a_job_file_includes_others_and_names_idle_keys(palimpsest: Command, tmp_path: Path) -> None:
    (tmp_path / "common.inc").write_text("rw=write ; all\nbs=${BLOCK}\nverify=crc32c\n")
    (tmp_path / "job.fio").write_text("[global]\ninclude common.inc\ndirect=1\n[a]\nsize=(4*16k)\n")
    line = ("run", *SMALL, "--check", "--json", "--workload", str(tmp_path / "job.fio"))
    result = figures(palimpsest(*line, env={**os.environ, "BLOCK": "8k"}))
    assert (result["requests"]["read"], result["requests"]["write"]) == (8, 8)
    assert "no effect in a simulation: direct" in result["notes"]
    done = palimpsest(*line, env={**os.environ, "BLOCK": ""})
    assert done.returncode == 2
    assert "common.inc:2: bs: expected" in done.stderr


def test_comparisons_and_pages_have_figures_by_job(palimpsest: Command, tmp_path: Path) -> None:
    shown = palimpsest("compare", "mga", "page", *SMALL, "--workload", LOAD + PROBE, "--out", str(tmp_path)).stdout
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for row in ("by job", "load IOPS", "load write p99.9", "probe read mean", "probe write p99"):
        assert row in shown
        assert f">{row}<" in page
    assert "by job" not in palimpsest("compare", "mga", "page", *SMALL, "--workload", "rw=read,n=9").stdout


def _sections(line: str) -> list[str]:
    """The job file of a line of jobs, whose rates have several values."""
    text = line.replace("rate_iops=100,9900", "rate_iops=100;9900")
    parts = [f"[{part[5:]}]" if part.startswith("name=") else part.replace(";", ",") for part in text.split(",")]
    return ["[global]", *parts]


def _run(spec: str) -> ps.Result:
    return ps.run(f"rw=randread,bs=4k,size=50%,{spec}", ssd="mga-8k", precondition="fill:100%", overrides=ONE_DIE)


def test_a_search_finds_the_depth_that_runs_of_each_depth_show() -> None:
    longest = {depth: _run(f"iodepth={depth},n=2000").latency_ns["read"]["max"] for depth in range(1, 8)}
    for depth in (1, 3, 6):
        target = (longest[depth] + longest[depth + 1]) // 2
        result = _run(f"iodepth=32,runtime=9,time_based,latency_target={target}ns,latency_window=200ms")
        (job,) = result["jobs"]
        found = job["latency_target"]
        assert found == {
            "target_ns": target, "window_ns": 200_000_000, "percentile": 100, "depths": [depth], "met": True
        }  # fmt: skip
        # The figures are those of the last window.
        assert job["latency_ns"]["read"]["max"] <= target < result.latency_ns["read"]["max"]
        assert job["requests"]["read"] < result["requests"]["read"]
        table = result.to_polars("jobs")
        assert table["latency_target.depths"].to_list() == [[depth]]
        assert table.schema["latency_ns.read.p999"] == pl.UInt64()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--fidelity", "count"), "latency_target and the least rates need simulated time"),
        (("--set", "host.iodepth=4"), "latency_target searches a depth"),
    ],
)
def test_a_search_needs_times_and_a_depth_of_its_own(palimpsest: Command, options: tuple[str, ...], says: str) -> None:
    spec = "rw=randread,iodepth=8,n=2000,latency_target=1ms,latency_window=1ms"
    done = palimpsest("run", *SMALL, "--workload", spec, *options)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr


def test_a_target_that_is_missed_is_said(palimpsest: Command) -> None:
    spec = "rw=randread,iodepth=8,n=2000,latency_target=1us,latency_window=1ms"
    done = palimpsest("run", *SMALL, "--workload", spec)
    assert "1 in flight does not meet the target (all requests within 1.00 us" in " ".join(done.stdout.split())
    assert "the workload found no depth: one request in flight misses" in " ".join(done.stdout.split())
