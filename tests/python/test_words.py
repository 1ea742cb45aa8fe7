"""Words that the project does not use in code, comments, messages and documents: the field has terms for them.

Not seen: whether the term that stays is the right one.
"""

import re
import subprocess

from conftest import ROOT

AVOIDED = {
    "told": "report, print, notify",
    "hears?|heard": "receive, notice",
    "stands": "represents, is",
    "nobody": "name what is meant: no program, no request",
    "hand-?over": "transfer",
    "foretells?": "predict",
    "kin": "name the set",
    "shares? its fate": "fail together",
    "pays|paid": "cost, take",
}
SUFFIXES = (".rs", ".py", ".md", ".toml", ".html", "Makefile")
WORD = re.compile(rf"(?<![a-z])({'|'.join(AVOIDED)})(?![a-z])", re.IGNORECASE)
KEPT = "not_told_from"
"""A name in results of `fit`, which is fixed."""


def test_words_of_the_field() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    files = [ROOT / name for name in listed if name.endswith(SUFFIXES) and not name.endswith("test_words.py")]
    assert len(files) > 500
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in files
        if path.exists()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := WORD.search(line.replace(KEPT, "")))
    ]
    assert not found, "\n".join([*found, *(f"{words}: {instead}" for words, instead in AVOIDED.items())])


def test_a_word_is_found() -> None:
    assert WORD.search("/// Nobody hears of it.")
    assert WORD.search("fn names_are_told()")
    assert not WORD.search("a kind of understanding")
