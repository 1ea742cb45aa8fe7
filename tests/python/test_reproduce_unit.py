"""Claims, batches and pages of reproductions, without the simulator."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import Command
from palimpsest import reproduce as reproduction
from palimpsest.errors import InputError
from palimpsest.options import RunOptions
from palimpsest.reproduce import claims, figures, measures, outputs, sweeps, templates
from palimpsest.reproduce.batch import Batch
from palimpsest.reproduce.papers import llh, spread
from palimpsest.reproduce.papers.llh import model
from palimpsest.reproduce.study import Study, load, stated

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("paper", "ours", "agrees"),
    [
        (-40.0, -40.0, True),
        # 0.6 to the power of 0.75 and of 1.25.
        (-40.0, -31.9, True),
        (-40.0, -31.8, False),
        (-40.0, -47.1, True),
        (-40.0, -47.2, False),
        (-40.0, 40.0, False),
        (-40.0, -100.0, False),
        (16.0, 20.3, True),
        (16.0, 20.4, False),
        (-40.0, None, False),
    ],
)
def test_an_effect_agrees_within_a_quarter_of_the_logarithm(paper: float, ours: float | None, agrees: bool) -> None:
    assert claims.effect("x", "x", paper, ours).agrees is agrees


@pytest.mark.parametrize("fall", [10.0, 56.0, 66.8])
def test_a_fact_agrees_as_a_time_or_as_a_rate(fall: float) -> None:
    def as_rate(change: float) -> float:
        return 100 * (1 / (1 + change / 100) - 1)

    assert claims.distance(-fall, -56.0) == pytest.approx(claims.distance(as_rate(-fall), as_rate(-56.0)))


def test_an_amount_agrees_within_a_quarter() -> None:
    def agrees(ours: float | None) -> bool:
        return claims.amount("x", "x", 20, ours, "uJ").agrees

    assert [agrees(ours) for ours in (15.9, 16, 25, 25.1, -20, None)] == [False, True, True, False, False, False]


def test_ranges_and_bounds() -> None:
    def ratio(ours: float | None) -> bool:
        return claims.within("x", "x", 3, 4, ours, "times", "3.X").agrees

    assert [ratio(ours) for ours in (2.99, 3, 3.99, 4, None)] == [False, True, True, False, False]
    assert [claims.at_most("x", "x", 16.5, ours).agrees for ours in (-1, 16.5, 16.6, None)] == [
        True,
        True,
        False,
        False,
    ]
    assert [claims.more_than("x", "x", 1, ours, "times", "more").agrees for ours in (1, 1.1, None)] == [
        False,
        True,
        False,
    ]


def test_seeds_give_a_mean_and_a_spread() -> None:
    effects: list[dict[str, float | None]] = [{"a": 1.0, "b": None}, {"a": 4.0, "b": 2.0}]
    assert measures.over_seeds(effects) == {"a": 2.5, "b": 2.0}
    assert measures.seeds_note(effects, "a") == "2 seeds: 1 to 4."
    assert measures.seeds_note(effects[:1], "b") == ""
    rows = pl.DataFrame({"ftl": ["y", "x", "y", "x"], "erases": [1, 2, 5, 2]})
    assert measures.with_spread(rows, ("ftl",)).rows(named=True) == [
        {"ftl": "y", "erases": 3.0, "erases_low": 1.0, "erases_high": 5.0},
        {"ftl": "x", "erases": 2.0, "erases_low": 2.0, "erases_high": 2.0},
    ]


def test_bars_have_whiskers_and_the_papers_marks() -> None:
    data = pl.DataFrame({"workload": ["a", "b"], "ftl": ["x", "x"], "us": [2.0, None], "us_low": [1.0, None]})
    data = data.with_columns(us_high=pl.Series([3.0, None]), paper=pl.Series([2.5, None]))
    plain = figures.panels(data.select("workload", "ftl", "us"), [("t", figures.bars("workload", "ftl", "us", "us"))])
    drawn = figures.panels(data, [("t", figures.bars("workload", "ftl", "us", "us", paper=("paper",)))])
    assert ("LineCollection" in plain, "paper</text>" in plain) == (False, False)
    # A whisker, and the mark, which the legend names.
    assert drawn.count('id="LineCollection') == 2
    assert drawn.count("paper</text>") == 1


def test_papers_that_do_not_exist_yet_are_refused() -> None:
    assert reproduction.chosen("all") == list(reproduction.PAPERS)
    with pytest.raises(
        InputError, match="reproduce nothing: this reproduction does not exist yet; expected one of mga"
    ):
        reproduction.chosen("nothing")


def test_a_batch_runs_each_thing_once(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    run = fake.run

    def counted(options: str, progress: Any) -> Any:
        calls.append(options)
        return run(options, progress)

    monkeypatch.setattr("palimpsest._core.run", counted)
    batch = Batch(jobs=2)
    page, other = RunOptions(ftl="page", workload="rw=read,n=100"), RunOptions(ftl="mga", workload="rw=read,n=100")
    batch.run([page, other, page])
    assert batch[page]["ftl"] == "page"
    assert batch[other]["ftl"] == "mga"
    assert len(calls) == len(batch) == 2


def test_seeds_of_a_batch_begin_where_one_says(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    run = fake.run

    def noted(options: str, progress: Any) -> Any:
        seeds.append(json.loads(options)["seed"])
        return run(options, progress)

    monkeypatch.setattr("palimpsest._core.run", noted)
    batch = Batch(first_seed=11)
    runs = [RunOptions(ftl="page", workload="rw=read,n=100", seed=seed) for seed in (1, 2, 3)]
    batch.run(runs)
    assert sorted(seeds) == [11, 12, 13]
    assert batch[runs[0]]["ftl"] == "page"
    assert len(seeds) == 3


def changes_of(point: dict[str, Any]) -> int:
    """How many names a point changes."""
    return len(point.keys() - {"what", "value", "quick", "scale", "repeats", "trade_only", "shorter"})


@pytest.mark.parametrize("paper", reproduction.PAPERS)
def test_points_change_the_runs_one_thing_each(paper: str) -> None:
    study = Study(paper, Batch(), full=True)
    grids, together = study.data["sweep"]["grids"], study.data["sweep"].get("together")
    default, *others = study.unknowns
    base = list(study.runs(grids, default))
    for point in others:
        runs = list(study.runs(grids, point))
        assert runs != base, point
        # Two keys of a workload, or a key and a name, are two changes at once.
        assert changes_of(point) == 1 or point["what"] == together, point
        for options in runs:
            names = [override.split("=")[0] for override in options.overrides]
            assert len(names) == len(set(names)), names
    if "implied" in study.data["points"]:
        near = study.neighbours
        made = [list(study.runs(study.data["near"]["grids"], point)) for point in near]
        assert all(runs != made[0] for runs in made[1:])
        assert (near[0]["what"], near[0]["value"]) == ("implied", "as found")


@pytest.mark.parametrize("paper", reproduction.PAPERS)
def test_descriptions_of_papers_are_whole(paper: str) -> None:
    """Every grid, table, claim, note and scale that is named exists, and every one that exists is named."""
    data = load(paper)
    tables, grids = data["tables"], data["grids"]
    used = {each["grid"] for each in tables.values() if "grid" in each} | {*data["sweep"]["grids"]}
    used |= {*data.get("near", {}).get("grids", ())}
    assert used <= grids.keys()
    shown = {*(each["table"] for each in data["figures"] if "table" in each)}
    shown |= {each["table"] for each in data.get("templates", {}).values()}
    assert shown <= {*tables, "sweep"}
    assert {each.get("run", "main") for each in grids.values()} <= data["runs"].keys() or paper == "womv"
    for sizes in data["sizes"].values():
        assert {"main", "swept"} <= sizes.keys()
        assert set(sizes.values()) <= data["scales"].keys()
    identifiers = [each["id"] for each in data["figures"]]
    assert len(identifiers) == len(set(identifiers))
    for row in stated(paper):
        names = row["claims"].split()
        assert set(names) <= data["claims"].keys(), row
        assert bool(names) != bool(row["why"]), f"either claims, or why there is none: {row}"


def test_templates_are_filled() -> None:
    names = {"blocks": 1600, "layer": "mga", "run": templates.fields({"flash": {"erases": 3}})}
    assert templates.fill("{blocks * 2}", names) == 3200
    assert templates.fill("{blocks:,} blocks of {layer}", names) == "1,600 blocks of mga"
    assert templates.fill("{'fill:' + str(blocks)}%", names) == "fill:1600%"
    assert templates.fill({"a": ["{run.flash.erases}", 2, "b"]}, names) == {"a": [3, 2, "b"]}
    with pytest.raises(NameError):
        templates.fill("{missing}", names)


def test_bounds_are_those_of_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 channels of 2 chips: IOPS <= 4 min(2 / (tR(n) + tDMA(n)), 1 / tDMA(n)), with the times of Table I."""
    table = {"2k": (67.2, 78.8, 213.3), "4k": (67.2, 76.9, 160.0)}
    for size, bounds in table.items():
        text = f"rw=randread,bs={size},blockalign={size}"
        monkeypatch.setattr("palimpsest._core.workload_spec", lambda _name, text=text: text)
        found = [spread.sizes_bound(layer, "any") / 1000 for layer in load("spread")["constants"]["layers"]]
        assert found == pytest.approx(bounds, abs=0.05)


def test_sensing_times_of_other_words_follow_table_1() -> None:
    assert spread.sensing_table(2) == list(spread.T_READ_US)
    assert spread.sensing_table(4) == [45, 65, 85, 99]
    halves = spread.sensing_table(1)
    assert halves[1::2] == list(spread.T_READ_US)
    assert halves[0] == 30
    assert halves[14] == 97


def test_the_reason_names_what_moves_most_and_what_comes_nearest() -> None:
    points = [
        ("default", "as it is", -20.0),
        ("skew", "none", -25.0),
        ("footprint", "small", -38.0),
        ("footprint", "large", 5.0),
        ("collection", "none", None),
    ]
    rows = [
        {"unknown": what, "value": value, "label": f"{what}: {value}", "erases_trade": x} for what, value, x in points
    ]
    text = sweeps.reason(
        pl.DataFrame(rows), "erases_trade", -40, lambda ours: claims.effect("x", "x", -40, ours).agrees
    )
    assert "from -20.0: footprint moves it most (small: -38.0; large: 5.0)" in text
    assert "nearest to the paper is footprint: small, with -38.0, which agrees" in text
    text = sweeps.reason(pl.DataFrame(rows), "erases_trade", -40, lambda _ours: False, together="footprint")
    assert "skew moves it most" in text


def made() -> outputs.Reproduction:
    data = pl.DataFrame({"workload": ["a", "a", "b"], "ftl": ["x", "y", "x"], "value": [1.0, 2.0, 3.0]})
    svg = figures.panels(data, [("title", figures.bars("workload", "ftl", "value", "us"))])
    claim = claims.effect("erases", "fewer <erases>", -40, -10.0).with_note("the reason")
    return outputs.Reproduction(
        "mga", "A paper", ("synthetic",), (claim,), (figures.Figure("f1", "F", "n", data, svg),)
    )


@pytest.mark.parametrize(
    ("ours", "without", "neutral", "left"),
    [(-50, -25, None, 41.5), (-50, 0, None, 0), (100, 100, None, 100), (0.8, 0.9, 1, 50), (0.8, 1.1, 1, -50),
     (4, 1, 0, 25), (1, 1, 1, None), (0, -10, None, None), (None, 1, 0, None)],
)  # fmt: skip
def test_the_share_that_is_left(ours: float | None, without: float, neutral: float | None, left: float | None) -> None:
    claim = claims.Claim("x", "x", 1, ours, "%", agrees=True, neutral=neutral)
    found = claims.left(claim, without)
    assert found == left if left is None else found == pytest.approx(left, abs=0.1)


def test_a_claim_agrees_by_number_and_mechanism() -> None:
    described = {"text": "x", "rule": "effect", "paper": -40, "mechanism": "reuse"}
    good, bad = claims.judge("x", described, -38.0), claims.judge("x", described, -10.0)
    cases = [
        (good.without("off", 20), True, "yes"), (good.without("off", 50.1), False, "no: mechanism"),
        (good.without("off", None), True, "yes: number"), (bad.without("off", 20), False, "no: number"),
        (bad.without("off", 90), False, "no: number and mechanism"),
        (claims.judge("x", described | {"data": "entered"}, -38.0), True, "data"),
    ]  # fmt: skip
    for claim, agrees, verdict in cases:
        assert (claim.agrees, outputs._verdict(claim)) == (agrees, verdict)
        assert claim.number_agrees is (claim.ours == -38.0)


def test_counts_name_claims_whose_mechanism_no_run_tests() -> None:
    described = {"text": "x", "rule": "effect", "paper": -40}
    claimed = tuple(claims.judge(str(ours), described, ours) for ours in (-38.0, -10.0, None))
    one = replace(made(), claims=claimed, verdict="The reason.")
    assert [claim.to_dict()["verdict"] for claim in claimed] == ["agrees", "contradicts", "undecided"]
    assert one.to_dict()["verdict"] == (
        "1 of 3 claims agree by number alone: no mechanism was tested for them, 1 undecided. The reason."
    )
    assert "number and mechanism" not in outputs.page([one]).split("<h2>Claims</h2>")[0]
    tested = replace(one, claims=(claimed[0].without("off", 20), *claimed))
    assert tested.to_dict()["verdict"].startswith("1 of 4 claims agree by number and mechanism, 1 by number alone")


STATED = (
    {"where": "IV", "says": "erases fall by 40 %", "claims": "erases", "why": ""},
    {"where": "V", "says": "reads gain, too", "claims": "", "why": "read off a picture"},
)


def test_rows_that_cannot_fail_are_not_counted() -> None:
    one = made()
    data = replace(one.claims[0], data="entered and computed back")
    both = replace(one, claims=(*one.claims, data), verdict="Half of it.", stated=STATED)
    assert both.counted == list(one.claims)
    page = outputs.page([both])
    assert "0 of 1 claims agree by number and mechanism" in page
    assert "Half of it." in page
    assert "1 of 2 sentences that state a number, an order or a cause are claims" in page
    assert "read off a picture" in page
    assert page.index("What holds, what does not") < page.index("<h2>Claims</h2>")


def test_the_folder_has_data_pictures_and_one_page(tmp_path: Path) -> None:
    outputs.write(made(), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"f1.parquet", "f1.csv", "f1.svg", "index.html", "reproduce.json"}
    assert pl.read_parquet(tmp_path / "f1.parquet").equals(pl.read_csv(tmp_path / "f1.csv"))
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "fewer &lt;erases&gt;" in page
    assert "the reason" in page
    assert "data:image/svg+xml;base64," in page
    assert "http" not in page.split("base64,")[0]
    stored = json.loads((tmp_path / "reproduce.json").read_text(encoding="utf-8"))
    assert stored["figures"][0]["data"] == "f1.parquet"
    outputs.write(made(), tmp_path / "all" / "mga")
    outputs.write_all([made()], tmp_path / "all")
    assert (tmp_path / "all" / "index.html").is_file()
    assert (tmp_path / "all" / "mga" / "f1.svg").is_file()


def test_pictures_are_the_same_bytes_each_time() -> None:
    assert made().figures[0].svg == made().figures[0].svg


def test_the_command_refuses_in_one_line(fake_command: Command) -> None:
    for paper, status in (("nothing", 2), ("mga,llh", 2)):
        completed = fake_command("reproduce", paper)
        assert completed.returncode == status
        assert completed.stderr.startswith("error: ")
        assert completed.stderr.count("\n") == 1


def test_workloads_of_llh_are_in_the_order_of_the_figure() -> None:
    data = load("llh")
    rows = [data["values"]["workload"][name] for name in data["constants"]["workloads"]]
    groups = [row["group"] for row in rows]
    assert groups == ["msr"] * 11 + ["fiu"] * 5 + ["zipf"] * 3
    written = [row["gib"] / row["drive"] for row in rows]
    assert written[:11] == sorted(written[:11])
    assert written[11:16] == sorted(written[11:16])


def test_changes_replace_keys_of_a_variant() -> None:
    keys = llh.layer_keys("llh", "OP/2", 4, ["ftl.threshold_pu=0 blocks", "part.order=low-high-low"])
    assert keys == [
        "ftl.threshold_pu=0 blocks",
        "ftl.wom_failure=0.25%",
        "ftl.threshold_floor=1",
        "part.order=low-high-low",
    ]
    assert llh.layer_keys("hotcold", "OP/2", 4, []) == []


def test_averages_of_table_5_follow_from_its_rows() -> None:
    rows = {"e_read": 50.37, "e_read_high": 51.25, "e_program": 68.18, "e_program_high": 195.65, "e_erase": 192.79}
    rows |= {
        "e_program_low_first": 68.55,
        "e_reprogram": 63.04,
        "e_program_high_second": 180.85,
        "e_erase_reused": 186.49,
    }
    made = model.energy_averages(rows, 256)
    for what, paper in load("llh")["constants"]["averages"].items():
        assert made[what] == pytest.approx(paper, abs=0.04), what
