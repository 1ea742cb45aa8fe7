"""The leaderboard: order, intervals and stars from known figures; a layer that joins runs alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Command, figures
from palimpsest.errors import InputError
from palimpsest.leaderboard import entries, page, show, standings
from palimpsest.sweeps.finished import FinishedPoints, Kept, PointResult
from palimpsest.sweeps.values import Value

UNIT, CONTRACT = pytest.mark.unit, pytest.mark.contract
AXES = ("label.drive", "workload", "ftl", "seed")


def point(layer: str, workload: str, seed: int, wa: float | None, erased: int = 8) -> PointResult:
    result: dict[str, Any] | None = None
    if wa is not None:
        result = {"write_amplification": wa, "mapping": {"bytes_peak": 100}, "endurance": {"tbw": erased}}
    error = None if result else {"kind": "DeviceError", "text": "worn out"}
    outcome = {
        "identity": f"{layer}{workload}{seed}", "status": "done" if result else "failed", "result": result,
        "error": error, "worker": None, "wall_s": 1.0,
    }  # fmt: skip
    axes: dict[str, Value | None] = dict(zip(AXES, ("SLC", workload, layer, seed), strict=True))
    return PointResult(axes, str(outcome["identity"]), Kept.of(outcome), reused=False)


def board(points: list[PointResult], by: str = "wa", reference: str = "page") -> standings.Board:
    layers = [str(layer) for layer in dict.fromkeys(each.axes["ftl"] for each in points)]
    return standings.board(FinishedPoints("l", AXES, points, len(points)), [*layers, "llh"], reference, by)


@UNIT
def test_ratios_are_of_the_same_seed() -> None:
    """`b` takes half of `page` under one workload and twice under the other, and so the same, whatever the seed."""
    points = [point("page", work, seed, 2.0 * seed) for work in "xy" for seed in (1, 2)]
    points += [point("b", "x", seed, 1.0 * seed) for seed in (1, 2)]
    points += [point("b", "y", seed, 4.0 * seed) for seed in (1, 2)]
    points += [point("c", work, seed, 1.0 * seed, erased=4) for work in "xy" for seed in (1, 2)]
    found = board(points)
    first, *others = found.drives["SLC"]
    assert (first.layer, first.ratios["wa"].mean, sorted(first.best)) == ("c", 0.5, ["dram", "wa"])
    for each in others:
        assert each.ratios["wa"].mean == pytest.approx(1)
        assert each.ratios["wa"].deviation == pytest.approx(0)
        assert each.best == {"dram", "tbw"}
    assert first.values["x"]["wa"][:1] == (1.5,)
    assert found.left_out == {"SLC": ["llh"]}
    assert [each.layer for each in board(points, by="tbw").drives["SLC"]][-1] == "c"


@UNIT
def test_stars_mark_layers_not_decided_to_be_worse() -> None:
    """Intervals of `b` and `c` overlap, but `c` is worse with every seed; `d` has a wide interval."""
    values = {"page": (1, 1, 1), "b": (0.90, 0.91, 0.92), "c": (0.905, 0.915, 0.925), "d": (0.7, 1.0, 1.3)}
    found = board([point(layer, "x", seed, of[seed - 1]) for layer, of in values.items() for seed in (1, 2, 3)])
    stars = {each.layer: "wa" in each.best for each in found.drives["SLC"]}
    assert stars == {"b": True, "c": False, "d": True, "page": False}
    assert show.ratio(found.drives["SLC"][0].ratios["wa"]) == "0.91±0.02"


@UNIT
def test_a_figure_that_a_run_lacks_has_no_ratio() -> None:
    """Without erases a run has no TBW, and the others alone would compare with all runs of the reference."""
    points = [point(layer, work, seed, 1.0) for layer in ("page", "b") for work in "xy" for seed in (1, 2)]
    result = {"write_amplification": 1.0, "mapping": {"bytes_peak": 100}, "endurance": {"tbw": None}}
    last = points[-1]
    outcome = {
        "identity": last.identity, "status": "done", "result": result, "error": None, "worker": None, "wall_s": 1.0,
    }  # fmt: skip
    found = board([*points[:-1], PointResult(last.axes, last.identity, Kept.of(outcome), reused=False)])
    of = {each.layer: each for each in found.drives["SLC"]}
    assert sorted(of["b"].ratios) == ["dram", "wa"]
    assert of["page"].ratios["tbw"].mean == 1
    assert show.cells(of["b"])[5] == "-"
    assert any(line.startswith("-: not every run has the figure") for line in show.under(found, "SLC"))


@UNIT
def test_a_failed_run_is_named() -> None:
    points = [point("page", work, 1, 1.0) for work in "xy"] + [point("b", "x", 1, 0.5), point("b", "y", 1, None)]
    found = board(points)
    failed = next(each for each in found.drives["SLC"] if each.layer == "b")
    assert failed.error == "worn out"
    assert "b: worn out" in show.under(found, "SLC")
    assert "worn out" in page.page(found, 1, ["x", "y"], "")
    with pytest.raises(InputError, match=r"--reference b2: no such layer competes; did you mean b\?"):
        board(points, reference="b2")
    with pytest.raises(InputError, match=r"--reference llh: the layer has no result on SLC; expected one that has"):
        board(points, reference="llh")


@UNIT
def test_a_folder_has_the_options_that_are_not_given(tmp_path: Path) -> None:
    first = entries.entries(tmp_path, {"layers": ("page",), "seeds": 2}, ())
    first.write(tmp_path)
    assert entries.entries(tmp_path, {"requests": 7}, ("mga",)) == entries.Entries(("page", "mga"), seeds=2, requests=7)
    (tmp_path / entries.FILE).write_text("{")
    with pytest.raises(InputError, match=r"leaderboard.json: expected what `palimpsest leaderboard` wrote"):
        entries.entries(tmp_path, {}, ())


@CONTRACT
def test_a_layer_joins(palimpsest: Command, tmp_path: Path) -> None:
    """Built-in layers keep their runs, and a layer of a file runs alone."""
    few = ["--seeds", "2", "--requests", "300", "--workload", "oltp-zipf", "--workload", "trade"]
    done = palimpsest("leaderboard", "--ftl", "page,subpage,llh", *few, "--json", cwd=tmp_path)
    drives = figures(done)["drives"]
    assert [each["drive"] for each in drives] == list(entries.DRIVES)
    assert [each["left_out"] for each in drives] == [["llh"], [], ["llh"]]
    for drive in drives:
        of_page = next(each for each in drive["layers"] if each["layer"] == "page")
        assert {name: of["mean"] for name, of in of_page["ratios"].items()} == dict.fromkeys(of_page["ratios"], 1.0)
        assert "wa" in of_page["ratios"]
        means = [each["ratios"]["wa"]["mean"] for each in drive["layers"]]
        assert means == sorted(means)
    ring = ROOT / "examples" / "python" / "ring.py"
    joined = palimpsest("leaderboard", "--add", f"{ring}:Ring", "--json", cwd=tmp_path)
    layers = [each["layer"] for each in figures(joined)["drives"][0]["layers"]]
    assert any("Ring" in layer or layer == "ring" for layer in layers), layers
    kept = json.loads((tmp_path / "results" / "leaderboard" / entries.FILE).read_text())
    assert (kept["seeds"], kept["requests"]) == (2, 300)
    shown = (tmp_path / "results" / "leaderboard" / "leaderboard.html").read_text()
    assert "V-NAND" in shown
    assert shown.count('class="chart"') == 3


@CONTRACT
def test_wrong_input_is_refused(palimpsest: Command, tmp_path: Path) -> None:
    for arguments, said in (
        (["--ftl", "pag"], "did you mean page?"),
        (["--ftl", "page", "--reference", "mga"], "--reference mga: no such layer competes"),
        (["--seeds", "0"], "--seeds"),
    ):
        done = palimpsest("leaderboard", *arguments, "--requests", "10", cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr
