"""Response times of requests, reduced to their mean and those percentiles that ten requests exceed."""

import numpy as np
from numpy.typing import ArrayLike

_SHARES = {"p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
FIGURES = ("mean", *_SHARES)
"""What times are reduced to."""
_BEYOND = 10


def figures(nanoseconds: ArrayLike) -> dict[str, float]:
    """Mean and percentiles in microseconds, of response times in nanoseconds; empty without times.

    >>> figures([1000.0, 3000.0])
    {'mean': 2.0}
    """
    times = np.sort(np.asarray(nanoseconds, dtype=float)) / 1000
    if not times.size:
        return {}
    kept = {name: share for name, share in _SHARES.items() if len(times) * (1 - share) >= _BEYOND}
    at = {name: float(times[min(len(times) - 1, int(np.ceil(share * len(times))) - 1)]) for name, share in kept.items()}
    return {"mean": float(times.mean()), **at}
