"""Pages in a browser: opening them, and the faults that a reader sees.

Needs Chromium and its driver (Debian: `apt-get install chromium chromium-driver`); else tests are skipped.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from conftest import COMMAND, Completed

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

NEEDS = [
    pytest.mark.contract,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None,
        reason="no Chromium with its driver here (Debian: apt-get install chromium chromium-driver)",
    ),
]

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--allow-file-access-from-files",
)  # fmt: skip
SMALL = (
    "--set", "ssd.blocks_per_plane=24", "--set", "part.pages_per_block=32", "--set", "ssd.over_provisioning=28%",
    "--workload", "rw=randrw,bs=4k,n=20000,iodepth=8,random_distribution=zipf:0.9",
    "--precondition", "fill:100%,random:1x",
)  # fmt: skip
WIDE, PHONE = (1400, 900), (390, 844)


def command(*arguments: str) -> None:
    done: Completed = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr


SIZES = {390: 844, 768: 1024, 1280: 800}
"""Width and height of a phone, a tablet and a notebook."""
PAPER = 688
"""Pixels between the margins of A4."""

_FAULTS = """
const found = [], seen = each => each.getClientRects().length && getComputedStyle(each).visibility !== "hidden";
const text = each => (each.textContent || "").slice(0, 40);
const named = each => `${each.tagName} ${each.className?.baseVal ?? each.className} ${text(each)}`;
const boxed = each => {
  for (let at = each.parentElement; at; at = at.parentElement) {
    if (at !== document.body && getComputedStyle(at).overflowX !== "visible") return true;
  }
  return false;
};
const width = document.documentElement.clientWidth;
const whole = document.documentElement.scrollWidth;
if (whole > width) found.push(`the page is ${whole} wide`);
for (const each of document.querySelectorAll("body *")) {
  if (each.closest("script, svg") && each.tagName !== "svg") continue;
  const isOut = seen(each) && each.getBoundingClientRect().right > width + 1;
  if (isOut && !boxed(each)) found.push(`too wide: ${named(each)}`);
}
const ids = [...document.querySelectorAll("[id]")].filter(each => !each.closest("svg")).map(each => each.id);
for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push(`the id ${id} repeats`);
for (const chart of document.querySelectorAll(".chart")) {
  const axes = new Map();
  for (const text of chart.querySelectorAll(":is([class*='xtick'], [class*='ytick']) text")) {
    if (!seen(text)) continue;
    const plot = text.closest("[class^='subplot']")?.getAttribute("class");
    const axis = `${text.parentElement.getAttribute("class")} ${plot}`;
    axes.set(axis, [...(axes.get(axis) || []), text]);
  }
  for (const texts of axes.values()) texts.forEach((one, at) => texts.slice(at + 1).forEach(two => {
    const [a, b] = [one, two].map(each => each.getBoundingClientRect());
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 1 && down > 3) found.push(`${chart.id}: the labels ${one.textContent} and ${two.textContent} overlap`);
  }));
  const edge = chart.getBoundingClientRect().right + 1;
  for (const text of chart.querySelectorAll(".infolayer text")) {
    if (seen(text) && text.getBoundingClientRect().right > edge) found.push(`${chart.id}: ${text.textContent} is cut`);
  }
}
return found;
"""

_FAINT = """
const rgb = text => (text.match(/[\\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => [r, g, b].map(each => each / 255)
  .map(each => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
  .reduce((sum, each, at) => sum + each * [0.2126, 0.7152, 0.0722][at], 0);
const ground = each => {
  for (let at = each; at; at = at.parentElement) {
    const color = rgb(getComputedStyle(at).backgroundColor);
    if (color.length === 3 || color[3] === 1) return color;
  }
  return [255, 255, 255];
};
const found = new Set();
for (const each of document.querySelectorAll("body *:not(script)")) {
  if (each.closest("svg") || each.disabled || !each.getClientRects().length) continue;
  if (![...each.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())) continue;
  const style = getComputedStyle(each), [one, two] = [light(rgb(style.color)), light(ground(each))];
  const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
  if (contrast < 4.5) found.add(`${each.tagName} ${each.className}: ${contrast.toFixed(2)}`);
}
return [...found];
"""

_ANSWER = """
const answer = document.querySelector(".answer"), tiles = document.querySelectorAll(arguments[0]);
const below = [answer, ...tiles].filter(each => !each || each.getBoundingClientRect().bottom > innerHeight);
return [answer?.textContent ?? "", tiles.length, below.length];
"""

_PRINTED = """
const controls = [...document.querySelectorAll("button, select, input, nav, a")];
const shown = controls.filter(each => each.getClientRects().length);
const links = each => each.tagName === "A" && getComputedStyle(each).textDecorationLine === "none";
const inTable = each => each.closest("table") && getComputedStyle(each).borderStyle === "none";
return shown.filter(each => !links(each) && !inTable(each)).map(each => each.outerHTML.slice(0, 80));
"""


def started() -> Iterator[webdriver.Chrome]:
    """A browser that logs the messages and requests of pages."""
    options = Options()
    for flag in FLAGS:
        options.add_argument(flag)
    options.binary_location = str(CHROMIUM)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    yield driver
    driver.quit()


def resize(browser: webdriver.Chrome, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def prefer(browser: webdriver.Chrome, scheme: str) -> None:
    wish = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wish})


def blank(browser: webdriver.Chrome, size: tuple[int, int], scheme: str) -> None:
    """An empty page in a window on a light or a dark desktop. An open page would be drawn again for another size."""
    browser.get("about:blank")
    resize(browser, *size)
    prefer(browser, scheme)
    browser.get_log("browser")  # type: ignore[no-untyped-call]
    browser.get_log("performance")  # type: ignore[no-untyped-call]


def visit(
    browser: webdriver.Chrome,
    page: Path,
    size: tuple[int, int] = WIDE,
    scheme: str = "light",
    changes: str = "everything",
) -> None:
    """Opens a page; the page must write nothing to the console and request nothing from the network.

    Drawing a page takes most of the time, so a page stays open as long as tests open it in the same way and change
    nothing. A test declares its changes: `nothing`, if it restores all, or `everything`. A test of a named part also
    accepts a page on which other tests changed other parts.
    """
    opened = [page.as_uri(), *size, scheme]
    found = script(browser, "return window.opened || []")
    changed = script(browser, "return window.changed || []")
    part = changes not in ("nothing", "everything")
    if found != opened or "everything" in changed or (changes in changed if part else changed):
        blank(browser, size, scheme)
        browser.get(page.as_uri())
        script(browser, "[window.opened, window.changed] = [arguments[0], []]", opened)
    else:
        script(browser, "scrollTo(0, 0)")
    if changes != "nothing":
        script(browser, "window.changed.push(arguments[0])", changes)
    said = browser.get_log("browser")  # type: ignore[no-untyped-call]
    assert said == [], f"the console of {page.name}"
    assert requested(browser) <= {page.as_uri()}


def requested(browser: webdriver.Chrome) -> set[str]:
    """The requests since the last call, without data inside the page."""
    events = [
        json.loads(entry["message"])["message"]
        for entry in browser.get_log("performance")  # type: ignore[no-untyped-call]
    ]
    urls = {event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"}
    return {url for url in urls if not url.startswith(("data:", "blob:", "about:"))}


def script(browser: webdriver.Chrome, code: str, *arguments: object) -> Any:
    return browser.execute_script(code, *arguments)


def wait_until(browser: webdriver.Chrome, code: str) -> None:
    WebDriverWait(browser, 20).until(lambda driver: script(driver, code))


def faults(browser: webdriver.Chrome) -> list[str]:
    """Parts beyond the right edge outside a scrolling box, ticks over each other, cut titles, repeated ids."""
    return list(script(browser, _FAULTS))


def faint(browser: webdriver.Chrome) -> list[str]:
    """Texts whose contrast is below 4.5."""
    return list(script(browser, _FAINT))


def answered(browser: webdriver.Chrome, cards: str = ".tiles div") -> str:
    """The sentence of a page; the first screen must show the sentence and all cards."""
    text, count, below = script(browser, _ANSWER, cards)
    assert (below, bool(count)) == (0, True), f"{below} of an answer and {count} cards are below the first screen"
    return str(text)


def printed_faults(browser: webdriver.Chrome, width: int = PAPER) -> list[str]:
    """Faults of a page on paper, buttons and links included; the window keeps the size of paper."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    script(browser, "dispatchEvent(new Event('beforeprint'))")
    wide = "return [...document.querySelectorAll('.wide, pre')].filter(each => each.scrollWidth > each.clientWidth + 1)"
    cut = script(browser, f"{wide}.map(each => `cut: ${{each.innerText.slice(0, 60)}}`)")
    found = [*faults(browser), *cut, *script(browser, _PRINTED)]
    script(browser, "dispatchEvent(new Event('afterprint'))")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    return found


def check_pictures(browser: webdriver.Chrome, folder: Path) -> None:
    """Asserts that a reproduction's page loads all its pictures, from its folder, without a message."""
    page = folder / "index.html"
    blank(browser, WIDE, "light")
    browser.get(page.as_uri())
    said = browser.get_log("browser")  # type: ignore[no-untyped-call]
    assert said == []
    assert all(url.startswith(folder.as_uri()) for url in requested(browser))
    assert browser.find_elements(By.TAG_NAME, "img")
    assert script(browser, "return [...document.images].every(each => each.complete && each.naturalWidth > 0)")
