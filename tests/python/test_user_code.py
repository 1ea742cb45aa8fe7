"""Code of the user inside a command: its exits are errors that name it, and its prints go to standard error."""

import json
from pathlib import Path
from typing import Any

import pytest

import palimpsest as ps
from conftest import ROOT, Command

CONTRACT = pytest.mark.contract
SMALL = ("--ssd=mga-8k", "--ftl=page", "--set=ssd.channels=2", "--set=ssd.blocks_per_plane=24",
         "--set=part.pages_per_block=16")  # fmt: skip
LOAD = ("--precondition=fill:100%,random:1x", "--workload=rw=randwrite,bs=8k,n=300")
RING = ROOT / "examples" / "python" / "ring.py"
POLICIES = {
    "ftl.victim": ("choose(self, blocks)", "blocks.valid.argmin()"),
    "ftl.classifier": ("classify(self, requests)", "requests.size > 0"),
    "ftl.gc_pace": ("spread(self, victim)", "0"),
    "ftl.allocation": ("place(self, planes)", "0"),
}
ENDS = {"exit": "sys.exit(3)", "quit": "raise SystemExit", "cancelled": "raise asyncio.CancelledError('now')"}


def _policy(folder: Path, method: str, body: str, top: str = "") -> Path:
    path = folder / "mine.py"
    text = f"import asyncio, sys\n{top}\nclass Mine:\n    def {method}:\n        {body}\n"
    path.write_text(text, encoding="utf-8")
    return path


@CONTRACT
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("key", POLICIES)
def test_the_exit_of_a_policy_is_an_error(palimpsest: Command, tmp_path: Path, key: str, end: str) -> None:
    method, _ = POLICIES[key]
    path = _policy(tmp_path, method, ENDS[end])
    streams = ("--set=ftl.streams=3",) if key == "ftl.classifier" else ()
    done = palimpsest("run", *SMALL, *LOAD, *streams, f"--set={key}={path}:Mine")
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert f"mine.py:Mine.{method.partition('(')[0]}, " in last
    assert ("CancelledError: now" if end == "cancelled" else "SystemExit") in last


@CONTRACT
@pytest.mark.parametrize("where", ["import", "init"])
def test_the_exit_of_a_file_is_an_error(palimpsest: Command, tmp_path: Path, where: str) -> None:
    top = "sys.exit(3)" if where == "import" else ""
    path = _policy(tmp_path, "__init__(self)", "sys.exit(3)", top)
    done = palimpsest("run", *SMALL, *LOAD, f"--set=ftl.victim={path}:Mine")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "mine.py" in done.stderr
    assert "SystemExit: 3" in done.stderr


def _ring(folder: Path, before: str, after: str) -> Path:
    text = RING.read_text(encoding="utf-8")
    assert text.count(before) == 1
    path = folder / "mine.py"
    path.write_text(text.replace(before, after), encoding="utf-8")
    return path


@CONTRACT
def test_the_exit_of_a_layer_is_an_error(palimpsest: Command, tmp_path: Path) -> None:
    path = _ring(tmp_path, "self.runs += 1", "exit(3)")
    done = palimpsest("run", "--ssd=mga-8k", f"--ftl={path}:Ring", *SMALL[2:], "--precondition=fill:100%,random:1x",
                      "--workload=rw=randwrite,bs=8k,n=300")  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert "Ring.write: SystemExit: 3" in " ".join(done.stderr.split())


class Leaves:
    """A layer whose figures end Python."""

    def figures(self) -> Any:
        raise SystemExit(3)


def test_the_exit_of_figures_is_an_error() -> None:
    from palimpsest.layers import Io, Layer

    with pytest.raises(ps.LayerError, match=r"Leaves.figures: SystemExit: 3"):
        Io(Layer, {}, 1).figures(Leaves())  # type: ignore[arg-type]


@CONTRACT
def test_prints_of_a_policy_leave_the_json_alone(palimpsest: Command, tmp_path: Path) -> None:
    method, answer = POLICIES["ftl.victim"]
    body = f"print('chosen'); sys.stdout.write('written\\n'); return {answer}"
    path = _policy(tmp_path, method, body, "print('loaded')")
    key = f"--set=ftl.victim={path}:Mine"
    run = palimpsest("run", *SMALL, *LOAD, key, "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["flash"]["erases"]
    said = run.stderr.splitlines()
    assert {"loaded", "chosen", "written"} <= set(said)
    compared = palimpsest(
        "compare", "page", f"mine:ftl=page,ftl.victim={path}:Mine", SMALL[0], *SMALL[2:], *LOAD, "--json"
    )
    assert len(json.loads(compared.stdout)["runs"]) == 2
    assert "loaded" in compared.stderr
    shown = palimpsest("show", *SMALL, key)
    assert "loaded" not in shown.stdout
    assert shown.stdout.startswith("#") or "[" in shown.stdout


@CONTRACT
def test_prints_of_a_layer_leave_the_json_of_a_check_alone(palimpsest: Command, tmp_path: Path) -> None:
    path = _ring(tmp_path, "self.runs += 1", "self.runs += 1; print('cleaned')")
    done = palimpsest("check", f"{path}:Ring", "--case", "counted:0", "--json")
    assert (done.returncode, json.loads(done.stdout)["broken"]) == (0, None)
    assert "cleaned" in done.stderr


def test_results_are_printed_in_one_way() -> None:
    """`click.echo` prints a result on standard error while a command works; `commands.echo` does not."""
    package = ROOT / "python" / "palimpsest"
    known = {"cli.py", "commands.py"}
    for path in package.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        wrong = [line for line in lines if "click.echo(" in line and "err=True" not in line]
        assert not wrong or path.name in known, (path.name, wrong)
