"""Other pages in a headless browser: a fit, an exploration, a trace, a served drive, and the documentation as files.

Names of users hold HTML, which the pages must show as text.
"""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

import layout
from layout import NEEDS, PHONE, blank, command, requested, script, started, visit, wait_until
from palimpsest.crash import explore
from palimpsest.fits import determined, outputs, running, search, space
from palimpsest.fits.measured import OneRun, Target
from palimpsest.options import RunOptions
from test_browser import drawn
from test_crash import UNIT, needs_files, overwrite
from test_serve import READ, WRITE, served, tcp

pytestmark = NEEDS


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    yield from started()


HOSTILE = "<img src=x onerror=window.hostile=1>"


def reads_everywhere(browser: webdriver.Chrome, page: Path, cards: str = ".tiles div") -> str:
    """The answer, which the first screen shows at every width; nothing is cut or faint, and no name became markup."""
    said = ""
    for width, height in layout.SIZES.items():
        for scheme in ("light", "dark"):
            visit(browser, page, (width, height), scheme)
            said = layout.answered(browser, cards)
            assert (layout.faults(browser), layout.faint(browser)) == ([], []), (width, scheme)
            assert not script(browser, "return window.hostile || document.querySelector('[onerror]')")
    assert layout.printed_faults(browser) == []
    return said


def fit_of_passes(passes: int) -> running.Fit:
    """A fit whose second value leans on a bound; the last passes are held out."""
    windows = [(number, part) for number in range(1, passes) for part in range(20)]
    targets = tuple(
        Target(f"{number} {part}", f"pass {number}", "write amplification", "", 2 - part / 20, 0.03, number + part / 20)
        for number, part in windows
    )
    measurement = OneRun(f"a{HOSTILE}.csv", targets, lambda _drive, _groups: RunOptions(), lambda _result, _groups: {})
    ours: dict[str, float | None] = {each.id: each.real * (1 + 0.02 * (at % 3 - 1)) for at, each in enumerate(targets)}
    keys = [space.parse("part.t_read=30us..90us"), space.parse("ssd.over_provisioning=20%..30%")]
    ranges = (determined.Range(keys[0], 50.0, 48.0, 52.0), determined.Range(keys[1], 20.0, 20.0, 21.0, leans="low"))
    drive = space.Drive("default")
    task = search.Task(drive, tuple(keys), (measurement,), (frozenset(),))
    best = search.Point({"part.t_read": 50.0, "ssd.over_provisioning": 20.0}, ())
    stage = running.Stage("counts", task, best, ranges, (), 7, {})
    hidden = frozenset(f"pass {number}" for number in range(passes // 2, passes))
    settings = running.Settings(start=f"my{HOSTILE}")
    return running.Fit(settings, (measurement,), (stage,), drive, (ours,), (dict(ours),), (), (hidden,), ())


def test_a_fit_says_first_what_leans(browser: webdriver.Chrome, tmp_path: Path) -> None:
    made = fit_of_passes(71)
    page = tmp_path / "index.html"
    page.write_text(outputs.page(made), encoding="utf-8")
    visit(browser, page)
    answer = " ".join(each.text for each in browser.find_elements(By.CSS_SELECTOR, ".answer"))
    assert "Leaning on a bound" in answer
    assert answer.index("ssd.over_provisioning") < answer.index("part.t_read")
    rows = browser.find_elements(By.CSS_SELECTOR, "table.records tr")
    assert [row.text.split()[0] for row in rows[1:]] == ["ssd.over_provisioning", "part.t_read"]
    assert rows[1].get_attribute("class") == "failed"
    band = "return document.querySelectorAll('#measured0 .scatterlayer path.js-fill').length"
    assert (script(browser, band), drawn(browser, "measured0")) == (1, 5), (
        "a band with its edges, medians of ours and the start"
    )
    points = "return document.querySelectorAll('#deviations0 .scatterlayer .point').length"
    assert script(browser, points) == 70 * 20
    assert HOSTILE in browser.find_element(By.TAG_NAME, "h1").text
    reads_everywhere(browser, page, "table.records")


@needs_files
def test_an_exploration_shows_sizes_with_units(browser: webdriver.Chrome, tmp_path: Path) -> None:
    def check(path: Path) -> None:
        assert len(set(path.read_bytes()[: 4 * UNIT])) == 1, f"torn {HOSTILE}"

    explore(overwrite, check, size="64KiB", out=tmp_path, jobs=1)
    page = tmp_path / "index.html"
    answer = reads_everywhere(browser, page)
    assert "lose data, in 1 way" in answer
    assert HOSTILE in answer
    table = browser.find_element(By.CSS_SELECTOR, "table.records").text
    assert "16 KiB" in table
    assert "of 4 units kept" in table


def test_a_trace_with_a_hostile_name(browser: webdriver.Chrome, tmp_path: Path) -> None:
    path = tmp_path / f"{HOSTILE}.mqsim"
    path.write_text("\n".join(f"{10_000 * at} {at % 3} {8 * (at % 53)} 8 {at % 2}" for at in range(900)) + "\n")
    command("trace", "info", str(path), "--out", str(tmp_path / "trace"))
    said = reads_everywhere(browser, tmp_path / "trace" / "trace.html")
    assert "900 requests" in said
    assert HOSTILE in browser.find_element(By.TAG_NAME, "header").text
    assert "address (MiB)" in browser.find_element(By.ID, "writes").text
    ticks = browser.find_elements(By.CSS_SELECTOR, "#misses .xtick text")
    assert len(ticks) >= 2
    assert all(re.fullmatch(r"\d+ [KM]iB", tick.text) for tick in ticks), [tick.text for tick in ticks]


def test_the_page_of_a_served_drive_lives(browser: webdriver.Chrome) -> None:
    blank(browser, PHONE, "dark")
    with served("--page", "127.0.0.1:0", "--listen", "127.0.0.1:0") as (process, (page,)):
        assert process.stderr is not None
        client = tcp(process.stderr.readline().rpartition(" at ")[2])
        browser.get(page.strip())
        wait_until(browser, "return document.querySelector('#answer').innerText.startsWith('No request yet')")
        tiles = browser.find_element(By.ID, "totals").text
        assert "none yet" in tiles
        assert "0" not in tiles
        assert not browser.find_element(By.ID, "series").is_displayed()
        for at in range(32):
            client.ask(WRITE, at * 8192, 8192, bytes(8192))
        client.ask(READ, 0, 4096)
        wait_until(browser, "return document.querySelector('#answer').innerText.startsWith('33 requests')")
        totals = browser.find_element(By.ID, "totals").text.splitlines()
        assert totals[:8] == ["reads", "1", "writes", "32", "read", "4.00 KiB", "written", "256 KiB"]
        wait_until(browser, "return live.samples.length > 1 && document.querySelector('#series path.js-line')")
        wait_until(browser, "return document.documentElement.scrollWidth <= innerWidth")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        client.socket.close()
    wait_until(browser, "return document.querySelector('#answer').innerText.includes('no longer served')")
    assert "33 requests" in browser.find_element(By.ID, "answer").text, "the last figures stay"
    said = [each["message"] for each in browser.get_log("browser")]  # type: ignore[no-untyped-call]
    assert all("live.json" in line for line in said), said


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation; its generated pages may be absent."""
    out = tmp_path_factory.mktemp("site")
    root = Path(__file__).resolve().parent.parent.parent
    build = (sys.executable, "-m", "mkdocs", "build", "--no-strict", "--quiet", "--site-dir", str(out))
    done = subprocess.run(build, cwd=root, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return out


def test_the_documentation_is_searched_as_files(browser: webdriver.Chrome, site: Path) -> None:
    blank(browser, (1280, 800), "light")
    browser.get((site / "index.html").as_uri())
    sections = browser.find_elements(By.CSS_SELECTOR, ".md-nav--primary > .md-nav__list > .md-nav__item--section")
    assert [each.text.splitlines()[0] for each in sections] == ["Tutorials", "How-to", "Reference", "Explanation"]
    browser.find_element(By.CSS_SELECTOR, ".md-search__input").send_keys("write amplification")
    wait_until(browser, "return document.querySelector('.md-search-result__meta').innerText.match(/^[0-9]+ matching/)")
    assert all(url.startswith(site.as_uri()) for url in requested(browser)), "no network"


def test_the_documentation_has_themes(browser: webdriver.Chrome, site: Path) -> None:
    blank(browser, (1280, 800), "light")
    browser.get((site / "cli.html").as_uri())
    label = "[...document.querySelectorAll('[data-md-component=palette] label')].find(each => !each.hidden)"
    wait_until(browser, f"return {label}")
    for scheme in ("default", "slate", "default"):
        script(browser, f"window.before = {label}; before.click()")
        wait_until(browser, f"return before.hidden && {label}")
        assert script(browser, "return document.body.dataset.mdColorScheme") == scheme


@pytest.mark.long
def test_no_table_of_the_documentation_is_cut(browser: webdriver.Chrome, site: Path) -> None:
    code = """
      const cut = [...document.querySelectorAll(".md-typeset__scrollwrap")].filter(
        each => each.scrollWidth > each.clientWidth + 1);
      return [document.documentElement.scrollWidth <= arguments[0], cut.length];"""
    for size in layout.SIZES.items():
        blank(browser, size, "light")
        for page in sorted(site.glob("*.html")):
            browser.get(page.as_uri())
            assert script(browser, code, size[0]) == [True, 0], (page.name, size)
