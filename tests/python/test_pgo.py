"""`make wheel-pgo` trains the build for maturin, and builds the plain wheel if the profile cannot be merged."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import pgo

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize(("has_profdata", "said"), [(True, "with the profile of"), (False, "without a profile")])
def test_wheel(
    has_profdata: bool, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built: list[list[str]] = []

    def build(command: list[str], **_options: object) -> subprocess.CompletedProcess[str]:
        built.append(command)
        (tmp_path / "dist").mkdir()
        (tmp_path / "dist" / "palimpsest.whl").touch()
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(pgo, "ROOT", tmp_path)
    monkeypatch.setattr(pgo, "find_profdata", lambda: has_profdata)
    monkeypatch.setattr(subprocess, "run", build)
    assert pgo.main([]) == 0
    assert [("--pgo" in command) for command in built] == [has_profdata]
    assert said in capsys.readouterr().out


def test_maturin_calls_the_training() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["maturin"]["pgo-command"].split() == ["python", "tools/pgo.py", "train"]
    with pytest.raises(SystemExit, match="expected nothing or train, not traim"):
        pgo.main(["traim"])


def test_the_training_is_none_of_the_benches() -> None:
    benches = (ROOT / "benches" / "speed.rs").read_text(encoding="utf-8")
    specs = re.findall(r'spec: "([^"]+)"', benches)
    assert specs
    trained = [arguments[arguments.index("--workload") + 1] for arguments in pgo.TRAINING if "--workload" in arguments]
    # Benches use 4 KiB at uniform addresses, drawn again each time.
    assert not any("norandommap" in text or re.search(r"\bbs=4k\b", text) for text in trained)
