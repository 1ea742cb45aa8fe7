"""Writes the page "Standings of the layers": `python tools/standings.py docs/standings.md`.

Runs `palimpsest leaderboard` in half a minute, so figures are always those of the present sources. Ignored: charts.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from palimpsest.intervals import Interval
from palimpsest.leaderboard.show import MISSING, ratio
from palimpsest.leaderboard.standings import FIGURES, SHORT

COMMAND = ("palimpsest", "leaderboard", "--seeds", "4", "--requests", "2000")
BEFORE = """\
# Standings of the layers

Each build of this site ranks all layers for block devices anew, on three small drives under three workloads.

{version} ran this command, with defaults for the rest:

```console
$ {command}
```

Each number is a ratio to the layer `page`: 0.5 is half. Behind ± is half of the 95 % interval over four seeds. A star
marks the best layer, and each layer that is not decided to be worse. `-`: not every run has the figure; a run without
erases has no TBW. Every read was verified. The [leaderboard](leaderboard.md) has the drives, workloads and formulas.
More seeds and longer runs narrow the intervals.
"""
AFTER = """
## Add a layer

`palimpsest leaderboard --add mylayer.py:Ring` ranks a layer of your own in the same tables. It runs the new layer alone
once the folder has the others. A layer that joins the sources, by [one file and one line](write-an-ftl.md), is in this
page at the next build.
"""


def standings() -> dict[str, Any]:
    """The standings as plain data."""
    with tempfile.TemporaryDirectory() as folder:
        asked = [sys.executable, "-m", *COMMAND, "--out", folder, "--json"]
        done = subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def cell(layer: dict[str, Any], name: str) -> str:
    """A ratio with its interval and star."""
    if name not in layer["ratios"]:
        return MISSING
    return ratio(Interval(**layer["ratios"][name])) + " ★" * (name in layer["best"])


def page(found: dict[str, Any], version: str) -> str:
    """The page, with a table for each drive."""
    parts = [BEFORE.format(version=version, command=" ".join(COMMAND))]
    for drive in found["drives"]:
        heads = ["layer", *SHORT]
        rows = [heads, ["---"] * len(heads)]
        rows += [[f"`{layer['layer']}`", *(cell(layer, name) for name in FIGURES)] for layer in drive["layers"]]
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        left = ", ".join(f"`{name}`" for name in drive["left_out"])
        parts.append(f"\n## {drive['drive']}\n\n{table}\n\nNot on this drive: {left or 'none'}.\n")
    return "".join([*parts, AFTER])


if __name__ == "__main__":
    asked = [sys.executable, "-m", "palimpsest", "--version"]
    printed = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    name = " ".join(printed.split()[:2]).replace("palimpsest", "Palimpsest").rstrip(",")
    Path(sys.argv[1]).write_text(page(standings(), name), encoding="utf-8")
