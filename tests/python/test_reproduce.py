"""The reproduction of the MGA paper end to end, on the native module: contract, agreement rule, same bytes."""

import json
from pathlib import Path

import polars as pl
import pytest

from conftest import Command, figures
from palimpsest.reproduce import mga, mga_runs, outputs
from palimpsest.reproduce.batch import Batch

pytestmark = pytest.mark.contract

CLAIMS = {
    "response_trade", "response_synth_a", "erases_trade", "wa_trade_8k", "wa_trade_16k", "map_growth", "map_ratio",
    "merges",
}  # fmt: skip
FIGURES = ["table2", "fig7a", "fig7b", "fig8", "fig9a", "fig9b", "fig10", "fig11", "wa_8k", "wa_16k", "sweep"]


def test_quick_gives_claims_and_figures(palimpsest: Command, tmp_path: Path) -> None:
    made = figures(palimpsest("reproduce", "mga", "--quick", "--json", "--out", str(tmp_path)))
    assert made["paper"] == "mga"
    assert {claim["id"] for claim in made["claims"]} == CLAIMS
    for claim in made["claims"]:
        assert {"id", "claim", "paper", "ours", "unit", "agrees", "note"} <= claim.keys()
        if isinstance(claim["paper"], float | int):
            assert claim["agrees"] is (abs(claim["ours"] - claim["paper"]) <= abs(claim["paper"]) / 4)
        assert claim["agrees"] or claim["note"], claim
    assert [figure["id"] for figure in made["figures"]] == FIGURES
    for figure in made["figures"]:
        assert Path(figure["data"]).is_file()
        assert Path(figure["picture"]).read_text(encoding="utf-8").startswith("<?xml")
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert page.lower().count("synthetic") > len(FIGURES) / 2


def test_workloads_have_the_statistics_of_the_table() -> None:
    batch = Batch(jobs=2)
    batch.run(mga.statistics_run(name) for name in mga_runs.WORKLOADS)
    assert mga.table_ii(batch).data.filter(pl.col("off_percent").abs() >= 2).is_empty()


def test_same_bytes_whatever_runs_beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = mga_runs.Scale(blocks=16, requests=1500, first=4, trace_requests=100)
    monkeypatch.setattr(mga, "QUICK", small)
    monkeypatch.setattr(mga, "UNKNOWNS", mga_runs.UNKNOWNS[:3])
    files = []
    for jobs in (1, 2):
        made = mga.reproduce(Batch(jobs))
        mga_out = tmp_path / str(jobs)
        outputs.write([made], mga_out, each_apart=False)
        files.append({path.name: path.read_bytes() for path in sorted(mga_out.iterdir())})
    assert files[0] == files[1]


def test_real_traces_are_an_extra_figure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = ["time_ns,op,offset_bytes,size_bytes", *(f"{i * 1000000},w,{i * 8192},4096" for i in range(300))]
    (tmp_path / "own.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    small = mga_runs.Scale(blocks=16, requests=500, first=2, trace_requests=200)
    monkeypatch.setattr(mga, "QUICK", small)
    monkeypatch.setattr(mga, "UNKNOWNS", mga_runs.UNKNOWNS[:2])
    made = mga.reproduce(Batch(2, traces=str(tmp_path)))
    extra = made.figures[-1]
    assert extra.id == "traces"
    assert extra.data["trace"].unique().to_list() == ["own"]
    assert json.dumps(made.to_dict())
