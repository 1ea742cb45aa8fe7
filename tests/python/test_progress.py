"""Bars and lines of progress: a run of seconds shows none, and a longer run shows one early."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from palimpsest import progress
from palimpsest.sweeps.board import SweepBoard


class Clock:
    """A clock that moves only when it is set."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def shown(board: progress.ProgressBoard) -> list[tuple[str, float, float | None]]:
    bars = board._bars
    return [] if bars is None else [(task.description, task.completed, task.total) for task in bars.tasks]


def test_what_takes_more_than_five_seconds_shows_its_bar_at_once(clock: Clock) -> None:
    with progress.ProgressBoard(enabled=True) as board:
        report = board.callback("page")
        assert report is not None
        report("precondition", 0, 1000, 0)
        clock.now += 0.2
        report("precondition", 10, 1000, 0)
        assert shown(board) == [], "no rate is known yet"
        clock.now += 0.1
        report("precondition", 15, 1000, 0)
        assert shown(board) == [("page precondition", 15, 1000)], "some 20 s are left"


def test_a_short_run_shows_nothing(clock: Clock) -> None:
    with progress.ProgressBoard(enabled=True) as board:
        report = board.callback("page")
        assert report is not None
        for done in range(0, 1000, 100):
            report("run", done, 1000, 5)
            clock.now += 0.19
        assert shown(board) == []
        clock.now += 0.2
        report("run", 1000, 1000, 5)
        assert shown(board) == [("page run", 1000, 1000)], "it has taken more than two seconds"


def test_filling_and_overwriting_have_rates_of_their_own(clock: Clock) -> None:
    with progress.ProgressBoard(enabled=True) as board:
        report = board.callback("page")
        assert report is not None
        report("precondition", 0, 10**9, 0)
        clock.now += 1.0
        report("precondition", 10**9, 10**9, 0)
        assert shown(board) == []
        report("precondition", 0, 10**8, 0)
        clock.now += 0.5
        report("precondition", 10**6, 10**8, 0)
        assert shown(board) == [("page precondition", 10**6, 10**8)], "some 50 s, whatever the fill took"


@pytest.mark.unit
def test_a_line_has_phase_share_rate_and_time_left(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "Lines", lambda *_: None)
    monkeypatch.setattr(progress, "at_terminal", lambda: False)
    board = progress.ProgressBoard()
    report = board.callback("page")
    assert report is not None
    assert board._line() == "at work for 0:00"
    report("precondition", 0, 4_000_000, 0)
    clock.now += 10
    report("precondition", 1_000_000, 4_000_000, 0)
    expected = "page precondition: 1,000,000 of 4,000,000 units (25 %), 100,000/s, 0:30 left"
    assert board._line() == expected
    report("run", 0, 0, 0)
    clock.now += 5
    report("run", 500, 0, 0)
    assert board._line() == "page run: 500 requests, 100/s"
    clock.now += 100
    board.headline = "counts: 3 of at most 80 points"
    assert board._line() == board.headline, "the run reports no more"


@pytest.mark.unit
def test_a_line_names_three_of_many_runs(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    assert clock
    monkeypatch.setattr(progress, "at_terminal", lambda: False)
    board = progress.ProgressBoard()
    for number in range(5):
        report = board.callback(f"layer{number}")
        assert report is not None
        report("run", 1, 2, 0)
    said = board._line().split("; ")
    assert (said[0], said[-1], len(said)) == ("5 runs begun", "2 more runs", 5)


@pytest.mark.unit
def test_lines_come_where_nothing_reports(capfd: pytest.CaptureFixture[str]) -> None:
    lines = progress.Lines(lambda: "at work", every_s=0.02)
    deadline = time.monotonic() + 10
    seen = ""
    while seen.count("at work\n") < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
        seen += capfd.readouterr().err
    lines.end()
    assert seen.count("at work\n") >= 2
    capfd.readouterr()
    time.sleep(0.1)
    assert capfd.readouterr().err == ""


RUN = r"page run: [\d,]+ of 100,000 requests \(\d+ %\), [\d,]+/s, \d:\d\d left"


@pytest.mark.unit
def test_long_commands_print_lines_without_a_terminal(fake_command: Command) -> None:
    environment = os.environ | {"FAKE_LINE_EVERY": "0.4"}
    for command in (["run"], ["compare", "--jobs", "1"], ["run", "--seeds", "1..2"]):
        done = fake_command(*command, "--json", "--ftl", "page", seconds=1.2, env=environment)
        assert json.loads(done.stdout)
        lines = [line for line in done.stderr.splitlines() if " run: " in line]
        assert lines, done.stderr
        if command == ["run"]:
            assert all(re.fullmatch(RUN.replace("page", "run"), line) for line in lines), done.stderr
    assert fake_command("run", "--json", seconds=1).stderr == "", "the first line comes after ten seconds"


@pytest.mark.unit
def test_a_sweep_prints_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "at_terminal", lambda: False)
    board = SweepBoard(None, {"a": "page"})
    board.begin(4, 1)
    board.watch("a", "run", 1, 2, 0)
    outcome: dict[str, Any] = {"identity": "b", "status": "failed"}
    board.finished(outcome)
    assert re.fullmatch(r"points: 1/4, 1 failed, 1 before, ETA \d:\d\d \(38 %\)", board._line()), board._line()


def native(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """The command with the native module, and a line of progress fifty times a second."""
    program = "from palimpsest import progress, cli; progress.LINE_EVERY_S = 0.02; cli.main()"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd)


LONG = "rw=randwrite,bs=4k,size=16MiB,n=20000"
DRIVE = "--ssd mga-16k --precondition none"


@pytest.mark.contract
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            f"run --json {DRIVE} --workload {LONG}0",
            r"run (precondition|run): [\d,]+ of [\d,]+ (units|requests) \(\d+ %\).*",
        ),
        (
            f"compare --json {DRIVE} --ftl page,dftl --workload {LONG}0",
            r"(page|dftl) run: [\d,]+ of 200,000 requests .*",
        ),
        ("sweep a.toml --json", r"points: \d/2.* \(\d+ %\)"),
        (
            "fit b.toml --start mga-16k --set ssd.blocks_per_plane=16 --vary part.t_read=3us..60us --evaluations 2",
            r"fit: search: \d points, \d+ %, about \d:\d\d left",
        ),
        ("trace info rw=randwrite,bs=4k,n=1e6 --json", r"read run: [\d,]+ of 1,000,000 requests \(\d+ %\).*"),
    ],
)
def test_commands_of_the_native_module_print_lines(tmp_path: Path, arguments: str, line: str) -> None:
    (tmp_path / "a.toml").write_text(
        f"[base]\nssd = 'mga-16k'\nprecondition = 'none'\nworkload = '{LONG}'\n[grid]\nseed = [1, 2]\n"
    )
    (tmp_path / "b.toml").write_text(
        "[[figure]]\nworkload = 'rw=randread,bs=4k,size=16MiB'\nmeasure = 'read.mean'\nvalue = 60\nunit = 'us'\n"
        "requests = 1_000\nprecondition = 'fill:1%'\n"
    )
    done = native(*arguments.split(), cwd=tmp_path)
    # A fit ends with 3 if the drive does not fit.
    assert done.returncode in ((0, 3) if arguments.startswith("fit ") else (0,)), done.stderr
    assert any(re.fullmatch(line, each) for each in done.stderr.splitlines()), done.stderr
    if "--json" in arguments:
        assert json.loads(done.stdout)


@pytest.mark.unit
def test_an_unread_standard_error_holds_up_no_end() -> None:
    program = (
        "import os; from palimpsest import progress\n"
        "lines = progress.Lines(lambda: 'x' * 100_000, 0.01); import time; time.sleep(0.5); lines.end()\n"
        "os.write(1, b'ended')"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(5) == b"ended"
        assert process.wait(30) == 0
