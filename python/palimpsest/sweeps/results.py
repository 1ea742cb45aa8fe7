"""What a sweep found: its points with their axes and figures, as a sequence, a table, a plot and a page."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ..errors import InputError
from ..result import Result
from ..result import figures as figures_of
from .store import MANIFEST, read_points
from .task import Outcome
from .values import Value

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go
    import polars as pl
    from rich.console import RenderableType

__all__ = ["PointResult", "Sweep", "load"]

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class PointResult:
    """One finished point.

    Attributes:
        axes: its value of every axis of the sweep; None where it has none.
        identity: digest of all that its figures depend on.
        status: `done` or `failed`.
        error: why it failed, in one line; None where it did not.
        result: what it measured; None where it failed.
        reused: whether it was finished before this call, and not run again.
    """

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
        """The point in a few words."""
        return ", ".join(f"{key} {value}" for key, value in self.axes.items() if value is not None) or "the base"


class Sweep(Sequence[PointResult]):
    """The finished points of a sweep, in the order of its file.

    Args:
        title: heading of the report.
        axes: names of the axes.
        points: the finished points.
        total: points that the sweep has, finished or not.
        folder: where its files are; None where they were not kept.
        text: the sweep file.
        shown: what the report shows first: figure, x, colour, facet.
    """

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

    @classmethod
    def load(cls, folder: str | Path) -> "Sweep":
        """The sweep in a folder that `sweep` wrote, as far as it has come.

        Raises:
            InputError: there is none.
        """
        return load(folder)

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
        """The points that failed, each with its `error`."""
        return [point for point in self._points if point.status != "done"]

    def values(self, axis: str) -> list[Value]:
        """The values of an axis, in the order in which they come.

        Raises:
            KeyError: the sweep has no such axis.
        """
        if axis not in self.axes:
            raise KeyError(f"no axis {axis!r}; the sweep has {', '.join(self.axes) or 'none'}")
        found = [point.axes.get(axis) for point in self._points]
        return list(dict.fromkeys(value for value in found if value is not None))

    def to_polars(self) -> "pl.DataFrame":
        """A row for each point: axes, status, error, identity, and a column for each figure, as in sweep.parquet.

        Figures are named as by `Result.to_polars()`; those of failed points are null. An axis of quantities has
        a second column in a base unit that its name ends with: `_bytes`, `_ns`, `_share` (of one) or `_bytes_per_s`.
        """
        from .table import data_frame

        return data_frame(self.axes, self._points)

    def to_pandas(self) -> "pd.DataFrame":
        """As `to_polars`, for pandas.

        Raises:
            ImportError: pandas and pyarrow are not installed.
        """
        return self.to_polars().to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """What `palimpsest sweep --json` prints: counts, and each point with its axes and key figures."""
        from ..comparison import METRICS

        names = [".".join(metric.path) for metric in METRICS]
        points = []
        for point in self._points:
            flat = {} if point.result is None else figures_of(point.result.to_dict())
            points.append(
                {
                    "axes": point.axes, "identity": point.identity, "status": point.status, "error": point.error,
                    "reused": point.reused,
                    "figures": None if point.result is None else {name: flat.get(name) for name in names},
                }
            )  # fmt: skip
        return {
            "schema_version": SCHEMA_VERSION,
            "title": self.title,
            "axes": {axis: self.values(axis) for axis in self.axes},
            "total": self.total,
            "done": len(self._points) - len(self.failed),
            "failed": len(self.failed),
            "reused": sum(point.reused for point in self._points),
            "out": None if self.folder is None else str(self.folder),
            "points": points,
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent)

    def plot(self, figure: str | None = None, x: str | None = None, colour: str | None = None) -> "go.Figure":
        """A figure over an axis, as a plotly chart; points that differ in other axes are averaged, with least and most.

        Args:
            figure: name of a figure, such as `latency_ns.write.p99`; the report's first where None.
            x: axis; the one with most numbers where None.
            colour: axis that gives the lines; None for the report's first.

        Raises:
            ValueError: there is no such figure or axis.
        """
        from .charts import chart

        return chart(self, figure, x, colour)

    def __repr__(self) -> str:
        return f"Sweep({self.title!r}, axes={self.axes}, points={len(self)} of {self.total}, failed={len(self.failed)})"

    def __rich__(self) -> "RenderableType":
        from .show import render

        return render(self)

    def _repr_html_(self) -> str:
        from .report import fragment

        return fragment(self)


def manifest(
    title: str, axes: Sequence[str], shown: dict[str, str], points: Sequence[tuple[dict[str, Any], str]]
) -> bytes:
    """The file that names the points of a sweep, for `load`."""
    data = {
        "schema_version": SCHEMA_VERSION, "title": title, "axes": list(axes), "report": shown,
        "points": [{"axes": values, "identity": identity} for values, identity in points],
    }  # fmt: skip
    return json.dumps(data, indent=1).encode() + b"\n"


def load(folder: str | Path) -> Sweep:
    """The sweep in a folder, as far as it has come.

    Args:
        folder: what `palimpsest sweep` wrote, `--out` or results/NAME.

    Raises:
        InputError: there is none.
    """
    folder = Path(folder)
    path = folder / MANIFEST
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        points = [(each["axes"], each["identity"]) for each in data["points"]]
        outcomes = read_points(folder, [identity for _, identity in points])
        found = [
            PointResult.of(axes, outcomes[identity], reused=True) for axes, identity in points if identity in outcomes
        ]
        file = folder / "sweep.toml"
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        return Sweep(data["title"], data["axes"], found, len(points), folder, text, data["report"])
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a folder that `palimpsest sweep` wrote") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: expected what `palimpsest sweep` wrote: {error}") from error
