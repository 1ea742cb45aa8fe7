"""Layers in Python: a class whose methods the simulator calls where it calls a translation layer in Rust.

>>> class Log(Layer):  # --ftl mine.py:Log, or ps.Ssd(..., ftl=Log)
...     def write(self, io, units): ...
...     def read(self, io, units):
...         io.deliver(list(units), self.map[units.start : units.stop])

The contract is the one of the Rust trait `Ftl` (`palimpsest help write-an-ftl`); `palimpsest help python-layers` shows
a whole layer. Flash, its rules, gates, the engine and all verification are those of every layer. The canonical name
has a digest of the file, so that results name the code. Ignored: open pages in the write buffer, timers, zones,
handles, codes of cells, tables in flash, and drives that programs use, such as `serve`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from . import plain, policies
from ._core import InputError, LayerError, LayerIo, NoSpace

__all__ = ["BlockStates", "Io", "Key", "Layer", "NoSpace"]

_Numbers = npt.NDArray[np.int64]
_METHODS = ("write", "read", "trim", "flush", "background", "relocate", "recover", "check", "figures")
_REQUIRED = ("write", "read", "trim", "recover")
_COUNTS = ("gc_runs", "gc_erased", "merges", "retired_blocks", "peak_bytes")
_MAPS = ("page", "subpage")
_EXPECTED = "the methods of palimpsest.layers.Layer"


class Key(NamedTuple):
    """A key of a layer: `Layer.keys` names it, `--set` sets it, `Io.settings` has the value.

    The default determines the kind: a bool, a whole number from `least` to `most`, a share such as "150%" (a float in
    `Io.settings`) from `least` to `most`, a time such as "10us" (nanoseconds), or one of `words`.

    Attributes:
        default: the value where nothing sets the key.
        doc: the meaning, in one line, lower case.
        least: the smallest number or share.
        most: the largest number or share.
        words: the values of a key with words.
    """

    default: bool | int | str
    doc: str
    least: float = 0
    most: float = 100
    words: Sequence[str] = ()


class BlockStates(NamedTuple):
    """The states of all blocks, by number: `int64` arrays.

    Attributes:
        bad: 1 for a bad block.
        torn: 1 for a block whose erase a power cut interrupted: it must be erased again.
        next_page: pages programmed, which is the next page where pages are programmed in order.
        erases: erases so far.
    """

    bad: _Numbers
    torn: _Numbers
    next_page: _Numbers
    erases: _Numbers


class Io(LayerIo):
    """Flash and the present request, for the methods of a layer; use elsewhere raises RuntimeError.

    A unit is a page or a subpage, as `Layer.maps` says. Logical units have numbers below `units`. A physical unit is
    named by its place: page P of block B is place `B * units_per_block + P`, if the layer maps pages. Functions take
    numbers, `int64` arrays, or other sequences of integers. Wrong numbers raise IndexError or ValueError. If flash
    halts (a broken rule, a power cut, a drive at its end), a function raises a BaseException and the call must end.

    Gates are numbers, 0 for none; in counted runs all are 0. A cause is "host", "gc", "merge", "rmw" or "metadata".
    From the Rust interface: `is_bad(block)`, `is_torn(block)`, `next_page(block)`; `load(die)`, operations that wait
    or run; `now()` in ns; `request()`, the gate of the present request; `gate()`, a new one; `used(gate)`, the gate or
    0 if nothing signals it; `all_of(*gates)`, a gate that closes after all.

    - `write(page, units, old=None, after=0) -> bool` programs physical page `page` with logical units of the present
      write, and completes the request with it. `old` are the places of their old content, -1 for none; where the host
      writes a part of a unit, the old content is read and merged. False: the program failed, the block is bad, and
      the units must be programmed elsewhere.
    - `deliver(units, places)` reads logical units of the present read from `places`, -1 for zeros, each page once, and
      delivers them. All units of the request must be delivered once.
    - `copy(sources, targets, cause="gc", signal=0) -> int` copies the physical units `sources`, with their logical
      numbers, to the pages `targets`, each filled in order, the last padded. Returns the number of pages programmed:
      fewer than all after a program failed, whose page and block are lost. "gc" and "merge" count as moved.
    - `read(page, subpages, cause="gc", after=0, signal=0)` reads subpages of a page, a bit mask.
    - `erase(block, cause="gc", after=0, signal=0) -> bool`; False: the erase failed, and the block is bad.

    Attributes:
        channels, dies, planes, blocks: numbers in the drive.
        pages_per_block, units_per_block: pages and units of a block.
        subpages_per_page, subpage_bytes: subpages of a page, bytes of a subpage.
        units: logical units that the host sees.
        settings: values of the keys of the layer.
        seed: seed for random numbers of the layer.
    """

    def __new__(cls, *_: object) -> "Io":
        """A port without flash; the simulator lends flash for each call."""
        return super().__new__(cls)

    def __init__(self, found: type, settings: Mapping[str, Any], seed: int) -> None:
        self._class = found
        self.settings = dict(settings)
        self.seed = seed

    def build(self) -> object:
        """The layer, once flash is lent."""
        (self.channels, self.dies, self.planes, self.blocks, self.pages_per_block, self.subpages_per_page,
         self.subpage_bytes, self.units) = self.shape()  # fmt: skip
        per_page = self.subpages_per_page if self._class.maps == "subpage" else 1  # type: ignore[attr-defined]
        self.units_per_block = self.pages_per_block * per_page
        return self._class(self)

    def block_states(self) -> BlockStates:
        """The states of all blocks."""
        return BlockStates(*np.frombuffer(self.blocks_state(), np.int64).reshape(4, -1))

    def logical(self, places: int | Sequence[int] | _Numbers) -> _Numbers:
        """The logical unit of each place, from the out-of-band area: -1 unwritten, -2 padding, -3 torn."""
        return np.frombuffer(self.logical_units(places), np.int64)

    def sequence(self, places: int | Sequence[int] | _Numbers) -> _Numbers:
        """The number of the program of each place: of two copies of a unit the larger is newer. 0 with payload none."""
        return np.frombuffer(self.sequences(places), np.int64)

    def check(self, layer: "Layer") -> str | None:
        """The contradiction that `layer.check` found."""
        try:
            found = layer.check(self)
        except AssertionError as error:
            return str(error) or "an assertion without a message failed"
        return None if found is None else str(found)

    def figures(self, layer: "Layer") -> dict[str, Any]:
        """The figures of `layer` in the form of the native module. Raises LayerError for others."""
        try:
            figures = dict(layer.figures())
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise LayerError(f"{type(layer).__name__}.figures: {type(error).__name__}: {error}") from error
        tables = figures.pop("tables", {})
        numbers = {"tables": tables, **figures}
        for name, value in [*figures.items(), *tables.items()]:
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise LayerError(f"{type(layer).__name__}.figures: {name} = {value!r:.80}; expected a whole number")
        counts = {name: int(numbers.pop(name, 0)) for name in _COUNTS}
        numbers.pop("tables")
        own = [(name, int(value)) for name, value in numbers.items()]
        return {**counts, "tables": [(name, int(value)) for name, value in tables.items()], "own": own}

    def store(self, layer: object) -> bytes:
        """The state of `layer`, as plain data. Raises LayerError for an attribute that is none."""
        try:
            return plain.dumps(layer, self)
        except plain.NotPlain as error:
            raise LayerError(f"{type(layer).__name__}: {error}") from error

    def restore(self, layer: object, stored: bytes) -> None:
        """Sets the state that `store` returned. Raises LayerError for other bytes."""
        try:
            plain.replace(layer, stored, self)
        except plain.NotPlain as error:
            raise LayerError(f"{type(layer).__name__}: {error}") from error


class Layer:
    """A translation layer: derive a class, and define at least `write`, `read`, `trim` and `recover`.

    The first line of the docstring describes the layer in lists. `__init__(self, io)` builds the tables over erased
    flash, of which some blocks may be bad. Requests name a `range` of logical units that they touch, the first and the
    last perhaps in part.

    Attributes:
        maps: "page" or "subpage", the unit.
        parity: True if pages may have parity across dies; the layer must then move whole pages.
        keys: keys of the layer by name, such as "ring.reserve"; no other layer may use the first word.
    """

    maps: ClassVar[str] = "page"
    parity: ClassVar[bool] = False
    keys: ClassVar[Mapping[str, Key]] = {}

    def __init__(self, io: Io) -> None:
        """Builds the tables."""

    def write(self, io: Io, units: range) -> None:
        """Stores the units by `Io.write`. Raises NoSpace if no block is left."""
        raise NotImplementedError

    def read(self, io: Io, units: range) -> None:
        """Delivers the units by `Io.deliver`."""
        raise NotImplementedError

    def trim(self, io: Io, units: range) -> None:
        """Forgets whole units: later reads return zeros."""
        raise NotImplementedError

    def flush(self, io: Io) -> None:
        """Programs what waits in memory; nothing does in a layer without open pages."""

    def background(self, io: Io) -> bool:
        """Does a step of work while the host is idle; False if there is nothing to do."""
        return False

    def relocate(self, io: Io, block: int) -> bool:
        """Moves the valid data of `block` and erases it, because reads need many retries; False if not possible."""
        return False

    def recover(self, io: Io) -> None:
        """Rebuilds every table after a power cut, from flash alone."""
        raise NotImplementedError

    def check(self, io: Io) -> str | None:
        """The first contradiction between tables and flash, or None; an AssertionError is one too. May be slow."""

    def figures(self) -> Mapping[str, Any]:
        """Figures since the drive was new, by name; all may be left out.

        `tables`, bytes by name; `peak_bytes` of all tables; `gc_runs`, `gc_erased` blocks, `merges`, `retired_blocks`.
        Other names are counts of this layer alone. The simulator counts what `Io.copy` moves.
        """
        return {}


def _key(name: str, key: Key) -> dict[str, Any]:
    """A key in the form of the native module. Raises InputError for one that has no kind."""
    if not isinstance(key, Key) or "." not in name:
        raise InputError(f"keys: {name!r}: {key!r:.80}; expected {{'mine.key': Key(default, meaning)}}")
    default = str(key.default).lower() if isinstance(key.default, bool) else str(key.default)
    if isinstance(key.default, bool):
        kind = "flag"
    elif isinstance(key.default, int):
        kind = "count"
    elif key.words:
        kind = "choice"
    else:
        kind = "ratio" if default.endswith("%") else "time"
    if kind == "choice" and default not in key.words:
        raise InputError(f"keys: {name}: {default!r} is not among the words; expected one of {', '.join(key.words)}")
    of_text = {"name": name, "doc": key.doc, "default": default, "kind": kind, "words": list(key.words)}
    return {**of_text, "least": float(key.least), "most": float(key.most)}


def _check(found: type, text: str) -> None:
    missing = [name for name in _METHODS if not callable(getattr(found, name, None))]
    own = [name for name in _REQUIRED if getattr(found, name, None) is getattr(Layer, name)]
    if missing or own:
        base = "expected a class derived from palimpsest.layers.Layer"
        raise InputError(f"{text}: no method {(missing or own)[0]}; {base}")
    maps = found.maps  # type: ignore[attr-defined]
    if maps not in _MAPS:
        raise InputError(f"{text}: maps = {maps!r}; expected one of {', '.join(_MAPS)}")


def register(found: type) -> str:
    """The value of `ftl` for a class, which stays registered for the whole process. Raises InputError as `read`."""
    _check(found, found.__name__)
    return policies.enter(found, found.__name__)


def name_of(ftl: str | type | None) -> str | None:
    """The value of `ftl` for a name or a class. Raises InputError for a wrong class, and for other objects."""
    if isinstance(ftl, type):
        return register(ftl)
    if ftl is not None and not isinstance(ftl, str):
        raise InputError(f"ftl: expected the name of one layer (`compare` takes several) or a class, found {ftl!r}")
    return ftl


def read(text: str) -> dict[str, Any]:
    """What the class of `FILE.py:CLASS`, or of a registered class, declares. Raises InputError for a wrong class."""
    found, canonical = policies.named(text, _EXPECTED)
    if not isinstance(found, type):
        raise InputError(f"{text}: no class; expected a class derived from palimpsest.layers.Layer")
    _check(found, text)
    about = (found.__doc__ or "a layer in Python").strip().splitlines()[0].rstrip(".")
    keys = [_key(name, key) for name, key in found.keys.items()]  # type: ignore[attr-defined]
    return {"name": canonical, "about": about, "parity": bool(found.parity), "keys": keys}  # type: ignore[attr-defined]


def prepare(text: str, settings: Mapping[str, Any], seed: int) -> tuple[Io, bool]:
    """The port of a new layer, and whether the layer maps subpages. Raises InputError as `read`."""
    found, _ = policies.named(text, _EXPECTED)
    return Io(found, settings, seed), found.maps == "subpage"
