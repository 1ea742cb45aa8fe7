"""Words on the life of a drive, with the erases of its blocks as their evidence.

A short run erases blocks that the precondition had filled. Projected lives of runs of 1,000 erases are 54 to 62 % off,
so a life needs 5 erases a block, and 10 with codes, which program a block several times between two erases. The rate of
a drive that never is without a request is its throughput, so a life at this rate assumes full load, day and night.
Ignored: erases of a fixed share of the fast cache, and wear before the run.
"""

import math
from collections.abc import Sequence

from .. import units
from ..result import Result, flatten
from .said import Said

ENOUGH, ENOUGH_CODED = 5, 10
"""Erases a block in the measured part, without codes and with them."""

NEEDS = f"{ENOUGH} erases a block, {ENOUGH_CODED} with codes"
"""The same in words."""

FIGURES = ("endurance.tbw", "endurance.dwpd_5_years", "endurance.years", "lifetime.projected_host_bytes")
"""Figures of a result that are lives."""

_BLOCKS = ("ssd.channels", "ssd.chips_per_channel", "ssd.dies_per_chip", "ssd.planes_per_die", "ssd.blocks_per_plane")
_SPANS = ((1.0, "years"), (365.25, "days"), (8766.0, "hours"), (525960.0, "minutes"))


def erases_a_block(result: Result) -> float | None:
    """Mean erases of a block in the measured part; None if the result lacks the erases or the geometry."""
    config, flash = result.get("config"), result.get("flash")
    if not isinstance(config, dict) or not isinstance(flash, dict) or "erases" not in flash:
        return None
    counts = [flatten(config).get(key) for key in _BLOCKS]
    if not all(isinstance(each, int) and each > 0 for each in counts):
        return None
    return float(flash["erases"]) / math.prod(each for each in counts if isinstance(each, int))


def needed(result: Result) -> int:
    """Erases a block that a life needs."""
    flash, worn = result.get("flash") or {}, result.get("lifetime") or {}
    return ENOUGH_CODED if flash.get("reprograms") or worn.get("reused_erases") else ENOUGH


def too_short(result: Result) -> str | None:
    """The reason why a run tells no life, with the number of requests that would; None if it tells one."""
    erases, least = erases_a_block(result), needed(result)
    if erases is None or erases >= least:
        return None
    said = f"{units.ratio(erases)} erases a block; expected {least}"
    if erases == 0:
        return f"no block was erased; expected {least} erases a block"
    requests = sum((result.get("requests") or {}).values()) * least / erases
    digits = 10 ** max(0, math.floor(math.log10(max(1.0, requests))) - 1)
    return f"{said}, about {units.count(math.ceil(requests / digits) * digits)} requests"


def leaves_out(result: Result, figure: str) -> bool:
    """Whether tables leave out a figure by its dotted name, because it is a life that the run does not tell."""
    return figure in FIGURES and too_short(result) is not None


def span(years: float) -> str:
    """A span of time in words: `12.3 years`, `32.1 minutes`."""
    factor, unit = next((each for each in _SPANS if years * each[0] >= 1), _SPANS[-1])
    return f"{units.number(years * factor)} {unit}"


def _is_full(result: Result) -> bool:
    """Whether the drive never was without a request, so that the rate of the run is its full load."""
    return bool((result.get("endurance") or {}).get("full_load"))


def at_rate(result: Result) -> str:
    """The load of a life in words: of the trace or rate, or full load."""
    return "at full load, day and night" if _is_full(result) else "at this load"


def lasts(result: Result) -> Said | None:
    """The life of the drive: how long at the load of the run, or else how many writes; None without a figure."""
    worn = result.get("endurance") or {}
    if worn.get("tbw") is None:
        return None
    if reason := too_short(result):
        return Said("unknown", f"the run is too short for a lifetime ({reason})", reason)
    if worn.get("years") is not None:
        return Said("yes", f"{at_rate(result)}, the drive lasts {span(worn['years'])}")
    return Said("yes", f"the drive endures {units.terabytes(worn['tbw'])} of writes")


def note(results: Sequence[Result]) -> list[str]:
    """The reasons why tables leave out the lives of several runs, equal ones once, and the load of lives in years.

    A single run states its own.
    """
    if len(results) < 2:
        return []
    reasons: dict[str, list[str]] = {}
    known = False
    for result in results:
        found = lasts(result)
        if found is not None and found.reason:
            reasons.setdefault(f"no lifetime: {found.reason}", []).append(result.label)
        known |= found is not None and not found.reason and _is_full(result)
    said = [f"{'' if len(of) == len(results) else ', '.join(of) + ': '}{why}" for why, of in reasons.items()]
    return said + ["years are for full load, day and night, because the requests wait for the drive"] * known
