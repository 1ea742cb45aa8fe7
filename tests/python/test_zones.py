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
        ("buffer.flush=free zns.zrwa=50KiB", "expected a multiple of the granularity, 16384 bytes"),
        ("buffer.flush=free zns.zrwa=48KiB zns.zrwa_granularity=1KiB", "whole logical blocks of 4096 bytes"),
        ("buffer.flush=free zns.zrwa=7MiB zns.zrwa_granularity=1MiB zns.zrwa_zones=2", "keep 14680064 bytes"),
        ("buffer.flush=free zns.zrwa=48KiB zns.zrwa_zones=15", "expected no more of them"),
        ("zns.zrwa_zones=2", "zns does not read zns.zrwa_zones without zns.zrwa > 0"),
    ],
)
def test_settings_of_zones_that_cannot_be(palimpsest: Command, settings: str, says: str) -> None:
    changes = [part for setting in settings.split() for part in ("--set", setting)]
    done = palimpsest("run", *ZONED, *changes, "--workload", "rw=write,bs=64k,n=10")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert says in done.stderr
