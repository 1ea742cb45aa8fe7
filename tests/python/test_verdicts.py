"""Verdicts on contenders: better, worse, the same, undecided, and the distributions behind the tests."""

import random
from typing import Any

import pytest

from palimpsest import answers, why
from palimpsest.intervals import holm, p_of_f, p_of_t
from palimpsest.metrics import metric_of
from palimpsest.replicates import Replicates
from palimpsest.result import Result
from palimpsest.verdicts import judge, leading, verdict

pytestmark = pytest.mark.unit
WA = metric_of("write_amplification")
IOPS = metric_of("throughput.iops")


def judged(value: float, half: float | None, verdict: str = "yes", reason: str | None = None) -> dict[str, Any]:
    interval = None if half is None else [value * (1 - half), value * (1 + half)]
    return {"verdict": verdict, "reason": reason, "interval": interval, "events": {"batches": 16, "erases": 9}}


def run(label: str, value: float, *, iops: float = 100.0, half: float = 0.01, seed: int = 1, **changes: Any) -> Result:
    """A run that is steady, but for `changes`."""
    steady = {"iops": judged(iops, half), "wa": judged(value, half)} | changes
    data = {"label": label, "ftl": label, "seed": seed, "write_amplification": value, "throughput": {"iops": iops}}
    return Result(data | {"steady": steady})


def repeated(**values: list[float]) -> list[Result]:
    """Contenders with these write amplifications, each of the seed of its place."""
    runs = [run(label, wa, seed=seed) for label, of in values.items() for seed, wa in enumerate(of, 1)]
    return Replicates(runs, list(values), list(range(1, len(next(iter(values.values()))) + 1)), "t").contenders


@pytest.mark.parametrize(
    ("f", "above", "below", "p"),
    [(6.944, 2, 4, 0.05), (5.143, 2, 6, 0.05), (161.45, 1, 1, 0.05), (4.103, 2, 10, 0.05), (3.098, 3, 20, 0.05),
     (18.0, 2, 4, 0.01), (10.925, 2, 6, 0.01), (2.753, 10, 12, 0.05), (1.0, 5, 5, 0.5)],
)  # fmt: skip
def test_probabilities_of_f_are_those_of_the_tables(f: float, above: int, below: int, p: float) -> None:
    assert p_of_f(f, above, below) == pytest.approx(p, rel=0.015)


def test_probabilities_of_t_and_f_agree() -> None:
    for degrees in (1, 2, 5, 40):
        for t in (0.3, 1.0, 4.6):
            assert p_of_f(t * t, 1, degrees) == pytest.approx(p_of_t(t, degrees), abs=1e-10)
    assert p_of_t(2.7764, 4) == pytest.approx(0.05, abs=1e-5)
    assert (p_of_t(float("inf"), 3), p_of_f(float("inf"), 2, 3)) == (0.0, 0.0)


def test_holm_keeps_the_order_and_never_passes_one() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("mine", "word", "within"),
    [
        ([1.60, 1.70, 1.61], "better", False),
        ([2.40, 2.51, 2.42], "worse", False),
        ([2.00, 2.12, 2.01], "same", True),
        ([1.80, 2.40, 1.95], "undecided", False),
        ([1.98, 2.079, 1.98], "better", True),
    ],
)
def test_a_verdict_is_of_ratios_paired_by_seed(mine: list[float], word: str, within: bool) -> None:
    base, other = repeated(a=[2.00, 2.10, 2.00], b=mine)
    found = verdict(WA, other, base)
    assert (found.word, found.within, found.lasting) == (word, within, True)
    assert found.ratio is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.ratio <= found.high
    back = verdict(WA, base, other)
    assert back.word == {"better": "worse", "worse": "better"}.get(word, word)
    assert back.ratio == pytest.approx(1 / found.ratio)
    assert (back.reason is None) == (word != "undecided")


def test_pairs_decide_although_seeds_differ_more() -> None:
    """Means with their own intervals overlap: 1 to 3 with each contender; every seed has a tenth less."""
    base, other = repeated(a=[1.0, 2.0, 3.0], b=[0.9, 1.81, 2.70])
    assert verdict(WA, other, base).word == "better"


def test_holm_undecides_one_of_many_pairs() -> None:
    two = repeated(a=[2.0, 2.1, 2.2], b=[1.9, 1.9, 2.05])
    assert verdict(WA, two[1], two[0]).word == "better"
    many = repeated(
        a=[2.0, 2.1, 2.2], b=[1.9, 1.9, 2.05], c=[1.7, 2.4, 2.0], d=[2.3, 1.7, 2.2], e=[2.1, 2.0, 2.6], f=[2, 2.5, 1.9]
    )
    found = judge(WA, many).between("b", "a")
    assert found.word == "undecided"
    assert found.reason is not None
    assert "too wide for 15 pairs" in found.reason


def test_chance_decides_in_at_most_a_twentieth_of_comparisons() -> None:
    """Five equal contenders, 200 times: any claim is false."""
    draw = random.Random(7)
    wrong = differ = 0
    for _ in range(200):
        made = repeated(**{label: [draw.gauss(2, 0.1) for _ in range(5)] for label in "abcde"})
        found = judge(WA, made)
        wrong += any(each["verdict"] in ("better", "worse") for each in found.to_dict()["pairs"])
        differ += (found.differ or 1) <= 0.05
    assert wrong <= 18, "5 % of 200 and two and a half deviations"
    assert 2 <= differ <= 18


def test_the_same_is_claimed_only_inside_the_bound() -> None:
    """Ratios of 1.06 are beyond the bound: none of 200 comparisons with spread may call them the same often."""
    draw = random.Random(11)
    claims = 0
    for _ in range(200):
        base = [draw.gauss(2, 0.2) for _ in range(5)]
        made = repeated(a=base, b=[1.05 * value * draw.gauss(1, 0.02) for value in base])
        claims += judge(WA, made).same()
    assert claims <= 18


def test_the_randomized_blocks_of_a_textbook() -> None:
    """Logarithms chosen so that treatments have 2 and errors 4 degrees of freedom, and F is 27 by hand."""
    import math

    effects, blocks = {"a": 0.0, "b": 1.0, "c": 2.0}, (0.0, 5.0, -3.0)
    errors = {"a": (0.4, -0.2, -0.2), "b": (-0.2, 0.4, -0.2), "c": (-0.2, -0.2, 0.4)}
    made = repeated(**{
        label: [math.exp(effect + block + error) for block, error in zip(blocks, errors[label], strict=True)]
        for label, effect in effects.items()
    })  # fmt: skip
    # Between: 3 * (1 + 0 + 1) = 6 with 2 degrees; rest: 3 * (0.16 + 0.04 + 0.04) = 0.72 with 4.
    assert judge(WA, made).differ == pytest.approx(p_of_f((6 / 2) / (0.72 / 4), 2, 4), rel=1e-6)


def test_single_runs_are_decided_by_their_own_intervals() -> None:
    few = "collection erased 9 of 90 blocks; expected each once"
    base = run("a", 2.0)
    assert verdict(WA, run("b", 1.5), base).word == "better"
    assert verdict(WA, run("b", 2.01, half=0.005), base).word == "same"
    assert verdict(WA, run("b", 1.95, half=0.08), base).word == "undecided"
    doubted = verdict(WA, run("b", 1.5, wa=judged(1.5, None, "unknown", few)), base)
    assert (doubted.word, doubted.reason, doubted.ratio) == ("undecided", f"b: {few}", None)


def test_seeds_that_change_nothing_are_no_sample() -> None:
    """A trace that is replayed as recorded: three equal ratios prove nothing beyond the run."""
    steady = repeated(a=[2.0, 2.0, 2.0], b=[1.5, 1.5, 1.5])
    assert verdict(WA, steady[1], steady[0]).word == "better"
    runs = [run("a", 2.0, seed=seed) for seed in (1, 2)]
    runs += [run("b", 1.5, seed=seed, wa=judged(1.5, None, "no", "it falls")) for seed in (1, 2)]
    base, other = Replicates(runs, ["a", "b"], [1, 2], "t").contenders
    assert verdict(WA, other, base).reason == "b: it falls"


def test_a_decision_on_runs_that_are_not_steady_says_so() -> None:
    values = {"a": [2.0, 2.1, 2.0], "b": [1.5, 1.6, 1.5]}
    runs = [
        run(label, wa, seed=seed, wa=judged(wa, None, "no", "it falls"))
        for label, of in values.items()
        for seed, wa in enumerate(of, 1)
    ]
    base, other = Replicates(runs, ["a", "b"], [1, 2, 3], "t").contenders
    found = verdict(WA, other, base)
    assert (found.word, found.lasting) == ("better", False)
    assert "in runs of this length, which are not steady" in answers.comparison([base, other])


def test_three_contenders_have_an_answer() -> None:
    made = repeated(a=[2.0, 2.1, 2.0, 2.1], b=[1.5, 1.6, 1.5, 1.61], c=[1.8, 1.9, 1.81, 1.9])
    said = answers.comparison(made)
    assert said.startswith("b is best at write amplification.")
    assert "The same within 5 %: IOPS." in said
    assert judge(WA, made).leaders() == ["b"]
    assert answers.differ(made) == ["Contenders differ (randomized blocks by seed): write amplification (p < 0.001)."]
    close = repeated(a=[2.0, 2.1, 2.0], b=[1.5, 1.9, 1.5], c=[1.55, 1.5, 1.8])
    said = answers.comparison(close)
    assert said.startswith("No figure has a best of the 3 that is decided. The same within 5 %: IOPS. Undecided: write")
    some = repeated(a=[2.0, 2.1, 2.0], b=[1.5, 1.62, 1.5], c=[1.55, 1.5, 1.57])
    assert "Undecided between b and c: write amplification (the ratio is 0." in answers.comparison(some)


def test_only_decided_differences_are_in_the_sentence() -> None:
    base, other = repeated(a=[2.0, 2.1, 2.0], b=[1.8, 2.4, 1.95])
    said = answers.comparison([base, other])
    assert said.startswith("No difference between a and b is decided. Undecided: write amplification (the ratio is 0.7")
    same = answers.comparison([run("a", 2.0, half=0.001), run("b", 2.0, half=0.001)])
    assert same == "a and b are within 5 % of each other in every figure below."
    assert [card[1] for card in answers.cards([base, other])] == ["undecided", "the same within 5 %"]


def test_leading_is_decided_by_pairs() -> None:
    values = {"a": [1.0, 2.0, 3.0], "b": [0.9, 1.81, 2.7], "c": [0.8, 2.2, 2.5]}
    assert leading(values, "low") == ["b", "c"]
    assert leading({label: of[:1] for label, of in values.items()}, "low") == ["c"]
    assert leading({label: [1 / each for each in of] for label, of in values.items()}, "high") == ["b", "c"]


def test_the_parts_of_a_difference_sum_to_the_difference() -> None:
    def slow(label: str, latency: float, **parts: int) -> Result:
        explained = {"requests": 4, "latency_ns": latency, "parts_ns": parts}
        return Result({"label": label, "why": {"write": dict.fromkeys(why.PERCENTILES, explained)}})

    made = [slow("a", 1e6, program=3, collection=1), slow("b", 5e5, program=2, bus=2), slow("c", 1e6, program=4)]
    rows = why.differences(made, "write", "p99")
    assert rows[0] == ("difference", ["-500 us", "-"])
    assert rows[1:] == [
        ("flash programs", ["-500 us", "+250 us"]), ("channel bus", ["+250 us", "-"]),
        ("collection", ["-250 us", "-250 us"]),
    ]  # fmt: skip
    assert why.differences(made[:1], "write", "p99") == []
    assert why.differences([*made, Result({"label": "d"})], "write", "p99") == []
