"""Ctrl-C at every stage, and threads beside a run. On the native module, in processes of their own."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import palimpsest as ps
from conftest import COMMAND

pytestmark = pytest.mark.contract

ENDLESS = "rw=randwrite,bs=4k,n=1e12"
PROMPT_S = 5.0
"""How long the end may take: 0.1 s by itself, more on a loaded machine."""


def interrupted(command: list[str], after_s: float) -> tuple[int, str, float]:
    """Status and standard error of a command that gets Ctrl-C, and how long it took to end."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(after_s)
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
        ["trace", "synth", ENDLESS, "/dev/null", "--format", "csv"],
        ["reproduce", "mga", "--jobs", "2"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_command_ends_at_once(arguments: list[str]) -> None:
    status, said, took_s = interrupted([str(COMMAND), *arguments], 2.0)
    assert (status, said) == (130, "interrupted\n")
    assert took_s < PROMPT_S


def test_command_ends_at_once_while_it_waits_for_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [str(COMMAND), "run", "--precondition", "none", "--workload", str(pipe)]
    status, said, took_s = interrupted(command, 1.5)
    assert (status, said) == (130, "interrupted\n"), "one line, no traceback"
    assert took_s < PROMPT_S
    writer = os.open(pipe, os.O_RDWR)
    try:
        status, said, took_s = interrupted(command, 1.5)
    finally:
        os.close(writer)
    assert (status, said) == (130, "interrupted\n"), "the writer says nothing"
    assert took_s < PROMPT_S
    drive = [str(COMMAND), "show", "--ssd", str(pipe)]
    assert interrupted(drive, 1.5)[:2] == (130, "interrupted\n")


@pytest.mark.parametrize(
    "call",
    [
        f"ps.run({ENDLESS!r}, precondition='none', fidelity='count')",
        f"ps.compare(['page', 'subpage'], workload={ENDLESS!r}, precondition='none', jobs=2)",
    ],
)
def test_python_raises_keyboard_interrupt(call: str) -> None:
    program = f"import palimpsest as ps\ntry:\n    {call}\nexcept KeyboardInterrupt:\n    raise SystemExit(42)\n"
    status, said, took_s = interrupted([sys.executable, "-c", program], 2.5)
    assert (status, said) == (42, "")
    assert took_s < PROMPT_S


def test_threads_run_beside_a_run() -> None:
    """A run that held the interpreter's lock would let no other thread count."""
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
