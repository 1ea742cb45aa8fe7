"""Mistakes of users and failures of systems, on the native module: files, numbers, names, full disks, closed pipes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import COMMAND, Command, figures

pytestmark = pytest.mark.contract

SHORT = ("--workload", "rw=randread,bs=4k,size=64MiB,n=500", "--precondition", "none")
NAMED = {
    "empty": b"",
    "binary": bytes(range(256)) * 20,
    "open.toml": b"x = [",
    "typo.toml": b'base = "default"\n[ssd]\nchanels = 3\n',
    "negative.toml": b'base = "default"\n[ssd]\nchannels = -3\n',
    "huge.toml": b'base = "default"\n[ssd]\nchannels = 99999999999999999999\n',
    "large.toml": b'base = "default"\n[ssd]\nblocks_per_plane = 16777216\n',
    "latin.toml": b'base = "default"\n# \xe9\n',
    "job.fio": b"[job]\nrw=randwrite\nbogus=1\n",
}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("run --workload no-such.csv", "no file"),
        ("run --workload .", "directory"),
        ("run --workload empty", "empty"),
        ("run --workload binary", "binary"),
        ("run --workload job.fio", "job.fio:3: "),
        ("run --workload oltp-zpif", "did you mean oltp-zipf?"),
        ("run --workload rw=randwrite,bs=4k,n=-5", "-5"),
        ("run --workload rw=randwrite,bs=4k,n=1e300", "1e300"),
        ("run --ssd open.toml", "open.toml:1: "),
        ("run --ssd typo.toml", "typo.toml:3: unknown key ssd.chanels; did you mean ssd.channels?"),
        ("run --ssd negative.toml", "negative.toml:3: ssd.channels: -3"),
        ("run --ssd huge.toml", "huge.toml:3: "),
        ("run --ssd large.toml", "large.toml:3: "),
        ("run --ssd latin.toml", "latin.toml:2: "),
        ("run --ssd ./", "directory"),
        ("run --ssd mga-16", "did you mean mga-16k?"),
        ("run --ftl subpgae", "did you mean subpage?"),
        ("run --set ftl.victm=fifo", "did you mean ftl.victim?"),
        ("run --set ftl.gc_start=-1", "ftl.gc_start"),
        ("run --requests 1e30", "2^63"),
        ("run --requests 1,5", "expected one such as 250000"),
        ("run --operations slowest:0", "--operations: slowest:0: expected 1 to 1000 requests"),
        ("compare --operations slowest:x", "--operations: slowest:x: expected 1 to 1000 requests"),
        ("reproduce mga --seed -1", "expected as `palimpsest reproduce --help` says"),
        ("run --out empty", "--out: empty: this is not a folder; expected a folder"),
        ("rnu", "Did you mean 'run'?"),
        ("list ftl", "did you mean ftls?"),
        ("report binary", "binary: this is not a folder"),
        ("report .", "summary.json: no such file"),
        ("reproduce mga --traces nowhere", "nowhere: there is no such folder"),
        ("trace info empty", "empty"),
        ("trace convert binary x.csv", "binary"),
        ("trace synth trade,n=10 x.foo", "x.foo"),
        ("trace synth trade,n=10 nowhere/x.csv", "nowhere/x.csv"),
    ],
)
def test_one_line_says_what_was_expected(palimpsest: Command, tmp_path: Path, arguments: str, says: str) -> None:
    for name, content in NAMED.items():
        (tmp_path / name).write_bytes(content)
    done = palimpsest(*arguments.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr), done.stderr
    assert says in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--ssd", "x"), ("run", "--ftl", "x"), ("run", "--workload", "a" * 5000), ("run", "--from", "x"),
        ("compare", "--ftl", "page,x"), ("compare", "--ftl", ""), ("run", "--set", "faults.power_cuts=x"),
        ("run", "--set", "nope.x=1"), ("show", "--ssd", "x"), ("trace", "convert", "t.csv", "t.foo"),
        ("trace", "info", "bad.csv"), ("run", "--operations", "o.parquet", "--operations-window", ""),
    ],
)  # fmt: skip
def test_no_message_is_a_list_of_all_names(palimpsest: Command, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A former kind of bug: messages of 400 characters, and empty values that counted as absent."""
    (tmp_path / "bad.csv").write_text("time_ns,op,offset_bytes,size_bytes\n0,W,0,4096\nx,R,0,4096\n")
    (tmp_path / "t.csv").write_text("time_ns,op,offset_bytes,size_bytes\n0,W,0,4096\n")
    done = palimpsest(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: [^\n]{10,193}\n", done.stderr), done.stderr
    assert "expected" in done.stderr or "did you mean" in done.stderr


@pytest.mark.parametrize(
    "content", ['{"ftl": 3}', '{"runs": 5}', '{"runs": []}', '{"runs": [{"ftl": "../x"}]}', "[]", "3"]
)
@pytest.mark.parametrize("command", ["report", "rerun", "why"])
def test_a_changed_summary_is_no_result(palimpsest: Command, tmp_path: Path, command: str, content: str) -> None:
    (tmp_path / "summary.json").write_text(content)
    done = palimpsest(command, str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"error: {tmp_path}/summary.json:1: expected [^\n]+\n", done.stderr), done.stderr


def test_unreadable_file(palimpsest: Command, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("time_ns,op,offset_bytes,size_bytes\n0,W,0,4096\n")
    secret.chmod(0)
    if os.access(secret, os.R_OK):
        pytest.skip("this user may read everything")
    done = palimpsest("run", "--workload", str(secret))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "readable" in done.stderr


def test_a_key_that_nothing_reads_is_refused(palimpsest: Command) -> None:
    key = ("--set", "ftl.log_fraction=4%")
    done = palimpsest("run", "--ftl", "page", "--json", *key, *SHORT)
    said = "--set ftl.log_fraction=4%: page does not read ftl.log_fraction"
    refused = f"error: {said}; expected ftl.name = sector-log, or no ftl.log_fraction\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", refused)
    assert palimpsest("show", "--ftl", "page", *key).stderr == refused
    both = ("compare", "--ftl", "page,sector-log", "--json", *key, *SHORT)
    noted = palimpsest(*both)
    assert (noted.returncode, noted.stderr) == (0, f"note: {said}\n")
    strict = palimpsest(*both, "--strict")
    assert (strict.returncode, strict.stderr) == (2, refused)
    cache = ("--set", "ftl.slc_cache=20%")
    assert palimpsest("compare", "--ftl", "block,codesign", *cache, *SHORT).returncode == 2


def test_a_sweep_of_a_key_that_nothing_reads_is_refused(palimpsest: Command, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    grid = '[base]\nworkload = "rw=randwrite,n=100"\n[grid]\nftl.log_blocks = [2, 3]\nftl.name = ["page"{}]\n'
    file.write_text(grid.format(""))
    done = palimpsest("sweep", str(file), "--dry-run")
    assert (done.returncode, done.stdout) == (2, "")
    said = f"error: {file}:4: ftl.log_blocks = 2: page does not read ftl.log_blocks; expected ftl.name = bast, or "
    assert done.stderr.startswith(said)
    file.write_text(grid.format(', "bast"'))
    done = palimpsest("sweep", str(file), "--dry-run")
    assert (done.returncode, done.stderr) == (0, "note: page does not read ftl.log_blocks\n")
    assert palimpsest("sweep", str(file), "--dry-run", "--strict").returncode == 2


def test_several_layers_are_for_compare(palimpsest: Command) -> None:
    done = palimpsest("run", "--ftl", "page,subpage")
    expected = "error: --ftl page,subpage: expected one translation layer; `palimpsest compare` takes several\n"
    assert (done.returncode, done.stderr) == (2, expected)


def test_kinds_of_requests_not_measured_have_no_latency(palimpsest: Command) -> None:
    reads = figures(palimpsest("run", "--json", *SHORT))["latency_ns"]
    assert reads["write"] is None
    assert reads["read"] == reads["all"]
    assert min(reads["read"].values()) > 0


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no full device")
@pytest.mark.parametrize("arguments", [["list"], ["show"], ["--help"], ["run", "--json", *SHORT], ["run", *SHORT]])
def test_full_disk_under_standard_output(arguments: list[str]) -> None:
    with FULL.open("w") as full:
        done = subprocess.run([COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "error: standard output: No space left on device\n")


@pytest.mark.parametrize("name", ["summary.json", "latency.parquet", "report.html"])
def test_a_folder_in_the_place_of_a_file_under_out(palimpsest: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    done = palimpsest("run", "--out", str(tmp_path), "--json", *SHORT)
    assert done.returncode == 1
    assert re.fullmatch(rf"error: [^\n]*{name}: [^\n]+\n", done.stderr), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("arguments", ["list", "show", "--help", "run --help", "compare --json"])
def test_reader_that_closes_the_pipe_gets_no_message(arguments: str) -> None:
    command = [str(COMMAND), *arguments.split(), *(SHORT if "json" in arguments else ())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""


def test_closed_standard_streams() -> None:
    shell = f"{COMMAND} list >&-"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert re.fullmatch(r"error: standard output is closed; [^\n]+\n", done.stderr)
    done = subprocess.run(["bash", "-c", f"{COMMAND} run --ftl x 2>&-"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_module_is_the_command(palimpsest: Command) -> None:
    for arguments in (["--version"], ["list", "ftls"], ["run", "--ftl", "x"]):
        done = subprocess.run(
            [sys.executable, "-m", "palimpsest", *arguments], capture_output=True, text=True, timeout=60
        )
        other = palimpsest(*arguments)
        assert (done.returncode, done.stdout, done.stderr) == (other.returncode, other.stdout, other.stderr)
