"""A drive inside a program: requests in, completions with their times out.

>>> import palimpsest as ps
>>> drive = ps.Drive("default", ftl="subpage", **{"ssd.blocks_per_plane": 32})
>>> ticket = drive.submit("write", 0, 16384)
>>> while (time := drive.next_time()) is not None:
...     drive.advance(time)
...     for done in drive.completed():
...         print(done.ticket, done.time_ns, done.status)
>>> drive.finish().write_amplification

The program owns the clock. Times are integer nanoseconds from the end of preconditioning. `palimpsest help drive`
describes the order of events and power cuts. Ignored: commands of zones, and requests that the host aborts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _core
from .errors import InputError
from .layers import name_of
from .policies import keys as policy_keys
from .result import Result

Kind = Literal["read", "write", "trim", "flush"]
Status = Literal["done", "unreadable", "power lost", "worn out"]

_KINDS = ("read", "write", "trim", "flush")
_STATUSES: tuple[Status, ...] = ("done", "unreadable", "power lost", "worn out")


@dataclass(frozen=True, slots=True)
class Completion:
    """A completed request: ticket, time in ns, status, and the data of a read if cells store bytes."""

    ticket: int
    time_ns: int
    status: Status
    data: bytes


@dataclass(frozen=True, eq=False)
class Completions:
    """Completed requests in order of time; arrays have one element a request.

    `ticket` and `time_ns` are `uint64`; `status` is `uint8`, 0 for done, 1 unreadable, 2 power lost, 3 worn out.
    """

    ticket: npt.NDArray[np.uint64]
    time_ns: npt.NDArray[np.uint64]
    status: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.ticket)


class Moments:
    """Arrivals and completions of a drive. Another thread may take them while the drive serves a batch."""

    def __init__(self, core: _core.Moments) -> None:
        self._core = core

    def take(self) -> npt.NDArray[np.int64]:
        """Takes all in order, as rows: ticket, time in ns, 1 for a completion or 0, data bytes programmed so far."""
        return np.frombuffer(self._core.take(), np.int64).reshape(-1, 4)


def _completions(columns: tuple[bytes, bytes, bytes]) -> Completions:
    tickets, times, statuses = columns
    return Completions(
        np.frombuffer(tickets, np.uint64), np.frombuffer(times, np.uint64), np.frombuffer(statuses, np.uint8)
    )


def _column(name: str, values: object, length: int | None) -> npt.NDArray[np.uint64]:
    """`values`, a number or an array, as `uint64`. Raises InputError unless they are `length` whole numbers."""
    array = np.asarray(values)
    if array.ndim == 0 and length is not None:
        array = np.full(length, array)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and array.min() < 0):
        raise InputError(f"{name}: expected one dimension of whole numbers from 0, found {array.dtype} {array.shape}")
    if length is not None and array.size != length:
        raise InputError(f"{name}: {array.size} values for {length} requests; expected as many")
    return np.ascontiguousarray(array, np.uint64)


def _kinds(values: str | Sequence[str] | npt.NDArray[Any], length: int) -> npt.NDArray[np.uint8]:
    names = np.full(length, values) if isinstance(values, str) else np.asarray(values)
    found = np.full(names.shape, 255, np.uint8)
    for code, name in enumerate(_KINDS):
        found[names == name] = code
    if found.ndim != 1 or (found == 255).any():
        raise InputError(f"kinds: expected {', '.join(_KINDS)} for each request, found {values!r}"[:240])
    if found.size != length:
        raise InputError(f"kinds: {found.size} values for {length} requests; expected as many")
    return found


class Drive:
    """A simulated drive.

    Args:
        ssd: preset (`palimpsest list ssds`) or path of a TOML file.
        ftl: translation layer, or a class (`palimpsest.layers`); None for the layer of the preset.
        precondition: as `run --precondition`.
        payload: `"none"`, `"tag"` (every read and acknowledgement is verified) or `"bytes"` (reads return data).
        seed: seed of all random choices.
        workload: name of the workload in the figures.
        closed_loop: requests follow completions, so that times of arrival do not count as load.
        power_cuts: allows `power_cut`; needs a payload.
        policies: policies in Python by key, as for `run`.
        state: the result of `save` of a drive with the same settings; this drive continues at the time of that drive.
        **overrides: configuration keys with values.

    Raises:
        InputError: the drive, layer, key or value is unknown or has no effect.
    """

    def __init__(
        self, ssd: str | Path = "default", /, ftl: str | type | None = None, *, precondition: str = "none",
        payload: Literal["none", "tag", "bytes"] = "tag", seed: int = 1, workload: str = "palimpsest.Drive",
        closed_loop: bool = False, power_cuts: bool = False, policies: Mapping[str, object] | None = None,
        state: bytes | None = None, **overrides: object,
    ) -> None:  # fmt: skip
        overrides |= policy_keys(policies or {})
        keys = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in overrides.items()]
        self._core = _core.SimulatedDrive(
            str(ssd), name_of(ftl), keys, precondition, payload, seed, workload, closed_loop, power_cuts, state
        )

    @property
    def now(self) -> int:
        """Time of the drive in ns."""
        return self._core.now()

    @property
    def size(self) -> int:
        """Bytes of the drive."""
        return self._core.size()

    @property
    def unit_bytes(self) -> int:
        """Bytes of a unit of the layer's map: the best size of writes and trims."""
        return self._core.unit_bytes()

    @property
    def in_flight(self) -> int:
        """Requests that have not completed."""
        return self._core.in_flight()

    def next_time(self) -> int | None:
        """Time of the next event in ns; None if nothing happens until the next request."""
        return self._core.next_time()

    def submit(
        self, kind: Kind, offset: int = 0, size: int = 0, at: int | None = None, *, data: bytes | None = None,
        fua: bool = False, owner: int = 0, placement: int | None = None,
    ) -> int:  # fmt: skip
        """Submits a request at time `at` (default: now), after all earlier events; returns its ticket.

        `offset` and `size` are multiples of 512 bytes. `data` are the bytes of a write (payload `"bytes"`), `fua` is
        force unit access, `owner` the tenant, `placement` the placement identifier. Raises InputError for a time before
        `now`, and a request beyond the drive.
        """
        return self._core.submit(kind, offset, size, at, data, fua, owner, placement)

    def submit_many(
        self, kinds: str | Sequence[str] | npt.NDArray[Any], offsets: npt.ArrayLike, sizes: npt.ArrayLike,
        times: npt.ArrayLike,
    ) -> int | None:  # fmt: skip
        """Submits requests at their times; returns the first ticket, or None without requests.

        Arrays have one element a request; a single kind or size is that of all. Raises InputError for arrays of
        different lengths; requests before a wrong one are submitted.
        """
        at = _column("offsets", offsets, None)
        times_ns = _column("times", times, at.size)
        return self._core.submit_many(_kinds(kinds, at.size), at, _column("sizes", sizes, at.size), times_ns)

    def play(
        self, kinds: str | Sequence[str] | npt.NDArray[Any], offsets: npt.ArrayLike, sizes: npt.ArrayLike,
        depth: int = 1,
    ) -> Completions:  # fmt: skip
        """Keeps `depth` requests in flight until all of them have completed. Raises InputError as `submit_many`."""
        if depth < 1:
            raise InputError(f"depth {depth}: expected at least 1")
        at = _column("offsets", offsets, None)
        return _completions(self._core.play(_kinds(kinds, at.size), at, _column("sizes", sizes, at.size), depth))

    def advance(self, until: int) -> None:
        """Processes the events up to `until`, and stops early when a request has completed."""
        self._core.advance(until)

    def completed(self) -> list[Completion]:
        """Takes the requests that have completed, in order of time."""
        taken = self._core.completed()
        return [Completion(ticket, time, _STATUSES[status], data) for ticket, time, status, data in taken]

    def wait(self) -> Completions:
        """Processes events until no request is in flight; takes all completed requests, without their data."""
        return _completions(self._core.wait())

    def power_cut(self, at: int) -> None:
        """Schedules a power cut. Requests in flight then complete with `power lost`, and the drive recovers."""
        self._core.power_cut(at)

    def save(self) -> bytes:
        """Programs all buffered data, waits for all operations, and returns the state, for `state` of other drives.

        Raises InputError with requests in flight, for a worn-out drive, and for drives that store bytes, may lose
        power, have parity, or have a layer without a state.
        """
        return self._core.save()

    def watch(self) -> Moments:
        """Records each arrival and completion from now on, also within `submit_many`, `play` and `wait`."""
        return Moments(self._core.watch())

    def figures(self) -> Result:
        """The present result, without requests in flight."""
        return Result(json.loads(self._core.figures()))

    def finish(self) -> Result:
        """Waits for all operations, checks every conservation law, and ends the drive; returns the result."""
        return Result(json.loads(self._core.finish()))
