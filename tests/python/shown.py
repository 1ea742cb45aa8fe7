"""Renews the outputs that pages show: `pytest tests/python/test_docs.py --renew`.

Lines that a page leaves out (`...`) stay out: the old output is aligned with the new one by the likeness of lines, at
least cost, and lines that come to lie at a `...` belong to that mark. A person must read the changed page afterwards.
"""

import re
from difflib import SequenceMatcher

from documents import ROOT, Block

_LEFT_OUT = "..."
_ADDED = 0.6
"""The cost of a line that only one of the two outputs has; a pair of unlike lines costs up to 1."""


def _unlike(old: str, new: str) -> float:
    """From 0 for equal lines, but for their numbers, to 1."""
    first, second = (re.sub(r"[\d.,]+", "#", re.sub(r"\s+", " ", line)) for line in (old, new))
    return 0.0 if first == second else 1.0 - SequenceMatcher(None, first, second).ratio()


def renewed(shown: str, printed: str) -> str:
    """The printed output with the lines left out that the shown output leaves out."""
    old = shown.splitlines()
    new = printed.splitlines()
    # best[i][j] is the cost of the first i shown lines with the first j printed ones, and the last step to it.
    best: list[list[tuple[float, str]]] = [[(0.0, "start")] + [(float("inf"), "")] * len(new)]
    for j in range(1, len(new) + 1):
        best[0][j] = (j * _ADDED, "added")
    for i, line in enumerate(old, 1):
        row: list[tuple[float, str]] = []
        for j in range(len(new) + 1):
            if line == _LEFT_OUT:
                steps = [(best[i - 1][j][0], "mark")]
                steps += [(row[j - 1][0], "left out")] if j else []
            else:
                steps = [(best[i - 1][j][0] + _ADDED, "gone")]
                if j:
                    steps.append((row[j - 1][0] + _ADDED, "added"))
                    steps.append((best[i - 1][j - 1][0] + _unlike(line, new[j - 1]), "pair"))
            row.append(min(steps))
        best.append(row)
    kept: list[str] = []
    i = len(old)
    j = len(new)
    while i or j:
        step = best[i][j][1]
        if step == "mark":
            kept.append(_LEFT_OUT)
        elif step in ("pair", "added"):
            kept.append(new[j - 1])
        i -= step in ("mark", "gone", "pair")
        j -= step in ("added", "pair", "left out")
    return "".join(f"{line}\n" for line in reversed(kept))


def renew(block: Block, outputs: dict[str, str]) -> None:
    """Writes new outputs in place of shown ones into the page of the block."""
    page = ROOT / block.page if (ROOT / block.page).exists() else ROOT / "docs" / block.page
    now = block.text
    for old, printed in outputs.items():
        now = now.replace(old, renewed(old, printed), 1)
    page.write_text(page.read_text(encoding="utf-8").replace(block.text, now, 1), encoding="utf-8")
