"""The word *holds*: a condition on a figure, with the interval of the figure as its evidence.

A condition holds if the figure is steady and the whole interval meets the bound. If the whole interval misses the
bound, the condition does not hold. Everything else is unknown.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .said import listed
from .steady import Evidence

STRADDLES = "its interval has the bound inside"
"""The reason of an unknown condition on a steady figure."""


def holds(meets: Callable[[float], bool], value: float, proof: Evidence) -> bool | None:
    """Whether a condition holds, by the test of one value; None if the evidence for the value does not tell."""
    if proof.verdict != "yes":
        return None
    met = {meets(bound) for bound in proof.interval or (value,)}
    return met.pop() if len(met) == 1 else None


def all_hold(known: Sequence[bool | None]) -> bool | None:
    """Whether all of several conditions hold: no if one does not, else unknown if one is unknown."""
    return False if False in known else None if None in known else True


def of_runs(found: Sequence[tuple[str, Sequence[Mapping[str, Any]]]]) -> str:
    """The runs that hold the conditions of `--slo`, and the figures or reasons of the others.

    Args:
        found: label, and the entries of `slo` in the result, of each run; at least one run.
    """
    wanted = " and ".join(each["condition"] for each in found[0][1])
    verdicts = {label: all_hold([each["holds"] for each in of]) for label, of in found}
    holding = [label for label, held in verdicts.items() if held]
    missed = [
        f"{label} has {listed([each['shown'] for each in of if each['holds'] is False])}"
        for label, of in found
        if verdicts[label] is False
    ]
    unknown = [
        f"{label} is unknown: {next(each['reason'] or STRADDLES for each in of if each['holds'] is None)}"
        for label, of in found
        if verdicts[label] is None
    ]
    none = "No run is known to hold" if unknown else "No run holds"
    head = f"{listed(holding)} {'holds' if len(holding) == 1 else 'hold'}" if holding else none
    return f"{'; '.join([f'{head} {wanted}', *missed, *unknown])}."


def counted(known: Sequence[bool | None]) -> str:
    """How many configurations of a sweep hold its conditions, and how many are unknown, in brackets."""
    unknown = sum(each is None for each in known)
    rest = f", {unknown:,} are unknown" if unknown else ""
    return f"({sum(each is True for each in known):,} of {len(known):,} configurations hold{rest})"


def none_of(asked: str, known: Sequence[bool | None]) -> str:
    """The beginning of a sentence on a sweep whose conditions no configuration is known to hold."""
    unknown = sum(each is None for each in known)
    if unknown:
        return f"No configuration is known to hold {asked} ({unknown:,} of {len(known):,} are unknown)"
    return f"No configuration holds {asked}"
