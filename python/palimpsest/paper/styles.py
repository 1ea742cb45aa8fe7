"""Widths, fonts and marks of figures for papers.

Widths are from the venues' templates: USENIX (text of 7 in, columns of 3.33 in, Times), IEEE (7.16 in, 3.5 in, Times)
and ACM (acmart sigconf: 506.3 pt, 241.1 pt, Libertine). Lines differ by dash, marker and colour, bars by hatch and
colour, so that they differ in black-and-white print and for colour-blind readers. The colours are from Okabe and Ito
(2008), from dark to light.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Style:
    """A venue: widths of a column and of the text in inches, size of letters in points, and fonts by preference."""

    column_in: float
    text_in: float
    points: float
    serif: tuple[str, ...]

    def parameters(self) -> dict[str, Any]:
        """The settings of Matplotlib. Fonts are embedded as outlines that submission systems accept."""
        small = self.points - 1
        return {
            "font.family": "serif", "font.serif": [*self.serif, "DejaVu Serif"], "mathtext.fontset": "stix",
            "font.size": self.points, "axes.labelsize": self.points, "axes.titlesize": self.points,
            "xtick.labelsize": small, "ytick.labelsize": small, "legend.fontsize": small,
            "lines.linewidth": 1.1, "lines.markersize": 3.5, "axes.linewidth": 0.6, "hatch.linewidth": 0.5,
            "axes.grid": True, "grid.linewidth": 0.3, "grid.color": "0.8", "axes.axisbelow": True,
            "legend.frameon": False, "legend.handlelength": 2.4, "pdf.fonttype": 42, "ps.fonttype": 42,
            "svg.hashsalt": "palimpsest", "svg.fonttype": "path", "pgf.rcfonts": False, "savefig.dpi": 300,
        }  # fmt: skip


_TIMES = ("Times New Roman", "Times", "Nimbus Roman", "Liberation Serif", "TeX Gyre Termes", "STIXGeneral")

STYLES = {
    "usenix": Style(3.33, 7.0, 9, _TIMES),
    "ieee": Style(3.5, 7.16, 8, _TIMES),
    "acm": Style(3.336, 7.006, 8, ("Linux Libertine O", "Linux Libertine", "Libertinus Serif", *_TIMES)),
}
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#F0E442")
DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)))
MARKERS = ("o", "s", "^", "D", "v", "x", "P", "*")
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++", "oo")
