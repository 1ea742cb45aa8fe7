"""Output at terminals: no table broken or number cut on narrow ones, colours only where enabled."""

import os
import re
import subprocess

import pytest

from conftest import COMMAND
from terminals import at_terminal, plain

pytestmark = pytest.mark.contract

SHORT = ("--workload", "rw=randrw,bs=4k,size=64MiB,n=2000", "--precondition", "fill:10%,random:0.1x")
SHOWN = {
    "run": ["run", *SHORT],
    "compare": ["compare", "--ftl", "page,subpage,mga", "--ssd", "mga-16k", *SHORT],
    "list": ["list"],
    "trace info": ["trace", "info", "trade,n=2000"],
}


def test_wide_terminal_is_the_reference() -> None:
    """Every narrower form has all numbers of the widest."""
    wide = numbers(["run", *SHORT], 120)
    for width in (40, 60, 80):
        assert numbers(["run", *SHORT], width) == wide
    assert len(wide) > 25


def numbers(arguments: list[str], width: int) -> list[str]:
    """All numbers with a comma or a decimal point in a command's output, except the simulator's own speed."""
    status, seen = at_terminal([str(COMMAND), *arguments], width)
    assert status == 0, seen
    said = plain(seen).partition("simulator ")[0]
    return sorted(re.findall(r"\d+(?:[.,]\d+)+", said))


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("name", list(SHOWN))
def test_lines_fit_and_nothing_is_cut(name: str, width: int) -> None:
    status, seen = at_terminal([str(COMMAND), *SHOWN[name]], width)
    assert status == 0, seen
    text = plain(seen)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert not re.search(r"\d[.,]\n\s*\d", text), "a number is continued in the next line"


@pytest.mark.parametrize("command", ["", "run", "compare", "list", "show", "trace", "trace info", "completion"])
def test_help_fits(command: str) -> None:
    """All lines except the examples, which are for copying."""
    for width in (40, 60, 80):
        status, seen = at_terminal([str(COMMAND), *command.split(), "--help"], width)
        assert status == 0
        prose = [line for line in plain(seen).splitlines() if "palimpsest " not in line]
        assert max(map(len, prose)) <= width


def test_configuration_is_never_wrapped() -> None:
    _, narrow = at_terminal([str(COMMAND), "show"], 40)
    assert narrow == subprocess.run([COMMAND, "show"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": "", "TERM": "xterm"}, True)],
)
def test_colours_at_a_terminal(variables: dict[str, str], coloured: bool) -> None:
    status, seen = at_terminal([str(COMMAND), *SHOWN["list"]], environment=variables)
    assert status == 0
    assert ("\x1b[" in seen) == coloured


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colours_in_a_pipe(variables: dict[str, str], coloured: bool) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    done = subprocess.run(
        [COMMAND, "list"], capture_output=True, text=True, check=True, env=environment | {"TERM": "xterm"} | variables
    )
    assert ("\x1b[" in done.stdout) == coloured


def test_json_is_never_coloured() -> None:
    environment = os.environ | {"FORCE_COLOR": "1"}
    done = subprocess.run([COMMAND, "list", "--json"], capture_output=True, text=True, check=True, env=environment)
    assert "\x1b[" not in done.stdout


def test_error_is_plain_at_a_terminal() -> None:
    status, seen = at_terminal([str(COMMAND), "run", "--ftl", "pgae"])
    assert status == 2
    assert re.fullmatch(r"error: [^\n\x1b]+\n", seen)
