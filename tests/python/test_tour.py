"""The notebooks of the documentation: they run, outputs agree with the text, and the files have no outputs."""

import ast
import html
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

import tour

pytestmark = pytest.mark.contract


@pytest.fixture(scope="module")
def notebook() -> Any:
    return tour.executed(tour.NOTEBOOK)


@pytest.mark.parametrize("path", [tour.NOTEBOOK, tour.PACING], ids=lambda path: str(path.stem))
def test_kept_without_outputs(path: Path) -> None:
    kept = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    assert len(code) > (8 if path == tour.NOTEBOOK else 3)
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_outputs_are_kept_for_one_state_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    path = tmp_path / "any.ipynb"
    path.write_text(json.dumps(json.loads(tour.NOTEBOOK.read_text(encoding="utf-8")) | {"cells": []}), encoding="utf-8")

    def run(executed: Path) -> Any:
        runs.append(1)
        return nbformat.from_dict(json.loads(executed.read_text(encoding="utf-8")))  # type: ignore[no-untyped-call]

    monkeypatch.setattr(tour, "_KEPT", tmp_path)
    monkeypatch.setattr(tour, "execute", run)
    assert tour.executed(path) == tour.executed(path)
    assert len(runs) == 1
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    tour.executed(path)
    assert len(runs) == 2
    assert len(list((tmp_path / "any").glob("*.ipynb"))) == 1


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


def test_the_bandit_beats_collection_at_once_but_not_paced() -> None:
    executed = tour.executed(tour.PACING)
    rows = re.findall(r"<tr>(<td>.*?)</tr>", output_of(executed, "table.select").data["text/html"])
    found = {}
    for row in rows:
        name, *numbers = re.findall(r"<td>(.*?)</td>", row)
        # A policy over itself has equal ratios and no interval: `null`.
        numbers = [each.replace("null", "nan") for each in numbers if each not in ("str", "f64")]
        found[html.unescape(name).strip('"')] = [float(each) for each in numbers]
    _p99, _, _, high_once, *_ = found["bandit"]
    assert high_once < 0.7
    for policy in ("bandit", "action 2", "action 3"):
        _p99, _, _, _, _, low_paced, high_paced, *_ = found[policy]
        assert low_paced < 1 < high_paced
    assert found["bandit's actions, shuffled"][0] == pytest.approx(found["bandit"][0], rel=0.1)
    before, after = ast.literal_eval(output_of(executed, "t_erase").data["text/plain"])
    assert before == pytest.approx(5, rel=0.1)
    assert after < before / 3
    assert all(output.get("name") != "stderr" for cell in executed.cells for output in cell.get("outputs", ()))
    assert "pacing.ipynb" in tour.page(executed, "pacing.ipynb")


def test_page_has_code_tables_and_plots(notebook: Any) -> None:
    page = tour.page(notebook, "tour.ipynb")
    assert page.count("```python") == sum(cell.cell_type == "code" for cell in notebook.cells)
    assert "Plotly.newPlot" in page
    assert "<table" in page
