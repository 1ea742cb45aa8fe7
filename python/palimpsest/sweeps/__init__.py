"""Sweeps: a grid or list of configurations and workloads, run on all cores or a cluster, resumable.

Guide: docs/sweep.md.

`definition` reads the sweep file, `points` resolves and checks every point, an engine (`local`, `dask_engine`,
`ray_engine`) runs the unfinished ones, `store` keeps each outcome, `driver` connects these modules. `results` has the
finished points, which `table`, `charts`, `show` and `report` show.
"""

from .driver import sweep
from .finished import PointResult
from .results import Sweep, load

__all__ = ["PointResult", "Sweep", "load", "sweep"]
