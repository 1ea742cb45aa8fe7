"""The word *agrees*: a claim of a paper, with its number and its mechanism as its evidence.

A number can agree although the paper's cause has nothing to do with it. So a claim agrees by number and mechanism only
if runs without the mechanism lose the effect; without such runs it agrees by number alone. Two files agree if no byte
differs. Ignored: the size of a disagreement, which the number has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .said import Said

AGREES, CONTRADICTS, UNDECIDED, DATA = "agrees", "contradicts", "undecided", "data"


def agrees(number: bool | None, mechanism: bool | None, *, data: bool = False) -> Said:
    """The verdict on a claim.

    Args:
        number: whether the number agrees; None if not measured.
        mechanism: whether the effect goes without the paper's cause; None if no run switches the cause off.
        data: the claim restates data, and cannot fail.
    """
    if data:
        return Said(DATA, "data")
    if number is None:
        return Said(UNDECIDED, "-", "not measured")
    failing = [name for name, found in (("number", number), ("mechanism", mechanism)) if found is False]
    if failing:
        return Said(CONTRADICTS, f"no: {' and '.join(failing)}", " and ".join(failing))
    # A claim whose cause was tested needs no further word in a column that says so for every row.
    return Said(AGREES, "yes") if mechanism else Said(AGREES, "yes: number", "no run switches its mechanism off")


@dataclass(frozen=True)
class Tally:
    """Numbers of claims by verdict; `by_both` and `by_number` divide those that agree."""

    by_both: int
    by_number: int
    contradict: int
    undecided: int
    data: int

    @property
    def counted(self) -> int:
        """The claims that can fail."""
        return self.by_both + self.by_number + self.contradict + self.undecided

    @property
    def text(self) -> str:
        """The numbers in one sentence, such as `3 of 5 claims agree by number and mechanism, 1 by number alone`."""
        if self.by_number and not self.by_both:
            said = f"{self.by_number} of {self.counted} claims agree by number alone: no mechanism was tested for them"
        else:
            said = f"{self.by_both} of {self.counted} claims agree by number and mechanism"
            said += f", {self.by_number} by number alone" if self.by_number else ""
        return f"{said}, {self.undecided} undecided" if self.undecided else said


def tally(claims: Sequence[tuple[bool | None, bool | None, bool]]) -> Tally:
    """The numbers of claims by verdict, from number, mechanism and data of each: see `agrees`."""
    verdicts = [(agrees(number, mechanism, data=data).verdict, mechanism) for number, mechanism, data in claims]

    def of(verdict: str) -> int:
        return sum(found == verdict for found, _ in verdicts)

    both = sum(found == AGREES and bool(mechanism) for found, mechanism in verdicts)
    return Tally(both, of(AGREES) - both, of(CONTRADICTS), of(UNDECIDED), of(DATA))


MECHANISM_UP_TO = "the mechanism holds up to"
"""Of a line in a picture: a mechanism is the cause if at most this share of the effect is left without it."""

COUNTS = ("stated", "covered", "assumed", "implied", "mechanism", "cannot fail")
"""Headings of the counts of a paper."""
EXPLAINED = (
    "sentences with a number, an order or a cause", "of them are claims here", "claims agree, open settings assumed",
    "claims agree, settings implied by the paper", "of the claims with a tested mechanism vanish without it",
    "claims are data",
)  # fmt: skip
"""A line below each count."""
HEADING = "What holds, what does not, and why"
COLUMN = "agrees"
AT_POINTS = "Claims that agree"


def nearest(*, agreeing: bool) -> str:
    """The end of a sentence on the swept value nearest to a paper's number."""
    return "which agrees" if agreeing else "which still differs: no unknown that was swept explains it alone"


def bytes_agree(differences: int) -> str:
    """Whether a repeated run gives the same bytes, from the number of figures and tables that differ."""
    return f"{differences} figures or tables differ" if differences else "every byte agrees"
