"""Claims, batches and pages of reproductions, without the simulator."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import Command
from palimpsest import reproduce as reproduction
from palimpsest.errors import InputError
from palimpsest.options import RunOptions
from palimpsest.reproduce import (
    claims,
    codesign_runs,
    figures,
    llh_figures,
    llh_runs,
    measures,
    mga,
    mga_runs,
    outputs,
    spread_beyond,
    spread_runs,
    sweeps,
)
from palimpsest.reproduce.batch import Batch

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


def test_unknowns_change_one_thing_each() -> None:
    default, *others = mga_runs.UNKNOWNS
    base = list(mga_runs.effects_runs(mga_runs.QUICK, default))
    for unknown in others:
        assert list(mga_runs.effects_runs(mga_runs.QUICK, unknown)) != base, unknown
        changed = [unknown.changes, unknown.overrides, unknown.precondition != default.precondition]
        assert sum(map(bool, changed)) == 1, unknown


def test_unknowns_of_spread_change_something_each() -> None:
    default, *others = spread_runs.UNKNOWNS
    base = list(spread_runs.effects_runs(spread_runs.QUICK, default))
    for unknown in others:
        assert list(spread_runs.effects_runs(spread_runs.QUICK, unknown)) != base, unknown
        changed = [
            unknown.changes,
            unknown.overrides,
            unknown.share != default.share,
            unknown.overwritten != default.overwritten,
        ]
        assert sum(map(bool, changed)) == (2 if unknown.what == "two at once" else 1), unknown


def test_unknowns_of_codesign_change_one_thing_each() -> None:
    default, *others = codesign_runs.UNKNOWNS
    base = list(codesign_runs.effects_runs(codesign_runs.QUICK, default))
    for unknown in others:
        assert list(codesign_runs.effects_runs(codesign_runs.QUICK, unknown)) != base, unknown
        changed = [unknown.changes, unknown.overrides, unknown.base != default.base]
        keys = unknown.changes.count("=") + len(unknown.overrides) + (unknown.base != default.base)
        assert sum(map(bool, changed)) == 1 or (unknown.what == codesign_runs.TOGETHER and keys > 1), unknown
        for options in codesign_runs.effects_runs(codesign_runs.FULL_SWEEP, unknown):
            names = [override.split("=")[0] for override in options.overrides]
            assert len(names) == len(set(names)), names


def test_bounds_are_those_of_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 channels of 2 chips: IOPS <= 4 min(2 / (tR(n) + tDMA(n)), 1 / tDMA(n)), with the times of Table I."""
    table = {"2k": (67.2, 78.8, 213.3), "4k": (67.2, 76.9, 160.0)}
    for size, bounds in table.items():
        text = f"rw=randread,bs={size},blockalign={size}"
        monkeypatch.setattr("palimpsest._core.workload_spec", lambda _name, text=text: text)
        found = [spread_runs.sizes_bound(layer, "any") / 1000 for layer in spread_runs.LAYERS]
        assert found == pytest.approx(bounds, abs=0.05)


def test_sensing_times_of_other_words_are_on_lines_of_table_1() -> None:
    assert spread_beyond.sensing_table(2) == list(spread_runs.T_READ_US)
    assert spread_beyond.sensing_table(4) == [45, 65, 85, 99]
    halves = spread_beyond.sensing_table(1)
    assert halves[1::2] == list(spread_runs.T_READ_US)
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
    text = mga.reason(pl.DataFrame(rows), "erases_trade")
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


def test_the_folder_has_data_pictures_and_one_page(tmp_path: Path) -> None:
    outputs.write([made()], tmp_path, each_apart=False)
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
    outputs.write([made()], tmp_path / "all", each_apart=True)
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


def test_workloads_of_the_llh_paper_are_in_its_figures_order() -> None:
    names = list(llh_runs.WORKLOADS)
    groups = [llh_runs.WORKLOADS[name].group for name in names]
    assert groups == ["msr"] * 11 + ["fiu"] * 5 + ["zipf"] * 3
    load = [row.gib / row.drive for row in llh_runs.WORKLOADS.values()]
    assert load[:11] == sorted(load[:11])
    assert load[11:16] == sorted(load[11:16])


def test_changes_replace_keys_of_a_variant() -> None:
    variant = llh_runs.Variant("llh", overrides=("ftl.threshold_pu=0 blocks", "part.order=low-high-low"))
    keys = [override.split("=")[0] for override in llh_runs.QUICK.options("hm_0", variant).overrides]
    assert len(keys) == len(set(keys))
    assert {"ftl.threshold_pu", "part.order"} <= set(keys)


def test_averages_of_table_5_follow_from_its_rows() -> None:
    rows = {"e_read": 50.37, "e_read_high": 51.25, "e_program": 68.18, "e_program_high": 195.65, "e_erase": 192.79}
    rows |= {
        "e_program_low_first": 68.55,
        "e_reprogram": 63.04,
        "e_program_high_second": 180.85,
        "e_erase_reused": 186.49,
    }
    made = llh_figures.energy_averages(rows, 256)
    for what, paper in llh_figures.AVERAGES.items():
        assert made[what] == pytest.approx(paper, abs=0.04), what
