"""Repeats the long tests of the model suite and of the fuzz targets with new seeds: `make soak MINUTES=60`.

Each test gets one seed at a time, in turn, until the time is over. Prints the numbers of lives and power cuts, the
seeds, and for each failure the command that repeats it. Exit status 1 if a test failed. `FROM=N` names the first seed;
the default comes from the clock.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = (
    ("model", "whole_runs::long_whole_runs_with_a_cut"),
    ("model", "whole_runs::long_whole_runs_of_file_systems_with_a_cut"),
    ("model", "whole_runs::long_whole_runs_with_many_cuts"),
    ("model", "power::long_cuts"),
    ("model", "power::long_cuts_on_drives_of_every_shape"),
    ("model", "power_timed::long_cuts_in_timed_runs"),
    ("model", "faults::long_counted_with_faults"),
    ("model", "faults::long_timed_with_faults"),
    ("model", "faults::long_reads_that_fail_for_good"),
    ("model", "background::long_collection_while_the_host_is_idle"),
    ("model", "filesystem::long_sequences"),
    ("fuzz_host", "long_mutations_of_kept_inputs"),
    ("fuzz_config", "long_mutations_of_configurations"),
)
"""Binaries and their tests."""
LONGEST_S = 900
"""A seed that takes longer counts as failed, because a run does not end."""


def binaries() -> dict[str, str]:
    """The test binaries by name, built if missing."""
    names = sorted({name for name, _ in TESTS})
    tests = [word for name in names for word in ("--test", name)]
    command = ["cargo", "test", "--locked", "-p", "palimpsest-lab", *tests, "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    found = [each for each in messages if each.get("executable") and each["target"]["name"] in names]
    return {each["target"]["name"]: str(each["executable"]) for each in found}


def run(suite: str, name: str, test: str, seed: int) -> tuple[int, int, str]:
    """Lives and cuts of one seed, and after a failure the command that repeats it."""
    environment = os.environ | {"MODEL_FROM": str(seed), "MODEL_CASES": "1", "RUST_BACKTRACE": "0"}
    again = f"MODEL_FROM={seed} MODEL_CASES=1 cargo test -p palimpsest-lab --test {name} -- --exact --ignored {test}"
    command = [suite, "--exact", "--ignored", "--nocapture", test]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST_S
        )
    except subprocess.TimeoutExpired:
        return 0, 0, f"no end after {LONGEST_S} s: {again}"
    said = done.stdout + done.stderr
    counts = [(int(lives), int(cuts)) for lives, cuts in re.findall(r"lives (\d+), cuts (\d+)", said)]
    lives, cuts = counts[-1] if counts else (0, 0)
    if done.returncode == 0:
        return lives, cuts, ""
    repeat = re.search(r"repeat with: (.*)", said)
    return lives, cuts, repeat[1] if repeat else again


def main() -> int:
    """Runs until the minutes are over."""
    minutes = float(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time()) // 60
    suites = binaries()
    end = time.monotonic() + 60 * minutes
    lives = cuts = seed = 0
    red: list[str] = []
    while time.monotonic() < end:
        for name, test in TESTS:
            if time.monotonic() >= end:
                break
            more_lives, more_cuts, repeat = run(suites[name], name, test, first + seed)
            lives, cuts = lives + more_lives, cuts + more_cuts
            if repeat:
                red.append(repeat)
                print(f"red: {repeat}", flush=True)
        seed += 1
    print(f"{lives} lives, {cuts} power cuts, seeds {first} to {first + seed - 1}, {len(red)} red")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
