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
has a copy. `palimpsest help policies` describes the methods. Ignored: policies of other keys.
"""

import copy
import ctypes
import hashlib
import inspect
import itertools
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from . import plain, plugins, user_files
from ._core import InputError, PolicyError

AHEAD = 4096
"""Most pages that a placement places at a time."""

_DIGITS = 16
_STEPS = 200  # of a share, in a byte
_MOST_VIEWS = 1024
_KINDS = {"iu": "integers", "biu": "integers or bools", "biuf": "numbers"}
_OBJECTS: dict[str, object] = {}
_NUMBERS = itertools.count(1)
_PROCESS = os.urandom(16)
_METHODS = {
    "ftl.victim": "choose(self, blocks)", "ftl.classifier": "classify(self, requests)",
    "ftl.gc_pace": "spread(self, victim)", "ftl.allocation": "place(self, planes)",
    "ftl.allocation_threshold": "admit(self, requests)", "ftl.merge_limits": "limits(self, merges)",
    "ftl.threshold_rule": "adapt(self, victim)",
}  # fmt: skip

_COLUMN = ctypes.POINTER(ctypes.c_int64)
Choose = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3, *[_COLUMN] * 4)
"""A compiled function for `ftl.victim`: `int64_t choose(int64_t plane, int64_t units, int64_t count, const int64_t
*block, const int64_t *valid, const int64_t *age, const int64_t *erases)` returns an index below `count`."""


class Candidates(NamedTuple):
    """The blocks among which a victim policy chooses: closed blocks of a plane, by number.

    Arrays are `int64` with one element a block. The next call refills them: a policy that keeps one must copy it.

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


class Planes(NamedTuple):
    """The planes of a drive, for the placement of the next pages.

    Arrays have one element a plane. The next call refills them: a policy that keeps one must copy it.

    Attributes:
        page: the logical page, or page of the map, that needs a plane.
        stream: the write stream of the page.
        next: the plane after the last written one.
        time: time of the drive in ns; 0 in counted runs.
        free: free pages.
        load: operations that wait or run at the die.
        lost: 1 for planes of a failed die, else 0.
    """

    page: int
    stream: int
    next: int
    time: int
    free: npt.NDArray[np.int64]
    load: npt.NDArray[np.int64]
    lost: npt.NDArray[np.int64]


class Writes(NamedTuple):
    """Requests of the host whose small writes an admission policy admits, in their order.

    Attributes:
        free: share of fully free pages before the first of the requests.
        time, op, offset, size, owner: as those of `Requests`.
    """

    free: float
    time: npt.NDArray[np.int64]
    op: npt.NDArray[np.uint8]
    offset: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]


class Merges(NamedTuple):
    """The layer `mga` before a change of its limits.

    Attributes:
        reads: read counts with a limit, from 0; the last means that many or more.
        subpages: subpages of a page, the largest limit.
        time: time of the drive in ns; 0 in counted runs.
        free: share of fully free pages.
        merges: merges so far.
        moved: subpages that these moved.
    """

    reads: npt.NDArray[np.int64]
    subpages: int
    time: int
    free: float
    merges: int
    moved: int


class Cleaned(NamedTuple):
    """A victim of `llh`, and the blocks of its bank.

    Attributes:
        bank: number of the bank, a plane.
        time: time of the drive in ns; 0 in counted runs.
        valid: valid units of the victim.
        units: units of a block.
        threshold: the threshold of the bank now.
        most: the largest possible threshold.
        waiting: partially-used blocks that wait for reuse.
        clean: clean blocks.
    """

    bank: int
    time: int
    valid: int
    units: int
    threshold: int
    most: int
    waiting: int
    clean: int


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


class Placement(Protocol):
    """A policy of `ftl.allocation`."""

    def place(self, planes: Planes, /) -> int | npt.NDArray[Any]:
        """Returns the plane to try first for the page; or an array of up to 4,096 planes, for the page and the next."""


class Admission(Protocol):
    """A policy of `ftl.allocation_threshold`."""

    def admit(self, requests: Writes, /) -> npt.NDArray[Any]:
        """Returns for each request the share of fully free pages above which its small writes get pages of their own.

        Shares are from 0 (always) to 1 (never), and are rounded to 0.005.
        """


class Limits(Protocol):
    """A policy of `ftl.merge_limits`."""

    def limits(self, merges: Merges, /) -> npt.NDArray[Any]:
        """Returns for each of `merges.reads` the most physical pages of a logical page, from 1 to `merges.subpages`."""


class Rule(Protocol):
    """A policy of `ftl.threshold_rule`."""

    def adapt(self, victim: Cleaned, /) -> int:
        """Returns the threshold of the bank from now on, from 0 to `victim.most`."""


class Caller:
    """Calls a policy of the user, and turns exceptions into `PolicyError`."""

    def __init__(self, name: str, policy: Any) -> None:  # noqa: ANN401  # an object of the user
        self._name = name
        self._policy = policy
        self._rows: npt.NDArray[np.int64] = np.zeros((0, 0), np.int64)
        self._views: dict[tuple[int, int], Candidates] = {}
        self.takes_full = bool(getattr(policy, "takes_full", False))
        self.address = _address(policy)

    def grow(self, rows: int, count: int) -> npt.NDArray[np.int64]:
        """An array of `rows` rows of `count` numbers, which the simulator fills before each call from now on."""
        self._rows = np.zeros((rows, count), np.int64)
        self._views.clear()
        return self._rows

    def choose(self, plane: int, units: int, count: int) -> int:
        """The index of the victim. Raises PolicyError for an exception of the policy or a wrong answer."""
        blocks = self._views.get((plane, count)) or self._candidates(plane, units, count)
        try:
            answer = self._policy.choose(blocks)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit, too
            raise self._error(_of_blocks(blocks), f"{type(error).__name__}: {error}") from error
        if type(answer) is not np.int64 or not 0 <= answer < count:
            wrong = _wrong_number("an index", answer, count - 1)
            if wrong:
                raise self._error(_of_blocks(blocks), wrong)
        return int(answer)

    def _candidates(self, plane: int, units: int, count: int) -> Candidates:
        """Views of the array, which stay until it grows."""
        if len(self._views) >= _MOST_VIEWS:
            self._views.clear()
        rows = self._rows[:, :count]
        rows.flags.writeable = False
        self._views[plane, count] = Candidates(plane, units, *rows)
        return self._views[plane, count]

    def spread(self, *victim: int) -> int:
        """The host pages over which moves spread. Raises PolicyError as `choose`."""
        chosen = Chosen(*victim)
        return self._number("spread", chosen, chosen.most)

    def adapt(self, bank: int, time: int, *victim: int) -> int:
        """The threshold of a bank. Raises PolicyError as `choose`."""
        cleaned = Cleaned(bank, time, *victim)
        return self._number("adapt", cleaned, cleaned.most)

    def _number(self, method: str, argument: object, most: int) -> int:
        """The whole number from 0 to `most` that a method returns. Raises PolicyError as `choose`."""
        answer: Any = self._called(method, argument, lambda: f"{method}, {argument}")
        wrong = _wrong_number("a number", answer, most)
        if wrong:
            raise self._error(f"{method}, {argument}", wrong)
        return int(answer)

    def place(self, page: int, stream: int, following: int, time: int) -> list[int]:
        """The planes of the next pages. Raises PolicyError as `choose`."""
        rows = self._rows.view()
        rows.flags.writeable = False
        planes = Planes(page, stream, following, time, *rows)
        answer, last = self._called("place", planes, lambda: f"place, page {page} of stream {stream}"), len(rows[0]) - 1
        where = f"place, page {page} of stream {stream}"
        if not isinstance(answer, np.ndarray):
            wrong = _wrong_number("an index", answer, last)
            if wrong:
                raise self._error(where, f"{wrong}; or an array" if "expected an" in wrong else wrong)
            return [int(answer)]
        self._check(where, answer, "iu", (min(max(len(answer), 1), AHEAD),) if answer.ndim == 1 else (1,))
        self._check_range(where, "plane", answer, last)
        chosen: list[int] = answer.tolist()
        return chosen

    def classify(self, classes: float, op: bytes, columns: bytes) -> bytes:
        """The class of each request. Raises PolicyError as `choose`."""
        requests = Requests(int(classes), *_columns(op, columns))
        where = _of_requests("classify", requests)
        answer = self._called("classify", requests, lambda: where)
        self._check(where, answer, "biu", requests.op.shape)
        self._check_range(where, "class", answer, int(classes) - 1)
        chosen: bytes = answer.astype(np.uint8).tobytes()
        return chosen

    def admit(self, free: float, op: bytes, columns: bytes) -> bytes:
        """The shares of requests, in steps. Raises PolicyError as `choose`."""
        requests = Writes(free, *_columns(op, columns))
        where = _of_requests("admit", requests)
        answer = self._called("admit", requests, lambda: where)
        self._check(where, answer, "biuf", requests.op.shape)
        self._check_range(where, "share", answer, 1)
        chosen: bytes = np.rint(answer * _STEPS).astype(np.uint8).tobytes()
        return chosen

    def limits(self, reads: int, *layer: Any) -> list[int]:  # noqa: ANN401  # numbers
        """The limits by read count. Raises PolicyError as `choose`."""
        merges = Merges(np.arange(reads), *layer)
        where = f"limits, {merges.merges} merges so far"
        answer = self._called("limits", merges, lambda: where)
        self._check(where, answer, "iu", (reads,))
        self._check_range(where, "limit", answer, merges.subpages, 1)
        limits: list[int] = answer.tolist()
        return limits

    def _called(self, method: str, argument: object, where: Callable[[], str]) -> Any:  # noqa: ANN401  # of the user
        try:
            return getattr(self._policy, method)(argument)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise self._error(where(), f"{type(error).__name__}: {error}") from error

    def _check(self, where: str, answer: object, kinds: str, shape: tuple[int, ...]) -> None:
        """Raises PolicyError if an answer is no array of these kinds and this shape."""
        if not isinstance(answer, np.ndarray) or answer.dtype.kind not in kinds:
            found = f"array of {answer.dtype}" if isinstance(answer, np.ndarray) else type(answer).__name__
            raise self._error(where, f"{found}; expected an array of {_KINDS[kinds]}")
        if answer.shape != shape:
            raise self._error(where, f"shape {answer.shape}; expected {shape}")

    def _check_range(self, where: str, what: str, answer: npt.NDArray[Any], most: int, least: int = 0) -> None:
        right = (answer >= least) & (answer <= most)
        if not right.all():
            raise self._error(where, f"{what} {answer[~right][0]}; expected {least} to {most}")

    def _error(self, where: str, what: str) -> PolicyError:
        return PolicyError(f"{self._name}.{where}: {what}")

    def store(self) -> bytes:
        """The state of the policy, as plain data. Raises PolicyError for an attribute that is none."""
        if self.address is not None:
            return b""
        try:
            return plain.dumps(self._policy)
        except plain.NotPlain as error:
            raise PolicyError(f"{self._name}: {error}") from error

    def restore(self, stored: bytes) -> None:
        """Sets the state that `store` returned. Raises PolicyError for other bytes."""
        if self.address is not None:
            return
        try:
            plain.replace(self._policy, stored)
        except plain.NotPlain as error:
            raise PolicyError(f"{self._name}: {error}") from error


def _wrong_number(what: str, answer: object, most: int) -> str:
    """The mistake of an answer that is no whole number from 0 to `most`; empty for others."""
    if isinstance(answer, bool) or not isinstance(answer, int | np.integer):
        return f"{type(answer).__name__} {answer!r:.80}; expected {what}"
    return "" if 0 <= answer <= most else f"{what.partition(' ')[2]} {answer}; expected 0 to {most}"


def _of_blocks(blocks: Candidates) -> str:
    return f"choose, plane {blocks.plane}, {len(blocks.block)} closed blocks"


def _columns(op: bytes, columns: bytes) -> tuple[npt.NDArray[Any], ...]:
    """Time, operation, offset, size and owner of requests."""
    time, *others = np.frombuffer(columns, np.int64).reshape(4, -1)
    return time, np.frombuffer(op, np.uint8), *others


def _of_requests(method: str, requests: Requests | Writes) -> str:
    kind, offset, size = ("read", "write", "trim", "flush")[requests.op[0]], requests.offset[0], requests.size[0]
    return f"{method}, {len(requests.op)} requests from a {kind} of {size} bytes at {offset} on"


def _address(policy: object) -> int | None:
    """The address of a compiled function: of this module's `Choose`, or of Numba; None for other objects."""
    if isinstance(policy, Choose):
        return ctypes.cast(policy, ctypes.c_void_p).value
    address = getattr(policy, "address", None)
    return address if isinstance(address, int) and callable(policy) else None


def _load(path: str, source: bytes, digest: str) -> ModuleType:
    """The code of a file as a module of this process, where dataclasses find its classes."""
    module = ModuleType(f"palimpsest_policy_{digest}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, path, "exec"), vars(module))
    except BaseException as error:
        del sys.modules[module.__name__]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise InputError(f"{path}: {type(error).__name__}: {error}; expected a file that Python can load") from error
    return module


def _of_plugin(key: str, text: str) -> tuple[Any, str]:
    """As `named`, of `NAME` or `NAME@DIGEST`."""
    name, _, expected = text.partition("@")
    found, digest = plugins.policy(key, name)
    if expected and expected != digest:
        raise InputError(f"{key} = {name}: the digest is {digest}, so this is other code; expected {expected}")
    return found, f"{name}@{digest}"


def _of_process(text: str) -> tuple[Any, str]:
    """As `named`, of a registered object. The digest covers the file of the class and the attributes."""
    name, _, same = text.partition("@")
    if name not in _OBJECTS:
        raise InputError(f"{name}: no such object in this process; expected FILE.py:CLASS")
    found = _OBJECTS[name]
    digest = _digest(found)
    if same and same != digest:
        raise InputError(f"{name}: the digest is {digest}, so the object has changed; expected {same}")
    return found, f"{name}@{digest}"


def _digest(found: object) -> str:
    """The digest of a class or an object; of this process alone if its code or attributes cannot be read."""
    kind = found if isinstance(found, type) else type(found)
    try:
        code = Path(inspect.getfile(kind)).read_bytes()
        state = b"" if isinstance(found, type) else plain.dumps(found)
    except Exception:  # whatever the attributes of the user raise
        code, state = _PROCESS, str(id(found)).encode()
    return hashlib.sha256(b"\0".join((code, kind.__qualname__.encode(), state))).hexdigest()[:_DIGITS]


def named(text: str, expected: str, key: str = "ftl.name") -> tuple[Any, str]:
    """What `FILE.py:NAME`, a registered object, or a name of a plug-in for `key` names, and the canonical text.

    Raises InputError.
    """
    if text.startswith("object:"):
        return _of_process(text)
    if ".py:" not in text:
        return _of_plugin(key, text)
    path, _, name = text.partition(".py:")
    path, (name, _, same) = f"{path}.py", name.partition("@")
    try:
        source = user_files.SHIPPED[path] if path in user_files.SHIPPED else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; expected a file with the class {name}") from error
    digest = hashlib.sha256(source).hexdigest()[:_DIGITS]
    if same and same != digest:
        raise InputError(f"{path}: the digest is {digest}, so this is other code; expected {same}")
    user_files.SOURCES[digest] = source
    module = sys.modules.get(f"palimpsest_policy_{digest}") or _load(path, source, digest)
    found = getattr(module, name, None)
    if not isinstance(found, type) and _address(found) is None:
        raise InputError(f"{path}: no class {name!r}; expected the name of a class with {expected}")
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


def _new(found: Any, name: str) -> object:  # noqa: ANN401  # of the user
    return _made(found, name) if isinstance(found, type) else found


def _made(make: Callable[[], object], name: str) -> object:
    try:
        return make()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise InputError(f"{name}: {type(error).__name__}: {error}; expected a class to call without values") from error


def read(key: str, text: str) -> str:
    """The canonical text of `FILE.py:CLASS`, or of a registered object. Raises InputError for a wrong policy."""
    found, canonical = named(text, f"the method {_METHODS[key]}", key)
    _check(key, text, _new(found, text))
    return canonical


def build(key: str, text: str) -> Caller:
    """A new policy for a drive. Raises InputError as `read`."""
    found, canonical = named(text, f"the method {_METHODS[key]}", key)
    name = canonical.partition("@")[0]
    if text.startswith("object:"):
        name = name.rpartition(":")[2]
        return Caller(name, found if _address(found) else _made(lambda: copy.deepcopy(found), name))
    return Caller(name, _new(found, text))


def register(key: str, policy: object) -> str:
    """The value of a key for a policy: an object, or a class. The object stays registered for the whole process."""
    if isinstance(policy, type):
        policy = _new(policy, policy.__name__)
    _check(key, type(policy).__name__, policy)
    return enter(policy, type(policy).__name__)


def enter(value: object, name: str) -> str:
    """The text that names `value` in this process, called `name` in messages."""
    known = next((text for text, each in _OBJECTS.items() if each is value), None)
    text = known or f"object:{next(_NUMBERS)}:{name}"
    _OBJECTS[text] = value
    return text


def keys(policies: Mapping[str, object]) -> dict[str, object]:
    """Keys of the configuration for policies by key; texts stay unchanged. Raises InputError for other keys."""
    other = next((key for key in policies if key not in _METHODS), None)
    if other is not None:
        raise InputError(f"policies: no policy of {other} is in Python; expected {', '.join(_METHODS)}")
    return {key: value if isinstance(value, str) else register(key, value) for key, value in policies.items()}
