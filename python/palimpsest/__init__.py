"""Palimpsest: a laboratory for solid-state drives.

>>> import palimpsest as ps
>>> ssd = ps.Ssd("mga-16k", ftl="mga", **{"part.nop": 4})
>>> result = ssd.run("hm_0.csv.zst", precondition="fill:90%")
>>> result.latency_ns["write"]["p99"]
>>> ps.compare(["page", "mga"], ssd="mga-16k", workload="trade")

Times are integers in nanoseconds and amounts of data are integers in bytes, everywhere. The same configuration,
workload and seed give the same figures on every machine.
"""

try:
    from . import interrupts as _interrupts

    _interrupts.while_loading()
    from . import distribution as _distribution

    _distribution.refuse_other()
except KeyboardInterrupt:
    from . import interrupts as _interrupts

    _interrupts.end_command()
    raise

import importlib
from typing import TYPE_CHECKING, Any

from . import native as _native  # noqa: F401  # chooses the native module before anything imports it
from . import views as _views
from .result import Comparison, Result
from .result import show_with as _show_with

if TYPE_CHECKING:
    from ._core import version as _version
    from .api import Ssd, compare, fio, load, replicate, run, serve_nvme, trace
    from .drives import Drive
    from .errors import DeviceError, Error, InputError, Interrupted, LayerError, PolicyError, RuleError, WorkloadIoError
    from .fits import fit
    from .states import keep_states
    from .sweeps import Sweep, sweep

    __version__: str = _version()

__all__ = [
    "Comparison", "DeviceError", "Drive", "Error", "InputError", "Interrupted", "LayerError", "PolicyError", "Result",
    "RuleError", "Ssd", "Sweep", "WorkloadIoError", "__version__", "compare", "fio", "fit", "keep_states", "load",
    "replicate", "run", "serve_nvme", "sweep", "trace",
]  # fmt: skip

_MODULES = {
    "api": ("Ssd", "compare", "fio", "load", "replicate", "run", "serve_nvme", "trace"),
    "drives": ("Drive",),
    "errors": (
        "DeviceError",
        "Error",
        "InputError",
        "Interrupted",
        "LayerError",
        "PolicyError",
        "RuleError",
        "WorkloadIoError",
    ),
    "fits": ("fit",),
    "states": ("keep_states",),
    "sweeps": ("Sweep", "sweep"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

_show_with(_views)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each name has a type of its own
    """Imports a name when it is first used, because the command must handle interrupts before the rest is loaded."""
    if name == "__version__":
        value = importlib.import_module("._core", __name__).version()
    elif name in _MODULE_OF:
        value = getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
