"""The distribution has a name of its own, and its package refuses to run among the files of another distribution."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from conftest import ROOT
from palimpsest import distribution

PACKAGE = ROOT / "python" / "palimpsest"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OVER = "palimpsest/__init__.py,sha256=x,1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of packages with this one, without its native module."""
    shutil.copytree(PACKAGE, tmp_path / "palimpsest", ignore=shutil.ignore_patterns("*.so", "__pycache__", "templates"))
    return tmp_path


def stranger(folder: Path, record: str | None, name: str = "palimpsest-0.0.2.dist-info") -> None:
    info = folder / name
    info.mkdir()
    if record is not None:
        (info / "RECORD").write_text(record, encoding="utf-8")


def ends(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_name_is_ours() -> None:
    assert PROJECT["name"] == distribution.NAME
    assert PROJECT["scripts"] == {"palimpsest": "palimpsest.__main__:main"}


@pytest.mark.parametrize(
    ("name", "record", "found"),
    [
        ("palimpsest-0.0.2.dist-info", OVER, "palimpsest 0.0.2"),
        ("Palimpsest-1.0.dist-info", OVER, "palimpsest 1.0"),
        ("palimpsest-0.0.2.egg-info", None, "palimpsest 0.0.2"),
        ("palimpsest-0.1.0.dist-info", "palimpsest.pth,sha256=x,1\n", None),
        ("palimpsest_ssd-0.1.0.dist-info", OVER, None),
        ("palimpsest_other-0.1.0.dist-info", OVER, None),
    ],
)
def test_another_distribution_is_found(tmp_path: Path, name: str, record: str | None, found: str | None) -> None:
    stranger(tmp_path, record, name)
    assert distribution.other(tmp_path) == found


def test_an_import_beside_another_is_refused(folder: Path) -> None:
    stranger(folder, OVER)
    done = ends(folder, "-c", "import palimpsest")
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert said.startswith(f"ImportError: {folder}: the distribution palimpsest 0.0.2 has files in the package of")
    assert "pip uninstall palimpsest palimpsest-ssd" in said


@pytest.mark.parametrize("replaced", [False, True], ids=["ours", "theirs"])
def test_a_command_beside_another_is_one_line(folder: Path, replaced: bool) -> None:
    stranger(folder, OVER)
    if replaced:
        (folder / "palimpsest" / "__init__.py").write_text("NAME = 'another project'\n", encoding="utf-8")
    done = ends(folder, "-m", "palimpsest", "list")
    assert done.returncode == 1
    assert re.fullmatch(r"error: .*: the distribution palimpsest 0\.0\.2 has files in [^\n]*\n", done.stderr)
    assert done.stdout == ""
