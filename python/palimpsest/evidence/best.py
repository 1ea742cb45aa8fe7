"""The word *best*: the leader of a row of figures, with the evidence for every figure of the row.

A figure leads if no other is better as printed. A leader is best only if all figures of the row are steady, and if its
interval does not reach another's. Ignored: repetitions with other seeds.
"""

from collections.abc import Sequence

from .steady import Evidence


def is_best(marks: Sequence[bool], values: Sequence[float | None], proofs: Sequence[Evidence]) -> bool:
    """Whether the marked values of a row are best, and not merely ahead in these runs."""
    known = [
        (mark, value, proof) for mark, value, proof in zip(marks, values, proofs, strict=True) if value is not None
    ]
    if any(proof.verdict != "yes" for _, _, proof in known):
        return False
    ahead, others = (
        [proof.interval or (value, value) for mark, value, proof in known if mark is marked] for marked in (True, False)
    )
    return all(one[1] < other[0] or other[1] < one[0] for one in ahead for other in others)


def legend(rows: Sequence[bool]) -> str:
    """The meaning of the mark `*` in a table, from whether the marked value of each marked row is best."""
    if rows and all(rows):
        return "* best of its row"
    few = f"; known to be best in {sum(rows)} of {len(rows)} rows" if any(rows) else "; not known to be best"
    return f"* ahead in its row{few}, by the intervals of steady figures"


STAR = "★: ahead, and layers not decided to be worse"
"""The legend of a leaderboard, whose evidence is tests paired by seed."""


def leads(label: str, figures: str, *, first: bool) -> str:
    """A clause on a contender that tests decide to be better than all others at these figures."""
    return f"{label} {'is best ' if first else ''}at {figures}"


def undecided(contenders: int) -> str:
    """A sentence on contenders none of which is decided to be better than all others."""
    return f"No figure has a best of the {contenders} that is decided."
