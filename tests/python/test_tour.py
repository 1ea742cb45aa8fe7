"""The notebook of the documentation: it runs, its outputs agree with its text, and the file has no outputs."""

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

import tour

pytestmark = pytest.mark.contract


@pytest.fixture(scope="module")
def notebook() -> Any:
    return tour.executed()


def test_kept_without_outputs() -> None:
    kept = json.loads(tour.NOTEBOOK.read_text(encoding="utf-8"))
    code = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    assert len(code) > 8
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_outputs_are_kept_for_one_state_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    empty = json.loads(tour.NOTEBOOK.read_text(encoding="utf-8")) | {"cells": []}

    def run() -> Any:
        runs.append(1)
        return nbformat.from_dict(empty)  # type: ignore[no-untyped-call]

    monkeypatch.setattr(tour, "_KEPT", tmp_path)
    monkeypatch.setattr(tour, "execute", run)
    assert tour.executed() == tour.executed()
    assert len(runs) == 1
    other = tmp_path / "other.ipynb.json"
    other.write_text("{}", encoding="utf-8")
    monkeypatch.setattr(tour, "NOTEBOOK", other)
    tour.executed()
    assert len(runs) == 2
    assert len(list(tmp_path.glob("*.ipynb"))) == 1


def output_of(notebook: Any, source: str) -> Any:
    """Data of the last output of the cell that has this source."""
    (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source]
    return cell.outputs[-1]


def test_cells_show_what_they_say(notebook: Any) -> None:
    assert "<table" in output_of(notebook, 'ssd.run("trade"').data["text/html"]
    compared = output_of(notebook, "ps.compare(").data["text/html"]
    assert "<strong>" in compared
    assert "<script" not in compared
    assert "application/vnd.plotly.v1+json" in output_of(notebook, "plot.latency()").data
    assert output_of(notebook, "again == both").data["text/plain"] == "True"
    assert output_of(notebook, "try_encode").data["text/plain"] == "(4, True)"
    assert "did you mean ftl.victim?" in output_of(notebook, "ftl.victm").text
    assert all(output.get("name") != "stderr" for cell in notebook.cells for output in cell.get("outputs", ()))


def test_page_has_code_tables_and_plots(notebook: Any) -> None:
    page = tour.page(notebook)
    assert page.count("```python") == sum(cell.cell_type == "code" for cell in notebook.cells)
    assert "Plotly.newPlot" in page
    assert "<table" in page
