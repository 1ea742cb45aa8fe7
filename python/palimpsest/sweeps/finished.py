"""The finished points of a sweep as plain data: axes and figures for tables, plots and pages.

Results wait compressed in memory, because a sweep has up to 100,000 points. Tables, charts and pages read the results
of one point after the other.
"""

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from ..metrics import no_interval
from ..result import Result
from .task import Outcome
from .values import Value, readable_axes


@dataclass(frozen=True, slots=True)
class Kept:
    """The outcome of a point in little memory: the text of the `error`, and the `packed` result."""

    status: str
    error: str | None
    packed: bytes | None

    @classmethod
    def of(cls, outcome: Outcome) -> "Kept":
        """The outcome of a task."""
        error, result = outcome["error"], outcome["result"]
        text = None if error is None else str(error["text"])
        packed = None if result is None else zlib.compress(json.dumps(result, separators=(",", ":")).encode(), 1)
        return cls(outcome["status"], text, packed)

    @property
    def data(self) -> dict[str, Any] | None:
        """The result as plain data; None if the point failed."""
        if self.packed is None:
            return None
        data: dict[str, Any] = json.loads(zlib.decompress(self.packed))
        return data


@dataclass(frozen=True, slots=True)
class PointResult:
    """One finished point with its outcome; `reused` if an earlier call finished it."""

    axes: dict[str, Value | None]
    identity: str
    kept: Kept
    reused: bool = False

    @classmethod
    def of(cls, axes: dict[str, Value | None], outcome: Outcome, *, reused: bool = False) -> "PointResult":
        """A point and its outcome."""
        return cls(axes, outcome["identity"], Kept.of(outcome), reused)

    @property
    def status(self) -> str:
        """`done` or `failed`."""
        return self.kept.status

    @property
    def error(self) -> str | None:
        """The message of a failed point."""
        return self.kept.error

    @property
    def result(self) -> Result | None:
        """The result; None if the point failed. Each access unpacks the result anew."""
        data = self.kept.data
        return None if data is None else Result(data)

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

    def results(self) -> Iterator[Result]:
        """The results of the points that did not fail, one after the other."""
        return (found for point in self._points if (found := point.result) is not None)

    @property
    def named(self) -> list[str]:
        """The axes that a reader needs: without those whose value a label determines, unless the file shows them."""
        readable = {*readable_axes(self.axes, [point.axes for point in self._points]), *self.shown.values()}
        return [axis for axis in self.axes if axis in readable]

    def grouped(self, by: Sequence[str]) -> list[tuple[dict[str, Value | None], list[PointResult]]]:
        """Each combination of values of the axes `by`, with its points. Raises KeyError for an unknown axis."""
        for axis in by:
            self.values(axis)
        found: dict[tuple[Value | None, ...], list[PointResult]] = {}
        for point in self._points:
            found.setdefault(tuple(point.axes.get(axis) for axis in by), []).append(point)
        return [(dict(zip(by, values, strict=True)), points) for values, points in found.items()]

    def unmoved(self) -> list[str]:
        """A note for each reason for which several seeds of a configuration give equal figures, with no interval."""
        if "seed" not in self.axes or len(self.values("seed")) < 2:
            return []
        groups = [points for _, points in self.grouped([axis for axis in self.axes if axis != "seed"])]
        found = (no_interval(result for point in points if (result := point.result) is not None) for points in groups)
        return [
            f"{'all' if number == len(groups) else f'{number:,} of {len(groups):,}'} configurations: {why}"
            for why, number in Counter(filter(None, found)).items()
        ]

    def values(self, axis: str) -> list[Value]:
        """The values of an axis, in order of appearance. Raises KeyError for an unknown axis."""
        if axis not in self.axes:
            raise KeyError(f"no axis {axis!r}; the sweep has {', '.join(self.axes) or 'none'}")
        found = [point.axes.get(axis) for point in self._points]
        return list(dict.fromkeys(value for value in found if value is not None))
