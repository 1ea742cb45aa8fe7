"""Placement, admission, merge limits and thresholds in Python: equal to built-in policies, and with clear errors."""

import textwrap
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import palimpsest as ps
from palimpsest.policies import Cleaned, Merges, Planes, Writes
from test_policies import LOAD, SMALL, _figures

MIXED = "rw=randrw,rwmixread=40,bssplit=4k/60:8k/20:16k/20,n=12000,iodepth=4,random_distribution=zipf:1.1"
WIDE: dict[str, Any] = SMALL | {"ssd.planes_per_die": 2}
ROOMY: dict[str, Any] = WIDE | {"ssd.over_provisioning": "150%"}
LLH: dict[str, Any] = {"ssd.blocks_per_plane": 64, "ssd.channels": 1, "ssd.chips_per_channel": 2}
SKEWED = "rw=randwrite,bs=4k,n=60000,random_distribution=zipf:1.1"


class RoundRobin:
    """As the built-in allocation."""

    def place(self, planes: Planes) -> int:
        return planes.next


class Ahead:
    """The same, for many pages at a time."""

    calls: ClassVar[int] = 0

    def place(self, planes: Planes) -> Any:
        Ahead.calls += 1
        return (planes.next + np.arange(1000)) % len(planes.free)


class Static:
    """As the built-in allocation."""

    def place(self, planes: Planes) -> int:
        return planes.page % len(planes.free)


class LeastLoaded:
    """As the built-in allocation."""

    def place(self, planes: Planes) -> Any:
        in_turn = (planes.next + np.arange(len(planes.free))) % len(planes.free)
        in_turn = in_turn[planes.lost[in_turn] == 0]
        return in_turn[planes.load[in_turn].argmin()]


class MostFree:
    """The plane with the most free pages."""

    def place(self, planes: Planes) -> Any:
        return planes.free.argmax()


class Uneven:
    """Three pages of four to the first plane; the number of earlier pages is state."""

    def __init__(self) -> None:
        self.pages = 0

    def place(self, planes: Planes) -> Any:
        numbers = self.pages + np.arange(10)
        self.pages += 10
        return np.where(numbers % 4 < 3, 0, numbers % len(planes.free))


class Threshold:
    """As the built-in threshold of 30 %."""

    share = 0.3

    def admit(self, requests: Writes) -> Any:
        return np.full(len(requests.op), self.share)


class Always(Threshold):
    """Pages of their own while a page is free."""

    share = 0


class Never(Threshold):
    """No pages of their own."""

    share = 1


class Small:
    """Pages of their own for larger writes alone."""

    def admit(self, requests: Writes) -> Any:
        assert 0 < requests.free <= 1
        return requests.size < 8192


class Table:
    """As the built-in limits."""

    def limits(self, merges: Merges) -> Any:
        limits = np.select([merges.reads == 0, merges.reads <= 2, merges.reads <= 5], [4, 3, 2], 1)
        return np.minimum(limits, merges.subpages)


class Together:
    """One page at the most, once some requests have been served; the number of calls is state."""

    def __init__(self) -> None:
        self.calls = 0

    def limits(self, merges: Merges) -> Any:
        self.calls += 1
        return np.full(len(merges.reads), 1 if self.calls > 1 else merges.subpages)


class Paper:
    """As the built-in rule: windows of five victims, seven that point the same way, and at least five blocks."""

    def __init__(self) -> None:
        self.victims: dict[int, list[int]] = {}
        self.runs: dict[int, int] = {}

    def adapt(self, victim: Cleaned) -> int:
        recent, run = self.victims.setdefault(victim.bank, []), self.runs.get(victim.bank, 0)
        excess = victim.valid * len(recent) - sum(recent)
        recent[:] = [*recent, victim.valid][-5:]
        if excess > 0:
            run = min(run, 0) - 1
        elif excess < 0:
            run = max(run, 0) + 1
        moves = abs(run) == 7
        self.runs[victim.bank] = 0 if moves else run
        if moves and run > 0:
            return min(victim.threshold + 1, victim.most)
        return max(victim.threshold - 1, 5) if moves else victim.threshold


class Nothing:
    """No block waits."""

    def adapt(self, victim: Cleaned) -> int:
        return min(0, victim.most)


def _run(key: str, policy: Any, layer: str = "page", workload: str = LOAD, **settings: Any) -> Any:
    """The figures of a drive with this policy, or built-in value."""
    keys = dict(settings.pop("keys", WIDE))
    given = {"overrides": {key: policy}} if isinstance(policy, str) else {"policies": {key: policy}}
    settings = {"precondition": "fill:100%", "payload": "tag"} | settings
    preset = "llh-16g" if layer == "llh" else "mga-8k"
    return _figures(ps.run(workload, ssd=ps.Ssd(preset, ftl=layer, **keys), **settings, **given))


@pytest.mark.contract
@pytest.mark.parametrize("layer", ["page", "subpage", "dftl", "mga"])
@pytest.mark.parametrize("fidelity", ["timed", "count"])
def test_a_placement_equals_the_built_in_one(layer: str, fidelity: str) -> None:
    workload = MIXED if layer == "mga" else LOAD
    for name, policy in (("round-robin", RoundRobin), ("least-loaded", LeastLoaded()), ("static", Static)):
        if layer == "subpage" and name == "static":
            continue  # the built-in one gathers subpages by plane
        built_in = _run("ftl.allocation", name, layer, workload, fidelity=fidelity)
        assert built_in["gc"]["erased_blocks"] > 50
        assert _run("ftl.allocation", policy, layer, workload, fidelity=fidelity) == built_in, name


@pytest.mark.contract
def test_a_placement_places_many_pages_at_a_time() -> None:
    built_in = _run("ftl.allocation", "round-robin", fidelity="count")
    Ahead.calls = 0
    assert _run("ftl.allocation", Ahead, fidelity="count") == built_in
    assert 20 <= Ahead.calls <= 40, "a call for a thousand pages"


@pytest.mark.contract
@pytest.mark.parametrize("policy", [Uneven, MostFree])
def test_other_placements_give_other_figures(policy: type) -> None:
    assert _run("ftl.allocation", policy) != _run("ftl.allocation", "round-robin")


@pytest.mark.contract
def test_a_placement_survives_a_lost_die_and_power_cuts() -> None:
    for faults in ({"faults.die_failure": "at:5000@1"}, {"faults.power_cuts": "every:700"}):
        keys = SMALL | {"ssd.chips_per_channel": 2, "ssd.over_provisioning": "80%"} | faults
        for layer in ("page", "mga"):
            built_in = _run("ftl.allocation", "least-loaded", layer, keys=keys, fidelity="count")
            assert _run("ftl.allocation", LeastLoaded, layer, keys=keys, fidelity="count") == built_in


@pytest.mark.contract
@pytest.mark.parametrize("fidelity", ["timed", "count"])
def test_an_admission_equals_the_built_in_one(fidelity: str) -> None:
    def run(policy: Any) -> Any:
        settings: dict[str, Any] = {"keys": ROOMY, "precondition": "fill:60%", "fidelity": fidelity}
        return _run("ftl.allocation_threshold", policy, "mga", MIXED, **settings)

    built_in = {name: run(name) for name in ("30%", "0%", "100%")}
    assert len({str(figures["gc"]) for figures in built_in.values()}) == 3
    for name, policy in (("30%", Threshold), ("0%", Always()), ("100%", Never)):
        assert run(policy) == built_in[name], name
    assert run(Small) not in built_in.values()


@pytest.mark.contract
@pytest.mark.parametrize("fidelity", ["timed", "count"])
def test_merge_limits_equal_the_built_in_ones(fidelity: str) -> None:
    built_in = _run("ftl.merge_limits", "4/3/2/1", "mga", MIXED, fidelity=fidelity)
    assert built_in["merge"]["count"] > 100
    assert _run("ftl.merge_limits", Table, "mga", MIXED, fidelity=fidelity) == built_in
    together = _run("ftl.merge_limits", Together, "mga", MIXED, fidelity=fidelity)
    assert together["merge"]["count"] > 1.2 * built_in["merge"]["count"]


@pytest.mark.contract
@pytest.mark.parametrize("fidelity", ["timed", "count"])
def test_a_threshold_rule_equals_the_paper_s(fidelity: str) -> None:
    settings: dict[str, Any] = {"keys": LLH, "fidelity": fidelity, "workload": SKEWED}
    built_in = _run("ftl.threshold_rule", "paper", "llh", **settings)
    assert built_in["ftl_stats"]["threshold_pu_most"] > built_in["ftl_stats"]["threshold_pu_least"] > 0
    assert _run("ftl.threshold_rule", Paper, "llh", **settings) == built_in
    none = _run("ftl.threshold_rule", Nothing, "llh", **settings)
    assert none["ftl_stats"]["threshold_pu"] == 0


@pytest.mark.contract
def test_policies_of_mga_survive_power_cuts() -> None:
    keys = SMALL | {"faults.power_cuts": "every:700"}
    for key, name, policy in (
        ("ftl.allocation_threshold", "30%", Threshold), ("ftl.merge_limits", "4/3/2/1", Table),
    ):  # fmt: skip
        built_in = _run(key, name, "mga", MIXED, keys=keys, fidelity="count")
        assert _run(key, policy, "mga", MIXED, keys=keys, fidelity="count") == built_in


@pytest.mark.contract
@pytest.mark.parametrize(
    ("key", "policy", "layer"),
    [("ftl.allocation", Uneven, "page"), ("ftl.merge_limits", Together, "mga"), ("ftl.threshold_rule", Paper, "llh")],
)
def test_a_kept_state_has_the_state_of_the_policy(key: str, policy: type, layer: str) -> None:
    settings: dict[str, Any] = {"keys": LLH if layer == "llh" else WIDE, "precondition": "fill:100%,random:1x"}
    alone = _run(key, policy, layer, MIXED, **settings)
    ps.keep_states()
    try:
        kept = [_run(key, policy, layer, MIXED, **settings) for _ in range(2)]
    finally:
        ps._core.keep_states(0, None, 0)
    assert kept == [alone] * 2


WRONG = {
    ("ftl.allocation", "place", "1 // 0"): "place, page 0 of stream 0: ZeroDivisionError",
    ("ftl.allocation", "place", "len(given.free)"): "index 4; expected 0 to 3",
    ("ftl.allocation", "place", "None"): "NoneType None; expected an index",
    ("ftl.allocation", "place", "np.full(5000, 0)"): "shape (5000,); expected (4096,)",
    ("ftl.allocation", "place", "np.zeros(0, int)"): "shape (0,); expected (1,)",
    ("ftl.allocation", "place", "np.zeros(4)"): "array of float64; expected an array of integers",
    ("ftl.allocation", "place", "np.array([0, 9])"): "plane 9; expected 0 to 3",
    ("ftl.allocation_threshold", "admit", "None"): "NoneType; expected an array of numbers",
    ("ftl.allocation_threshold", "admit", "given.size"): "share 8192; expected 0 to 1",
    ("ftl.allocation_threshold", "admit", "given.size * np.nan"): "share nan; expected 0 to 1",
    ("ftl.allocation_threshold", "admit", "np.zeros(3)"): "shape (3,); expected (",
    ("ftl.merge_limits", "limits", "given.reads"): "limit 0; expected 1 to 2",
    ("ftl.merge_limits", "limits", "given.reads[:3] + 1"): "shape (3,); expected (16,)",
    ("ftl.merge_limits", "limits", "given.none"): "limits, 0 merges so far: AttributeError",
    ("ftl.threshold_rule", "adapt", "given.most + 1"): "expected 0 to",
    ("ftl.threshold_rule", "adapt", "0.5"): "float 0.5; expected a number",
}


@pytest.mark.contract
@pytest.mark.parametrize(("key", "method", "answer"), WRONG)
def test_a_wrong_answer_is_one_line(key: str, method: str, answer: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    body = f"""
    import numpy as np

    class Mine:
        def {method}(self, given):
            return {answer}
    """
    path.write_text(textwrap.dedent(body), encoding="utf-8")
    layer = {"ftl.allocation": "page", "ftl.threshold_rule": "llh"}.get(key, "mga")
    keys = LLH if layer == "llh" else WIDE
    with pytest.raises(ps.PolicyError) as caught:
        _run(key, f"{path}:Mine", layer, SKEWED, keys=keys)
    assert WRONG[key, method, answer] in str(caught.value)
    assert f"Mine.{method}, " in str(caught.value)
    assert f"; layer {layer}, " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.contract
def test_policies_without_effect_are_refused() -> None:
    refused: list[tuple[str, Any, str, str]] = [
        ("ftl.allocation", RoundRobin, "llh", r"ftl\.allocation"),
        ("ftl.allocation", RoundRobin, "sector-log", "this layer places pages and subpages apart"),
        ("ftl.allocation", Threshold, "page", r"no method place; expected place\(self, planes\)"),
        ("ftl.allocation", "mine", "page", r"\"mine\" is not known; expected one of static, .*FILE\.py:CLASS"),
        ("ftl.allocation_threshold", Threshold, "page", r"ftl\.allocation_threshold"),
        ("ftl.allocation_threshold", Threshold, "fs-mga", "gets requests of the host, not writes of a file system"),
        ("ftl.allocation_threshold", "mine", "mga", r"\"mine\" is no share; expected a percentage .* FILE\.py:CLASS"),
        ("ftl.merge_limits", Table, "page", r"ftl\.merge_limits"),
        ("ftl.threshold_rule", Paper, "page", r"ftl\.threshold_rule"),
    ]
    for key, policy, layer, said in refused:
        with pytest.raises(ps.InputError, match=said) as caught:
            _run(key, policy, layer, keys={})
        assert "\n" not in str(caught.value)
    with pytest.raises(ps.InputError, match=r"ftl\.threshold_window"):
        _run("ftl.threshold_rule", Paper, "llh", keys=LLH | {"ftl.threshold_window": 3})
    with pytest.raises(ps.InputError, match=r"ftl\.superblock_dies"):
        _run("ftl.allocation", RoundRobin, keys=SMALL | {"ftl.superblock_dies": 1})
