"""The reproduction of the co-design paper end to end, on the native module: contract, statistics, same bytes."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from palimpsest.reproduce import reproduce
from palimpsest.reproduce.batch import Batch
from palimpsest.reproduce.claims import IMPLIED
from palimpsest.reproduce.figures import Figure
from palimpsest.reproduce.study import Study, load
from reproduction import Reproduced, changed

pytestmark = pytest.mark.contract

SMALL = {"blocks": 32, "requests": 600, "trace_requests": 200, "everything": False}
NAMES = load("codesign")["constants"]


@pytest.mark.long
class TestCodesign(Reproduced):
    """Claims, figures and smallest drives of the co-design."""

    paper = "codesign"
    figures = (
        "statistics", "maps", "metadata", "fig2", "fig6", "fig7", "fig8", "headroom", "round_robin", "sweep",
        "own_scheme", "hand_over", "read_modes", "layers", "hints", "mechanism",
        "fig7_implied", "causes", "mechanism_implied", "implied",
    )  # fmt: skip
    claims = frozenset({
        "map", "page_map", "metadata", "hand_over", "uneven_exchange", "above_1_exchange", "uneven_msnstorage",
        "above_1_msnstorage", "fairness_workload", "read-busy_workload", "depth_workload", "hybrid_best",
        "fairness_least_workload", "average_response", "average_throughput", "reads",
        *NAMES["response"], *(f"throughput_{name}" for name in NAMES["response"]),
        *(f"{name}_by_address" for name in NAMES["response"]),
    })  # fmt: skip
    trace = tuple(f"{i * 1000000},{'rw'[i % 2]},{i * 8192},12288" for i in range(300))

    def shrink(self, monkeypatch: pytest.MonkeyPatch) -> None:
        points = load("codesign")["points"]
        unknowns = [points["unknowns"][0], points["unknowns"][1] | {"each": [1]}]
        near = [{}, points["neighbours"][1] | {"each": [4]}]
        changed(
            monkeypatch,
            "codesign",
            scales=dict.fromkeys(("quick", "quick_sweep", "quick_implied", "near"), SMALL),
            points={"unknowns": unknowns, "neighbours": near},
            constants={"depths": [16], "hand_overs_us": [3]},
        )

    def check_ours(self, ours: dict[str, float], folder: Path) -> None:
        # Fig. 2: the sizes of files in the presets were chosen for these.
        for workload, shares in NAMES["uneven"].items():
            own = (ours[f"uneven_{workload}"], ours[f"above_1_{workload}"])
            assert all(abs(mine - paper) <= paper / 4 for mine, paper in zip(own, shares, strict=True)), (workload, own)
        # With a fixed number in flight throughput is the inverse of response time (Little), which the warm-up blurs.
        rows = pl.read_parquet(folder / "fig7.parquet").join(
            pl.read_parquet(folder / "fig8.parquet"), on=["workload", "scheme"]
        )
        in_flight = (rows["iops"] * rows["response_us"] / 1e6).to_list()
        assert all(abs(each / 16 - 1) < 0.1 for each in in_flight)
        # The scheme that is not in the paper is faster than the paper's best on every workload.
        schemes = rows.pivot("scheme", index="workload", values="response_us")
        assert (schemes[NAMES["own_scheme"]] < schemes["hybrid"]).all()

    def check_trace(self, extra: Figure) -> None:
        assert set(extra.data["scheme"]) == {"by-channel", *NAMES["beyond"]}


@pytest.mark.long
def test_the_implied_setting_gives_every_claim() -> None:
    made = reproduce("codesign", Batch(jobs=2), settings=IMPLIED)
    assert [claim.id for claim in made.claims if not claim.number_agrees] == []
    assert [claim.id for claim in made.claims if not claim.agrees] == ["fairness_least_workload"]
    assert {claim.id for claim in made.claims} >= {*NAMES["response"], "metadata", "hybrid_best", "fairness_workload"}
    assert {claim.id for claim in made.claims} >= {"average_response", "above_1_exchange", "page_map", "reads"}
    causes = next(figure.data for figure in made.figures if figure.id == "causes")

    def left(cause: str, scheme: str) -> dict[str, float]:
        rows = causes.filter((pl.col("off") == cause) & (pl.col("scheme") == scheme))
        return dict(rows.select("workload", "change_percent").iter_rows())

    assert all(own > -1 for own in left("planes", "depth").values())
    even = left("files", "fairness")
    assert all(own > -3 for name, own in even.items() if name != "development"), even
    assert left("ties", "fairness")["development"] > -1 > even["development"], "agrees by number only"


def test_fitted_workloads_have_the_means_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch, "codesign", scales={"quick_implied": SMALL | {"requests": 20_000}})
    study = Study("codesign", Batch(jobs=2))
    cells = {name: {"scheme": "rr", "workload": name, "seed": 1} for name in NAMES["workloads"]}
    made = {name: study.options("compared", study.implied, **cell) for name, cell in cells.items()}
    made = {name: replace(options, fidelity="count", warmup=None) for name, options in made.items()}
    study.batch.run(made.values())
    for name, paper in NAMES["statistics"].items():
        requests, host = study.batch[made[name]]["requests"], study.batch[made[name]]["host"]
        total = requests["read"] + requests["write"]
        assert 100 * requests["read"] / total == pytest.approx(paper["reads"], rel=0.03), name
        kib = (host["bytes_read"] + host["bytes_written"]) / total / 1024
        assert kib == pytest.approx(paper["mean request"], rel=0.03), name


def test_workloads_have_the_statistics_of_the_paper() -> None:
    study = Study("codesign", Batch(jobs=2))
    study.batch.run(study.runs(["statistics"]))
    data = study.figure("statistics").data
    assert set(data["workload"]) == set(NAMES["workloads"])
    assert data.filter(pl.col("off_percent").abs() >= 2).is_empty()


def test_throughput_of_the_paper_is_the_inverse_of_response_time() -> None:
    for name, response in NAMES["response"].items():
        assert NAMES["faster"][name] == pytest.approx(100 / (1 + response / 100) - 100, abs=0.1)
