"""Does the tutorials that need no Rust as a stranger with an installed wheel: `do` runs each block as the page has it.

PATH has the environment and the system's programs, and neither cargo nor rustc. The traces, which a reader would
download, are synthetic ones of the same names. Ignored: blocks with a reason not to run, such as those for root.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT / "tests" / "python"))

import documents  # noqa: E402

PAGES = ("tutorial-first", "tutorial-trace", "tutorial-policy", "tutorial-drive")
SYSTEM = "/usr/bin:/bin"


def rust() -> str | None:
    """The Rust tool among the programs of the system, which a stranger would not have."""
    return next((tool for tool in ("cargo", "rustc") if shutil.which(tool, path=SYSTEM)), None)


def do(folder: Path, variables: Mapping[str, str]) -> int:
    """Runs all blocks of the tutorials in a folder, and returns the number of commands and snippets."""
    environment = {**variables, "PATH": f"{variables['PATH']}:{SYSTEM}", "COLUMNS": "100"}

    def shell(line: str, place: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line], cwd=folder, env=environment, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"wheel: {place}: `{line}` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    for line in documents.TRACES:
        shell(line, "traces of the tutorials")
    count = 0
    for name in PAGES:
        for block in documents.blocks(_ROOT / "docs" / f"{name}.md"):
            if block.reason:
                continue
            if block.language == "console":
                for command in documents.commands(block):
                    printed = shell(command.text, block.place)
                    if command.shown is not None and not documents.agrees(command.shown, printed):
                        raise SystemExit(f"wheel: {block.place} shows another output than this:\n{printed}")
                    count += 1
            elif block.language in ("python", "toml"):
                called = re.match(r"# ([\w-]+\.(?:py|toml))\n", block.text)
                path = folder / (called[1] if called else "block.py")
                path.write_text(block.text, encoding="utf-8")
                if path.suffix == ".py":
                    shell(f"python {path.name}", block.place)
                    count += 1
    return count
