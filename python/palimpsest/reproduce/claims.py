"""Claims of a paper beside measured numbers, and the rules by which they agree: by number, and by mechanism.

A number can agree although the paper's mechanism has nothing to do with it. So the same runs are repeated with the
mechanism off, and a claim agrees only if its number does and at most half of the effect is left (`LEFT_AT_MOST`).
Ignored: mechanisms that act only together; each is switched off alone.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from .. import evidence

__all__ = [
    "ASSUMED", "BOTH", "IMPLIED", "LEFT_AT_MOST", "TOLERANCE", "Claim", "amount", "at_most", "distance", "effect",
    "holds", "judge", "left", "more_than", "within",
]  # fmt: skip

ASSUMED, IMPLIED, BOTH = "assumed", "implied", "both"
"""Settings for everything that a paper leaves open: assumed, chosen blind; implied by the paper's numbers; both."""

TOLERANCE = 0.25
"""An effect agrees if the logarithm of the measured ratio differs from the paper's by at most this share."""

LEFT_AT_MOST = 50.0
"""A mechanism holds if the runs without it have at most this percentage of the effect."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a paper that states a number.

    Attributes:
        id: name that does not change.
        claim: the quantity, and the paper's statement.
        paper: the paper's number; a text for a range.
        ours: the number measured here.
        unit: of both.
        agrees: whether the number agrees, by the rule of the function that made the claim, and the mechanism holds.
        note: where they differ, the measured reason; else remarks.
        implied: the number under the setting that the paper's own numbers imply; None where none is known or was run.
        implied_agrees: as `agrees`, of `implied`.
        mechanism: the paper's cause, as what is switched off; empty where no run switches it off.
        left: percentage of the effect that is left without the mechanism; None if not measured.
        implied_left: as `left`, at the implied setting.
        number_agrees: whether the number alone agrees.
        implied_number_agrees: as `number_agrees`, of `implied`.
        data: why the row cannot fail, for data that are entered and computed back; such a row is not counted.
        cause: name of the mechanism in the TOML.
        neutral: the number that says "no effect"; None for a change in percent.
        real: the number of real traces at the assumed setting; None if none was found that the claim needs.
        real_number_agrees: as `number_agrees`, of `real`.
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
    mechanism: str = ""
    left: float | None = None
    implied_left: float | None = None
    number_agrees: bool | None = None
    implied_number_agrees: bool | None = None
    data: str = ""
    cause: str = ""
    neutral: float | None = None
    real: float | None = None
    real_number_agrees: bool | None = None

    def with_note(self, note: str) -> "Claim":
        """The same claim with a note."""
        return replace(self, note=note)

    def beside(self, implied: "Claim") -> "Claim":
        """The same claim, with the number of the implied setting added."""
        return replace(
            self,
            note=f"{self.note} {implied.note}".strip(),
            implied=implied.ours,
            implied_agrees=implied.agrees,
            implied_left=implied.left,
            implied_number_agrees=implied.number_agrees,
            mechanism=self.mechanism or implied.mechanism,
        )

    def replayed(self, real: "Claim") -> "Claim":
        """The same claim, with the number of real traces added."""
        return replace(self, real=real.ours, real_number_agrees=None if real.ours is None else real.number_agrees)

    def without(self, says: str, share: float | None) -> "Claim":
        """The same claim, with the share of the effect (percent) that runs without the mechanism have."""
        agrees = self.agrees and (share is None or share <= LEFT_AT_MOST)
        return replace(self, mechanism=says, left=_rounded(share), agrees=agrees)

    def proof(self, *, implied: bool = False) -> tuple[bool | None, bool | None, bool]:
        """Whether the number agrees, whether the mechanism holds, both None if not measured, and whether it is data."""
        ours, share = (self.implied, self.implied_left) if implied else (self.ours, self.left)
        number = self.implied_number_agrees if implied else self.number_agrees
        # A claim beside no paper's number, as a test makes it, has its answer alone.
        number = (self.implied_agrees if implied else self.agrees) if number is None else number
        return None if ours is None else number, holds(share), bool(self.data)

    def verdict(self, *, implied: bool = False) -> evidence.Said:
        """Whether the claim agrees, and by its number alone or also by its mechanism."""
        number, mechanism, data = self.proof(implied=implied)
        return evidence.agrees(number, mechanism, data=data)

    def to_dict(self) -> dict[str, Any]:
        """The fields of the claim in the JSON contract, with `verdict` and whether the mechanism holds."""
        kept = {name: value for name, value in asdict(self).items() if name not in ("cause", "neutral")}
        return kept | {
            "verdict": self.verdict().verdict,
            "mechanism_holds": holds(self.left), "implied_mechanism_holds": holds(self.implied_left),
        }  # fmt: skip


def holds(share: float | None) -> bool | None:
    """Whether a mechanism holds by the percentage of the effect that is left without it; None if not measured."""
    return None if share is None else share <= LEFT_AT_MOST


def left(claim: Claim, without: float | None) -> float | None:
    """The percentage of a claim's effect that a run without the mechanism has; None if there is no effect.

    Args:
        claim: at the same setting with the mechanism. Changes in percent compare as logarithms of the ratios, other
            numbers by their distance from `neutral`.
        without: the number of the run without the mechanism.
    """
    if claim.ours is None or without is None:
        return None
    if claim.neutral is None:
        if min(claim.ours, without) <= -100 or claim.ours == 0:
            return None
        return 100 * math.log1p(without / 100) / math.log1p(claim.ours / 100)
    effect = claim.ours - claim.neutral
    return 100 * (without - claim.neutral) / effect if effect else None


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
            the claim agrees. `mechanism` names the cause in `[mechanism.off]`, `neutral` the number without any
            effect (1 of ratios, else 0), `data` says why the row cannot fail.
        ours: the measured number.
    """
    made, rule, unit = _by_rule(name, described, ours), described["rule"], described.get("unit", "%")
    changes = rule == "effect" or (unit == "%" and "neutral" not in described)
    neutral = None if changes else described.get("neutral", 1.0 if unit == "times" else 0.0)
    cause, data = described.get("mechanism", ""), described.get("data", "")
    return replace(made, number_agrees=made.agrees, cause=cause, neutral=neutral, data=data)


def _by_rule(name: str, described: Mapping[str, Any], ours: float | None) -> Claim:
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
