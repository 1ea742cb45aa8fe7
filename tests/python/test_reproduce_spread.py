"""The reproduction of the SPREAD paper end to end, on the native module: contract, Table I, bounds, same bytes."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from palimpsest.reproduce import spread, spread_beyond, spread_implied, spread_runs
from palimpsest.reproduce.batch import Batch
from palimpsest.reproduce.claims import IMPLIED
from palimpsest.reproduce.figures import Figure
from reproduction import Reproduced

pytestmark = pytest.mark.contract

SMALL = spread_runs.Scale(blocks=48, requests=3000, seeds=1, trace_requests=200)


@pytest.mark.long
class TestSpread(Reproduced):
    """SPREAD: claims, figures and smallest drives."""

    module = spread
    claims = frozenset({
        "table_1", "iops_page", "iops_dma", "latency_page", "latency_dma", "dma_page", "iops_usr", "iops_stg", "gc_usr",
        "gc_stg", "su", "raf_kv", "raf_grp", "raf_prj", "raf_fragmented", "gc_bandwidth",
    })  # fmt: skip
    figures = (
        "table1", "table2", "fig1", "fig2", "fig6a", "fig6b", "fig6c", "gc", "sweep", "overhead", "queue_depth",
        "sensing_slope", "bus", "word_size", "read_modes", "read_gap", "implied",
    )  # fmt: skip
    trace = tuple(f"{i * 1000000},r,{i * 8192},4096" for i in range(300))

    def shrink(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spread, "QUICK", SMALL)
        kept = (spread_runs.UNKNOWNS[0], *(u for u in spread_runs.UNKNOWNS if "20 us on the bus" in u.value))
        monkeypatch.setattr(spread, "UNKNOWNS", kept)
        monkeypatch.setattr(spread_beyond, "DEPTHS", (1, 32))
        monkeypatch.setattr(spread_beyond, "RATES_GBPS", (0.8,))
        monkeypatch.setattr(spread_beyond, "SLOPES", (0.5,))
        monkeypatch.setattr(spread_beyond, "MAPPED", ("subpage",))
        monkeypatch.setattr(spread_implied, "SCALE", replace(SMALL, repeats=True))
        monkeypatch.setattr(spread_implied, "SWEEP", SMALL)
        monkeypatch.setattr(spread_implied, "NEIGHBOURS", spread_implied.NEIGHBOURS[:2])

    def check_ours(self, ours: dict[str, float], folder: Path) -> None:
        assert ours["table_1"] == 0
        assert ours["iops_page"] > ours["iops_dma"] > ours["dma_page"] > 0
        assert ours["gc_usr"] < 0
        # No run may exceed its bound, and every closed form must be within reach.
        bound = pl.col("bound_iops")
        shares = pl.read_parquet(folder / "fig6a.parquet").select(share=pl.col("iops") / bound)["share"].to_list()
        assert max(shares) <= 1
        assert min(shares) > 0.6

    def check_trace(self, extra: Figure) -> None:
        assert extra.data.filter(pl.col("layer") == "spftl")["to_page"][0] < 0.6


@pytest.mark.long
def test_the_implied_setting_gives_every_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """SPREAD paper, Sec. V: all numbers at once, under one setting (see `spread_implied`)."""
    monkeypatch.setattr(spread_implied, "NEIGHBOURS", spread_implied.NEIGHBOURS[:1])
    made = spread.reproduce(Batch(jobs=2), settings=IMPLIED)
    assert [claim.id for claim in made.claims if not claim.agrees] == []
    assert {claim.id for claim in made.claims} == TestSpread.claims - {"table_1"}


def test_single_reads_take_what_table_1_says() -> None:
    data = spread.table_i(Batch(2)).data
    assert data["paper_ns"].to_list() == [37_500, 50_000, 62_500, 75_000, 87_500, 100_000, 112_500, 119_000]
    assert data["spftl"].to_list() == data["paper_ns"].to_list()
    assert data["spftl, command of 1 us"].to_list() == (data["paper_ns"] + 1000).to_list()
    assert set(data["page-fgm"]) == {119_000}
    assert data["dma-fgm"].to_list() == [99_000 + 2500 * words for words in range(1, 9)]


def test_workloads_have_the_statistics_of_the_table() -> None:
    batch = Batch(jobs=2)
    batch.run(spread_runs.statistics_run(name) for name in spread_runs.WORKLOADS)
    data = spread.table_ii(batch).data
    assert set(data["workload"]) == set(spread_runs.WORKLOADS)
    assert data.filter(pl.col("off_percent").abs() >= 2).is_empty()
    # Fig. 1 draws the requests themselves: a measured mean.
    for name in spread_runs.MOTIVATION[:3]:
        host = batch[spread_runs.statistics_run(name)].to_dict()
        drawn = sum(size * share for size, share in spread_runs.read_sizes(name).items())
        assert abs(host["host"]["bytes_read"] / host["requests"]["read"] / drawn - 1) < 0.02


@pytest.mark.parametrize("layer", spread_runs.LAYERS)
def test_what_a_run_counts_gives_the_bound_of_its_sizes(layer: str) -> None:
    counted = spread_runs.counted_bound(Batch()[SMALL.options(layer, "kv")])
    closed = spread_runs.sizes_bound(layer, "kv")
    # A straight line bounds the sensing times of spread reads, and is exact for most of these.
    assert abs(counted / closed - 1) < 0.02
