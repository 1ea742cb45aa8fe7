"""Sweeps: a grid or list of configurations and workloads, run on all cores or a cluster, resumable.

`definition` reads the sweep file, `points` resolves and checks every point, an engine (`local`, `dask_engine`,
`ray_engine`) runs what is not finished, `store` keeps each outcome, `driver` ties them together; `results`, `table`,
`charts`, `show` and `report` are what comes out. docs/sweep.md is the guide.
"""

from .driver import sweep
from .results import PointResult, Sweep, load

__all__ = ["PointResult", "Sweep", "load", "sweep"]
