"""Folders of results, without simulation: whole or absent, never through a link, read only from inside."""

import json
from pathlib import Path
from typing import Any

import pytest

import fake_core
from palimpsest import errors, files, outputs
from palimpsest.result import Comparison, Result

pytestmark = pytest.mark.unit


def result(ftl: str = "page") -> Result:
    options = {"ftl": ftl, "requests": 1000, "fidelity": "timed", "ssd": "default", "workload": "trade", "seed": 1}
    return Result(fake_core.summary(options | {"payload": "none", "precondition": None}))


def test_files_before_a_failure_are_whole_and_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> str:
        raise OSError(28, "No space left on device")

    folder = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("palimpsest.report.page", fail)
        for made in ([result()], [result(), result("mga")]):
            with pytest.raises(OSError, match="No space left") as error:
                outputs.save(made, folder, together=len(made) > 1)
            assert error.value.filename == str(folder)
            assert [path.name for path in tmp_path.iterdir()] == ["out"]
            assert outputs.load(folder).to_dict() == (made[0] if len(made) == 1 else Comparison(made)).to_dict()
            assert not list(folder.rglob("*.partial")) + list(folder.rglob("report.html"))
    outputs.save([result()], folder, together=False)
    assert {"summary.json", "config.toml", "report.html"} <= {path.name for path in folder.iterdir()}
    (folder / "own.txt").write_text("mine")
    outputs.save([result("mga")], folder, together=False)
    assert json.loads((folder / "summary.json").read_text())["ftl"] == "mga"
    assert (folder / "own.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_links_in_a_folder_are_replaced(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "summary.json").symlink_to(precious)
    (folder / "report.html").symlink_to(precious)
    (folder / "page").symlink_to(elsewhere)
    outputs.save([result(), result("mga")], folder, together=True)
    assert precious.read_text() == "precious"
    assert not list(elsewhere.iterdir())
    assert not [path for path in folder.rglob("*") if path.is_symlink()]


def test_a_report_stays_inside_its_folder(tmp_path: Path) -> None:
    outputs.save([result()], tmp_path / "other", together=False)
    folder = tmp_path / "out"
    outputs.save([result(), result("mga")], folder, together=True)
    summary = json.loads((folder / "summary.json").read_text())
    for name in ("../other", str(tmp_path / "other"), "..", "a/b"):
        summary["runs"][0]["ftl"] = name
        (folder / "summary.json").write_text(json.dumps(summary))
        with pytest.raises(errors.InputError, match="inside this one"):
            outputs.load(folder)
    (folder / "summary.json").write_text("[" * 100_000)
    with pytest.raises(errors.InputError, match="nested too deep"):
        outputs.load(folder)


def test_files_of_settings_have_a_largest_size(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="more than 16 MiB"):
        files.read_text(Path("/dev/zero"))
    (tmp_path / "a").write_text("a")
    assert files.read_text(tmp_path / "a") == "a"
