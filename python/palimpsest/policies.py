"""Policies in Python: a class with a method that the simulator calls where a drive decides.

>>> class CostAgeTimes:  # the key ftl.victim
...     def choose(self, blocks):
...         cost = blocks.valid * (blocks.erases + 1)
...         return (cost / ((blocks.units - blocks.valid) * blocks.age)).argmin()
>>> palimpsest.run(policies={"ftl.victim": CostAgeTimes()})

On the command line: `--set ftl.victim=mine.py:CostAgeTimes`. The canonical value has a digest of the file, so results
name the code, and a kept state or a sweep of other code is not continued. A policy lives as long as a drive; each drive
has a copy. `docs/policies.md` describes the methods. Ignored: policies of other keys than `ftl.victim`.
"""

import copy
import hashlib
import inspect
import itertools
import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ._core import InputError, PolicyError

_DIGITS = 16
_OBJECTS: dict[str, object] = {}
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Candidates:
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


class Victim(Protocol):
    """A policy of `ftl.victim`.

    With a true attribute `takes_full`, candidates also have blocks without an invalid unit; they gain no space.
    """

    def choose(self, blocks: Candidates, /) -> int:
        """Returns the index of the block to clean, in the arrays of `blocks`."""


class Caller:
    """Calls a policy of the user, and turns exceptions into `PolicyError`."""

    def __init__(self, name: str, policy: Any) -> None:  # noqa: ANN401  # an object of the user
        self._name = name
        self._policy = policy
        self.takes_full = bool(getattr(policy, "takes_full", False))

    def choose(self, plane: int, units: int, *columns: bytes) -> int:
        """The index of the victim. Raises PolicyError for an exception of the policy or a wrong answer."""
        blocks = Candidates(plane, units, *(np.frombuffer(each, np.int64) for each in columns))
        where = f"{self._name}.choose, plane {plane}, {len(blocks.block)} closed blocks"
        try:
            answer = self._policy.choose(blocks)
        except Exception as error:
            raise PolicyError(f"{where}: {type(error).__name__}: {error}") from error
        if isinstance(answer, bool) or not isinstance(answer, int | np.integer):
            raise PolicyError(f"{where}: {type(answer).__name__} {answer!r:.80}; expected an index")
        if not 0 <= answer < len(blocks.block):
            raise PolicyError(f"{where}: index {answer}; expected 0 to {len(blocks.block) - 1}")
        return int(answer)

    def store(self) -> bytes:
        """The state of the policy. Raises PolicyError if pickle cannot store it."""
        try:
            return pickle.dumps(vars(self._policy))
        except Exception as error:
            raise PolicyError(f"{self._name}: pickle cannot store the state: {error}") from error

    def restore(self, stored: bytes) -> None:
        """Sets the state that `store` returned."""
        vars(self._policy).clear()
        vars(self._policy).update(pickle.loads(stored))


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


def _class(text: str) -> tuple[type, str]:
    """The class that `FILE.py:CLASS` names, and its canonical text. Raises InputError."""
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
    if not isinstance(found, type):
        raise InputError(f"{path}: no class {name!r}; expected the name of a class with the method choose")
    return found, f"{path}:{name}@{digest}"


def _check(name: str, policy: object) -> None:
    method = getattr(policy, "choose", None)
    if not callable(method):
        raise InputError(f"{name}: no method choose; expected choose(self, blocks)")
    try:
        inspect.signature(method).bind(None)
    except TypeError as error:
        raise InputError(f"{name}.choose: {error}; expected choose(self, blocks)") from error


def _new(found: type, name: str) -> object:
    try:
        return found()
    except Exception as error:
        raise InputError(f"{name}: {type(error).__name__}: {error}; expected a class to call without values") from error


def read(text: str) -> str:
    """The canonical text of `FILE.py:CLASS`, or of a registered object. Raises InputError for a wrong policy."""
    if text in _OBJECTS:
        return text
    if text.startswith("object:"):
        raise InputError(f"{text}: no such object in this process; expected FILE.py:CLASS")
    found, canonical = _class(text)
    _check(text, _new(found, text))
    return canonical


def build(text: str) -> Caller:
    """A new policy for a drive. Raises InputError as `read`."""
    if text in _OBJECTS:
        return Caller(text.split(":")[-1], copy.deepcopy(_OBJECTS[text]))
    found, canonical = _class(text)
    return Caller(canonical.partition("@")[0], _new(found, text))


def register(policy: object) -> str:
    """The value of a key for a policy: an object, or a class. The object stays registered for the whole process."""
    if isinstance(policy, type):
        policy = _new(policy, policy.__name__)
    _check(type(policy).__name__, policy)
    known = next((text for text, each in _OBJECTS.items() if each is policy), None)
    text = known or f"object:{next(_NUMBERS)}:{type(policy).__name__}"
    _OBJECTS[text] = policy
    return text


def keys(policies: Mapping[str, object]) -> dict[str, object]:
    """Keys of the configuration for policies by key; texts stay unchanged."""
    return {key: value if isinstance(value, str) else register(value) for key, value in policies.items()}
