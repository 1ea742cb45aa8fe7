"""`palimpsest objects` on a small drive: both runs side by side, the page, and mistakes."""

import json
from pathlib import Path

import pytest

from conftest import Command

DRIVE = (
    "--ssd", "tlc-32g", "--set", "ssd.channels=2", "--set", "ssd.planes_per_die=1", "--set", "ssd.blocks_per_plane=128",
    "--set", "part.pages_per_block=16", "--set", "ssd.over_provisioning=28%", "--set", "fdp.handles=4",
    "--fidelity", "count",
)  # fmt: skip
CACHE = "cache=100%,region=64KiB,small=10%,sizes=300/80:12k/20,puts=50%,n=4000"
TRACE = """key,op,size,op_count,key_size,op_time
7,SET,9000,1,40,1
7,GET,9000,2,40,2
8,GET,9000,1,40,3
7,DELETE,0,1,40,4
"""


def test_both_runs_and_the_page(palimpsest: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = palimpsest("objects", CACHE, *DRIVE, "--json", "--out", str(out))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    placed, together = answer["objects"]
    assert (placed["label"], together["label"]) == ("placed", "together")
    assert placed["hit_ratio"] == together["hit_ratio"]
    assert placed["write_amplification"] < together["write_amplification"]
    assert [part["handle"] for part in placed["classes"]] == [1, 2]
    assert [part["handle"] for part in together["classes"]] == [0, 0]
    # A closed loop has no life in years.
    assert placed["years"] is None
    assert [run["objects"]["puts"] for run in answer["runs"]] == [placed_puts(answer)] * 2
    page = (out / "objects.html").read_text(encoding="utf-8")
    assert "Write amplification" in page
    assert (out / "placed" / "summary.json").is_file()


def placed_puts(answer: dict[str, list[dict[str, dict[str, int]]]]) -> int:
    cache = answer["runs"][0]["objects"]
    return 4000 - cache["gets"]


def test_a_trace_is_counted_exactly(palimpsest: Command, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    done = palimpsest("objects", "t.csv", *DRIVE, "--cache", "1MiB", "--json", "--cold", cwd=tmp_path)
    assert done.returncode == 2
    assert "expected 4 to 2^32" in done.stderr
    workload = "cache=1MiB,region=64KiB,small=0%,trace=t.csv"
    done = palimpsest(
        "run", "--workload", workload, *DRIVE, "--ftl", "fdp", "--precondition", "none", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    cache = result["objects"]
    counted = {name: cache[name] for name in ("gets", "hits", "puts", "deletes", "hit_bytes", "requested_bytes")}
    assert counted == {"gets": 3, "hits": 2, "puts": 1, "deletes": 1, "hit_bytes": 18080, "requested_bytes": 27120}
    assert (result["trace_format"], cache["open_loop"]) == ("cachelib", True)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("nothing",), "there is no such file"),
        (("oltp-zipf",), "no object workload; expected fdp-cache"),
        (("--ftl", "page"), "this layer has no placement handles"),
        (("fdp-cache,handles=7:9",), "writes to handle 9; the drive has 8 (0 to 7)"),
        (("fdp-cache,placement=off",), "the command runs with and without placement"),
        (("fdp-cache", "--policy", "lfu"), "policy=lfu: no value of this key; did you mean lru?"),
        (("fdp-cache", "--cache", "300%"), "expected a size or a percentage of the drive"),
        (("fdp-cache", "--from", "cachelib"), "trace=FILE for options of traces"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], part: str, palimpsest: Command) -> None:
    done = palimpsest("objects", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert part in done.stderr
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 200


def test_jobs_without_plids_name_all_handles(palimpsest: Command) -> None:
    done = palimpsest("run", "--ftl", "fdp", *DRIVE, "--precondition", "none", "--workload",
                      "rw=write,bs=64k,fdp=1,n=80", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    handles = json.loads(done.stdout)["fdp"]["handles"]
    assert [each["host_bytes"] for each in handles] == [20 * 65536] * 4


def test_a_preset_plays_a_trace_that_inserts_nothing(palimpsest: Command, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    workload = "fdp-cache,trace=t.csv,warm=0x"
    done = palimpsest("objects", workload, *DRIVE, "--json", cwd=tmp_path)
    said = f"error: {workload}: no object was inserted by 3 gets and the puts between, so the cache wrote nothing"
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_store_needs_the_handles_of_its_levels(palimpsest: Command) -> None:
    done = palimpsest("run", "--ftl", "fdp", *DRIVE, "--workload", "lsm=50%,memtable=64KiB,file=64KiB")
    said = (
        "error: fdp.handles: level 2 of the store writes to handle 4; the drive has 4 (0 to 3); expected more handles"
    )
    assert (done.returncode, done.stderr.strip()) == (2, said)
