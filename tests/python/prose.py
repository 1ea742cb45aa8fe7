"""Prose of the repository: comments, docstrings and Markdown as text, and the counts of `test_prose.py`.

Run as a program with paths, prints the counts of each and the lines beyond 120 columns.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MAX_COLUMNS = 120
MAX_TEST_NAME = 60

NOUN = re.compile(r"\b(?:what|whatever|who|whom|whoever|(?:that|those|one) of)\b", re.IGNORECASE)
IT = re.compile(r"\bits?\b(?!')", re.IGNORECASE)
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


def of_markdown(text: str) -> str:
    """The prose of a page: no code blocks, code spans, links' targets or tags."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    return re.sub(r"\]\([^)]*\)|<[^>]*>", " ", text)


def of_rust(text: str) -> str:
    """The comments of a Rust file."""
    found = re.findall(r"^\s*//[/!]?(.*)$|\s//(?!/) (.*)$", text, flags=re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", "\n".join(first or second for first, second in found))


def of_python(text: str) -> str:
    """The comments and docstrings of a Python file."""
    comments = [
        token.string.lstrip("#: ")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    docs = [
        node.value.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    return re.sub(r"`[^`\n]*`", "", "\n".join([*comments, *docs]))


READERS = {".md": of_markdown, ".rs": of_rust, ".py": of_python}


@dataclass
class Counts:
    """Counts of words that name no noun."""

    words: int = 0
    nouns: int = 0
    its: int = 0

    def add(self, prose: str) -> None:
        """Count `prose` too."""
        self.words += len(WORD.findall(prose))
        self.nouns += len(NOUN.findall(prose))
        self.its += len(IT.findall(prose))

    def per_thousand(self) -> tuple[float, float]:
        """`NOUN` and `IT` per 1,000 words."""
        return 1000 * self.nouns / max(self.words, 1), 1000 * self.its / max(self.words, 1)


def files(*places: str) -> Iterator[Path]:
    """Files with prose under `places` that are not generated."""
    for place in places:
        path = ROOT / place
        for found in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if found.suffix in READERS and "target" not in found.parts:
                yield found


def count(*places: str) -> Counts:
    """The counts of all files under `places`."""
    counts = Counts()
    for path in files(*places):
        counts.add(READERS[path.suffix](path.read_text("utf-8")))
    return counts


def long_lines(*places: str) -> Iterator[str]:
    """Lines beyond `MAX_COLUMNS`. In Markdown, rows of tables and lines without a blank may be longer."""
    for path in files(*places):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            may_wrap = path.suffix != ".md" or (" " in line.strip() and not line.lstrip().startswith("|"))
            if len(line) > MAX_COLUMNS and may_wrap:
                yield f"{path.relative_to(ROOT)}:{number}: {len(line)} columns"


if __name__ == "__main__":
    for place in sys.argv[1:]:
        counts = count(place)
        nouns, its = counts.per_thousand()
        wide = list(long_lines(place))
        print(f"{place}: {counts.words} words, what/who/that of {nouns:.1f}, it/its {its:.1f}, {len(wide)} wide lines")
        for line in wide[:20]:
            print(f"  {line}")
