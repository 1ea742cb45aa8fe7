"""How the raw bit error rate of a flash block grows with its cycles, and the lifetime of a block.

The model is that of `crates/flash/src/nand/wear.rs`, after the LLH paper (Margaglia et al., FAST 2016), Sec. 3.3 and
3.4, Tables 2 to 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from . import _core

BIASES = ("none", "reprogram", "voltage")
"""What cycles may be biased by: nothing, low pages that are programmed again, or a raised threshold voltage alone."""


@dataclass(frozen=True, slots=True)
class Life:
    """The lifetime of a block.

    Attributes:
        endurance: cycles that the part is rated for, at which a block that is never biased reaches the limit.
        cycles: cycles until the raw bit error rate of this block reaches the limit.
        ends_biased: whether it is a biased cycle that reaches it; usual ones would still be below it.
        lasting_loss: share of the endurance that the biased cycles cost permanently.
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
    """The raw bit error rate of a block after so many cycles.

    Args:
        cycles: program and erase cycles, in any order.
        part: preset (`palimpsest list parts`) or path of a part file.
        bias: one of `BIASES`.
        window: share of the part's endurance up to which all cycles are biased, from 0 to 1; usual ones follow.
        overrides: configuration keys, each `key=value`.

    Returns:
        A rate (errors a bit read) for each of `cycles`.

    Raises:
        InputError: there is no such part, bias or key.
    """
    return _core.bit_error_rates(part, list(overrides), bias, window, list(cycles))


def life(
    part: str = "a16", bias: str = "reprogram", window: float = 0.0, biased: float = 1.0, overrides: Sequence[str] = ()
) -> Life:
    """The lifetime of a block.

    Args:
        part: preset or path of a part file.
        bias: one of `BIASES`.
        window: share of the part's endurance up to which cycles may be biased, from 0 to 1.
        biased: share of the cycles up to there that are biased.
        overrides: configuration keys, each `key=value`.

    Raises:
        InputError: there is no such part, bias or key.
    """
    return Life(*_core.life(part, list(overrides), bias, window, biased))
