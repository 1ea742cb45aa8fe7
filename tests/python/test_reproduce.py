"""The reproduction of the MGA paper end to end, on the native module: contract, agreement rule, same bytes."""

from pathlib import Path

import polars as pl
import pytest

from conftest import Command
from palimpsest.reproduce import mga, mga_runs
from palimpsest.reproduce.batch import Batch
from reproduction import check_quick, check_same_bytes, trace_figure

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


def test_same_bytes_whatever_runs_beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = mga_runs.Scale(blocks=16, requests=1500, first=4, trace_requests=100)
    monkeypatch.setattr(mga, "QUICK", small)
    monkeypatch.setattr(mga, "UNKNOWNS", mga_runs.UNKNOWNS[:3])
    check_same_bytes(mga.reproduce, tmp_path)


def test_real_traces_are_an_extra_figure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = mga_runs.Scale(blocks=16, requests=500, first=2, trace_requests=200)
    monkeypatch.setattr(mga, "QUICK", small)
    monkeypatch.setattr(mga, "UNKNOWNS", mga_runs.UNKNOWNS[:2])
    trace_figure(mga.reproduce, tmp_path, (f"{i * 1000000},w,{i * 8192},4096" for i in range(300)))
