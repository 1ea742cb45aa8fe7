"""Drives scaled to the memory at hand: one factor for all runs, repeatable by options, refusals with expectations."""

import json
from pathlib import Path
from typing import Any

import pytest

from palimpsest import fitting
from palimpsest.errors import InputError
from palimpsest.options import RunOptions


class Core:
    """A native module in which a layer's name says the memory of its drive in GiB."""

    def __init__(self, free: int | None = 16 << 30) -> None:
        self.free, self.calls = free, 0

    def available_memory(self) -> int | None:
        return self.free

    def fit_memory(self, options_json: str, memory: int, most: float) -> str:
        self.calls += 1
        options = json.loads(options_json)
        factor = min(1.0, most, memory / (int(options["ftl"]) << 30))
        made = [f"ssd.blocks_per_plane={round(1000 * factor)}"] if factor < 1 else []
        return json.dumps({"overrides": [*options["set"], *made], "factor": factor, "text": f"factor {factor}"})


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Core:
    """The stand-in."""
    made = Core()
    monkeypatch.setattr(fitting, "_core", made)
    return made


def test_all_runs_get_the_smallest_factor(core: Core) -> None:
    runs = [RunOptions(ftl="32"), RunOptions(ftl="64"), RunOptions(ftl="8")]
    made, lines = fitting.fitted(runs, 16 << 30)
    assert {each.overrides for each in made} == {("ssd.blocks_per_plane=250",)}
    assert lines == ["--fit-memory: factor 0.25"]
    assert json.loads(made[0].fitted or "")["factor"] == 0.25
    assert "overrides" not in (made[0].fitted or "")
    assert "# --fit-memory: factor 0.25\n" in made[0].described()
    assert core.calls == 6


def test_runs_that_differ_in_seeds_are_measured_once(core: Core) -> None:
    fitting.scale_of(16 << 30, [RunOptions(ftl="32", seed=seed) for seed in range(5)], 5)
    assert core.calls == 1


def test_runs_at_a_time_share_the_memory_at_hand(core: Core) -> None:
    runs = [RunOptions(ftl="32"), RunOptions(ftl="16")]
    assert fitting.scale_of(fitting.AT_HAND, runs, 1) == fitting.Scale(16 << 30, 0.5)
    assert fitting.scale_of(fitting.AT_HAND, runs, 4) == fitting.Scale(8 << 30, 0.25)
    assert fitting.scale_of(16 << 30, runs, 4).memory == 16 << 30, "a given size is for each run"
    core.free = None
    with pytest.raises(InputError, match="reports no free memory; expected a size, such as 16GiB"):
        fitting.scale_of(fitting.AT_HAND, runs, 1)


def test_without_the_option_nothing_changes(core: Core) -> None:
    runs = [RunOptions(ftl="32")]
    assert fitting.fitted(runs, None) == (runs, [])
    assert core.calls == 0
    made, lines = fitting.fitted([RunOptions(ftl="8")], 16 << 30)
    assert (made[0].overrides, lines) == ((), ["--fit-memory: factor 1.0"])


@pytest.mark.parametrize("text", ["", "job.fio", "-1GiB", "0GiB"])
def test_wrong_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected auto, or one such as 16GiB"):
        fitting.memory_of(text)
    assert fitting.memory_of("auto") == fitting.AT_HAND
    assert fitting.memory_of("16GiB") == 16 << 30


def test_the_native_module_does_not_get_the_figures() -> None:
    options: dict[str, Any] = json.loads(RunOptions(fitted="{}").to_json())
    assert "fitted" not in options
    assert Path(options["ssd"]).name == "default"
