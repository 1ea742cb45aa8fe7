"""Shell completion: bash for real, zsh and fish if they are installed (otherwise their protocol by hand)."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import COMMAND, Command
from palimpsest import completion

pytestmark = pytest.mark.contract

BASH = shutil.which("bash")
PATH = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
_PRESS_TAB = """
eval "$(palimpsest completion bash)"
COMP_LINE=$1 COMP_POINT=${#1}
compopt() { local IFS=" "; echo "option $*"; }
# The words as readline would split them: blanks separate, and of COMP_WORDBREAKS those that occur in values.
read -ra COMP_WORDS <<< "$(sed 's/[=:]/ & /g' <<< "$1")"
[[ $1 == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_palimpsest_completion palimpsest
printf '%s\\n' "${COMPREPLY[@]}"
"""


def press_tab(line: str, folder: Path) -> list[str]:
    """The completions that bash offers at the end of the line."""
    assert BASH is not None
    done = subprocess.run(
        [BASH, "--norc", "-c", _PRESS_TAB, "bash", line], cwd=folder, env=os.environ | {"PATH": PATH},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("palimpsest comp", ["compare", "completion"]),
        ("palimpsest trace ", ["info", "convert", "synth"]),
        ("palimpsest run --pay", ["--payload"]),
        ("palimpsest run --payload ", ["none", "tag", "bytes"]),
        ("palimpsest run --ssd mga", ["option -o default", "mga-8k", "mga-16k"]),
        ("palimpsest run --ftl subp", ["subpage"]),
        ("palimpsest compare --ftl page,sub", ["page,subpage"]),
        ("palimpsest run --workload oltp", ["option -o default", "oltp-zipf"]),
        ("palimpsest run --set ftl.vic", ["option -o nospace", "ftl.victim=", "option -o nospace", "ftl.victim_free="]),
        ("palimpsest run --set ftl.victim=fi", ["fifo"]),
        ("palimpsest run --set part.order=low", ["low-low-high", "low-high-low"]),
        ("palimpsest run --set ssd.part=a1", ["a16"]),
        ("palimpsest run --precondition fill:90%,ran", ["90%,random:1x", "90%,random:2x"]),
        ("palimpsest list sch", ["schemes"]),
        ("palimpsest trace convert a b --format mq", ["mqsim"]),
        ("palimpsest run --out ", ["option -o dirnames", ""]),
        ("palimpsest reproduce spr", ["spread"]),
        ("palimpsest completion z", ["zsh"]),
    ],
)
def test_bash_offers(line: str, offers: list[str], tmp_path: Path) -> None:
    offered = press_tab(line, tmp_path)
    first, rest = offers[0], offers[1:]
    if first == "option -o nospace":
        assert {*offers} == {*offered}
    elif first.startswith("option"):
        assert offered[0] == first
        assert offered[1:][: len(rest)] == rest
    else:
        assert offered == offers


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
def test_bash_types_what_it_offers(tmp_path: Path) -> None:
    """An interactive bash with readline: the test presses TAB, and runs the completed line."""
    import pty

    (tmp_path / "rc").write_text('eval "$(palimpsest completion bash)"\nPS1="ready> "\n')
    ours, theirs = pty.openpty()
    command = ["bash", "--noprofile", "--rcfile", str(tmp_path / "rc"), "-i"]
    environment = os.environ | {"PATH": PATH, "TERM": "dumb", "INPUTRC": "/dev/null"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=tmp_path, start_new_session=True
    ) as process:
        os.close(theirs)
        seen = _until(ours, b"ready> ")
        os.write(ours, b"palimpsest show --ftl subp\t --set ftl.victim=fi\t > out.toml; echo do'ne'\n")
        seen = _until(ours, b"done")
        os.write(ours, b"exit\n")
        process.wait(30)
    os.close(ours)
    assert "ftl.victim=fifo" in seen
    shown = (tmp_path / "out.toml").read_text()
    assert 'name = "subpage"' in shown
    assert 'victim = "fifo"' in shown


def _until(terminal: int, end: bytes) -> str:
    seen = b""
    while end not in seen:
        seen += os.read(terminal, 4096)
    return seen.decode()


@pytest.mark.parametrize(("shell", "check"), [("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])])
def test_scripts_of_other_shells(shell: str, check: list[str], palimpsest: Command, tmp_path: Path) -> None:
    script = tmp_path / f"palimpsest.{shell}"
    script.write_text(palimpsest("completion", shell).stdout)
    assert f"{completion.VARIABLE}={shell}_complete" in script.read_text()
    if shutil.which(shell):
        assert subprocess.run([*check, script], capture_output=True, text=True).stderr == ""
    words = "palimpsest run --set ftl.victim=fi"
    variables = {completion.VARIABLE: f"{shell}_complete", "COMP_WORDS": words}
    variables["COMP_CWORD"] = "3" if shell == "zsh" else "ftl.victim=fi"
    done = palimpsest(env=os.environ | variables)
    assert "ftl.victim=fifo" in done.stdout
    assert palimpsest("completion", "csh").returncode == 2
