"""Commands without the packages of extras: most work, and the others name the extra in one line before they start."""

import csv
import importlib
import io
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import palimpsest as ps
from conftest import ROOT
from palimpsest import distribution
from palimpsest.needs import PACKAGES
from palimpsest.replicates import Replicates

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SPEC = "rw=randrw,bs=4k,size=16MiB,n=300"
SMALL = f"--ssd mga-8k --precondition none --workload {SPEC}"
HIDE = """
import sys
for name in {packages!r}:
    sys.modules[name] = None
sys.argv[0] = "palimpsest"
from palimpsest.__main__ import main
main()
"""


def names(requirements: list[str]) -> list[str]:
    return [re.split(r"[^\w-]", each)[0] for each in requirements]


def bare(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with no package of an extra."""
    packages = sorted({each for extra in distribution.EXTRAS.values() for each in extra})
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    line = [sys.executable, "-c", HIDE.format(packages=packages), *arguments]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_extras_are_those_of_the_project() -> None:
    extras = PROJECT["optional-dependencies"]
    assert {name: list(packages) for name, packages in distribution.EXTRAS.items()} == {
        name: names(requirements) for name, requirements in extras.items() if name != "dev"
    }
    for name in distribution.EXTRAS:
        assert set(extras[name]) <= set(extras["dev"])
    assert names(PROJECT["dependencies"]) == ["click", "rich", "numpy"]


@pytest.mark.contract
@pytest.mark.parametrize(
    "command",
    ["--help", "list", "show", "cite", f"run {SMALL}", f"run {SMALL} --json --out out", f"trace info {SPEC}",
     f"compare {SMALL} --ftl page,mga --out out", f"compare {SMALL} --seeds 1..2 --out out", "completion bash"],
)  # fmt: skip
def test_commands_work_without_extras(tmp_path: Path, command: str) -> None:
    done = bare(tmp_path, *command.split())
    assert done.returncode == 0, done.stderr
    if "--out" in command:
        assert "<html" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("command", "package"),
    [("sweep a.toml", "sweep"), ("leaderboard", "sweep"), ("fit a.csv --start default", "sweep"),
     ("report .", "report"), ("rerun .", "report"), ("why .", "report"), ("figure cdf . -o a.pdf", "report"),
     ("reproduce mga", "report"),
     ("validate", "report"), ("run --operations o.parquet", "report"), ("compare --operations slowest:5", "report")],
)  # fmt: skip
def test_a_command_names_the_extra_in_one_line(tmp_path: Path, command: str, package: str) -> None:
    done = bare(tmp_path, *command.split())
    assert (done.returncode, done.stdout) == (1, "")
    said = rf"error: polars is needed for this; expected `pip install 'palimpsest-ssd\[{package}\]'` before it\n"
    assert re.fullmatch(said, done.stderr), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_every_row_names_a_command_and_an_extra() -> None:
    cli = importlib.import_module("palimpsest.cli")
    for command, (extra, *packages) in PACKAGES.items():
        assert command in cli.cli.names
        assert set(packages) <= set(distribution.EXTRAS[extra])


def test_a_package_of_no_extra_stays_an_unexpected_error() -> None:
    assert distribution.missing("plotly") is not None
    assert distribution.missing("click") is None
    assert distribution.missing(None) is None


def labelled(label: str, seed: int) -> ps.Result:
    result = ps.run("w", seed=seed)
    return ps.Result(result.to_dict() | {"label": label}, result.series)


def test_intervals_are_the_same_with_and_without_polars(fake: Any, tmp_path: Path) -> None:
    assert fake
    runs = [labelled(f"{name}-seed-{seed}", seed) for name in ("a", "b") for seed in (1, 2)]
    found = Replicates(runs, ["a", "b"], [1, 2], "t")
    found.save(tmp_path)
    plain = list(csv.DictReader((tmp_path / "intervals.csv").read_text(encoding="utf-8").splitlines()))
    with_polars = list(csv.DictReader(io.StringIO(found.to_polars().write_csv())))
    assert len(plain) == len(with_polars) > 10
    for ours, theirs in zip(plain, with_polars, strict=True):
        assert ours.keys() == theirs.keys()
        for name, value in ours.items():
            assert value == theirs[name] or float(value) == float(theirs[name])
