"""The documents of the project as input for tests: fenced blocks, and commands with their shown output.

A block that must not run gives the reason in a comment above: `<!-- not run: needs root -->`. `console` blocks have
commands after `$ ` and may show their output; `...` alone in a line matches any lines there.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

SPEC = "rw=randrw,bs=4k,size=64MiB,n=4000,rate_iops=20000,open_loop"
"""The workload of the traces that pages name."""
_MSR = "rw=randrw,rwmixread=32,bs=16k,size=795MiB,n=20000,rate_iops=2000,open_loop,norandommap"
TRACES = (
    f"palimpsest trace synth {SPEC} trace.csv.zst --format csv",
    "mkdir MSR-Cambridge",
    *(
        f"palimpsest trace synth {_MSR} MSR-Cambridge/{name}.csv.gz --format msr --seed {seed} --ssd mga-8k"
        for name, seed in (("web_3", 1), ("wdev_1", 2))
    ),
    "tar --create --file msr-cambridge1.tar MSR-Cambridge",
)
"""Lines of a shell that write the traces of the tutorials."""

COUNTS: Counter[str] = Counter()
"""Counts of blocks, run or not, for the closing lines of a test run."""

RUN = ("console", "python", "toml", "ini")
"""Commands, snippets, drives, and job files of fio."""
SHOWN = ("text", "rust")
"""Not run here: pictures, and code that the Rust tests compile and run."""

_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+?) -->\n\n?)?```(?P<language>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        page: the document.
        line: number of the first line.
        language: the language after the fence.
        text: the content.
        reason: the reason not to run the block; empty if it runs.
    """

    page: str
    line: int
    language: str
    text: str
    reason: str

    @property
    def place(self) -> str:
        """`FILE:LINE`."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command of a `console` block, and the output that the page shows; None if the page shows none."""

    text: str
    shown: str | None


def pages() -> list[Path]:
    """The documents that are written by hand."""
    generated = {"reference.md", "tour.md", "pacing.md", "standings.md"}
    return [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name not in generated)]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a document, in order."""
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("text")) + 1
        yield Block(page.name, line, match["language"], match["text"], match["reason"] or "")


def commands(block: Block) -> list[Command]:
    """The commands of a `console` block; a backslash at the end of a line continues it in the next."""
    found: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line.removeprefix("$ "), None))
        elif found and found[-1].shown is None and found[-1].text.endswith("\\"):
            found[-1] = Command(f"{found[-1].text}\n{line}", None)
        elif found:
            found[-1] = Command(found[-1].text, f"{found[-1].shown or ''}{line}\n")
        else:
            raise ValueError(f"{block.place}: output precedes the first command")
    return found


def agrees(shown: str, printed: str) -> bool:
    """Whether printed output matches the shown output; a line `...` matches any lines."""
    parts = [re.escape(part) for part in re.split(r"^\.\.\.\n", shown, flags=re.M)]
    return re.fullmatch("(?:.*\n)*?".join(parts), printed) is not None


def examples(text: str) -> list[str]:
    """The examples in the help of a command."""
    return [line.strip() for line in text.splitlines() if re.match(r" {3,}palimpsest ", line)]
