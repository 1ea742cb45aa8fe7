"""Pages of runs and comparisons: the first screen answers at every width, nothing is cut, and paper has no controls."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

import layout
from layout import NEEDS, PHONE, SMALL, command, script, started, visit
from palimpsest import answers, outputs, units

pytestmark = NEEDS


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A comparison, a counted run, a run with its slowest requests, and six layers with a long name."""
    base = tmp_path_factory.mktemp("screens")
    mga = ("--set", "part.nop=4", "--set", "part.order=ascending")
    command("compare", *SMALL, *mga, "--ftl", "page,subpage,mga", "--out", str(base / "compare"))
    command("run", *SMALL, "--fidelity", "count", "--out", str(base / "count"))
    command("run", *SMALL, "--ftl", "page", "--operations", "slowest:20", "--out", str(base / "slow"))
    long = "a-layer-with-a-name-that-no-phone-has-room-for:ftl=page,ftl.victim=fifo"
    more = ("page", "subpage", "mga", long, "cost-benefit:ftl=page,ftl.victim=cost-benefit", "hotcold")
    command("compare", *SMALL, *mga, "--requests", "4000", *more, "--out", str(base / "six"))
    return {name: base / name for name in ("compare", "count", "slow", "six")}


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    yield from started()


@pytest.mark.parametrize("name", ["compare", "count", "slow", "six"])
def test_the_first_screen_answers_at_every_width(
    browser: webdriver.Chrome, folders: dict[str, Path], name: str
) -> None:
    page = folders[name] / "report.html"
    results = json.loads((folders[name] / "summary.json").read_text())
    for width, height in layout.SIZES.items():
        scheme = "dark" if width == 768 else "light"
        visit(browser, page, (width, height), scheme)
        said = layout.answered(browser)
        if "runs" in results:
            assert said == answers.comparison(outputs.contenders(folders[name]))
            assert any(f" {run.get('label', run['ftl'])}" in f" {said}" for run in results["runs"]), said
        else:
            assert f"stores {units.ratio(results['write_amplification'])} bytes" in said
            p99 = results["latency_ns"] and units.nanoseconds(results["latency_ns"]["write"]["p99"])
            assert (p99 or "no response times") in said
        assert (layout.faults(browser), layout.faint(browser)) == ([], []), width
    assert layout.printed_faults(browser) == []


@pytest.mark.parametrize(
    ("options", "page"),
    [
        (["objects", "fdp-cache,cache=80%,n=20k", "--set", "part.pages_per_block=24"], "objects.html"),
        (
            ["run", *SMALL[:6], "--ftl", "zns", "--workload", "rw=write,bs=64k,n=2000", *SMALL[8:]],
            "report.html",
        ),
        (["run", *SMALL, "--ftl", "fdp", "--set", "fdp.handles=2", "--requests", "4000"], "report.html"),
    ],
)
def test_pages_of_objects_zones_and_handles_fit(
    browser: webdriver.Chrome, tmp_path: Path, options: list[str], page: str
) -> None:
    command(*options, "--out", str(tmp_path / "run"))
    for width, height in (layout.SIZES | {1920: 1080}).items():
        visit(browser, tmp_path / "run" / page, (width, height), "dark" if width == 768 else "light")
        assert (layout.faults(browser), layout.faint(browser)) == ([], []), width
    assert layout.printed_faults(browser) == []


def test_cards_have_the_verdicts_of_the_results(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    visit(browser, folders["compare"] / "report.html", changes="nothing")
    results = outputs.contenders(folders["compare"])
    cards = {card.text.split("\n")[0]: card.text for card in browser.find_elements(By.CSS_SELECTOR, ".tiles div")}
    for label, who, text in answers.cards(results):
        assert cards[label].split("\n")[1:] == [who, text]
    found = ", ".join(dict.fromkeys(units.ratio(each.write_amplification) for each in results))
    assert cards["write amplification"].split("\n")[1:] == ["undecided", found], "collection erased too few blocks"
    folded = browser.find_element(By.CSS_SELECTOR, "main > details")
    assert "requests/s" not in folded.text, "the speed of the simulator is folded"
    notes = [each.text for each in browser.find_elements(By.CSS_SELECTOR, ".note")]
    assert len(notes) == len(set(notes))
    assert not any("verified" in note or "was read as" in note for note in notes)


def test_a_distribution_begins_where_percentiles_move(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    visit(browser, folders["slow"] / "report.html", changes="nothing")
    times = json.loads((folders["slow"] / "summary.json").read_text())["latency_ns"]
    (low, high), ticks = script(browser, "const {range, ticktext} = byId('cdf').layout.xaxis; return [range, ticktext]")
    slowest = max(times[kind]["p999"] for kind in ("read", "write"))
    assert 10**high * 1000 < 1.6 * slowest, "the axis ends near p99.9"
    assert 10**low * 1000 > 0.5 * min(times[kind]["p50"] for kind in ("read", "write")), "and begins with no flat line"
    assert all(re.fullmatch(r"[\d.]+ (ns|us|ms|s)", tick) for tick in ticks), ticks


def test_why_is_a_waterfall_whose_parts_sum(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    visit(browser, folders["slow"] / "report.html", PHONE)
    why = json.loads((folders["slow"] / "summary.json").read_text())["why"]
    bars = """return [...document.querySelectorAll('.fall')].filter(each => each.getClientRects().length).map(fall =>
      [fall.querySelector('h3').textContent, ...[...fall.querySelectorAll('i')].map(bar =>
        [parseFloat(bar.style.marginLeft), parseFloat(bar.style.width)])])"""
    assert browser.find_element(By.CSS_SELECTOR, "#why [aria-pressed=true]").text == "p99"
    for heading, *parts in script(browser, bars):
        kind = heading.split()[0]
        assert heading == f"{kind} p99: {units.nanoseconds(why[kind]['p99']['latency_ns'])}"
        assert len(parts) == sum(bool(part) for part in why[kind]["p99"]["parts_ns"].values())
        assert sum(width for _, width in parts) == pytest.approx(100, abs=0.1)
        for (begin, width), (after, _) in pairwise(parts):
            assert begin + width == pytest.approx(after, abs=0.02)
    browser.find_element(By.CSS_SELECTOR, "[data-shows=why-max]").click()
    assert [heading.split(":")[0] for heading, *_ in script(browser, bars)] == [f"{kind} max" for kind in why]
