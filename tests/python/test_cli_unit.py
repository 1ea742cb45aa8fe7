"""The command line without simulation, on the stand-in: statuses, interrupts, pipes, start-up time, progress."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import result_schema
from conftest import ROOT, Command, figures
from terminals import read_all

pytestmark = pytest.mark.unit

FAKE = [sys.executable, str(ROOT / "tests" / "python" / "fake_cli.py")]


def test_stand_in_has_the_shape_of_a_result(fake_command: Command) -> None:
    assert result_schema.problems(figures(fake_command("run", "--json"))) == []
    count = figures(fake_command("run", "--json", "--fidelity", "count"))
    assert result_schema.problems_at_count_fidelity(count) == []


def test_help_without_arguments(fake_command: Command) -> None:
    done = fake_command()
    assert (done.returncode, done.stderr) == (0, "")
    assert "palimpsest compare" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["run", "--requests", "1.5"], 2, "error: --requests: expected a whole number, found '1.5'\n"),
        (["run", "--ftl", "x"], 2, "error: --ftl x: no such layer; expected one of page, subpage, mga, block\n"),
        (["run", "--workload", "broken.csv"], 2, "error: broken.csv:7: expected an offset in bytes, found `x`\n"),
        (["run", "--ftl", "block"], 1, "error: plane 3 has no good blocks left after 1,234 requests\n"),
        (["run", "--out", "/dev/null/x"], 2, "error: --out /dev/null/x: expected a folder that can be made"),
    ],
)
def test_errors_are_one_line(fake_command: Command, arguments: list[str], status: int, says: str) -> None:
    done = fake_command(*arguments)
    assert done.returncode == status
    assert done.stderr.startswith(says)
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_finished_layers_are_kept_when_one_fails(fake_command: Command) -> None:
    done = fake_command("compare", "--ftl", "page,block,mga", "--jobs", "1", "--json")
    assert done.returncode == 1
    assert [run["ftl"] for run in json.loads(done.stdout)["runs"]] == ["page"]
    assert done.stderr.splitlines()[0] == "1 of 3 runs finished"


@pytest.mark.parametrize(("jobs", "finished"), [("1", 1), ("2", 0)])
def test_interrupt_keeps_what_was_finished(jobs: str, finished: int, tmp_path: Path) -> None:
    command = [*FAKE, "2", "compare", "--json", "--jobs", jobs]
    log = tmp_path / "started"
    log.touch()
    environment = os.environ | {"FAKE_STARTED": str(log)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        # The interrupt arrives in the second run, however long the start takes: after the first, or beside it.
        deadline = time.monotonic() + 30
        while len(log.read_text(encoding="utf-8").splitlines()) < 2:
            assert time.monotonic() < deadline, "the second run has not begun"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err
    assert len(json.loads(out)["runs"] if out else []) == finished


def test_closed_pipe_is_quiet() -> None:
    command = [*FAKE, "0", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize("command", ["run --json", "list", "show", "cite"])
def test_light_start(command: str) -> None:
    """These commands need no table, plot or data frame, and must not load their libraries."""
    script = (
        f"import sys, fake_core; sys.modules['palimpsest._core'] = fake_core; sys.argv[1:] = {command.split()}\n"
        "from palimpsest.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(sorted({'rich', 'polars', 'plotly', 'numpy'} & sys.modules.keys()), file=sys.stderr)"
    )
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'tests' / 'python'}{os.pathsep}{ROOT / 'python'}"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stderr == "[]\n"


def test_a_command_loads_no_other() -> None:
    """`list` must not import the modules of other commands, which take twice its time."""
    script = (
        "import sys, fake_core; sys.modules['palimpsest._core'] = fake_core; sys.argv[1:] = ['list', '--json']\n"
        "from palimpsest import cli\n"
        "try: cli.main()\n"
        "except SystemExit: print(sorted({m for m, _ in cli._COMMANDS.values()}\n"
        "    & {m.removeprefix('palimpsest.') for m in sys.modules}), file=sys.stderr)"
    )
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'tests' / 'python'}{os.pathsep}{ROOT / 'python'}"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stderr == "['listing']\n"


def at_terminal(*arguments: str, seconds: float) -> tuple[str, str]:
    """Standard output, and the output on standard error at a terminal."""
    ours, theirs = pty.openpty()
    command = [*FAKE, str(seconds), *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=theirs, text=True, env=os.environ | {"TERM": "xterm"}
    ) as p:
        os.close(theirs)
        seen = read_all(ours)
        assert p.stdout is not None
        out = p.stdout.read()
    return out, seen


def test_progress_only_on_long_runs_at_a_terminal(fake_command: Command) -> None:
    out, seen = at_terminal("run", "--json", seconds=3)
    assert json.loads(out)["ftl"] == "page"
    assert "req" in seen
    assert "run" in seen
    assert at_terminal("run", "--json", seconds=0.5)[1] == ""
    assert fake_command("run", "--json", seconds=3).stderr == ""


@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_comparison_fits_the_terminal(fake_command: Command, width: str) -> None:
    environment = os.environ | {"COLUMNS": width, "NO_COLOR": "1"}
    done = fake_command("compare", "--ftl", "page,subpage,mga", env=environment)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= int(width)
    assert "\x1b" not in done.stdout
    assert "1.83* 0.50x" in " ".join(done.stdout.split())
    assert "subpage vs page: flash bytes programmed -50 %, " in " ".join(done.stdout.split())
