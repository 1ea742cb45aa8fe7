"""Layers in Python: equal to the layer in Rust, verified on every kind of drive, and with clear errors."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from ring import Ring

import palimpsest as ps
from conftest import Command
from palimpsest.layers import Io, Key
from plugin_projects import command, said
from test_own_layer import site  # noqa: F401  # a fixture

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLE = ROOT / "examples" / "python" / "ring.py"

SMALL: dict[str, Any] = {
    "ssd.channels": 2,
    "ssd.blocks_per_plane": 24,
    "part.pages_per_block": 16,
    "ssd.over_provisioning": "30%",
}
JOB = "rw=randrw,bsrange=512-24k,norandommap,n=4000,iodepth=4"
DRIVES: dict[str, tuple[dict[str, object], list[str]]] = {
    "timed": ({}, ["--check"]),
    "counted": ({}, ["--fidelity=count"]),
    "bytes": ({"ftl.read": "dma"}, ["--payload=bytes"]),
    "cuts": ({"faults.power_cuts": "every:700"}, []),
    "counted cuts": ({"faults.power_cuts": "every:700"}, ["--fidelity=count"]),
    "failures": (
        {"faults.program_fail": "0.02%", "faults.erase_fail": "0.1%", "faults.initial_bad": "3%"},
        ["--check"],
    ),
    "parity": ({"ftl.rain": "1", "ssd.over_provisioning": "60%"}, ["--check"]),
}


def figures(result: dict[str, Any]) -> dict[str, Any]:
    """A result without names, times of the simulator and places of files."""
    return {key: value for key, value in result.items() if key not in ("sim", "provenance", "config", "label", "ftl")}


@pytest.mark.parametrize("kind", DRIVES)
def test_it_equals_the_layer_in_rust(kind: str, site: list[Path]) -> None:  # noqa: F811
    settings, options = DRIVES[kind]
    sets = [f"--set={key}={value}" for key, value in {**SMALL, **settings}.items()]
    payload = [] if any(option.startswith("--payload") for option in options) else ["--payload=tag"]
    line = ["run", "--ssd=mga-8k", *sets, f"--workload={JOB}", "--precondition=fill:100%", *payload, *options, "--json"]
    rust, python = (json.loads(said(command(site, *line, f"--ftl={ftl}"))) for ftl in ("ring", f"{EXAMPLE}:Ring"))
    assert python["gc"]["runs"] > 20
    assert figures(python) == figures(rust)


class Halves(Ring):
    """The ring with units of a subpage: each page holds some, the last padded."""

    maps = "subpage"
    parity = False
    keys: ClassVar = {"halves.reserve": Key("200%", "erased pages that only cleaning may use, as a share of a block")}

    def __init__(self, io: Io) -> None:
        io.settings["ring.reserve"] = io.settings["halves.reserve"]
        super().__init__(io)

    def write(self, io: Io, units: range) -> None:
        for first in range(units.start, units.stop, io.subpages_per_page):
            some = np.arange(first, min(first + io.subpages_per_page, units.stop))
            self.make_room(io)
            while not io.write(page := self.take(io, 1)[0], some, self.map[some]):
                pass
            self.map[some] = page * io.subpages_per_page + np.arange(len(some))

    def clean(self, io: Io, victim: int) -> None:
        places = np.arange(victim * io.units_per_block, (victim + 1) * io.units_per_block)
        units = io.logical(places)
        valid = (units >= 0) & (self.map[units] == places)
        places, units, moved = places[valid], units[valid], io.gate()
        while len(places):
            pages = self.take(io, -(-len(places) // io.subpages_per_page))
            some = places[: len(pages) * io.subpages_per_page]
            done = min(io.copy(some, pages, signal=moved) * io.subpages_per_page, len(some))
            self.map[units[:done]] = pages[0] * io.subpages_per_page + np.arange(done)
            places, units = places[done:], units[done:]
        self.full.remove(victim)
        self.runs += 1
        if not io.is_bad(victim) and io.erase(victim, after=io.used(moved)):
            self.free.append(victim)

    def recover(self, io: Io) -> None:
        for block in np.flatnonzero(io.block_states().torn & ~io.block_states().bad):
            io.erase(block)
        places = np.arange(io.blocks * io.units_per_block)
        units, sequence = io.logical(places), io.sequence(places)
        written = np.flatnonzero(units >= 0)
        written = written[sequence[written].argsort(kind="stable")]
        self.map = np.full(io.units, -1)
        self.map[units[written]] = written
        self.free.clear()
        self.full.clear()
        self.open = -1
        bad, _, used, _ = io.block_states()
        newest = np.where(units >= 0, sequence, 0).reshape(io.blocks, -1).max(axis=1)
        for block in newest.argsort(kind="stable").tolist():
            if used[block]:
                self.full.append(block)
            elif not bad[block]:
                self.free.append(block)


@pytest.mark.parametrize("settings", [{}, {"faults.power_cuts": "every:900"}, {"faults.program_fail": "0.02%"}])
def test_a_layer_may_map_subpages(settings: dict[str, object]) -> None:
    drive = ps.Ssd("mga-8k", ftl=Halves, **{**SMALL, "ssd.over_provisioning": "60%", **settings})
    result = drive.run(JOB, precondition="fill:100%", payload="tag", check="faults.power_cuts" not in settings)
    assert ":Halves@" in result.config["ftl"]["name"]
    assert json.loads(result.to_json())["gc"]["moved_subpages"] > 0


class Reads(Ring):
    """Reads the pages of a victim one by one before the copy, without gates: programs must follow the reads."""

    def clean(self, io: Io, victim: int) -> None:
        for page in range(victim * io.pages_per_block, (victim + 1) * io.pages_per_block):
            if io.logical([page])[0] >= 0:
                io.read(page, (1 << io.subpages_per_page) - 1)
        super().clean(io, victim)


def test_copies_follow_reads_that_name_no_gate() -> None:
    drive = ps.Ssd("mga-8k", ftl=Reads, **SMALL)
    result = drive.run(JOB, precondition="fill:100%", payload="tag", check=True)
    assert json.loads(result.to_json())["gc"]["moved_subpages"] > 0


def test_a_class_and_a_file_give_the_same_figures() -> None:
    settings: dict[str, Any] = {"precondition": "fill:100%,random:1x", "payload": "tag"}
    of_class = ps.Ssd("mga-8k", ftl=Ring, **SMALL).run(JOB, **settings)
    of_file = ps.run(JOB, ssd=ps.Ssd("mga-8k", ftl=f"{EXAMPLE}:Ring", **SMALL), **settings)
    assert figures(json.loads(of_class.to_json())) == figures(json.loads(of_file.to_json()))
    assert re.fullmatch(r"object:\d+:Ring@[0-9a-f]{16}", of_class.ftl)


class Random(Ring):
    """Cleans at random, so that a lost state shows in the figures; keeps flash, which has no state."""

    def __init__(self, io: Io) -> None:
        super().__init__(io)
        self.random, self.io = np.random.default_rng(io.seed), io

    def make_room(self, io: Io) -> None:
        self.full.rotate(int(self.random.integers(2)))
        assert self.io is io
        super().make_room(io)


def test_a_kept_state_has_the_tables_of_the_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    drive = ps.Ssd("mga-8k", ftl=Random, **SMALL)
    settings: dict[str, Any] = {"precondition": "fill:100%,random:1x", "payload": "tag"}
    restored: list[object] = []
    restore = Io.restore
    monkeypatch.setattr(Io, "restore", lambda *each: restored.append(restore(*each)))
    alone = drive.run(JOB, **settings)
    ps.keep_states()
    try:
        kept = [drive.run(JOB, **settings) for _ in range(2)]
    finally:
        ps._core.keep_states(0, None, 0)
    assert len(restored) == 1
    assert [figures(json.loads(each.to_json())) for each in kept] == [figures(json.loads(alone.to_json()))] * 2


def test_a_saved_drive_has_the_tables_of_the_layer() -> None:
    first = ps.Drive("mga-8k", ftl=Random, precondition="fill:100%", **SMALL)
    offsets = np.random.default_rng(1).integers(0, first.size // 8192, 1000) * 8192
    first.play("write", offsets, 8192, depth=4)
    state = first.save()
    drives = [first, ps.Drive("mga-8k", ftl=Random, state=state, **SMALL)]
    times = [drive.play("write", offsets, 8192, depth=4).time_ns for drive in drives]
    assert (times[0] == times[1]).all()


def test_keys_of_a_class_belong_to_its_runs_alone(palimpsest: Command) -> None:
    drive = ["--ssd=mga-8k", "--set=ssd.blocks_per_plane=24"]
    shown = said_by(palimpsest("show", *drive, f"--ftl={EXAMPLE}:Ring", "--set=ring.reserve=250%"))
    assert re.search(r'\[ring\]\nreserve = "250%" +# \S+ring.py:Ring@\w+: erased pages that only', shown), shown
    ps.Ssd("mga-8k", ftl=Ring)
    assert "[ring]" not in ps.Ssd("mga-8k", ftl="page").config
    refused = palimpsest("run", *drive, f"--ftl={EXAMPLE}:Ring", "--set=ring.reserve=50%")
    assert refused.returncode == 2
    assert 'ring.reserve = 50%: expected ring.reserve = "150%" (100% or more)' in refused.stderr
    assert (
        "did you mean ring.reserve?" in palimpsest("run", *drive, f"--ftl={EXAMPLE}:Ring", "--set=ring.reserv=2").stderr
    )


def said_by(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sweeps_and_comparisons_have_it(palimpsest: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(
        '[base]\nssd = "mga-8k"\nworkload = "rw=randwrite,bs=8k,n=3000"\nprecondition = "fill:100%"\n'
        '"ssd.blocks_per_plane" = 24\n"part.pages_per_block" = 16\nftl = "mine.py:Ring"\n'
        '[grid]\n"ring.reserve" = ["150%", "300%"]\n', encoding="utf-8")  # fmt: skip
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    printed = said_by(palimpsest("sweep", "../sweep.toml", "--out=../points", "--jobs=2", cwd=elsewhere))
    assert "300%" in printed
    sets = ["--set=ssd.blocks_per_plane=24", "--fidelity=count", "--workload=rw=randwrite,bs=8k,n=2000", "--out=both"]
    said_by(palimpsest("compare", "--ssd=mga-8k", "--ftl=page,mine.py:Ring", *sets, cwd=tmp_path))
    assert "mine.py:Ring" in (tmp_path / "both" / "Ring" / "config.toml").read_text(encoding="utf-8")
    again = ["sweep", "sweep.toml", "--out=points", "--json"]
    assert json.loads(said_by(palimpsest(*again, cwd=tmp_path)))["reused"] == 2
    with (tmp_path / "mine.py").open("a", encoding="utf-8") as file:
        file.write("# other code\n")
    assert json.loads(said_by(palimpsest(*again, cwd=tmp_path)))["reused"] == 0


MISTAKES = {
    "raises": ("def write(self, io, units):\n        raise ValueError('my mistake')",
               "Mine.write: ValueError: my mistake; request 1 of preconditioning, a write of"),
    "rule": ("def write(self, io, units):\n        io.write(5, units[0])",
             "broke a rule of flash: operation 2 on block 0, page 5: a program of cells that already hold data"),
    "swallows": ("def write(self, io, units):\n        try:\n            io.write(5, units[0])\n"
                 "        except BaseException:\n            pass", "broke a rule of flash"),
    "index": ("def write(self, io, units):\n        io.write(10**9, units[0])",
              "IndexError: page 1000000000; expected 0 to"),
    "other unit": ("def write(self, io, units):\n        io.write(0, units.stop)",
                   "is not part of the present write; expected Io.copy for old data"),
    "dtype": ("def write(self, io, units):\n        io.write(0, np.array([0.5]))",
              "ndarray of float64; expected whole numbers: one, an int64 array, or a list"),
    "gate": ("def write(self, io, units):\n        io.all_of(77)", "77 is no gate; expected one of Io.gate()"),
    "closed gate": ("def read(self, io, units):\n        gate = io.gate()\n        io.used(gate)\n"
                    "        io.erase(0, signal=gate)", "the gate has closed; expected an open one"),
    "write in a read": ("def read(self, io, units):\n        io.write(0, units[0])", "not part of the present write"),
    "read in a write": ("def write(self, io, units):\n        io.deliver(units, [-1] * len(units))",
                        "not part of the present read"),
    "default": ("keys = {'mine.n': Key(200, 'mine')}", "the default of mine.n: "),
    "cause": ("def write(self, io, units):\n        io.erase(0, 'mine')",
              "cause \"mine\"; expected one of host, gc, merge, rmw, metadata"),
    "no space": ("def write(self, io, units):\n        raise NoSpace", "the drive is at the end of its life"),
    "init": ("def __init__(self, io):\n        raise RuntimeError('no')", "Mine.__init__: RuntimeError: no"),
    "figures": ("def figures(self):\n        return {'gc_runs': 'x'}",
                "Mine.figures: gc_runs = 'x'; expected a whole number"),
    "key": ("keys = {'ftl.mine': Key(1, 'mine')}", "ftl is a table of the drive; expected a table of the layer's own"),
    "words": ("keys = {'mine.word': Key('c', 'mine', words=('a', 'b'))}", "'c' is not among the words"),
    "maps": ("maps = 'block'", "maps = 'block'; expected one of page, subpage"),
    "not delivered": ("def read(self, io, units):\n        pass", "delivered []"),
}  # fmt: skip
SOURCE = EXAMPLE.read_text(encoding="utf-8")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_shown_with_its_line(mistake: str, palimpsest: Command, tmp_path: Path) -> None:
    body, expected = MISTAKES[mistake]
    source = f"{SOURCE}\n\nclass Mine(Ring):\n    {body}\n"
    (tmp_path / "mine.py").write_text(source, encoding="utf-8")
    line = ["run", "--ssd=mga-8k", "--set=ssd.blocks_per_plane=16", "--set=part.pages_per_block=16", "--payload=tag"]
    done = palimpsest(
        *line, "--precondition=fill:100%", "--workload=rw=randrw,bs=8k,n=3000", "--ftl=mine.py:Mine", cwd=tmp_path
    )
    assert done.returncode in (1, 2)
    assert expected in done.stderr.splitlines()[-1], done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert "panicked" not in done.stderr
    if mistake in ("raises", "index", "dtype", "gate", "cause", "other unit"):
        shown = done.stderr.splitlines()[:-1]
        assert shown[0].startswith("Traceback")
        assert any(line.strip().startswith('File "mine.py"') for line in shown)


def test_what_is_no_layer_is_refused(palimpsest: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from palimpsest.layers import Layer\nclass A(Layer): pass\nclass B: pass\n")
    for name, expected in {"A": "no method write", "B": "no method write", "C": "no class 'C'"}.items():
        done = palimpsest("run", f"--ftl=mine.py:{name}", cwd=tmp_path)
        assert done.returncode == 2
        assert expected in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert "expected a file with the class" in palimpsest("run", "--ftl=none.py:A", cwd=tmp_path).stderr
    assert "programs cannot use a drive" in palimpsest("serve", "--ssd=mga-8k", f"--ftl={EXAMPLE}:Ring").stderr
    with pytest.raises(ps.InputError, match="or a class, found 3"):
        ps.Ssd("mga-8k", ftl=3)  # type: ignore[arg-type]


def test_flash_is_lent_for_a_call_alone() -> None:
    lent: list[Io] = []

    class Keeps(Ring):
        """Keeps flash beyond its call."""

        def __init__(self, io: Io) -> None:
            super().__init__(io)
            lent.append(io)

    ps.run("rw=write,bs=8k,n=10", ssd=ps.Ssd("mga-8k", ftl=Keeps, **SMALL))
    with pytest.raises(RuntimeError, match="no call of the layer runs"):
        lent[0].erase(0)


def test_the_page_shows_the_example() -> None:
    shown = re.search(r"```python\n# ring.py\n(.*?)```", (ROOT / "docs/python-layers.md").read_text("utf-8"), re.S)
    assert shown
    assert shown[1] == SOURCE
    assert len(SOURCE.splitlines()) <= 120
