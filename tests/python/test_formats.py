"""Trace formats in Python: chunks of records, arrays, wrong answers and exceptions, as a plug-in in a folder."""

import gzip
import json
from pathlib import Path

import pytest

from plugin_projects import command, pure, said

pytestmark = pytest.mark.contract

HEAD = """
import numpy as np
from palimpsest.plugins import Plugin
PLUGIN = Plugin(formats={"own": "own_format:Own"})
class Own:
    def requests(self, trace):
"""
COUNT = 10_000
SCALARS = """
        for number in trace:
            number = int(number)
            yield 1000 * number, "read" if number % 3 else "write", 4096 * (number % 100), 4096, number % 2
"""
ARRAYS = """
        number = np.loadtxt(trace, np.int64)
        for part in np.array_split(number, 7):
            yield 1000 * part, np.where(part % 3, "read", "write"), 4096 * (part % 100), 4096, part % 2
"""
WRONG = {
    "yield 5": "request 1: 5; expected a tuple of time, kind, first byte, bytes and perhaps stream",
    "yield 0, 'R', 0, 512": "request 1: kind 'R'; expected read, write, trim, flush",
    "yield 0, 'read', 0, 1.5": "request 1: time 0, first byte 0, bytes 1.5, stream 0; expected whole numbers from 0",
    "yield 0, 'read', -1, 512": "request 1: time 0, first byte -1, bytes 512, stream 0; expected whole numbers from 0",
    "yield np.arange(3), 'read', np.zeros(3), 512": "first byte: an array of float64; expected whole numbers from 0",
    "yield np.arange(3), np.array(['read', 'x', 'y']), 0, 512": "kind np.str_('x'); expected read, write, trim, flush",
    "yield np.arange(3), 'read', np.arange(2), 512": "arrays of several lengths; expected one length",
}


def site(folder: Path, body: str) -> Path:
    """Installs the format `own` in a folder, and returns the folder."""
    return pure(folder / "site", "own-format", HEAD + body)


def numbers(folder: Path) -> Path:
    """A compressed trace of whole numbers, a line each."""
    path = folder / "numbers.gz"
    path.write_bytes(gzip.compress("".join(f"{number}\n" for number in range(COUNT)).encode()))
    return path


def test_scalars_arrays_and_csv_are_one_workload(tmp_path: Path) -> None:
    (tmp_path / "plain.csv").write_text(
        "time_ns,op,offset_bytes,size_bytes,file,stream\n"
        + "".join(
            f"{1000 * number},{'read' if number % 3 else 'write'},{4096 * (number % 100)},4096,,{number % 2}\n"
            for number in range(COUNT)
        )
    )
    small = ["--ssd=mga-8k", "--json", "--payload=tag"]
    expected = json.loads(said(command([], "run", f"--workload={tmp_path / 'plain.csv'}", *small)))
    for name, body in {"scalars": SCALARS, "arrays": ARRAYS}.items():
        folder = tmp_path / name
        folder.mkdir()
        own = site(folder, body)
        found = json.loads(said(command([own], "run", f"--workload={numbers(folder)}", "--from=own", *small)))
        assert found["provenance"]["plugins"].keys() == {"own-format 1.0"}
        for key in ("requests", "latency", "flash", "wa"):
            assert found.get(key) == expected.get(key), (name, key)


@pytest.mark.parametrize("body", WRONG)
def test_a_wrong_request_is_one_line(body: str, tmp_path: Path) -> None:
    done = command([site(tmp_path, "        " + body)], "trace", "info", str(numbers(tmp_path)), "--from=own")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done.stderr
    assert done.stderr.startswith("error: format own: request 1: ")
    assert WRONG[body] in done.stderr


def test_an_exception_is_shown_with_its_own_traceback(tmp_path: Path) -> None:
    own = site(tmp_path, "        yield 0, 'read', 0, 512\n        yield 1, 'read', 0, len(5)")
    done = command([own], "run", f"--workload={numbers(tmp_path)}", "--from=own")
    assert done.returncode == 1
    assert "format own: after 1 requests: TypeError: object of type 'int' has no len()" in done.stderr
    assert "own_format.py" in done.stderr
    assert "formats.py" not in done.stderr.replace("own_format.py", "")


def test_rules_of_traces_and_damaged_files_are_named(tmp_path: Path) -> None:
    own = site(tmp_path, "        trace.read()\n        yield 0, 'read', 0, 512\n        yield 0, 'write', 0, 0")
    path = numbers(tmp_path)
    done = command([own], "trace", "info", str(path), "--from=own")
    assert done.returncode == 2
    assert f"{path}:2: record: size: expected 1 to 1073741824 bytes, found 0; the file is read as own" in done.stderr
    path.write_bytes(path.read_bytes()[:200])
    done = command([own], "trace", "info", str(path), "--from=own")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the gzip data end early" in done.stderr
    done = command([], "trace", "info", str(path), "--from=own")
    assert 'unknown trace format "own"' in done.stderr
