"""The reproduction of the MGA paper end to end, on the native module: contract, agreement rule, same bytes."""

import polars as pl
import pytest

from palimpsest.reproduce import mga, mga_runs
from palimpsest.reproduce.batch import Batch
from reproduction import Reproduced

pytestmark = pytest.mark.contract


class TestMga(Reproduced):
    """MGA: its claims, figures and smallest drives."""

    module = mga
    claims = frozenset({
        "response_trade", "response_synth_a", "erases_trade", "wa_trade_8k", "wa_trade_16k", "map_growth", "map_ratio",
        "merges",
    })  # fmt: skip
    figures = ("table2", "fig7a", "fig7b", "fig8", "fig9a", "fig9b", "fig10", "fig11", "wa_8k", "wa_16k", "sweep")
    trace = tuple(f"{i * 1000000},w,{i * 8192},4096" for i in range(300))

    def shrink(self, monkeypatch: pytest.MonkeyPatch) -> None:
        small = mga_runs.Scale(blocks=16, requests=1500, first=4, trace_requests=200)
        monkeypatch.setattr(mga, "QUICK", small)
        monkeypatch.setattr(mga, "UNKNOWNS", mga_runs.UNKNOWNS[:3])


def test_workloads_have_the_statistics_of_the_table() -> None:
    batch = Batch(jobs=2)
    batch.run(mga.statistics_run(name) for name in mga_runs.WORKLOADS)
    assert mga.table_ii(batch).data.filter(pl.col("off_percent").abs() >= 2).is_empty()
