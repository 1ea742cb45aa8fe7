"""What `make` would run is shell that parses, whichever trace there is: README's first command."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("trace", ["", "TRACE=mysql-like", "TRACE=somewhere/else.csv"])
@pytest.mark.parametrize("target", ["demo", "test", "soak", "audit", "check", "bench", "docs", "wheel", "wheel-pgo"])
def test_recipes_parse(target: str, trace: str) -> None:
    command = ["make", "--no-print-directory", "--always-make", "-n", target, *([trace] if trace else [])]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert printed.returncode == 0, printed.stderr
    parsed = subprocess.run(["bash", "-n"], input=printed.stdout, capture_output=True, text=True, check=False)
    assert (parsed.returncode, parsed.stderr) == (0, "")
    assert trace.removeprefix("TRACE=") in printed.stdout or target != "demo"


@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo")
def test_the_module_and_the_tests_share_what_they_build() -> None:
    """A feature that only tests ask for makes cargo build a crate, and all above it, once more for the module."""

    def crates(*selection: str) -> set[str]:
        command = ["cargo", "tree", "--locked", "--offline", "--prefix", "none", "--format", "{p} {f}", *selection]
        printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout
        return {line.removesuffix(" (*)") for line in printed.splitlines()}

    module = crates("--package", "palimpsest-py", "--edges", "normal,build")
    assert len(module) > 50
    assert module - crates("--workspace", "--edges", "normal,build,dev") == set()
