"""Policies in Python: equal to built-in ones, with state, and with clear errors."""

import ctypes
import json
import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

import palimpsest as ps
from conftest import Command
from palimpsest.policies import Caller, Candidates, Choose

SMALL: dict[str, Any] = {
    "ssd.channels": 2, "ssd.chips_per_channel": 1, "ssd.planes_per_die": 1, "ssd.blocks_per_plane": 48,
    "part.pages_per_block": 16, "ssd.over_provisioning": "28%",
    "ftl.gc_start": "2 blocks", "ftl.gc_stop": "3 blocks",
}  # fmt: skip
LOAD = "rw=randwrite,bs=8k,n=20000,iodepth=4,random_distribution=zipf:1.1"


class CostAgeTimes:
    """As the built-in policy."""

    def choose(self, blocks: Candidates) -> Any:
        cost = blocks.valid * (blocks.erases + 1)
        return (cost / ((blocks.units - blocks.valid) * blocks.age)).argmin()


class Fifo:
    """As the built-in policy."""

    takes_full = True

    def choose(self, blocks: Candidates) -> Any:
        return blocks.age.argmax()


class InTurn:
    """Chooses by the number of earlier choices, so that a lost state shows in the figures."""

    def __init__(self) -> None:
        self.choices = 0

    def choose(self, blocks: Candidates) -> int:
        self.choices += 1
        return self.choices % len(blocks.block)


def _run(layer: str, **settings: Any) -> ps.Result:
    return ps.run(LOAD, ssd=ps.Ssd("mga-8k", ftl=layer, **SMALL), precondition="fill:100%", payload="tag", **settings)


def _figures(result: ps.Result) -> dict[str, object]:
    skipped = ("sim", "provenance", "config", "label")
    return {key: value for key, value in json.loads(result.to_json()).items() if key not in skipped}


@pytest.mark.contract
@pytest.mark.parametrize("layer", ["page", "subpage", "mga", "dftl"])
@pytest.mark.parametrize("fidelity", ["timed", "count"])
def test_a_policy_in_python_equals_the_built_in_one(layer: str, fidelity: str) -> None:
    for name, policy in (("cost-age-times", CostAgeTimes()), ("fifo", Fifo)):
        built_in = _run(layer, overrides={"ftl.victim": name}, fidelity=fidelity)
        ours = _run(layer, policies={"ftl.victim": policy}, fidelity=fidelity)
        assert built_in.gc["erased_blocks"] > 100
        assert _figures(ours) == _figures(built_in)


@pytest.mark.contract
def test_other_choices_give_other_figures() -> None:
    greedy, in_turn = _run("page"), _run("page", policies={"ftl.victim": InTurn})
    assert in_turn.write_amplification > greedy.write_amplification * 1.1


@pytest.mark.contract
def test_a_kept_state_has_the_state_of_the_policy() -> None:
    policy = InTurn()
    alone = _run("page", policies={"ftl.victim": policy})
    ps.keep_states()
    try:
        kept = [_run("page", policies={"ftl.victim": policy}) for _ in range(2)]
    finally:
        ps._core.keep_states(0, None, 0)
    assert [_figures(each) for each in kept] == [_figures(alone)] * 2
    assert policy.choices == 0, "each drive has a copy"


def test_attributes_are_stored_as_plain_data() -> None:
    one, other = Caller("InTurn", InTurn()), Caller("InTurn", InTurn())
    vars(one._policy)["choices"] = 7
    other.restore(one.store())
    assert other._policy.choices == 7
    one._policy.lock = lambda: None
    with pytest.raises(ps.PolicyError, match="InTurn: lock is a function; expected plain data"):
        one.store()


def _file(folder: Path, body: str) -> Path:
    path = folder / "mine.py"
    path.write_text(textwrap.dedent(body), encoding="utf-8")
    return path


@pytest.mark.contract
def test_a_result_names_the_code(tmp_path: Path) -> None:
    path = _file(tmp_path, "class First:\n    def choose(self, blocks):\n        return 0\n")
    result = _run("page", overrides={"ftl.victim": f"{path}:First"})
    named = result.config["ftl"]["victim"]
    assert named.startswith(f"{path}:First@")
    again = _run("page", overrides={"ftl.victim": named})
    assert _figures(again) == _figures(result)
    path.write_text(path.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    with pytest.raises(ps.InputError, match="this is other code"):
        _run("page", overrides={"ftl.victim": named})


@pytest.mark.contract
def test_a_file_may_have_dataclasses_and_classes_of_its_own(tmp_path: Path) -> None:
    body = """
    from __future__ import annotations
    from dataclasses import dataclass, field

    @dataclass
    class Seen:
        blocks: set[int] = field(default_factory=set)

    @dataclass
    class Mine:
        seen: Seen = field(default_factory=Seen)

        def choose(self, blocks):
            self.seen.blocks.add(int(blocks.block[0]))
            return blocks.valid.argmin()
    """
    key = {"ftl.victim": f"{_file(tmp_path, body)}:Mine"}
    alone = _run("page", overrides=key)
    ps.keep_states()
    try:
        # A state with objects of the file's classes has no plain form, so each run preconditions the drive.
        with pytest.warns(UserWarning, match=r"mine.py:Mine: seen is a \w+\.Seen; .*; the preconditioned drive is not"):
            kept = [_run("page", overrides=key) for _ in range(2)]
    finally:
        ps._core.keep_states(0, None, 0)
    assert [_figures(each) for each in kept] == [_figures(alone)] * 2


@pytest.mark.contract
def test_a_drive_inside_a_program_raises_too(tmp_path: Path) -> None:
    path = _file(tmp_path, "class Mine:\n    def choose(self, blocks):\n        raise ValueError('mine')\n")
    keys: dict[str, Any] = SMALL | {"ftl.victim": f"{path}:Mine"}
    drive = ps.Drive("mga-8k", ftl="page", precondition="fill:100%", **keys)
    with pytest.raises(ps.PolicyError, match=r"ValueError: mine; request \d+, a write of 8192 bytes at .* blocks coll"):
        drive.play("write", [8192 * (each % 500) for each in range(4000)], 8192)
    _run("page")


@pytest.mark.contract
def test_a_drive_inside_a_program_takes_objects() -> None:
    def figures(**keys: Any) -> dict[str, object]:
        drive = ps.Drive("mga-8k", ftl="page", precondition="fill:100%", **SMALL, **keys)
        drive.play("write", [8192 * (each * 7 % 500) for each in range(4000)], 8192)
        return _figures(drive.finish())

    ours = figures(policies={"ftl.victim": CostAgeTimes()})
    assert ours == figures(**{"ftl.victim": "cost-age-times"}) != figures(policies={"ftl.victim": InTurn})
    with pytest.raises(ps.InputError, match=r"no policy of ftl\.streams is in Python; expected ftl\.victim"):
        ps.Drive("mga-8k", ftl="page", policies={"ftl.streams": InTurn()})


SOURCE = """
#include <stdint.h>

/* As the built-in policy cost-age-times. */
int64_t choose(int64_t plane, int64_t units, int64_t count, const int64_t *block, const int64_t *valid,
               const int64_t *age, const int64_t *erases) {
    int64_t best = 0;
    double least = 0;
    for (int64_t i = 0; i < count; i++) {
        double cost = (double)(valid[i] * (erases[i] + 1)) / (double)((units - valid[i]) * age[i]);
        if (i == 0 || cost < least) {
            best = i;
            least = cost;
        }
    }
    return best;
}

int64_t beyond(int64_t plane, int64_t units, int64_t count, const int64_t *block, const int64_t *valid,
               const int64_t *age, const int64_t *erases) {
    return count;
}
"""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Victim policies in C."""
    if not shutil.which("cc"):
        pytest.skip("needs cc")
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "mine.c").write_text(SOURCE, encoding="utf-8")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "mine.c", "-o", "mine.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "mine.so"))


class Numba:
    """As a function that Numba compiled by `cfunc`: the address, and a call."""

    def __init__(self, function: Any) -> None:
        self.address = ctypes.cast(function, ctypes.c_void_p).value

    def __call__(self) -> None:
        """Not called."""


@pytest.mark.contract
@pytest.mark.parametrize("fidelity", ["timed", "count"])
def test_a_compiled_function_equals_the_built_in_policy(compiled: ctypes.CDLL, fidelity: str) -> None:
    built_in = _run("subpage", overrides={"ftl.victim": "cost-age-times"}, fidelity=fidelity)
    for function in (Choose(("choose", compiled)), Numba(compiled.choose)):
        ours = _run("subpage", policies={"ftl.victim": function}, fidelity=fidelity)
        assert _figures(ours) == _figures(built_in)


@pytest.mark.contract
def test_wrong_compiled_functions_are_refused(compiled: ctypes.CDLL) -> None:
    with pytest.raises(ps.PolicyError, match=r"compiled function, plane \d+, \d+ closed blocks: index \d+; expected"):
        _run("page", policies={"ftl.victim": Choose(("beyond", compiled))})
    with pytest.raises(ps.InputError, match="no method choose"):
        _run("page", policies={"ftl.victim": compiled.choose})


@pytest.mark.contract
def test_a_file_may_name_a_compiled_function(compiled: ctypes.CDLL, tmp_path: Path) -> None:
    body = f"""
    import ctypes
    from palimpsest.policies import Choose

    choose = Choose(("choose", ctypes.CDLL({compiled._name!r})))
    """
    built_in = _run("page", overrides={"ftl.victim": "cost-age-times"})
    ours = _run("page", overrides={"ftl.victim": f"{_file(tmp_path, body)}:choose"})
    assert _figures(ours) == _figures(built_in)


@pytest.mark.contract
def test_programs_cannot_use_a_drive_with_a_policy_in_python(tmp_path: Path) -> None:
    path = _file(tmp_path, "class Mine:\n    def choose(self, blocks):\n        return 0\n")
    with pytest.raises(ps.InputError, match="programs cannot use a drive with code in Python"):
        ps.serve_nvme("true", ssd="mga-8k", ftl="page", overrides={"ftl.victim": f"{path}:Mine"})


WRONG = {
    "class Mine: pass": "no method choose",
    "class Mine:\n    def choose(self): return 0": "too many positional arguments",
    "class Mine:\n    def __init__(self, seed): pass": "missing 1 required positional argument",
    "class Mine(": "SyntaxError",
    "Mine = 5": "no class 'Mine'",
    "import nothing_of_this_name": "ModuleNotFoundError",
}


@pytest.mark.contract
@pytest.mark.parametrize("body", WRONG)
def test_a_wrong_class_is_refused_in_one_line(body: str, tmp_path: Path) -> None:
    with pytest.raises(ps.InputError) as caught:
        ps.Ssd("mga-8k", ftl="page", **{"ftl.victim": f"{_file(tmp_path, body)}:Mine"})
    assert WRONG[body] in str(caught.value)
    assert "mine.py" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.contract
def test_wrong_names_are_refused() -> None:
    wrong = {"none.py:Mine": "No such file", "object:9:Mine": "no such object", "mine": "FILE.py:CLASS"}
    for value, said in wrong.items():
        with pytest.raises(ps.InputError, match=said):
            ps.Ssd("mga-8k", ftl="page", **{"ftl.victim": value})
    with pytest.raises(ps.InputError, match="no method choose"):
        _run("page", policies={"ftl.victim": object()})


ANSWERS = {
    "1 // 0": "ZeroDivisionError",
    "len(blocks.block)": "expected 0 to",
    "-1": "expected 0 to",
    "1.5": "float 1.5; expected an index",
    "True": "bool True; expected an index",
    "None": "NoneType None; expected an index",
    "blocks.none": "AttributeError",
}


@pytest.mark.contract
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_wrong_answer_ends_the_run(answer: str, tmp_path: Path, palimpsest: Command) -> None:
    path = _file(tmp_path, f"class Mine:\n    def choose(self, blocks):\n        return {answer}\n")
    with pytest.raises(ps.PolicyError) as caught:
        _run("page", overrides={"ftl.victim": f"{path}:Mine"})
    assert ANSWERS[answer] in str(caught.value)
    assert "Mine.choose, plane" in str(caught.value)
    assert re.search(
        r"; request \d+, a write of 8192 bytes at \d+ at \d+ ns; layer page, \d+ blocks collected$", str(caught.value)
    )
    keys = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    ended = palimpsest(
        "run", "--ssd", "mga-8k", "--ftl", "page", *keys, "--set", f"ftl.victim={path}:Mine", "--workload", LOAD,
        "--precondition", "fill:100%",
    )  # fmt: skip
    lines = ended.stderr.splitlines()
    assert lines[-1].startswith("error: ")
    shows_code = "Traceback" in ended.stderr
    assert shows_code == (caught.value.__cause__ is not None)
    assert "policies.py" not in ended.stderr
    assert not shows_code or f"return {answer}" in ended.stderr
