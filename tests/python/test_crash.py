"""`palimpsest crash`: findings for programs on a file and on a file system, and the output folder."""

import ctypes
import errno
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from conftest import COMMAND, ROOT, Command
from palimpsest.crash import CrashError, Exploration, check_crashes, explore
from palimpsest.crash.history import History
from palimpsest.crash.namespaces import missing
from palimpsest.crash.store import id_of
from palimpsest.crash.windows import State, key_of, states, windows
from palimpsest.errors import InputError

pytestmark = pytest.mark.contract

UNIT = 4096


def lacking(*, device: bool) -> str:
    gone = missing(device=device)
    if not gone and device:
        programs = [name for name in ("mkfs.ext4", "e2fsck") if shutil.which(name) is None]
        gone = f"needs {' and '.join(programs)}" if programs else ""
    return gone


needs_files = pytest.mark.skipif(bool(lacking(device=False)), reason=lacking(device=False))
needs_devices = pytest.mark.skipif(bool(lacking(device=True)), reason=lacking(device=True))

# --- programs on a file


def overwrite(path: Path) -> None:
    """Four units in place, again and again."""
    with path.open("r+b", buffering=0) as file:
        for version in range(1, 4):
            file.seek(0)
            file.write(bytes([version]) * 4 * UNIT)
            os.fsync(file.fileno())
            print("put", version, flush=True)


def is_whole(path: Path, said: str) -> None:
    held = path.read_bytes()[: 4 * UNIT]
    assert len(set(held)) == 1, "it is torn"
    assert held[0] >= said.count("put"), f"version {said.count('put')} is lost"


def in_turn(path: Path) -> None:
    """Two copies in turn, each with a number: the newer whole copy counts."""
    with path.open("r+b", buffering=0) as file:
        for version in range(1, 6):
            file.seek(version % 2 * UNIT)
            file.write(bytes([version]) * UNIT)
            os.fsync(file.fileno())
            print("put", version, flush=True)


def has_newer(path: Path, said: str) -> None:
    held = path.read_bytes()
    copies = [held[:UNIT], held[UNIT : 2 * UNIT]]
    newest = max(copy[0] for copy in copies if len(set(copy)) == 1)
    assert newest >= said.count("put"), f"version {said.count('put')} is lost"


@needs_files
def test_a_torn_write_is_found(tmp_path: Path) -> None:
    with pytest.raises(CrashError, match="it is torn") as raised:
        check_crashes(overwrite, is_whole, size="64KiB", out=tmp_path / "a", jobs=1)
    assert "lost: request 1, 16 KiB at 0 B, 3 of 4 units kept" in str(raised.value)
    found = explore(in_turn, has_newer, size="64KiB", out=tmp_path / "b", jobs=1, ssd="mga-8k", ftl="page")
    assert not found.findings
    assert found.is_complete
    assert found.states == 11, "before and after each of five writes, as what it said by then"


@needs_files
@pytest.mark.parametrize(("cache", "fails"), [("volatile", True), ("protected", False), ("none", False)])
def test_what_is_never_flushed_needs_a_protected_cache(tmp_path: Path, cache: str, fails: bool) -> None:
    def run(path: Path) -> None:
        with path.open("r+b", buffering=0) as file:
            for version in range(1, 4):
                file.seek(0)
                file.write(bytes([version]) * UNIT)
                print("put", version, flush=True)

    def check(path: Path, said: str) -> None:
        assert path.read_bytes()[0] >= said.count("put"), "what was said is lost"

    found = explore(run, check, size="64KiB", cache=cache, out=tmp_path, jobs=1, ssd="mga-8k", ftl="page")
    assert found.is_complete
    assert bool(found.findings) == fails


@needs_files
@pytest.mark.parametrize(
    ("ftl", "cache"),
    [
        pytest.param(ftl, cache, marks=() if (ftl, cache) == ("page", "volatile") else pytest.mark.long)
        for ftl in ("page", "subpage", "dftl")
        for cache in ("volatile", "none")
    ],
)
def test_cuts_of_a_drive_leave_states_of_its_cache(tmp_path: Path, ftl: str, cache: str) -> None:
    """After every operation, the recovered data of the layer must be in the set that the specification allows."""
    found = explore(overwrite, is_whole, size="64KiB", cache=cache, out=tmp_path, jobs=1, ssd="mga-8k", ftl=ftl)
    lines = [json.loads(line) for line in (tmp_path / "states.jsonl").read_text().splitlines()]
    cuts = [json.loads(line) for line in (tmp_path / "cuts.jsonl").read_text().splitlines()]
    assert found.is_complete
    assert len(cuts) >= 3
    history = History.read(tmp_path / "log.bin", 1 << 16, UNIT)
    allowed = {key_of(history, state) for state in states(windows(history, cache), 1)}
    assert {line["id"] for line in cuts if line["id"]} <= {id_of(key) for key in allowed}
    for line in lines:
        state = State(line["stop"], line["said"], tuple(map(tuple, line["picks"])))
        assert key_of(history, state) in allowed, line


@needs_files
def test_cuts_come_in_the_collection_of_a_full_drive(tmp_path: Path) -> None:
    def run(path: Path) -> None:
        with path.open("r+b", buffering=0) as file:
            for version in range(1, 101):
                file.seek(version * 7 % 32 * 2 * UNIT)
                file.write(bytes([version]) * 2 * UNIT)
                os.fsync(file.fileno())

    def check(path: Path) -> None:
        held = path.read_bytes()
        assert all(len(set(held[at : at + UNIT])) == 1 for at in range(0, len(held), UNIT)), "a unit is torn"

    used, new = (
        explore(run, check, size="256KiB", out=tmp_path / name, jobs=1, ssd="mga-8k", ftl="page", budget=60,
                precondition=name, overrides=("ssd.channels=1", "ssd.chips_per_channel=1", "part.pages_per_block=8"))
        for name in ("fill:100%,random:1x", "none")
    )  # fmt: skip
    assert not used.findings
    operations = [
        json.loads((each.out / "crash.json").read_text())["explored"]["flash_operations"] for each in (used, new)
    ]
    assert operations[0] > 1.2 * operations[1], "collection has operations of its own"
    cuts = [json.loads(line) for line in (used.out / "cuts.jsonl").read_text().splitlines()]
    assert len(cuts) > 30


SCRIPT = """
import os, sys
path, fault = sys.argv[2], os.environ.get("FAULT")
if sys.argv[1] == "run":
    with open(path, "r+b", buffering=0) as file:
        for version in range(1, 9):
            file.seek(0 if fault else version % 2 * 8192)
            file.write(bytes([version]) * 8192)
            os.fsync(file.fileno())
            print(version, flush=True)
else:
    held = open(path, "rb").read(16384)
    whole = [half[0] for half in (held[:8192], held[8192:]) if len(set(half)) == 1]
    promised = len(open(sys.argv[3]).read().split())
    sys.exit(max(whole, default=0) < promised and f"{promised} is lost")
"""


@pytest.fixture
def script(tmp_path: Path) -> list[str]:
    """Options that explore a script on a file."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="ascii")
    command = f"{sys.executable} -S {path}"
    run, check = f"{command} run {{file}}", f"{command} check {{file}} {{output}}"
    return ["crash", "--run", run, "--check", check, "--size", "64KiB", "--out", str(tmp_path / "out")]


@needs_files
def test_the_command_finds_goes_on_and_replays(
    palimpsest: Command, script: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULT", "1")
    few = palimpsest(*script, "--budget", "5", "--json")
    assert json.loads(few.stdout)["explored"]["states"] == 5, few.stderr
    out = script[-1]
    done = palimpsest("crash", "--out", out, "--json", "--jobs", "2")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["explored"]["complete"]
    assert found["explored"]["states"] > 5
    (finding,) = found["findings"]
    assert (finding["line"], finding["said"]) == ("1 is lost", ["1"])
    assert [write["kept"] for write in finding["writes"]] == [1], "one of two units of the second write"
    state = finding["id"]
    again = palimpsest("crash", "--out", out, "--state", state, "--keep", str(tmp_path / "disk"))
    assert again.returncode == 1
    assert "1 is lost" in again.stdout
    disk = (tmp_path / "disk").read_bytes()
    assert (len(disk), {disk[0], disk[4096]}) == (65536, {1, 2})
    other = palimpsest(*script[:-1], out, "--cache", "none")
    assert other.returncode == 2
    assert "it has the exploration of another --cache" in other.stderr
    monkeypatch.delenv("FAULT")
    right = palimpsest(*script, "--force")
    assert (right.returncode, right.stderr.count("\n")) == (0, 1), right.stderr
    assert "nothing is lost" in right.stdout


@needs_files
def test_a_state_of_a_cut_is_cut_again(palimpsest: Command, script: list[str]) -> None:
    out = Path(script[-1])
    assert palimpsest(*script, "--budget", "60").returncode == 0
    states, cuts = (
        {line["id"]: line for line in map(json.loads, (out / name).read_text().splitlines())}
        for name in ("states.jsonl", "cuts.jsonl")
    )
    # If a cut of the drive and the cache leave the same state, only one is kept.
    cut = next(states[state] | {"cut": line["cut"]} for state, line in cuts.items() if state in states)
    (out / "states.jsonl").write_text(json.dumps(cut) + "\n")
    again = palimpsest("crash", "--out", str(out), "--state", cut["id"])
    assert (again.returncode, again.stderr.count("\n")) == (0, 1), again.stderr
    assert "cut the power of the drive again" in again.stderr
    (out / "states.jsonl").write_text(json.dumps(cut | {"cut": [cut["cut"][0] + 40]}) + "\n")
    other = palimpsest("crash", "--out", str(out), "--state", cut["id"])
    assert (other.returncode, other.stderr.count("\n")) == (2, 1), other.stderr
    assert "the cut in flash operation" in other.stderr


NBD_SCRIPT = """
import os, socket, struct, sys, urllib.parse
client = socket.socket(socket.AF_UNIX)
client.connect(urllib.parse.parse_qs(urllib.parse.urlparse(sys.argv[2]).query)["socket"][0])
def take(count):
    taken = b""
    while len(taken) < count:
        taken += client.recv(count - len(taken)) or sys.exit("the server has gone")
    return taken
def ask(kind, offset, length, data=b"", flags=0):
    client.sendall(struct.pack(">IHHQQI", 0x25609513, flags, kind, 5, offset, length) + data)
    assert struct.unpack(">IIQ", take(16)) == (0x67446698, 0, 5)
    return take(length) if kind == 0 else b""
take(18)
client.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, 0))
take(10)
fault = os.environ.get("FAULT")
if sys.argv[1] == "run":
    for version in range(1, 6):
        ask(1, version % 2 * 8192, 8192, bytes([version]) * 8192, flags=fault == "fua")
        if not fault:
            ask(3, 0, 0)
        print(version, flush=True)
else:
    held = ask(0, 0, 16384)
    whole = [half[0] for half in (held[:8192], held[8192:]) if len(set(half)) == 1]
    promised = len(open(sys.argv[3]).read().split())
    sys.exit(max(whole, default=0) < promised and f"{promised} is lost")
"""


@needs_files
@pytest.mark.parametrize(("fault", "findings"), [("", []), ("fua", []), ("flush", ["1 is lost"])])
def test_a_program_that_takes_an_nbd_uri(palimpsest: Command, tmp_path: Path, fault: str, findings: list[str]) -> None:
    path = tmp_path / "script.py"
    path.write_text(NBD_SCRIPT, encoding="ascii")
    command = f"{sys.executable} -S {path}"
    done = palimpsest(
        "crash", "--run", f"{command} run {{nbd}}", "--check", f"{command} check {{nbd}} {{output}}", "--json",
        "--size", "64KiB", "--out", str(tmp_path / "out"), "--budget", "30", env={**os.environ, "FAULT": fault},
    )  # fmt: skip
    assert done.returncode == bool(findings), done.stderr
    assert [finding["line"] for finding in json.loads(done.stdout)["findings"]] == findings


@needs_files
def test_any_number_of_jobs_explores_the_same(palimpsest: Command, script: list[str]) -> None:
    out = Path(script[-1])
    ids = []
    for jobs in ("1", "3"):
        for name in ("states.jsonl", "cuts.jsonl"):
            (out / name).unlink(missing_ok=True)
        done = palimpsest(*script, "--jobs", jobs, "--budget", "25")
        assert done.returncode == 0, done.stderr
        ids.append([json.loads(line)["id"] for line in (out / "states.jsonl").read_text().splitlines()])
    assert ids[0] == ids[1]
    assert len(ids[0]) == len(set(ids[0])) == 25


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--run", "true"], "--check: missing"),
        (["--check", "true"], "--run: missing"),
        (["--run", "true {mount}", "--check", "true"], "{mount}: there is no file system; expected --setup"),
        (["--run", "true {disk}", "--check", "true"], "{disk}: there is no such place; expected {dev}, {file}"),
        (["--run", "true {nbd}", "--check", "true {mount}", "--setup", "true"], "{nbd}: the disk is a block device"),
        (["--run", "true", "--check", "true", "--cache", "big"], "expected one of volatile, protected, none"),
        (["--run", "true", "--check", "true", "--size", "1KiB"], "--size 1024: expected whole KiB by four"),
        (["--run", "true", "--check", "true", "--no-drive", "--ftl", "page"], "--ftl: --no-drive leaves the drive out"),
        (["--run", "true", "--check", "true", "--state", "ab"], "--state ab: there is no such state"),
        (["--run", "true", "--check", "true", "--keep", "x"], "--keep: there is no state"),
    ],
)
def test_wrong_input_is_one_line(palimpsest: Command, tmp_path: Path, options: list[str], said: str) -> None:
    done = palimpsest("crash", "--out", str(tmp_path / "out"), *options)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert said in done.stderr


@needs_files
@pytest.mark.parametrize(
    ("run", "check", "said"),
    [
        ("echo no >&2; exit 3; {file}", "true", "--run 'echo no >&2; exit 3; {file}': failed, status 3: no"),
        ("false {file}", "true", "--run 'false {file}': failed, status 1: it printed nothing"),
        ("true {file}", "true", "the program wrote nothing to the disk"),
        (
            "dd if=/dev/urandom of={file} conv=notrunc bs=4k count=1",
            "false",
            "the check fails on the state before the program",
        ),
    ],
)
def test_what_fails_is_one_line(palimpsest: Command, tmp_path: Path, run: str, check: str, said: str) -> None:
    out = str(tmp_path / "out")
    done = palimpsest("crash", "--out", out, "--size", "64KiB", "--run", run, "--check", check)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr.splitlines()[-1]


@needs_files
def test_a_program_that_takes_too_long_ends_with_its_processes(tmp_path: Path) -> None:
    marker = f"sleep 96{os.getpid()}"
    with pytest.raises(InputError, match="the step timed out"):
        explore(
            f"{marker} & setsid {marker} & {marker} && true {{file}}",
            "true",
            size="64KiB",
            out=tmp_path,
            run_timeout_s=0.5,
        )
    assert not running(marker)


@needs_files
@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.EPERM, "Operation not permitted"), (errno.ENOSPC, "there are as many as the system allows")],
)
def test_a_system_without_namespaces_gets_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    class Libc:
        def unshare(self, _flags: int) -> int:
            ctypes.set_errno(number)
            return -1

    monkeypatch.setattr("palimpsest.crash.namespaces._libc", Libc)
    monkeypatch.setattr("palimpsest.crash.namespaces._dies_with_parent", lambda _parent: None)
    with pytest.raises(InputError) as refused:
        explore(overwrite, is_whole, size="64KiB", out=tmp_path / "out")
    assert str(refused.value).startswith(f"namespaces for this user: {said}; expected root, or a system that gives")
    assert list(tmp_path.iterdir()) == [], "nothing is left"
    before = tmp_path / "before"
    before.mkdir()
    (before / "mine").touch()
    with pytest.raises(InputError):
        explore(overwrite, is_whole, size="64KiB", out=before)
    assert [each.name for each in before.iterdir()] == ["mine"]


@needs_files
def test_a_check_has_a_time_limit(tmp_path: Path) -> None:
    def hangs(path: Path) -> None:
        while path.read_bytes()[0] == 1:
            time.sleep(0.01)

    found = explore(overwrite, hangs, size="64KiB", out=tmp_path, jobs=2, timeout_s=0.3, budget=12)
    assert [finding.line for finding in found.findings] == ["the step timed out"]


# --- programs on a file system

STORE = ROOT / "examples" / "crash" / "kv.py"


def store_options(out: Path, *more: str) -> list[str]:
    command = f"{sys.executable} -S {STORE}"
    return [
        "crash", "--setup", "mkfs.ext4 -q {dev}", "--setup", f"{command} create {{mount}}",
        "--run", f"{command} run {{mount}}", "--check", f"{command} check {{mount}} {{output}}",
        "--check", "e2fsck -fn {dev}", "--out", str(out), "--json", *more,
    ]  # fmt: skip


@needs_devices
def test_the_device_of_a_state_holds_its_bytes(palimpsest: Command, tmp_path: Path) -> None:
    """The kernel must keep nothing of earlier states; a check that changes a state must change no other."""
    run = (
        "for i in 1 2 3 4; do head -c 12288 /dev/urandom | dd of={dev} bs=12288 seek=$i oflag=direct status=none; done"
    )
    change = "head -c 65536 /dev/zero | dd of={dev} status=none"
    options = ["--size", "64KiB", "--run", run, "--check", f"cmp {{dev}} {{file}} && {change}", "--json"]
    done = palimpsest("crash", *options, "--out", str(tmp_path / "out"), "--budget", "40", "--jobs", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    explored = found["explored"]
    # The kernel may flush between the writes, which leaves fewer states.
    assert explored["states"] == 40 or (explored["complete"] and explored["states"] > 8)
    assert found["recorded"]["bytes"] == 4 * 12288


@needs_devices
@pytest.mark.parametrize(
    ("fault", "budget", "line"),
    [
        pytest.param("none", 1500, "", marks=pytest.mark.long),
        pytest.param("no-fsync", 100, "the value of key 0 is torn", marks=pytest.mark.long),
        ("no-directory", 40, "version 1 of key 0 is lost"),
        pytest.param("torn", 1000, "the value of key 0 is torn", marks=pytest.mark.long),
    ],
)
def test_planted_faults_are_found(palimpsest: Command, tmp_path: Path, fault: str, budget: int, line: str) -> None:
    options = store_options(tmp_path / "out", "--budget", str(budget), "--mount-options", "noauto_da_alloc")
    done = palimpsest(*options, env={**os.environ, "FAULT": fault}, timeout=1200)
    assert done.returncode == bool(line), done.stderr
    found = json.loads(done.stdout)
    assert found["file_system"] == "ext4"
    assert [finding["line"] for finding in found["findings"]][:1] == ([line] if line else [])


def left_behind(out: Path) -> str:
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    devices = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        # A device may be released between the search and the reading.
        with suppress(OSError):
            devices.append(path.read_text())
    return "\n".join(line for line in (*mounts.splitlines(), *devices) if str(out) in line)


@needs_devices
def test_kill_leaves_nothing(tmp_path: Path) -> None:
    marker = f"sleep 98{os.getpid()}"
    options = store_options(tmp_path / "out", "--check", f"{marker} & true {{mount}}")
    with subprocess.Popen([str(COMMAND), *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        log = tmp_path / "out" / "states.jsonl"
        deadline = time.monotonic() + 60
        while not log.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert log.exists()
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    deadline = time.monotonic() + 20
    while (left_behind(tmp_path) or running(marker)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left_behind(tmp_path)
    assert not running(marker)
    assert not list((tmp_path / "out" / "work").iterdir())


def running(command: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if text == command:
            found.append(text)
    return found


def bank() -> Any:
    """The module `examples/crash/bank.py`."""
    path = STORE.with_name("bank.py")
    spec = importlib.util.spec_from_file_location("bank", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def explored_bank(out: Path, budget: int) -> Exploration:
    module = bank()
    setup = ["mkfs.ext4 -q {dev}", module.create]
    check = [module.check, "e2fsck -fn {dev}"]
    return explore(module.run, check, setup, mount=True, out=out, budget=budget, ssd="mga-8k", ftl="page")


@needs_devices
@pytest.mark.parametrize(
    ("journal", "synchronous", "budget"),
    [
        ("wal", "full", 25),
        pytest.param("wal", "full", 1000, marks=pytest.mark.long),
        pytest.param("delete", "extra", 1000, marks=pytest.mark.long),
        pytest.param("truncate", "full", 1000, marks=pytest.mark.long),
        pytest.param("persist", "full", 1000, marks=pytest.mark.long),
    ],
)
def test_sqlite_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: str, synchronous: str, budget: int
) -> None:
    monkeypatch.setenv("JOURNAL", journal)
    monkeypatch.setenv("SYNCHRONOUS", synchronous)
    found = explored_bank(tmp_path, budget)
    assert not found.findings, found.findings[0].lines()
    assert found.states >= min(budget, 500)


@needs_devices
@pytest.mark.long
@pytest.mark.parametrize(
    ("journal", "synchronous"), [("delete", "full"), ("delete", "off"), ("wal", "normal"), ("wal", "off")]
)
def test_sqlite_loses_what_it_says_that_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: str, synchronous: str
) -> None:
    """With `full` and `delete` the last transaction may be lost (https://sqlite.org/pragma.html#pragma_synchronous)."""
    monkeypatch.setenv("JOURNAL", journal)
    monkeypatch.setenv("SYNCHRONOUS", synchronous)
    found = explored_bank(tmp_path, 300)
    assert found.findings
    if synchronous != "off":
        assert all(re.fullmatch(r"ValueError: transfer [0-9]+ is lost", each.line) for each in found.findings)


@needs_files
def test_an_interrupt_keeps_what_was_explored(script: list[str], palimpsest: Command) -> None:
    out = Path(script[-1])
    check = script.index("--check") + 1
    script[check] = f"sleep 0.2; {script[check]}"
    with subprocess.Popen(
        [str(COMMAND), *script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while not (out / "cuts.jsonl").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert stderr.splitlines()[-1] == "interrupted"
    kept = len((out / "states.jsonl").read_text().splitlines())
    assert stdout.startswith(f"{kept} states (")
    done = palimpsest("crash", "--out", str(out), "--json", "--budget", str(kept + 3))
    assert json.loads(done.stdout)["explored"]["states"] == kept + 3


@needs_files
def test_the_page_has_what_was_found(tmp_path: Path) -> None:
    explore(overwrite, is_whole, size="64KiB", out=tmp_path, jobs=1)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "it is torn" in page
    assert "These are all states that there are." in page
    found = json.loads((tmp_path / "crash.json").read_text(encoding="utf-8"))
    assert found["windows"]["whole"] == found["windows"]["count"]
    assert found["explored"]["complete"]
    assert found["explored"]["failed"] == sum(finding["count"] for finding in found["findings"])
