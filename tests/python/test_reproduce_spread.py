"""The reproduction of the SPREAD paper end to end, on the native module: contract, Table I, bounds, same bytes."""

from pathlib import Path

import polars as pl
import pytest

from palimpsest.reproduce import reproduce
from palimpsest.reproduce.batch import Batch
from palimpsest.reproduce.claims import IMPLIED
from palimpsest.reproduce.figures import Figure
from palimpsest.reproduce.papers import spread
from palimpsest.reproduce.study import Study, load
from reproduction import Reproduced, changed

pytestmark = pytest.mark.contract

SMALL = {"blocks": 48, "requests": 3000, "seeds": 1, "trace_requests": 200}
NAMES = load("spread")["constants"]


@pytest.mark.long
class TestSpread(Reproduced):
    """Claims, figures and smallest drives of SPREAD."""

    paper = "spread"
    claims = frozenset({
        "table_1", "iops_page", "iops_dma", "latency_page", "latency_dma", "dma_page", "iops_usr", "iops_stg", "gc_usr",
        "gc_stg", "usr_beyond", "gain_7_3", "footnote_5", "four_reads", "one_read", "su", "raf_kv", "raf_grp",
        "raf_prj", "raf_fragmented", "gc_bandwidth",
    })  # fmt: skip
    figures = (
        "table1", "table2", "fig1", "fig2", "fig6a", "fig6b", "fig6c", "gc", "sweep", "overhead", "queue_depth",
        "sensing_slope", "bus", "word_size", "read_modes", "read_gap", "mechanism", "mechanism_implied",
        "implied",
    )  # fmt: skip
    trace = tuple(f"{i * 1000000},r,{i * 8192},4096" for i in range(300))

    def shrink(self, monkeypatch: pytest.MonkeyPatch) -> None:
        points = load("spread")["points"]
        overhead = next(each for each in points["unknowns"] if each["what"] == "overhead of a flash command")
        near = [{}, points["neighbours"][1] | {"each": [0]}]
        few = {"depths": [1, 32], "rates_gbps": [0.8], "slopes": [0.5], "mapped": ["subpage"]}
        changed(
            monkeypatch,
            "spread",
            scales=dict.fromkeys(("quick", "implied", "near"), SMALL),
            points={"unknowns": [points["unknowns"][0], overhead | {"each": [20]}], "neighbours": near},
            constants=few,
        )

    def check_ours(self, ours: dict[str, float], folder: Path) -> None:
        assert ours["table_1"] == 0
        assert ours["iops_page"] > ours["iops_dma"] > ours["dma_page"] > 0
        assert ours["gc_usr"] < 0
        # No run is faster than the bound, and every run reaches most of the bound.
        bound = pl.col("bound_iops")
        shares = pl.read_parquet(folder / "fig6a.parquet").select(share=pl.col("iops") / bound)["share"].to_list()
        assert max(shares) <= 1
        assert min(shares) > 0.6

    def check_trace(self, extra: Figure) -> None:
        assert extra.data.filter(pl.col("layer") == "spftl")["to_page"][0] < 0.6


@pytest.mark.long
def test_the_implied_setting_gives_every_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """SPREAD paper, Sec. V: all numbers at once, under one setting (see the module of the paper)."""
    changed(monkeypatch, "spread", points={"neighbours": [{}]})
    made = reproduce("spread", Batch(jobs=2), settings=IMPLIED)
    assert [claim.id for claim in made.claims if not claim.agrees] == []
    assert {claim.id for claim in made.claims} == TestSpread.claims - {
        "table_1",
        "gain_7_3",
        "footnote_5",
        "four_reads",
        "one_read",
    }


def test_single_reads_take_what_table_1_says() -> None:
    study = Study("spread", Batch(2))
    study.batch.run(study.runs(["single"]))
    data = study.figure("table1").data
    assert data["paper_ns"].to_list() == [37_500, 50_000, 62_500, 75_000, 87_500, 100_000, 112_500, 119_000]
    assert data["spftl"].to_list() == data["paper_ns"].to_list()
    assert data["spftl, command of 1 us"].to_list() == (data["paper_ns"] + 1000).to_list()
    assert set(data["page-fgm"]) == {119_000}
    # Footnote 5 is exact up to 14 KiB; a whole page is 6 us faster.
    assert (data["footnote_ns"] - data["paper_ns"]).to_list() == [0] * 7 + [6000]
    assert data["dma-fgm"].to_list() == [99_000 + 2500 * words for words in range(1, 9)]


def test_workloads_have_the_statistics_of_the_table() -> None:
    study = Study("spread", Batch(jobs=2))
    study.batch.run(study.runs(["statistics"]))
    data = study.figure("table2").data
    assert set(data["workload"]) == set(NAMES["workloads"])
    assert data.filter(pl.col("off_percent").abs() >= 2).is_empty()
    # Fig. 1 draws the sizes of the requests: the measured mean agrees.
    for name in NAMES["motivation"][:3]:
        host = study.result("statistics", workload=name).to_dict()
        drawn = sum(size * share for size, share in spread.read_sizes(name).items())
        assert abs(host["host"]["bytes_read"] / host["requests"]["read"] / drawn - 1) < 0.02


@pytest.mark.parametrize("layer", NAMES["layers"])
def test_what_a_run_counts_gives_the_bound_of_its_sizes(layer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch, "spread", scales={"quick": SMALL})
    counted = spread.counted_bound(Study("spread", Batch()).result("kv", layer=layer))
    closed = spread.sizes_bound(layer, "kv")
    # Sensing times of spread reads are bounded by a straight line, which is exact for most of these.
    assert abs(counted / closed - 1) < 0.02
