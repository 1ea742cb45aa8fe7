"""The reproduction of the WOM-v paper end to end, on the native module: contract, bounds, same bytes."""

import math
from pathlib import Path

import polars as pl
import pytest

from palimpsest.reproduce import drawing
from palimpsest.reproduce.batch import Batch
from palimpsest.reproduce.figures import Figure
from palimpsest.reproduce.papers import womv
from palimpsest.reproduce.study import Study, load
from reproduction import Reproduced, changed

pytestmark = pytest.mark.contract

SMALL = {"blocks": 24, "lives": 1, "timed_requests": 500, "trace_requests": 20_000}
CODES = {name: code for name, code in load("womv")["values"]["code"].items() if name != "none"}


@pytest.mark.long
class TestWomv(Reproduced):
    """Claims, figures and smallest drives of WOM-v."""

    paper = "womv"
    claims = frozenset({"erases_3_4", "erases_2_4", "erases_1_4", "fewer_erases"})
    figures = ("erases", "amplification", "cost", "sweep")
    trace = tuple(f"{i * 1000000},w,{i % 3000 * 16384},16384" for i in range(20_000))

    def shrink(self, monkeypatch: pytest.MonkeyPatch) -> None:
        default, spare, *_ = load("womv")["points"]["unknowns"]
        points = {"unknowns": [default, spare | {"each": [50]}]}
        changed(monkeypatch, "womv", scales={"quick": SMALL}, points=points)

    def check_ours(self, ours: dict[str, float], folder: Path) -> None:
        # Uniform writes with as much spare space: the bounds, less the difference of write amplification.
        for code in CODES.values():
            assert ours[f"erases_{code['stored']}_4"] == pytest.approx(code["bound"], rel=0.05)
        data = pl.read_parquet(folder / "erases.parquet").filter(pl.col("workload") == "sequential")
        assert data["ratio"].to_list() == pytest.approx(data["bound"].to_list(), rel=1e-9)

    def check_trace(self, extra: Figure) -> None:
        assert extra.data.height == len(CODES)


def test_codes_bound_erases_and_their_writes() -> None:
    assert [code["bound"] for code in CODES.values()] == [2 / 3, 2 / 5, 4 / 15]
    assert all(code["bound"] == 4 / (code["stored"] * code["generations"]) for code in CODES.values())
    lives = [192 * code["stored"] * code["generations"] for code in CODES.values()]
    assert load("womv")["constants"]["life"] == math.lcm(768, *lives)
    # Without errors every write may be the worst: as many as there are generations.
    assert [womv.lazy_writes(code["stored"], 1e-6) for code in CODES.values()] == [2, 5, 15]
    # A cell of one bit rises with every other write: P(more than 15 of 30) is 0.43, of 29 0.36.
    assert womv.lazy_writes(1, 0.4) == 29


def test_data_that_goes_round_is_erased_as_often_as_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch, "womv", scales={"quick": SMALL})
    result = Study("womv", Batch(jobs=2)).at("counted", workload="sequential", seed=1)
    base = womv.erases_per_byte(result(code="none"))
    for name, code in CODES.items():
        coded = womv.erases_per_byte(result(code=name))
        assert coded / base == pytest.approx(code["bound"], rel=1e-9), name


def test_figures_mark_the_bounds() -> None:
    study = Study("womv", Batch())
    seen: dict[str, object] = {"workload": "uniform", "code": "WOM-v(1, 4)"}
    numbers = {"bound": 4 / 15, "ratio": 0.26, "write_amplification": 1.7}
    seen |= {f"{name}{end}": number for name, number in numbers.items() for end in ("", "_low", "_high")}
    (described,) = drawing.repeated(study.data["figures"][0], study.names)
    data = drawing.shaped(pl.DataFrame([seen]), described, study.names)
    figure = drawing.figure(described, data, study.names)
    assert ">bound<" in figure.svg
    assert figure.data["bound"].to_list() == [4 / 15]
