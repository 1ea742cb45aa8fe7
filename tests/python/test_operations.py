"""The timeline of flash operations as tables, files and part of a page, on the stand-in and by the command."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import palimpsest as ps
from conftest import Command, native
from palimpsest import why
from palimpsest.charts import gantt

UNIT, CONTRACT = pytest.mark.unit, pytest.mark.contract
PAGE = ("--ftl", "page", "--workload", "rw=randrw,bs=512,size=64MiB,n=300,iodepth=4", "--precondition", "fill:1%")


@pytest.fixture
def result(fake: Any) -> ps.Result:
    assert fake
    return ps.run("oltp", operations=True)


@UNIT
def test_the_window_reaches_the_native_module(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def run(options: str, _progress: object) -> tuple[str, str]:
        seen.append(json.loads(options)["operations"])
        return json.dumps(fake.summary(json.loads(options))), "null"

    monkeypatch.setattr(native, "run", run)
    for operations in (True, "10ms..12ms", False):
        ps.run("oltp", operations=operations)
    ps.run("oltp")
    assert seen == ["1..1000", "10ms..12ms", None, None]


@UNIT
def test_tables_of_a_timeline(result: ps.Result, fake: Any) -> None:
    operations = result.to_polars("operations")
    assert operations["follows"].to_list() == [[], [1], []]
    assert operations.schema["ready_ns"] == pl.Int64
    assert result.to_polars("requests")["completed_ns"].to_list() == [497_000, None]
    assert result.to_polars("time").height == 20
    bare = ps.run("oltp", operations=True, series=False)
    assert bare.to_polars("operations").equals(operations)
    with pytest.raises(ValueError, match=r"no table 'time'; run with series=True"):
        bare.to_polars("time")
    with pytest.raises(ValueError, match=r"no table 'operations'; run with operations=True"):
        ps.run("oltp").to_polars("operations")
    assert fake


@UNIT
def test_a_timeline_is_saved_loaded_and_drawn(result: ps.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "with")
    again = ps.load(tmp_path / "with")
    assert isinstance(again, ps.Result)
    assert again.series == result.series
    pages = {name: (tmp_path / name / "report.html") for name in ("with", "without")}
    ps.run("oltp").save(tmp_path / "without")
    assert not (tmp_path / "without" / "operations.parquet").exists()
    assert "data-timeline>" in pages["with"].read_text(encoding="utf-8")
    assert "data-timeline>" not in pages["without"].read_text(encoding="utf-8")


@UNIT
def test_lanes_are_channels_and_below_each_its_planes(result: ps.Result) -> None:
    drawn = gantt.timeline(result)
    assert drawn is not None
    names = ["channel 0", "die 0, plane 0", "channel 1", "die 1, plane 1", "die 1, plane 3"]
    assert [lane["name"] for lane in drawn["lanes"]] == names
    assert drawn["operations"]["operation"] == [1, 1, 1]
    assert drawn["operations"]["planned_ns"] == [0, 0, 20_000]
    assert drawn["operations"]["ready_ns"] == [0, 71_000, 0]
    assert drawn["operations"]["transfer_end_ns"] == [71_000, 97_000, None]
    assert drawn["left_out"] == 0
    assert gantt.timeline(ps.Result(result.to_dict())) is None


@UNIT
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--operations", "x.csv"], "--operations: x.csv: expected a name that ends in .parquet\n"),
        (["--operations", "no/x.parquet"], "--operations: no/x.parquet: there is no folder no; expected one\n"),
        (["--operations", "dir.parquet"], "--operations: dir.parquet: this is a folder; expected a file\n"),
        (["--operations-window", "1..9"], "--operations-window: expected with --operations FILE\n"),
    ],
)
def test_a_wrong_file_costs_no_run(
    fake_command: Command, tmp_path: Path, arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dir.parquet").mkdir()
    monkeypatch.setenv("FAKE_STARTED", str(tmp_path / "started"))
    done = fake_command("run", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr, done.stdout) == (2, f"error: {says}", "")
    assert not (tmp_path / "started").exists()


@CONTRACT
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--fidelity", "count"], "--operations: operations of a counted run have no times; expected --fidelity timed"),
        (["--operations-window", "9..1"], "--operations-window 9..1: nothing lies in this window"),
        (["--operations-window", "1..2ms"], "--operations-window 1..2ms: "),
    ],
)
def test_a_wrong_window_is_one_line(palimpsest: Command, tmp_path: Path, arguments: list[str], says: str) -> None:
    done = palimpsest("run", "--operations", "x.parquet", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {says}")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@CONTRACT
def test_files_of_a_run(palimpsest: Command, tmp_path: Path) -> None:
    done = palimpsest("run", *PAGE, "--operations", "o.parquet", "--out", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "wrote o.parquet and o-requests.parquet\n" in done.stderr
    figures = json.loads(done.stdout)
    operations, requests = pl.read_parquet(tmp_path / "o.parquet"), pl.read_parquet(tmp_path / "o-requests.parquet")
    assert operations.equals(pl.read_parquet(tmp_path / "out" / "operations.parquet"))
    # All 300 requests are in the window, so the rows must agree with the figures.
    assert requests["request"].to_list() == list(range(1, 301))
    counted = {(kind, cause): rows.height for (kind, cause), rows in operations.group_by("kind", "cause")}
    for cause, numbers in figures["flash"]["by_cause"].items():
        assert counted.get(("read", cause), 0) == numbers["reads"]
        assert counted.get(("program", cause), 0) == numbers["programs"]
    assert (requests["completed_ns"] - requests["arrival_ns"]).max() == figures["latency_ns"]["all"]["max"]
    # A partial write: the program follows the read.
    read = operations.select(follows="operation", behind_cause="cause", over="end_ns")
    pairs = operations.explode("follows").join(read, on="follows")
    assert pairs.height == counted["read", "rmw"] > 50
    assert (pairs["behind_cause"] == "rmw").all()
    assert (pairs["over"] == pairs["ready_ns"]).all()

    page = tmp_path / "out" / "report.html"
    written = page.read_text(encoding="utf-8")
    page.unlink()
    assert palimpsest("report", "out", cwd=tmp_path).returncode == 0
    assert page.read_text(encoding="utf-8") == written


@CONTRACT
def test_file_of_a_comparison(palimpsest: Command, tmp_path: Path) -> None:
    arguments = ("--operations", "o.parquet", "--operations-window", "10..29", "--ftl", "page,subpage")
    done = palimpsest("compare", *PAGE[2:], *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    requests = pl.read_parquet(tmp_path / "o-requests.parquet")
    assert requests["ftl"].to_list() == ["page"] * 20 + ["subpage"] * 20
    assert requests["request"].to_list() == [*range(10, 30)] * 2
    assert pl.read_parquet(tmp_path / "o.parquet").columns[0] == "ftl"


@CONTRACT
def test_parts_sum_to_the_response_times(palimpsest: Command, tmp_path: Path) -> None:
    done = palimpsest("run", *PAGE, "--operations", "slowest:3", "--out", "out", "--json", cwd=tmp_path)
    result = json.loads(done.stdout)
    assert set(result["why"]) == {"read", "write"}
    for kind, percentiles in result["why"].items():
        for name, explained in percentiles.items():
            assert explained["latency_ns"] == result["latency_ns"][kind][name]
            assert sum(explained["parts_ns"].values()) // explained["requests"] == explained["latency_ns"]
            assert explained["parts_ns"].keys() <= why.PARTS.keys()
    requests = pl.read_parquet(tmp_path / "out" / "requests.parquet")
    assert requests["kind"].value_counts(sort=True)["count"].to_list() == [3, 3]
    longest = requests.select((pl.col("completed_ns") - pl.col("arrival_ns")).max()).item()
    assert longest == max(result["latency_ns"][kind]["max"] for kind in ("read", "write"))
    assert pl.read_parquet(tmp_path / "out" / "operations.parquet").height > 0
    without = json.loads(palimpsest("run", *PAGE, "--json").stdout)
    changed = {key for key in result if key not in ("sim", "provenance", "why") and result[key] != without[key]}
    assert not changed
    assert len(ps.load(tmp_path / "out").plot.why().data) >= 1
    shown = palimpsest("why", "out", cwd=tmp_path).stdout
    assert "p99.9" in shown
    assert "flash reads" in shown
    assert json.loads(palimpsest("why", "out", "--json", cwd=tmp_path).stdout) == {"page": result["why"]}
    assert 'id="why"' in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@CONTRACT
def test_why_needs_a_run_with_parts(palimpsest: Command, tmp_path: Path) -> None:
    palimpsest("run", *PAGE, "--out", "out", cwd=tmp_path)
    done = palimpsest("why", "out", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "out: this result has no parts of response times; expected a result of " in done.stderr
    done = palimpsest("run", *PAGE, "--operations", "slowest:3", "--operations-window", "1..9", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--operations-window 1..9: expected with --operations FILE, not a window" in done.stderr
