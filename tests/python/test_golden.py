"""`make golden` finds its matrix: the layers and workloads of the installed command."""

import json
from pathlib import Path

import pytest

import golden
from conftest import ROOT, Command

pytestmark = pytest.mark.contract


def test_layers_and_workloads_are_those_of_the_command(palimpsest: Command, tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(ROOT / "python")
    layers = golden.Revision("here", ROOT, tmp_path).layers()
    listed = palimpsest("list", "ftls").stdout
    assert len(layers) > 15
    assert {"page", "fs-page", "womv"} <= set(layers)
    assert all(layer in listed for layer in layers)
    presets = palimpsest("list", "workloads").stdout.split()
    assert all(text.partition(",")[0] in presets or text.startswith("rw=") for text in golden.WORKLOADS.values())


def test_a_figure_that_differs_is_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    summary = json.loads('{"requests": {"read": 1}, "write_amplification": 2.0}')
    before = dict(golden.flat(summary))
    assert golden.compare("one", before, before)
    assert not golden.compare("two", before, before | {"requests.read": 2})
    assert not golden.compare("three", before, "error: a run that fails")
    assert capsys.readouterr().out.count("differs") == 2
