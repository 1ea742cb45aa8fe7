"""Output of a reproduction: JSON, a table for the terminal, and a folder with data, pictures and one page."""

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import evidence, fair
from .. import page as shell
from ..evidence import agreement as words
from ..files import write_in_order
from .claims import Claim, holds
from .figures import Figure, write_page

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["Reproduction", "render", "to_json", "write", "write_all"]


@dataclass(frozen=True)
class Reproduction:
    """One paper's claims and figures.

    Attributes:
        paper: name on the command line.
        title: the paper.
        about: sentences on the runs, and on synthetic workloads.
        claims: the table.
        figures: in the paper's order.
        verdict: the causes, in a sentence without counts; `answer` adds the counts.
        stated: sentences of the paper that state a number, an order or a cause (`study.stated`).
        checks: findings on the comparisons of the paper's runs (`fair`).
    """

    paper: str
    title: str
    about: tuple[str, ...]
    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...]
    verdict: str = ""
    stated: tuple[Mapping[str, str], ...] = ()
    checks: tuple[fair.Finding, ...] = ()

    @property
    def covered(self) -> int:
        """Number of the stated sentences that a claim tests."""
        return sum(bool(row["claims"]) for row in self.stated)

    @property
    def counted(self) -> list[Claim]:
        """The claims that can fail."""
        return [claim for claim in self.claims if not claim.data]

    @property
    def answer(self) -> str:
        """The counts of the table, and the paper's causes."""
        return f"{_agreement(self.counted)}. {self.verdict}".strip()

    @property
    def has_both(self) -> bool:
        """Whether claims have numbers of both settings."""
        return any(claim.implied_agrees is not None for claim in self.claims)

    @property
    def has_real(self) -> bool:
        """Whether claims have numbers of real traces."""
        return any(claim.real is not None for claim in self.claims)

    def to_dict(self, folder: Path | None = None) -> dict[str, Any]:
        """The object of the JSON contract.

        Args:
            folder: of the figures; None if no file was written.
        """
        return {
            "paper": self.paper,
            "title": self.title,
            "about": list(self.about),
            "verdict": self.answer,
            "stated": len(self.stated),
            "covered": self.covered,
            "claims": [claim.to_dict() for claim in self.claims],
            "checks": [each.to_dict() for each in self.checks],
            "figures": [figure.to_dict(folder) for figure in self.figures],
        }


PAGES = {
    "sweeps": "What the paper leaves open, one thing changed at a time",
    "beyond": "Beyond the paper",
    "traces": "Real traces",
}
"""The pages beside the main one: name of the file, and heading."""


def _cell(text: object) -> str:
    return html.escape(str(text))


def _number(value: float | str | None, unit: str) -> str:
    """A number with its unit; the paper's words, such as "more", have none."""
    if value is None or (isinstance(value, str) and not any(map(str.isdigit, value))):
        return value or "-"
    return f"{value if isinstance(value, str) else f'{value:.4g}'} {unit}"


def _verdict(claim: Claim, *, implied: bool = False) -> str:
    """Whether a claim agrees, by number or also by mechanism, and which of the two fails."""
    if implied and claim.implied_agrees is None and not claim.data:
        return "-"
    return claim.verdict(implied=implied).text


def _left(share: float | None) -> str:
    return "-" if share is None else f"{round(share)} %"


def render(made: Reproduction) -> "Group":
    """The claims as a table for a terminal, followed by the reasons of claims that do not agree."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(title=made.title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    both = made.has_both
    one = (words.COLUMN, "mechanism off")
    real = ("real",) * made.has_real
    for head in ("claim", "paper", *(("assumed", *one, "implied", *one) if both else ("ours", *one)), *real):
        table.add_column(head, overflow="fold", ratio=3 if head == "claim" else None)
    for claim in made.claims:
        paper, ours, implied = (_number(value, claim.unit) for value in (claim.paper, claim.ours, claim.implied))
        second = (implied, _verdict(claim, implied=True), _left(claim.implied_left)) if both else ()
        last = (_number(claim.real, claim.unit),) * made.has_real
        table.add_row(claim.claim, paper, ours, _verdict(claim), _left(claim.left), *second, *last)
    reasons = [
        part
        for claim in made.claims
        if claim.note and not claim.agrees
        for part in (Text(claim.claim, style="bold"), Padding(Text(claim.note), (0, 0, 0, 2)))
    ]
    counts = Text(f"\n{made.paper}: {_agreement(made.counted)}")
    unlike = [Text(f"note: {text}", style="yellow") for text in fair.texts(made.checks, "unfair")]
    return Group(
        table, counts, *unlike, *([Text("\nWhy, where not", style="bold")] if reasons else []), *reasons, Text()
    )


STYLE = shell.asset("study.css")


_YES_NO = {None: "-", True: "yes", False: "no: number"}


def _left_text(claim: Claim, share: float | None) -> str:
    return f"{_left(share)} left: {claim.mechanism}" if share is not None else "-"


def _note(claim: Claim) -> str:
    """The note of a claim; a long one of a claim that agrees opens behind its first sentence."""
    first, *rest = re.split(r"(?<=\.) (?=[A-Z])", claim.note, maxsplit=1)
    if len(claim.note) < _LONG or not rest or not claim.agrees:
        return _cell(claim.note)
    return f"<details><summary>{_cell(first)}</summary>{_cell(rest[0])}</details>"


_LONG = 160


def _claims(made: Reproduction) -> str:
    """The claims as a table of the full width: a row for each, with number and mechanism of each setting."""
    both = made.has_both
    names = (("assumed", "implied") if both else ("ours",)) + ("real",) * made.has_real
    heads = ("claim", "paper", *names, "mechanism off", "note")

    def measured(claim: Claim, number: float | None, verdict: str) -> str:
        kind = verdict.partition(":")[0]
        shown = _number(number, claim.unit)
        return "-" if (shown, verdict) == ("-", "-") else f'{_cell(shown)}<br><b class="{kind}">{_cell(verdict)}</b>'

    rows = []
    for claim in made.claims:
        share = claim.implied_left if claim.implied_left is not None else claim.left
        cells = [_cell(_number(claim.paper, claim.unit)), measured(claim, claim.ours, _verdict(claim))]
        cells += [measured(claim, claim.implied, _verdict(claim, implied=True))] if both else []
        cells += [measured(claim, claim.real, _YES_NO[claim.real_number_agrees])] if made.has_real else []
        cells += [_cell(claim.data or _left_text(claim, share)), _note(claim)]
        body = "".join(
            f'<td data-head="{head}"{" class=none" if cell == "-" else ""}>{cell}</td>'
            for head, cell in zip(heads[1:], cells, strict=True)
        )
        rows.append(f'<tr><th scope="row">{_cell(claim.claim)}</th>{body}</tr>')
    titles = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return f'<div class="claims stacked wide"><table><tr>{titles}</tr>{"".join(rows)}</table></div>'


def _pictures(made: Reproduction, where: str) -> str:
    """The figures of a page; those of the implied setting and of real traces are beside the assumed one."""
    shown = [figure for figure in made.figures if figure.page == where]
    by_id = {figure.id: figure for figure in shown}
    rows = []
    for figure in shown:
        if any(figure.id.removesuffix(end) in by_id for end in _BESIDE if figure.id.endswith(end)):
            continue
        beside = [by_id[name] for end in _BESIDE if (name := f"{figure.id}{end}") in by_id]
        each = "".join(one.to_html(f"{made.paper}-") for one in (figure, *beside))
        rows.append(f'<div class="pair">{each}</div>' if beside else each)
    return "".join(rows)


_BESIDE = ("_implied", "_real")


def _not_covered(made: Reproduction) -> str:
    """The sentences of the paper that no claim tests, with the reasons."""
    rows = [shell.row((row["where"], row["says"], row["why"])) for row in made.stated if not row["claims"]]
    heads = shell.row(("section", "the paper says", "why there is no claim"), "th")
    said = f"{made.covered} of {len(made.stated)} sentences that state a number, an order or a cause are claims"
    table = f'<div class="claims wide">{shell.table("", [heads, *rows])}</div>'
    return f"<details><summary>{said}; the others</summary>{table}</details>" if rows else f"<p>{said}.</p>"


def _sections(made: Reproduction, *, alone: bool) -> Iterator[shell.Section]:
    """Claims, and figures; with other papers beside it a paper has one section."""
    folder = "" if alone else f"{made.paper}/"
    about = shell.folded("How it was run", "".join(f"<p>{_cell(sentence)}</p>" for sentence in made.about))
    others = "".join(
        f'<li><a href="{folder}{name}.html">{_cell(text)}</a></li>'
        for name, text in PAGES.items()
        if _pictures(made, name)
    )
    more = f'<div class="links"><h3>More</h3><ul>{others}</ul></div>' if others else ""
    unlike = shell.notes(fair.texts(made.checks, "unfair"))
    claims = f"{_claims(made)}{unlike}{_not_covered(made)}{about}"
    figures = f'<div class="figures">{_pictures(made, "")}</div>{more}'
    if alone:
        yield shell.Section(made.paper, "Claims", claims)
        yield shell.Section("figures", "Figures", figures)
    else:
        yield shell.Section(made.paper, made.title, f"{claims}<h3>Figures</h3>{figures}", short=made.paper)


def _counts(made: Reproduction) -> tuple[str, ...]:
    """Sentences, and claims that agree under each setting and by mechanism, of those that can fail."""
    counted, data = made.counted, len(made.claims) - len(made.counted)
    works = [held for claim in counted if (held := _holds(claim)) is not None]
    implied = [claim.implied_agrees for claim in counted if claim.implied_agrees is not None]
    shares = (_of([claim.agrees for claim in counted]), _of(implied), _of(works))
    return (str(len(made.stated)), str(made.covered), *shares, str(data))


def _head(made: Sequence[Reproduction]) -> str:
    """The answer: what holds, what does not, and why; cards for one paper, a row for each of several."""
    head = f'<h2 class="first">{words.HEADING}</h2>'
    if len(made) == 1:
        said = f'{head}<p class="answer">{_cell(made[0].answer)}</p>'
        return said + shell.tiles(zip(words.COUNTS, _counts(made[0]), words.EXPLAINED, strict=True))
    rows = [shell.row(("paper", *words.COUNTS), "th"), *(shell.row((each.paper, *_counts(each))) for each in made)]
    said = "".join(f"<p><b>{_cell(each.paper)}</b>: {_cell(each.answer)}</p>" for each in made)
    return f"{head}{shell.table('summary', rows)}{said}"


def _of(held: Sequence[bool]) -> str:
    return f"{sum(held)} of {len(held)}" if held else "-"


def _holds(claim: Claim) -> bool | None:
    works = holds(claim.implied_left)
    return works if works is not None else holds(claim.left)


def _agreement(claims: Sequence[Claim]) -> str:
    """The counts of the claims that can fail, from the verdicts of the table."""
    said = evidence.tally([claim.proof() for claim in claims]).text
    implied = [claim.proof(implied=True) for claim in claims if claim.implied_agrees is not None]
    return f"{said}; under the implied setting {evidence.tally(implied).text}" if implied else said


def page(made: Sequence[Reproduction]) -> str:
    """One page that needs nothing but itself: a summary, then claims and figures of each paper."""
    alone = len(made) == 1
    return shell.fill(
        title=made[0].title if alone else f"Reproductions: {', '.join(each.paper for each in made)}",
        under=_agreement([claim for each in made for claim in each.counted]),
        head=_head(made),
        sections=[section for each in made for section in _sections(each, alone=alone)],
        drawn={},
        style=STYLE,
    )


def _more_pages(made: Reproduction) -> dict[str, bytes | str]:
    """The pages of sweeps, of what goes beyond the paper, and of real traces, by file name."""
    pages: dict[str, bytes | str] = {}
    for name, text in PAGES.items():
        if pictures := _pictures(made, name):
            back = '<p class="links"><a href="index.html">Claims and figures</a></p>'
            section = shell.Section(name, text, f'{back}<div class="figures">{pictures}</div>')
            pages[f"{name}.html"] = shell.fill(
                title=made.title, under=text, head="", sections=[section], drawn={}, style=STYLE
            )
    return pages


def to_json(made: Sequence[Reproduction], folder: Path | None, *, each_apart: bool) -> str:
    """Output of `reproduce --json`: one object, or `{"reproductions": [...]}`; files by absolute paths."""
    whole = None if folder is None else folder.resolve()
    parts = [each.to_dict(whole / each.paper if whole and each_apart else whole) for each in made]
    return json.dumps({"reproductions": parts} if each_apart else parts[0], indent=2)


def write(made: Reproduction, folder: Path) -> None:
    """Writes data, pictures, reproduce.json and the pages of one paper.

    Args:
        made: the reproduction.
        folder: of the files; made if missing.

    Raises:
        OSError: a file could not be written.
    """
    # Names alone: the folder may be moved.
    write_page(folder, "reproduce", made.to_dict(Path()), page([made]), made.figures, _more_pages(made))


def write_all(made: Sequence[Reproduction], folder: Path) -> None:
    """Writes one page over all papers, whose files are in folders of their names.

    Raises:
        OSError: the file could not be written.
    """
    write_in_order(folder, [("index.html", page(made))])
