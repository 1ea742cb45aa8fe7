"""The policy `mine`: the class of each request, and so the stream of each write."""

import numpy as np
import numpy.typing as npt

from palimpsest.policies import Requests


class Mine:
    """Requests of 64 KiB and more are cold."""

    def classify(self, requests: Requests) -> npt.NDArray[np.bool_]:
        """Returns the class of each request."""
        return requests.size >= 65536
