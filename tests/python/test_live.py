"""The live lab: results of the WebAssembly module equal native ones, byte for byte; the command; the page.

`make live` builds the module; without it, or without Node.js, Chromium or its driver, tests are skipped.
"""

import functools
import json
import re
import shutil
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from conftest import COMMAND, Command
from layout import NEEDS, faint, faults, resize, script, started, wait_until
from palimpsest import _core
from palimpsest.live_lab import FOLDER, MODULE, _Handler

NODE = shutil.which("node")
BUILT = pytest.mark.skipif(not (FOLDER / MODULE).is_file(), reason=f"no {MODULE} here (make live)")
LARGEST = 3_000_000

SMALL = (
    "ssd.channels=2", "ssd.chips_per_channel=1", "ssd.dies_per_chip=1", "ssd.planes_per_die=1",
    "part.pages_per_block=24", "ssd.blocks_per_plane=30", "ssd.over_provisioning=100%",
)  # fmt: skip
FILES = (*SMALL[:-2], "ssd.blocks_per_plane=60", "ssd.over_provisioning=300%")
CACHED = (*SMALL, "ftl.slc_fixed=1 block")
LOAD = "rw=randrw,rwmixread=30,bs=4k,iodepth=8,random_distribution=zipf:0.9"
RUNS = {
    **{f"default {layer}": ("default", layer, SMALL) for layer in (
        "page", "subpage", "dftl", "block", "bast", "fast", "hotcold", "sector-log", "fdp", "fdp-subpage", "fdp-dftl",
        "dma-fgm", "mga", "zns",
    )},
    **{ssd: (ssd, None, SMALL) for ssd in (
        "enterprise-tlc-7.68t", "p5520-1.92t", "tlc-32g", "970pro-512g", "980-1t", "mga-8k", "mga-16k", "spread-16g",
        "llh-16g", "llh-32g", "llh-64g", "llh32-16g", "llh32-32g", "llh32-64g", "womv-16g", "cm7-r-3.84t",
        "d5-p5336-30.72t", "datacentre-tlc", "zn540",
    )},
    **{ssd: (ssd, None, CACHED) for ssd in ("870qvo-4t", "980pro-1t")},
    "spread-16g page-fgm": ("spread-16g", "page-fgm", SMALL),
    "mga-8k sector-log": ("mga-8k", "sector-log", SMALL),
    "codesign-8ch codesign": ("codesign-8ch", "codesign", FILES),
    **{f"codesign-8ch {layer}": ("codesign-8ch", layer, FILES) for layer in (
        "fs-page", "fs-subpage", "fs-fdp", "fs-zns", "fs-mga", "fs-hotcold",
    )},
    "spread-16g fs-spftl": ("spread-16g", "fs-spftl", FILES),
    "llh-16g fs-llh": ("llh-16g", "fs-llh", FILES),
}  # fmt: skip
"""Every preset, and layers, on small drives; None: the layer of the preset."""
IN_ORDER = {"workload": "rw=rw,rwmixread=30,bs=4k,iodepth=8", "precondition": "none"}
"""Settings and loads that zones take."""


def request(name: str) -> dict[str, object]:
    ssd, ftl, keys = RUNS[name]
    return {
        "ssd": ssd, "ftl": ftl, "set": list(keys), "workload": LOAD, "precondition": "fill:100%", "requests": 5000,
        "fidelity": "timed", "payload": "tag", "seed": 7, **(IN_ORDER if ftl == "zns" else {}),
    }  # fmt: skip


def timeless(text: str) -> str:
    """A result without the wall clock, which the module lacks."""
    return re.sub(r'"(wall_s|requests_per_s)":[^,}]+', r'"\1":0.0', text)


@functools.cache
def native(name: str) -> str:
    return timeless(_core.run(json.dumps(request(name)), None)[0])


def test_a_drive_has_figures_of_work() -> None:
    """The runs of this file collect garbage and read data; else equal results would say little."""
    found = [json.loads(native(name)) for name in RUNS]
    assert {ssd for ssd, _, _ in RUNS.values()} == {name for name, _ in _core.list_registry("ssds")}
    assert sum(each["flash"]["erases"] > 0 for each in found) >= 25
    assert all(each["requests"]["read"] > 500 for each in found)


@BUILT
@pytest.mark.skipif(NODE is None, reason="no Node.js here")
def test_results_in_node_equal_native_ones(tmp_path: Path) -> None:
    shutil.copyfile(FOLDER / "core.js", tmp_path / "core.mjs")
    (tmp_path / "ask.mjs").write_text(
        'import { readFileSync } from "node:fs";\nimport { Core } from "./core.mjs";\n'
        "const core = await Core.of(readFileSync(process.argv[2]));\n"
        "const asked = JSON.parse(readFileSync(0));\n"
        "process.stdout.write(JSON.stringify(asked.map((each) => core.ask(each))));\n"
    )
    asked = json.dumps([{"do": "run", **request(name)} for name in RUNS])
    called = [str(NODE), str(tmp_path / "ask.mjs"), str(FOLDER / MODULE)]
    done = subprocess.run(called, input=asked, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for name, text in zip(RUNS, json.loads(done.stdout), strict=True):
        assert timeless(text) == native(name), name


def test_the_folder_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < LARGEST


@BUILT
def test_the_folder_is_written_and_served(palimpsest: Command, tmp_path: Path) -> None:
    done = palimpsest("live", "--out", str(tmp_path / "lab"))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "lab").iterdir()} == {path.name for path in FOLDER.iterdir()}
    refused = palimpsest("live", "--out", str(tmp_path / "lab"))
    assert refused.returncode == 2
    assert "expected a new or an empty folder" in refused.stderr

    arguments = [str(COMMAND), "live", "--no-browser"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        line = served.stdout.readline()
        address = line.split()[4].rstrip(";")
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address + "core.js") as answer:
            assert answer.headers["Content-Type"] == "text/javascript"
        taken = palimpsest("live", "--no-browser", "--port", address.rstrip("/").rpartition(":")[2])
        assert taken.returncode == 2
        assert "expected a free port" in taken.stderr
        served.send_signal(signal.SIGINT)
        _, errors = served.communicate(timeout=60)
        assert (served.returncode, errors) == (0, "the lab has ended\n")


def test_a_missing_module_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from palimpsest import live_lab
    from palimpsest.errors import InputError

    monkeypatch.setattr(live_lab, "FOLDER", tmp_path)
    done = CliRunner().invoke(live_lab.live, [])
    assert isinstance(done.exception, InputError)
    assert "make live" in str(done.exception)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=str(FOLDER)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    yield from started()


def opened(browser: webdriver.Chrome, address: str, scene: int) -> None:
    browser.get("about:blank")
    browser.get(f"{address}#scene={scene}")
    wait_until(browser, "return window.lab?.model !== undefined")
    assert not browser.find_element(By.ID, "problem").is_displayed(), browser.find_element(By.ID, "problem").text


class TestPage:
    """The page in Chromium."""

    pytestmark = [*NEEDS, BUILT]  # noqa: RUF012 - as pytest has it

    def test_results_in_chromium_equal_native_ones(self, browser: webdriver.Chrome, address: str) -> None:
        opened(browser, address, 1)
        for name in RUNS:
            text = script(browser, "return window.lab.core.ask(arguments[0])", {"do": "run", **request(name)})
            assert timeless(str(text)) == native(name), name

    @pytest.mark.parametrize("scene", range(1, 10))
    def test_each_scene_works_and_reaches_its_goal(self, browser: webdriver.Chrome, address: str, scene: int) -> None:
        resize(browser, 1400, 900)
        opened(browser, address, scene)
        for button in ("operation", "request"):
            # A buffer may acknowledge a write at once.
            progress = "return window.lab.model.view.now + window.lab.model.requests"
            before = script(browser, progress)
            browser.find_element(By.ID, button).click()
            assert script(browser, progress) > before
        reached = False
        layers = [each.get_attribute("value") for each in browser.find_elements(By.CSS_SELECTOR, "#layer > option")]
        for layer in layers:
            for spare in script(browser, "return [...document.querySelectorAll('#spare option')].map(e => e.value)"):
                if reached:
                    break
                Select(browser.find_element(By.ID, "layer")).select_by_value(str(layer))
                Select(browser.find_element(By.ID, "spare")).select_by_value(spare)
                # A refused setting keeps the drive.
                reached = bool(script(browser, _UNTIL_GOAL))
        assert reached, f"no layer and over-provisioning of scene {scene} reaches its goal"

    def test_a_write_and_a_power_cut_show_in_the_page(self, browser: webdriver.Chrome, address: str) -> None:
        opened(browser, address, 2)
        place = browser.find_element(By.ID, "addresses")
        place.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ENTER)
        assert script(browser, "return window.lab.model.view.in_flight + window.lab.model.requests") == 1
        for _ in range(3):
            browser.find_element(By.ID, "operation").click()
        browser.find_element(By.ID, "cut").click()
        assert "The power failed and returned" in browser.find_element(By.ID, "happening").text
        assert script(browser, "return JSON.parse(window.lab.core.ask({do: 'figures'})).power.cuts") == 1

    def test_a_drag_writes_each_address_once(self, browser: webdriver.Chrome, address: str) -> None:
        resize(browser, 1400, 900)
        opened(browser, address, 2)
        place = browser.find_element(By.ID, "addresses")
        drag = ActionChains(browser).move_to_element_with_offset(place, -200, 0).click_and_hold()
        drag.move_by_offset(12, 0).move_by_offset(12, 0).move_by_offset(-12, 0).release().perform()
        assert script(browser, "return window.lab.model.view.in_flight + window.lab.model.requests") == 3
        drag = ActionChains(browser).move_to_element_with_offset(place, -200, 0).click_and_hold()
        for _ in range(40):
            drag.move_by_offset(10, 0)
        drag.release().perform()
        assert "32 requests are in flight" in browser.find_element(By.ID, "place").text

    def test_a_finger_writes_or_scrolls(self, browser: webdriver.Chrome, address: str) -> None:
        resize(browser, 360, 780)
        opened(browser, address, 2)
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
        script(browser, "document.getElementById('addresses').scrollIntoView({block: 'center'})")
        box = script(browser, "return document.getElementById('addresses').getBoundingClientRect().toJSON()")
        state = "return [window.lab.model.view.in_flight + window.lab.model.requests, scrollY]"

        def send(kind: str, *places: tuple[int, int]) -> None:
            points = [{"x": box["left"] + right, "y": box["bottom"] - up} for right, up in places]
            browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        def writes_after(first: tuple[int, int], *moves: tuple[int, int]) -> int:
            writes, top = script(browser, state)
            send("touchStart", first)
            for place in moves:
                send("touchMove", place)
            send("touchEnd")
            after = script(browser, state)
            assert (after[1] != top) == any(up != first[1] for _, up in moves)
            return int(after[0] - writes)

        assert writes_after((50, 30)) == 1
        assert writes_after(*((50 + 10 * step, 30) for step in range(6))) > 3
        assert writes_after(*((50, 5 + 15 * step) for step in range(8))) == 0
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})

    def test_a_refused_layer_keeps_the_drive(self, browser: webdriver.Chrome, address: str) -> None:
        opened(browser, address, 2)
        browser.find_element(By.ID, "request").click()
        Select(browser.find_element(By.ID, "layer")).select_by_value("llh")
        assert "llh programs low pages twice" in browser.find_element(By.ID, "problem").text
        assert Select(browser.find_element(By.ID, "layer")).first_selected_option.text == "subpage"
        before = script(browser, "return window.lab.model.requests")
        browser.find_element(By.ID, "request").click()
        assert script(browser, "return window.lab.model.requests") > before

    def test_the_result_of_the_page_equals_the_native_one(self, browser: webdriver.Chrome, address: str) -> None:
        opened(browser, address, 9)
        script(browser, "document.getElementById('whole').click()")
        wait_until(browser, "return !document.getElementById('result').hidden")
        text = browser.execute_async_script(
            "fetch(document.getElementById('result').href).then(each => each.text()).then(arguments[0])"
        )
        drive = script(browser, "return {...window.lab.drive(), set: window.lab.model.set}")
        asked = {**drive, "requests": 2000, "fidelity": "timed", "payload": "tag"}
        assert timeless(str(text)) == timeless(_core.run(json.dumps(asked), None)[0])

    @pytest.mark.parametrize("size", [(360, 780), (800, 1000), (1400, 900)])
    def test_the_page_fits_and_can_be_read(
        self, browser: webdriver.Chrome, address: str, size: tuple[int, int]
    ) -> None:
        resize(browser, *size)
        for scene in (1, 5, 8, 9):
            opened(browser, address, scene)
            assert faults(browser) == []
            assert faint(browser) == []


_UNTIL_GOAL = """
const { core, model, state } = window.lab;
for (let round = 0; round < 400 && !window.lab.reached; round++) {
  model.take(core.call({ do: "advance", ns: 2e7, load: true }));
  window.lab.measure();
  if (model.requests > 6000) break;
}
return window.lab.reached;
"""
