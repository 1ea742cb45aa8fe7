"""`palimpsest crash`: the explored states against a model of a cache, and the log from which they are built."""

import itertools
import random
import struct
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from palimpsest.crash.checking import image_of
from palimpsest.crash.history import FLUSH, MAGIC, TEXT, WRITE, Event, History
from palimpsest.crash.windows import State, key_of, states, windows
from palimpsest.errors import InputError

UNIT = 4096


def digest_of(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


def drawn_history(rng: random.Random) -> History:
    """A few events on three units, some with data before."""
    history = History(UNIT, 3 * UNIT, base={0: digest_of("base")})
    for number in range(rng.randint(1, 6)):
        kind = rng.choice((WRITE, WRITE, WRITE, FLUSH, TEXT))
        units = tuple((unit, digest_of(f"{unit} {number}")) for unit in sorted(rng.sample(range(3), rng.randint(1, 2))))
        if kind == WRITE:
            history.events.append(Event(WRITE, units, durable=rng.random() < 0.2, length=UNIT * len(units)))
        else:
            history.events.append(Event(kind, text=b"said\n" if kind == TEXT else b""))
    return history


Held = tuple[bytes, ...]
Drive = tuple[Held, tuple[bytes | None, ...]]
"""The content of the medium, and for each unit the cached data that is not written back."""


def put(held: tuple[Any, ...], unit: int, what: bytes | None) -> tuple[Any, ...]:
    return (*held[:unit], what, *held[unit + 1 :])


def written_back(drives: Iterable[Drive]) -> set[Drive]:
    """All sets that a cache may have written back, at any time and in any order."""
    found = set(drives)
    fresh = list(found)
    while fresh:
        medium, cache = fresh.pop()
        for unit, held in enumerate(cache):
            if held is not None:
                after = (put(medium, unit, held), put(cache, unit, None))
                if after not in found:
                    found.add(after)
                    fresh.append(after)
    return found


def modelled(history: History, cache: str) -> set[tuple[Held, int]]:
    """Contents of a drive with such a cache after a cut at any moment, with the number of lines printed by then.

    The model steps through the events, and through each write unit by unit in any order. When a flush or a durable
    write is answered, only drives that have written that data back remain.
    """
    empty = (None, None, None)
    drives: set[Drive] = {(tuple(history.base.get(unit, b"") for unit in range(3)), empty)}
    found: set[tuple[Held, int]] = set()
    said = 0

    def cut() -> None:
        for medium, held in drives:
            spared = medium
            if cache != "volatile":
                for unit, what in enumerate(held):
                    spared = spared if what is None else put(spared, unit, what)
            found.add((spared, said))

    drives = written_back(drives)
    cut()
    for event in history.events:
        if event.kind == TEXT:
            said += 1
        before = set(drives)
        for order in itertools.permutations(event.units):
            drives = set(before)
            for unit, digest in order:
                drives = written_back((medium, put(held, unit, digest)) for medium, held in drives)
                cut()
            last = drives
        if event.units:
            drives = last
            if event.durable:
                units = [unit for unit, _ in event.units]
                drives = {each for each in drives if all(each[1][unit] is None for unit in units)}
        if event.kind == FLUSH:
            drives = {each for each in drives if each[1] == empty}
        cut()
    return found


@pytest.mark.parametrize("cache", ["volatile", "protected", "none"])
def test_the_states_are_those_of_a_cache(cache: str) -> None:
    """For random programs the explored states are exactly the states of the model."""
    for seed in range(150):
        the_states_are_those_of(cache, seed)


def the_states_are_those_of(cache: str, seed: int) -> None:
    history = drawn_history(random.Random(seed))
    found: dict[tuple[Held, int], State] = {}
    keys: dict[tuple[Held, int], tuple[int, int]] = {}
    for state in states(windows(history, cache), seed):
        image = image_of(history, state)
        held = tuple(image.get(unit, b"") for unit in range(3)), history.said_by(state.said).count(b"\n")
        found[held] = state
        assert keys.setdefault(held, key_of(history, state)) == key_of(history, state), "the same bytes, one key"
    assert len(set(keys.values())) == len(keys), "other bytes, another key"
    assert set(found) == modelled(history, cache), f"seed {seed}"


def test_large_windows_are_drawn_from() -> None:
    history = History(UNIT, 40 * UNIT)
    history.events = [Event(WRITE, ((unit, digest_of(str(unit))),), length=UNIT) for unit in range(40)]
    drawn = list(itertools.islice(states(windows(history, "volatile"), 1), 3000))
    keys = {key_of(history, state) for state in drawn}
    assert len(keys) > 2000
    assert [len(state.picks) for state in drawn[:2]] == [0, 40]
    assert drawn == list(itertools.islice(states(windows(history, "volatile"), 1), 3000)), (
        "the same seed, the same states"
    )
    assert {len(state.picks) for state in drawn} >= set(range(41)), "prefixes"


def record(kind: int, offset: int = 0, length: int = 0, data: bytes = b"", durable: int = 0) -> bytes:
    return struct.pack("<BB6xQQ", kind, durable, offset, length or len(data)) + data


def test_a_log_is_read(tmp_path: Path) -> None:
    """Random writes and zeros at any byte, against an array."""
    rng, size = random.Random(3), 64 * 1024
    array, log, snapshots = bytearray(size), [MAGIC], []
    for number in range(300):
        if number == 100:
            log.append(record(4, data=b"begin"))
            snapshots.append(bytes(array))
        offset = rng.randrange(size)
        length = min(rng.choice((1, 100, 512, 4096, 9000)), size - offset)
        if rng.random() < 0.3:
            array[offset : offset + length] = bytes(length)
            log.append(record(2, offset, length))
        else:
            array[offset : offset + length] = data = rng.randbytes(length)
            log.append(record(0, offset, data=data))
        if number >= 100:
            snapshots.append(bytes(array))
    path = tmp_path / "log"
    path.write_bytes(b"".join([*log, record(3, data=b"done\n"), record(4, data=b"end")]))
    history = History.read(path, size, UNIT)
    assert (len(history.events), history.ended, history.said_by(201)) == (201, 201, b"done\n")
    for stop, snapshot in enumerate(snapshots):
        image = history.image_at(stop)
        held = b"".join(history.contents[image[unit]] if unit in image else bytes(UNIT) for unit in range(size // UNIT))
        assert held == snapshot, f"after event {stop}"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(InputError, match=r"byte [0-9]+ is wrong; expected the log"):
        History.read(path, size, UNIT)
