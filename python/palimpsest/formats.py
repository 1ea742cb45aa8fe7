"""Trace formats in Python, of plug-ins: a class yields the requests of a trace, which the simulator reads in chunks.

    class Mine:
        def requests(self, trace):
            for line in trace:
                time, kind, offset, size = line.split()
                yield int(time), "read" if kind == b"R" else "write", int(offset), int(size)

`trace` is a binary file: the trace without compression. A request is a tuple: time (ns, by the clock of the trace),
kind (`"read"`, `"write"`, `"trim"` or `"flush"`), first byte, bytes, and perhaps the number of the stream. For speed,
the elements may be numpy arrays of one length, a request each. Times, addresses and sizes have the rules of
`palimpsest help traces`. Ignored: names of files, placement, and traces in these formats as output.
"""

import io
import struct
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from . import plugins
from ._core import PolicyError, TraceBytes

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_KINDS = ("read", "write", "trim", "flush")
_RECORD = struct.Struct("<QQQII")
_CHUNK = 4096 * _RECORD.size
_PARTS = (4, 5)


class Format(Protocol):
    """A trace format."""

    def requests(self, trace: BinaryIO, /) -> Iterable[tuple[Any, ...]]:
        """Yields the requests of `trace`, in the order of the trace: see the module."""


class _Raw(io.RawIOBase):
    def __init__(self, trace: TraceBytes) -> None:
        self._trace = trace

    def readable(self) -> bool:
        return True

    def readinto(self, into: "WriteableBuffer", /) -> int:
        view = memoryview(into).cast("B")
        found = self._trace.read(len(view))
        view[: len(found)] = found
        return len(found)


def records(name: str, trace: TraceBytes) -> Iterator[bytes]:
    """The requests of a trace, as records of `trace::outside`. Raises InputError; PolicyError if the format fails."""
    made, _ = plugins.trace_format(name)
    count, chunk = 0, bytearray()
    try:
        requests = iter(made().requests(io.BufferedReader(_Raw(trace), 1 << 16)))
        for request in requests:
            if not isinstance(request, tuple) or len(request) not in _PARTS:
                shown = repr(request)[:80]
                raise _Wrong(f"{shown}; expected a tuple of time, kind, first byte, bytes and perhaps stream")
            chunk += _arrays(request) if any(hasattr(part, "dtype") for part in request) else _packed(*request)
            count += 1
            if len(chunk) >= _CHUNK:
                yield bytes(chunk)
                chunk.clear()
    except _Wrong as wrong:
        raise PolicyError(f"format {name}: request {count + 1}: {wrong}") from None
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        where = f"after {count} requests" if count else "before the first request"
        raise PolicyError(f"format {name}: {where}: {type(error).__name__}: {error}") from error
    yield bytes(chunk)


class _Wrong(Exception):
    """A request that is none."""


def _packed(time: object, kind: object, offset: object, size: object, stream: object = 0) -> bytes:
    if kind not in _KINDS:
        raise _Wrong(f"kind {kind!r:.80}; expected {', '.join(_KINDS)}")
    try:
        return _RECORD.pack(time, offset, size, _KINDS.index(kind), stream)
    except struct.error:
        numbers = f"time {time!r:.40}, first byte {offset!r:.40}, bytes {size!r:.40}, stream {stream!r:.40}"
        raise _Wrong(f"{numbers}; expected whole numbers from 0, in ns and bytes") from None


def _arrays(request: tuple[Any, ...]) -> bytes:
    import numpy as np

    time, kind, offset, size, stream = (*request, 0)[: max(_PARTS)]
    numbers = {"time": time, "first byte": offset, "bytes": size, "stream": stream}
    for what, column in numbers.items():
        wrong = np.asarray(column)
        if wrong.dtype.kind not in "iu" or (wrong.size and wrong.min() < 0):
            raise _Wrong(f"{what}: an array of {wrong.dtype}; expected whole numbers from 0, in ns and bytes")
    kinds = np.asarray(kind)
    codes = np.full(kinds.shape, len(_KINDS), np.uint32)
    for code, word in enumerate(_KINDS):
        codes[kinds == word] = code
    if (codes == len(_KINDS)).any():
        raise _Wrong(f"kind {kinds[codes == len(_KINDS)].flat[0]!r:.80}; expected {', '.join(_KINDS)}")
    try:
        columns = np.broadcast_arrays(*numbers.values(), codes)
    except ValueError:
        raise _Wrong("arrays of several lengths; expected one length") from None
    table = np.empty(columns[0].size, "<u8,<u8,<u8,<u4,<u4")
    for field, column in zip(("f0", "f1", "f2", "f4", "f3"), columns, strict=True):
        table[field] = column.ravel()
    return table.tobytes()
