"""A command forked from the process that has loaded the program behaves like the installed command."""

import os
import subprocess
from pathlib import Path

import pytest

from conftest import COMMAND
from loaded import Loaded

pytestmark = pytest.mark.contract


@pytest.mark.parametrize("line", [
    "palimpsest --version",
    "palimpsest run --ftl nosuch",
    "palimpsest run --requests 0 < /dev/null",
    "palimpsest show --ssd ./here.toml | cat -n",
    "palimpsest list >&2; false",
])  # fmt: skip
def test_a_shell_gets_what_the_installed_command_gives(line: str, loaded: Loaded | None, tmp_path: Path) -> None:
    if loaded is None:
        pytest.skip("nothing is forked from a loaded program on this system")
    (tmp_path / "here.toml").write_text('name = "here"\nbase = "mga-8k"\n')

    def given(folder: Path) -> tuple[int, str, str]:
        environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
        shell = ["bash", "-o", "pipefail", "-c", line]
        done = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    assert given(loaded.folder) == given(COMMAND.parent)


def test_a_command_that_a_signal_ends_says_so(loaded: Loaded | None) -> None:
    if loaded is None:
        pytest.skip("nothing is forked from a loaded program on this system")
    with pytest.raises(subprocess.TimeoutExpired):
        loaded.run("validate", timeout=0.5)
    assert loaded.run("--version", timeout=60).returncode == 0
