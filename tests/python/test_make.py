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
