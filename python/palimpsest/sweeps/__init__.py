"""Sweeps: a grid or list of configurations and workloads, run on all cores or a cluster, resumable.

`definition` reads the sweep file, `points` resolves and checks every point, an engine (`local`, `dask_engine`,
`ray_engine`) runs what is not finished, `store` keeps each outcome, `driver` ties them together. The outcome is
`finished`; `table`, `charts`, `show` and `report` show it, and `results` has all of them as methods. docs/sweep.md is
the guide.
"""

from .driver import sweep
from .finished import PointResult
from .results import Sweep, load

__all__ = ["PointResult", "Sweep", "load", "sweep"]
