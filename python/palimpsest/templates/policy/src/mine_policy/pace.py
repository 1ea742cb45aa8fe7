"""The policy `mine`: the writes of the host over which the moves of a victim spread."""

from palimpsest.policies import Chosen


class Mine:
    """At once while the die has nothing to do; otherwise as slowly as the built-in pace."""

    def spread(self, victim: Chosen) -> int:
        """Returns the host pages over which the moves spread: from 0, all at once, to `victim.most`."""
        return victim.most if victim.load > 0 else 0
