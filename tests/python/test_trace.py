"""The contract of `palimpsest trace`, and of traces and job files as workloads. On the native module."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Command, figures, trace_sample

pytestmark = pytest.mark.contract

SPEC = "rw=randrw,bs=4k,size=64MiB,n=2000,rate_iops=10000,open_loop"
ETW = """BeginHeader
 DiskRead, TimeStamp, Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum, IrpFlags, \
DiskSvcTime, I/O Pri, VolSnap, FileObject, FileName
EndHeader
 DiskWrite, 7, System ( 4), 64, 0xfffffa80, 0x0000008000, 0x00001000, 283, 0, 0x06, 283, 3, Original, 0xff, "C:\\$Mft"
 DiskRead, 90, x.exe ( 39), 11, 0xfffffa80, 0x0000010000, 0x00002000, 9, 1, 0x060043, 9, 3, Original, 0xff, "C:\\a, b"
"""


def one_error_line(text: str) -> str:
    assert re.fullmatch(r"error: [^\n]+\n", text), text
    return text


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "a.csv"
    lines = [f"{at * 1000},{'read' if at % 4 == 0 else 'write'},{at % 7 * 4096},4096,f{at % 3},2" for at in range(500)]
    path.write_text("time_ns,op,offset_bytes,size_bytes,file,stream\n" + "\n".join(lines) + "\n")
    return path


def test_info_describes_a_trace(palimpsest: Command, trace: Path, tmp_path: Path) -> None:
    found = figures(palimpsest("trace", "info", str(trace), "--json", "--out", str(tmp_path)))
    assert (found["format"], found["requests"]["all"], found["requests"]["read"]) == ("csv", 500, 125)
    assert found["locality"]["footprint_bytes"] == 7 * 4096
    assert (found["files"], found["streams"], found["duration_ns"]) == (3, 1, 499_000)
    assert json.loads((tmp_path / "trace.json").read_text()) == found
    page = (tmp_path / "trace.html").read_text()
    assert "Writes over time and address" in page
    assert not re.search(r"<(script|link|img)[^>]*\b(src|href)=", page)


def test_reuse_and_working_sets(palimpsest: Command, trace: Path) -> None:
    import palimpsest as ps

    found = ps.trace(trace).info()
    assert found == figures(palimpsest("trace", "info", str(trace), "--json"))
    # The trace cycles through 7 pages: a cache of 7 has only first misses, and a cache of 6 no hits.
    reuse = found["reuse"]["all"]
    assert (reuse["page_accesses"], reuse["sampled_share"], reuse["first_access_ratio"]) == (500, 1, 7 / 500)
    misses = {point["cache_bytes"] // 4096: point["miss_ratio"] for point in reuse["misses"]}
    assert (misses[6], misses[7], max(misses)) == (1, 7 / 500, 7)
    assert reuse["distance_bytes"] == dict.fromkeys(("p50", "p90", "p99", "max"), 6 * 4096)
    assert found["reuse"]["read"]["page_accesses"] == 125
    (window,) = found["working_sets"]["all"]
    assert (window["window_ns"], window["bytes"], window["max_bytes"]) == (10_000_000, [7 * 4096], 7 * 4096)
    shown = " ".join(palimpsest("trace", "info", str(trace)).stdout.split())
    assert "28.0 KiB 1.40 %" in shown
    assert "mean 28.0 KiB, max 28.0 KiB in 10 ms" in shown
    with pytest.raises(ps.InputError, match="found a list"):
        ps.trace([1])


def test_info_for_people(palimpsest: Command) -> None:
    done = palimpsest("trace", "info", SPEC)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("requests", "read ratio", "footprint", "overwrites", "hot share", "sequential", "depth hint"):
        assert word in done.stdout
    assert "closed loop" in palimpsest("trace", "info", "rw=randread,n=10,iodepth=4").stdout


@pytest.mark.parametrize("ending", ["csv", "parquet", "blkparse", "etw", "iolog", "msr.gz", "spc.zst", "mqsim", "load"])
def test_convert_there_and_back(palimpsest: Command, trace: Path, tmp_path: Path, ending: str) -> None:
    there, back = tmp_path / f"b.{ending}", tmp_path / "c.csv"
    done = palimpsest("trace", "convert", str(trace), str(there))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.splitlines()[-1].endswith(": 500 requests")
    assert palimpsest("trace", "convert", str(there), str(back)).returncode == 0
    rows = [line.split(",") for line in back.read_text().splitlines()]
    original = [line.split(",") for line in trace.read_text().splitlines()]
    assert [row[:4] for row in rows] == [row[:4] for row in original]
    if ending in ("csv", "parquet"):
        assert rows == original
    if ending in ("etw", "iolog"):
        assert [row[4] for row in rows] == [row[4] for row in original]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([there.name, "c.csv"])


def test_convert_reports_what_is_lost(palimpsest: Command, trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "b.tencent"
    done = palimpsest("trace", "convert", str(trace), str(out))
    assert done.returncode == 0
    assert f"{out} (tencent): arrival times rounded down: 499 requests" in done.stderr
    assert "file names dropped: 500 requests" in done.stderr


def test_names_of_files_are_kept(palimpsest: Command, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(ETW)
    assert palimpsest("trace", "convert", str(tmp_path / "a.txt"), str(tmp_path / "b.parquet")).returncode == 0
    import polars as pl

    table = pl.read_parquet(tmp_path / "b.parquet")
    assert table["file"].to_list() == ["C:\\$Mft", "C:\\a, b"]
    # Events are logged at completion, after 283 us and 9 us.
    assert table["time_ns"].to_list() == [0, 83_000 + 274_000]
    assert table["stream"].n_unique() == 2


def test_parquet_of_others_is_read(palimpsest: Command, tmp_path: Path) -> None:
    import polars as pl

    rows = {"op": ["w", None, "read"], "size_bytes": [512, 512, 512], "offset_bytes": [0, 0, 512], "time_ns": [1, 2, 3]}
    pl.DataFrame(rows).write_parquet(tmp_path / "a")
    done = palimpsest("trace", "info", str(tmp_path / "a"))
    assert done.returncode == 2
    assert f"error: {tmp_path / 'a'}:2: column op" in one_error_line(done.stderr)
    found = figures(
        palimpsest("run", "--json", "--skip-bad", "--workload", str(tmp_path / "a"), "--precondition", "none")
    )
    assert found["requests"] == {"read": 1, "write": 1, "trim": 0, "flush": 0}


def test_synth_writes_the_workload(palimpsest: Command, tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    assert palimpsest("trace", "synth", SPEC, str(out)).returncode == 0
    times = [int(line.split(",")[0]) for line in out.read_text().splitlines()[1:]]
    assert len(times) == 2000
    assert all(later - earlier == 100_000 for earlier, later in pairwise(times))
    first = out.read_text()
    assert palimpsest("trace", "synth", SPEC, str(out), "--seed", "2").returncode == 0
    assert out.read_text() != first
    done = palimpsest("trace", "synth", "rw=read,n=5", str(out))
    assert done.returncode == 0
    assert "closed loop" in done.stderr


def test_job_files_run(palimpsest: Command, tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.write_text("[global]\nioengine=libaio\ndirect=1\nsize=4m\n[a]\nrw=randwrite\nbs=8k\nnumjobs=2\niodepth=4\n")
    result = figures(palimpsest("run", "--json", "--workload", str(job), "--precondition", "none"))
    assert result["requests"]["write"] == 2 * 512
    job.write_text("[a]\nrw=randwrite\n# a comment\nsteadystate=iops:5%\n")
    done = palimpsest("run", "--workload", str(job))
    assert done.returncode == 2
    assert f"error: {job}:4: ends a job at a steady rate, " in one_error_line(done.stderr)
    # Two loops side by side, until the end of simulated time.
    job.write_text(
        "[global]\nruntime=50ms\ntime_based\n"
        "[a]\nrw=randread\niodepth=4\n"
        "[b]\nrw=randwrite\nrate_iops=1000\nopen_loop\n"
    )
    result = figures(palimpsest("run", "--json", "--workload", str(job), "--precondition", "fill:50%"))
    assert result["requests"]["write"] == 50
    assert result["requests"]["read"] > 500
    assert 50e6 <= result["simulated_ns"] < 60e6
    done = palimpsest("run", "--workload", str(job), "--fidelity", "count")
    assert done.returncode == 2
    assert "timed runs" in one_error_line(done.stderr)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["info", "no-such-file"], "no-such-file"),
        (["info"], "FILE|SPEC"),
        (["info", SPEC, "--requests", "none"], "1e6"),
        (["convert", "no-such-file", "b.csv"], "no such file"),
        (["convert", SPEC, "b.csv"], "no such file"),
        (["convert", "IN", "b.txt"], "--format"),
        (["convert", "IN", "b.csv", "--format", "cvs"], "csv"),
        (["convert", "IN", "b.csv", "--from", "msr"], "read as msr"),
        (["convert", "IN", "IN"], "another file"),
        (["convert", "IN", "no-such-folder/b.csv"], "folder"),
        (["convert", "IN", "b.parquet.gz"], "compressed within"),
        (["synth", "rw=sideways", "b.csv"], "randrw"),
        (["mend"], "--help"),
    ],
)
def test_mistakes_are_one_line_and_status_2(
    palimpsest: Command, trace: Path, tmp_path: Path, arguments: list[str], says: str
) -> None:
    done = palimpsest("trace", *[str(trace) if each == "IN" else each for each in arguments], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in one_error_line(done.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "option", ["--columns=time=1,offset=2,size=3", "--from=msr", "--skip-bad", "--volumes=overlaid"]
)
def test_options_of_traces_are_refused_for_generated_workloads(
    palimpsest: Command, tmp_path: Path, option: str
) -> None:
    (tmp_path / "job.fio").write_text("[a]\nrw=read\nn=5\n")
    for workload in ("rw=read,n=5", "trade", "trade,n=5", "job.fio"):
        if workload == "job.fio" and option.startswith(("--columns", "--from")):
            continue  # The option declares the file a trace.
        for command in (["run", "--workload"], ["trace", "info"]):
            done = palimpsest(*command, workload, option, cwd=tmp_path)
            assert (done.returncode, done.stdout) == (2, ""), (command, workload)
            assert one_error_line(done.stderr).startswith(f"error: {option.split('=')[0]}: "), done.stderr
            assert done.stderr.endswith("expected a trace\n")


@pytest.mark.parametrize("key", ["host.speedup=2", "host.compact=1MiB"])
def test_keys_of_traces_are_refused_for_closed_loops(palimpsest: Command, tmp_path: Path, key: str) -> None:
    """A former bug: both keys were accepted without an effect."""
    (tmp_path / "job.fio").write_text("[a]\nrw=read\nn=5\n")
    small = ("run", "--ssd", "mga-8k", "--precondition", "none", "--set", key, "--workload")
    for workload in ("rw=read,n=5", "job.fio"):
        done = palimpsest(*small, workload, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), workload
        assert one_error_line(done.stderr).startswith(f"error: --set {key}: "), done.stderr
    (tmp_path / "a.csv").write_text("time_ns,op,offset_bytes,size_bytes\n0,W,0,4096\n50,R,0,4096\n")
    assert palimpsest(*small, "a.csv", cwd=tmp_path).returncode == 0
    timed = palimpsest(*small, "rw=read,n=5,rate_iops=1000", cwd=tmp_path)
    assert timed.returncode == (0 if key.startswith("host.speedup") else 2)


def test_a_heading_of_a_text_is_noted(palimpsest: Command, tmp_path: Path) -> None:
    columns = ("--columns", "time=1:s,op=2,offset=3,size=4")
    run = ("run", "--json", "--precondition", "none", *columns, "--workload")
    (tmp_path / "good.csv").write_text("time,op,offset,size\n0.1,W,4096,4096\n")
    result = figures(palimpsest(*run, "good.csv", cwd=tmp_path))
    assert result["requests"]["write"] == 1
    assert 'line 1 is a heading, and no request: "time,op,offset,size"' in result["notes"]
    (tmp_path / "bad.csv").write_text("0.1s,W,4096,4096\n" * 3)
    for skip, says in (
        ((), "bad.csv:1: column time: "),
        (("--skip-bad",), "no request after skipping 3 malformed lines"),
    ):
        done = palimpsest(*run, "bad.csv", *skip, cwd=tmp_path)
        assert done.returncode == 2
        assert says in one_error_line(done.stderr)
    done = palimpsest(*run, "good.csv", "--from", "msr", cwd=tmp_path)
    assert "error: --from: --columns says how the text is read" in one_error_line(done.stderr)


def test_requests_out_of_order_are_sorted_and_counted(palimpsest: Command, tmp_path: Path) -> None:
    times = (0, 5, 1, 6)
    lines = (f"{time}000000,write,{4096 * at},4096" for at, time in enumerate(times))
    path, output = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_text("\n".join(("time_ns,op,offset_bytes,size_bytes", *lines)) + "\n", encoding="utf-8")
    note = "the trace is up to 4ms out of order: 1 request sorted by time"
    done = palimpsest("trace", "convert", str(path), str(output))
    assert note in done.stderr
    written = [line.split(",")[0] for line in output.read_text().splitlines()[1:]]
    assert written == [str(time * 1_000_000) for time in sorted(times)]
    info = json.loads(palimpsest("trace", "info", str(path), "--json").stdout)
    assert (info["sorted"], info["late"], note in info["notes"]) == (1, 0, True)
    run = json.loads(palimpsest("run", "--workload", str(path), "--json").stdout)
    assert note in run["notes"]
    assert note not in palimpsest("run", "--workload", str(output), "--json").stdout


def test_failing_half_way_leaves_no_file(palimpsest: Command, trace: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(trace.read_text() + "x,y\n")
    done = palimpsest("trace", "convert", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))
    assert done.returncode == 2
    assert "a.csv:502: " in one_error_line(done.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_list_has_all_formats(palimpsest: Command) -> None:
    names = figures(palimpsest("list", "traces", "--json"))["traces"]
    assert {"csv", "parquet", "etw", "iolog", "msr", "spc", "blkreplay", "fiu", "blkparse", "mqsim", "disksim"} <= set(
        names
    )
    assert {"alibaba", "tencent", "blktrace", "vscsi", "oraclegeneral"} <= set(names)


def test_binary_traces_are_read(palimpsest: Command, tmp_path: Path) -> None:
    kept = ROOT / "fuzz" / "kept" / "trace"
    assert palimpsest("trace", "convert", str(kept / "blktrace.bin"), str(tmp_path / "a.csv")).returncode == 0
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert [line.rsplit(",", 1)[0].rstrip(",") for line in lines[1:]] == [
        "0,write,32768,4096", "1000000000,read,65536,8192", "3000000000,write,4096,4096",
    ]  # fmt: skip
    done = palimpsest("run", "--workload", str(kept / "vscsi-cut.bin"), "--precondition", "none")
    assert done.returncode == 2
    assert "vscsi-cut.bin:4: record: the file ends 23 bytes into a record of 40" in one_error_line(done.stderr)
    done = palimpsest("trace", "convert", str(kept / "vscsi-1.bin"), str(tmp_path / "a.vscsi"))
    assert done.returncode == 2
    assert "vscsi traces are only read" in one_error_line(done.stderr)


def test_real_traces_convert(palimpsest: Command, tmp_path: Path) -> None:
    source = trace_sample("msr_web_3.csv.zst")
    assert palimpsest("trace", "convert", str(source), str(tmp_path / "a.parquet")).returncode == 0
    described = [figures(palimpsest("trace", "info", "--json", str(path))) for path in (source, tmp_path / "a.parquet")]
    for each in described:
        for key in ("workload", "format", "files"):
            each.pop(key)
    assert described[0] == described[1]


@pytest.mark.contract
def test_a_trace_with_two_readings_is_refused_until_one_is_named(palimpsest: Command, tmp_path: Path) -> None:
    path = tmp_path / "two.trace"
    path.write_text("0.5\t0\t64\t8\t0\n1.5\t0\t128\t16\t1\n", encoding="utf-8")
    run = ("run", "--workload", str(path), "--ssd", "mga-16k", "--precondition", "none", "--json")
    done = palimpsest(*run)
    assert done.returncode == 2
    assert (
        "disksim (the first request has 4096 bytes) or as dchoices (the first request has 32768 bytes)" in done.stderr
    )
    made = figures(palimpsest(*run, "--from", "disksim"))
    assert made["trace_format"] == "disksim"
    assert made["host"]["bytes_written"] == 4096
    done = palimpsest(*run, "--from", "ascii")
    assert done.returncode == 2
    assert "unknown trace format" in done.stderr


def test_volumes_lie_apart_and_have_figures(palimpsest: Command, tmp_path: Path) -> None:
    lines = [f"{1000 * at} {at % 3} {8 * (at % 50)} 8 {int(at % 4 == 0)}" for at in range(600)]
    path = tmp_path / "a.mqsim"
    path.write_text("\n".join([*lines, "600000 2 6000000000 8 0"]) + "\n")
    small = ("--ssd", "mga-8k", "--precondition", "none", "--json")

    def run(*options: str) -> Any:
        return figures(palimpsest("run", "--workload", str(path), *small, *options))

    refused = palimpsest("run", "--workload", str(path), *small)
    assert refused.returncode == 2
    assert "--set host.compact=1MiB (it uses 4MiB)" in one_error_line(refused.stderr)
    apart = run("--set", "host.compact=1MiB")
    assert [(each["volume"], each["offset_bytes"]) for each in apart["volumes"]] == [(0, 0), (1, 2**20), (2, 2**21)]
    assert sum(each["bytes_written"] for each in apart["volumes"]) == apart["host"]["bytes_written"]
    assert sum(each["requests"]["read"] for each in apart["volumes"]) == apart["requests"]["read"]
    writes = [each["latency_ns"]["write"]["max"] for each in apart["volumes"]]
    assert max(writes) == apart["latency_ns"]["write"]["max"]
    assert any("3 volumes of the trace lie apart" in note for note in apart["notes"])
    one = run("--volumes", "1", "--repeat", "2")
    assert (one["requests"]["read"] + one["requests"]["write"], one["volumes"]) == (400, [])
    overlaid = run("--volumes", "overlaid", "--requests", "600")
    assert [each["offset_bytes"] for each in overlaid["volumes"]] == [0, 0, 0]
    done = palimpsest("run", "--workload", "rw=read,n=5", "--volumes", "3", *small)
    assert "the workload rw=read,n=5 is generated" in one_error_line(done.stderr)
    found = figures(palimpsest("trace", "info", str(path), "--json"))
    assert [each["requests"]["write"] for each in found["volumes"]] == [150, 150, 151]
    # Each volume has 50 places of a page, the third another.
    assert [each["locality"]["footprint_bytes"] for each in found["volumes"]] == [50 * 4096, 50 * 4096, 51 * 4096]
    first = found["volumes"][0]["locality"]
    assert first["reuse"]["misses"][-1]["miss_ratio"] == first["reuse"]["first_access_ratio"] == 50 / 200
    assert palimpsest("trace", "convert", str(path), str(tmp_path / "b.csv"), "--volumes", "2").returncode == 0
    assert len((tmp_path / "b.csv").read_text().splitlines()) == 202


@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz"])
def test_traces_in_archives(palimpsest: Command, trace: Path, tmp_path: Path, ending: str) -> None:
    import tarfile
    import zipfile

    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "b.csv").write_bytes(trace.read_bytes())
    archive = tmp_path / f"a.{ending}"

    def pack(*names: str) -> None:
        if ending == "zip":
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
                for name in names:
                    made.write(tmp_path / name, name)
            return
        with tarfile.open(archive, "w:gz" if ending == "tar.gz" else "w") as made:
            for name in names:
                made.add(tmp_path / name, name)

    pack("d")
    if ending == "zip":
        pack("d", "d/b.csv")
    small = ("--ssd", "mga-8k", "--precondition", "none", "--requests", "100", "--json")
    plain, packed = (
        figures(palimpsest("run", "--workload", str(path), *small)) for path in (tmp_path / "d" / "b.csv", archive)
    )
    assert packed["host"] == plain["host"]
    assert packed["provenance"]["files_blake2b"].keys() == {"workload"}
    (tmp_path / "c.csv").write_text("\n".join(trace.read_text().splitlines()[:11]) + "\n")
    pack("d/b.csv", "c.csv")
    done = palimpsest("run", "--workload", str(archive), *small)
    assert done.returncode == 2
    message = "the archive has 2 files: d/b.csv, c.csv; expected the name of one after its own, such as"
    assert f"{archive}: {message} {archive}/d/b.csv" in one_error_line(done.stderr)
    chosen = [figures(palimpsest("trace", "info", "--json", f"{archive}/{name}")) for name in ("c.csv", "d/b.csv")]
    assert [each["requests"]["all"] for each in chosen] == [10, 500]
    done = palimpsest("trace", "info", f"{archive}/none.csv")
    assert "there is no file none.csv in the archive; expected one of d/b.csv, c.csv" in one_error_line(done.stderr)


def test_a_run_of_a_trace_in_an_archive_is_repeated(palimpsest: Command, trace: Path, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.write(trace, "b.csv")
        made.writestr("c.csv", "time_ns,op,offset_bytes,size_bytes\n0,write,0,4096\n")
    workload = str(tmp_path / "a.zip" / "b.csv")
    options = ("--ssd", "mga-8k", "--precondition", "none", "--out", str(tmp_path / "out"))
    assert palimpsest("run", "--workload", workload, *options).returncode == 0
    assert palimpsest("rerun", str(tmp_path / "out")).returncode == 0
    from palimpsest.files import digest

    assert digest(tmp_path / "a.zip" / "b.csv") != digest(tmp_path / "a.zip" / "c.csv")


def test_volumes_have_their_names(palimpsest: Command, tmp_path: Path) -> None:
    """Of disks, devices and files, in descriptions and results; `--volumes` takes them."""
    heading = "TIME(s)     COMM           PID     DISK    T SECTOR     BYTES  LAT(ms)\n"
    disks = "".join(f"{1 + at / 999:.6f} a b 7 {('xvda1', 'xvdb')[at % 2]} W {8 * at} 4096 0.1\n" for at in range(90))
    devices = "".join(f"{('259,0', '8,16')[at % 2]} 0 {at + 1} {at}.1 5 D W {8 * at} + 8 [p]\n" for at in range(90))
    files = "time_ns,op,offset_bytes,size_bytes,file\n" + "".join(
        f"{at},w,4096,4096,{'ab'[at % 2]}\n" for at in range(90)
    )
    drive = ("--ssd", "mga-8k", "--precondition", "none", "--fidelity", "count", "--json")
    samples = ((heading + disks, ("xvda1", "xvdb")), (devices, ("259,0", "8,16")), (files, ("a", "b")))
    for at, (text, names) in enumerate(samples):
        path = tmp_path / f"{at}.txt"
        path.write_text(text)
        for command in (("run", "--workload", str(path), *drive), ("trace", "info", str(path), "--json")):
            found = figures(palimpsest(*command, "--volumes", "apart"))["volumes"]
            assert [(each["name"], each["requests"]["write"]) for each in found] == [(name, 45) for name in names]
        one = figures(palimpsest("run", "--workload", str(path), *drive, "--volumes", names[1]))
        assert one["requests"]["write"] == 45
        missing = palimpsest("run", "--workload", str(path), *drive, "--volumes", "c")
        assert (missing.returncode, missing.stdout, missing.stderr.count("\n")) == (2, "", 1)
        assert "there is no volume c in the trace; expected some of " in missing.stderr
        assert all(name in missing.stderr for name in names)
