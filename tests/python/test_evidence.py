"""Evidence: verdicts on figures, the sentence on a run, and conditions that hold, do not hold, or are unknown."""

from typing import Any

import pytest

from palimpsest import answers, evidence, metrics
from palimpsest.evidence import fitting
from palimpsest.result import Result
from palimpsest.sweeps.conditions import conditions, judged

pytestmark = pytest.mark.unit
EVENTS = {"batches": 16, "erases": 900}


def found(verdict: str = "yes", reason: str | None = None, interval: list[float] | None = None) -> dict[str, Any]:
    return {"verdict": verdict, "reason": reason, "interval": interval, "events": EVENTS}


def run(**changes: Any) -> Result:
    """A run that is steady in every figure, but for `changes`."""
    of_kind = {"mean": found(), "p50": found(), "p99": changes.pop("write_p99", found(interval=[80e3, 100e3]))}
    steady = {key: found(interval=[99.0, 101.0]) for key in ("iops", "mean", "p50", "p99", "wa")}
    steady |= {"read": None, "write": of_kind, "run_in": None, "needs_requests": None} | changes
    return Result(
        {"label": "a", "latency_ns": {"write": {"p99": 90_000}}, "throughput": {"iops": 100.0}, "steady": steady}
    )


def test_a_figure_has_the_evidence_of_the_one_that_it_follows() -> None:
    result = run(wa=found("no", "it rises by 25 % in five rounds"))
    assert evidence.of(result, "throughput.bytes_per_s").verdict == "yes"
    assert evidence.of(result, "latency_ns.write.p99").interval == (80e3, 100e3)
    for figure in ("write_amplification", "endurance.tbw", "lifetime.projected_host_bytes", "flash.erases"):
        assert evidence.of(result, figure).verdict == "no", figure
    for figure in ("latency_ns.write.max", "latency_ns.write.p999", "latency_ns.read.p99"):
        assert evidence.of(result, figure).verdict == "unknown", figure
    assert evidence.of(result, "mapping.bytes_peak").verdict == "yes", "a figure of the drive alone"
    counted = Result({"throughput": {"iops": None}})
    assert evidence.of(counted, "write_amplification").verdict == "unknown"


def test_the_sentence_names_what_is_not_steady_and_the_remedy() -> None:
    assert evidence.sentence(run()) == "yes: every figure within 1 % of an endless run's (95 %, 16 batches)"
    few = "collection erased 9 of 90 blocks; expected each once"
    mixed = run(iops=found("no", "it falls by 25 % in five rounds"), wa=found("unknown", few), needs_requests=210_000)
    assert evidence.sentence(mixed) == (
        "no: throughput: it falls by 25 % in five rounds; unknown: write amplification: "
        f"{few}; expected --until 5% (about 210,000 requests)"
    )
    every = {key: found("unknown", few) for key in ("iops", "mean", "p50", "p99", "wa")}
    assert evidence.sentence(run(**every)) == f"unknown: all figures: {few}"
    assert evidence.sentence(Result({})) == ""


@pytest.mark.parametrize(
    ("condition", "changes", "holds"),
    [
        ("write.p99<150us", {}, True),
        ("write.p99<95us", {}, None),
        ("write.p99<70us", {}, False),
        ("write.p99<150us", {"write_p99": found("unknown", "5000 requests are too few")}, None),
        ("write.max<1s", {}, False),
    ],
)
def test_a_condition_holds_only_with_evidence(condition: str, changes: dict[str, Any], holds: bool | None) -> None:
    result = judged(run(**changes), conditions(condition))
    assert result["slo"][0]["holds"] is holds
    said = answers.slo([result])
    if holds is None:
        assert said.startswith("No run is known to hold")
        assert "a is unknown: " in said
    else:
        assert said.startswith("a holds" if holds else "No run holds")


GEOMETRY = {"ssd": dict.fromkeys(("channels", "chips_per_channel", "dies_per_chip", "planes_per_die"), 1)}


def worn(erases: int, *, closed: bool | None = None, years: float | None = 0.05, **flash: int) -> Result:
    """A run of 1,000 requests on 100 blocks."""
    config = {"ssd": GEOMETRY["ssd"] | {"blocks_per_plane": 100}}
    endurance = {"waf": 2.0, "tbw": 3.0, "years": years, "full_load": closed}
    return Result(
        {
            "label": "a", "seed": 1, "config": config, "flash": {"erases": erases, **flash},
            "requests": {"write": 1000},
            "latency_ns": None, "write_amplification": None, "endurance": endurance,
            "lifetime": {"reused_erases": 0, "projected_host_bytes": 3},
        }
    )  # fmt: skip


def test_a_life_needs_erases_and_names_its_load() -> None:
    short = evidence.lasts(worn(130))
    assert short is not None
    assert short.text == ("the run is too short for a lifetime (1.30 erases a block; expected 5, about 3,900 requests)")
    assert evidence.lasts(worn(0)) == evidence.Said(
        "unknown", "the run is too short for a lifetime (no block was erased; expected 5 erases a block)",
        "no block was erased; expected 5 erases a block",
    )  # fmt: skip
    for result, said in (
        (worn(500, closed=True), "at full load, day and night, the drive lasts 18.3 days"),
        (worn(500, closed=False), "at this load, the drive lasts 18.3 days"),
        (worn(500, years=None), "the drive endures 3.00 TB of writes"),
        (worn(1000, reprograms=1), "at this load, the drive lasts 18.3 days"),
    ):
        found = evidence.lasts(result)
        assert found is not None
        assert (found.text, found.reason) == (said, None)
        assert said in answers.run(result).lower() or "TB" in said
    coded = evidence.lasts(worn(999, reprograms=1))
    assert coded is not None
    assert coded.reason == "9.99 erases a block; expected 10, about 1,100 requests"


def test_tables_leave_out_a_life_that_a_run_does_not_tell() -> None:
    tbw = metrics.metric_of("endurance.tbw")
    short, long = worn(130), worn(500, closed=True)
    assert (tbw.of(short), tbw.cell(short)) == (None, "-")
    assert tbw.of(long) == 3.0
    assert short["endurance"]["tbw"] == 3.0, "the JSON has the figure"
    assert evidence.of(short, "endurance.tbw").verdict == "unknown"
    (condition,) = conditions("tbw>1")
    assert condition.known(short) is None
    assert metrics.labelled_notes([short, long]) == [
        "a: no lifetime: 1.30 erases a block; expected 5, about 3,900 requests",
        "years are for full load, day and night, because the requests wait for the drive",
    ]
    assert metrics.labelled_notes([short]) == [], "the summary of one run says so itself"


@pytest.mark.parametrize(
    ("number", "mechanism", "data", "verdict", "text"),
    [
        (True, True, False, "agrees", "yes"),
        (True, None, False, "agrees", "yes: number"),
        (True, False, False, "contradicts", "no: mechanism"),
        (False, None, False, "contradicts", "no: number"),
        (False, False, False, "contradicts", "no: number and mechanism"),
        (None, None, False, "undecided", "-"),
        (True, None, True, "data", "data"),
    ],
)
def test_a_claim_agrees_by_its_evidence(
    number: bool | None, mechanism: bool | None, data: bool, verdict: str, text: str
) -> None:
    found = evidence.agrees(number, mechanism, data=data)
    assert (found.verdict, found.text) == (verdict, text)


def test_claims_without_a_tested_mechanism_agree_by_number_alone() -> None:
    both, number, wrong, entered = (True, True, False), (True, None, False), (False, None, False), (True, None, True)
    assert evidence.tally([number, wrong, entered]).text == (
        "1 of 2 claims agree by number alone: no mechanism was tested for them"
    )
    assert evidence.tally([both, number, wrong]).text == (
        "1 of 3 claims agree by number and mechanism, 1 by number alone"
    )
    assert evidence.tally([both, (None, None, False)]).text.endswith(
        "1 of 2 claims agree by number and mechanism, 1 undecided"
    )
    assert evidence.tally([entered]).counted == 0


@pytest.mark.parametrize(
    ("reached", "failed", "verdict", "status"),
    [
        ({"cuts": (3, 3), "faults": (1, 1)}, "", "passed", 0),
        ({"cuts": (3, 3), "faults": (0, 3)}, "", "passed in part", 3),
        ({"cuts": (0, 3)}, "", "failed", 1),
        ({"cuts": (3, 3)}, "a page is lost", "failed", 1),
    ],
)
def test_a_suite_passes_only_with_cases(
    reached: dict[str, tuple[int, int]], failed: str, verdict: str, status: int
) -> None:
    found = evidence.passed(reached, failed)
    assert (found.verdict, found.status) == (verdict, status)
    assert (found.reason == "the time ended before all cases: faults 0 of 3") is (status == 3)


def test_a_leader_is_best_only_if_the_intervals_are_apart() -> None:
    steady, unknown = evidence.Evidence("yes", None, (1.0, 2.0)), evidence.Evidence("unknown", "too short")
    apart, near = (evidence.Evidence("yes", None, bounds) for bounds in ((3.0, 4.0), (1.9, 4.0)))
    marks, values = [True, False], [1.5, 3.5]
    assert evidence.is_best(marks, values, [steady, apart])
    assert not evidence.is_best(marks, values, [steady, near])
    assert not evidence.is_best(marks, values, [steady, unknown])
    assert evidence.is_best(marks, [1.5, None], [steady, unknown]), "a layer without the figure does not compete"
    assert evidence.legend([True, True]) == "* best of its row"
    assert evidence.legend([True, False]).startswith("* ahead in its row; known to be best in 1 of 2 rows")
    assert "not known to be best" in evidence.legend([False])


def deviations(*shares: float, bound: float = 0.1, missing: int = 0, predicted: bool = False) -> fitting.Deviations:
    return fitting.Deviations("write amplification", shares, bound, missing, predicted)


def test_a_drive_fits_within_bounds_and_with_a_determined_key() -> None:
    known, unknown = {"ssd.over_provisioning": True, "ftl.victim": False}, {"ssd.over_provisioning": False}
    fits = evidence.whole([deviations(0.02, -0.04, predicted=True)], known)
    assert (fits.verdict, fits.status) == ("fits", 0)
    assert fits.text == "the drive fits within 10 %, predicted; not determined: ftl.victim"
    wrong = evidence.whole([deviations(0.4, -0.34)], known)
    assert (wrong.verdict, wrong.status) == ("does not fit", 3)
    assert wrong.text == "the drive does not fit: write amplification is 37 % off, with a bound of 10 %"
    for found, keys, others in (
        ([deviations(0.02)], unknown, []), ([deviations(missing=3)], known, []),
        ([deviations(0.02, predicted=True)], known, [deviations(0.3, predicted=True)]),
    ):  # fmt: skip
        undecided = evidence.whole(found, keys, others)
        assert (undecided.verdict, undecided.status) == ("undecided", 3), undecided
    assert (fitting.bound(0.03), fitting.bound(0.08)) == (0.1, 0.2)


def test_a_preset_may_be_trusted_for_kinds_with_every_row_within() -> None:
    good, bad = fitting.Rows("throughput", 3, 3, predicted=True), fitting.Rows("p99", 2, 3, True, "16+0: p99 +40 %")
    seen, none = fitting.Rows("p50", 2, 2, predicted=False), fitting.Rows("wa", 0, 0, predicted=False)
    found = {each.figure: fitting.preset(each) for each in (good, bad, seen, none)}
    assert [each.verdict for each in found.values()] == ["fits", "does not fit", "undecided", "undecided"]
    assert found["p99"].reason == "2 of 3 rows within their bars; farthest 16+0: p99 +40 %"
    whole = fitting.presets({"zn540": found})
    assert (whole.status, whole.reason) == (3, "zn540: p99")
    assert whole.text == "zn540 fits in throughput, does not fit in p99, is undecided in p50 and wa"
    assert fitting.presets({"zn540": {"throughput": found["throughput"]}}).status == 0
    for kinds in ({"zn540": {"p50": found["p50"]}}, {}):
        undecided = fitting.presets(kinds)
        assert (undecided.verdict, undecided.status) == ("undecided", 3)
