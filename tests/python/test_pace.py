"""Paces of collection in Python: equal to the built-in one, slower and faster, and with clear errors."""

import textwrap
from pathlib import Path
from typing import Any, ClassVar

import pytest

import palimpsest as ps
from palimpsest.policies import Chosen
from test_policies import LOAD, SMALL, _figures


class Paced:
    """As the built-in pace."""

    def spread(self, victim: Chosen) -> int:
        return victim.most


class Half:
    """Twice the moves with each page of the host."""

    def spread(self, victim: Chosen) -> int:
        return victim.most // 2


class InTurn:
    """Spreads by the number of earlier victims, so that a lost state shows in the figures."""

    def __init__(self) -> None:
        self.victims = 0

    def spread(self, victim: Chosen) -> int:
        self.victims += 1
        return self.victims * 7 % (victim.most + 1)


class Recorded:
    """Records all victims of all drives, and moves each at once."""

    victims: ClassVar[list[Chosen]] = []

    def spread(self, victim: Chosen) -> int:
        self.victims.append(victim)
        return 0


def _run(layer: str, **settings: Any) -> ps.Result:
    settings = {"precondition": "fill:100%", "payload": "tag"} | settings
    return ps.run(LOAD, ssd=ps.Ssd("mga-8k", ftl=layer, **SMALL), **settings)


@pytest.mark.contract
@pytest.mark.parametrize("layer", ["page", "subpage", "dftl", "sector-log"])
@pytest.mark.parametrize("fidelity", ["timed", "count"])
def test_a_pace_in_python_equals_the_built_in_one(layer: str, fidelity: str) -> None:
    built_in = _run(layer, policies={"ftl.gc_pace": "paced"}, fidelity=fidelity)
    assert _figures(_run(layer, policies={"ftl.gc_pace": Paced()}, fidelity=fidelity)) == _figures(built_in)
    assert _figures(_run(layer, policies={"ftl.gc_pace": Half}, fidelity=fidelity)) != _figures(built_in)


@pytest.mark.contract
def test_moves_at_once_delay_the_writes_behind_them() -> None:
    Recorded.victims.clear()
    at_once = _run("page", policies={"ftl.gc_pace": Recorded()})
    paced = _run("page", policies={"ftl.gc_pace": "paced"})
    longest = [result["latency_ns"]["write"]["max"] for result in (at_once, paced)]
    assert longest[0] > 1.2 * longest[1]
    measured = [victim for victim in Recorded.victims if victim.time > 0]
    assert len(measured) > 100
    assert all(victim.pages == 16 and 0 <= victim.moves < 16 and victim.most > 0 for victim in measured)
    assert {victim.plane for victim in measured} == {0, 1}
    assert max(victim.load for victim in measured) > 0
    times = [victim.time for victim in measured]
    assert times == sorted(times)


@pytest.mark.contract
def test_a_kept_state_has_the_state_of_the_pace() -> None:
    policy = InTurn()
    alone = _run("page", policies={"ftl.gc_pace": policy})
    ps.keep_states()
    try:
        kept = [_run("page", policies={"ftl.gc_pace": policy}) for _ in range(2)]
    finally:
        ps._core.keep_states(0, None, 0)
    assert [_figures(each) for each in kept] == [_figures(alone)] * 2


ANSWERS = {
    "1 // 0": "ZeroDivisionError",
    "victim.most + 1": "expected 0 to",
    "-1": "number -1; expected 0 to",
    "0.5": "float 0.5; expected a number",
    "None": "NoneType None; expected a number",
}


@pytest.mark.contract
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_wrong_pace_ends_the_run(answer: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    body = f"""
    class Mine:
        def spread(self, victim):
            return {answer}
    """
    path.write_text(textwrap.dedent(body), encoding="utf-8")
    with pytest.raises(ps.PolicyError) as caught:
        _run("page", overrides={"ftl.gc_pace": f"{path}:Mine"})
    assert ANSWERS[answer] in str(caught.value)
    assert "Mine.spread, Chosen(plane=" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.contract
def test_paces_without_effect_are_refused() -> None:
    with pytest.raises(ps.InputError, match=r"no method spread; expected spread\(self, victim\)"):
        _run("page", policies={"ftl.gc_pace": object()})
    with pytest.raises(ps.InputError, match=r"ftl\.gc_pace"):
        ps.run(LOAD, ssd=ps.Ssd("llh-16g", ftl="llh"), policies={"ftl.gc_pace": Paced})
    with pytest.raises(ps.InputError, match=r"ftl\.gc_burst"):
        _run("page", policies={"ftl.gc_pace": Paced}, overrides={"ftl.gc_burst": 4})
    with pytest.raises(ps.InputError, match=r"\"slow\" is not known; expected one of block, paced, FILE\.py:CLASS"):
        ps.Ssd("mga-8k", ftl="page", **{"ftl.gc_pace": "slow"})
