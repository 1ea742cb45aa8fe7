"""Results: what a run measured, as attributes, tables, plots and pages.

The figures are those of `palimpsest run --json`; docs/results.md explains each. Nothing here computes a figure that
the simulator did not report.
"""

import importlib.util
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go
    import polars as pl
    import pyarrow as pa
    from rich.console import RenderableType

__all__ = ["Comparison", "Plots", "Result", "figures", "flatten"]


def flatten(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested figures as one level, the names joined by dots: `{"latency_ns.read.p99": 81000, ...}`."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            flat |= flatten(value, f"{name}.")
        else:
            flat[name] = value
    return flat


_KINDS = ("all", "read", "write")
_TIMES = ("mean", "p50", "p90", "p99", "p999", "p9999", "max")


def _need(extra: str, *packages: str) -> None:
    """Says which extra of this package has the ones that are missing."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"{' and '.join(missing)} is needed for this; `pip install 'palimpsest[{extra}]'` installs it"
        )


def figures(data: dict[str, Any]) -> dict[str, Any]:
    """As `flatten`, but latencies that were not measured are so many nulls, by the names of the run's other kinds."""
    latency = data.get("latency_ns") or {}
    measured = [tuple(times) for times in latency.values() if times]
    times = {kind: latency.get(kind) or dict.fromkeys(measured[0] if measured else _TIMES) for kind in _KINDS}
    return flatten({key: times if key == "latency_ns" else value for key, value in data.items()})


class Table:
    """What can be had as a table: as a data frame of Polars or pandas, or as an Arrow table."""

    def to_polars(self, table: str = "summary") -> "pl.DataFrame":
        """One table as a data frame of Polars."""
        raise NotImplementedError

    def to_pandas(self, table: str = "summary") -> "pd.DataFrame":
        """As `to_polars`, for pandas.

        Raises:
            ImportError: pandas or pyarrow is not installed (`pip install 'palimpsest[pandas]'`).
            ValueError: as `to_polars`.
        """
        _need("pandas", "pandas", "pyarrow")
        return self.to_polars(table).to_pandas()

    def to_arrow(self, table: str = "summary") -> "pa.Table":
        """As `to_polars`, for pyarrow.

        Raises:
            ImportError: pyarrow is not installed (`pip install 'palimpsest[arrow]'`).
            ValueError: as `to_polars`.
        """
        _need("arrow", "pyarrow")
        return self.to_polars(table).to_arrow()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The summary for any library that speaks Arrow's PyCapsule interface, such as DuckDB: `pa.table(result)`."""
        return self.to_polars().__arrow_c_stream__(requested_schema)


class Result(Table):
    """What one run measured.

    Every top-level key of the result is an attribute and an item: `result.write_amplification`,
    `result["latency_ns"]["write"]["p99"]`. Times are integer nanoseconds, amounts of data integer bytes, energies
    microjoules. Latencies are None at count fidelity, and those of reads in a run without reads.

    Results are equal when all their figures are, those about the simulator itself (`sim`) apart. They can be copied and
    pickled; `save` writes one to a folder, `palimpsest.load` reads it again.

    Args:
        data: the object that `palimpsest run --json` prints.
        series: time series, histograms, wear, utilisation and states of blocks; None where they were not asked for.
        configuration: the resolved configuration as TOML; empty where it is not known.
    """

    def __init__(self, data: dict[str, Any], series: dict[str, Any] | None = None, configuration: str = "") -> None:
        self._data = data
        self._series = series
        self._configuration = configuration

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - each key has a type of its own; docs/results.md
        if name.startswith("_") or name not in self._data:
            raise AttributeError(
                f"no such figure {name!r} in this result; it has {', '.join(self.__dict__.get('_data', ()))}"
            )
        return self._data[name]

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401
        return self._data[key]

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401
        """A top-level figure, or the default where the result does not have it."""
        return self._data.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        return self._figures() == other._figures()

    __hash__ = None  # type: ignore[assignment] # a dictionary inside

    def _figures(self) -> dict[str, Any]:
        return {key: value for key, value in self._data.items() if key != "sim"}

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def keys(self) -> list[str]:
        """Names of the top-level figures."""
        return list(self._data)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain dictionaries."""
        return json.loads(json.dumps(self._data))  # type: ignore[no-any-return]

    def to_json(self, *, indent: int | None = 2) -> str:
        """The result as `run --json` prints it."""
        return json.dumps(self._data, indent=indent)

    @property
    def series(self) -> dict[str, Any] | None:
        """Time series, histograms, wear and utilisation as lists; None where they were not asked for."""
        return self._series

    @property
    def configuration(self) -> str:
        """The resolved configuration as TOML, which `--ssd` and `Ssd` take as a file; empty where it is not known."""
        return self._configuration

    def save(self, folder: str | Path) -> Path:
        """Writes the files of `run --out` to a folder, which is made if it is not there, and gives its path.

        Raises:
            OSError: a file could not be written.
        """
        from . import outputs

        return outputs.save([self], Path(folder), together=False)

    def to_polars(self, table: str = "summary") -> "pl.DataFrame":
        """One table of the result as a data frame of Polars.

        Args:
            table: `summary` (one row, a column for each figure, such as `latency_ns.read.p99`); `time` (a row for each
                window of simulated time); `latency` (histogram: class, lower_ns, count); `wear` (a row for each block);
                `utilization` (a row for each channel and die); `snapshots` (fewer than 64, evenly over the requests);
                `blocks` (states of blocks: a row for each block of each snapshot, or for neighbours where there are
                many).

        Raises:
            ValueError: there is no such table, or the run kept no series.
        """
        from . import outputs

        if table == "summary":
            import polars as pl

            row = {name: value for name, value in figures(self._data).items() if not isinstance(value, list)}
            times = {name: pl.Int64() for name in row if name.startswith("latency_ns.")}
            return pl.DataFrame([row], infer_schema_length=None, schema_overrides=times)
        tables = outputs.series_tables(self._series)
        if table not in outputs.TABLES:
            raise ValueError(f"no such table {table!r}; expected one of summary, {', '.join(outputs.TABLES)}")
        if table not in tables:
            raise ValueError(f"this result has no table {table!r}; run with series=True to keep it")
        return tables[table]

    @property
    def plot(self) -> "Plots":
        """Plots of the result: `cdf()`, `latency()`, `time()`, `flash()`, `utilization()`, `wear()`, `states()`, ..."""
        return Plots([self])

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={self._data.get(key)!r}" for key in ("ftl", "ssd", "workload", "write_amplification"))
        return f"Result({shown})"

    def __rich__(self) -> "RenderableType":
        from . import summary

        return summary.render(self)

    def _repr_html_(self) -> str:
        from . import report

        return report.fragment([self])


class Comparison(Table, Sequence[Result]):
    """The same workload on several translation layers, in the order asked for. Ratios are to the first.

    Equal to another whose results are, in the same order; can be copied, pickled and saved as they can.

    Args:
        results: at least one result.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self._results = list(results)

    @overload
    def __getitem__(self, index: int | str) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> "Comparison": ...
    def __getitem__(self, index: int | str | slice) -> "Result | Comparison":
        """The result at a position, or of a layer by its name."""
        if isinstance(index, slice):
            return Comparison(self._results[index])
        if isinstance(index, int):
            return self._results[index]
        for result in self._results:
            if result["ftl"] == index:
                return result
        raise KeyError(index)

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Comparison):
            return NotImplemented
        return self._results == other._results

    __hash__ = None  # type: ignore[assignment] # a list inside

    def to_dict(self) -> dict[str, Any]:
        """What `palimpsest compare --json` prints: `{"runs": [...]}`."""
        return {"runs": [result.to_dict() for result in self._results]}

    def to_json(self, *, indent: int | None = 2) -> str:
        """The comparison as `compare --json` prints it."""
        return json.dumps(self.to_dict(), indent=indent)

    def save(self, folder: str | Path) -> Path:
        """Writes the files of `compare --out` to a folder, which is made if it is not there, and gives its path.

        Raises:
            OSError: a file could not be written.
        """
        from . import outputs

        return outputs.save(self._results, Path(folder), together=True)

    def to_polars(self, table: str = "summary") -> "pl.DataFrame":
        """The tables of all results, one below the other.

        Args:
            table: as of `Result.to_polars`: `summary` has a row for each layer and a column for each figure; the others
                have the layer in a first column `ftl`.

        Raises:
            ValueError: as of `Result.to_polars`.
        """
        import polars as pl

        tables = [result.to_polars(table) for result in self._results]
        if table != "summary":
            names = [pl.lit(str(result["ftl"])).alias("ftl") for result in self._results]
            tables = [each.select(name, pl.all()) for each, name in zip(tables, names, strict=True)]
        return pl.concat(tables, how="diagonal_relaxed")

    @property
    def plot(self) -> "Plots":
        """Plots of all results together, as of one."""
        return Plots(self._results)

    def __repr__(self) -> str:
        return f"Comparison({[result['ftl'] for result in self._results]})"

    def __rich__(self) -> "RenderableType":
        from . import comparison

        return comparison.render(self._results)

    def _repr_html_(self) -> str:
        from . import report

        return report.fragment(self._results)


class Plots:
    """Plots as plotly figures. Each raises ValueError where the run kept no data for it."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._results = list(results)

    def _figure(self, name: str) -> "go.Figure":
        from . import charts

        return charts.figure(name, self._results)

    def cdf(self) -> "go.Figure":
        """Share of requests that take at most a response time, reads and writes apart."""
        return self._figure("cdf")

    def latency(self) -> "go.Figure":
        """Share of requests slower than a response time, reads and writes apart; both axes logarithmic."""
        return self._figure("latency")

    def time(self) -> "go.Figure":
        """Throughput, response times, queue, write amplification, collection and erases over simulated time."""
        return self._figure("time")

    def progress(self) -> "go.Figure":
        """Write amplification, collection and erases over bytes written, at count fidelity too."""
        return self._figure("progress")

    def flash(self) -> "go.Figure":
        """Flash reads and programs by cause."""
        return self._figure("flash")

    def wear(self) -> "go.Figure":
        """How many blocks were erased how often."""
        return self._figure("wear")

    def wear_map(self) -> "go.Figure":
        """Erases of each block by its address."""
        return self._figure("wear_map")

    def states(self) -> "go.Figure":
        """How many blocks are free, open, full, ... over the run."""
        return self._figure("states")

    def utilization(self) -> "go.Figure":
        """Share of the simulated time that each channel and die was busy."""
        return self._figure("utilization")
