"""The program that runs all tests: its counts, its failure on a red test, and its parts, which cover each test once."""

import argparse
import sys

import pytest

import run_tests

pytestmark = pytest.mark.unit

RED_CARGO = (
    "echo 'test result: ok. 3 passed; 0 failed; 1 ignored'; echo 'test result: FAILED. 2 passed; 1 failed;'; exit 101"
)


def shell(text: str) -> list[str]:
    return ["sh", "-c", text]


def ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cargo: str, pytest_: str, *arguments: str
) -> tuple[int, list[str]]:
    """Status and lines of a run with these shell commands as the two test programs."""
    monkeypatch.setattr(run_tests, "cargo_command", lambda _: shell(cargo))
    monkeypatch.setattr(run_tests, "pytest_command", lambda _: shell(pytest_))
    monkeypatch.setattr(sys, "argv", ["run_tests.py", *arguments])
    return run_tests.main(), capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("cargo", "pytest_", "status", "last"),
    [
        ("echo 'test result: ok. 3 passed; 0 failed;'", "echo 4 passed, 2 skipped in 1s", 0, "7 passed, 0 failed"),
        (RED_CARGO, "echo 4 passed in 1s", 1, "9 passed, 1 failed"),
        ("true", "echo '1 failed, 4 passed, 2 errors in 1s'; exit 1", 1, "4 passed, 3 failed"),
        ("echo 'error: could not compile'; exit 101", "echo 4 passed in 1s", 1, "4 passed, 1 failed"),
        ("true", "echo no tests ran in 1s; exit 5", 1, "0 passed, 1 failed"),
    ],
)
def test_ends_with_one_line_and_a_status(
    cargo: str,
    pytest_: str,
    status: int,
    last: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found, lines = ended(monkeypatch, capsys, cargo, pytest_)
    assert (found, lines[-1]) == (status, last)


def test_output_of_one_follows_that_of_the_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cargo, python = "for i in 1 2 3; do echo rust; sleep 0.05; done", "echo python; echo python; echo 1 passed"
    _, lines = ended(monkeypatch, capsys, cargo, python)
    assert [line for line in lines if line in ("rust", "python")] == ["rust"] * 3 + ["python"] * 2


def test_missing_samples_are_said_again_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "skipped: there is no t.csv; expected that trace for this test"
    _, lines = ended(monkeypatch, capsys, f"echo '{said}'; echo '{said}'", "echo 1 passed in 1s")
    assert lines[-2:] == [said, "1 passed, 0 failed"]


def test_a_name_that_no_test_has_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = ended(monkeypatch, capsys, "true", "exit 5", "--only", "nothing")
    assert status == 1
    assert lines[-2] == "no test is called 'nothing' in part 1 of 1"
    assert ended(monkeypatch, capsys, "true", "echo 1 passed in 1s", "--only", "some")[0] == 0


def test_parts_cover_every_test_once() -> None:
    names = [f"t{number}" for number in range(11)]
    parts = [run_tests.Selection(True, "", (k, 3)).of(names) for k in (1, 2, 3)]
    assert sorted(name for part in parts for name in part) == sorted(names)
    with pytest.raises(argparse.ArgumentTypeError, match="expected K/N with K from 1 to N"):
        run_tests.part("4/3")


def test_long_tests_leave_out_measurements() -> None:
    skips = "--skip measured_"
    assert skips in " ".join(run_tests.cargo_command(run_tests.Selection(True, "", (1, 1))))
    assert skips not in " ".join(run_tests.cargo_command(run_tests.Selection(False, "", (1, 1))))
