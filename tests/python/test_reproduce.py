"""The reproduction of the MGA paper end to end, on the native module: contract, agreement rule, same bytes."""

from pathlib import Path

import polars as pl
import pytest

from conftest import Command
from palimpsest.reproduce import mga, mga_runs
from palimpsest.reproduce.batch import Batch
from reproduction import check_quick, check_smallest

pytestmark = pytest.mark.contract

CLAIMS = {
    "response_trade", "response_synth_a", "erases_trade", "wa_trade_8k", "wa_trade_16k", "map_growth", "map_ratio",
    "merges",
}  # fmt: skip
FIGURES = ["table2", "fig7a", "fig7b", "fig8", "fig9a", "fig9b", "fig10", "fig11", "wa_8k", "wa_16k", "sweep"]


def test_quick_gives_claims_and_figures(palimpsest: Command, tmp_path: Path) -> None:
    check_quick(palimpsest, "mga", tmp_path, CLAIMS, FIGURES)


def test_workloads_have_the_statistics_of_the_table() -> None:
    batch = Batch(jobs=2)
    batch.run(mga.statistics_run(name) for name in mga_runs.WORKLOADS)
    assert mga.table_ii(batch).data.filter(pl.col("off_percent").abs() >= 2).is_empty()


def test_smallest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = mga_runs.Scale(blocks=16, requests=1500, first=4, trace_requests=200)
    monkeypatch.setattr(mga, "QUICK", small)
    monkeypatch.setattr(mga, "UNKNOWNS", mga_runs.UNKNOWNS[:3])
    requests = (f"{i * 1000000},w,{i * 8192},4096" for i in range(300))
    check_smallest(mga.reproduce, tmp_path, CLAIMS, FIGURES, requests)
