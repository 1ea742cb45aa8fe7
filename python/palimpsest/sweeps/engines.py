"""The engines that run the points of a sweep. One file each, and one line here.

An engine is a generator, `outcomes(tasks, address, jobs, watch)`: it yields the outcome of every point once, in order
of completion, and ends all work when closed. It writes no file. An engine whose cluster takes long to join also has a
context `session(address)`, in which all points share a connection.
"""

import contextlib
import functools
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..distribution import install
from ..errors import InputError
from .task import Outcome, Task, Watch

Engine = Callable[[Sequence[Task], str | None, int | None, Watch], Iterator[Outcome]]

# Name: module, required package, example of an address.
ENGINES: dict[str, tuple[str, str | None, str | None]] = {
    "local": ("local", None, None),
    "dask": ("dask_engine", "distributed", "tcp://host:8786"),
    "ray": ("ray_engine", "ray", "host:6379 or auto"),
}


def find(name: str, address: str | None, point_timeout: float | None = None) -> Engine:
    """Returns the engine of a name. Raises InputError if it is unknown, not installed, or does not take the options."""
    if name not in ENGINES:
        raise InputError(f"--engine {name}: there is no such engine; expected one of {', '.join(ENGINES)}")
    module, package, example = ENGINES[name]
    if example is None and address is not None:
        raise InputError(
            f"--address {address}: the engine {name} has no cluster; expected --engine dask or ray beside it"
        )
    if example is not None and address is None:
        raise InputError(f"--engine {name}: expected the cluster's --address, such as {example}")
    if example is not None and point_timeout is not None:
        raise InputError(
            f"--point-timeout: the engine {name} cannot end a point of its workers; expected --engine local"
        )
    if package is not None and importlib.util.find_spec(package) is None:
        raise InputError(f"--engine {name}: the package {package} is not installed; expected {install(name)} before it")
    outcomes: Any = importlib.import_module(f".{module}", __package__).outcomes
    engine: Engine = outcomes if point_timeout is None else functools.partial(outcomes, point_timeout=point_timeout)
    return engine


def session(name: str, address: str | None) -> contextlib.AbstractContextManager[None]:
    """Keeps an engine of `find` joined to its cluster; does nothing if joining takes no time. Raises InputError."""
    module = importlib.import_module(f".{ENGINES[name][0]}", __package__)
    joined: contextlib.AbstractContextManager[None] = (
        module.session(address) if hasattr(module, "session") else contextlib.nullcontext()
    )
    return joined
