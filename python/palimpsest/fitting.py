"""Drives scaled to the memory at hand (`--fit-memory`): all runs of one command get the same factor.

The native module scales (`config/fit.rs`); a scaled run differs from a plain one by its overrides alone, so that its
`config.toml` and its options repeat it on any machine. Ignored: memory that other programs take during the run.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import _core, units
from .errors import InputError
from .options import RunOptions

AT_HAND = 0
"""In place of bytes: the memory that the system reports as free, shared by the runs at a time."""


def memory_of(text: str) -> int:
    """The bytes of a size such as `16GiB`, or `AT_HAND` for `auto`. Raises ValueError for other texts."""
    if text == "auto":
        return AT_HAND
    found = units.parse_bytes(text)
    if not found or found < 0:
        raise ValueError(f"{text!r} is no size; expected auto, or one such as 16GiB")
    return found


@dataclass(frozen=True, slots=True)
class Scale:
    """Memory of each run in bytes, and the most of its size that a drive keeps."""

    memory: int
    most: float = 1.0

    def fitted(self, options: RunOptions) -> RunOptions:
        """The run on the scaled drive; `fitted` of its options has the figures. Raises InputError if none fits."""
        made = self._made(options)
        return replace(options, overrides=tuple(made["overrides"]), fitted=json.dumps(_figures(made)))

    def factor(self, options: RunOptions) -> float:
        """The size of the scaled drive over the whole one. Raises InputError if none fits."""
        return float(self._made(options)["factor"])

    def _made(self, options: RunOptions) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(_core.fit_memory(options.to_json(), self.memory, self.most))
        return made


def _figures(made: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in made.items() if name != "overrides"}


def scale_of(memory: int, runs: Sequence[RunOptions], jobs: int) -> Scale:
    """The scale of all `runs`, of which `jobs` run at a time: the smallest factor of any run.

    `memory` is in bytes for each run, or `AT_HAND`. Raises InputError if the system reports no free memory, or no drive
    fits.
    """
    if memory == AT_HAND:
        free = _core.available_memory()
        if free is None:
            raise InputError("--fit-memory: the system reports no free memory; expected a size, such as 16GiB")
        memory = free // max(1, min(jobs, len(runs)))
    scale = Scale(memory)
    factors = {_drive(each): 1.0 for each in runs}
    for each in runs:
        if factors[_drive(each)] == 1.0:
            factors[_drive(each)] = scale.factor(each)
    return Scale(memory, min(factors.values(), default=1.0))


def _drive(options: RunOptions) -> tuple[object, ...]:
    """The options on which the memory of a run depends."""
    return (
        options.ssd, options.ftl, options.overrides, options.workload, options.precondition, options.requests,
        options.fidelity, options.payload, options.check,
    )  # fmt: skip


def fitted(runs: Sequence[RunOptions], memory: int | None, jobs: int = 1) -> tuple[list[RunOptions], list[str]]:
    """The runs on scaled drives, and a line for each change; the runs as they are if `memory` is None.

    Raises InputError as `scale_of`.
    """
    if memory is None:
        return list(runs), []
    scale = scale_of(memory, runs, jobs)
    made = [scale.fitted(each) for each in runs]
    return made, lines(made)


def lines(runs: Sequence[RunOptions]) -> list[str]:
    """A line for each different scaling of `runs`."""
    return list(dict.fromkeys(f"--fit-memory: {text}" for each in runs if (text := note(each))))


def note(options: RunOptions) -> str | None:
    """The scaling of a run in one line; None without `--fit-memory`."""
    return None if options.fitted is None else str(json.loads(options.fitted)["text"])
