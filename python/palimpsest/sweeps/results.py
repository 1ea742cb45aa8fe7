"""The finished points of a sweep as a table, a plot and a page, also read from a folder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..intervals import interval
from ..replicates import Replicates
from ..result import Result
from ..result import figures as figures_of
from ..sketches import Sketch, merged
from .checks import checks
from .finished import FinishedPoints, Kept, PointResult
from .fleet import Fleet, fleets, percentile
from .frontier import Frontier, frontier
from .store import MANIFEST, read_points
from .values import Value, axis_text

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go
    import polars as pl
    from rich.console import RenderableType

SCHEMA_VERSION = 1


class Sweep(FinishedPoints):
    """The finished points of a sweep, in the order of its file."""

    @classmethod
    def load(cls, folder: str | Path) -> "Sweep":
        """Reads the finished points in a folder of `sweep`. Raises InputError."""
        return load(folder)

    def to_polars(self) -> "pl.DataFrame":
        """A row for each point: axes, status, error, identity, and a column for each figure, as in sweep.parquet.

        Figures have the names of `Result.to_polars()`; failed points have nulls. An axis of quantities has a second
        column in the base unit of its ending: `_bytes`, `_ns`, `_share` (of one) or `_bytes_per_s`.
        """
        from .table import data_frame

        return data_frame(self.axes, self._points)

    def to_pandas(self) -> "pd.DataFrame":
        """As `to_polars`, for pandas. Raises ImportError without pandas and pyarrow."""
        return self.to_polars().to_pandas()

    def latency(self) -> "pl.DataFrame":
        """The distributions of latency, as in latency.parquet: a row for each bucket of each point.

        Columns: the axes, `identity`, `class` (`all`, `read`, `write`), `lower_ns` and `count`; a bucket is 1/64 of an
        octave wide. Points at count fidelity have no rows.
        """
        from .table import distributions

        return distributions(self.axes, self._points)

    def sketch(self, kind: str = "all", **axes: Value) -> Sketch:
        """The merged distribution of the points with these values of axes, of `all`, `read` or `write` requests.

        >>> swept.sketch("read", **{"ftl.victim": "greedy"}).percentile(99.9)
        """
        chosen = (point for point in self._points if all(point.axes.get(key) == axes[key] for key in axes))
        found = (Sketch.of(data, kind) for point in chosen if (data := point.kept.data) is not None)
        return merged(sketch for sketch in found if sketch is not None)

    def percentiles(
        self, by: Sequence[str], kind: str = "all", of: Sequence[float] = (50, 90, 99, 99.9)
    ) -> "pl.DataFrame":
        """Percentiles over the requests of all points with the same values of the axes `by`, within 0.8 %.

        Returns a row for each combination: the axes, and `p50_ns`, ... for the percentages `of`. Distributions of
        points that differ in other axes, such as seeds, are merged; `kind` is `all`, `read` or `write`.
        """
        import polars as pl

        rows = []
        for values, points in self.grouped(by):
            found = (Sketch.of(data, kind) for point in points if (data := point.kept.data) is not None)
            together = merged(sketch for sketch in found if sketch is not None)
            rows.append({**values, **{f"p{percent:g}_ns": together.percentile(percent) for percent in of}})
        return pl.DataFrame(rows, infer_schema_length=None)

    def intervals(self, figure: str, by: Sequence[str], method: str = "t") -> "pl.DataFrame":
        """A figure as mean and 95 % confidence interval over the points with the same values of the axes `by`.

        Returns a row for each combination: the axes, `mean`, `low`, `high`, `deviation` and `number` of points, which
        differ in other axes, such as seeds. `method` is `t` or `bootstrap` (`palimpsest.intervals`), or an InputError.
        """
        import polars as pl

        rows = []
        for values, points in self.grouped(by):
            found = (figures_of(data).get(figure) for point in points if (data := point.kept.data) is not None)
            known = [value for value in found if isinstance(value, int | float)]
            if known:
                rows.append({**values, **interval(known, method)._asdict()})
        return pl.DataFrame(rows, infer_schema_length=None)

    def replicates(self, method: str = "t") -> Replicates:
        """The points as replicates of the axis `seed`: a contender for each combination of the other axes.

        Labels are the values of these axes with commas between them. Raises InputError without an axis `seed`, or if a
        combination lacks a seed or failed.
        """
        if "seed" not in self.axes:
            raise InputError("replicates: the sweep has no axis seed; expected one, such as seed = [1, 2, 3]")
        seeds = [int(str(seed)) for seed in self.values("seed")]
        axes = [axis for axis in self.named if axis != "seed" and len(self.values(axis)) > 1]
        labels, results = list[str](), list[Result]()
        for values, points in self.grouped(axes):
            label = ", ".join(axis_text(value) for value in values.values()).replace("/", "_") or self.title
            found = {point.axes.get("seed"): point.result for point in points}
            labels.append(label)
            for seed in seeds:
                result = found.get(seed)
                if result is None:
                    raise InputError(f"replicates: {label} has no result of seed {seed}; expected every seed finished")
                results.append(Result(result.to_dict() | {"label": label}))
        return Replicates(results, labels, seeds, method)

    def spread(self, figure: str, by: Sequence[str], of: Sequence[float] = (0, 1, 50, 99, 100)) -> "pl.DataFrame":
        """Percentiles of a figure over the points with the same values of the axes `by`, each point once.

        Returns a row for each combination: the axes, `number` of points, `failed` ones, and `p50`, ... for the
        percentages `of`, interpolated; 0 is the least, 100 the most. Null where no point has the figure.
        """
        import polars as pl

        rows = []
        for values, points in self.grouped(by):
            found = (figures_of(data).get(figure) for point in points if (data := point.kept.data) is not None)
            known = sorted(value for value in found if isinstance(value, int | float))
            failed = sum(point.status != "done" for point in points)
            percents = {f"p{each:g}": percentile(known, each) if known else None for each in of}
            rows.append({**values, "number": len(points), "failed": failed, **percents})
        return pl.DataFrame(rows, infer_schema_length=None)

    def fleets(self) -> list[Fleet]:
        """The fleets that `fleet` in `[report]` names, with the figures of their drives; empty without."""
        return fleets(self)

    def to_dict(self) -> dict[str, Any]:
        """The object of `palimpsest sweep --json`: counts, and each point with its axes and key figures."""
        from ..metrics import METRICS

        names = [".".join(metric.path) for metric in METRICS]
        points = []
        for point in self._points:
            data = point.kept.data
            flat = {} if data is None else figures_of(data)
            points.append(
                {
                    "axes": point.axes, "identity": point.identity, "status": point.status, "error": point.error,
                    "reused": point.reused,
                    "figures": None if data is None else {name: flat.get(name) for name in names},
                }
            )  # fmt: skip
        found = frontier(self)
        return {
            "schema_version": SCHEMA_VERSION, "title": self.title,
            "axes": {axis: self.values(axis) for axis in self.axes}, "total": self.total,
            "done": len(self._points) - len(self.failed), "failed": len(self.failed),
            "reused": sum(point.reused for point in self._points),
            "out": None if self.folder is None else str(self.folder), "no_interval": self.unmoved(), "points": points,
            "checks": [each.to_dict() for each in checks(self)],
        } | ({} if found is None else {"slo": found.to_dict()}) | (
            {"fleets": [each.to_dict() for each in of_fleets]} if (of_fleets := fleets(self)) else {}
        )  # fmt: skip

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent)

    def frontier(self) -> Frontier | None:
        """The configurations that hold the conditions of `slo`, and the cheapest of them; None without conditions."""
        return frontier(self)

    def plot(self, figure: str | None = None, x: str | None = None, colour: str | None = None) -> "go.Figure":
        """A figure over the axis `x`, a line for each value of `colour`, as a plotly chart.

        None selects the report's figure and colour, and the axis with most numbers. Points that differ in other axes
        are averaged, with 95 % intervals over seeds and starts of a trace, else with least and most. Raises ValueError
        for an unknown figure or axis.
        """
        from .charts import chart

        return chart(self, figure, x, colour)

    def plot_fleets(self, figure: str | None = None) -> "go.Figure":
        """The share of drives with at most a value of a figure, a line for each fleet, as a plotly chart.

        None selects the report's figure. Raises ValueError without fleets, and for an unknown figure.
        """
        from .charts import chart_of_fleets

        return chart_of_fleets(self, figure)

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
    """The file with the points of a sweep, for `load`."""
    data = {
        "schema_version": SCHEMA_VERSION, "title": title, "axes": list(axes), "report": shown,
        "points": [{"axes": values, "identity": identity} for values, identity in points],
    }  # fmt: skip
    return json.dumps(data, indent=1).encode() + b"\n"


def load(folder: str | Path) -> Sweep:
    """Reads the finished points in a folder of `palimpsest sweep` (`--out` or results/NAME). Raises InputError."""
    folder = Path(folder)
    path = folder / MANIFEST
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        points = [(each["axes"], each["identity"]) for each in data["points"]]
        read = read_points(folder, [identity for _, identity in points])
        outcomes = {identity: Kept.of(outcome) for identity, outcome in read}
        found = [
            PointResult(axes, identity, outcomes[identity], reused=True)
            for axes, identity in points
            if identity in outcomes
        ]
        file = folder / "sweep.toml"
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        return Sweep(data["title"], data["axes"], found, len(points), folder, text, data["report"])
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a folder that `palimpsest sweep` wrote") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: expected what `palimpsest sweep` wrote: {error}") from error
