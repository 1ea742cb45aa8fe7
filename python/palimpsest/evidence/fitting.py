"""The word *fits*: a drive beside a real one, with deviations, their bounds and the determined keys as its evidence.

A kind of figure fits if its mean absolute deviation is within its bound. The bounds are like the bars of `validate`: 10
% of means, rates and write amplification, and more for figures that a few requests decide (2.5 times the deviation that
a search counts as one: 20 % of a 99th percentile). A whole drive fits if every kind of figure fits and the measurements
determine some key: a drive whose keys are all open is the drive of the start. Held-out figures are the evidence if
there are any, because a search can always approach the figures that it sees. Ignored: figures of kinds that were not
measured, for which nothing is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .said import CAUTION, Said, listed

BOUND = 0.10
_TOLERANCES = 2.5
"""Bounds of figures with a large tolerance, in tolerances."""

FITS, DOES_NOT, UNDECIDED = "fits", "does not fit", "undecided"


def bound(tolerance: float) -> float:
    """The bound of a figure whose deviation counts as one from `tolerance` on; both are shares of the real figure."""
    return max(BOUND, _TOLERANCES * tolerance)


@dataclass(frozen=True)
class Deviations:
    """The evidence for a kind of figure: deviations as shares of the real figures, and their bound.

    `missing` counts figures that the drive does not model; `predicted`: the search did not see these figures.
    """

    figure: str
    shares: tuple[float, ...]
    bound: float
    missing: int = 0
    predicted: bool = False

    @property
    def mean(self) -> float | None:
        """The mean absolute deviation as a share; None without a modelled figure."""
        return sum(map(abs, self.shares)) / len(self.shares) if self.shares else None


def fits(found: Deviations) -> Said:
    """The verdict on a kind of figure."""
    if found.mean is None:
        return Said(UNDECIDED, f"{found.figure} is undecided", "the drive models none of these figures", CAUTION)
    off = f"{100 * found.mean:.2g} % off"
    if found.mean > found.bound:
        said = f"{found.figure} is {off}, with a bound of {100 * found.bound:.0f} %"
        return Said(DOES_NOT, said, f"{off}; expected at most {100 * found.bound:.0f} %", CAUTION)
    return Said(FITS, f"{found.figure} fits ({off})")


def whole(found: Sequence[Deviations], determined: Mapping[str, bool], others: Sequence[Deviations] = ()) -> Said:
    """The verdict on a drive.

    Args:
        found: the kinds of figures.
        determined: whether the measurements determine a key, by key.
        others: predicted kinds of figures at drives that reproduce the fitted figures as well.
    """
    of_kinds = [fits(each) for each in found]
    wrong = [each.text for each in of_kinds if each.verdict == DOES_NOT]
    if wrong:
        return Said(DOES_NOT, f"the drive does not fit: {listed(wrong)}", "; ".join(wrong), CAUTION)
    how = "predicted" if any(each.predicted for each in found) else "by the figures that it was fitted to"
    for why in _doubts(found, determined, others):
        return Said(UNDECIDED, f"whether the drive fits is undecided: {why}", why, CAUTION)
    bounds = sorted({round(100 * each.bound) for each in found})
    said = f"the drive fits within {listed([str(each) for each in bounds])} %, {how}"
    loose = [key for key, is_known in determined.items() if not is_known]
    return Said(FITS, f"{said}; not determined: {', '.join(loose)}" if loose else said)


def _doubts(found: Sequence[Deviations], determined: Mapping[str, bool], others: Sequence[Deviations]) -> list[str]:
    """Reasons why figures within their bounds are no evidence for the drive."""
    doubts = []
    if not any(each.shares for each in found):
        doubts.append("the drive models none of the figures")
    if determined and not any(determined.values()):
        keys = listed(list(determined))
        doubts.append(f"the measurements do not determine {keys}")
    doubts += [
        f"another drive that reproduces the fitted figures as well predicts {each.figure} {100 * each.mean:.2g} % off"
        for each in others
        if each.mean is not None and each.mean > each.bound
    ]
    return doubts


@dataclass(frozen=True)
class Rows:
    """The evidence for a kind of figure of a preset: rows within their bars, and all judged rows.

    `predicted`: the preset was not fitted to these rows. `farthest` describes the row that misses its bar most.
    """

    figure: str
    within: int
    judged: int
    predicted: bool
    farthest: str = ""


def preset(found: Rows) -> Said:
    """The verdict on a kind of figure of a preset: it fits if every judged row is within its bar."""
    rows = f"{found.within} of {found.judged} rows"
    if not found.judged:
        return Said(UNDECIDED, "undecided", "no row is judged")
    if found.within < found.judged:
        return Said(DOES_NOT, "does not fit", f"{rows} within their bars; farthest {found.farthest}", CAUTION)
    if not found.predicted:
        return Said(UNDECIDED, "undecided", "the preset was fitted to every row")
    return Said(FITS, "fits")


def presets(drives: Mapping[str, Mapping[str, Said]]) -> Said:
    """The verdict on all presets, from those on the kinds of figures of each: which figures may be trusted."""
    if not drives:
        return Said(UNDECIDED, "undecided: no row was judged", "no row was judged", CAUTION)
    said, wrong = [], []
    for drive, kinds in drives.items():
        parts = []
        for verdict in (FITS, DOES_NOT, UNDECIDED):
            named = [kind for kind, each in kinds.items() if each.verdict == verdict]
            parts += [f"{'is ' * (verdict == UNDECIDED)}{verdict} in {listed(named)}"] if named else []
            wrong += [f"{drive}: {listed(named)}"] if named and verdict == DOES_NOT else []
        said.append(f"{drive} {', '.join(parts)}")
    text = ". ".join(said)
    if wrong:
        return Said(DOES_NOT, text, "; ".join(wrong), CAUTION)
    if not any(each.verdict == FITS for kinds in drives.values() for each in kinds.values()):
        return Said(UNDECIDED, text, "no row was predicted", CAUTION)
    return Said(FITS, text)
