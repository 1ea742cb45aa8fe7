"""The history of a recorded program: requests to its disk, and its output between them.

`crates/server/src/crash.rs` writes the log. A disk has units of bytes (4 KiB, the block of the loop device): a power
cut keeps or loses the write of a unit as a whole. A request is a list of units with their contents after the request,
unwritten bytes included. A digest of 128 bits identifies contents; zeros have none. Zeros over zeros are no change.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path

from ..errors import InputError

MAGIC = b"PALCRSH1"
_RUN_UNITS = 256
_HEAD = struct.Struct("<BB6xQQ")
_WRITE, _FLUSH, _ZERO, _TEXT, _MARK = range(5)

WRITE, FLUSH, TEXT = "write", "flush", "text"

ZEROS = b""
"""The digest of zeros."""


@dataclass(frozen=True, slots=True)
class Event:
    """A request, or output (`text`).

    A write has its changed `units` with the digests of their new contents; a `durable` write is acknowledged when
    durable; a write of `zeros` may be an unmap.
    """

    kind: str
    units: tuple[tuple[int, bytes], ...] = ()
    durable: bool = False
    offset: int = 0
    length: int = 0
    zeros: bool = False
    text: bytes = b""


@cache
def place_of(unit: int, digest: bytes) -> int:
    """The summand of a unit with these contents in the sum that identifies the contents of a disk; 0 for zeros."""
    if not digest:
        return 0
    return int.from_bytes(blake2b(unit.to_bytes(8, "little") + digest, digest_size=16).digest(), "little")


def adjacent(units: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, list[bytes]]]:
    """Groups units in ascending order into runs of at most 256 neighbours: the first unit, and the digests of all."""
    first, digests = -1, list[bytes]()
    for unit, digest in units:
        if digests and (unit != first + len(digests) or len(digests) == _RUN_UNITS):
            yield first, digests
            digests = []
        if not digests:
            first = unit
        digests.append(digest)
    if digests:
        yield first, digests


@dataclass
class History:
    """The events since all earlier writes were durable.

    `base` has the contents at that moment without zeros, `contents` the data of each digest; the program ended before
    event `ended`.
    """

    unit: int
    size: int
    base: dict[int, bytes] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    ended: int = 0
    contents: dict[bytes, bytes] = field(default_factory=dict)
    _versions: dict[int, list[tuple[int, bytes]]] | None = None
    _sums: list[int] | None = None

    def versions(self, unit: int) -> list[tuple[int, bytes]]:
        """The contents of a unit: of the base (-1), and of each event that wrote the unit."""
        if self._versions is None:
            self._versions = {}
            for number, event in enumerate(self.events):
                for each, digest in event.units:
                    known = self._versions.setdefault(each, [(-1, self.base.get(each, ZEROS))])
                    known.append((number, digest))
        return self._versions.get(unit) or [(-1, self.base.get(unit, ZEROS))]

    def version_at(self, unit: int, stop: int) -> tuple[int, bytes]:
        """The last contents of a unit before event `stop`."""
        known = self.versions(unit)
        return known[bisect_left(known, (stop, b"")) - 1]

    def digest_of(self, unit: int, number: int) -> bytes:
        """The contents that event `number` wrote to a unit; -1 for the base."""
        return self.version_at(unit, number + 1)[1]

    def sum_at(self, stop: int) -> int:
        """The sum that identifies the contents of the disk after all events before `stop`."""
        if self._sums is None:
            total = sum(place_of(unit, digest) for unit, digest in self.base.items())
            current = dict(self.base)
            self._sums = [total]
            for event in self.events:
                for unit, digest in event.units:
                    total += place_of(unit, digest) - place_of(unit, current.get(unit, ZEROS))
                    current[unit] = digest
                self._sums.append(total)
        return self._sums[stop]

    def image_at(self, stop: int) -> dict[int, bytes]:
        """The digest of each unit without zeros after all events before `stop`."""
        image = dict(self.base)
        for event in self.events[:stop]:
            image.update(event.units)
        return {unit: digest for unit, digest in image.items() if digest}

    def last_said(self, stop: int) -> int:
        """The number after the last output before event `stop`; 0 without output."""
        while stop and self.events[stop - 1].kind != TEXT:
            stop -= 1
        return stop

    def said_by(self, stop: int) -> bytes:
        """The output of the program before event `stop`."""
        return b"".join(event.text for event in self.events[:stop] if event.kind == TEXT)

    @classmethod
    def read(cls, path: Path, size: int, unit: int) -> "History":
        """Reads the history in a log. Raises InputError if the file is no log, or incomplete."""
        return _Reader(path, size, unit).history()


class _Reader:
    def __init__(self, path: Path, size: int, unit: int) -> None:
        self._path, self._unit = path, unit
        self._made = History(unit, size)
        self._now: dict[int, bytes] = {}
        """Present contents of each unit, without zeros."""

    def history(self) -> History:
        made, begun, ended = self._made, False, None
        for kind, durable, offset, length, bytes_ in self._records():
            if kind == _MARK:
                if bytes_ == b"begin":
                    begun = True
                    made.base = {unit: self._keep(held) for unit, held in self._now.items()}
                    made.events.clear()
                elif bytes_ == b"end":
                    ended = len(made.events)
                continue
            event = None
            if kind in (_WRITE, _ZERO):
                units = self._write(offset, length, bytes_ if kind == _WRITE else None)
                event = Event(WRITE, units if begun else (), bool(durable), offset, length, kind == _ZERO)
            elif kind == _FLUSH:
                event = Event(FLUSH)
            elif kind == _TEXT:
                event = Event(TEXT, text=bytes_)
            if event is not None and begun:
                made.events.append(event)
        if ended is None:
            raise self._wrong("the end of the program is missing")
        made.ended = ended
        return made

    def _wrong(self, what: str) -> InputError:
        return InputError(f"{self._path}: {what}; expected the log of a recorded program")

    def _records(self) -> "list[tuple[int, int, int, int, bytes]]":
        try:
            data = memoryview(self._path.read_bytes())
        except OSError as error:
            raise self._wrong(error.strerror or str(error)) from error
        if data[:8] != MAGIC:
            raise self._wrong("the first bytes are wrong")
        at, found = 8, []
        while at < len(data):
            if at + _HEAD.size > len(data):
                raise self._wrong("the file is cut short")
            kind, durable, offset, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            own = 0 if kind == _ZERO else length
            if kind > _MARK or at + own > len(data) or (kind in (_WRITE, _ZERO) and offset + length > self._made.size):
                raise self._wrong(f"byte {at - _HEAD.size} is wrong")
            found.append((kind, durable, offset, length, bytes(data[at : at + own])))
            at += own
        return found

    def _keep(self, held: bytes) -> bytes:
        digest = blake2b(held, digest_size=16).digest() if held.strip(b"\0") else ZEROS
        if digest:
            self._made.contents.setdefault(digest, held)
        return digest

    def _write(self, offset: int, length: int, data: bytes | None) -> tuple[tuple[int, bytes], ...]:
        """The changed units; without data zeros are written."""
        size, end, changed = self._unit, offset + length, []
        units = range(offset // size, -(-end // size))
        if data is None and len(units) > len(self._now):
            units = sorted(unit for unit in self._now if unit in units)  # type: ignore[assignment]
        for unit in units:
            begin = unit * size
            first, last = max(offset, begin), min(end, begin + size)
            old = self._now.get(unit)
            if data is None and old is None:
                continue
            new = data[first - offset : last - offset] if data is not None else bytes(last - first)
            if last - first < size:
                old = old or bytes(size)
                new = old[: first - begin] + new + old[last - begin :]
            digest = self._keep(new)
            if digest:
                self._now[unit] = new
            else:
                self._now.pop(unit, None)
            changed.append((unit, digest))
        return tuple(changed)
