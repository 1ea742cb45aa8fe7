"""When a command that was started is at work, by its processor time: a loaded machine only takes longer."""

import os
import subprocess
import time
from pathlib import Path

WORKED_S = 0.8
"""Processor time after which any command is some way into what it was asked for: loading takes half of it."""
WAITED_S = 0.4
"""A process that has slept for this long waits for something."""
MOST_S = 4.0


def wait(process: subprocess.Popen[str]) -> None:
    """Returns when the process has computed for `WORKED_S`, or waits for others, or has ended, or after `MOST_S`."""
    begin = awake = time.monotonic()
    computed = 0.0
    # Where there are no such files it has all the time.
    while computed < WORKED_S and process.poll() is None and (now := time.monotonic()) < begin + MOST_S:
        time.sleep(0.02)
        state, at = found if (found := state_and_cpu_s(process.pid)) else ("R", 0.0)
        if state != "S" or at > computed:
            computed, awake = at, now
        elif now > awake + WAITED_S:
            return


def state_and_cpu_s(number: int) -> tuple[str, float] | None:
    """State of a process and seconds of processor time of all its threads; None where the system does not say."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
