"""`palimpsest check`: tables, failures, wrong input on the native module; the text of a failure on the stand-in.

`tests/planted` has the faults that the check must find, and layers that must pass.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import COMMAND, ROOT, Command
from palimpsest.checking import check_layer

CONTRACT = pytest.mark.contract
UNIT = pytest.mark.unit
PROGRESS = r"\S+ (check|shrink): .*\n"
EXAMPLE = ROOT / "examples" / "python" / "ring.py"


@CONTRACT
def test_a_layer_passes_with_a_table(palimpsest: Command) -> None:
    done = palimpsest("check", "page", "--cases", "1")
    assert (done.returncode, re.sub(PROGRESS, "", done.stderr)) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["kind", "cases", "requests", "power", "cuts"]
    assert lines[1].startswith("counted ")
    assert lines[-2].startswith("no drive had: ")
    assert lines[-1] == "page passed: 1 case of each of 17 kinds, seed 1"


@CONTRACT
def test_a_limit_of_time_says_which_kinds_are_left(palimpsest: Command) -> None:
    done = palimpsest("check", "page", "--seconds", "1", "--cases", "1e6", "--json")
    assert done.returncode == 3
    found = json.loads(done.stdout)
    assert (found["verdict"], found["broken"]) == ("passed in part", None)
    assert all(row["expected"] == 1_000_000 > row["cases"] for row in found["rows"])
    done = palimpsest("check", "page", "--seconds", "1", "--cases", "1e6")
    assert done.returncode == 3
    *_, part, command = done.stdout.splitlines()
    ended = "the time ended before all cases: counted [0-9]+ of 1,000,000, timed .*"
    said = rf"page passed in part \(0 of 17 kinds\), seed 1; {ended}"
    assert re.fullmatch(said, part)
    assert command == "all cases: palimpsest check page --seed 1"


@CONTRACT
def test_a_kind_without_support_has_a_reason(palimpsest: Command) -> None:
    done = palimpsest("check", "mga", "--cases", "1")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert [line.split() for line in lines if line.startswith("parity ")] == [["parity", *"---", "not", "supported"]]
    assert "no case of parity: the layer takes no parity across dies" in lines
    assert re.search(r"\nmga passed: 1 case of each of 1[0-6] kinds, seed 1\n$", done.stdout)


@CONTRACT
def test_a_check_on_the_shape_of_a_drive(palimpsest: Command, tmp_path: Path) -> None:
    done = palimpsest("check", "page", "--ssd", "mga-8k", "--cases", "1", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    settings, changes = found["ssd"]["settings"], {each["key"]: each for each in found["ssd"]["changes"]}
    assert {"ssd.planes_per_die=2", "part.page_size=8KiB", "part.nop=4"} <= set(settings)
    assert changes["ssd.channels"]["given"] == "8"
    assert "part.pages_per_block" in changes
    assert not any(drive["dimension"] in ("planes of a die", "channels") for drive in found["drives"])
    (tmp_path / "mine.toml").write_text('base = "mga-8k"\n[ssd]\nplanes_per_die = 4\n', encoding="utf-8")
    done = palimpsest("check", "page", "--ssd", "mine.toml", "--case", "counted:0", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@CONTRACT
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a system that keeps processes on a core")
@pytest.mark.parametrize("others", [15, pytest.param(40, marks=pytest.mark.long)])
def test_a_busy_machine_changes_nothing(tmp_path: Path, others: int) -> None:
    """A call takes a fifth of a second of work: eight seconds beside 40 busy processes on its core."""
    slow = (
        "        self.calls = getattr(self, 'calls', 0) + 1\n"
        "        end = time.thread_time() + 0.2\n"
        "        while self.calls == 7 and time.thread_time() < end: pass\n"
    )
    layer = _layer(tmp_path, WRITE, "        import time\n" + slow + WRITE)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    busy = []
    try:
        page = {"cases": 1} if others == 40 else {"case": "counted:0"}
        rest = [check_layer(layer, case="counted:0", patience=2), check_layer("page", **page)]
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(others)]
        begin = time.monotonic()
        loaded = [check_layer(layer, case="counted:0", patience=2), check_layer("page", **page)]
        assert time.monotonic() - begin > others / 5
    finally:
        for process in busy:
            process.kill()
            process.wait()
        os.sched_setaffinity(0, cores)
    assert loaded == rest
    assert [found["verdict"] for found in loaded] == ["passed", "passed"]
    assert loaded[0]["cases_digest"] != loaded[1]["cases_digest"]


@CONTRACT
def test_a_page_lost_in_segments_of_several_planes_is_found(palimpsest: Command, tmp_path: Path) -> None:
    """Segments are a setting of the layer, off by default."""
    text = EXAMPLE.read_text(encoding="utf-8")
    changes = (
        ("    keys = {", '    keys = {"ring.planes": Key(1, "planes of a segment", least=1, most=4), '),
        (
            "        pages, units, moved = pages[valid]",
            '        valid[-1] &= io.settings["ring.planes"] == 1\n        pages, units, moved = pages[valid]',
        ),
    )
    for before, after in changes:
        assert text.count(before) == 1
        text = text.replace(before, after)
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    done = palimpsest("check", "mine.py:Ring", "--json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] == "failed"
    assert re.search(r"ring.planes=[24]", " ".join(found["broken"]["settings"]))


@CONTRACT
def test_one_case_repeats(palimpsest: Command) -> None:
    first, second = (palimpsest("check", "subpage", "--case", "cuts:3", "--json") for _ in range(2))
    assert first.stdout == second.stdout
    found = json.loads(first.stdout)
    assert (found["layer"], found["seed"], found["broken"]) == ("subpage", 1, None)
    rows = {row["kind"]: row for row in found["rows"] if row["cases"]}
    assert set(rows) == {"cuts"}
    assert 50 < rows["cuts"]["cuts"] < rows["cuts"]["runs"]
    assert (rows["cuts"]["cases"], rows["cuts"]["expected"], found["verdict"]) == (1, 1, "passed")


@CONTRACT
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["pgae"], "error: check pgae: ftl.name = pgae: there is no such translation layer; did you mean page?"),
        (["page", "--case", "cut:1"], "error: --case cut:1: there is no such case; expected KIND:NUMBER such as "),
        (["page", "--set", "ftl.victm=fifo"], "error: --set ftl.victm=fifo: unknown key"),
        (["page", "--set", "ftl.victim=fiffo"], "error: --set ftl.victim=fiffo: "),
        (["page", "--seconds", "none"], "error: --seconds: not a number; expected one such as"),
        (["page", "--cases", "0"], "error: --cases: expected a number from 1 to 2^63 - 1, found '0'"),
        (["page", "--cases", "2", "--case", "cuts:1"], "error: --cases: --case runs one case; expected one of them"),
        (["page", "--ssd", "mga-9k"], 'error: --ssd mga-9k: no SSD is called "mga-9k"; did you mean mga-8k or '),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_wrong_input_is_one_line(palimpsest: Command, arguments: list[str], says: str) -> None:
    done = palimpsest("check", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(says), done.stderr


@UNIT
def test_a_failure_is_printed_with_its_history(fake_command: Command) -> None:
    done = fake_command("check", "block", "--set", "part.cell=slc")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(
        "block broke in case cuts:2: logical subpage 0 is lost (at src/block.rs:12)\n\n"
        "the shortest history, 1 of 68 requests; power cut in flash operation 3; seed of the drive 2:\n"
        "  1. write 4 KiB at 0 (page 0)\n"
        "       program block 0 page 0   <- the power fails\n\n"
        "the drive: --set ssd.channels=1 --set 'ftl.slc_cache=0 blocks'\n"
        "repeat with: palimpsest check block --seed 1 --set part.cell=slc --case cuts:2\n"
    )
    assert "not supported" not in done.stdout


@UNIT
def test_a_failure_as_json_has_the_command(fake_command: Command) -> None:
    done = fake_command("check", "block", "--json", "--seed", "5")
    assert done.returncode == 1
    assert json.loads(done.stdout)["repeat"] == "palimpsest check block --seed 5 --case cuts:2"


PLANTED = {
    "stale lookup": (
        "            self.make_room(io)\n"
        "            while not io.write(page := self.take(io, 1)[0], unit, self.map[unit]):",
        "            old = self.map[unit]\n"
        "            self.make_room(io)\n"
        "            while not io.write(page := self.take(io, 1)[0], unit, old):",
    ),
    "missing merge": ("unit, self.map[unit])", "unit, -1)"),
    "missing deliver": ("io.deliver(units, ", "if units.start: io.deliver(units, "),
    "open gate": ("after=io.used(moved)", "after=moved"),
    "early erase": ("io.erase(victim, after=io.used(moved))", "io.erase(victim)"),
    "older copy": ("sequence[written].argsort()", "(-sequence[written]).argsort()"),
    "torn block": ("            io.erase(block)", "            pass"),
    "small reserve": ('io.settings["ring.reserve"])', 'io.settings["ring.reserve"] / 3)'),
    "forgotten trim": ("self.map[units.start : units.stop] = -1", "pass"),
    "failed erase": ("io.erase(victim, after=io.used(moved)):", "io.erase(victim, after=io.used(moved)) is not None:"),
    "exception": ("self.runs += 1", "self.runs += self.missing"),
    "idle move": (
        "    def figures(self)",
        "    def relocate(self, io, block):\n        return True\n\n    def figures(self)",
    ),
}
"""Changes of `examples/python/ring.py`: the text, and the text of the fault."""
LONGEST = 12
"""Requests of the longest of the shortest histories."""


@CONTRACT
@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_in_a_layer_in_python_is_found(palimpsest: Command, tmp_path: Path, fault: str) -> None:
    before, after = PLANTED[fault]
    layer = EXAMPLE.read_text(encoding="utf-8")
    assert layer.count(before) == 1
    (tmp_path / "mine.py").write_text(layer.replace(before, after), encoding="utf-8")
    done = palimpsest("check", "mine.py:Ring", "--json", cwd=tmp_path)
    # On a slow machine the check also prints its progress.
    assert (done.returncode, re.sub(PROGRESS, "", done.stderr)) == (1, "")
    broken = json.loads(done.stdout)["broken"]
    assert 0 < broken["shortest"] <= LONGEST, broken
    assert len(broken["history"]) >= broken["shortest"]
    if fault == "exception":
        assert broken["message"].startswith("AttributeError: 'Ring' object has no attribute 'missing'\n")
        assert "self.runs += self.missing" in broken["message"]


@CONTRACT
def test_a_run_finds_an_early_erase_unless_it_verifies_nothing(palimpsest: Command, tmp_path: Path) -> None:
    layer = EXAMPLE.read_text(encoding="utf-8")
    assert layer.count(", after=io.used(moved)") == 1
    (tmp_path / "mine.py").write_text(layer.replace(", after=io.used(moved)", ""), encoding="utf-8")
    drive = ("--ftl=mine.py:Ring", "--ssd=mga-8k", "--set=ssd.blocks_per_plane=16", "--set=part.pages_per_block=16")
    load = ("--workload=rw=randwrite,bs=8k,norandommap,n=5000,iodepth=8", "--precondition=fill:100%,random:1x")
    found = palimpsest("run", *drive, *load, cwd=tmp_path)
    assert found.returncode == 1
    assert "while its block holds all that is safe of logical subpage" in " ".join(found.stderr.split())
    unverified = palimpsest("run", *drive, *load, "--payload=none", cwd=tmp_path)
    assert unverified.returncode == 0, unverified.stderr


@CONTRACT
def test_a_layer_in_python_passes_each_kind(palimpsest: Command) -> None:
    def rows_of(case: str) -> list[dict[str, Any]]:
        done = palimpsest("check", f"{EXAMPLE}:Ring", "--case", case, "--json")
        assert (done.returncode, done.stderr) == (0, ""), case
        rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
        return rows

    cuts = 0
    for kind in [row["kind"] for row in rows_of("counted:0")]:
        (row,) = [row for row in rows_of(f"{kind}:0") if row["cases"]]
        assert (row["kind"], row["supported"]) == (kind, True)
        cuts += row["cuts"]
    assert cuts > 1000


def _layer(folder: Path, before: str, after: str) -> str:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert text.count(before) == 1
    (folder / "mine.py").write_text(text.replace(before, after), encoding="utf-8")
    return f"{folder / 'mine.py'}:Ring"


HANGS = {
    "python": "            while True: pass\n",
    "waits": "            __import__('threading').Event().wait()\n",
    "native": "            __import__('re').match('(a+)+$', 'a' * 60 + 'b')\n",
}
"""Bodies that never return: with the lock of the interpreter now and then, without it, and with it all the time."""
WRITE = "        for unit in units:\n            self.make_room(io)\n"


@CONTRACT
@pytest.mark.parametrize("kind", HANGS)
def test_an_endless_call_is_a_failure_with_its_history(tmp_path: Path, kind: str) -> None:
    body = f"        self.calls = getattr(self, 'calls', 0) + 1\n        if self.calls == 7:\n{HANGS[kind]}"
    begin = time.monotonic()
    found = check_layer(_layer(tmp_path, WRITE, body + WRITE), patience=3)
    assert time.monotonic() - begin < 60
    broken = found["broken"]
    assert broken["case"] == "counted:0"
    assert re.fullmatch(r"write .*: the layer has not returned after 3 s; expected a call that ends", broken["message"])
    assert broken["history"]
    assert broken["history"][-1].split(". ", 1)[1] == broken["message"].partition(": the layer")[0]
    assert len(broken["history"]) <= 41


@CONTRACT
def test_a_call_that_takes_all_memory_is_a_failure(tmp_path: Path) -> None:
    body = "        while True: self.map = np.concatenate([self.map, np.ones(1 << 26)])\n"
    broken = check_layer(_layer(tmp_path, WRITE, body + WRITE), patience=300)["broken"]
    assert re.search(r": the layer has taken \d GiB and not returned; expected a call that ends$", broken["message"])


@CONTRACT
def test_a_signal_ends_the_check_of_an_endless_layer(tmp_path: Path) -> None:
    layer = _layer(tmp_path, WRITE, "        while True: pass\n" + WRITE)
    with subprocess.Popen([COMMAND, "check", layer], stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        time.sleep(4)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 130
        assert process.stdout is not None
        assert process.stdout.read() == b""
    left = subprocess.run(["pgrep", "-f", layer], capture_output=True, text=True, check=False).stdout.split()
    assert not [each for each in left if int(each) != os.getpid()], "the process of the check has ended, too"


@CONTRACT
def test_a_crash_of_native_code_names_the_case(palimpsest: Command, tmp_path: Path) -> None:
    layer = _layer(tmp_path, WRITE, "        import ctypes; ctypes.string_at(0)\n" + WRITE)
    done = palimpsest("check", layer)
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert re.search(r"the layer ended the process in case \w[\w-]*:0 \(signal \d+\); expected calls that return", last)


@CONTRACT
def test_a_failure_outlives_an_endless_search(palimpsest: Command, tmp_path: Path) -> None:
    """A fault in drives with many blocks; on the tiny drives of the search the layer never returns."""
    body = (
        "        if io.blocks < 10:\n"
        "            while True: pass\n"
        "        self.calls = getattr(self, 'calls', 0) + 1\n"
        "        assert self.calls < 40, 'the planted fault'\n"
    )
    layer = _layer(tmp_path, WRITE, body + WRITE)
    done = palimpsest("check", layer, "--case", "counted:0", "--json")
    assert done.returncode == 1, done.stderr
    broken = json.loads(done.stdout)["broken"]
    assert "the planted fault" in broken["message"], broken["message"]
    assert 0 < broken["shortest"] <= broken["requests"]
