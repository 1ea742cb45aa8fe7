"""Takes the picture of the gallery, in a headless Chromium: the top of the report of `make demo`."""

import argparse
import base64
import shutil
import sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars")
WIDTH = 1200


def take(page: Path) -> bytes:
    """The picture as PNG: down to the end of the first section, with the tail of the response times.

    Raises:
        FileNotFoundError: Chromium or its driver is missing.
    """
    chromium, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        raise FileNotFoundError("expected chromium and chromedriver in PATH (Debian: chromium, chromium-driver)")
    options = Options()
    for flag in (*FLAGS, f"--window-size={WIDTH},900"):
        options.add_argument(flag)
    options.binary_location = chromium
    with webdriver.Chrome(options=options, service=Service(driver)) as browser:
        browser.get(page.resolve().as_uri())
        height = browser.execute_script(
            """
            setTheme("light");
            document.querySelector("[data-shows=latency]").click();
            document.querySelectorAll(".modebar-container").forEach(each => each.remove());
            return document.querySelector("section").getBoundingClientRect().bottom + 12;
            """
        )
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
        made = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    return base64.b64decode(made["data"])


def main() -> int:
    """Takes the picture and writes it to the path of the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path, nargs="?", default=Path("results/demo/report.html"))
    parser.add_argument("picture", type=Path, nargs="?", default=Path("docs/images/demo.png"))
    arguments = parser.parse_args()
    if not arguments.report.is_file():
        print(f"{arguments.report}: no such file; expected the report that make demo writes", file=sys.stderr)
        return 2
    arguments.picture.write_bytes(take(arguments.report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
