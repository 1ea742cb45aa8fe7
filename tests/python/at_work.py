"""Detects by processor time when a started command is at work, because a loaded machine only stretches wall time."""

import os
import subprocess
import time
from pathlib import Path

WORKED_S = 0.8
"""Processor time after which any command has begun its work: loading takes half of this."""
WAITED_S = 0.4
"""A process that has slept for this long waits for another."""
MOST_S = 4.0


def wait(process: subprocess.Popen[str]) -> None:
    """Returns when the process has computed for `WORKED_S`, waits, or has ended, and after `MOST_S` at the latest."""
    begin = awake = time.monotonic()
    computed = 0.0
    # Without these files the full time passes.
    while computed < WORKED_S and process.poll() is None and (now := time.monotonic()) < begin + MOST_S:
        time.sleep(0.02)
        state, at = found if (found := state_and_cpu_s(process.pid)) else ("R", 0.0)
        if state != "S" or at > computed:
            computed, awake = at, now
        elif now > awake + WAITED_S:
            return


def state_and_cpu_s(number: int) -> tuple[str, float] | None:
    """State of a process and processor seconds of all its threads; None if the system does not report them."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
