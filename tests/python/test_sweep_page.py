"""The page of a sweep in a browser: drawings, links to a view, phones, the dark theme. Skips without Chromium."""

import csv
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import Select, WebDriverWait

import layout
import palimpsest as ps

pytestmark = pytest.mark.contract

BROWSER, DRIVER = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
SWEEP: dict[str, Any] = {
    "base": {"workload": "rw=randrw,rwmixread=30,bs=4k,size=64MiB,n=500,iodepth=8", "precondition": "none"},
    "grid": {
        "ftl": ["page", "subpage"], "workload.iodepth": [16, 1], "ssd.over_provisioning": ["28%", "7%"], "seed": [1, 2],
    },
}  # fmt: skip
TRACES = """return [...document.querySelectorAll(".chart")].map(
    chart => chart.data.map(trace => [trace.type, trace.name ?? null, [...trace.x], [...(trace.z ?? trace.y)]]))"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> ps.Sweep:
    return ps.sweep(SWEEP, out=tmp_path_factory.mktemp("sweep"))


@pytest.fixture
def page(swept: ps.Sweep) -> str:
    assert swept.folder is not None
    return (swept.folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def started() -> Iterator[webdriver.Chrome]:
    """A browser that logs the messages of pages."""
    if BROWSER is None or DRIVER is None:
        pytest.skip("there is no Chromium with its driver here")
    options = Options()
    options.binary_location = BROWSER
    for argument in ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def browser(started: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """The browser without a page, in a window on a light desktop; pages may log nothing."""
    started.get("about:blank")
    started.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    started.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    yield started
    assert started.get_log("browser") == []  # type: ignore[no-untyped-call]


def choose(browser: webdriver.Chrome, name: str, value: str) -> None:
    Select(browser.find_element("name", name)).select_by_value(value)


def test_what_is_chosen_is_drawn(browser: webdriver.Chrome, page: str) -> None:
    browser.get(page)
    # Layers as colours over the numbers of the first numeric axis, a panel for each value of the other.
    panels = browser.execute_script(TRACES)
    assert [[trace[:3] for trace in panel] for panel in panels] == [
        [["scatter", "page", [1, 16]], ["scatter", "subpage", [1, 16]]]
    ] * 2  # fmt: skip
    choose(browser, "figure", "requests.write")
    choose(browser, "facet", "")
    choose(browser, "x", "ftl")
    choose(browser, "colour", "workload.iodepth")
    (bars,) = browser.execute_script(TRACES)
    assert [trace[:3] for trace in bars] == [["bar", "1", ["page", "subpage"]], ["bar", "16", ["page", "subpage"]]]
    choose(browser, "kind", "heat")
    ((heat,),) = browser.execute_script(TRACES)
    assert (heat[0], heat[2], len(heat[3])) == ("heatmap", ["page", "subpage"], 2)


def test_repetitions_are_averaged_until_one_is_chosen(browser: webdriver.Chrome, page: str, swept: ps.Sweep) -> None:
    frame = swept.to_polars()
    browser.get(f"{page}#figure=requests.write&x=workload.iodepth&colour=&facet=")
    first = frame.filter(
        (frame["ftl"] == "page") & (frame["ssd.over_provisioning"] == "7%") & (frame["workload.iodepth"] == 1)
    )
    ((trace,),) = browser.execute_script(TRACES)
    assert trace[3][0] == first["requests.write"].mean()
    choose(browser, "fix:seed", "1")
    ((trace,),) = browser.execute_script(TRACES)
    assert trace[3][0] == first.filter(first["seed"] == 2)["requests.write"].item()
    assert "fix%3Aseed=1" in browser.current_url


def test_tables_are_downloaded_with_numbers(
    browser: webdriver.Chrome, page: str, swept: ps.Sweep, tmp_path: Path
) -> None:
    """The workbook is read as any reader does: parts of a ZIP, each an XML, with numbers as numbers."""
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    browser.get(page)
    for button in browser.find_elements("css selector", ".export button"):
        button.click()
    names = [tmp_path / f"Sweep-points.{ending}" for ending in ("csv", "xlsx")]
    WebDriverWait(browser, 10).until(lambda _: all(name.exists() for name in names))
    lines = list(csv.reader(names[0].read_text().splitlines()))
    with zipfile.ZipFile(names[1]) as book:
        assert book.testzip() is None
        parts = {name: ElementTree.fromstring(book.read(name)) for name in book.namelist()}
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    cells = [[*row] for row in parts["xl/worksheets/sheet1.xml"].iter(f"{space}row")]
    assert [["".join(cell.itertext()) for cell in row] for row in cells] == lines
    column = lines[0].index("read p99 (ns)")
    frame = swept.to_polars()
    assert [float(line[column]) for line in lines[1:]] == frame["latency_ns.read.p99"].to_list()
    assert {row[column].get("t") for row in cells[1:]} == {None}
    assert float(lines[1][lines[0].index("over-provisioning (%)")]) == 28


def test_points_are_sorted_by_a_column(browser: webdriver.Chrome, page: str) -> None:
    browser.get(page)
    cells = "return [...document.querySelectorAll('table.points tbody tr')].map(row => row.cells[1].textContent)"
    assert browser.execute_script(cells)[:5] == ["16", "16", "16", "16", "1"]
    browser.find_elements("css selector", "table.points th button")[1].click()
    assert browser.execute_script(cells) == ["1"] * 8 + ["16"] * 8


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_fits_a_phone_in_both_themes(browser: webdriver.Chrome, page: str, theme: str) -> None:
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(page)
    assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    widths = browser.execute_script("return [...document.querySelectorAll('.chart svg')].map(svg => svg.clientWidth)")
    assert widths
    assert max(widths) <= 390
    background, line = browser.execute_script(
        "return [getComputedStyle(document.body).backgroundColor, document.querySelector('.chart').data[0].line.color]"
    )
    assert (background, line) == {
        "light": ("rgb(252, 252, 251)", "#2a78d6"), "dark": ("rgb(26, 26, 25)", "#3987e5"),
    }[theme]  # fmt: skip


def test_the_best_point_is_named_and_marked(browser: webdriver.Chrome, page: str, swept: ps.Sweep) -> None:
    browser.get(page)
    figure = "latency_ns.write.p99"
    choose(browser, "figure", figure)
    frame = (
        swept.to_polars().group_by("ftl", "workload.iodepth", "ssd.over_provisioning").agg(best=pl.col(figure).mean())
    )
    # Several points may be equal.
    best = frame.filter(pl.col("best") == pl.col("best").min()).rows(named=True)
    said = browser.find_element("id", "answer").text
    shown = [f"layer {each['ftl']}, queue depth {each['workload.iodepth']}, over-provisioning" for each in best]
    assert said.startswith("Write p99 is lowest, ")
    assert any(each in said.partition(";")[0] for each in shown)
    marks = "return [...document.querySelectorAll('.annotation-text')].map(each => each.textContent)"
    assert [mark[0] for mark in browser.execute_script(marks)] == ["★"]
    titles = "return [...document.querySelectorAll('.xtitle, .ytitle')].map(each => each.textContent)"
    assert set(browser.execute_script(titles)) == {"queue depth (requests)", "write p99 (us)"}
    assert "★" in browser.find_element("css selector", "table.points").text
    choose(browser, "figure", "throughput.iops")
    assert browser.find_element("id", "answer").text.startswith("IOPS is highest, ")


def test_the_page_fits_every_width_and_paper(browser: webdriver.Chrome, page: str) -> None:
    for width, height in layout.SIZES.items():
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if width == 768 else "light"}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        browser.get("about:blank")
        browser.get(page)
        layout.answered(browser, ".facets > div:first-child .chart")
        assert (layout.faults(browser), layout.faint(browser)) == ([], []), width
    assert layout.printed_faults(browser) == []
