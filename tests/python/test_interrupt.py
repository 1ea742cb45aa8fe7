"""Ctrl-C at every stage, and threads beside a run, on the native module in separate processes."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import at_work
import palimpsest as ps
from conftest import COMMAND
from palimpsest.interrupts import is_command

pytestmark = pytest.mark.contract

ENDLESS = "rw=randwrite,bs=4k,n=1e12"
PROMPT_S = 5.0
"""Time that the end may take: 0.1 s on an idle machine, more on a loaded one."""


def interrupted(command: list[str]) -> tuple[int, str, float]:
    """Status, standard error and time to the end of a command that gets Ctrl-C at work."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        at_work.wait(process)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        try:
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
        return process.returncode, said, time.monotonic() - begin


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--ssd", "llh-64g", "--precondition", "fill:100%,random:90x"],
        ["run", "--workload", ENDLESS, "--precondition", "none", "--fidelity", "count", "--json"],
        ["compare", "--workload", ENDLESS, "--precondition", "none", "--jobs", "1"],
        ["compare", "--workload", ENDLESS, "--precondition", "none", "--jobs", "2"],
        ["trace", "info", ENDLESS],
        ["check", "page", "--seconds", "600"],
        ["trace", "synth", ENDLESS, "/dev/null", "--format", "csv"],
        ["reproduce", "mga", "--jobs", "2"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_command_ends_at_once(arguments: list[str]) -> None:
    status, said, took_s = interrupted([str(COMMAND), *arguments])
    assert (status, said) == (130, "interrupted\n")
    assert took_s < PROMPT_S


PRELUDE = """
import runpy, signal, sys
sys.orig_argv, sys.argv = [sys.executable, "-m", "palimpsest"], ["palimpsest", *sys.argv[1:]]
after, seen = int(sys.argv.pop(1)), 0
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        global seen
        seen += name != "palimpsest"
        if seen == after:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
runpy.run_module("palimpsest", run_name="__main__", alter_sys=True)
"""
"""The command, with Ctrl-C at the import of one module: `-c PRELUDE NUMBER ARGUMENT...`."""


@pytest.mark.parametrize("number", [1, 2, 10, 40, 100, 150])
def test_an_interrupt_while_modules_load_is_one_line(number: int) -> None:
    run = ["run", "--workload", "rw=randwrite,bs=4k,n=1e3", "--precondition", "none", "--fidelity", "count"]
    command = [sys.executable, "-c", PRELUDE, str(number), *run]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_an_interrupt_that_python_loses_ends_the_command() -> None:
    """As in a callback of the import system, where the interrupt is not raised."""
    program = """
import signal, sys
sys.orig_argv = [sys.executable, "-m", "palimpsest"]
from palimpsest import interrupts
class Callback:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
interrupts.at_work()
Callback()
print("it went on")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_an_interrupt_at_the_end_leaves_the_status() -> None:
    program = """
import signal, sys
sys.orig_argv = [sys.executable, "-m", "palimpsest"]
from palimpsest import interrupts
interrupts.at_work()
interrupts.at_end(7)
signal.raise_signal(signal.SIGINT)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stderr) == (7, "")


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["-m", "palimpsest", "run"], True),
        (["-X", "dev", "-P", "-mpalimpsest"], True),
        (["/somewhere/bin/palimpsest", "run"], True),
        (["-m", "palimpsest.sweeps.worker"], False),
        (["-m", "pytest", "palimpsest"], False),
        (["-c", "import palimpsest"], False),
        (["program.py", "palimpsest"], False),
        ([], False),
    ],
)
def test_only_the_command_ends_by_an_interrupt(arguments: list[str], command: bool) -> None:
    assert is_command(arguments) == command


def test_command_ends_at_once_while_it_waits_for_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [str(COMMAND), "run", "--precondition", "none", "--workload", str(pipe)]
    status, said, took_s = interrupted(command)
    assert (status, said) == (130, "interrupted\n"), "one line, no traceback"
    assert took_s < PROMPT_S
    writer = os.open(pipe, os.O_RDWR)
    try:
        status, said, took_s = interrupted(command)
    finally:
        os.close(writer)
    assert (status, said) == (130, "interrupted\n"), "the writer says nothing"
    assert took_s < PROMPT_S
    drive = [str(COMMAND), "show", "--ssd", str(pipe)]
    assert interrupted(drive)[:2] == (130, "interrupted\n")


@pytest.mark.parametrize(
    "call",
    [
        f"ps.run({ENDLESS!r}, precondition='none', fidelity='count')",
        f"ps.compare(['page', 'subpage'], workload={ENDLESS!r}, precondition='none', jobs=2)",
    ],
)
def test_python_raises_keyboard_interrupt(call: str) -> None:
    program = f"import palimpsest as ps\ntry:\n    {call}\nexcept KeyboardInterrupt:\n    raise SystemExit(42)\n"
    status, said, took_s = interrupted([sys.executable, "-c", program])
    assert (status, said) == (42, "")
    assert took_s < PROMPT_S


def test_threads_run_beside_a_run() -> None:
    """A run that held the interpreter's lock would stop all other threads."""
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.002)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    workload = ps.fio(rw="randwrite", bs="4k", size="1GiB", n=1e6)
    ps.run(workload, precondition="none", fidelity="count", series=False)
    end = time.monotonic()
    done.set()
    thread.join()
    during = [moment for moment in ticks if begin < moment < end]
    assert end - begin > 0.05, "too short a run to measure"
    assert len(during) >= 5
    assert max(after - before for before, after in itertools.pairwise(during)) < (end - begin) / 2
