"""Runs the tests of both languages, and ends with one line that adds them up: `N passed, N failed`.

What the test programs print passes through as it comes. The exit status is 1 if anything failed.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed")
_PYTEST = re.compile(r"(\d+) (passed|failed|errors?)\b")


def stream(command: list[str]) -> tuple[int, list[str]]:
    """Runs a command, prints its output as it comes, and gives its status and lines."""
    print("$", " ".join(command), flush=True)
    lines = []
    with subprocess.Popen(
        command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line.rstrip())
    return process.returncode, lines


def cargo_counts(lines: list[str]) -> tuple[int, int]:
    """Tests passed and failed, over all test binaries."""
    found = [match for line in lines if (match := _CARGO.match(line))]
    return sum(int(match[1]) for match in found), sum(int(match[2]) for match in found)


def pytest_counts(lines: list[str]) -> tuple[int, int]:
    """Tests passed and failed (errors included), from the closing line."""
    counts = {name.rstrip("s"): int(number) for number, name in _PYTEST.findall(lines[-1] if lines else "")}
    return counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)


def main() -> int:
    """Runs what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="the long tests instead of the everyday ones")
    long = parser.parse_args().long
    cargo = [
        "cargo",
        "test",
        "--workspace",
        "--locked",
        "--no-fail-fast",
        *(["--release", "--", "--ignored"] if long else []),
    ]
    python = [sys.executable, "-m", "pytest", "-q", "-m", "long" if long else "not long"]
    passed = failed = 0
    broken = []
    for name, command, counts in (("cargo", cargo, cargo_counts), ("pytest", python, pytest_counts)):
        status, lines = stream(command)
        here_passed, here_failed = counts(lines)
        passed, failed = passed + here_passed, failed + here_failed
        # pytest says 5 when there was nothing to run, which is how things are while no test is long.
        if status not in (0, 5 if long else 0):
            broken.append(name)
            failed += here_failed == 0
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if broken or failed else 0


if __name__ == "__main__":
    sys.exit(main())
