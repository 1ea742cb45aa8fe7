"""fio on a simulated drive: fio's report has the latencies of `palimpsest run` with the same job and drive."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import palimpsest as ps
from test_c_library import _call, library

__all__ = ["library"]

ROOT = Path(__file__).parents[2]
REQUESTS = 8000
KEYS: dict[str, Any] = {"ssd.blocks_per_plane": 48}
JOBS = {
    "mixed": ("rw=randrw\nbs=4k\niodepth=8\nsize=256m\n", "none"),
    "collected": ("rw=randrw\nbs=4k\niodepth=8\nsize=1g\n", "fill:90%,random:1x"),
    "sequential": ("rw=read\nbs=128k\niodepth=16\nsize=1g\n", "none"),
    "thinking": ("rw=randwrite\nbs=8k\niodepth=1\nsize=256m\nthinktime=200\n", "none"),
}


@dataclass(frozen=True)
class Report:
    """Of one job: fio's JSON, its logged latencies in ns by direction and offset, and the result of the drive."""

    job: dict[str, Any]
    latencies: dict[tuple[str, int], int]
    drive: dict[str, Any]


Fio = Callable[..., subprocess.CompletedProcess[str]]


def _source() -> Path:
    """Headers of the installed fio: a configured source, which FIO_SOURCE or a folder beside this one names."""
    fio = shutil.which("fio")
    if fio is None or shutil.which("cc") is None:
        pytest.skip("needs fio and cc")
    source = Path(os.environ.get("FIO_SOURCE", ROOT.parent / "fio"))
    if not (source / "config-host.h").is_file():
        pytest.skip("needs FIO_SOURCE: the source of the installed fio, configured")
    wanted = _call("fio", "--version").stdout.strip()
    found = re.search(r"^DEF_VER=(\S+)", (source / "FIO-VERSION-GEN").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None or found[1] != wanted:
        pytest.skip(f"FIO_SOURCE is {found[1] if found else 'no fio'}; the installed one is {wanted}")
    return source


@pytest.fixture(scope="session")
def fio(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Fio:
    """Runs fio with the engine, built against its headers."""
    source = _source()
    prefix = request.getfixturevalue("library")
    engine = tmp_path_factory.mktemp("engine") / "palimpsest_engine.so"
    _call(
        "cc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-sign-compare",
        "-D_GNU_SOURCE", "-include", source / "config-host.h", "-isystem", source,
        ROOT / "examples/fio/palimpsest_engine.c", f"-I{prefix}/include", f"-L{prefix}/lib", "-lpalimpsest",
        f"-Wl,-rpath,{prefix}/lib", "-o", engine,
    )  # fmt: skip

    def run(folder: Path, *arguments: str, preload: bool = True) -> subprocess.CompletedProcess[str]:
        keys = {**os.environ, **({"LD_PRELOAD": str(engine)} if preload else {})}
        command = ("fio", f"--ioengine=external:{engine}", *arguments)
        return subprocess.run(command, cwd=folder, env=keys, capture_output=True, text=True, check=False)

    return run


def _report(fio: Fio, folder: Path, job: str, **drive: str) -> Report:
    options = [f"--{line}" for line in job.split()]
    done = fio(
        folder, "--clocksource=clock_gettime", *(f"--{key}={value}" for key, value in drive.items()),
        "--result=drive.json", "--name=job", *options, "--write_lat_log=log", "--log_offset=1",
        f"--log_entries={2 * REQUESTS}", "--output-format=json", "--output=fio.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    log = [[int(field) for field in line.split(",")] for line in (folder / "log_clat.1.log").read_text().splitlines()]
    latencies = {(("read", "write")[row[2]], row[4]): row[1] for row in log if row[2] < 2}
    text = (folder / "fio.json").read_text()
    job_report = json.loads(text[text.index("{") :])["jobs"][0]
    return Report(job_report, latencies, json.loads((folder / "drive.json").read_text()))


@pytest.mark.contract
@pytest.mark.parametrize("name", JOBS)
def test_fio_reports_the_latencies_of_a_run(fio: Fio, name: str, tmp_path: Path) -> None:
    """Latencies are equal to the ns, except for the last requests: fio waits for all and gives each the last time."""
    job, precondition = JOBS[name]
    job += f"number_ios={REQUESTS}\n"
    report = _report(fio, tmp_path, job, ssd="default", set="ssd.blocks_per_plane=48", precondition=precondition)
    (tmp_path / "job.fio").write_text(f"[job]\n{job}", encoding="utf-8")
    expected = ps.run(
        tmp_path / "job.fio", ssd=ps.Ssd("default", **KEYS), precondition=precondition,
        warmup=0, operations=f"1..{2 * REQUESTS}",
    )  # fmt: skip
    data = json.loads(expected.to_json())
    for figure in ("requests", "simulated_ns", "write_amplification", "gc", "flash"):
        assert report.drive[figure] == data[figure], figure
    requests = expected.to_polars("requests").filter(pl.col("kind").is_in(["read", "write"])).sort("request")
    spans = requests.select("kind", "offset_bytes", pl.col("completed_ns") - pl.col("arrival_ns")).rows()
    assert len(spans) == len(report.latencies) >= REQUESTS * 0.9
    depth = int(re.search(r"iodepth=(\d+)", job)[1])  # type: ignore[index]
    others = [(span, report.latencies[kind, offset]) for kind, offset, span in spans]
    unequal = [(ours, theirs) for ours, theirs in others if ours != theirs]
    assert len(unequal) < depth
    assert all(theirs > ours for ours, theirs in unequal)
    for kind in ("read", "write"):
        if not data["requests"][kind]:
            continue
        latency, theirs = data["latency_ns"][kind], report.job[kind]["clat_ns"]
        late = sum(theirs - ours for ours, theirs in unequal) / report.job[kind]["total_ios"]
        assert latency["mean"] - 1 <= theirs["mean"] <= latency["mean"] + 1 + late
        # A bin of fio has a 64th of its power of two.
        assert theirs["percentile"]["99.000000"] == pytest.approx(latency["p99"], rel=1 / 32)


@pytest.mark.contract
def test_fio_verifies_the_bytes_of_the_drive(fio: Fio, tmp_path: Path) -> None:
    job = "rw=randwrite\nbs=4k\niodepth=4\nsize=16m\nverify=crc32c\n"
    report = _report(fio, tmp_path, job, set="ssd.blocks_per_plane=48")
    assert report.job["error"] == 0
    assert report.job["read"]["total_ios"] == report.job["write"]["total_ios"] == 4096
    assert report.drive["payload"] == "bytes"


@pytest.mark.contract
def test_mistakes_with_the_fio_engine_are_one_line(fio: Fio, tmp_path: Path) -> None:
    clock = "--clocksource=clock_gettime"
    for arguments, keys, expected in (
        ((clock, "--ssd=nothing"), {}, 'no SSD is called "nothing"'),
        ((clock, "--set=ftl.nothing=1"), {}, "unknown key ftl.nothing"),
        ((clock, "--set=nothing"), {}, "expected KEY=VALUE"),
        ((clock, "--numjobs=2"), {}, "expected one job with one file"),
        (("--clocksource=gettimeofday",), {}, "expected --clocksource=clock_gettime"),
        ((clock,), {"preload": False}, "expected LD_PRELOAD to name the engine"),
    ):
        done = fio(tmp_path, *arguments, "--name=job", "--rw=read", "--size=1m", **keys)
        assert done.returncode != 0
        errors = {line for line in done.stderr.splitlines() if line.startswith("palimpsest: ")}
        assert len(errors) == 1, done.stderr
        assert expected in errors.pop()
