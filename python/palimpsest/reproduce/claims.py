"""Claims of a paper beside measured numbers, and the rule by which they agree."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

__all__ = [
    "ASSUMED",
    "BOTH",
    "IMPLIED",
    "TOLERANCE",
    "Claim",
    "amount",
    "at_most",
    "distance",
    "effect",
    "judge",
    "more_than",
    "within",
]

ASSUMED, IMPLIED, BOTH = "assumed", "implied", "both"
"""Settings for everything that a paper leaves open: assumed, chosen blind; implied by the paper's numbers; both."""

TOLERANCE = 0.25
"""An effect agrees if the logarithm of the measured ratio differs from the paper's by at most this share."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a paper that states a number.

    Attributes:
        id: name that does not change.
        claim: the quantity, and the paper's statement.
        paper: the paper's number; a text for a range.
        ours: the number measured here.
        unit: of both.
        agrees: by the rule of the function that made the claim.
        note: where they differ, the measured reason; else remarks.
        implied: the number under the setting that the paper's own numbers imply; None where none is known or was run.
        implied_agrees: as `agrees`, of `implied`.
    """

    id: str
    claim: str
    paper: float | str
    ours: float | None
    unit: str
    agrees: bool
    note: str = ""
    implied: float | None = None
    implied_agrees: bool | None = None

    def with_note(self, note: str) -> "Claim":
        """The same claim with a note."""
        return replace(self, note=note)

    def beside(self, implied: "Claim") -> "Claim":
        """The same claim, with the number of the implied setting added."""
        note = f"{self.note} {implied.note}".strip()
        return replace(self, note=note, implied=implied.ours, implied_agrees=implied.agrees)

    def to_dict(self) -> dict[str, Any]:
        """The fields of the claim in the JSON contract."""
        return asdict(self)


def _rounded(ours: float | None) -> float | None:
    return None if ours is None else round(ours, 4)


def distance(ours: float, paper: float) -> float:
    """How far a change in percent is from the paper's, as a share of the paper's: both as logarithms of the ratio.

    So one fact has one distance: a latency of -56 % is IOPS of +127 %, and -66.8 % and +201 % are as far from them.
    """
    ours, paper = 1 + ours / 100, 1 + paper / 100
    return math.inf if ours <= 0 else abs(math.log(ours) - math.log(paper)) / abs(math.log(paper))


def effect(name: str, claim: str, paper: float, ours: float | None) -> Claim:
    """A claim of a change in percent, such as -53 %: see `distance`."""
    agrees = ours is not None and distance(ours, paper) <= TOLERANCE + 1e-9
    return Claim(name, claim, paper, _rounded(ours), "%", agrees)


def amount(name: str, claim: str, paper: float, ours: float | None, unit: str) -> Claim:
    """A claim of an amount that is no change: agrees if ours is at most a quarter larger, or the paper's than ours."""
    agrees = ours is not None and ours * paper > 0 and abs(math.log(ours / paper)) <= math.log(1 + TOLERANCE) + 1e-9
    return Claim(name, claim, paper, _rounded(ours), unit, agrees)


def within(name: str, claim: str, low: float, high: float, ours: float | None, unit: str, text: str) -> Claim:
    """A claim of a range, which includes `low` and not `high`; `text` is the paper's wording."""
    return Claim(name, claim, text, _rounded(ours), unit, ours is not None and low <= ours < high)


def at_most(name: str, claim: str, paper: float, ours: float | None, unit: str = "%") -> Claim:
    """A claim of an upper bound."""
    return Claim(name, claim, f"at most {paper:g}", _rounded(ours), unit, ours is not None and ours <= paper)


def more_than(name: str, claim: str, paper: float, ours: float | None, unit: str, text: str) -> Claim:
    """A claim of a lower bound, which ours must exceed; `text` is the paper's wording."""
    return Claim(name, claim, text, _rounded(ours), unit, ours is not None and ours > paper)


def judge(name: str, described: Mapping[str, Any], ours: float | None) -> Claim:
    """The claim of a paper's TOML beside a measured number.

    Args:
        name: id of the claim.
        described: `text`, `rule` (a function of this module), and the arguments of the rule: `paper`, or `low` and
            `high`; `unit` (% by default); `said`, the paper's wording of a range. The rule `holds` has `holds`, whether
            the claim agrees.
        ours: the measured number.
    """
    text, unit = described["text"], described.get("unit", "%")
    paper: Any = described.get("paper")
    match described["rule"]:
        case "effect":
            return effect(name, text, paper, ours)
        case "amount":
            return amount(name, text, paper, ours, unit)
        case "at_most":
            return at_most(name, text, paper, ours, unit)
        case "more_than":
            return more_than(name, text, paper, ours, unit, described["said"])
        case "within":
            return within(name, text, described["low"], described["high"], ours, unit, described["said"])
        case "holds":
            return Claim(name, text, described["said"], _rounded(ours), unit, described["holds"])
        case rule:
            raise ValueError(f"claim {name}: no rule is called {rule}")
