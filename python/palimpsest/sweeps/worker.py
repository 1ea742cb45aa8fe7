"""A worker process of the engine `local`: reads points as lines of JSON, writes progress and outcomes likewise.

Points share states of preconditioned drives. The process ends at the end of its input. Progress goes out ten times a
second, so a worker whose sweep was killed fails to write, and ends.
"""

import json
import os
import signal
import sys

from .. import plugins, states
from .task import encode, run_point


def main() -> None:
    """Runs points until the input ends."""
    # The sweep handles interrupts, and its pipe must carry only messages.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(message: dict[str, object]) -> None:
        left = encode(message)
        while left:
            left = left[os.write(pipe, left) :]

    def progress(phase: str, done: int, expected: int, simulated_ns: int) -> None:
        send({"progress": [phase, done, expected, simulated_ns]})

    # Consecutive points often differ in their workload only.
    states.take(os.environ)
    plugins.quiet()
    try:
        for line in sys.stdin:
            outcome = run_point(json.loads(line), progress)
            states.say_problems(lambda note: print(note, file=sys.stderr))
            send({"outcome": outcome, "states": states.take_counts()})
    except BrokenPipeError:
        os._exit(1)


if __name__ == "__main__":
    main()
