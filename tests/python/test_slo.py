"""Conditions of a sweep: accepted texts, the frontier against its definition, terminal, page and JSON."""

import itertools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import Command, figures
from palimpsest import errors
from palimpsest.sweeps.conditions import conditions, expect_measured
from palimpsest.sweeps.finished import PointResult
from palimpsest.sweeps.frontier import Frontier, frontier
from palimpsest.sweeps.results import Sweep

_YES: dict[str, object] = {"verdict": "yes", "reason": None, "interval": None, "events": {}}
STEADY = {"p50": _YES, "p99": _YES}
SHARES, RATES = ("7%", "14%", "28%"), (20_000, 90_000, 150_000)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "figure", "bound"),
    [
        ("read.p99<500us", "latency_ns.read.p99", 500e3),
        ("write.p99.9 <= 1.5 ms", "latency_ns.write.p999", 1.5e6),
        ("latency_ns.all.max<2s", "latency_ns.all.max", 2e9),
        ("wa<=4", "write_amplification", 4),
        ("iops>90k", "throughput.iops", 90e3),
        ("bandwidth>=1GB/s", "throughput.bytes_per_s", 1e9),
        ("dram<1MiB", "mapping.bytes_peak", 2**20),
        ("dwpd>=1", "endurance.dwpd_5_years", 1),
        ("tbw>100TB", "endurance.tbw", 100),
        ("lifetime>=5years", "endurance.years", 5),
        ("energy<1.5J", "energy_uj.total", 1.5e6),
        ("flash.by_cause.gc.programs<10", "flash.by_cause.gc.programs", 10),
    ],
)
def test_a_condition_is_a_figure_and_a_bound_in_its_unit(text: str, figure: str, bound: float) -> None:
    (found,) = conditions(text)
    assert (found.figure, found.bound) == (figure, bound)
    assert found.holds(bound) == (found.operator in ("<=", ">="))
    assert not found.holds(None)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected a figure"), ("wa<3,", "expected a figure"), ("read.p99", "expected a figure"),
        ("raed.p99<5us", "did you mean read.p99?"), ("write_amplificatoin<4", "did you mean write_amplification?"),
        ("xyzzy<4", "expected one such as iops"), ("config.seed<1", "no result has a figure"),
        ("read.p99<500", "a unit is missing"), ("read.p99<5kg", "kg is no unit"), ("wa<5us", "us is no unit"),
        ("read.p99=5us", "= is no comparison"), ("wa=<4", "=< is no comparison"), ("wa<1e999", "is no number"),
        ("wa<1e5.5", "is no number"), ("wa<--4", "is no number"),
    ],
)  # fmt: skip
def test_a_wrong_condition_is_one_line(text: str, says: str) -> None:
    with pytest.raises(errors.InputError, match=r"expected|did you mean") as caught:
        conditions(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.unit
def test_figures_without_times_are_refused_at_count_fidelity() -> None:
    for text in ("read.p99<1us", "iops>1", "gc.p99_ns<1s", "power<3", "lifetime>1"):
        with pytest.raises(errors.InputError, match="null at count fidelity"):
            expect_measured(conditions(text), "count")
        expect_measured(conditions(text), "timed")
    expect_measured(conditions("wa<4,dwpd>1,erases<5,dram<1MiB"), "count")


STEADY_DRIVE = (
    "ssd.channels=2", "ssd.blocks_per_plane=16", "part.pages_per_block=16", "ssd.over_provisioning=100%",
)  # fmt: skip
STEADY_LOAD = "rw=randrw,bs=4k,norandommap,iodepth=1,n=60000"
BEFORE = "fill:100%,random:1x"
"""A drive of 8 MiB, and a load that erases each block many times."""


def finished(identity: str, axes: dict[str, Any], p99: int | None) -> PointResult:
    """A point whose reads have this p99; None is a failed point."""
    result = None if p99 is None else {"latency_ns": {"read": {"p99": p99, "p50": 1}}, "steady": {"read": STEADY}}
    status = "failed" if p99 is None else "done"
    return PointResult.of(axes, {"identity": identity, "status": status, "error": None, "result": result})


def swept(p99: Mapping[tuple[str, int, int], int | None], slo: str) -> Sweep:
    """A sweep over over-provisioning, rates and seeds; None is a failed point."""
    points: list[PointResult] = []
    for (share, rate, seed), value in p99.items():
        axes: dict[str, Any] = {"ssd.over_provisioning": share, "workload.rate_iops": rate, "seed": seed}
        points.append(finished(f"{len(points)}", axes, value))
    return Sweep("t", list(points[0].axes), points, len(points), shown={"slo": slo})


def found(p99: Mapping[tuple[str, int, int], int | None], slo: str = "read.p99<500ns") -> Frontier:
    made = frontier(swept(p99, slo))
    assert made is not None
    return made


@pytest.mark.unit
def test_no_configuration_on_the_frontier_is_beaten() -> None:
    """Every set of configurations that may hold on a grid of 3 x 3, against the definition."""
    grid = list(itertools.product(SHARES, RATES))
    for holding in itertools.product((400, 600), repeat=len(grid)):
        made = found({(*each, 1): value for each, value in zip(grid, holding, strict=True)})
        hold = [each for each, value in zip(grid, holding, strict=True) if value == 400]

        def beats(one: tuple[str, int], other: tuple[str, int]) -> bool:
            order = SHARES.index(one[0]) <= SHARES.index(other[0]) and one[1] >= other[1]
            return order and one != other

        best = {each for each in hold if not any(beats(other, each) for other in hold)}
        assert {tuple(each.axes.values()) for each in made.cheapest} == best
        assert len(made.holding) == len(hold)
        assert json.dumps(made.to_dict())


@pytest.mark.unit
def test_the_sentence_claims_only_what_was_run() -> None:
    whole = {(share, rate, 1): 400 if rate <= 90_000 and share != "7%" else 600 for share in SHARES for rate in RATES}
    said = "With over-provisioning of 14% or more, up to 90,000 requests/s, read p99 stays below 500 ns"
    assert found(dict(whole)).sentence == f"{said} (4 of 9 configurations hold)."
    assert "14%, up to 90,000" in found(whole | {("28%", 90_000, 1): 600}).sentence
    none = found(dict.fromkeys(whole, 600)).sentence
    assert none.startswith("No configuration holds read p99 < 500 ns; the nearest is")
    assert found(dict.fromkeys(whole)).sentence.endswith("no figure was measured.")


@pytest.mark.unit
def test_the_sentence_has_words_for_axes() -> None:
    axes: dict[str, Any] = {"ftl": "page", "host.iodepth": 4, "workload.bs": "4k"}
    for p99, begins in ((400, "With layer page, a queue depth of 4, request size 4k, read p99"), (600, "No configur")):
        made = frontier(Sweep("t", list(axes), [finished("0", axes, p99)], 1, shown={"slo": "read.p99<500ns"}))
        assert made is not None
        assert made.sentence.startswith(begins)
        assert "layer page" in made.sentence


@pytest.mark.unit
def test_a_configuration_holds_with_each_seed() -> None:
    for values, holds in (((400, 450), True), ((400, 600), False), ((400, None), False)):
        (one,) = found({("7%", 20_000, seed): value for seed, value in enumerate(values)}).configurations
        assert one.holds == holds
        assert one.values == (None if None in values else max(value for value in values if value),)


@pytest.mark.contract
def test_a_comparison_says_which_runs_hold(palimpsest: Command, tmp_path: Path) -> None:
    sets = [option for setting in STEADY_DRIVE for option in ("--set", setting)]
    work = ("--ssd", "mga-16k", *sets, "--workload", STEADY_LOAD, "--precondition", BEFORE, "--ftl", "page,subpage")
    out = ("--out", str(tmp_path / "c"))
    runs = figures(palimpsest("compare", *work, "--slo", "read.p99<1s,wa<5", *out, "--json"))["runs"]
    values = {run["ftl"]: [each["value"] for each in run["slo"]] for run in runs}
    assert {run["ftl"]: [run["latency_ns"]["read"]["p99"], run["write_amplification"]] for run in runs} == values
    holding = [name for name, (p99, wa) in values.items() if p99 < 1e9 and wa < 5]
    assert holding == ["subpage"]
    done = palimpsest("compare", *work, "--slo", "read.p99<1s,wa<5")
    said = "subpage holds read p99 < 1.00 s and write amplification < 5.00; page has write amplification"
    assert " ".join(done.stdout.split()).startswith(said)
    assert said in (tmp_path / "c" / "report.html").read_text().replace("&lt;", "<")
    assert palimpsest("rerun", str(tmp_path / "c")).returncode == 0
    for wrong in (("--slo", "wa<3", "--seeds", "1..2"), ("--slo", "iops>1", "--fidelity", "count")):
        refused = palimpsest("compare", *work, *wrong)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "s.toml"
    path.write_text(
        f'[base]\nssd = "mga-16k"\nworkload = "{STEADY_LOAD}"\nprecondition = "{BEFORE}"\n'
        "ssd.channels = 2\nssd.blocks_per_plane = 16\npart.pages_per_block = 16\n"
        '[grid]\nftl = ["page", "subpage"]\nssd.over_provisioning = ["100%", "150%"]\n'
        '[report]\nfigure = "latency_ns.read.p999"\nslo = "read.p99<1s"\n'
    )
    return path


@pytest.mark.contract
def test_the_command_prints_keeps_and_draws_the_frontier(palimpsest: Command, file: Path, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "s"))
    made = figures(palimpsest("sweep", str(file), *out, "--json"))["slo"]
    assert [each["holds"] for each in made["configurations"]] == [True] * 4
    other = figures(palimpsest("sweep", str(file), *out, "--json", "--slo", "read.p99<1ns,wa<3"))["slo"]
    assert [each["figure"] for each in other["conditions"]] == ["latency_ns.read.p99", "write_amplification"]
    assert not any(each["holds"] for each in other["configurations"])
    for width in (60, 80, 120):
        done = palimpsest("sweep", str(file), *out, env={**os.environ, "COLUMNS": str(width)})
        assert max(map(len, done.stdout.splitlines())) <= width
        assert " ".join(done.stdout.split()).startswith(made["sentence"])
        assert "read p99.9" in done.stdout
        assert "\x1b" not in done.stdout
    page = (tmp_path / "s" / "report.html").read_text()
    assert made["sentence"] in page.replace("&lt;", "<")
    wrong = palimpsest("sweep", str(file), *out, "--slo", "raed.p99<1s")
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)
    assert wrong.stderr.startswith("error: --slo: raed.p99<1s: ")
    file.write_text(file.read_text().replace("[grid]", 'fidelity = "count"\n[grid]'))
    null = palimpsest("sweep", str(file), "--out", str(tmp_path / "n"))
    assert (null.returncode, (tmp_path / "n").exists()) == (2, False)
    assert "null at count fidelity" in null.stderr
