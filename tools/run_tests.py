"""Runs the tests of both languages at the same time, and ends with one line that adds them up: `N passed, N failed`.

cargo's output is printed as it arrives; pytest's output follows as a whole. The exit status is 1 if a test failed.
`--part K/N` runs every Nth test of the sorted list, from the Kth on: N parts together run each test once.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_ROOT = Path(__file__).resolve().parent.parent
_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed")
_CARGO_TEST = re.compile(r"^(\S.*): test$")
_PYTEST = re.compile(r"(\d+) (passed|failed|errors?)\b")
_SKIPPED = re.compile(r"\bskipped: there is no .+")
"""Message of a Rust test whose sample is missing; printed again at the end."""
_MEASURED = "measured_"
"""Prefix of measurements, which need a release and a quiet machine: no suite runs them."""
_NO_TESTS = 5
"""Exit status of pytest without tests to run."""
_WHOLE = (1, 1)


@dataclass(frozen=True)
class Selection:
    """Selection of tests: long or not, names that contain `only`, and part `k` of `n` of these."""

    long: bool
    only: str
    part: tuple[int, int]

    @property
    def is_whole(self) -> bool:
        """Whether every test of the kind runs."""
        return not self.only and self.part == _WHOLE

    def of(self, names: Iterable[str]) -> list[str]:
        """The names of this part."""
        k, n = self.part
        return sorted(set(names))[k - 1 :: n]


def cargo_counts(lines: Sequence[str]) -> tuple[int, int]:
    """Tests passed and failed, over all test binaries."""
    found = [match for line in lines if (match := _CARGO.match(line))]
    return sum(int(match[1]) for match in found), sum(int(match[2]) for match in found)


def pytest_counts(lines: Sequence[str]) -> tuple[int, int]:
    """Tests passed and failed (errors included), from the closing line."""
    counts = {name.rstrip("s"): int(number) for number, name in _PYTEST.findall(lines[-1] if lines else "")}
    return counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)


def run_both(rust: Sequence[str], python: Sequence[str]) -> Iterator[tuple[str, int, list[str]]]:
    """Runs both commands at once, and skips an empty one; returns each command's index, status and lines."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        beside = start(python, said) if python else None
        try:
            if rust:
                print("$", *rust, flush=True)
                with start(rust, subprocess.PIPE) as process:
                    lines = list(echoed(process.stdout or ()))
                yield "cargo", process.returncode, lines
            if beside:
                status = beside.wait()
                said.seek(0)
                print("$", *python, flush=True)
                yield "pytest", status, list(echoed(said))
        finally:
            if beside:
                beside.terminate()
                beside.wait()


def start(command: Sequence[str], output: IO[str] | int) -> subprocess.Popen[str]:
    """Starts a command in the root of the project, with output and errors in one stream."""
    return subprocess.Popen(
        command, cwd=_ROOT, stdout=output, stderr=subprocess.STDOUT, text=True, errors="replace", bufsize=1
    )


def echoed(lines: Iterable[str]) -> Iterator[str]:
    """Lines without their ends, each printed on arrival."""
    for line in lines:
        print(line, end="", flush=True)
        yield line.rstrip()


def listed(command: Sequence[str]) -> list[str]:
    """Lines that a command prints on standard output; ends this program if the command fails."""
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, _NO_TESTS):
        raise SystemExit(f"{done.stdout}`{' '.join(command)}` ended with {done.returncode}")
    return done.stdout.splitlines()


def cargo_command(selection: Selection) -> list[str]:
    """The command for the tests in Rust; empty if the part has none."""
    cargo = ["cargo", "test", "--workspace", "--locked", "--no-fail-fast"]
    kind = ["--ignored", "--skip", _MEASURED] if selection.long else []
    only = [selection.only] if selection.only else []
    if selection.part == _WHOLE:
        return [*cargo, "--", *kind, *only]
    found = listed([*cargo, "--quiet", "--", "--list", *kind, *only])
    names = selection.of(match[1] for line in found if (match := _CARGO_TEST.match(line)))
    return [*cargo, "--", *kind, "--exact", *names] if names else []


def pytest_command(selection: Selection) -> list[str]:
    """The command for the tests in Python, on a process a core; empty if the part has none."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-m", "long" if selection.long else "not long"]
    if selection.only:
        pytest += ["-k", selection.only]
    # One process for each file, because tests of a file share a cluster or a notebook. xdist 3.8 loses groups by mark
    # with pytest 9.2. In order of names the last files are short.
    spread = ["--numprocesses", str(os.cpu_count() or 1), "--dist", "loadfile", "--no-loadscope-reorder"]
    if selection.part == _WHOLE:
        return [*pytest, *spread]
    found = listed([*pytest, "--collect-only"])
    names = selection.of(line for line in found if "::" in line)
    return [*pytest, *spread, *names] if names else []


def part(text: str) -> tuple[int, int]:
    """`K/N`, with K from 1 to N."""
    k, _, n = text.partition("/")
    if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise argparse.ArgumentTypeError(f"{text}: expected K/N with K from 1 to N, as in 2/5")
    return int(k), int(n)


def main() -> int:
    """Runs the selected tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="the long tests instead of the everyday ones")
    parser.add_argument("--only", default="", help="tests whose name contains this")
    parser.add_argument("--part", type=part, default=_WHOLE, metavar="K/N", help="one part of N")
    selection = Selection(**vars(parser.parse_args()))
    passed = failed = 0
    skipped = set()
    for program, status, lines in run_both(cargo_command(selection), pytest_command(selection)):
        here_passed, here_failed = cargo_counts(lines) if program == "cargo" else pytest_counts(lines)
        # A selection may have no test in Python, but must have one in some language.
        is_broken = status not in (0, _NO_TESTS if program == "pytest" and not selection.is_whole else 0)
        passed, failed = passed + here_passed, failed + (here_failed or int(is_broken))
        skipped |= {match[0] for line in lines if (match := _SKIPPED.search(line))}
    if passed + failed == 0:
        print(f"no test is called {selection.only!r} in part {selection.part[0]} of {selection.part[1]}")
    print(*sorted(skipped), f"{passed} passed, {failed} failed", sep="\n", flush=True)
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
