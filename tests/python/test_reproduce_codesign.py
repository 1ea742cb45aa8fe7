"""The reproduction of the co-design paper end to end, on the native module: contract, statistics, same bytes."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from palimpsest.reproduce import codesign, codesign_beyond, codesign_figures, codesign_implied, codesign_runs
from palimpsest.reproduce.batch import Batch
from palimpsest.reproduce.claims import IMPLIED
from palimpsest.reproduce.figures import Figure
from reproduction import Reproduced

pytestmark = pytest.mark.contract

SMALL = codesign_runs.Scale(blocks=32, requests=600, trace_requests=200, everything=False)


@pytest.mark.long
class TestCodesign(Reproduced):
    """The co-design: claims, figures and smallest drives."""

    module = codesign
    figures = (
        "statistics", "maps", "metadata", "fig2", "fig6", "fig7", "fig8", "headroom", "round_robin", "sweep",
        "own_scheme", "hand_over", "read_modes", "layers", "hints", "fig7_implied", "implied",
    )  # fmt: skip
    claims = frozenset({
        "map", "page_map", "metadata", "hand_over", "uneven_exchange", "above_1_exchange", "uneven_msnstorage",
        "above_1_msnstorage", "fairness_workload", "read-busy_workload", "depth_workload", "hybrid_best",
        *codesign.PAPER, *(f"throughput_{name}" for name in codesign.PAPER),
        *(f"{name}_by_address" for name in codesign.PAPER),
    })  # fmt: skip
    trace = tuple(f"{i * 1000000},{'rw'[i % 2]},{i * 8192},12288" for i in range(300))

    def shrink(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(codesign, "QUICK", SMALL)
        monkeypatch.setattr(codesign_implied, "SCALE", SMALL)
        monkeypatch.setattr(codesign_implied, "SWEEP", SMALL)
        monkeypatch.setattr(codesign_implied, "NEIGHBOURS", codesign_implied.NEIGHBOURS[:2])
        monkeypatch.setattr(codesign, "QUICK_SWEEP", SMALL)
        kept = (codesign_runs.UNKNOWNS[0], *(u for u in codesign_runs.UNKNOWNS if u.value == "1 in flight"))
        monkeypatch.setattr(codesign, "UNKNOWNS", kept)
        monkeypatch.setattr(codesign_beyond, "DEPTHS", (16,))
        monkeypatch.setattr(codesign_beyond, "HAND_OVERS_US", (3,))

    def check_ours(self, ours: dict[str, float], folder: Path) -> None:
        # Fig. 2: the presets choose sizes of files for these.
        for workload, shares in codesign_runs.UNEVEN.items():
            own = (ours[f"uneven_{workload}"], ours[f"above_1_{workload}"])
            assert all(abs(mine - paper) <= paper / 4 for mine, paper in zip(own, shares, strict=True)), (workload, own)
        # With a fixed number in flight throughput is the inverse of response time (Little), apart from the warm-up.
        rows = pl.read_parquet(folder / "fig7.parquet").join(
            pl.read_parquet(folder / "fig8.parquet"), on=["workload", "scheme"]
        )
        in_flight = (rows["iops"] * rows["response_us"] / 1e6).to_list()
        assert all(abs(each / 16 - 1) < 0.1 for each in in_flight)
        # The scheme of this project is faster than the paper's best on every workload.
        schemes = rows.pivot("scheme", index="workload", values="response_us")
        assert (schemes[codesign_runs.OWN] < schemes["hybrid"]).all()

    def check_trace(self, extra: Figure) -> None:
        assert set(extra.data["scheme"]) == {codesign_runs.BY_CHANNEL, *codesign_beyond.COMPARED}


@pytest.mark.long
def test_the_implied_setting_gives_every_claim() -> None:
    made = codesign.reproduce(Batch(jobs=2), settings=IMPLIED)
    assert [claim.id for claim in made.claims if not claim.agrees] == []
    assert {claim.id for claim in made.claims} >= {*codesign.PAPER, "metadata", "hybrid_best", "fairness_workload"}


def test_fitted_workloads_have_the_means_of_the_paper() -> None:
    scale = replace(SMALL, requests=20_000)
    batch = Batch(jobs=2)
    made = {name: codesign_implied.IMPLIED.options(scale, "static", name) for name in codesign_runs.WORKLOADS}
    made = {name: replace(options, fidelity="count", warmup=None) for name, options in made.items()}
    batch.run(made.values())
    for name, (reads, kib) in codesign_runs.STATISTICS.items():
        requests, host = batch[made[name]]["requests"], batch[made[name]]["host"]
        total = requests["read"] + requests["write"]
        assert 100 * requests["read"] / total == pytest.approx(reads, rel=0.03), name
        assert (host["bytes_read"] + host["bytes_written"]) / total / 1024 == pytest.approx(kib, rel=0.03), name


def test_workloads_have_the_statistics_of_the_paper() -> None:
    batch = Batch(jobs=2)
    batch.run(codesign_runs.statistics_run(name) for name in codesign_runs.WORKLOADS)
    data = codesign_figures.statistics(batch).data
    assert set(data["workload"]) == set(codesign_runs.WORKLOADS)
    assert data.filter(pl.col("off_percent").abs() >= 2).is_empty()


def test_throughput_of_the_paper_is_one_over_its_response_time() -> None:
    for name, response in codesign.PAPER.items():
        assert codesign.PAPER_THROUGHPUT[name] == pytest.approx(100 / (1 + response / 100) - 100, abs=0.1)
