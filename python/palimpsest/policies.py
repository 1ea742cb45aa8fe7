"""Policies in Python: a class with a method that the simulator calls where a drive decides.

>>> class CostAgeTimes:  # the key ftl.victim
...     def choose(self, blocks):
...         cost = blocks.valid * (blocks.erases + 1)
...         return (cost / ((blocks.units - blocks.valid) * blocks.age)).argmin()
>>> class Size:  # the key ftl.classifier
...     def classify(self, requests):
...         return requests.size >= 65536
>>> palimpsest.run(policies={"ftl.victim": CostAgeTimes(), "ftl.classifier": Size})

On the command line: `--set ftl.victim=mine.py:CostAgeTimes`. The canonical value has a digest of the file, so results
name the code, and a kept state or a sweep of other code is not continued. A policy lives as long as a drive; each drive
has a copy. `docs/policies.md` describes the methods. Ignored: policies of other keys.
"""

import copy
import ctypes
import hashlib
import inspect
import itertools
import pickle
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from . import plugins
from ._core import InputError, PolicyError

_DIGITS = 16
_OBJECTS: dict[str, object] = {}
_NUMBERS = itertools.count(1)
_METHODS = {
    "ftl.victim": "choose(self, blocks)", "ftl.classifier": "classify(self, requests)",
    "ftl.gc_pace": "spread(self, victim)",
}  # fmt: skip

_COLUMN = ctypes.POINTER(ctypes.c_int64)
Choose = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3, *[_COLUMN] * 4)
"""A compiled function for `ftl.victim`: `int64_t choose(int64_t plane, int64_t units, int64_t count, const int64_t
*block, const int64_t *valid, const int64_t *age, const int64_t *erases)` returns an index below `count`."""


class Candidates(NamedTuple):
    """The blocks among which a victim policy chooses: closed blocks of a plane, by number.

    Arrays are `int64` with one element a block.

    Attributes:
        plane: number of the plane.
        units: units of a block: pages, or subpages if the layer maps those.
        block: numbers of the blocks.
        valid: valid units.
        age: blocks of the drive closed since this one, itself included.
        erases: erases so far.
    """

    plane: int
    units: int
    block: npt.NDArray[np.int64]
    valid: npt.NDArray[np.int64]
    age: npt.NDArray[np.int64]
    erases: npt.NDArray[np.int64]


class Requests(NamedTuple):
    """Requests of the host that a classifier classifies, in their order.

    Arrays have one element a request; `op` is `uint8`, the others are `int64`.

    Attributes:
        classes: number of classes: a class is below.
        time: arrival in ns since the start of the run.
        op: 0 for a read, 1 write, 2 trim, 3 flush.
        offset: first byte.
        size: bytes.
        owner: number of the file, volume or tenant; 0 without one.
    """

    classes: int
    time: npt.NDArray[np.int64]
    op: npt.NDArray[np.uint8]
    offset: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]


class Chosen(NamedTuple):
    """A victim whose moves a pace of collection spreads over writes of the host.

    Attributes:
        plane: number of the plane.
        time: time of the drive in ns; 0 in counted runs.
        moves: pages to move.
        pages: pages of a block.
        free: free pages of the plane.
        load: operations that wait or run at the die.
        most: host pages of the plane over which the built-in pace spreads the moves.
    """

    plane: int
    time: int
    moves: int
    pages: int
    free: int
    load: int
    most: int


class Victim(Protocol):
    """A policy of `ftl.victim`.

    With a true attribute `takes_full`, candidates also have blocks without an invalid unit; they gain no space.
    """

    def choose(self, blocks: Candidates, /) -> int:
        """Returns the index of the block to clean, in the arrays of `blocks`."""


class Classifier(Protocol):
    """A policy of `ftl.classifier`."""

    def classify(self, requests: Requests, /) -> npt.NDArray[Any]:
        """Returns the class of each request, an integer or a bool; only those of writes have an effect."""


class Pace(Protocol):
    """A policy of `ftl.gc_pace`."""

    def spread(self, victim: Chosen, /) -> int:
        """Returns the host pages over which the moves spread: from 0, all at once, to `victim.most`."""


class Caller:
    """Calls a policy of the user, and turns exceptions into `PolicyError`."""

    def __init__(self, name: str, policy: Any) -> None:  # noqa: ANN401  # an object of the user
        self._name = name
        self._policy = policy
        self.takes_full = bool(getattr(policy, "takes_full", False))
        self.address = _address(policy)

    def choose(self, plane: int, units: int, columns: bytes) -> int:
        """The index of the victim. Raises PolicyError for an exception of the policy or a wrong answer."""
        blocks = Candidates(plane, units, *np.frombuffer(columns, np.int64).reshape(4, -1))
        try:
            answer = self._policy.choose(blocks)
        except Exception as error:
            raise self._error(_of_blocks(blocks), f"{type(error).__name__}: {error}") from error
        wrong = _wrong_number("index", answer, len(blocks.block) - 1)
        if wrong:
            raise self._error(_of_blocks(blocks), wrong)
        return int(answer)

    def spread(self, *victim: int) -> int:
        """The host pages over which moves spread. Raises PolicyError as `choose`."""
        chosen = Chosen(*victim)
        try:
            answer = self._policy.spread(chosen)
        except Exception as error:
            raise self._error(f"spread, {chosen}", f"{type(error).__name__}: {error}") from error
        wrong = _wrong_number("number", answer, chosen.most)
        if wrong:
            raise self._error(f"spread, {chosen}", wrong)
        return int(answer)

    def classify(self, classes: int, op: bytes, columns: bytes) -> bytes:
        """The class of each request. Raises PolicyError as `choose`."""
        kinds = np.frombuffer(op, np.uint8)
        time, offset, size, owner = np.frombuffer(columns, np.int64).reshape(4, -1)
        requests = Requests(classes, time, kinds, offset, size, owner)
        try:
            answer = self._policy.classify(requests)
        except Exception as error:
            raise self._error(_of_requests(requests), f"{type(error).__name__}: {error}") from error
        if not isinstance(answer, np.ndarray) or answer.dtype.kind not in "biu":
            found = f"array of {answer.dtype}" if isinstance(answer, np.ndarray) else type(answer).__name__
            raise self._error(_of_requests(requests), f"{found}; expected an array of integers or bools")
        if answer.shape != kinds.shape:
            raise self._error(_of_requests(requests), f"shape {answer.shape}; expected {kinds.shape}")
        wrong = answer[(answer < 0) | (answer >= classes)]
        if wrong.size:
            raise self._error(_of_requests(requests), f"class {wrong[0]}; expected 0 to {classes - 1}")
        return answer.astype(np.uint8).tobytes()

    def _error(self, where: str, what: str) -> PolicyError:
        return PolicyError(f"{self._name}.{where}: {what}")

    def store(self) -> bytes:
        """The state of the policy. Raises PolicyError if pickle cannot store it."""
        if self.address is not None:
            return b""
        try:
            return pickle.dumps(vars(self._policy))
        except Exception as error:
            raise PolicyError(f"{self._name}: pickle cannot store the state: {error}") from error

    def restore(self, stored: bytes) -> None:
        """Sets the state that `store` returned."""
        if stored:
            vars(self._policy).clear()
            vars(self._policy).update(pickle.loads(stored))


def _wrong_number(what: str, answer: object, most: int) -> str:
    """The mistake of an answer that is no whole number from 0 to `most`; empty for others."""
    if isinstance(answer, bool) or not isinstance(answer, int | np.integer):
        return f"{type(answer).__name__} {answer!r:.80}; expected an {what}".replace("an number", "a number")
    return "" if 0 <= answer <= most else f"{what} {answer}; expected 0 to {most}"


def _of_blocks(blocks: Candidates) -> str:
    return f"choose, plane {blocks.plane}, {len(blocks.block)} closed blocks"


def _of_requests(requests: Requests) -> str:
    kind, offset, size = ("read", "write", "trim", "flush")[requests.op[0]], requests.offset[0], requests.size[0]
    return f"classify, {len(requests.op)} requests from a {kind} of {size} bytes at {offset} on"


def _address(policy: object) -> int | None:
    """The address of a compiled function: of this module's `Choose`, or of Numba; None for other objects."""
    if isinstance(policy, Choose):
        return ctypes.cast(policy, ctypes.c_void_p).value
    address = getattr(policy, "address", None)
    return address if isinstance(address, int) and callable(policy) else None


def _load(path: str, source: bytes, digest: str) -> ModuleType:
    """The code of a file as a module of this process, where pickle and dataclasses find its classes."""
    module = ModuleType(f"palimpsest_policy_{digest}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, path, "exec"), vars(module))
    except BaseException as error:
        del sys.modules[module.__name__]
        if not isinstance(error, Exception):
            raise
        raise InputError(f"{path}: {type(error).__name__}: {error}; expected a file that Python can load") from error
    return module


def _of_plugin(key: str, text: str) -> tuple[Any, str]:
    """As `_named`, of `NAME` or `NAME@DIGEST`."""
    name, _, expected = text.partition("@")
    found, digest = plugins.policy(key, name)
    if expected and expected != digest:
        raise InputError(f"{key} = {name}: the digest is {digest}, so this is other code; expected {expected}")
    return found, f"{name}@{digest}"


def _named(key: str, text: str) -> tuple[Any, str]:
    """The class or compiled function that a name of a plug-in or `FILE.py:NAME` names, and its canonical text.

    Raises InputError.
    """
    if ".py:" not in text:
        return _of_plugin(key, text)
    path, _, name = text.partition(".py:")
    path, (name, _, expected) = f"{path}.py", name.partition("@")
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; expected a file with the class {name}") from error
    digest = hashlib.sha256(source).hexdigest()[:_DIGITS]
    if expected and expected != digest:
        raise InputError(f"{path}: the digest is {digest}, so this is other code; expected {expected}")
    module = sys.modules.get(f"palimpsest_policy_{digest}") or _load(path, source, digest)
    found = getattr(module, name, None)
    if not isinstance(found, type) and _address(found) is None:
        raise InputError(f"{path}: no class {name!r}; expected the name of a class with the method {_METHODS[key]}")
    return found, f"{path}:{name}@{digest}"


def _check(key: str, name: str, policy: object) -> None:
    expected = _METHODS[key]
    method = getattr(policy, expected.partition("(")[0], None)
    if _address(policy) is not None and key == "ftl.victim":
        return
    if not callable(method):
        raise InputError(f"{name}: no method {expected.partition('(')[0]}; expected {expected}")
    try:
        inspect.signature(method).bind(None)
    except TypeError as error:
        raise InputError(f"{name}.{expected.partition('(')[0]}: {error}; expected {expected}") from error


def _new(found: Callable[[], object], name: str) -> object:
    if not isinstance(found, type):
        return found
    try:
        return found()
    except Exception as error:
        raise InputError(f"{name}: {type(error).__name__}: {error}; expected a class to call without values") from error


def read(key: str, text: str) -> str:
    """The canonical text of `FILE.py:CLASS`, or of a registered object. Raises InputError for a wrong policy."""
    if text in _OBJECTS:
        _check(key, text, _OBJECTS[text])
        return text
    if text.startswith("object:"):
        raise InputError(f"{text}: no such object in this process; expected FILE.py:CLASS")
    found, canonical = _named(key, text)
    _check(key, text, _new(found, text))
    return canonical


def build(key: str, text: str) -> Caller:
    """A new policy for a drive. Raises InputError as `read`."""
    if text in _OBJECTS:
        policy = _OBJECTS[text]
        return Caller(text.split(":")[-1], policy if _address(policy) else copy.deepcopy(policy))
    found, canonical = _named(key, text)
    return Caller(canonical.partition("@")[0], _new(found, text))


def register(key: str, policy: object) -> str:
    """The value of a key for a policy: an object, or a class. The object stays registered for the whole process."""
    if isinstance(policy, type):
        policy = _new(policy, policy.__name__)
    _check(key, type(policy).__name__, policy)
    known = next((text for text, each in _OBJECTS.items() if each is policy), None)
    text = known or f"object:{next(_NUMBERS)}:{type(policy).__name__}"
    _OBJECTS[text] = policy
    return text


def keys(policies: Mapping[str, object]) -> dict[str, object]:
    """Keys of the configuration for policies by key; texts stay unchanged. Raises InputError for other keys."""
    other = next((key for key in policies if key not in _METHODS), None)
    if other is not None:
        raise InputError(f"policies: no policy of {other} is in Python; expected {', '.join(_METHODS)}")
    return {key: value if isinstance(value, str) else register(key, value) for key, value in policies.items()}
