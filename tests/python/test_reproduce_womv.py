"""The reproduction of the WOM-v paper end to end, on the native module: contract, bounds, same bytes."""

from pathlib import Path

import polars as pl
import pytest

from palimpsest.reproduce import womv, womv_runs
from palimpsest.reproduce.batch import Batch
from palimpsest.reproduce.figures import Figure
from reproduction import Reproduced

pytestmark = pytest.mark.contract


@pytest.mark.long
class TestWomv(Reproduced):
    """WOM-v: claims, figures and smallest drives."""

    module = womv
    claims = frozenset({"erases_3_4", "erases_2_4", "erases_1_4", "fewer_erases"})
    figures = ("erases", "amplification", "cost", "sweep")
    trace = tuple(f"{i * 1000000},w,{i % 3000 * 16384},16384" for i in range(20_000))

    def shrink(self, monkeypatch: pytest.MonkeyPatch) -> None:
        small = womv_runs.Scale(blocks=24, lives=1, timed_requests=500, trace_requests=20_000)
        monkeypatch.setattr(womv, "QUICK", small)
        few = tuple(unknown for unknown in womv_runs.UNKNOWNS if unknown.value != "7 %" and unknown.value != "14 %")
        for module in (womv, womv_runs):
            monkeypatch.setattr(module, "UNKNOWNS", few[:2])

    def check_ours(self, ours: dict[str, float], folder: Path) -> None:
        # Uniform writes with equal spare space: the bounds, less the difference in amplification.
        for code in womv_runs.CODES:
            assert ours[f"erases_{code.stored}_4"] == pytest.approx(code.bound, rel=0.05)
        data = pl.read_parquet(folder / "erases.parquet").filter(pl.col("workload") == "sequential")
        assert data["ratio"].to_list() == pytest.approx(data["bound"].to_list(), rel=1e-9)

    def check_trace(self, extra: Figure) -> None:
        assert extra.data.height == len(womv_runs.CODES)


def test_codes_bound_erases_and_their_writes() -> None:
    assert [code.bound for code in womv_runs.CODES] == pytest.approx([2 / 3, 2 / 5, 4 / 15])
    # Without errors every write may be the worst, so there are as many writes as generations.
    assert [womv_runs.lazy_writes(code, 1e-6) for code in womv_runs.CODES] == [2, 5, 15]
    # A cell of one bit rises with every other write: P(more than 15 of 30) is 0.43, of 29 0.36.
    assert womv_runs.lazy_writes(womv_runs.CODES[2], 0.4) == 29


def test_cyclic_data_is_erased_as_often_as_the_bound_says() -> None:
    scale = womv_runs.Scale(blocks=24, lives=1, timed_requests=0, trace_requests=0)
    batch = Batch(jobs=2)
    base = womv_runs.erases_per_byte(batch[scale.counted(None, "sequential")])
    for code in womv_runs.CODES:
        coded = womv_runs.erases_per_byte(batch[scale.counted(code, "sequential")])
        assert coded / base == pytest.approx(code.bound, rel=1e-9), code.label


def test_figures_mark_the_bounds() -> None:
    seen = {"workload": "uniform", "code": "WOM-v(1, 4)", "seed": 1, "bound": 4 / 15, "ratio": 0.26}
    figure = womv.erases_figure(pl.DataFrame([seen | {"write_amplification": 1.7}]), womv_runs.QUICK)
    assert ">bound<" in figure.svg
    assert figure.data["bound"].to_list() == [4 / 15]
