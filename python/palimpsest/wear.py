"""How the raw bit error rate of a flash block grows with its cycles, and the lifetime of a block.

The model follows `crates/flash/src/nand/wear.rs`, after the LLH paper (Margaglia et al., FAST 2016), Sec. 3.3 and 3.4,
Tables 2 to 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from . import _core

BIASES = ("none", "reprogram", "voltage")
"""Bias of cycles: none, low pages programmed again, or a raised threshold voltage alone."""


@dataclass(frozen=True, slots=True)
class Life:
    """The lifetime of a block: `endurance` are the rated cycles of the part, `cycles` those until the limit of errors.

    `ends_biased` says whether a biased cycle reaches the limit before a usual one would; `lasting_loss` is the share of
    the endurance that biased cycles cost permanently.
    """

    endurance: int
    cycles: float
    ends_biased: bool
    lasting_loss: float


def bit_error_rates(
    cycles: Sequence[float],
    part: str = "a16",
    bias: str = "reprogram",
    window: float = 0.0,
    overrides: Sequence[str] = (),
) -> list[float]:
    """The raw bit error rate (errors a bit read) of a block after each of these numbers of program and erase cycles.

    `part` is a preset (`palimpsest list parts`) or a file, `bias` is in `BIASES`; within `window`, a share of the
    part's endurance, all cycles are biased. Raises InputError.
    """
    return _core.bit_error_rates(part, list(overrides), bias, window, list(cycles))


def life(
    part: str = "a16", bias: str = "reprogram", window: float = 0.0, biased: float = 1.0, overrides: Sequence[str] = ()
) -> Life:
    """The lifetime of a block; `biased` is the share of biased cycles within the window. Raises InputError."""
    return Life(*_core.life(part, list(overrides), bias, window, biased))
