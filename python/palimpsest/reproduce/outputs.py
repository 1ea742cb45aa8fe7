"""Output of a reproduction: JSON, a table for the terminal, and a folder with data, pictures and one page."""

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import page as shell
from ..files import write_in_order
from .claims import Claim
from .figures import Figure, write_page

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["Reproduction", "render", "to_json", "write"]


@dataclass(frozen=True)
class Reproduction:
    """One paper's claims and figures.

    Attributes:
        paper: name on the command line.
        title: the paper.
        about: sentences on the runs, and on synthetic workloads.
        claims: the table.
        figures: in the paper's order.
    """

    paper: str
    title: str
    about: tuple[str, ...]
    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...]

    @property
    def has_both(self) -> bool:
        """Whether claims have numbers of both settings."""
        return any(claim.implied_agrees is not None for claim in self.claims)

    def to_dict(self, folder: Path | None = None) -> dict[str, Any]:
        """The object of the JSON contract.

        Args:
            folder: of the figures; None if no file was written.
        """
        return {
            "paper": self.paper,
            "title": self.title,
            "about": list(self.about),
            "claims": [claim.to_dict() for claim in self.claims],
            "figures": [figure.to_dict(folder) for figure in self.figures],
        }


def _number(value: float | str | None) -> str:
    return "-" if value is None else value if isinstance(value, str) else f"{value:.4g}"


def _yes(agrees: bool | None) -> str:
    return "-" if agrees is None else "yes" if agrees else "no"


def render(made: Reproduction) -> "Group":
    """The claims as a table for a terminal, followed by the reasons of claims that do not agree."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(title=made.title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    both = made.has_both
    for head in ("claim", "paper", *(("assumed", "agrees", "implied", "agrees") if both else ("ours", "agrees"))):
        table.add_column(head, overflow="fold", ratio=3 if head == "claim" else None)
    for claim in made.claims:
        paper, ours, implied = (f"{_number(value)} {claim.unit}" for value in (claim.paper, claim.ours, claim.implied))
        second = (implied, _yes(claim.implied_agrees)) if both else ()
        table.add_row(claim.claim, paper, ours, _yes(claim.agrees), *second)
    reasons = [
        part
        for claim in made.claims
        if claim.note and not claim.agrees
        for part in (Text(claim.claim, style="bold"), Padding(Text(claim.note), (0, 0, 0, 2)))
    ]
    return Group(table, *([Text("\nWhy, where not", style="bold")] if reasons else []), *reasons, Text())


STYLE = """
body { max-width: 1700px; } p { max-width: 90ch; }
p.made { color: var(--dim); font-size: 13px; overflow-wrap: anywhere; }
.sides { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 32px; align-items: start; }
.claims table { font-size: 13px; }
.claims table :is(td, th) { padding: 6px 12px 6px 0; text-align: left; vertical-align: top; white-space: normal; }
.claims table td:last-child { min-width: 24ch; }
.claims td:is(.yes, .no) { font-weight: 600; }
.claims td.yes { color: light-dark(#00710c, #5fd068); }
.claims td.no { color: light-dark(#b3261a, #ff8a7a); }
.figures h4 { font-size: 15px; margin: 24px 0 4px; } .figures img { width: 100%; background: #fff; }
@media (min-width: 1101px) {
  .claims { position: sticky; top: 48px; max-height: calc(100vh - 60px); overflow-y: auto; }
}
@media (max-width: 1100px) { .sides { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 600px) {
  .claims tr { display: grid; grid-template-columns: 2fr 2fr 1fr; padding: 4px 0; }
  .claims tr { border-bottom: 1px solid var(--line); }
  .claims tr > :is(:first-child, :last-child) { grid-column: 1 / -1; min-width: 0; overflow-wrap: anywhere; }
  .claims table :is(td, th) { border: 0; padding: 2px 8px 2px 0; } .claims table td:empty { display: none; }
}
@media print {
  .sides { grid-template-columns: minmax(0, 1fr); }
  .claims { position: static; max-height: none; overflow: visible; }
}
/* The pictures are black on white: hue-rotate gives the colours back that invert took. */
@media screen { :root[data-theme="dark"] .figures img { filter: invert(0.9) hue-rotate(180deg); } }
@media screen and (prefers-color-scheme: dark) {
  :root:not([data-theme="light"]) .figures img { filter: invert(0.9) hue-rotate(180deg); }
}
"""


def _section(made: Reproduction, title: str) -> shell.Section:
    def cell(text: object) -> str:
        return html.escape(str(text))

    def measured(number: float | None, agrees: bool | None, unit: str) -> str:
        said = _yes(agrees)
        return f'<td>{cell(_number(number))}&nbsp;{cell(unit)}</td><td class="{said}">{said}</td>'

    both = made.has_both
    rows = "".join(
        f'<tr><th scope="row">{cell(claim.claim)}</th><td>{cell(_number(claim.paper))}&nbsp;{cell(claim.unit)}</td>'
        f"{measured(claim.ours, claim.agrees, claim.unit)}"
        f"{measured(claim.implied, claim.implied_agrees, claim.unit) if both else ''}<td>{cell(claim.note)}</td></tr>"
        for claim in made.claims
    )
    figures = "".join(figure.to_html(f"{made.paper}-") for figure in made.figures)
    about = "".join(f"<p>{cell(sentence)}</p>" for sentence in made.about)
    names = ("assumed", "agrees?", "implied", "agrees?") if both else ("ours", "agrees?")
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("claim", "paper", *names, "note"))
    body = (
        f'{about}<div class="sides"><div class="claims wide"><h3>Claims</h3><table><tr>{heads}</tr>{rows}</table></div>'
        f'<div class="figures"><h3>Figures</h3>{figures}</div></div>'
    )
    return shell.Section(made.paper, title, body, short=made.paper)


def _agreement(claims: Sequence[Claim]) -> str:
    said = f"{sum(claim.agrees for claim in claims)} of {len(claims)} claims agree"
    implied = [claim.implied_agrees for claim in claims if claim.implied_agrees is not None]
    return f"{said}; under the implied setting {sum(implied)} of {len(implied)}" if implied else said


def page(made: Sequence[Reproduction]) -> str:
    """One page that needs nothing but itself: claims and figures side by side."""
    alone = len(made) == 1
    claims = [claim for each in made for claim in each.claims]
    return shell.fill(
        title=made[0].title if alone else f"Reproductions: {', '.join(each.paper for each in made)}",
        under=_agreement(claims),
        head="",
        sections=[_section(each, "Claims beside figures" if alone else each.title) for each in made],
        drawn={},
        style=STYLE,
    )


def to_json(made: Sequence[Reproduction], folder: Path | None, *, each_apart: bool) -> str:
    """Output of `reproduce --json`: one object, or `{"reproductions": [...]}`; files by absolute paths."""
    whole = None if folder is None else folder.resolve()
    parts = [each.to_dict(whole / each.paper if whole and each_apart else whole) for each in made]
    return json.dumps({"reproductions": parts} if each_apart else parts[0], indent=2)


def write(made: Sequence[Reproduction], folder: Path, *, each_apart: bool) -> None:
    """Writes data, pictures, reproduce.json and index.html.

    Args:
        made: the reproductions.
        folder: of the files; made if missing.
        each_apart: a folder for each paper, and one page over all of them.

    Raises:
        OSError: a file could not be written.
    """
    for each in made:
        # Names alone: the folder may be moved.
        own = folder / each.paper if each_apart else folder
        write_page(own, "reproduce", each.to_dict(Path()), page([each]), each.figures)
    if each_apart:
        write_in_order(folder, [("index.html", page(made))])
