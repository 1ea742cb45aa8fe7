"""Palimpsest: a laboratory for solid-state drives.

>>> import palimpsest as ps
>>> ssd = ps.Ssd("mga-16k", ftl="mga", **{"part.nop": 4})
>>> result = ssd.run("hm_0.csv.zst", precondition="fill:90%")
>>> result.latency_ns["write"]["p99"]
>>> ps.compare(["page", "mga"], ssd="mga-16k", workload="trade")

Times are integers in nanoseconds and amounts of data are integers in bytes, everywhere. The same configuration,
workload and seed give the same figures on every machine.
"""

from . import native as _native  # noqa: F401  # chooses the native module before anything imports it
from . import views as _views
from ._core import version as _version
from .api import Ssd, compare, fio, load, run
from .errors import DeviceError, Error, InputError, Interrupted, RuleError, WorkloadIoError
from .result import Comparison, Result
from .result import show_with as _show_with
from .sweeps import Sweep, sweep

__all__ = [
    "Comparison",
    "DeviceError",
    "Error",
    "InputError",
    "Interrupted",
    "Result",
    "RuleError",
    "Ssd",
    "Sweep",
    "WorkloadIoError",
    "__version__",
    "compare",
    "fio",
    "load",
    "run",
    "sweep",
]

__version__ = _version()

_show_with(_views)
