"""Pages in a real headless browser: drawings, controls, a phone, paper, and no network requests.

Needs Chromium and its driver (Debian: `apt-get install chromium chromium-driver`); skipped if either is absent.
"""

import base64
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from layout import (
    NEEDS,
    PHONE,
    SMALL,
    WIDE,
    check_pictures,
    command,
    prefer,
    resize,
    script,
    started,
    visit,
    wait_until,
)
from palimpsest import units

pytestmark = NEEDS


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run, a comparison and a counted run, made by the installed command."""
    base = tmp_path_factory.mktemp("pages")
    timeline = ("--operations", str(base / "operations.parquet"))
    command("run", *SMALL, *timeline, "--operations-window", "1..4000", "--ftl", "subpage", "--out", str(base / "run"))
    mga = ("--set", "part.nop=4", "--set", "part.order=ascending")
    command("compare", *SMALL, *mga, *timeline, "--ftl", "page,subpage,mga", "--out", str(base / "compare"))
    command("run", *SMALL, "--fidelity", "count", "--out", str(base / "count"))
    return {name: base / name for name in ("run", "compare", "count")}


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    yield from started()


def drawn(browser: webdriver.Chrome, chart: str) -> int:
    """Number of marks with an extent that a chart shows: lines, bars, areas, images of heat maps."""
    script = """
      const marks = document.querySelectorAll(`#${CSS.escape(arguments[0])} :is(.scatterlayer path.js-line,
        .barlayer path, .scatterlayer path.js-fill, .heatmaplayer image)`);
      const boxes = [...marks].map(mark => mark.getBoundingClientRect());
      return boxes.filter(box => box.width + box.height > 2).length;
    """
    return int(browser.execute_script(script, chart))


def picture(browser: webdriver.Chrome, selector: str = "#map image") -> str:
    return str(script(browser, "return document.querySelector(arguments[0]).getAttribute('href')", selector))


def cells(browser: webdriver.Chrome, table: str) -> dict[str, list[str]]:
    rows = script(
        browser,
        "return [...document.querySelectorAll(arguments[0])].map(row => [...row.children].map(cell => cell.innerText))",
        f"table.{table} tr",
    )
    return {row[0]: row[1:] for row in rows if len(row) > 1}


def test_axes_have_titles_with_units_and_charts_descriptions(
    browser: webdriver.Chrome, folders: dict[str, Path]
) -> None:
    visit(browser, folders["run"] / "report.html", changes="nothing")
    for chart, axis in (
        ("cdf", "response time"), ("cdf", " us"), ("cdf", "requests (%)"), ("time", "simulated time (ms)"),
        ("time", "throughput (MB/s)"), ("flash", "flash operations (pages)"), ("utilization", "busy (%)"),
        ("wear", "erases of a block"), ("map", "block of the plane"),
        ("timeline", "time since the start of the measurement (us)"), ("timeline", "channel 7"),
    ):  # fmt: skip
        assert axis in browser.find_element(By.ID, chart).text, chart
    charts = browser.find_elements(By.CSS_SELECTOR, ".chart")
    assert len(charts) == 10
    assert all(len(chart.get_attribute("aria-label") or "") > 20 for chart in charts)
    assert all(chart.get_attribute("role") == "img" for chart in charts)


def test_numbers_are_those_of_the_summary(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    visit(browser, folders["run"] / "report.html", changes="nothing")
    summary = json.loads((folders["run"] / "summary.json").read_text())
    shown = cells(browser, "figures")
    assert shown["IOPS"] == [units.count(summary["throughput"]["iops"])]
    assert shown["read p99"] == [units.nanoseconds(summary["latency_ns"]["read"]["p99"])]
    assert shown["write amplification"] == [units.ratio(summary["write_amplification"])]
    assert shown["erases"] == [units.count(summary["flash"]["erases"])]
    assert shown["energy"] == [units.energy(summary["energy_uj"]["total"])]
    tiles = browser.find_element(By.CSS_SELECTOR, ".tiles").text
    assert units.count(summary["throughput"]["iops"]) in tiles
    own = cells(browser, "own")
    assert own["map"] == [units.size(summary["mapping"]["tables"]["map"])]
    assert cells(browser, "percentiles")["p99.99"] == [units.nanoseconds(summary["latency_ns"]["write"]["p9999"])]
    programs = script(
        browser, "return report.charts.flash.data.map(each => each.x[1]).reduce((sum, each) => sum + each)"
    )
    assert programs == summary["flash"]["page_programs"]


def test_a_report_is_small_and_opens_soon(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    page = folders["run"] / "report.html"
    assert page.stat().st_size < 3_000_000
    visit(browser, page, changes="nothing")
    timing = "const at = performance.getEntriesByType('navigation')[0]; return at.loadEventEnd - at.startTime"
    # Less than a second on an idle machine; the bound is for a busy one.
    assert 0 < script(browser, timing) < 20_000


CHARTS_OF_A_RUN = ("cdf", "time", "flash", "timeline", "utilization", "states", "map", "wear", "wear_map")


@pytest.mark.parametrize("name", ["run", "compare"])
def test_every_chart_is_drawn(browser: webdriver.Chrome, folders: dict[str, Path], name: str) -> None:
    visit(browser, folders[name] / "report.html", changes="nothing")
    layers = 3 if name == "compare" else 1
    for chart in CHARTS_OF_A_RUN:
        assert drawn(browser, chart) >= (1 if chart == "map" else layers), chart
    assert drawn(browser, "latency") == 0
    browser.find_element(By.CSS_SELECTOR, "[data-shows=latency]").click()
    assert drawn(browser, "latency") >= layers
    assert not browser.find_element(By.ID, "cdf").is_displayed()
    browser.find_element(By.CSS_SELECTOR, "[data-shows=cdf]").click()
    assert browser.find_element(By.ID, "cdf").is_displayed()


def test_a_comparison_shows_ratios_and_marks_what_differs(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    visit(browser, folders["compare"] / "report.html", changes="nothing")
    page, subpage, mga = json.loads((folders["compare"] / "summary.json").read_text())["runs"]
    shown = cells(browser, "figures")["write amplification"]
    ratio = f"{subpage['write_amplification'] / page['write_amplification']:.2f}x"
    assert shown[:3] == [*(units.ratio(run["write_amplification"]) for run in (page, subpage)), ratio]
    legend = browser.find_element(By.CSS_SELECTOR, "#time .legend").text
    assert f"mga {mga['throughput']['iops'] / page['throughput']['iops']:.2f}x IOPS" in legend
    assert "ftl.name" in browser.find_element(By.CSS_SELECTOR, "table.settings").text
    marked = {mark.get_attribute("textContent") for mark in browser.find_elements(By.CSS_SELECTOR, "pre mark")}
    # A layer without a buffer also has a different promise.
    assert {str(text).partition(" = ")[0] for text in marked} == {"name"}


def test_layers_of_a_comparison_have_maps_of_their_own(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    visit(browser, folders["compare"] / "report.html", changes="map")
    seen = set()
    for layer in ("page", "subpage", "mga"):
        Select(browser.find_element(By.CSS_SELECTOR, "[data-layer]")).select_by_visible_text(layer)
        seen.add(picture(browser))
    assert len(seen) == 3


def marks(browser: webdriver.Chrome) -> int:
    return int(script(browser, "return document.querySelectorAll('#timeline .barlayer path').length"))


def arrows(browser: webdriver.Chrome) -> int:
    return int(script(browser, "return document.querySelectorAll('#timeline .shapelayer path[d*=M]').length"))


def test_a_timeline_goes_to_operations_and_requests(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    visit(browser, folders["compare"] / "report.html", changes="timeline")
    layer = Select(browser.find_element(By.CSS_SELECTOR, "[data-timeline] [data-run]"))
    layer.select_by_visible_text("page")
    operations = pl.read_parquet(folders["compare"] / "page" / "operations.parquet")
    is_chosen = (pl.col("kind") == "program") & (pl.col("cause") == "host")
    program = operations.filter(pl.col("follows").list.len() == 1, is_chosen).row(5, named=True)
    output = browser.find_element(By.CSS_SELECTOR, "[data-sight]")
    table = browser.find_element(By.CSS_SELECTOR, "[data-operation]")
    first = output.text
    assert re.match(rf"[\d,]+ of {operations.height:,} operations in sight", first), first

    browser.find_element(By.CSS_SELECTOR, "[data-number]").send_keys(str(program["operation"]), Keys.ENTER)
    assert output.text != first
    assert table.text.startswith(
        f"operation {program['operation']}: host program, request {program['request']} (write)"
    )
    assert f"its gate was closed by {program['follows'][0]}" in table.text
    took = f"{(program['array_end_ns'] - program['array_start_ns']) / 1000:,.3f}"
    steps = [row.text for row in table.find_elements(By.TAG_NAME, "tr")]
    assert any(step.startswith("array ") and step.endswith(f" {took}") for step in steps), steps
    # Two outlines, for the marks on the bus and in the array, and one arrow.
    assert arrows(browser) == 3

    field = browser.find_element(By.CSS_SELECTOR, "[data-timeline] [data-request]")
    field.send_keys("17", Keys.ENTER)
    assert "request 17 (" in table.text
    field.send_keys(Keys.BACKSPACE, Keys.BACKSPACE, "123456", Keys.ENTER)
    assert output.text == "no request 123456 in this timeline"


def test_the_keyboard_reaches_every_control(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    visit(browser, folders["compare"] / "report.html", changes="focus")
    reached = set()
    for _ in range(300):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        active = browser.switch_to.active_element
        if active.id in reached and active.tag_name == "button" and active.get_attribute("id") == "theme":
            break
        reached.add(active.id)
    controls = browser.find_elements(By.CSS_SELECTOR, "button, select, input, nav a, summary")
    assert len(controls) > 15
    missed = [each.get_attribute("outerHTML") for each in controls if each.is_displayed() and each.id not in reached]
    assert missed == []


def test_a_counted_run_is_drawn_over_bytes_written(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    visit(browser, folders["count"] / "report.html", changes="nothing")
    for chart in ("progress", "flash", "states", "map", "wear", "wear_map"):
        assert drawn(browser, chart) >= 1, chart
    assert "written by the host (GiB)" in browser.find_element(By.ID, "progress").text
    assert not browser.find_elements(By.ID, "cdf")


def test_reads_with_errors_have_a_section(browser: webdriver.Chrome, folders: dict[str, Path], tmp_path: Path) -> None:
    errors = ("ecc.strength=20", "part.ber_fresh=0.05%", "ecc.disturb_reads=300", 'ecc.t_retries=["50us"]')
    sets = [part for key in (*errors, 'ecc.retry_rates=["80%"]', "part.word_size=4KiB") for part in ("--set", key)]
    command("run", *SMALL, *sets, "--payload", "tag", "--ftl", "page", "--out", str(tmp_path / "errors"))
    visit(browser, tmp_path / "errors" / "report.html")
    result = json.loads((tmp_path / "errors" / "summary.json").read_text())
    assert drawn(browser, "reliability") == 3, "margin, retries and losses"
    assert "ECC margin of the worst read (%)" in browser.find_element(By.ID, "reliability").text
    shown = cells(browser, "reliability")
    lost = result["reliability"]["lost_subpages"]
    assert lost
    assert {cause: [units.count(number)] for cause, number in lost.items()}.items() <= shown.items()
    assert shown["steps of retries"] == [units.count(result["flash"]["read_retries"])]
    assert shown["reads of the host that failed"] == [units.count(result["reliability"]["failed_reads"])]
    visit(browser, folders["run"] / "report.html", changes="nothing")
    assert not browser.find_elements(By.ID, "reliability-of-reads")


def test_slider_buttons_and_play_change_the_map_of_blocks(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    visit(browser, folders["run"] / "report.html", changes="map")
    slider = browser.find_element(By.CSS_SELECTOR, "[data-slider]")
    output = browser.find_element(By.CSS_SELECTOR, "[data-output]")
    assert "20,000 requests" in output.text
    end = picture(browser)
    slider.send_keys(Keys.HOME)
    begin = picture(browser)
    assert begin != end
    assert output.text.endswith(" 0 requests")
    shown = {begin}
    for quantity in ("valid", "erases"):
        button = browser.find_element(By.CSS_SELECTOR, f"[data-quantity={quantity}]")
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        shown.add(picture(browser))
    assert len(shown) == 3, "each quantity has its picture"
    browser.find_element(By.CSS_SELECTOR, "[data-quantity=state]").click()
    assert picture(browser) == begin
    play = browser.find_element(By.CSS_SELECTOR, "[data-play]")
    play.send_keys(Keys.ENTER)
    assert play.text == "pause"
    wait_until(browser, "return Number(document.querySelector('[data-slider]').value) >= 3")
    play.send_keys(Keys.ENTER)
    assert play.text == "play"
    assert picture(browser) not in shown
    assert slider.get_attribute("aria-valuetext") == output.text


def test_a_timeline_is_zoomed(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    visit(browser, folders["run"] / "report.html", changes="timeline")
    output = browser.find_element(By.CSS_SELECTOR, "[data-sight]")

    def in_sight() -> int:
        return int(output.text.split()[0].replace(",", ""))

    def press(name: str) -> int:
        browser.find_element(By.CSS_SELECTOR, f"[data-timeline] [data-{name}]").click()
        return in_sight()

    first = in_sight()
    everything = press("everything")
    assert everything == pl.read_parquet(folders["run"] / "operations.parquet").height
    assert 500 < marks(browser) <= 4000, "those too narrow are joined"
    closer = press("closer")
    assert first < closer < everything
    assert press("farther") == everything
    press("closer")
    assert press("closer") < closer
    seen = {script(browser, "return timelines[0].from")}
    for name in ("earlier", "later", "later"):
        press(name)
        seen.add(script(browser, "return timelines[0].from"))
    assert len(seen) == 3, "earlier and later are the same step"
    # Dragging across a drawing zooms to it.
    plot = browser.find_element(By.CSS_SELECTOR, "#timeline .nsewdrag")
    before = in_sight()
    ActionChains(browser).move_to_element(plot).click_and_hold().move_by_offset(150, 0).release().perform()
    wait_until(
        browser,
        f"return !document.querySelector('[data-sight]').textContent.startsWith('{before:,} ')",
    )
    assert in_sight() < before


def test_pointing_at_a_mark_shows_its_times(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    visit(browser, folders["run"] / "report.html", changes="timeline")
    script(browser, "timelines[0].goToOperation(1); timelines[0].select(-1)")
    table = browser.find_element(By.CSS_SELECTOR, "[data-operation]")
    assert table.text == "point at an operation, or give its number"
    # The widest mark, because its middle is inside the plot.
    box = script(
        browser,
        """
        const marks = [...document.querySelectorAll("#timeline .barlayer path")];
        const plot = document.querySelector("#timeline .nsewdrag");
        const wide = mark => mark.getBoundingClientRect().width;
        const widest = marks.reduce((one, two) => wide(two) > wide(one) ? two : one);
        widest.scrollIntoView({block: "center"});
        const [inner, outer] = [widest, plot].map(each => each.getBoundingClientRect());
        const [left, right] = [Math.max(inner.left, outer.left), Math.min(inner.right, outer.right)];
        return [(left + right) / 2, inner.top + inner.height / 2];
        """,
    )
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": box[0], "y": box[1]})
    wait_until(browser, "return timelines[0].selected >= 0")
    assert re.match(r"operation \d+: \w+ (read|program|erase), ", table.text)


def background(browser: webdriver.Chrome) -> str:
    return str(script(browser, "return getComputedStyle(document.body).backgroundColor"))


def test_themes_follow_the_system_and_what_the_reader_chose(
    browser: webdriver.Chrome, folders: dict[str, Path]
) -> None:
    visit(browser, folders["run"] / "report.html")
    light, line = background(browser), picture_of_lines(browser)
    prefer(browser, "dark")
    dark = background(browser)
    wait_until(browser, "return isDark()")
    assert dark != light
    assert picture_of_lines(browser) != line, "charts have colours of their own in the dark"
    button = browser.find_element(By.ID, "theme")
    button.click()
    assert (button.text, background(browser)) == ("theme: light", light)
    browser.refresh()
    button = browser.find_element(By.ID, "theme")
    assert (button.text, background(browser)) == ("theme: light", light), "it is remembered"
    button.click()
    assert (button.text, background(browser)) == ("theme: dark", dark)
    button.click()
    assert button.text == "theme: auto"


def picture_of_lines(browser: webdriver.Chrome) -> str:
    return str(script(browser, "return document.querySelector('#cdf .scatterlayer path.js-line').style.stroke"))


def too_wide(browser: webdriver.Chrome) -> list[str]:
    """Elements of a page beyond the right edge of the window."""
    code = """
    return [...document.querySelectorAll(".chart svg, figcaption, .tiles div, h2")]
      .filter(each => each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML.slice(0, 80));"""
    return list(script(browser, code))


def covered(browser: webdriver.Chrome) -> list[str]:
    """Charts whose legend covers their data."""
    code = """
      return [...document.querySelectorAll(".chart")].filter(chart => {
        const [legend, plot] = [".legend", ".cartesianlayer .plot"].map(each => chart.querySelector(each));
        return legend && plot && legend.getBoundingClientRect().bottom > plot.getBoundingClientRect().top + 2;
      }).map(chart => chart.id);"""
    return list(script(browser, code))


def fits(browser: webdriver.Chrome, width: int) -> bool:
    """Whether charts are drawn for their width, nothing is wider than the window, and no legend covers data."""
    code = """
      return document.documentElement.scrollWidth <= arguments[0] && [...document.querySelectorAll(".chart")].every(
        chart => !chart.clientWidth || Math.abs(chart._fullLayout.width - chart.clientWidth) < 2);"""
    return bool(script(browser, code, width)) and (too_wide(browser), covered(browser)) == ([], [])


def wait_until_it_fits(browser: webdriver.Chrome, width: int) -> None:
    WebDriverWait(browser, 20).until(lambda driver: fits(driver, width), f"too wide for {width}")


@pytest.mark.parametrize("name", ["run", "compare", "count"])
def test_pages_fit_every_width(browser: webdriver.Chrome, folders: dict[str, Path], name: str) -> None:
    """Opened on a phone, on a desk, and in a window of changing width, a page must be as high as a fresh page."""
    heights = "[...document.querySelectorAll('.chart')].map(each => each.offsetHeight).join()"
    page = folders[name] / "report.html"
    visit(browser, page, PHONE)
    assert fits(browser, PHONE[0])
    fresh = script(browser, f"return {heights}")
    visit(browser, page, WIDE)
    assert fits(browser, WIDE[0])
    for width, height in ((1900, 900), (700, 900), PHONE):
        resize(browser, width, height)
        wait_until_it_fits(browser, width)
    wait_until(browser, f"return {heights} === '{fresh}'")


def pdf_text_and_pages(browser: webdriver.Chrome) -> tuple[int, bytes]:
    """Pages of the page printed, and the streams of the file unpacked."""
    made = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})
    pdf = base64.b64decode(made["data"])
    streams = b""
    for match in re.finditer(rb"stream\r?\n(.*?)endstream", pdf, re.S):
        try:
            streams += zlib.decompress(match[1])
        except zlib.error:
            continue
    return len(re.findall(rb"/Type\s*/Page\b", pdf)), streams


def test_printed_all_sections_are_open_and_light(browser: webdriver.Chrome, folders: dict[str, Path]) -> None:
    visit(browser, folders["compare"] / "report.html", scheme="dark")
    script(
        browser,
        "addEventListener('beforeprint', () => { window.printed = {open: [...document.querySelectorAll('details')]"
        ".every(each => each.open), widths: [...document.querySelectorAll('.chart')].map(each => each.layout.width),"
        " tail: document.querySelectorAll('#latency path.js-line').length}; })",
    )
    pages, streams = pdf_text_and_pages(browser)
    assert 8 <= pages <= 40
    assert len(streams) > 100_000
    printed = script(browser, "return window.printed")
    assert printed["open"]
    assert printed["tail"] >= 3, "the view that was hidden is printed too"
    assert set(printed["widths"]) == {680}, "as wide as a page of A4 between its margins"
    assert script(browser, "return document.querySelector('#cdf').layout.width") != 680, "and as before afterwards"
    assert not script(browser, "return document.querySelector('details').open")


def test_other_pages_load(browser: webdriver.Chrome, tmp_path: Path) -> None:
    command("trace", "info", "rw=randrw,bs=4k,size=8MiB,norandommap,n=3000,iodepth=8", "--out", str(tmp_path / "trace"))
    visit(browser, tmp_path / "trace" / "trace.html")
    for chart in ("writes", "reads", "sizes", "hot"):
        assert drawn(browser, chart) >= 1, chart
    assert drawn(browser, "misses") == 3
    resize(browser, *PHONE)
    wait_until(browser, f"return document.documentElement.scrollWidth <= {PHONE[0]}")


def test_a_trace_shows_its_volumes(browser: webdriver.Chrome, tmp_path: Path) -> None:
    path = tmp_path / "a.mqsim"
    lines = [f"{10_000_000 * at} {at % 3} {8 * (at * at % 53)} 8 {at % 2}" for at in range(900)]
    path.write_text("\n".join(lines) + "\n")
    command("trace", "info", str(path), "--out", str(tmp_path / "trace"))
    visit(browser, tmp_path / "trace" / "trace.html")
    assert [drawn(browser, chart) for chart in ("misses", "working", "volume-misses")] == [3, 3, 3]
    found = json.loads((tmp_path / "trace" / "trace.json").read_text())["volumes"]
    shown = cells(browser, "records")
    assert set(shown) >= {"0", "1", "2"}
    for volume in found:
        assert shown[str(volume["volume"])][:2] == [units.count(volume["requests"][kind]) for kind in ("read", "write")]


@pytest.mark.parametrize("fidelity", ["timed", "count"])
def test_a_report_shows_the_volumes_of_its_trace(browser: webdriver.Chrome, tmp_path: Path, fidelity: str) -> None:
    path = tmp_path / "a.mqsim"
    lines = [f"{200_000 * at} {at % 3} {8 * (at * at % 53)} 8 {int(at % 4 == 0)}" for at in range(1200)]
    path.write_text("\n".join(lines) + "\n")
    small = ("--ssd", "mga-8k", "--precondition", "none", "--set", "host.compact=1MiB", "--fidelity", fidelity)
    command("compare", "--ftl", "page,subpage", "--workload", str(path), *small, "--out", str(tmp_path / "both"))
    visit(browser, tmp_path / "both" / "page" / "report.html")
    # Reads and writes, three bars each.
    assert drawn(browser, "volumes") == 6
    found = json.loads((tmp_path / "both" / "page" / "summary.json").read_text())["volumes"]
    shown = cells(browser, "volumes")
    for volume in found:
        row = shown[str(volume["volume"])]
        assert row[:2] == [units.count(volume["requests"][kind]) for kind in ("read", "write")]
        times = volume["latency_ns"]
        assert row[8] == (units.nanoseconds(times["write"]["p99"]) if times else units.ABSENT)
    visit(browser, tmp_path / "both" / "report.html")
    runs = json.loads((tmp_path / "both" / "summary.json").read_text())["runs"]
    figures = [
        volume["latency_ns"][kind]["p99"] if volume["latency_ns"] else volume[f"bytes_{done}"]
        for run in runs
        for volume in run["volumes"]
        for kind, done in (("read", "read"), ("write", "written"))
    ]
    # Reads from a buffer take no time at all.
    assert len(figures) == 12
    assert drawn(browser, "volumes") == sum(figure > 0 for figure in figures) >= 9
    assert {"0 (page)", "2 (subpage)"} <= set(cells(browser, "volumes"))
    assert "volume" in browser.find_element(By.ID, "volumes").text


def test_reproductions_load(browser: webdriver.Chrome, tmp_path: Path) -> None:
    command("reproduce", "womv", "--quick", "--out", str(tmp_path))
    check_pictures(browser, tmp_path)
