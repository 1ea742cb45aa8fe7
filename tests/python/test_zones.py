"""Zones on the native module: strict runs, commands on zones in traces, random write areas, refused settings."""

import json
import re
from pathlib import Path

import pytest

from conftest import Command

pytestmark = pytest.mark.contract

ZONED = ("--ssd", "tlc-32g", "--ftl", "zns", "--precondition", "none")
AREAS = ("--set", "buffer.flush=free", "--set", "zns.zone_dies=1", "--set", "zns.zrwa=192KiB")
HEAD = "time_ns,op,offset_bytes,size_bytes\n"


def commands(path: Path, *lines: str) -> str:
    """A trace of these lines at `path`."""
    path.write_text(HEAD + "".join(f"{at},{line}\n" for at, line in enumerate(lines)))
    return str(path)


@pytest.mark.parametrize("fidelity", ["count", "timed"])
def test_a_failed_command_ends_a_strict_run(palimpsest: Command, tmp_path: Path, fidelity: str) -> None:
    trace = commands(tmp_path / "t.csv", "write,0,65536", "write,131072,65536", "write,65536,65536")
    run = ("run", *ZONED, "--workload", trace, "--fidelity", fidelity, "--json")
    done = json.loads(palimpsest(*run).stdout)
    assert {name: times for name, times in done["zns"]["errors"].items() if times} == {"zone_invalid_write": 1}
    assert done["requests"]["write"] == 2
    strict = palimpsest(*run, "--strict")
    said = f"error: {re.escape(trace)}: the write of 64KiB at byte 131072, in zone 0, fails with zone_invalid_write; "
    assert (strict.returncode, strict.stdout) == (2, "")
    assert re.match(said, strict.stderr), strict.stderr
    assert strict.stderr.count("\n") == 1


def test_a_trace_commits_a_random_write_area(palimpsest: Command, tmp_path: Path) -> None:
    size = json.loads(palimpsest("run", *ZONED, *AREAS, "--workload", "rw=read,bs=4k,n=1", "--json").stdout)["zns"]
    zone = size["zone_bytes"]
    trace = commands(
        tmp_path / "t.csv", f"open-zrwa,0,{zone}", "write,49152,49152", "write,0,49152", "write,49152,49152",
        "commit,0,98304", "write,294912,49152", f"finish,0,{zone}", f"open-zrwa,0,{zone}", "append,0,4096",
    )  # fmt: skip
    done = json.loads(palimpsest("run", *ZONED, *AREAS, "--payload", "tag", "--workload", trace, "--json").stdout)
    zns = done["zns"]
    assert zns["zrwa"] == {
        "area_bytes": 196_608, "granularity_bytes": 16384, "resources": 1, "allocated": 0, "explicit_commits": 1,
        "implicit_commits": 1, "overwritten_bytes": 49152,
    }  # fmt: skip
    failed = {name: times for name, times in zns["errors"].items() if times}
    assert failed == {"invalid_zone_operation_request": 1, "zone_is_full": 1}
    assert (zns["finishes"], zns["states"]["full"]) == (1, 1)


def test_commands_on_zones_need_zones(palimpsest: Command, tmp_path: Path) -> None:
    trace = commands(tmp_path / "t.csv", "finish,0,4096")
    done = palimpsest("run", "--ssd", "tlc-32g", "--ftl", "page", "--precondition", "none", "--workload", trace)
    said = f"error: {trace}:2: a command on a zone, and page has none; expected ftl.name = zns\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("buffer.timeout=2ms", "zns does not read buffer.timeout without buffer.ack = program|volatile"),
        ("zns.zrwa=48KiB", "expected buffer.ack = buffer and buffer.flush = free"),
        ("buffer.flush=free zns.zrwa=50KiB", "a multiple of the granularity, 16384 bytes"),
        ("buffer.flush=free zns.zrwa=48KiB zns.zrwa_granularity=1KiB", "whole logical blocks of 4096 bytes"),
        ("buffer.flush=free zns.zrwa=7MiB zns.zrwa_granularity=1MiB zns.zrwa_zones=2", "keep 14680064 bytes"),
        ("buffer.flush=free zns.zrwa=48KiB zns.zrwa_zones=15", "no more of them"),
        ("zns.zrwa_zones=2", "zns does not read zns.zrwa_zones without zns.zrwa > 0"),
    ],
)
def test_settings_of_zones_that_cannot_be(palimpsest: Command, settings: str, says: str) -> None:
    changes = [part for setting in settings.split() for part in ("--set", setting)]
    done = palimpsest("run", *ZONED, *changes, "--workload", "rw=write,bs=64k,n=10")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert says in done.stderr


def test_a_zone_of_few_dies_leaves_others_to_reads(palimpsest: Command) -> None:
    """Two writers and a reader of another zone, without suspension: one die a zone, and all."""
    writers = "rw=write,bs=64k,iodepth=16,numjobs=2,offset=16896m,offset_increment=5280m,size=1056m"
    readers = "rw=randread,bs=4k,offset=7392m,size=1056m,rate_iops=2k"
    jobs = f"zonemode=zbd,zonesize=1056m,runtime=300ms,name=writers,{writers},name=readers,{readers}"
    done = palimpsest(
        "compare", "one:ftl=zns,zns.zone_dies=1", "all:ftl=zns,zns.zone_dies=8", "--ssd", "tlc-32g", "--set",
        "zns.zone_capacity=1056MiB", "--set", "sim.suspend=none", "--precondition", "fill:30%", "--workload", jobs,
        "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    one, every = json.loads(done.stdout)["runs"]
    reads = [run["latency_ns"]["read"]["p99"] for run in (one, every)]
    writes = [run["jobs"][0]["throughput"]["bytes_per_s"] for run in (one, every)]
    # A program takes 390 us on each of the four planes of a die; the buffer of 8 MiB fills, too.
    assert reads[0] < 390_000 < reads[1], reads
    assert 0.95 < writes[0] / (2 * 4 * 16384 / 390e-6) < 1.15, writes
    assert writes[1] > 3 * writes[0], writes
