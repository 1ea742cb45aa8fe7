"""Attributes of a policy or a layer as bytes, for kept states. Reading such bytes never runs code.

Plain data alone has a form: None, bools, whole numbers of any size, floats, texts, bytes, lists, tuples, dicts, sets,
deques, arrays and scalars of numpy that hold numbers, and the random generators of Python and numpy. The bytes name a
type by a letter of this module, never by a module or a class. A container that occurs twice stays one object. Ignored:
objects of other classes, subclasses, and arrays that share memory.
"""

import random
import re
import struct
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

EXPECTED = (
    "expected plain data: None, bool, int, float, str, bytes, list, tuple, dict, set, deque, arrays of numbers, or "
    "random generators"
)
_DEEPEST = 100
_NUMBERS = "biufc"
_DTYPE = re.compile(rf"[<>|][{_NUMBERS}]\d{{1,2}}")
_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_LENGTH = struct.Struct("<Q")
_FLOAT = struct.Struct("<d")
_LETTERS = {list: b"l", tuple: b"t", set: b"s", frozenset: b"z", dict: b"m", deque: b"q"}
_CONSTANTS = {None: b"N", True: b"T", False: b"F"}


class NotPlain(ValueError):
    """An attribute that has no form; the text names attribute and type."""


class _Writer:
    """Writes values; `own` is the object that a letter alone represents."""

    def __init__(self, own: object) -> None:
        self._own = own
        # The values stay referenced, because a number of `id` belongs to the next object once a value is dropped.
        self._seen: dict[int, tuple[int, object]] = {}

    def form(self, value: Any, place: str, depth: int = 0) -> bytes:  # noqa: ANN401  # an attribute of the user
        """The bytes of a value. Raises NotPlain."""
        kind = type(value)
        if depth > _DEEPEST:
            raise NotPlain(f"{place[:_DEEPEST]} is nested deeper than {_DEEPEST}; {EXPECTED}")
        if value is None or kind is bool:
            return _CONSTANTS[value]
        if kind is int:
            return b"i" + _sized(value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
        if kind is float:
            return b"f" + _FLOAT.pack(value)
        if kind is str:
            return b"u" + _sized(value.encode("utf-8", "surrogatepass"))
        if kind is bytes:
            return b"b" + _sized(value)
        if isinstance(value, np.generic) and value.dtype.kind in _NUMBERS:
            return b"x" + _sized(value.dtype.str.encode()) + _sized(value.tobytes())
        if value is self._own:
            return b"o"
        if kind not in (tuple, frozenset):
            if id(value) in self._seen:
                return b"r" + _LENGTH.pack(self._seen[id(value)][0])
            self._seen[id(value)] = len(self._seen), value
        return self._whole(value, kind, place, depth + 1)

    def _whole(self, value: Any, kind: type, place: str, depth: int) -> bytes:  # noqa: ANN401
        """The bytes of a value with parts."""
        if kind is np.ndarray and value.dtype.kind in _NUMBERS:
            shape = b"".join(map(_LENGTH.pack, value.shape))
            return b"a" + _sized(value.dtype.str.encode()) + _sized(shape) + _sized(value.tobytes())
        if kind is random.Random:
            return b"R" + self.form(value.getstate(), place, depth)
        if kind is np.random.Generator and type(value.bit_generator).__name__ in _GENERATORS:
            return b"G" + self.form(value.bit_generator.state, place, depth)
        if kind not in _LETTERS:
            module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
            raise NotPlain(f"{place} is a {module}{kind.__qualname__}; {EXPECTED}")
        if kind is dict:
            pairs = [(key, self.form(key, f"a key of {place}", depth), each) for key, each in value.items()]
            parts = [key + self.form(each, f"{place}[{name!r:.40}]", depth) for name, key, each in pairs]
        else:
            parts = [self.form(each, f"{place}[{at}]", depth) for at, each in enumerate(value)]
        if kind in (set, frozenset):
            parts.sort()  # The order of a set differs between processes.
        most = self.form(value.maxlen, place, depth) if kind is deque else b""
        return _LETTERS[kind] + most + _LENGTH.pack(len(parts)) + b"".join(parts)


def _sized(content: bytes) -> bytes:
    return _LENGTH.pack(len(content)) + content


def dumps(holder: object, own: object = None) -> bytes:
    """The attributes of `holder` as bytes; an attribute may be `own`. Raises NotPlain."""
    if not hasattr(holder, "__dict__") or any(vars(each).get("__slots__") for each in type(holder).__mro__):
        raise NotPlain(f"{type(holder).__qualname__} has __slots__; expected attributes in __dict__")
    writer = _Writer(holder if own is None else own)
    parts = [_sized(name.encode()) + writer.form(value, name) for name, value in vars(holder).items()]
    return _LENGTH.pack(len(parts)) + b"".join(parts)


class _Reader:
    """Reads values; `own` replaces the letter of the same object of the writer."""

    def __init__(self, stored: bytes, own: object) -> None:
        self._left = memoryview(stored)
        self._own = own
        self._seen: list[object] = []

    def _take(self, count: int) -> bytes:
        if count > len(self._left):
            raise EOFError
        taken, self._left = self._left[:count], self._left[count:]
        return bytes(taken)

    def length(self) -> int:
        """A number of bytes or parts: never more than the bytes that are left."""
        length: int = _LENGTH.unpack(self._take(_LENGTH.size))[0]
        if length > len(self._left):
            raise EOFError
        return length

    def sized(self) -> bytes:
        """Bytes after their number."""
        return self._take(self.length())

    def is_at_end(self) -> bool:
        """True if all bytes are read."""
        return not self._left

    def value(self, depth: int = 0) -> Any:  # noqa: ANN401  # an attribute of the user
        """The next value. Raises exceptions of many kinds for other bytes."""
        if depth > 2 * _DEEPEST:
            raise ValueError("nested too deep")
        match self._take(1):
            case b"N":
                return None
            case b"T" | b"F" as letter:
                return letter == b"T"
            case b"i":
                return int.from_bytes(self.sized(), "little", signed=True)
            case b"f":
                return _FLOAT.unpack(self._take(_FLOAT.size))[0]
            case b"u":
                return self.sized().decode("utf-8", "surrogatepass")
            case b"b":
                return self.sized()
            case b"x":
                dtype = self._dtype()
                return np.frombuffer(self.sized(), dtype)[0]
            case b"o":
                return self._own
            case b"r":
                return self._seen[_LENGTH.unpack(self._take(_LENGTH.size))[0]]
            case letter:
                return self._whole(letter, depth + 1)

    def _dtype(self) -> np.dtype[Any]:
        name = self.sized().decode("ascii")
        if not _DTYPE.fullmatch(name):
            raise ValueError(name)
        return np.dtype(name)

    def _items(self, depth: int) -> Iterator[Any]:
        return (self.value(depth) for _ in range(self.length()))

    def _whole(self, letter: bytes, depth: int) -> Any:  # noqa: ANN401
        """The value with parts of a letter. A container is known before its parts, which may contain it."""
        found: Any
        if letter in (b"t", b"z"):
            return (tuple if letter == b"t" else frozenset)(self._items(depth))
        at = len(self._seen)
        self._seen.append(None)
        match letter:
            case b"l":
                self._seen[at] = found = []
                found.extend(self._items(depth))
            case b"s":
                self._seen[at] = found = set()
                found.update(self._items(depth))
            case b"q":
                self._seen[at] = found = deque(maxlen=self.value(depth))
                found.extend(self._items(depth))
            case b"m":
                self._seen[at] = found = {}
                found.update((self.value(depth), self.value(depth)) for _ in range(self.length()))
            case b"a":
                dtype, shape = self._dtype(), [each for (each,) in _LENGTH.iter_unpack(self.sized())]
                self._seen[at] = found = np.frombuffer(self.sized(), dtype).reshape(shape).copy()
            case b"R":
                self._seen[at] = found = random.Random()
                found.setstate(self.value(depth))
            case b"G":
                state = self.value(depth)
                bits = getattr(np.random, _GENERATORS[_GENERATORS.index(state["bit_generator"])])()
                bits.state = state
                self._seen[at] = found = np.random.Generator(bits)
            case _:
                raise ValueError(letter)
        return found


def loads(stored: bytes, own: object) -> dict[str, Any]:
    """The attributes that `dumps` wrote. Raises NotPlain for other bytes."""
    reader = _Reader(stored, own)
    try:
        found = {reader.sized().decode(): reader.value() for _ in range(reader.length())}
    except Exception as error:  # what numpy and random raise for a wrong state
        raise NotPlain(f"the stored attributes are damaged ({type(error).__name__}); {EXPECTED}") from error
    if not reader.is_at_end():
        raise NotPlain(f"the stored attributes are damaged (bytes after the last); {EXPECTED}")
    return found


def replace(holder: object, stored: bytes, own: object = None) -> None:
    """Gives `holder` the attributes that `dumps` wrote, in place of all. Raises NotPlain, and then changes nothing."""
    found = loads(stored, holder if own is None else own)
    vars(holder).clear()
    vars(holder).update(found)
