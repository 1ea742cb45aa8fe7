"""`palimpsest help`, and the pages to which messages and docstrings point.

Not checked: whether a page answers the question of the reader.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from palimpsest import manual
from palimpsest.cli import cli
from prose import ROOT

pytestmark = pytest.mark.unit

_POINTER = re.compile(r"`palimpsest help ([a-z0-9-]+)`")
_FILE = re.compile(r"\bdocs/[a-z0-9-]+\.md")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["help", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def rust_strings() -> Iterator[tuple[Path, str]]:
    """Each string of the crates outside tests and comments, and each description of a preset."""
    for path in (ROOT / "crates").rglob("src/**/*.rs"):
        if "tests" not in path.parts and path.stem != "tests":
            lines = (line for line in path.read_text().splitlines() if not line.lstrip().startswith(("//", "#")))
            yield from ((path, text) for line in lines for text in _STRING.findall(line))
    for path in (ROOT / "presets").rglob("*.toml"):
        lines = (line for line in path.read_text().splitlines() if not line.startswith("#"))
        yield from ((path, text) for line in lines for text in _STRING.findall(line))


def python_strings() -> Iterator[tuple[Path, str]]:
    """Each string of the package, except the heads of modules that users do not import."""
    for path in (ROOT / "python/palimpsest").rglob("*.py"):
        tree = ast.parse(path.read_text())
        head = tree.body[0].value if tree.body and isinstance(tree.body[0], ast.Expr) else None
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node is not head:
                yield path, node.value


def test_list_has_every_page_with_its_title() -> None:
    listed = shown()
    for page in (ROOT / "docs").glob("*.md"):
        assert re.search(rf"^{page.stem} +\S", listed, re.MULTILINE), page


def test_page_is_printed_as_written_in_a_pipe() -> None:
    assert shown("results").strip() == (ROOT / "docs/results.md").read_text().strip()


def test_command_without_page_shows_its_options() -> None:
    assert "--fidelity" in shown("run")


def test_unknown_topic_names_a_near_one() -> None:
    result = CliRunner().invoke(cli, ["help", "resluts"])
    assert result.exit_code == 2
    assert "did you mean results?" in result.output


def test_strings_point_to_pages_of_the_installation() -> None:
    topics, pointers = manual.pages(), 0
    for path, text in [*rust_strings(), *python_strings()]:
        assert not _FILE.search(text), f"{path}: an installation has no docs folder: {text!r}"
        for topic in _POINTER.findall(text):
            pointers += 1
            assert topic in topics, f"{path}: no page {topic}"
    assert pointers > 10, "the search for pointers has found none"
