"""Shared by all tests: the stand-in for the native module, and the installed command."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fake_core
from loaded import Loaded

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = ROOT / ".venv" / "bin" / "palimpsest"

# Tests must neither write to the cache of the user nor read it.
os.environ["PALIMPSEST_NO_CACHE"] = "1"

try:
    native = importlib.import_module("palimpsest._core")
except ImportError:
    # Without the native module unit tests still run, and contract tests fail.
    sys.modules["palimpsest._core"] = native = fake_core

Completed = subprocess.CompletedProcess[str]
Command = Callable[..., Completed]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replaces the native module's functions by the stand-in's, with errors raised as native ones."""

    def with_native_errors(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except fake_core.Error as error:
                raise getattr(native, type(error).__name__)(str(error)) from error

        return call

    native_names = ("run", "show", "unread_keys", "unread_remedy", "list_registry", "version", "build", "workload_spec")
    for name in native_names:
        monkeypatch.setattr(native, name, with_native_errors(getattr(fake_core, name)))
    monkeypatch.setattr(fake_core, "DELAY_S", 0.0)
    return fake_core


@pytest.fixture
def fake_command() -> Command:
    """Calls the command line on the stand-in: `fake_command(*arguments, seconds=0)`."""

    def call(*arguments: str, seconds: float = 0, **options: Any) -> Completed:
        script = ROOT / "tests" / "python" / "fake_cli.py"
        return subprocess.run(
            [sys.executable, script, str(seconds), *arguments], capture_output=True, text=True, timeout=60, **options
        )

    return call


@pytest.fixture(scope="session")
def loaded() -> Iterator[Loaded | None]:
    """The process that has loaded the program; None on macOS, which kills forked processes that use its frameworks."""
    loaded = Loaded(COMMAND) if sys.platform == "linux" else None
    yield loaded
    if loaded:
        loaded.close()


@pytest.fixture(scope="session")
def palimpsest(loaded: Loaded | None) -> Command:
    """Calls the installed command: `palimpsest(*arguments, timeout=300)`, in seconds."""

    def call(*arguments: str, timeout: float = 300, **options: Any) -> Completed:
        if loaded and options.keys() <= {"cwd"}:
            return loaded.run(*arguments, timeout=timeout, **options)
        return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=timeout, **options)

    return call


def figures(completed: Completed) -> Any:
    """The one JSON object that a command printed."""
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def trace_sample(name: str) -> Path:
    """A trace beside the repository; without the file the test skips and names the expected place."""
    path = ROOT.parent / "shared" / "traces" / name
    if not path.is_file():
        pytest.skip(f"there is no {path}; expected that trace for this test")
    return path


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew", action="store_true", help="write new outputs of commands into the documents")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Sends the counts of this process to the process that prints the summary."""
    from documents import COUNTS

    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["documents"] = dict(COUNTS)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Adds the counts of another process; a crashed process adds nothing."""
    from documents import COUNTS

    COUNTS.update(getattr(node, "workeroutput", {}).get("documents", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Reports how many commands and blocks of the documents ran."""
    from documents import COUNTS

    if COUNTS:
        counted = ", ".join(f"{number} {what}" for what, number in sorted(COUNTS.items()))
        terminalreporter.write_line(f"documents: {counted}")


def measured(folder: Path) -> pl.DataFrame:
    """The table of a sweep without columns that depend on the machine."""
    return pl.read_parquet(folder / "sweep.parquet").select(pl.exclude("^sim\\..*$"))
