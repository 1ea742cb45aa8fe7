"""Sweeps: a grid or list of configurations and workloads, run on all cores or a cluster, resumable.

Guide: docs/sweep.md.

`definition` reads the sweep file, `points` resolves and checks every point, an engine (`local`, `dask_engine`,
`ray_engine`) runs the unfinished ones, `store` keeps each outcome, `driver` connects these modules. `results` has the
finished points, which `table`, `charts`, `show` and `report` show.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .driver import sweep
    from .finished import PointResult
    from .results import Sweep, load

__all__ = ["PointResult", "Sweep", "load", "sweep"]

_MODULES = {"PointResult": "finished", "Sweep": "results", "load": "results", "sweep": "driver"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each name has a type of its own
    """Imports a name when it is first used, because most commands import a module of this package, and no driver."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    return value
