"""The finished points of a sweep as plain data: axes and figures for tables, plots and pages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from ..result import Result
from .task import Outcome
from .values import Value, readable_axes


@dataclass(frozen=True)
class PointResult:
    """One finished point, with its result or error; `reused` if an earlier call finished it."""

    axes: dict[str, Value | None]
    identity: str
    status: str
    error: str | None
    result: Result | None
    reused: bool = False

    @classmethod
    def of(cls, axes: dict[str, Value | None], outcome: Outcome, *, reused: bool) -> "PointResult":
        """A point and its outcome."""
        error = None if outcome["error"] is None else str(outcome["error"]["text"])
        result = None if outcome["result"] is None else Result(outcome["result"])
        return cls(axes, outcome["identity"], outcome["status"], error, result, reused)

    @property
    def label(self) -> str:
        """The values of the axes in a few words."""
        return ", ".join(f"{key} {value}" for key, value in self.axes.items() if value is not None) or "the base"


class FinishedPoints(Sequence[PointResult]):
    """The finished points of a sweep of `total` points, in the order of its file."""

    def __init__(
        self, title: str, axes: Sequence[str], points: Sequence[PointResult], total: int,
        folder: Path | None = None, text: str = "", shown: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.title = title
        self.axes = list(axes)
        self.total = total
        self.folder = folder
        self.text = text
        self.shown = shown or {}
        self._points = list(points)

    @overload
    def __getitem__(self, index: int) -> PointResult: ...
    @overload
    def __getitem__(self, index: slice) -> list[PointResult]: ...
    def __getitem__(self, index: int | slice) -> PointResult | list[PointResult]:
        return self._points[index]

    def __len__(self) -> int:
        return len(self._points)

    def __iter__(self) -> Iterator[PointResult]:
        return iter(self._points)

    @property
    def failed(self) -> list[PointResult]:
        """The failed points, each with its `error`."""
        return [point for point in self._points if point.status != "done"]

    @property
    def named(self) -> list[str]:
        """The axes that a reader needs: without those whose value a label determines, unless the file shows them."""
        readable = {*readable_axes(self.axes, [point.axes for point in self._points]), *self.shown.values()}
        return [axis for axis in self.axes if axis in readable]

    def values(self, axis: str) -> list[Value]:
        """The values of an axis, in order of appearance. Raises KeyError for an unknown axis."""
        if axis not in self.axes:
            raise KeyError(f"no axis {axis!r}; the sweep has {', '.join(self.axes) or 'none'}")
        found = [point.axes.get(axis) for point in self._points]
        return list(dict.fromkeys(value for value in found if value is not None))
