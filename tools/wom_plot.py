"""Draws the picture of the page on write-once-memory codes from the table on that page: failures against spare."""

import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

mpl.use("svg")

COLOURS = {"polar": "#2a78d6", "polar-repair": "#eb6834", "fountain": "#1baf7a"}


def points(page: str) -> dict[str, list[tuple[float, int, int]]]:
    """Spare in percent, trials and failures of each code, from the rows of the table."""
    found: dict[str, list[tuple[float, int, int]]] = {}
    for line in page.splitlines():
        columns = [column.strip(" `") for column in line.strip("|").split("|")]
        if len(columns) == 9 and columns[0] in COLOURS:
            spare = float(columns[1].removesuffix("%"))
            found.setdefault(columns[0], []).append((spare, int(columns[3]), int(columns[4])))
    return found


def draw(measured: dict[str, list[tuple[float, int, int]]]) -> Figure:
    """Rates with their standard errors; without a failure, an arrow from three in the number of trials."""
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    for name, colour in COLOURS.items():
        some = [(spare, failed / trials, (failed**0.5) / trials) for spare, trials, failed in measured[name] if failed]
        spares, rates, errors = zip(*some, strict=True)
        axes.errorbar(spares, rates, yerr=errors, marker="o", markersize=4, color=colour, label=name, capsize=2)
        for spare, trials, failed in measured[name]:
            if not failed:
                axes.errorbar(spare, 3 / trials, yerr=1.5 / trials, uplims=True, marker="_", color=colour)
    axes.axhline(0.0025, color="#888888", linewidth=1, linestyle="dotted")
    axes.text(10, 0.0028, "0.25 %, the papers' code", ha="right", color="#555555", fontsize=8)
    axes.set(xlabel="erased spare (% of the data cells)", ylabel="encodings that fail", yscale="log", xlim=(0, 10.3))
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.legend(frameon=False)
    return figure


if __name__ == "__main__":
    drawn = draw(points(Path(sys.argv[1]).read_text(encoding="utf-8")))
    mpl.rcParams["svg.hashsalt"] = "wom"
    drawn.savefig(sys.argv[2], format="svg", metadata={"Date": None})
