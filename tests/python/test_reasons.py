"""Messages name the user's input, and options that the command has."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from conftest import COMMAND, ROOT, Command
from palimpsest import states
from palimpsest.errors import InputError

pytestmark = pytest.mark.contract

SMALL = ("--ssd", "mga-8k", "--precondition", "none", "--workload", "rw=randwrite,bs=4k,n=100")


def refused(palimpsest: Command, *arguments: str) -> str:
    """The one line with which a command refuses the user's input."""
    done = palimpsest(*arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr)
    return done.stderr.removeprefix("error: ").rstrip("\n")


def test_a_csv_by_other_names_gets_the_columns(palimpsest: Command, tmp_path: Path) -> None:
    trace = tmp_path / "a.csv"
    trace.write_text("time_ns,op,offset,size\n0,W,0,4096\n1000,R,4096,4096\n")
    said = refused(palimpsest, "run", "--workload", str(trace))
    assert said == (
        f"{trace}:1: the heading of a csv trace names no offset_bytes and no size_bytes; expected the columns time_ns, "
        "op, offset_bytes, size_bytes, or --columns time=1,op=2,offset=3,size=4"
    )
    played = palimpsest("run", *SMALL[:4], "--workload", str(trace), "--columns", said.rpartition(" ")[2], "--json")
    assert json.loads(played.stdout)["requests"] == {"read": 1, "write": 1, "trim": 0, "flush": 0}


def test_a_figure_of_requests_that_no_run_had(palimpsest: Command, tmp_path: Path) -> None:
    out, to = str(tmp_path / "writes"), str(tmp_path / "x.pdf")
    assert palimpsest("run", *SMALL, "--ftl", "page", "--out", out).returncode == 0
    said = refused(palimpsest, "figure", "cdf", out, "-o", to, "--class", "read")
    assert said == "--class read: no run has such requests; expected all or write"
    said = refused(palimpsest, "figure", "bars", out, "-o", to, "--figure", "latency_ns.read.p99")
    assert said.startswith("--figure latency_ns.read.p99: null in every run; ")
    counted = str(tmp_path / "counted")
    assert palimpsest("run", *SMALL, "--fidelity", "count", "--out", counted).returncode == 0
    assert "expected timed runs" in refused(palimpsest, "figure", "cdf", counted, "-o", to)


@pytest.mark.parametrize("variable", ["PALIMPSEST_STATE_SIZE", "PALIMPSEST_STATE"])
def test_a_variable_of_the_environment_is_named_as_one(tmp_path: Path, variable: str) -> None:
    file = tmp_path / "file"
    file.write_text("")
    wrong = {"PALIMPSEST_STATE": str(file), "PALIMPSEST_STATE_SIZE": "5x"}[variable]
    environment = os.environ | {"PALIMPSEST_STATE": str(tmp_path / "states"), variable: wrong}
    done = subprocess.run([COMMAND, "run", *SMALL], capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {variable}: "), done.stderr
    assert "--state" not in done.stderr
    if variable == states.SIZE:
        with pytest.raises(InputError, match=f"^{variable}: '5x' is no size"):
            states.take({variable: wrong})


def test_a_state_without_an_exploration(palimpsest: Command, tmp_path: Path) -> None:
    said = refused(palimpsest, "crash", "--out", str(tmp_path), "--state", "3fa9")
    assert said == f"--state 3fa9: {tmp_path} has no states; expected the --out of an exploration"
    assert refused(palimpsest, "crash", "--out", str(tmp_path)).startswith("--run: missing")


@pytest.mark.parametrize("group", ["", "trace", "image"])
def test_a_group_of_commands_alone_prints_its_help(palimpsest: Command, group: str) -> None:
    alone, asked = palimpsest(*group.split()), palimpsest(*group.split(), "--help")
    assert (alone.returncode, alone.stderr) == (0, "")
    assert alone.stdout.rstrip() == asked.stdout.rstrip()
    assert "Commands:" in alone.stdout


def test_a_served_drive_speaks_of_no_option_of_run(palimpsest: Command, tmp_path: Path) -> None:
    place = f"unix:{tmp_path / 'drive.sock'}"
    small = ("--set", "ssd.blocks_per_plane=32", "--precondition", "fill:90%,random:1x")
    done = palimpsest("serve", *SMALL[:2], *small, "--listen", place, "--run", "true")
    assert done.returncode == 0, done.stderr
    options = set(re.findall(r"--[a-z-]+", done.stdout))
    known = set(re.findall(r"--[a-z-]+", palimpsest("serve", "--help").stdout))
    assert options <= known
    assert "the run counts operations, and has no times" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "begins"),
    [
        (("fit", "{counters}", "--start", "foo", "--workload", "rw=write", "--capacity", "1TB"), "--start foo: "),
        (("run", "--until", "worn-out", "--set", "faults.wear_out=true", "--workload", "{jobs}"), "--until: "),
        (("run", "--repeat", "2", "--workload", "{jobs}"), "--repeat: "),
        (("serve", "--precondition", "layout", "--run", "true"), "--precondition layout: the requests have no files"),
        (("run", "--from", "foo", "--workload", "{counters}"), "--from foo: unknown trace format"),
        (("image", "info", "{none}"), "FILE: {none}: there is no such file; expected an image"),
    ],
)
def test_what_the_user_gave_is_named(
    palimpsest: Command, tmp_path: Path, arguments: tuple[str, ...], begins: str
) -> None:
    places = {"counters": tmp_path / "c.csv", "jobs": tmp_path / "a.fio", "none": tmp_path / "none.pal"}
    places["counters"].write_text("host_gb,media_gb\n1,1\n2,3\n")
    places["jobs"].write_text("[a]\nrw=write\nbs=4k\nsize=1m\n")
    said = refused(palimpsest, *(each.format(**places) for each in arguments))
    assert said.startswith(begins.format(**places))


def test_generated_traces_speak_of_no_fidelity(palimpsest: Command, tmp_path: Path) -> None:
    said = refused(palimpsest, "trace", "synth", "rw=randread,runtime=1,bs=4k", str(tmp_path / "o.csv"))
    assert "--fidelity" not in said
    assert "expected rate_iops, or number_ios or io_size instead of runtime" in said


def test_documents_have_the_rules_of_the_file_system() -> None:
    """The words of crates/fs: `imbalance.rs` (`most <= 2`) and `collect.rs` (`REACHABLE`)."""
    code = (ROOT / "crates" / "fs" / "src" / "collect.rs").read_text(encoding="utf-8")
    share = re.search(r"const REACHABLE: f64 = ([0-9.]+);", code)
    assert share is not None
    assert float(share[1]) == 0.75
    rule = (ROOT / "crates" / "fs" / "src" / "imbalance.rs").read_text(encoding="utf-8")
    assert "count < channels && most <= 2" in rule
    for name in ("systems.md", "codesign.md"):
        text = " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())
        assert re.search("three quarters of (its spare space|the spare space of a full drive)", text), name
        assert "no channel holds more than two" in text, name
        assert "a quarter of the spare space" not in text, name
