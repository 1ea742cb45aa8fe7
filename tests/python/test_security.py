"""SECURITY.md: each input has a promise and tests that exist."""

import re

from conftest import ROOT

INPUTS = ("traces", "clients of", "hosts of", "images", "kept states", "pages", "live page", "C library", "plug-ins",
          "Dask and Ray", "command line")  # fmt: skip


def test_each_promise_names_its_tests() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]
    for given in INPUTS:
        assert any(given in row[0] for row in rows), given
    for row in rows:
        assert len(row) == 4, row
        assert row[1] in ("no", "yes", "as their input"), row
        tests = re.findall(r"`([\w/.]+)`", row[3])
        assert tests, row
        for each in tests:
            assert (ROOT / each).is_file(), each
