"""Plain data of kept states: equal after a round, other data refused in one line, and no code in crafted bytes runs."""

import binascii
import contextlib
import os
import pickle
import random
import struct
import subprocess
import sys
from collections import OrderedDict, deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import palimpsest as ps
from conftest import Command
from palimpsest import plain
from palimpsest.layers import Io, Layer
from palimpsest.policies import Caller

SMALL: dict[str, Any] = {"ssd.channels": 2, "ssd.blocks_per_plane": 24, "part.pages_per_block": 16}
NOTHING: Any = object()


class InTurn:
    """A policy with attributes of the test."""

    def __init__(self) -> None:
        self.choices = 0

    def choose(self, blocks: Any) -> int:
        self.choices += 1
        return self.choices % len(blocks.block)


class Attack:
    """An object that creates the file `marker` when pickle reads it."""

    marker = ""

    def __reduce__(self) -> Any:
        return os.mkdir, (self.marker,)


def _round(value: Any) -> Any:
    one, other = SimpleNamespace(value=value), SimpleNamespace(other=1)
    plain.replace(other, plain.dumps(one))
    assert list(vars(other)) == ["value"]
    return other.value


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, -1, 127, 128, -128, -129, 2**64, -(2**4000), 1.5, float("inf"), -0.0, "", "a\ud800\0é",
        b"\0x", [], [1, [2.0, None]], (), ((1,), [2]), {}, {1: "a", (2, "b"): {3}}, set(), {1, "a", (2,)},
        frozenset({1}), deque([1, 2], 3), deque(), np.int64(-3), np.float32(1.5), np.bool_(True),
    ],
)  # fmt: skip
def test_plain_values_stay_equal(value: Any) -> None:
    found = _round(value)
    assert found == value
    assert type(found) is type(value)
    assert isinstance(value, set) or str(found) == str(value)


def test_arrays_and_generators_continue() -> None:
    for array in (np.arange(6, dtype=">i2").reshape(2, 3).T, np.zeros((0, 4)), np.array(2.5), np.array([1j, 2])):
        found = _round(array)
        assert found.dtype == array.dtype
        assert found.shape == array.shape
        assert (found == array).all()
        assert found.flags.writeable
    for bits in (np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64):
        drawn = np.random.Generator(bits(3))
        drawn.random(5)
        assert (_round(drawn).random(9) == drawn.random(9)).all()
    numbers = random.Random(3)
    numbers.gauss(0, 1)
    assert _round(numbers).gauss(0, 1) == numbers.gauss(0, 1)


def test_a_container_that_occurs_twice_stays_one() -> None:
    shared: list[Any] = [np.zeros(2)]
    shared += [shared[0], shared]
    first, second, third = _round((shared, shared, deque([shared])))
    assert first is second is third[0] is first[2]
    assert first[0] is first[1]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (lambda: None, "value is a function"),
        ([1, {"a": Path()}], r"value\[1\]\['a'\] is a pathlib\."),
        (OrderedDict(), "value is a collections.OrderedDict"),
        (np.array([None]), "value is a numpy.ndarray"),
        ({Attack}, r"value\[0\] is a type"),
        (InTurn(), "value is a test_plain.InTurn"),
        (random.SystemRandom(), "value is a random.SystemRandom"),
        (sys, "value is a module"),
    ],
)
def test_other_data_is_refused_in_one_line(value: Any, says: str) -> None:
    with pytest.raises(plain.NotPlain, match=says) as refused:
        plain.dumps(SimpleNamespace(value=value))
    assert "; expected plain data: None, bool, int" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_deep_and_slotted_data_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(plain.NotPlain, match="is nested deeper than 100"):
        plain.dumps(SimpleNamespace(value=deep))

    class Slotted:
        __slots__ = ("count",)

    with pytest.raises(plain.NotPlain, match="Slotted has __slots__"):
        plain.dumps(Slotted())


def test_damaged_bytes_are_refused_and_change_nothing() -> None:
    holder = SimpleNamespace(a=[1, (2, {"x": np.arange(3)})], b={3, 4}, c=deque([5]), d=np.random.default_rng(1))
    stored = plain.dumps(holder)
    draw = random.Random(5)
    kept = SimpleNamespace(mine=1)
    for _ in range(3000):
        bytes_ = bytearray(stored)
        for _ in range(draw.randint(1, 3)):
            bytes_[draw.randrange(len(bytes_))] = draw.randrange(256)
        with contextlib.suppress(plain.NotPlain):
            plain.loads(bytes(bytes_[: draw.choice((len(bytes_), draw.randrange(len(bytes_))))]), None)
    for wrong in (b"", stored[:-1], stored + b"N", struct.pack("<Q", 2**60)):
        with pytest.raises(plain.NotPlain, match="damaged"):
            plain.replace(kept, wrong)
    assert vars(kept) == {"mine": 1}


def test_pickled_bytes_are_refused(tmp_path: Path) -> None:
    Attack.marker = str(tmp_path / "ran")
    attack = pickle.dumps({"choices": Attack()})
    with pytest.raises(ps.PolicyError, match="InTurn: the stored attributes are damaged"):
        Caller("InTurn", InTurn()).restore(attack)
    with pytest.raises(ps.LayerError, match="Layer: the stored attributes are damaged"):
        Io(Layer, {}, 1).restore(Layer(NOTHING), attack)
    assert not (tmp_path / "ran").exists()


def _own(state: bytes) -> bytes:
    """The attributes in a state: their number, the length of the name, the name, and the number `choices`."""
    at = state.index(b"choices")
    return state[at - 16 : at + 16 + struct.unpack_from("<Q", state, at + 8)[0]]


def _crafted(state: bytes, own: bytes, attack: bytes) -> bytes:
    """A state with other bytes of the policy or layer, as long as its lengths say."""
    assert state.count(own) == 1, "the state has the attributes"
    before, after = state.split(struct.pack("<Q", len(own)) + own)
    return before + struct.pack("<Q", len(attack)) + attack + after


def test_a_crafted_state_of_a_drive_runs_nothing(tmp_path: Path) -> None:
    Attack.marker = str(tmp_path / "ran")
    policy = {"ftl.victim": InTurn()}
    drive = ps.Drive("mga-8k", ftl="page", precondition="fill:100%,random:1x", policies=policy, **SMALL)
    state = drive.save()
    own = _own(state)
    same = ps.Drive("mga-8k", ftl="page", policies=policy, state=state, **SMALL)
    assert same.now == drive.now
    attack = _crafted(state[:-4], own, pickle.dumps({"choices": Attack()}))
    attack += struct.pack("<I", binascii.crc32(attack))
    with pytest.raises(ps.Error, match="InTurn: the stored attributes are damaged") as refused:
        ps.Drive("mga-8k", ftl="page", policies=policy, state=attack, **SMALL)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "ran").exists()


_WORD = 2**64 - 1


def _mix(value: int) -> int:
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _WORD
    return value ^ value >> 31


def _turned(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _WORD


def _sum(content: bytes, seed: int) -> int:
    """The checksum of a file of states."""
    sums = [seed, seed ^ 1 << 60, seed ^ 2 << 60, seed ^ 3 << 60]
    whole = len(content) // 32 * 32
    for at, word in enumerate(struct.unpack(f"<{whole // 8}Q", content[:whole])):
        sums[at % 4] = _turned((sums[at % 4] ^ word) * 0x9E3779B97F4A7C15 & _WORD, 29)
    found = _mix(len(content))
    for part in (*sums, *struct.unpack("<4Q", content[whole:].ljust(32, b"\0"))):
        found = _turned(_mix(found ^ part), 17)
    return found


def test_a_crafted_state_file_runs_nothing(palimpsest: Command, tmp_path: Path) -> None:
    Attack.marker = str(tmp_path / "ran")
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    choices = 1000\n"
        "    def choose(self, blocks):\n"
        "        self.choices += 1\n"
        "        return self.choices % len(blocks.block)\n",
        encoding="utf-8",
    )
    folder = tmp_path / "states"
    run = (
        "run", "--ssd=mga-8k", "--ftl=page", *(f"--set={key}={value}" for key, value in SMALL.items()), "--json",
        f"--set=ftl.victim={tmp_path}/mine.py:Mine", "--precondition=fill:100%,random:1x",
        "--workload=rw=randwrite,bs=8k,n=200", f"--state={folder}",
    )  # fmt: skip
    first = palimpsest(*run)
    assert first.returncode == 0, first.stderr
    (file,) = folder.glob("*.state")
    content = file.read_bytes()
    lengths = struct.unpack_from("<QQQ", content, 16)
    key, state = content[40 : 40 + lengths[0]], content[40 + lengths[0] :]
    assert _sum(key, 3) ^ _sum(state, 4) == lengths[2]
    crafted = _crafted(state, _own(state), pickle.dumps({"choices": Attack()}))
    header = struct.pack("<QQQ", len(key), len(crafted), _sum(key, 3) ^ _sum(crafted, 4))
    file.write_bytes(content[:16] + header + key + crafted)
    second = palimpsest(*run)
    assert second.returncode == 0, second.stderr
    assert "mine.py:Mine: the stored attributes are damaged" in second.stderr
    assert second.stderr.count("\n") == 1
    assert not (tmp_path / "ran").exists()


def test_a_state_that_is_not_plain_is_not_kept(palimpsest: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Seen:\n"
        "    pass\n"
        "class Mine:\n"
        "    def __init__(self):\n"
        "        self.seen = [Seen()]\n"
        "    def choose(self, blocks):\n"
        "        return blocks.valid.argmin()\n",
        encoding="utf-8",
    )
    done = palimpsest(
        "run", "--ssd=mga-8k", "--ftl=page", *(f"--set={key}={value}" for key, value in SMALL.items()), "--json",
        f"--set=ftl.victim={tmp_path}/mine.py:Mine", "--precondition=fill:100%", f"--state={tmp_path / 'states'}",
        "--workload=rw=randwrite,bs=8k,n=200",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "mine.py:Mine: seen[0] is a palimpsest_policy_" in done.stderr
    assert ".Seen; expected plain data" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list((tmp_path / "states").glob("*.state"))
    drive = ps.Drive("mga-8k", ftl="page", policies={"ftl.victim": f"{tmp_path}/mine.py:Mine"}, **SMALL)
    with pytest.raises(ps.PolicyError, match=r"seen\[0\] is a palimpsest_policy_\w+\.Seen"):
        drive.save()


def test_no_module_reads_objects_from_data() -> None:
    """`eval` is for the package's own papers, `exec` for a file that the user names."""
    package = Path(ps.__file__).parent
    words = r"\b(pickle|marshal|shelve|dill|cloudpickle|joblib|allow_pickle|yaml)\b|\b(eval|exec|__import__)\("
    found = subprocess.run(
        ["grep", "-rnEo", "--include=*.py", words, package], capture_output=True, text=True, check=False
    ).stdout
    places = {(Path(line.split(":")[0]).name, line.split(":")[2]) for line in found.splitlines()}
    assert places == {("templates.py", "eval("), ("policies.py", "exec(")}
