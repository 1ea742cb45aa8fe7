"""Rows: the real and the simulated figure, the allowed deviation, and whether the model was fitted to the row."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError


@dataclass(frozen=True, slots=True)
class Bar:
    """The allowed deviation: a share of the real figure, a factor between the two, or steps of a table's conditions."""

    share: float | None = None
    factor: float | None = None
    steps: int | None = None
    span: tuple[float, float] | None = None
    """The least and the greatest allowed figure, of `steps`."""

    @staticmethod
    def parse(text: str, place: str) -> "Bar | None":
        """Reads `10%`, `1.5x` or `1step`; None for an empty text. Raises InputError at `place` for other texts."""
        text = text.strip()
        if not text:
            return None
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(%|x|step)", text)
        if match is None or (match[2] == "x" and float(match[1]) < 1):
            raise InputError(
                f"{place}: bar {text!r}: expected a deviation such as 10%, or a factor from 1 such as 1.5x"
            )
        if match[2] == "step":
            return Bar(steps=int(float(match[1])))
        return Bar(share=float(match[1]) / 100) if match[2] == "%" else Bar(factor=float(match[1]))

    def among(self, conditions: Sequence[float], real: float) -> "Bar":
        """The bar in steps, from the condition `real` of a table, which must be among `conditions`."""
        ordered = sorted(conditions)
        at, steps = ordered.index(real), self.steps or 0
        return Bar(steps=steps, span=(ordered[max(0, at - steps)], ordered[min(len(ordered) - 1, at + steps)]))

    def holds(self, real: float, ours: float) -> bool:
        """Whether `ours` is within the bar of `real`."""
        if self.span is not None:
            return self.span[0] <= ours <= self.span[1]
        if self.factor is not None:
            return real > 0 and ours > 0 and max(ours / real, real / ours) <= self.factor * (1 + 1e-9)
        share = self.share or 0.0
        # A figure that is itself a deviation has no real amount: the bar is its upper bound, in percent.
        limit = share * abs(real) if real else 100 * share
        return abs(ours - real) <= limit * (1 + 1e-9)

    def __str__(self) -> str:
        if self.span is not None:
            return f"{self.span[0]:g} to {self.span[1]:g}"
        return f"{self.factor:g}x" if self.factor is not None else f"{100 * (self.share or 0):g} %"


_KINDS = {"1/s": "throughput", "MB/s": "throughput", "GB": "fast cache"}
_TAIL = re.compile(r"\b(p99(\.9+)?|max)$")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of a real drive and ours, None if not measured; `fitted` if the preset was fitted to this row."""

    table: str
    id: str
    drive: str
    conditions: str
    figure: str
    unit: str
    real: float
    ours: float | None
    bar: Bar | None
    fitted: bool
    note: str = ""

    @property
    def deviation(self) -> float | None:
        """The deviation of ours in percent, or None."""
        return 100 * (self.ours / self.real - 1) if self.ours is not None and self.real else None

    @property
    def excess(self) -> float:
        """How many times the bar ours is off; 0 without a bar or figure, or where the figure has no real amount."""
        if self.ours is None or self.bar is None or not self.real or self.ours <= 0:
            return 0.0
        ratio = max(self.ours / self.real, self.real / self.ours)
        return ratio / self.bar.factor if self.bar.factor else abs(self.ours / self.real - 1) / (self.bar.share or 1)

    @property
    def within(self) -> bool | None:
        """Whether ours is within its bar; None without a bar or figure."""
        return None if self.ours is None or self.bar is None else self.bar.holds(self.real, self.ours)

    @property
    def kind(self) -> str:
        """The kind of question that the figure answers, for verdicts on presets."""
        if self.unit in _KINDS:
            return _KINDS[self.unit]
        if "write amplification" in self.figure or self.unit == "%":
            return "write amplification"
        return "p99 and beyond" if _TAIL.search(self.figure) else "response times"

    @property
    def has_no_bar(self) -> bool:
        """Whether ours was measured and nothing judges it."""
        return self.ours is not None and self.bar is None

    def to_dict(self) -> dict[str, Any]:
        """The row in the form of the contract."""
        deviation = self.deviation
        return {
            "table": self.table, "id": self.id, "drive": self.drive, "conditions": self.conditions,
            "figure": self.figure, "unit": self.unit, "real": self.real,
            "ours": None if self.ours is None else round(self.ours, 4),
            "deviation_percent": None if deviation is None else round(deviation, 2),
            "bar": None if self.bar is None else str(self.bar), "within": self.within,
            "mark": "fitted" if self.fitted else "predicted", "note": self.note,
        }  # fmt: skip
