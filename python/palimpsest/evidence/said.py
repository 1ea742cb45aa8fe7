"""A verdict, its words, and its reason: the answer of each function of this package that judges."""

from dataclasses import dataclass

from ..errors import EXIT_CAUTION

CAUTION = EXIT_CAUTION


@dataclass(frozen=True)
class Said:
    """A verdict in one word, a clause for sentences, and the reason of a verdict that is not the good one.

    A command that ends with this verdict has the exit status `status`.
    """

    verdict: str
    text: str
    reason: str | None = None
    status: int = 0


def listed(names: list[str]) -> str:
    """Names in a sentence: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
