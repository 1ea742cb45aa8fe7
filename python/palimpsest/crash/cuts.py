"""States of a simulated drive after a power cut in any flash operation, and in the recoveries.

The recorded requests are replayed in order on a drive with the base. The power fails in an operation, the layer
recovers from flash, and the content is a state like others: each unit holds the data of some write. The verifier of the
core checks the guarantee of the layer.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from .. import _core
from ..errors import InputError
from ..options import RunOptions
from .commands import Plan
from .history import FLUSH, History, adjacent
from .windows import State

Cut = tuple[int, ...]
"""A flash operation, and further ones in recoveries, in which power failed again."""

_ACKNOWLEDGED = {"volatile": "buffer.ack=volatile", "protected": "buffer.ack=buffer", "none": "buffer.ack=program"}
_NEVER = "faults.power_cut_at=4611686018427387904"
_IN_RECOVERY = 6


@dataclass(frozen=True)
class Left:
    """The state after a cut, None after all requests, and the flash operations of the last recovery."""

    state: State | None
    recovery: int


def smallest(plan: Plan) -> Plan:
    """The plan with the smallest sufficient drive, unless the plan sets its size. Raises InputError."""
    assert plan.ssd is not None
    cache = _ACKNOWLEDGED[plan.cache]
    given = [*plan.overrides, *([] if _sets(plan, "buffer.ack") else [cache])]
    sizes = [] if _sets(plan, "ssd.blocks_per_plane") else [f"ssd.blocks_per_plane={8 << power}" for power in range(12)]
    for size in sizes:
        settings = (*given, size)
        try:
            if _core.drive_bytes(plan.ssd, plan.ftl, list(settings)) >= plan.size:
                return replace(plan, overrides=settings)
        except InputError:
            continue
    settings = tuple(given)
    try:
        has = _core.drive_bytes(plan.ssd, plan.ftl, list(settings))
    except InputError as error:
        # The setting comes from `--cache`.
        text = str(error).replace(f"--set {cache}: ", f"--cache {plan.cache}: ")
        raise InputError(text if cache in given[len(plan.overrides) :] else str(error)) from None
    if has < plan.size:
        raise InputError(f"--size {plan.size}: the drive has {has} bytes; expected no more, or a larger drive")
    return replace(plan, overrides=settings)


def _sets(plan: Plan, key: str) -> bool:
    return any(each.partition("=")[0].strip() == key for each in plan.overrides)


class Cuts:
    """The cuts of a drive that replays a history. Raises InputError or DeviceError if the drive cannot."""

    def __init__(self, plan: Plan, history: History) -> None:
        self._history, self._is_used = history, plan.precondition != "none"
        steps = [*_pieces(history, sorted(history.base.items())), *([(0, b"")] if history.base else [])]
        self._first = len(steps)
        self._of_step: list[tuple[int, int]] = []
        """Of each step: its event, and how many units of that event were written by steps before it."""
        for number, event in enumerate(history.events):
            done = 0
            for offset, data in _pieces(history, event.units):
                steps.append((offset, data))
                self._of_step.append((number, done))
                done += len(data) // history.unit
            if event.kind == FLUSH or event.durable:
                steps.append((0, b""))
                self._of_step.append((number, done))
        assert plan.ssd is not None
        options = RunOptions(
            ssd=plan.ssd, ftl=plan.ftl, overrides=(*plan.overrides, _NEVER), workload="crash", payload="bytes",
            fidelity="count", precondition=plan.precondition, seed=plan.seed,
        )  # fmt: skip
        self._script = _core.CrashScript(options.to_json(), history.unit, steps)
        operations = self._script.operations()
        self.steps = len(steps)
        self.before = operations[self._first - 1] if self._first else 0
        self.operations = operations[-1] - self.before if len(operations) > self._first else 0

    def left(self, cut: Cut) -> Left:
        """The state after a cut, counted from 1 for the program's first operation. Raises RuleError for lost data."""
        found = self._script.cut(self.before + cut[0], list(cut[1:]))
        if found is None:
            return Left(None, 0)
        step, recovery, changed = found
        event, done = self._of_step[step - self._first]
        # Unwritten units are old, unless the drive has their new contents.
        history, stop = self._history, event + 1
        holds = {unit: history.version_at(unit, event)[0] for unit, _ in history.events[event].units[done:]}
        holds.update(self._pick(unit, data, event) for unit, data in changed)
        picks = (each for each in holds.items() if history.version_at(each[0], stop)[0] != each[1])
        return Left(State(stop, history.last_said(event), tuple(sorted(picks)), cut), recovery)

    def _pick(self, unit: int, data: bytes, event: int) -> tuple[int, int]:
        """The event whose contents the unit holds: the last before the cut."""
        is_zero = not data.strip(b"\0")
        for number, digest in reversed(self._history.versions(unit)):
            if number <= event and (is_zero if not digest else self._history.contents[digest] == data):
                return unit, number
        if self._is_used and unit not in self._history.base:
            # Preconditioning wrote the unit, and no request before the cut did.
            return unit, -1
        raise InputError(f"after a cut unit {unit} holds data that no request wrote: the layer lost data")


def _pieces(history: History, units: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Writes of adjacent units: offset, and bytes."""
    for first, digests in adjacent(units):
        contents = (history.contents[digest] if digest else bytes(history.unit) for digest in digests)
        yield first * history.unit, b"".join(contents)


def spread(count: int) -> Iterator[int]:
    """The numbers from 1 to `count`, each once, in an order of which every prefix is spread over all."""
    bits = max(1, count.bit_length())
    for number in range(1 << bits):
        mirrored = int(f"{number:0{bits}b}"[::-1], 2) + 1
        if mirrored <= count:
            yield mirrored


def again(cut: Cut, recovery: int) -> list[Cut]:
    """Cuts in the recovery from `cut`, which had this number of operations."""
    if len(cut) > 2:
        return []
    return [
        (*cut, after)
        for after in sorted({1 + recovery * part // _IN_RECOVERY for part in range(_IN_RECOVERY)})
        if after <= recovery
    ]
