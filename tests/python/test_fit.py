"""`palimpsest fit`: measurements and their mistakes, the search space, and the recovery of drives with known keys."""

import gzip
import json
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from palimpsest import engine, fio_output
from palimpsest.errors import InputError
from palimpsest.fits import determined, files, outputs, running, search, space
from palimpsest.fits.measured import GroupRuns, How, OneRun, Target
from palimpsest.options import RunOptions
from palimpsest.reproduce.batch import Batch
from palimpsest.sweeps.runs import runner

SMALL = (
    "ssd.channels=1", "ssd.chips_per_channel=1", "ssd.dies_per_chip=1", "ssd.planes_per_die=1",
    "ssd.blocks_per_plane=48",
)  # fmt: skip


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ssd.over_provisioning", "expected KEY=LOW..HIGH or KEY=A,B,C"),
        ("ftl.victim=greedy", "there is nothing to choose from"),
        ("part.t_read=30us..80ms", "the ends have the units 'us' and 'ms'; expected one"),
        ("part.t_read=80us..30us", "the range is empty"),
        ("part.t_read=a..b", "expected two numbers, with their units"),
    ],
)
def test_a_wrong_range_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"^--vary .*") as error:
        space.parse(text)
    assert said in str(error.value)


@pytest.mark.unit
def test_keys_have_places_in_their_range() -> None:
    key = space.parse("part.t_read=10us..1000us")
    assert key.is_logarithmic
    assert key.at(0.5) == pytest.approx(100)
    assert key.part(key.at(0.3)) == pytest.approx(0.3)
    assert key.override(55.5) == "part.t_read=55.5us"
    assert key.override(7.745966) == "part.t_read=7.746us"
    assert space.parse("part.t_read=30us..120us").at(0.5) == pytest.approx(60), "half is as far away as twice"
    assert not space.parse("ssd.over_provisioning=10%..30%").is_logarithmic
    whole = space.parse("ssd.channels=2..9")
    assert (whole.whole, whole.at(0.5), whole.text(5.0)) == (True, 6.0, "5")


@pytest.mark.contract
def test_times_of_page_types_are_one_key() -> None:
    (key,) = space.parse_all(["part.t_read_types=30us..60us"], drive := space.Drive("datacentre-tlc"))
    assert key.override(40.0) == 'part.t_read_types=["28.24us", "38.72us", "53.04us"]'
    assert space.values_of(drive, [key]) == {"part.t_read_types": pytest.approx(50)}
    drive.at([key], {key.name: 40.0}).check()
    names = [each.name for each in space.default_space(drive, counted=False, timed=True)]
    assert "part.t_read_types" in names
    assert "part.t_read" not in names, "the times of page types replace the time of all pages"


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


_JOB = How(workload="rw=randrw,bs=4k")
_REQUEST = "1281,wdev,1,Write,0,4096"
_COUNTERS = How(workload="rw=randwrite", capacity=10**12)


def _fio(options: object) -> str:
    """Output of fio of a job with `options` and one read."""
    return json.dumps({"jobs": [{"jobname": "j", "job options": options, "read": {"total_ios": 1}}]})


@pytest.mark.unit
@pytest.mark.parametrize(
    ("name", "text", "how", "said"),
    [
        ("a.csv", "host_gb,media_gb\n1,1\n2,3\n", How(), "expected --workload beside them"),
        ("a.csv", "host_gb,other\n1,1\n", _COUNTERS, "no counter of the media; expected a column media_bytes"),
        ("a.csv", "host_gb,media_gb\n2,1\n1,3\n", _COUNTERS, ":3: a counter is not above that of the line before"),
        ("a.csv", "host_gb,media_gb\n2,x\n", _COUNTERS, ":2: the counter is 'x'; expected a number"),
        ("a.json", "[]", How(), "there is no JSON object"),
        ("a.json", _fio({"bs": "4k"}), How(), "the options name no rw"),
        ("a.json", '{"jobs": [{"jobname": "j", "job options": {"rw": "read"}}]}', How(), "the job has no requests"),
        ("a.json", _fio(["rw"]), How(), "expected options and figures of jobs as fio prints"),
        (
            "a.json", _fio({"rw": "read", "trim_percentage": "4"}), How(),
            "trim_percentage is not modelled and may change the requests; expected jobs without it",
        ),
        (
            "a.json", _fio({"rw": "read", "direct": "0"}), How(),
            "the host's page cache served these requests; expected jobs with direct=1",
        ),
        (
            "a.json", _fio({"rw": "read", "ioengine": "mmap"}), How(),
            "the engine mmap is none of block requests; expected one of io_uring",
        ),
        ("a.csv", "rate_per_s,write_p99_us\n10000,\n", How(), "the file has no figure above 0; expected at least one"),
        ("a.csv", "host_gb,media_gb\n1,0\n2,0\n", _COUNTERS, "the file has no figure above 0; expected at least one"),
        ("a.toml", '[[figure]]\nmeasure = ["iops"]', How(), "measure is ['iops']; expected one of"),
        ("a.toml", "x = 1", How(), r"expected [[figure]] entries"),
        ("a.toml", '[[figure]]\nmeasure = "speed"', How(), "measure is 'speed'; expected one of"),
        (
            "a.toml", '[[figure]]\nmeasure = "read.mean"\nworkload = "rw=read"\nvalue = 5', How(),
            "the unit of read.mean is missing; expected 'us' or 'ms'",
        ),
        (
            "a.toml", '[[figure]]\nmeasure = "read.mean"\nworkload = "rw=x"\nvalue = 5\nunit = "us"', How(),
            "[[figure]] 1: workload: rw: expected one of read, write",
        ),
        ("a.csv", "time,Physical Media Units Written\n1,1\n", _COUNTERS, "no counter of the host; expected a column"),
        ("a.txt", "", How(), "expected fio's output in JSON"),
        ("a_lat.1.log", "1, 5, 0, 4096, 0", How(), "a log does not describe its workload; expected --workload"),
        ("a_slat.1.log", "1, 5, 0, 4096, 0", _JOB, "submission latencies are of the host"),
        ("a_lat.1.log", "1, 5, 0, 4096, 0\n2, -5, 0, 4096", _JOB, ":2: '2, -5, 0, 4096' is no line of a log of fio"),
        ("a_lat.1.log", "1, 5, 7, 4096, 0", _JOB, ":1: the direction is 7; expected 0 (read)"),
        ("a_lat.1.log", "1, 5, 2, 4096, 0", _JOB, "the log has no reads and no writes"),
        ("a_bw.1.log", "1, 5, 0, 4096, 0", _JOB, "are no rate of the job; expected one with log_avg_msec"),
        ("a.csv", f"{_REQUEST},x", How(), ":1: '1281,wdev,1,Write,0,4096,x' is no request with a response time"),
        ("a.csv", f"{_REQUEST},5\n1,wdev,1,Erase,0,1,5", How(), ":2: '1,wdev,1,Erase,0,1,5' is no request"),
        ("a.csv", f"{_REQUEST},0", How(), "no request has a response time; expected them in the last column"),
        ("a.csv", "1.5,0.1,R,0,0,512\n1.6,x,R,0,0,512", How(), ":2: '1.6,x,R,0,0,512' is no request with a response"),
        ("a.txt", " 8,0 1 1 0.0 9 D R 8 + 8 [x]", How(), "expected them as completions (C) beside issues (D)"),
        ("a.csv", f"{_REQUEST},5", _JOB, "the trace is the workload itself; expected no --workload"),
    ],
)  # fmt: skip
def test_a_wrong_measurement_is_refused(tmp_path: Path, name: str, text: str, how: How, said: str) -> None:
    path = _written(tmp_path / name, text)
    with pytest.raises(InputError) as error:
        files.read(path, how)
    assert str(error.value).startswith(str(path))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.unit
def test_jobs_that_ran_after_each_other_are_runs(tmp_path: Path) -> None:
    side = {"total_ios": 100, "iops": 5.0, "lat_ns": {"mean": 50_000.0}}
    jobs: list[dict[str, Any]] = [
        {"jobname": name, "job options": {"rw": "randread", "bs": "4k"}, "read": side} for name in ("a", "b")
    ]
    path = tmp_path / "out.json"
    # Like fio 3.33: no stonewall among the options, and the next groupid.
    jobs[0]["groupid"], jobs[1]["groupid"] = 0, 1
    assert len(files.read(_written(path, json.dumps({"jobs": jobs})), How()).targets) == 4
    jobs[1]["groupid"] = 0
    jobs[1]["job options"]["stonewall"] = ""
    # fio prints its warnings first.
    found = files.read(_written(path, f"fio: warning\n{json.dumps({'jobs': jobs})}"), How())
    assert [(figure.id, figure.real, figure.unit) for figure in found.targets][:2] == [
        ("a:read.iops", 5.0, "1/s"), ("a:read.mean", 50.0, "us"),
    ]  # fmt: skip


def _fio_335(numjobs: int, *, grouped: bool) -> dict[str, Any]:
    """Output of fio 3.35 for a copied job: an entry for each copy, or one for all with group_reporting."""
    entries = 1 if grouped else numjobs
    jobs = []
    for at in range(entries):
        served = 40_000 * numjobs // entries + 100 * at
        clat: dict[str, Any] = {
            "min": 60_000, "max": 900_000, "mean": 80_000.0 + 1000 * at, "stddev": 9_000.0, "N": served,
            "percentile": {"1.000000": 61_000, "50.000000": 78_000, "99.000000": 150_000, "99.900000": 300_000},
        }  # fmt: skip
        read = {
            "io_bytes": 4096 * served, "io_kbytes": 4 * served, "bw_bytes": 4096 * served // 10, "bw": served // 2,
            "iops": served / 10, "runtime": 10_000, "total_ios": served, "short_ios": 0, "drop_ios": 0,
            "slat_ns": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}, "clat_ns": clat,
            "lat_ns": clat | {"mean": clat["mean"] + 500, "percentile": {}}, "iops_min": 1, "iops_samples": 20,
        }  # fmt: skip
        nothing = read | {"total_ios": 0, "iops": 0.0, "lat_ns": {"mean": 0.0}, "clat_ns": {"mean": 0.0}}
        options = {"name": "reads", "rw": "randread", "bs": "4k", "iodepth": "2", "numjobs": str(numjobs)}
        options |= {"group_reporting": ""} if grouped else {}
        jobs.append(
            {"jobname": "reads", "groupid": 0, "error": 0, "eta": 0, "elapsed": 11, "job options": options,
             "read": read, "write": nothing, "trim": nothing, "sync": {"total_ios": 0}, "usr_cpu": 1.2}
        )  # fmt: skip
    common = {"ioengine": "libaio", "direct": "1", "filename": "/dev/nvme0n1", "runtime": "10", "size": "1G"}
    return {"fio version": "fio-3.35", "timestamp": 1, "time": "x", "global options": common, "jobs": jobs}


@pytest.mark.contract
@pytest.mark.parametrize(("numjobs", "grouped"), [(1, False), (1, True), (4, False), (4, True)])
def test_copies_of_a_job_of_fio_are_fitted_together(tmp_path: Path, numjobs: int, grouped: bool) -> None:
    path = _written(tmp_path / "out.json", json.dumps(_fio_335(numjobs, grouped=grouped)))
    found = files.read(path, How(precondition="fill:50%"))
    by_name = {target.name: target.real for target in found.targets}
    served = [40_000] if grouped or numjobs == 1 else [40_000, 40_100, 40_200, 40_300]
    total = 40_000 * numjobs if grouped else sum(served)
    assert by_name["read.iops"] == total / 10
    mean = sum(count * (80.5 + at) for at, count in enumerate(served)) / sum(served)
    assert by_name["read.mean"] == pytest.approx(mean)
    assert ("read.p99" in by_name) == (len(served) == 1), "copies have percentiles of their own, not of all"
    # Copies of random reads keep as many requests in flight as one job with the sum of their depths.
    assert isinstance(found, GroupRuns)
    run = found.run(space.Drive("default", None, tuple(SMALL)), "reads")
    deep = replace(run, workload="rw=randread,bs=4k,size=100%,numjobs=1,iodepth=" + str(2 * numjobs))
    for target in found.targets[:2]:
        assert found.figure(target, engine.run_one(run)) == pytest.approx(
            found.figure(target, engine.run_one(deep)), rel=0.05
        )


@pytest.mark.unit
def test_options_of_fio_outside_the_drive_are_named(tmp_path: Path) -> None:
    """And an engine that waits for each request has one in flight."""
    data = _fio_335(1, grouped=True)
    data["global options"] |= {"ioengine": "psync", "log_avg_msec": "10"}
    found = files.read(_written(tmp_path / "out.json", json.dumps(data)), How())
    assert found.notes == (
        "not used of fio's options, because requests go to the whole drive until our own end: filename, runtime, "
        "log_avg_msec, group_reporting, size",
    )
    assert isinstance(found, GroupRuns)
    assert "iodepth=1," in found.run(space.Drive("default"), "reads").workload + ","


@pytest.mark.unit
def test_every_key_of_a_job_file_is_known_in_an_output_of_fio() -> None:
    """Acting keys are played or named as not used, keys without effect too; refused keys only end a run."""
    page = (Path(__file__).parents[2] / "docs" / "workloads.md").read_text().partition("### Every key of fio")[2]
    acting, inert, refused = re.split("These keys have no effect|These keys are refused", page.partition("Engines:")[0])

    def names(text: str) -> set[str]:
        return {name.partition("=")[0] for name in re.findall("`([^`]+)`", text)}

    keys = {name for line in acting.splitlines() if line.startswith("| `") for name in names(line.split("|")[1])}
    ours = {"n", "open_loop", "sequential_from", "sequential_size", "filegroups", "mix", "filelayout", "dwell"}
    assert keys >= fio_output.KEPT | fio_output.SHORTENED
    known = {each for each in keys | names(inert) | names(refused) if fio_output.is_known(each)}
    assert (keys | names(inert)) - known <= ours | {each for each in names(inert) if each.startswith("libblkio_")}
    ends = ("exec_", "cpu", "ss", "steadystate", "file_append", "create_only")
    assert all(each.startswith(ends) for each in names(refused) & known)


@pytest.mark.unit
def test_ramps_and_delays_are_shortened_as_the_run_is(tmp_path: Path) -> None:
    """The run plays 20,000 of 80,000 requests; an increment in bytes belongs to another size of drive."""
    data = _fio_335(2, grouped=True)
    times = {"ramp_time": "4", "startdelay": "200ms-1s", "offset_increment": "1g", "iodepth_batch": "2"}
    data["jobs"][0]["job options"] |= times
    found = files.read(_written(tmp_path / "out.json", json.dumps(data)), How())
    assert isinstance(found, GroupRuns)
    run = found.run(space.Drive("default"), "reads")
    assert run.workload.endswith(",ramp_time=1000000us,startdelay=50000us-250000us")
    assert (run.requests, "iodepth_batch=2" in run.workload) == (20_000, True)
    assert found.notes[0].endswith("size, offset_increment")
    assert found.notes[1] == "shortened as the run is: ramp_time, startdelay"
    data["jobs"][0]["job options"]["ramp_time"] = "soon"
    with pytest.raises(InputError, match="ramp_time=soon is no time; expected one such as 10 or 5s"):
        files.read(_written(tmp_path / "out.json", json.dumps(data)), How())


@pytest.mark.unit
def test_options_of_fio_without_a_meaning_here_are_named(tmp_path: Path) -> None:
    data = _fio_335(2, grouped=True)
    data["jobs"][0]["job options"]["bsrange"] = "8k-4k"
    path = _written(tmp_path / "out.json", json.dumps(data))
    with pytest.raises(InputError) as error:
        files.read(path, How())
    assert str(error.value).startswith(f"{path}: job reads: bsrange: expected one to three ranges")
    assert "--workload" not in str(error.value)


@pytest.mark.unit
def test_counters_have_the_names_of_their_logs(tmp_path: Path) -> None:
    """SMART counts the host's writes in units of 512,000 bytes, OCP's log the media's in bytes."""
    text = "day,Data Units Written,Physical Media Units Written\n1,1000,512000000\n2,2000,1536000000\n"
    found = files.read(_written(tmp_path / "nvme.csv", text), _COUNTERS)
    assert [target.real for target in found.targets] == [2.0]


@pytest.mark.unit
def test_request_logs_have_percentiles_and_window_logs_means(tmp_path: Path) -> None:
    requests = "".join(f"{at}, {at * 1000}, 0, 4096, 0\n" for at in range(1, 1001))
    found = files.read(_written(tmp_path / "a_clat.1.log", requests), _JOB)
    assert {target.name: target.real for target in found.targets} == {
        "read.mean": 500.5, "read.p25": 250, "read.p50": 500, "read.p75": 750, "read.p90": 900, "read.p99": 990,
    }  # fmt: skip
    windows = "100, 60000, 0, 0, 0\n100, 20000, 1, 0, 0\n200, 80000, 0, 0, 0\n"
    found = files.read(_written(tmp_path / "a_lat.log", windows), _JOB)
    assert [(target.group, target.name, target.real) for target in found.targets] == [
        ("reads", "read.mean", 70), ("writes", "write.mean", 20),
    ]  # fmt: skip
    found = files.read(_written(tmp_path / "a_bw.2.log", windows), _JOB)
    assert {target.name: target.real for target in found.targets} == pytest.approx(
        {"read.bandwidth": 71.68, "write.bandwidth": 20.48}
    )
    assert {target.unit for target in found.targets} == {"MB/s"}


_ETW_LINES = [
    "BeginHeader",
    "   DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum",
    "EndHeader",
    *(
        f'DiskRead, {at * 1000}, a.exe (4), 8, 0xffff, 0x{at * 4096:010x}, 0x1000, {400 + at}, 0, 0, 0, 0, 0, 0, "a"'
        for at in range(100)
    ),
]
_BLKPARSE_LINES = [
    line
    for at in range(100)
    for line in (
        f"  8,0    1  {3 * at}   {at}.000100000   99  Q   R {at * 8} + 8 [fio]",
        f"  8,0    1  {3 * at + 1}   {at}.000200000   99  D   R {at * 8} + 8 [fio]",
        # The completion of another request of the same size, without its issue.
        f"  8,0    2  {3 * at + 2}   {at}.000300000   99  C   R 4096 + 8 [0]",
        f"  8,0    2  {3 * at + 2}   {at}.000{600 + at}000   99  C   R {at * 8} + 8 [0]",
    )
]


@pytest.mark.contract
@pytest.mark.parametrize(
    ("name", "lines", "mean"),
    [
        (
            "systor.csv",
            [
                "Timestamp,Response,IOType,LUN,Offset,Size",
                *(f"14{at}.5,0.000{400 + at},R,2,{at * 4096},4096" for at in range(100)),
            ],
            449.5,
        ),
        ("etw.csv", _ETW_LINES, 449.5),
        ("sda.blkparse", _BLKPARSE_LINES, 449.5),
    ],
)  # fmt: skip
def test_response_times_of_other_formats(tmp_path: Path, name: str, lines: list[str], mean: float) -> None:
    """Times from a column, ElapsedTime, or a completion beside its issue; the core reads the same requests."""
    path = _written(tmp_path / name, "\n".join(lines) + "\n")
    found = files.read(path, How(precondition="fill:100%"))
    assert found.targets[0].real == pytest.approx(mean)
    drive = space.Drive("default", "page", SMALL)
    assert isinstance(found, GroupRuns)
    assert found.run(drive, "reads").requests == 100
    ours = found.ours(Batch(), drive, frozenset({"reads"}))
    assert ours["read.mean"]


@pytest.mark.contract
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_trace_with_response_times_is_replayed(tmp_path: Path, suffix: str) -> None:
    """Reads alone, far apart: each takes the time of one read, whatever the trace says."""
    lines = "".join(f"{at * 100_000},disk,0,Read,{at * 4096},4096,{400 + at}\n" for at in range(2000)).encode()
    path = tmp_path / f"reads.csv{suffix}"
    path.write_bytes(gzip.compress(lines) if suffix else lines)
    found = files.read(path, How(precondition="fill:100%"))
    assert [target.group for target in found.targets] == ["reads"] * 6
    assert found.targets[0].real == pytest.approx((400 + 999.5) / 10)
    alike = ("part.t_read=50us", "part.t_read_types=[]", "controller.read_ahead=0")
    drive = space.Drive("default", "page", (*SMALL, *alike))
    batch = Batch()
    found.prepare(batch, [drive], frozenset({"reads"}))
    ours = found.ours(batch, drive, frozenset({"reads"}))
    alone = stated_read(tmp_path, batch, drive)
    assert {name: value for name, value in ours.items() if value != pytest.approx(alone, rel=0.02)} == {}


@pytest.mark.contract
def test_runs_of_an_engine_are_those_of_this_process(tmp_path: Path) -> None:
    """A job file and the drive travel with a run; series come back."""
    jobs = _written(
        tmp_path / "a.fio", "[reads]\nrw=randread\nbs=4k\nnumber_ios=300\n[writes]\nrw=write\nbs=16k\nnumber_ios=100\n"
    )
    runs = [
        RunOptions(overrides=SMALL, workload=workload, precondition="fill:50%", series=True, seed=seed)
        for workload in (str(jobs), "rw=randread,bs=4k,n=200,iodepth=4")
        for seed in (1, 2)
    ]
    here, failure = engine.run_many(runs)
    assert failure is None
    with runner("local", None, 2) as run:
        there, failure = run(runs)
        # Errors there are the user's mistakes, too.
        _, wrong = run([RunOptions(overrides=SMALL, workload=str(_written(jobs, "[a]\nrw=x\n")))])
    assert failure is None
    assert isinstance(wrong, InputError)
    for one, other in zip(here, there, strict=True):
        for key in ("latency_ns", "requests", "simulated_ns", "flash", "write_amplification"):
            assert one[key] == other[key]
        assert (one.series or {})["latency"] == (other.series or {})["latency"]


def stated_read(tmp_path: Path, batch: Batch, drive: space.Drive) -> float:
    """Time of a read on the drive, one at a time."""
    text = '[[figure]]\nworkload = "rw=read,bs=4k,iodepth=1"\nmeasure = "read.mean"\nvalue = 1\nunit = "us"\n'
    figure = files.read(_written(tmp_path / "a.toml", f'{text}requests = 100\nprecondition = "fill:100%"'), How())
    ours = figure.ours(batch, drive, frozenset({"figure 1"}))["figure 1"]
    assert ours is not None
    return ours


def _counters(tmp_path: Path, seed: int, over_provisioning: str, victim: str) -> Path:
    """Counters of a drive with known keys over three passes."""
    overrides = (*SMALL, f"ssd.over_provisioning={over_provisioning}", f"ftl.victim={victim}")
    run = RunOptions(
        ssd="enterprise-tlc-7.68t", overrides=overrides, precondition="none", fidelity="count", series=True,
        workload="rw=randwrite,bs=16k,randrepeat=0,loops=3", seed=seed,
    )  # fmt: skip
    written = (engine.run_one(run).series or {})["writes"]
    rows = zip(written["host_bytes"], written["data_bytes"], strict=True)
    kept = [row for at, row in enumerate(rows) if at % max(1, len(written["host_bytes"]) // 40) == 0]
    text = "\n".join(["host_bytes,media_bytes", *(f"{host},{media}" for host, media in kept)])
    return _written(tmp_path / "smart.csv", text + "\n")


def _capacity(over_provisioning: str) -> int:
    shown = engine.run_one(
        RunOptions(
            ssd="enterprise-tlc-7.68t", overrides=(*SMALL, f"ssd.over_provisioning={over_provisioning}"),
            precondition="none", fidelity="count", workload="rw=write,bs=16k,loops=1",
        )
    )  # fmt: skip
    return int(shown["host"]["bytes_written"])


@dataclass
class _Varied(search.Evaluations):
    """Points of a drive whose figures vary with the seed if it chooses `b`; those of `a` are all off by `off`."""

    off: float

    def points(self, task: search.Task, wanted: Sequence[space.Values], _budget: search.Budget) -> list[search.Point]:
        found = []
        for values in wanted:
            chance = random.Random(task.drive.seed)
            steady, at = values["ftl.victim"] == "a", values["ssd.over_provisioning"]
            assert isinstance(at, float)
            wrong = [10 * (at - 20) + (self.off if steady else chance.gauss(0, 1)) for _ in task.targets()]
            found.append(search.Point(values, tuple(math.exp(0.03 * each) for each in wrong)))
        return found


@pytest.mark.unit
@pytest.mark.parametrize(("off", "choices"), [(0.7, ("a", "b")), (0.1, ("a",))])
def test_a_choice_is_as_good_within_its_own_chance(off: float, choices: tuple[str, ...]) -> None:
    """A steady choice excludes a varied one if it fits as well as it should, and not because it is steady."""
    targets = tuple(Target(str(at), str(at), "write amplification", "", 1.0, 0.03) for at in range(8))
    measured = OneRun("a.csv", targets, lambda _drive, _groups: RunOptions(), lambda _result, _groups: {})
    keys = (space.parse("ssd.over_provisioning=10%..30%"), space.parse("ftl.victim=a,b"))
    task = search.Task(space.Drive("default"), keys, (measured,), (frozenset(each.group for each in targets),))
    evaluations, budget = _Varied(off), search.Budget(None)
    wanted = [{"ssd.over_provisioning": 20.0, "ftl.victim": choice} for choice in ("a", "b")]
    best, rival = evaluations.points(task, wanted, budget)
    assert search.loss(task, best) < search.loss(task, rival)
    numbers, victims = determined.ranges(task, evaluations, budget, best, [best, rival])[0]
    assert victims.choices == choices
    assert numbers.low is not None
    assert numbers.high is not None
    assert (numbers.high - numbers.low > 0.2) == (len(choices) > 1), "ranges hold for all choices"


@pytest.mark.contract
@pytest.mark.long
def test_a_drive_with_known_keys_is_found_again(tmp_path: Path) -> None:
    path = _counters(tmp_path, 7, "16%", "greedy")
    settings = running.Settings(
        start="enterprise-tlc-7.68t", overrides=SMALL, evaluations=16, jobs=2, hold_out=("25%",),
        vary=("ssd.over_provisioning=8%..32%", "ftl.victim=greedy,cost-benefit"),
        how=How(workload="rw=randwrite,bs=16k,randrepeat=0", capacity=_capacity("16%")),
    )  # fmt: skip
    out = tmp_path / "out"
    out.mkdir()
    made = running.fit([path], settings, out)
    known: dict[str, determined.Range] = {each.key.name: each for each in made.stages[0].ranges}
    space_found = known["ssd.over_provisioning"]
    assert space_found.low is not None
    assert space_found.high is not None
    assert space_found.low <= 16 <= space_found.high
    assert "greedy" in known["ftl.victim"].choices
    assert any(made.held_out)
    outputs.write(made, out)
    said = outputs.verdict(made)
    assert (said.verdict, said.status) == ("fits", 0), said.text
    said = json.loads((out / "fit.json").read_text(encoding="utf-8"))
    assert abs(said["held_out"]["mean_percent"]) < 3
    # The drive file must run, and names the source of the fitted values.
    assert "# fitted to smart.csv" in (out / "drive.toml").read_text(encoding="utf-8")
    engine.check([RunOptions(ssd=str(out / "drive.toml"))])
    # A second start finds all results in place.
    again = running.fit([path], settings, out)
    assert outputs.to_json(again) == outputs.to_json(made)


@pytest.mark.contract
@pytest.mark.long
def test_known_keys_are_inside_their_ranges_in_nine_of_ten_seeds(tmp_path: Path) -> None:
    """Drives of other over-provisioning and victims, measured with other seeds, and searched with others again."""
    missed = []
    for seed in range(10):
        true, victim = 12 + seed, ("greedy", "cost-benefit")[seed % 2]
        path = _counters(tmp_path, 100 + seed, f"{true}%", victim)
        settings = running.Settings(
            start="enterprise-tlc-7.68t", overrides=SMALL, evaluations=80, jobs=2, seed=1 + seed,
            vary=("ssd.over_provisioning=8%..32%", "ftl.victim=greedy,cost-benefit"),
            how=How(workload="rw=randwrite,bs=16k,randrepeat=0", capacity=_capacity(f"{true}%")),
        )  # fmt: skip
        known = {each.key.name: each for each in running.fit([path], settings, None).stages[0].ranges}
        found = known["ssd.over_provisioning"]
        assert found.low is not None
        assert found.high is not None
        inside = found.low <= true <= found.high and victim in known["ftl.victim"].choices
        missed += [] if inside else [f"{true} % {victim}: {found.low} to {found.high}, {known['ftl.victim'].choices}"]
    assert len(missed) <= 1, missed


_JOBS = ("rw=randread,bs=4k,iodepth=1", "rw=randread,bs=4k,iodepth=16", "rw=randwrite,bs=16k,iodepth=4")


_BUFFER = "buffer.size=256KiB"  # less than a job writes


def _timed(tmp_path: Path, seed: int, known: dict[str, str]) -> Path:
    """Output of fio for a drive with known keys: three jobs, one after the other, measured from their first request."""
    jobs = []
    for at, spec in enumerate(_JOBS):
        overrides = (*SMALL, _BUFFER, *(f"{key}={value}" for key, value in known.items()))
        run = RunOptions(
            overrides=overrides, workload=spec, precondition="fill:100%", requests=2000, seed=seed, series=True,
            warmup="0",
        )  # fmt: skip
        result = engine.run_one(run)
        kind = "write" if "write" in spec else "read"
        times = result["latency_ns"][kind]
        shares = {"50.000000": times["p50"], "90.000000": times["p90"], "99.000000": times["p99"]}
        side = {
            "total_ios": 2000, "iops": 2000 / (result["simulated_ns"] / 1e9), "lat_ns": {"mean": times["mean"]},
            "clat_ns": {"percentile": shares},
        }  # fmt: skip
        options = dict(part.split("=") for part in spec.split(","))
        jobs.append({"jobname": f"j{at}", "job options": {**options, "stonewall": ""}, kind: side})
    return _written(tmp_path / "out.json", json.dumps({"jobs": jobs}))


@pytest.mark.contract
@pytest.mark.long
def test_known_times_are_in_their_ranges_in_nine_of_ten_seeds(tmp_path: Path) -> None:
    """Drives of other times, measured with other seeds, and searched with others again."""
    missed = []
    for seed in range(10):
        known = {
            "part.t_read": 38.0 + 4 * (seed * 7 % 10), "part.t_program": 350.0 + 40 * (seed * 3 % 10),
            "controller.t_read": 6.0 + 1.5 * seed,
        }  # fmt: skip
        path = _timed(tmp_path, 100 + seed, {key: f"{value}us" for key, value in known.items()})
        settings = running.Settings(
            start="default", overrides=(*SMALL, _BUFFER), evaluations=40, jobs=2, seed=1 + seed,
            how=How(precondition="fill:100%"),
            vary=("part.t_read=25us..100us", "part.t_program=250us..1000us", "controller.t_read=3us..30us"),
        )  # fmt: skip
        for each in running.fit([path], settings, None).stages[0].ranges:
            assert each.low is not None
            assert each.high is not None
            true = known[each.key.name]
            inside = each.low <= true <= each.high
            missed += [] if inside else [(seed, f"{each.key.name}: {true} not in {each.low} to {each.high}")]
    assert len({seed for seed, _ in missed}) <= 1, missed


@pytest.mark.contract
def test_the_command_refuses_keys_without_effect(palimpsest: Command, tmp_path: Path) -> None:
    path = _counters(tmp_path, 1, "20%", "greedy")
    keys = [argument for key in SMALL for argument in ("--set", key)]
    given = (
        "fit", str(path), "--start", "enterprise-tlc-7.68t", *keys, "--workload", "rw=randwrite,bs=16k,randrepeat=0",
        "--capacity", "3GiB", "--evaluations", "1",
    )  # fmt: skip
    done = palimpsest(*given, "--vary", "part.t_read=30us..60us")
    assert done.returncode == 2
    assert (
        done.stderr == "error: --vary part.t_read: no figure of the measurements changes with it; expected other keys\n"
    )
    done = palimpsest(*given, "--vary", "ssd.over_provisioning=10%..30%", "--hold-out", "pass 9")
    assert done.returncode == 2
    assert "--hold-out pass 9: no group is called so" in done.stderr
    done = palimpsest(*given, "--vary", "ssd.over_provisioning=15%..25%", "--json")
    made = json.loads(done.stdout)
    assert (done.returncode, made["verdict"]) == (3, "does not fit"), "the capacity is of another drive"
    assert made["keys"][0]["key"] == "ssd.over_provisioning"
    assert made["figures"]
