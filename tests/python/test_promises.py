"""Comparisons of layers with different promises for a write, and figures with times that a drive does not model."""

import io
import re
from typing import Any

import pytest
from rich.console import Console

import palimpsest as ps
from conftest import ROOT, Command, figures
from palimpsest import answers, charts, comparison, fair, metrics, report, units
from palimpsest import summary as of_run
from palimpsest.replicates import Replicates
from palimpsest.sweeps import report as sweep_report
from palimpsest.sweeps.charts import figures as drawn
from palimpsest.sweeps.finished import PointResult
from palimpsest.sweeps.results import Sweep

UNEQUAL = (
    "Latencies do not compare, because page and mga acknowledge a write when programmed, subpage in a protected "
    "buffer. Remedy: --set buffer.ack=program --set buffer.flush=programs"
)
LATENCIES = re.compile(r"(mean|p99) (read|write) latency")


@pytest.fixture
def compared(fake: Any) -> ps.Comparison:
    assert fake
    return ps.compare(["page", "subpage", "mga"], ssd="mga-16k", workload="trade")


def text(shown: Any) -> str:
    """The text of a terminal, with each run of blanks as one."""
    console = Console(file=io.StringIO(), width=120)
    console.print(shown)
    return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


def swept(results: Any) -> Sweep:
    """A sweep over the layers of the results."""
    points = []
    for result in results:
        outcome = {"identity": result.ftl, "status": "done", "error": None, "result": result.to_dict(), "wall_s": 1.0}
        points.append(PointResult.of({"ftl": result.ftl}, outcome, reused=False))
    return Sweep("layers", ["ftl"], points, len(points), None, "", {})


@pytest.mark.unit
def test_unequal_promises_head_every_comparison(compared: ps.Comparison) -> None:
    shown = text(comparison.render(compared))
    assert UNEQUAL in shown
    assert shown.index(UNEQUAL) < shown.index("IOPS")
    assert UNEQUAL in report.page(compared).replace("\n", " ")
    assert UNEQUAL in text(swept(compared))
    assert UNEQUAL in sweep_report.page(swept(compared))
    assert UNEQUAL in text(Replicates(list(compared), ["page", "subpage", "mga"], [1], "t"))


@pytest.mark.unit
def test_a_headline_has_no_latency_of_another_promise(compared: ps.Comparison) -> None:
    best, subpage, mga = answers.versus(compared)
    assert subpage.startswith("subpage vs page: flash bytes programmed -50 %")
    assert not LATENCIES.search(subpage)
    assert not re.search("p99|IOPS", best)
    assert "mean write latency -38 %" in mga, "page and mga make one promise"


@pytest.mark.unit
def test_a_figure_that_does_not_compare_has_no_best(compared: ps.Comparison) -> None:
    row = re.compile(r"write mean .*")
    unequal, equal = (text(comparison.render(each)) for each in (compared, [compared[0], compared[2]]))
    marks = [row.search(each[: each.index("write p50")]) for each in (unequal, equal)]
    assert ["*" in found[0] for found in marks if found] == [False, True]
    page = report.page(compared).partition("write mean")[2].partition("</tr>")[0]
    assert "<strong>" not in page


@pytest.mark.unit
def test_equal_promises_say_nothing(fake: Any) -> None:
    assert fake
    equal = ps.compare(["page", "mga"], ssd="mga-16k", workload="trade")
    assert "promise" not in text(comparison.render(equal))
    assert "latency_ns" not in fair.silenced(fair.checks(equal))
    assert "mean write latency" in answers.versus(equal)[0]


@pytest.mark.unit
def test_only_equal_durability_can_be_had_by_a_key(compared: ps.Comparison) -> None:
    page, system, _ = compared
    system.promise.update(durable="by flush")
    said, durable = fair.labelled([("page", page), ("fs", system)])[:2]
    assert said.text.endswith("page acknowledges a write when programmed, fs in a protected buffer (durable by flush).")
    assert (durable.rule, durable.remedy) == ("durability", None)


@pytest.fixture
def unmodelled(compared: ps.Comparison) -> ps.Comparison:
    """The second layer acknowledges writes in no time, as on the drives of some papers."""
    times = compared[1].latency_ns
    times["write"] |= dict.fromkeys(("p50", "p90", "p99"), 0)
    times["all"] = times["write"]
    compared[1].throughput.update(iops=None, bytes_per_s=None)
    for result in compared:
        result.promise.update(acknowledged="when programmed")
    return compared


@pytest.mark.unit
def test_a_time_that_is_not_modelled_is_never_best(unmodelled: ps.Comparison) -> None:
    shown = text(comparison.render(unmodelled))
    for row in ("IOPS", "bandwidth", "write mean", "write p50", "write p99"):
        _, _, cells = shown.partition(f" {row} ")
        assert re.match(r"[\d,.]+( [kMG]?B/s| [mu]s)?\*? not modelled [\d,.]+", cells), f"{row}: {cells[:60]}"
    assert "write latency -100 %" not in shown
    assert not LATENCIES.search(answers.versus(unmodelled)[1].replace("mean read latency", ""))
    of_mean = next(metric for metric in metrics.METRICS if metric.path == ("latency_ns", "write", "mean"))
    assert metrics.best(of_mean, [of_mean.of(result) for result in unmodelled]) == [False, False, True]


@pytest.mark.unit
def test_pages_and_sweeps_name_what_is_not_modelled(unmodelled: ps.Comparison) -> None:
    result = unmodelled[1]
    assert text(of_run.render(result)).count("not modelled") == 9
    page = report.page(unmodelled)
    assert page.count(units.NOT_MODELLED) >= 8
    assert "<strong>0 ns</strong>" not in page
    assert ">0 ns<" not in page
    legend = str(charts.specification("latency", unmodelled))
    assert "subpage, writes, p99 not modelled" in legend
    sweep = swept(unmodelled)
    assert "not modelled" in text(sweep)
    assert "not modelled" in sweep_report.page(sweep)
    assert drawn(sweep)["latency_ns.write.p99"][1] is None
    seeds = Replicates(list(unmodelled), ["page", "subpage", "mga"], [1], "t")
    assert "not modelled" in text(seeds)


@pytest.mark.unit
def test_counted_runs_are_counted_not_unmodelled(fake: Any) -> None:
    assert fake
    counted = ps.compare(["page", "subpage"], ssd="mga-16k", workload="trade", fidelity="count")
    assert "not modelled" not in text(comparison.render(counted))


@pytest.mark.contract
def test_the_demo_compares_equal_promises(palimpsest: Command) -> None:
    rule = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ndemo:")[2].partition("\n\n")[0]
    command = re.search(r"\$\(BIN\)/palimpsest (compare .*?) --workload", rule)
    assert command is not None
    small = ["--workload", "rw=randwrite,bs=4k,n=200", "--precondition", "none", "--json"]
    done = palimpsest(*command[1].split(), *small)
    promises = [run["promise"] for run in figures(done)["runs"]]
    assert len(promises) > 1
    assert promises == [promises[0]] * len(promises)
