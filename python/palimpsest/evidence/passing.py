"""The word *passed*: a suite of cases by kind, with the numbers of cases as its evidence."""

from collections.abc import Mapping

from .said import CAUTION, Said


def passed(reached: Mapping[str, tuple[int, int]], failed: str = "") -> Said:
    """The verdict on a suite: passed, passed in part, or failed.

    Args:
        reached: cases run and expected, by kind that the suite should reach.
        failed: the failure, if any.
    """
    if failed:
        return Said("failed", "failed", failed, 1)
    missing = [f"{kind} {cases:,} of {all_of:,}" for kind, (cases, all_of) in reached.items() if cases < all_of]
    if not any(cases for cases, _ in reached.values()):
        return Said("failed", "failed", "no case ran", 1)
    if missing:
        said = f"passed in part ({len(reached) - len(missing)} of {len(reached)} kinds)"
        return Said("passed in part", said, f"the time ended before all cases: {', '.join(missing)}", CAUTION)
    most = max(all_of for _, all_of in reached.values())
    return Said("passed", f"passed: {most:,} case{'' if most == 1 else 's'} of each of {len(reached)} kinds")


def passed_case(case: str) -> str:
    """A clause on one case that ran without a failure."""
    return f"passed case {case}"
