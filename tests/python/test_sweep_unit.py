"""Sweep files, ranges, tables and folders, without simulation."""

import io
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import fake_core
from palimpsest import errors
from palimpsest.charts import LIGHT
from palimpsest.result import Result
from palimpsest.sweeps import charts, definition, fleet, lines, report, store, table, values
from palimpsest.sweeps.finished import PointResult
from palimpsest.sweeps.results import Sweep, load, manifest

pytestmark = pytest.mark.unit

FILE = """\
title = "one"

[base]
workload = "trade"
set = { "ftl.victim" = "fifo" }

[grid]
ftl = ["page", "mga"]
ssd.over_provisioning = [
  "7%",
  "28%",
]

[[zip]]
"part.nop" = [1, 4]
seed = [7, 8]

[[exclude]]
ftl = "mga"
"part.nop" = 1

[[points]]
ftl = "subpage"

[report]
x = "part.nop"
"""


def read(text: str) -> definition.Definition:
    return definition.from_text(text, "a.toml", Path("/x"))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"from": 1, "to": 16, "factor": 2}, [1, 2, 4, 8, 16]),
        ({"from": 1, "to": 10, "factor": 3}, [1, 3, 9]),
        ({"from": 8, "to": 1, "factor": 0.5}, [8, 4, 2, 1]),
        ({"from": 0.1, "to": 0.5, "step": 0.1}, [0.1, 0.2, 0.3, 0.4, 0.5]),
        ({"from": 3, "to": 1, "step": -1}, [3, 2, 1]),
        ({"from": "4KiB", "to": "16KiB", "factor": 2}, ["4KiB", "8KiB", "16KiB"]),
        ({"from": "7%", "to": "28%", "step": "7%"}, ["7%", "14%", "21%", "28%"]),
        ({"from": "7%", "to": "8%", "step": 0.5}, ["7%", "7.5%", "8%"]),
        ({"from": 5, "to": 5, "step": 1}, [5]),
    ],
)
def test_ranges_are_written_out(written: dict[str, object], expected: list[object]) -> None:
    assert values.expand(written) == expected


@pytest.mark.parametrize(
    "written",
    [
        {"from": 1},
        {"from": 1, "to": 3},
        {"from": 1, "to": 3, "step": 1, "factor": 2},
        {"from": 1, "to": 3, "step": 0},
        {"from": 1, "to": 3, "step": -1},
        {"from": 1, "to": 3, "factor": 1},
        {"from": 0, "to": 3, "factor": 2},
        {"from": "4KiB", "to": 16, "factor": 2},
        {"from": "4KiB", "to": "16KiB", "step": "1MiB"},
        {"from": 0, "to": 1, "step": 1e-9},
        {"from": "a", "to": "b", "step": 1},
        {"from": 1, "to": 3, "stepp": 1},
    ],
)
def test_wrong_ranges_are_refused(written: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"expected|the same unit|leads from"):
        values.expand(written)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("part.page_size", "16KiB", (16384.0, "bytes")),
        ("part.t_read", "35us", (35000.0, "ns")),
        ("ssd.over_provisioning", "28%", (0.28, "share")),
        ("part.bus_rate", "1.2GB/s", (1.2e9, "bytes_per_s")),
        ("workload.bs", "4k", (4096.0, "bytes")),
        ("workload.rate_iops", "4k", None),
        ("ftl.victim", "greedy", None),
        ("part.nop", 4, None),
    ],
)
def test_quantities_have_base_units(key: str, value: Any, expected: object) -> None:
    assert values.quantity(key, value) == expected


def test_grid_zip_exclude_and_points() -> None:
    read_file = read(FILE)
    assert read_file.axes == ["ftl", "ssd.over_provisioning", "part.nop", "seed"]
    points = read_file.points()
    # 2 layers x 2 over-provisionings x 2 steps of the zip, less mga with a nop of 1, and the single point.
    assert len(points) == 2 * 2 * 2 - 2 + 1
    assert points[0] == ("grid", {"ftl": "page", "ssd.over_provisioning": "7%", "part.nop": 1, "seed": 7})
    assert points[1][1] == {"ftl": "page", "ssd.over_provisioning": "7%", "part.nop": 4, "seed": 8}
    assert points[-1] == ("points.0", {"ftl": "subpage"})
    assert read_file.base == {"workload": "trade", "ftl.victim": "fifo"}


LABELS = """\
[[zip]]
label.order = ["any", "turns", "bursts"]
controller.commands = [0, 32, 32]
host.burst = [1, 1, 8]

[grid]
ftl = ["page", "mga"]
"""


def test_labels_name_settings_and_replace_their_axes() -> None:
    found = read(LABELS)
    assert found.axes == ["ftl", "label.order", "controller.commands", "host.burst"]
    points = [settings for _, settings in found.points()]
    made = [
        PointResult.of({**settings}, outcome(str(at), ftl=settings["ftl"]), reused=False)
        for at, settings in enumerate(points)
    ]
    sweep = Sweep("labels", found.axes, made, len(made))
    assert sweep.named == ["ftl", "label.order"]
    assert charts.first_shown(sweep)["x"] in sweep.named
    page = report.page(sweep)
    assert "order (3)" in page
    assert "host.burst" not in page
    shown = Sweep("labels", found.axes, made, len(made), shown={"x": "host.burst"})
    assert shown.named == ["ftl", "label.order", "host.burst"]


def test_points_alone_have_no_grid() -> None:
    assert [
        point for _, point in read("[[points]]\nseed = 1\n[[points]]\nseed = 2\n[[points]]\nseed = 1\n").points()
    ] == [
        {"seed": 1},
        {"seed": 2},
    ]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 1),
        (("base", "workload"), 4),
        (("base", "set", "ftl.victim"), 5),
        (("grid", "ssd", "over_provisioning"), 9),
        (("grid", "nowhere"), 7),
        (("zip", 0, "part.nop"), 15),
        (("exclude", 0, "part.nop"), 20),
        (("points", 0), 22),
        (("nowhere",), 1),
    ],
)
def test_keys_have_lines(path: tuple[str | int, ...], line: int) -> None:
    assert lines.line_of(FILE, path) == line


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[grid]\nftl = [", "a.toml:2: expected TOML"),
        ("[gird]\n", "a.toml:1: gird: unknown table; did you mean grid?"),
        ("title = 3\n", "a.toml:1: title: expected text"),
        ("[base]\n\nprecond = 1\n", "a.toml:3: base.precond: unknown option; did you mean precondition?"),
        ("[base]\nseed = [1, 2]\n", "a.toml:2: base.seed: expected one value"),
        ("[grid]\nseed = []\n", "a.toml:2: grid.seed: the axis is empty"),
        ("[grid]\nseed = [1, 1]\n", "a.toml:2: grid.seed: 1 occurs twice"),
        ("[grid]\nseed = [1, [2]]\n", "a.toml:2: grid.seed: expected text, a number"),
        ("[grid]\nseed = {from = 1}\n", "a.toml:2: grid.seed: expected a range such as"),
        ("[grid]\nseed = [1]\n[[zip]]\nseed = [2]\n", "a.toml:4: zip[0].seed: this axis is in the grid already"),
        (
            "[[zip]]\nseed = [1]\nftl = ['a', 'b']\n",
            "a.toml:1: zip[0]: expected axes of the same length; seed has 1, ftl",
        ),
        ("[grid]\nseed=[1]\n[[exclude]]\nftl = 'a'\n", "a.toml:4: exclude[0].ftl: expected an axis of the grid"),
        ("[report]\ny = 'a'\n", "a.toml:2: report.y: unknown key"),
        (
            "[base]\nseed = 1\n[report]\nscale = 'cubic'\n",
            "a.toml:4: report.scale: expected linear or log, found 'cubic'",
        ),
        ("[[zip]]\nseed = [1, 1]\nftl = ['a', 'a']\n", "a.toml:1: zip[0]: values 1 and 2 of all axes are equal"),
        ("[[zip]]\nseed = [1, 2]\nlabel.a = ['x', 'x']\n", "a.toml:3: zip[0].label.a: 'x' occurs twice"),
        ("[[zip]]\nseed = [1, 2]\nlabel.a = [1, 2]\n", "a.toml:3: zip[0].label.a: expected text, found 1"),
        ("[[zip]]\nlabel.a = ['x', 'y']\n", "a.toml:2: zip[0].label.a: a label names the settings beside it"),
        ("[grid]\nlabel.a = ['x', 'y']\n", "a.toml:2: grid.label.a: a label names the settings beside it"),
        (
            "[grid]\nseed = [1]\n[report]\nx = 'ftl'\n",
            "a.toml:4: report.x: ftl is no axis of this sweep; expected seed",
        ),
        ("points = 3\n", "a.toml:1: points: expected tables that begin with [[points]]"),
        (
            "[grid]\nseed = {from = 1, to = 9999, step = 1}\nrequests = {from = 1, to = 9999, step = 1}\n",
            "at most 100,000",
        ),
    ],
)
def test_mistakes_have_file_line_and_expectation(text: str, says: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        read(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_mappings_become_toml() -> None:
    data = {
        "title": 'a "quoted"\nline \\ µ',
        "base": {"set": {"ftl.victim": "fifo"}, "skip_bad": True},
        "grid": {"ssd.channels": [1, 2], "x.y": {"from": 0.5, "to": 2, "factor": 2}},
        "points": [{"seed": 1}, {"seed": 2}],
    }
    assert tomllib.loads(definition.to_toml(data)) == data
    with pytest.raises(errors.InputError, match="expected text, numbers"):
        definition.from_mapping({"base": {"seed": None}}, Path())


def outcome(identity: str, **options: Any) -> dict[str, Any]:
    result = fake_core.summary(
        {"ftl": "page", "requests": 1000, "fidelity": "timed", "ssd": "default", "workload": "trade", "seed": 1,
         "payload": "none", "precondition": None} | options
    )  # fmt: skip
    return {"identity": identity, "status": "done", "result": result, "error": None, "worker": "a:1", "wall_s": 0.1}


def failed(identity: str, kind: str = "DeviceError") -> dict[str, Any]:
    error = {"kind": kind, "text": "the drive is full"}
    return {"identity": identity, "status": "failed", "result": None, "error": error, "worker": None, "wall_s": None}


@pytest.fixture
def sweep() -> Sweep:
    rows = [
        PointResult.of(
            {"ftl": ftl, "part.page_size": size, "seed": seed},
            outcome("i", ftl=ftl, requests=1000 * seed),
            reused=False,
        )
        for ftl in ("page", "mga")
        for size in ("16KiB", "4KiB")
        for seed in (1, 2)
    ]
    broken = PointResult.of({"ftl": "block", "part.page_size": "4KiB", "seed": 1}, failed("f"), reused=True)
    return Sweep("a </script> title", ["ftl", "part.page_size", "seed"], [*rows, broken], 10)


def test_table_has_typed_axes_and_every_figure(sweep: Sweep) -> None:
    frame = sweep.to_polars()
    assert frame.height == 9
    types = {name: frame.schema[name] for name in ("ftl", "part.page_size", "part.page_size_bytes", "seed", "error")}
    assert types == {
        "ftl": pl.String(), "part.page_size": pl.String(), "part.page_size_bytes": pl.Float64(), "seed": pl.Int64(),
        "error": pl.String(),
    }  # fmt: skip
    single = Result(outcome("i")["result"]).to_polars()
    assert {name for name in single.columns if not name.startswith("sim.")} <= set(frame.columns)
    last = frame.row(8, named=True)
    assert (last["status"], last["error"], last["flash.erases"]) == ("failed", "the drive is full", None)
    assert sweep.to_pandas()["latency_ns.write.p99"].notna().sum() == 8


def test_columns_hold_all_of_their_values() -> None:
    points = [PointResult.of({"a": each}, outcome("i")) for each in (1, 2.5, "x", True, None)]
    assert table.data_frame(["a"], points)["a"].to_list() == ["1", "2.5", "x", "true", None]
    seeds = [PointResult.of({"seed": each}, outcome("i")) for each in (0, 2**64 - 1)]
    assert table.data_frame(["seed"], seeds)["seed"].to_list() == [0, 2**64 - 1]


def test_tables_made_in_parts_equal_the_whole(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    points = list(sweep)
    mixed: list[object] = [1, None, 2**63, 0.5, [1], "text", True]
    for point, value in zip(points, [None, *mixed], strict=False):
        data = outcome("i") | {"identity": point.identity}
        data["result"] |= {"mixed": value, "wide": 2**63 if value == 0.5 else 1, "part": 1 if value is None else 2.5}
        points[points.index(point)] = PointResult.of(point.axes, data)
    made = Sweep(sweep.title, sweep.axes, points, 10)
    wholes = made.to_polars(), made.latency(), table.times(points)
    assert wholes[0].schema["wide"] == pl.UInt64()
    assert wholes[0]["mixed"].to_list()[1:8] == ["1", None, str(2**63), "0.5", None, "text", "true"]
    for size in (1, 2, 4):
        monkeypatch.setattr(table, "_PART", size)
        for whole, again in zip(wholes, (made.to_polars(), made.latency(), table.times(points)), strict=True):
            assert again.equals(whole)
            assert again.schema == whole.schema


def test_axes_are_drawn_in_order_of_their_numbers(sweep: Sweep) -> None:
    assert charts.axis(sweep, "part.page_size") == {
        "name": "part.page_size", "labels": ["4KiB", "16KiB"], "numbers": [4096.0, 16384.0], "unit": "bytes",
    }  # fmt: skip
    assert charts.axis(sweep, "ftl")["numbers"] is None
    shown = charts.first_shown(sweep)
    assert (shown["figure"], shown["x"], shown["colour"]) == ("latency_ns.write.p99", "part.page_size", "ftl")


def test_plot_averages_repetitions(sweep: Sweep) -> None:
    figure = sweep.plot("requests.write", "part.page_size", "ftl")
    page_line = figure.data[0]
    assert (page_line.name, list(page_line.x)) == ("page", [4096.0, 16384.0])
    # 70 % writes of 1000 and of 2000 requests.
    assert list(page_line.y) == [1050.0, 1050.0]
    # Student's t of two seeds: 12.7 times their error, 350.
    assert list(figure.data[0].error_y.array) == pytest.approx([12.706 * 350] * 2, rel=1e-4)
    with pytest.raises(ValueError, match="no figure 'x'"):
        sweep.plot("x")
    with pytest.raises(ValueError, match="no axis 'y'"):
        sweep.plot(x="y")


def test_page_holds_what_it_draws(sweep: Sweep) -> None:
    page = report.page(sweep)
    assert "<title>a &lt;/script&gt; title" in page
    head = '<script id="data" type="application/json">'
    data = json.loads(page[page.index(head) + len(head) :].partition("</script>")[0])["sweep"]
    assert len(data["points"]) == 9
    assert data["points"][8] == [2, 0, 0]
    figure = next(each for each in data["figures"] if each["name"] == "latency_ns.write.p99")
    assert (figure["unit"], len(figure["values"]), figure["values"][8]) == ("ns", 9, None)
    assert "the drive is full" in page
    assert "1 of 10 points are not finished yet" in page
    assert "http://" not in page.split("<script>")[0]
    assert "<table" in sweep._repr_html_()


def test_outcomes_are_kept_and_transient_failures_are_retried(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    with store.Store(folder) as kept:
        for each in (outcome("a"), failed("b"), failed("c", "WorkerLost")):
            kept.keep(each)
        (folder / "points" / "d.json").write_text('{"identity": "d", "sta')
        assert set(dict(kept.finished(["a", "b", "c", "d", "e"]))) == {"a", "b"}
        assert not list(folder.glob("points/*.partial"))
        kept.clear()
        assert not dict(kept.finished(["a", "b"]))


DAMAGES = {
    "wrong JSON": b"{",
    "an empty table": b"{}",
    "NaN": b'{"identity": "a", "status": "done", "result": {"x": NaN}, "error": null}',
    "deep nesting": b"[" * 100_000,
    "no result": b'{"identity": "a", "status": "done", "result": null, "error": null}',
    "a list": b"[]",
    "bytes": b"\xff\xfe",
}


@pytest.mark.parametrize("damage", [*DAMAGES, "a changed figure", "a folder", "a link"])
def test_a_damaged_point_is_run_anew(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "s"
    notes: list[str] = []
    with store.Store(folder) as kept:
        kept.keep(outcome("a"))
        path = folder / "points" / "a.json"
        assert dict(kept.finished(["a"], notes.append)).keys() == {"a"}
        assert not notes
        if damage == "a folder":
            path.unlink()
            path.mkdir()
        elif damage == "a link":
            path.replace(tmp_path / "elsewhere.json")
            path.symlink_to(tmp_path / "elsewhere.json")
        elif damage == "a changed figure":
            written = path.read_bytes()
            path.write_bytes(written.replace(b'"erases":', b'"erases":1', 1))
            assert path.read_bytes() != written
        else:
            path.write_bytes(DAMAGES[damage])
        assert not dict(kept.finished(["a"], notes.append))
        assert len(notes) == 1
        assert notes[0].startswith(f"{path}: ")
        assert notes[0].endswith("; the point is run anew")
        kept.keep(outcome("a"))
        assert dict(kept.finished(["a"])).keys() == {"a"}


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / ".lock").symlink_to(precious)
    with pytest.raises(errors.InputError, match="expected a folder"):
        store.Store(folder)
    (folder / ".lock").unlink()
    (folder / "sweep.json").symlink_to(precious)
    with store.Store(folder) as kept:
        kept.write("sweep.json", b"{}")
    assert (precious.read_text(), (folder / "sweep.json").read_text()) == ("precious", "{}")
    (folder / "points").rmdir()
    (folder / "points").symlink_to(tmp_path)
    with pytest.raises(errors.InputError, match="points is a link"):
        store.Store(folder)


def test_times_of_the_simulator_are_apart() -> None:
    points = [PointResult.of({"seed": 1}, outcome("a"), reused=False)]
    frame = table.data_frame(["seed"], points)
    assert not [name for name in frame.columns if name.startswith("sim.")]
    assert "sim.wall_s" in table.times(points).columns
    sweep = Sweep("t", ["seed"], points, 1)
    assert not [name for name in charts.figures(sweep) if name.startswith("sim.")]


def test_a_page_survives_any_text() -> None:
    text = "<!--<script></script>"
    points = [PointResult.of({"workload": text}, outcome("a"), reused=False)]
    page = report.page(Sweep(text, ["workload"], points, 1, text=text))
    assert "<!--<script" not in page.replace("<!--<script>", "", 0).split("plotly", 1)[0]
    assert text not in page
    assert "\\u003c!--\\u003cscript>" in page


FLEET = """
[grid]
ftl = ["page", "mga"]
seed = {from = 1, to = 41, step = 1}
[report]
fleet = "seed"
"""


def worn(seed: Any, ftl: Any) -> dict[str, Any]:
    """A drive whose TBW grows with the seed; every tenth drive fails, and the last loses data."""
    if seed % 10 == 0:
        return failed("f")
    made = outcome("i", ftl=ftl)
    # Enough erases for a lifetime.
    made["result"]["flash"] |= {"erases": 1_000_000}
    made["result"] |= {"endurance": {"tbw": 100.0 * seed}, "reliability": {"failed_reads": int(seed == 41)}}
    return made


def test_drives_that_differ_in_the_axes_of_fleet_are_one_fleet() -> None:
    definition = read(FLEET)
    points = [PointResult.of({**each}, worn(each["seed"], each["ftl"])) for _, each in definition.points()]
    sweep = Sweep("a fleet", definition.axes, points, 82, shown=definition.report)
    known = [100.0 * seed for seed in range(1, 42) if seed % 10]
    page, mga = sweep.fleets()
    assert (page.axes, mga.axes) == ({"ftl": "page"}, {"ftl": "mga"})
    assert (page.drives, page.failed, page.with_read_errors) == (41, 4, 1)
    assert page.values["endurance.tbw"] == known
    spread = sweep.spread("endurance.tbw", ["ftl"], (0, 1, 37.5, 99, 100))
    expected = np.percentile(known, (0, 1, 37.5, 99, 100))
    assert spread.rows()[0] == ("page", 41, 4, *map(pytest.approx, expected))
    reported = json.loads(sweep.to_json())["fleets"][1]
    assert reported["figures"]["endurance.tbw"]["p50"] == pytest.approx(np.percentile(known, 50))
    shown = report.page(sweep)
    assert 'id="fleet-0"' in shown
    assert "The share of drives with at most this TBW" in shown
    assert charts.first_shown(sweep)["x"] == "ftl"
    drawn = fleet.chart([page, mga], "endurance.tbw")["data"]
    assert [(line["name"], line["x"][-1], line["y"][0]) for line in drawn] == [
        ("ftl page", 4100.0, 0), ("ftl mga", 4100.0, 0),
    ]  # fmt: skip
    plotted = sweep.plot_fleets("endurance.tbw")
    assert [list(line.x) for line in plotted.data] == [line["x"] for line in drawn]
    assert {line.line.color for line in plotted.data} == set(LIGHT[:2])
    with pytest.raises(ValueError, match=r"no figure 'x' of the fleets; expected one of endurance\.tbw"):
        sweep.plot_fleets("x")
    with pytest.raises(ValueError, match=r"no fleets; expected the axes of a fleet as `fleet` in \[report\]"):
        Sweep("none", definition.axes, points, 82).plot_fleets()
    printed = io.StringIO()
    Console(width=120, file=printed).print(sweep)
    assert re.search(r"page +TBW +41 +4 +1 +100", printed.getvalue()), printed.getvalue()


def test_a_fleet_needs_axes_of_the_sweep() -> None:
    with pytest.raises(errors.InputError, match=r":6: report.fleet: age is no axis of this sweep; expected ftl, seed"):
        read(FLEET.replace('"seed"', '"seed, age"'))


def test_one_sweep_writes_to_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    code = (
        f"from palimpsest.sweeps.store import Store\nfrom pathlib import Path\nwith Store(Path({str(folder)!r})): pass"
    )
    with store.Store(folder):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert f"process {os.getpid()} on" in done.stderr
        assert "is running a sweep there" in done.stderr
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_folders_of_other_results_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(errors.InputError, match="expected a folder of its own"):
        store.Store(tmp_path)


def test_a_folder_is_read_without_a_simulator(tmp_path: Path) -> None:
    with store.Store(tmp_path) as kept:
        kept.write("sweep.json", manifest("t", ["seed"], {}, [({"seed": 1}, "a"), ({"seed": 2}, "b")]))
        kept.keep(outcome("b"))
    found = load(tmp_path)
    assert (len(found), found.total, found[0].axes) == (1, 2, {"seed": 2})
    with pytest.raises(errors.InputError, match="no such file"):
        load(tmp_path / "no")
    (tmp_path / "sweep.json").write_text("[]")
    with pytest.raises(errors.InputError, match="expected what `palimpsest sweep` wrote"):
        load(tmp_path)
