"""When do two runs compare? Planted unfair comparisons are named by their rule, and fair ones raise no alarm."""

import json
import random
import shlex
from collections.abc import Mapping
from typing import Any

import pytest

import palimpsest as ps
from conftest import ROOT, Command
from palimpsest import fair
from palimpsest.reproduce.batch import Batch
from palimpsest.reproduce.study import Study

SMALL = {"ssd.blocks_per_plane": 32, "ftl.gc_start": "1 block", "ftl.gc_stop": "2 blocks"}
LOAD = "rw=randwrite,bs=8k,n=4000,iodepth=8"
ERASING = "rw=randwrite,bs=8k,n=50000,iodepth=8"
PLAIN: dict[str, Any] = {"ssd": "mga-8k", "workload": LOAD, "precondition": "fill:90%"}

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning")
"""Keys that one contender alone reads, and caches of the test."""

Runs = Mapping[str, Mapping[str, object]]


def compared(runs: Runs, **settings: Any) -> ps.Comparison:
    """A comparison on a small SLC drive; options of `settings` and of each run override those of `PLAIN`."""
    options = PLAIN | SMALL | settings
    ftl = {"ftl": options.pop("ftl")} if "ftl" in options else {}
    return ps.compare({label: {**ftl, **changes} for label, changes in runs.items()}, **options)


def apart(**runs: dict[str, Any]) -> ps.Comparison:
    """Runs that were made one after the other with options of their own, and are then compared."""
    made = []
    for label, options in runs.items():
        own = PLAIN | SMALL | {"ftl": label} | options
        made.append(ps.run(own.pop("workload"), **own))
    return ps.Comparison(made)


def found(comparison: ps.Comparison) -> dict[str, Any]:
    """The findings of the JSON by rule."""
    return {each["rule"]: each for each in comparison.to_dict()["checks"]}


PLANTED: dict[str, tuple[Runs, dict[str, Any]]] = {
    "acknowledgement": ({"page": {"ftl": "page"}, "mga": {"ftl": "mga", "buffer.ack": "buffer"}}, {}),
    "durability": ({"page": {"ftl": "page"}, "fs": {"ftl": "fs-page"}}, {}),
    "unit": ({"page": {"ftl": "page"}, "fdp": {"ftl": "fdp"}}, {"fdp.handles": 1}),
    "spare": ({"page": {"ftl": "page"}, "mga": {"ftl": "mga", "ssd.over_provisioning": "40%"}}, {}),
    "caches": ({"page": {"ftl": "page"}, "mga": {"ftl": "mga", "buffer.size": "8MiB"}}, {"buffer.ack": "buffer"}),
    "drive": ({"page": {"ftl": "page"}, "mga": {"ftl": "mga", "part.t_read": "10us"}}, {}),
    "conditions": ({"page": {"ftl": "page"}, "mga": {"ftl": "mga", "sim.scheduler": "read-first"}}, {}),
    "load": ({"page": {"ftl": "page"}, "mga": {"ftl": "mga", "host.iodepth": 64}}, {}),
    "handles": (
        {"one": {"ftl": "fdp", "fdp.handles": 1}, "four": {"ftl": "fdp", "fdp.handles": 4}},
        {"fdp.unit": "block"},
    ),
    "idle": (
        {victim: {"ftl.victim": victim} for victim in ("greedy", "fifo", "cost-benefit")},
        {"ftl": "page", "workload": "rw=randwrite,bs=8k,n=4000,rate_iops=20"},
    ),
    "open blocks": (
        {"two": {"ftl.streams": 2}, "three": {"ftl.streams": 3, "ftl.classifier": "recency"}},
        {"ftl": "page", "ssd.over_provisioning": "18%"},
    ),
}  # fmt: skip
"""Rule that must name the comparison; the runs, and settings of all of them."""

LATER: dict[str, dict[str, Any]] = {
    "load": {"workload": "rw=randwrite,bs=4k,n=4000,iodepth=8"},
    "precondition": {"precondition": "none"},
    "warmup": {"warmup": "1000"},
    "seed": {"seed": 2},
    "fidelity": {"fidelity": "count"},
}
"""Options of the second of two runs made apart, by the rule that must name the comparison."""


@pytest.mark.contract
@pytest.mark.parametrize("rule", PLANTED)
def test_a_planted_comparison_is_named(rule: str) -> None:
    runs, settings = PLANTED[rule]
    checks = found(compared(runs, **settings))
    assert rule in checks, checks
    assert checks[rule]["weight"] == "unfair"
    assert set(checks[rule]["contenders"]) <= set(runs)


@pytest.mark.contract
@pytest.mark.parametrize("rule", LATER)
def test_runs_made_apart_are_named(rule: str) -> None:
    checks = found(apart(page={}, mga=LATER[rule]))
    assert rule in checks, checks
    assert checks[rule]["weight"] == "unfair"


@pytest.mark.contract
def test_a_single_difference_is_the_subject() -> None:
    spare = compared({"low": {}, "high": {"ssd.over_provisioning": "40%"}}, ftl="page")
    assert found(spare)["spare"]["weight"] == "said"
    memory = compared({"small": {}, "large": {"buffer.size": "8MiB"}}, **{"ftl": "page", "buffer.ack": "buffer"})
    assert found(memory)["caches"]["weight"] == "said"
    assert not fair.texts(fair.checks(memory), "unfair")


@pytest.mark.contract
def test_a_run_that_ended_early_is_named() -> None:
    whole, cut = compared({"page": {"ftl": "page"}, "mga": {"ftl": "mga"}})
    cut._data["interrupted"] = True
    assert found(ps.Comparison([whole, cut]))["length"]["contenders"] == ["mga"]


@pytest.mark.contract
def test_totals_of_runs_of_different_length_are_not_ranked() -> None:
    short, long = apart(page={}, mga={"workload": "rw=randwrite,bs=4k,n=5000"})
    for runs, silenced in (([short, long], True), ([short, short], False)):
        found_in = fair.labelled(zip("ab", runs, strict=True))
        assert ("work" in {each.rule for each in found_in}) is silenced
        assert ("energy_uj" in fair.silenced(each for each in found_in if each.rule == "work")) is silenced


@pytest.mark.contract
def test_conditions_without_a_key_are_said() -> None:
    runs = {"page": {"ftl": "page"}, "cached": {"ftl": "dftl"}, "whole": {"ftl": "dftl", "ftl.cmt": "64MiB"}}
    checks = found(compared(runs, workload=f"{ERASING},random_distribution=zipf:1.2"))
    assert {checks[rule]["weight"] for rule in ("dram", "cached map", "erases")} == {"said"}
    assert checks["cached map"]["contenders"] == ["whole"]
    assert checks["erases"]["remedy"].startswith("--repeat ")


@pytest.mark.contract
def test_lifetimes_of_few_erases_are_not_ranked() -> None:
    made = compared({"page": {"ftl": "page"}, "mga": {"ftl": "mga"}}, workload=ERASING)
    silent = fair.silenced(fair.checks(made))
    assert {"endurance", "lifetime"} <= set(silent)
    assert "write_amplification" not in silent


@pytest.mark.unit
def test_one_steady_figure_beside_another_is_said() -> None:
    def result(label: str, verdict: str) -> ps.Result:
        judged: dict[str, Any] = {"verdict": verdict, "reason": None, "interval": None, "events": {}}
        steady = {"iops": judged, "p99": judged, "wa": judged, "needs_requests": 90_000}
        steady |= {"mean": judged, "p50": judged, "read": None, "write": None}
        return ps.Result({"ftl": label, "ssd": "d", "mapping": {"bytes_peak": 1}, "steady": steady, "seed": 1})

    checks = fair.checks([result("a", "yes"), result("b", "unknown")])
    said = next(each for each in checks if each.rule == "steadiness")
    assert (said.weight, said.contenders) == ("said", ("b",))
    assert "90,000 requests" in said.sentence
    assert not fair.checks([result("a", "yes"), result("b", "yes")])


def remedied(runs: Runs, settings: dict[str, Any], remedy: str) -> ps.Comparison:
    """The comparison again with the arguments of a remedy: `--set KEY=VALUE`, or a run `LABEL:KEY=VALUE,...`."""
    words, changed, more = shlex.split(remedy), dict(runs), dict(settings)
    while words:
        word = words.pop(0)
        if word == "--set":
            key, _, value = words.pop(0).partition("=")
            more[key] = value
        else:
            label, _, changes = word.partition(":")
            changed[label] = dict(part.split("=", 1) for part in changes.split(","))
    return compared(changed, **more)


@pytest.mark.contract
@pytest.mark.parametrize("rule", [rule for rule in PLANTED if rule != "durability"])
def test_a_remedy_ends_its_finding(rule: str) -> None:
    runs, settings = PLANTED[rule]
    remedy = found(compared(runs, **settings))[rule]["remedy"]
    assert remedy
    again = found(remedied(runs, settings, remedy))
    assert again.get(rule, {}).get("weight") != "unfair", again


@pytest.mark.contract
def test_terminal_and_page_name_what_is_unfair(palimpsest: Command, tmp_path: Any) -> None:
    keys = [word for key, value in (SMALL | {"fdp.handles": 1}).items() for word in ("--set", f"{key}={value}")]
    options = ["--ssd", "mga-8k", "--workload", LOAD, "--precondition", "fill:90%", "--out", str(tmp_path / "both")]
    done = palimpsest("compare", "--ftl", "page,fdp", *keys, *options)
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    sentence = "Contenders erase units of different sizes: page 1.00 MiB (block), fdp 16.0 MiB (reclaim unit)"
    assert shown.index(sentence) < shown.index("IOPS")
    assert "--set fdp.unit=block" in shown
    page = (tmp_path / "both" / "report.html").read_text(encoding="utf-8")
    assert sentence in page
    assert json.loads((tmp_path / "both" / "summary.json").read_text())["checks"][0]["rule"] == "unit"
    drawn = palimpsest("figure", "bars", str(tmp_path / "both"), "-o", str(tmp_path / "bars.svg"))
    assert f"warning: {sentence}" in drawn.stderr


@pytest.mark.contract
def test_a_sweep_names_unfair_points(tmp_path: Any) -> None:
    grid = {"ftl": ["page", "fdp"], "ssd.over_provisioning": ["50%", "100%"]}
    made = ps.sweep({"base": PLAIN | SMALL | {"fdp.handles": 1}, "grid": grid}, out=tmp_path / "sweep")
    checks = {each["rule"]: each for each in made.to_dict()["checks"]}
    assert checks["unit"]["weight"] == "unfair"
    assert "2 comparisons" in checks["unit"]["sentence"]
    assert checks["spare"]["weight"] == "said", "an axis is the subject of its comparison"


@pytest.mark.unit
def test_a_reproduction_checks_only_finished_cells() -> None:
    batch = Batch()
    study = Study("mga", batch, full=False)
    assert study.checks() == []
    grid = next(name for name, each in study.data["grids"].items() if "only" not in each and "ftl" in each["axes"])
    for keys in study.cells(grid):
        where = "when programmed" if keys["ftl"] == "mga" else "in a protected buffer"
        data = {"ftl": keys["ftl"], "ssd": "mga-8k", "seed": 1}
        promise = {"acknowledged": where, "durable": "when acknowledged"}
        batch._results[study.options(grid, **keys)] = ps.Result(data | {"promise": promise})
    finished = len(batch)
    assert [each.rule for each in study.checks() if each.weight == "unfair"] == ["acknowledgement"]
    assert len(batch) == finished, "no check runs a simulation"


def table_rules() -> list[str]:
    page = (ROOT / "docs" / "fair.md").read_text(encoding="utf-8").partition("## The rules")[2]
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    return [f"{name.strip()} {compares.strip()}" for name, compares in rows]


@pytest.mark.unit
def test_the_page_has_the_rules_of_the_registry() -> None:
    expected = [f"`{rule.name}` {rule.compares}" for rule in fair.RULES]
    assert [row.replace("[steady](steady.md)", "steady") for row in table_rules()] == expected
    assert len({rule.name for rule in fair.RULES}) == len(fair.RULES)


SPACE = {"mga-8k": 32, "llh-16g": 128, "spread-16g": 48, "tlc-32g": 64}
"""Blocks of a plane of small drives, by preset."""
LAYERS = {
    "mga-8k": ("page", "subpage", "mga", "sector-log", "dftl", "bast", "fast"),
    "llh-16g": ("page", "subpage", "hotcold", "llh"),
    "spread-16g": ("page-fgm", "dma-fgm", "spftl", "page"),
    "tlc-32g": ("page", "subpage", "dftl"),
}
VICTIMS = ("greedy", "fifo", "cost-benefit", "cost-age-times", "d-choices:8")
TUNED: dict[str, tuple[object, ...]] = {
    "ssd.over_provisioning": ("60%", "80%", "100%"),
    "buffer.size": ("1MiB", "4MiB", "16MiB"),
    "ftl.wear_leveling": ("dynamic", "static"),
    "ftl.streams": (1, 2),
    "host.iodepth": (4, 16, 64),
}


def fair_comparison(draw: random.Random) -> tuple[Runs, dict[str, Any]]:
    """A comparison in which one thing differs: layers, victims, a key, handles that the job names, or seeds alone."""
    ssd = draw.choice(sorted(SPACE))
    size = draw.choice(("4k", "8k", "16k", "64k"))
    pattern = draw.choice(("randwrite", "randrw", "randread", "write"))
    job = f"rw={pattern},bs={size},n={draw.choice((1000, 3000, 6000))},iodepth={draw.choice((1, 4, 32))}"
    job += draw.choice(("", ",random_distribution=zipf:0.9", ",size=50%"))
    settings: dict[str, Any] = {
        "ssd": ssd, "workload": job, "ssd.blocks_per_plane": SPACE[ssd], "seed": draw.randrange(1, 99),
        "ssd.over_provisioning": draw.choice(("60%", "100%")), "fidelity": draw.choice(("timed", "timed", "count")),
        "precondition": draw.choice(("none", "fill:90%", "fill:70%,random:0.5x")),
    }  # fmt: skip
    kind = draw.choice(("layers", "layers", "victims", "key", "handles"))
    if kind == "layers":
        return {name: {"ftl": name} for name in draw.sample(LAYERS[ssd], 2)}, settings
    settings["ftl"] = draw.choice([name for name in LAYERS[ssd] if name not in ("bast", "fast", "hotcold", "llh")])
    if kind == "victims":
        return {name.replace(":", "-"): {"ftl.victim": name} for name in draw.sample(VICTIMS, 3)}, settings
    if kind == "key":
        key = draw.choice(sorted(TUNED))
        values = draw.sample(TUNED[key], 2)
        settings["ftl"] = "page-fgm" if ssd == "spread-16g" else "subpage"
        settings.pop(key, None)
        if ssd == "llh-16g":
            settings["ftl.classifier"] = "none"
        if key == "buffer.size":
            settings["buffer.ack"] = "buffer"
        return {f"v{at}": {key: value} for at, value in enumerate(values)}, settings
    named = {"ssd": "mga-8k", "ssd.blocks_per_plane": 32, "fdp.unit": "block", "fdp.handles": 2, "ftl": "fdp"}
    job = "rw=randwrite,bs=8k,n=2000,iodepth=4,fdp=1,name=a,size=40%,plids=0,name=b,offset=50%,size=40%,plids=1"
    settings |= {**named, "workload": job, "ssd.over_provisioning": "100%"}
    return {"kept": {"fdp.isolation": "persistent"}, "mixed": {"fdp.isolation": "initial"}}, settings


def alarms(seeds: range) -> list[str]:
    """The unfair findings on fair comparisons."""
    raised = []
    for seed in seeds:
        runs, settings = fair_comparison(random.Random(seed))
        made = compared(runs, **settings)
        raised += [f"{seed}: {runs} {settings}: {said}" for said in fair.texts(fair.checks(made), "unfair")]
    return raised


@pytest.mark.contract
def test_20_fair_comparisons_raise_no_alarm() -> None:
    assert not alarms(range(20))


@pytest.mark.contract
@pytest.mark.long
def test_100_fair_comparisons_raise_no_alarm() -> None:
    assert not alarms(range(100, 200))
