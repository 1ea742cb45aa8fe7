"""The policy `mine`: the block to clean next."""

import numpy as np

from palimpsest.policies import Candidates


class Mine:
    """Cost-age-times (Chiang and Chang 1999): cheap, old and little worn blocks first."""

    def choose(self, blocks: Candidates) -> int:
        """Returns the index of the block to clean, in the arrays of `blocks`."""
        cost = blocks.valid * (blocks.erases + 1)
        return int(np.argmin(cost / ((blocks.units - blocks.valid) * blocks.age)))
