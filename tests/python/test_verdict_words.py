"""The words of verdicts are in `palimpsest.evidence` alone, where each word takes its evidence as an argument.

Searched: string literals of the package, of the scripts of its pages and of the core, without docstrings, comments and
keys of tables. Not searched in the core: *hold* and *fits*, which its messages say of contents and of sizes.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT

pytestmark = pytest.mark.unit

PACKAGE = ROOT / "python" / "palimpsest"
WORD = re.compile(r"(?<![\w-])(holds?|holding|agrees?|passed|best|steady|fits|not fit)(?![\w-])", re.IGNORECASE)
OF_CORE = re.compile(r"(?<![\w-])(agrees?|passed|best|steady)(?![\w-])", re.IGNORECASE)

KEPT = {
    ("cli.py", "fits.command"): "the name of a module",
    ("crash/cuts.py", "holds data that no request wrote"): "a unit contains data",
    ("completion.py", "steady"): "the name of a precondition",
    ("metrics.py", "steady"): "the name of a precondition",
    ("run_options.py", "fill:90%,random:2x, steady or layout"): "the name of a precondition",
    ("run_commands.py", "Which runs hold them"): "an option that asks",
    ("sweeps/command.py", "Which configurations hold them"): "an option that asks",
    ("charts/__init__.py", "units that hold moved data"): "units contain data",
    ("imports/mqsim_flows.py", "the drive holds so many commands"): "a queue contains commands",
    ("imports/mqsim_flows.py", "MQSim computes a steady state"): "the state that MQSim assumes",
    ("imports/simplessd.py", "holds written data until"): "a buffer contains data",
    ("templates/python/src/ring_layer/layer.py", "a page that holds another"): "a page contains data",
    ("fair/__init__.py", "figures that are steady"): "a condition in a table of the documentation",
    ("fair/conditions.py", "; a larger one holds more valid data."): "a unit contains data",
    ("fair/load.py", " hold "): "open blocks take spare blocks",
    ("repeats.py", "steady"): "the name of a key",
    ("reruns.py", "steady"): "the name of a key",
    ("paper/draw.py", "best"): "a place of a legend in Matplotlib",
    ("reproduce/drawing.py", "agree"): "the name of a column",
    ("reproduce/claims.py", "holds"): "the name of a rule in a paper's TOML",
    ("sweeps/report.py", ' class="best"'): "the name of a style",
}
"""The literals with one of the words that may be elsewhere, by file and part of the text, and the reason."""

KEPT_OF_CORE = {
    "steady": "the name of a precondition",
    "preconditioning reached its bound before the write amplification was steady": "evidence of the precondition's own",
    "passed": "the verdict of `check`, from the cases and the expected cases of each kind",
    "passed in part": "the same",
    "ends a job at a steady rate": "the meaning of a key of fio",
    "expected none, steady, layout or fill": "the name of a precondition",
}


def literals(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of string literals, without docstrings, subscripts, keys of tables and keys of `get`."""
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            of = getattr(node, name, None)
            skipped |= {id(each.value) for each in of if isinstance(each, ast.Expr)} if isinstance(of, list) else set()
        if isinstance(node, ast.Subscript):
            skipped.add(id(node.slice))
        if isinstance(node, ast.Dict):
            skipped |= {id(key) for key in node.keys}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            skipped |= {id(each) for each in node.args[:1]}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def found_in(source: str) -> list[tuple[int, str]]:
    return [(line, text) for line, text in literals(source) if WORD.search(text)]


def test_no_other_module_has_the_words() -> None:
    used, wrong = set(), []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith("evidence/"):
            continue
        for line, text in found_in(path.read_text(encoding="utf-8")):
            kept = [key for key in KEPT if key[0] == name and (key[1] == text or (" " in key[1] and key[1] in text))]
            used.update(kept)
            wrong += [] if kept else [f"{name}:{line}: {text!r}"]
    assert not wrong, "\n".join([*wrong, "expected the words from palimpsest.evidence, with their evidence"])
    unused = set(KEPT) - used
    assert not unused, f"exceptions without a literal: {sorted(unused)}"


def test_the_words_are_found_in_all_forms_of_literals() -> None:
    source = """
    '''It holds.'''
    def f(x):
        "A docstring agrees."
        found = x["steady"], x.get("holds"), {"best": 1}
        print(f"{x} holds {x}", "passed" if x else "it fits", 'the best of all', "hold-out", "fit.json", "fit: a")
    """
    texts = {text for _, text in found_in("if 1:\n" + source)}
    assert texts == {" holds ", "passed", "it fits", "the best of all"}


def scripts() -> Iterator[Path]:
    """The scripts of the pages, without the library of charts."""
    for folder in ("assets", "live"):
        yield from (path for path in sorted((PACKAGE / folder).glob("*.js")) if "plotly" not in path.name)


QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`')
COMMENT = re.compile(r"/\*.*?\*/|^\s*//[^\n]*", re.DOTALL | re.MULTILINE)
CONTAINS = re.compile(r"(victims hold less|data they hold|A page holds 8|a block holds data)")
"""Sentences of the laboratory on pages and blocks, which contain data."""


def test_no_script_of_a_page_has_the_words() -> None:
    wrong, files = [], list(scripts())
    assert len(files) > 4
    for path in files:
        text = COMMENT.sub("", path.read_text(encoding="utf-8"))
        for match in QUOTED.finditer(text):
            said = re.sub(r"\$\{[^}]*\}", "", match[0])
            wrong += [f"{path.name}: {said}"] if WORD.search(CONTAINS.sub("", said)) else []
    assert not wrong, "\n".join(wrong)


def test_no_verdict_of_a_paper_has_the_words_or_counts() -> None:
    papers = sorted((PACKAGE / "reproduce" / "papers").glob("*/paper.toml"))
    assert papers
    for path in papers:
        said = tomllib.loads(path.read_text(encoding="utf-8"))["verdict"]
        assert not WORD.search(said), f"{path.parent.name}: the table counts, the sentence has the causes: {said}"


def rust_literals(text: str) -> Iterator[str]:
    """String literals of Rust above its tests, without comments."""
    text = text.split("#[cfg(test)]\nmod tests {")[0]
    text = re.sub(r"(?m)^\s*//.*$", "", text)
    for match in re.finditer(r'"((?:[^"\\]|\\.)*)"', text, re.DOTALL):
        yield re.sub(r"\\\n\s*", "", match[1])


def test_no_message_of_the_core_has_the_words() -> None:
    wrong = []
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        if path.stem == "tests" or "tests" in path.parts:
            continue
        for text in rust_literals(path.read_text(encoding="utf-8")):
            kept = any(text == key or (" " in key and key in text) for key in KEPT_OF_CORE)
            if OF_CORE.search(text) and not kept:
                wrong.append(f"{path.relative_to(ROOT)}: {text!r}")
    assert not wrong, "\n".join(wrong)
