"""Words that the project avoids in code, comments, messages and documents, because the field has terms for them.

Not checked: whether the remaining term is the right one.
"""

import contextlib
import re
import subprocess
import tomllib

import pytest

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
"""A fixed name in results of `fit`."""


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


EXTRAS = "|".join(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
)
REGISTRY = re.compile(
    rf"palimpsest\[(?:{EXTRAS})"
    r"|palimpsest-[\d*][\w.*-]*\.whl"
    r"|dependencies = \[[^\]\n]*[\"']palimpsest[\"'<>=~!;\[ ]"
    r"|(?:pip[3x]?|uv|poetry|conda|mamba) +(?:install|add)[^\n`]*[ '\"]palimpsest(?![\w/.*-]*\.whl|[\w/-])"
)
"""An install of the distribution `palimpsest`, another project of the registry; this one is `palimpsest-ssd`."""


def test_no_file_installs_the_name_of_another() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    found = []
    for path in (ROOT / name for name in listed if not name.endswith("test_words.py")):
        if path.is_dir():  # a link to files that are listed, too
            continue
        with contextlib.suppress(UnicodeDecodeError):
            found += [f"{path}: {match[0]}" for match in REGISTRY.finditer(path.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    ["pip install palimpsest", "pip install 'palimpsest[ray]'", "or `'palimpsest[arrow]'`",
     "pip3 install -U palimpsest", "uv add palimpsest==0.1", "pip install pandas palimpsest",
     "pip install dist/palimpsest-*.whl", "dist/palimpsest-0.1.0-cp311-abi3-linux_x86_64.whl",
     'dependencies = ["numpy", "palimpsest"]', 'dependencies = ["palimpsest>=1"]', "conda install palimpsest"],
)  # fmt: skip
def test_an_install_of_the_name_of_another_is_found(text: str) -> None:
    assert REGISTRY.search(text)


@pytest.mark.parametrize(
    "text",
    ["pip install palimpsest-ssd", "pip install 'palimpsest-ssd[ray]'", "pip install dist/palimpsest_ssd-*.whl",
     'dependencies = ["palimpsest-ssd", "numpy"]', "pip uninstall palimpsest"],
)  # fmt: skip
def test_an_install_of_our_name_is_not(text: str) -> None:
    assert not REGISTRY.search(text)


def test_a_word_is_found() -> None:
    assert WORD.search("/// Nobody hears of it.")
    assert WORD.search("fn names_are_told()")
    assert not WORD.search("a kind of understanding")
