"""Results: the figures that a run measured, as plain data.

`palimpsest help results` explains the figures of `palimpsest run --json`. This module computes and draws nothing:
plots, pages and folders reach results through the `Views` that the package sets on import.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, overload

from .distribution import need

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go
    import polars as pl
    import pyarrow as pa
    from rich.console import RenderableType


def flatten(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested figures as one level, the names joined by dots: `{"latency_ns.read.p99": 81000, ...}`."""
    flat: dict[str, Any] = {}
    _flatten_into(flat, data, prefix)
    return flat


def _flatten_into(flat: dict[str, Any], data: dict[str, Any], prefix: str) -> None:
    for key, value in data.items():
        if isinstance(value, dict):
            _flatten_into(flat, value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value


_KINDS = ("all", "read", "write")
_TIMES = ("mean", "p50", "p90", "p99", "p999", "p9999", "max")


def figures(data: dict[str, Any]) -> dict[str, Any]:
    """As `flatten`, but latencies that were not measured are nulls, by the names of the run's other kinds."""
    latency = data.get("latency_ns") or {}
    measured = [tuple(times) for times in latency.values() if times]
    times = {kind: latency.get(kind) or dict.fromkeys(measured[0] if measured else _TIMES) for kind in _KINDS}
    about = ("provenance", "latency_sketch", "why", "against")
    flat = flatten({key: times if key == "latency_ns" else value for key, value in data.items() if key not in about})
    return flat | _of_tenants(data.get("tenants") or [])


MOST_TENANTS = 20
"""Most tenants of a result whose figures have names of their own."""


def tenant_key(name: str) -> str:
    """The name of a tenant within the name of a figure: `tenants.volume_0.throughput.iops`."""
    return re.sub(r"[^\w-]", "_", name)


def _of_tenants(tenants: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of each tenant by name; none with more than `MOST_TENANTS`. Of equal names the first counts."""
    flat: dict[str, Any] = {}
    about = ("tenant", "name", "why", "waits", "latency_ns")
    for tenant in reversed(tenants if len(tenants) <= MOST_TENANTS else []):
        times = {kind: each for kind, each in (tenant.get("latency_ns") or {}).items() if each}
        own = {key: value for key, value in tenant.items() if key not in about} | {"latency_ns": times}
        flat |= flatten(own, f"tenants.{tenant_key(str(tenant['name']))}.")
    return flat


class Table:
    """Conversions to a data frame of polars or pandas, or to an Arrow table."""

    def to_polars(self, table: str = "summary") -> "pl.DataFrame":
        """One table as a data frame of polars."""
        raise NotImplementedError

    def to_pandas(self, table: str = "summary") -> "pd.DataFrame":
        """As `to_polars`, for pandas. Raises ImportError without the extra `pandas`."""
        need("pandas")
        return self.to_polars(table).to_pandas()

    def to_arrow(self, table: str = "summary") -> "pa.Table":
        """As `to_polars`, for pyarrow. Raises ImportError without the extra `arrow`."""
        need("arrow")
        return self.to_polars(table).to_arrow()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The summary for any library that reads Arrow's PyCapsule interface, such as DuckDB: `pa.table(result)`."""
        return self.to_polars().__arrow_c_stream__(requested_schema)


def _plot(name: str, about: str) -> Callable[["Plots"], "go.Figure"]:
    def plot(self: "Plots") -> "go.Figure":
        return self._draw(name)

    plot.__name__, plot.__doc__ = name, about
    return plot


class Plots:
    """Plots as plotly figures. Each raises ValueError if the run kept no data for the plot."""

    def __init__(self, draw: Callable[[str], "go.Figure"]) -> None:
        self._draw = draw

    cdf = _plot("cdf", "Share of requests that take at most a response time, reads and writes apart.")
    latency = _plot(
        "latency", "Share of requests slower than a response time, reads and writes apart; both axes logarithmic."
    )
    why = _plot("why", "Parts of the response time of the requests at percentiles, of a run with `slowest:N`.")
    time = _plot(
        "time", "Throughput, response times, queue, write amplification, collection and erases over simulated time."
    )
    progress = _plot(
        "progress", "Write amplification, collection and erases over bytes written, at count fidelity too."
    )
    flash = _plot("flash", "Flash reads and programs by cause.")
    wear = _plot("wear", "Number of blocks by number of erases.")
    wear_map = _plot("wear_map", "Erases of each block by address.")
    states = _plot("states", "Number of blocks that are free, open, full, ... over the run.")
    volumes = _plot(
        "volumes", "The 99th percentile of response times by volume of the trace, or bytes at count fidelity."
    )
    tenants = _plot("tenants", "The 99th percentile of response times by tenant, also alone if they ran alone.")
    handles = _plot("handles", "Bytes written and moved by reclaim unit handle (`fdp`).")
    reliability = _plot(
        "reliability", "ECC margin, retries and lost data over simulated time, for reads with errors (`ecc.strength`)."
    )
    utilization = _plot("utilization", "Share of the simulated time that each channel and die was busy.")


class Views(Protocol):
    """The functions that show and save results; their module is above this one."""

    def text(self, results: Sequence["Result"], *, together: bool) -> "RenderableType":
        """For a terminal; `together` as a comparison."""

    def html(self, results: Sequence["Result"]) -> str:
        """For a notebook."""

    def checks(self, results: Sequence["Result"]) -> list[dict[str, Any]]:
        """The findings on a comparison."""

    def figure(self, name: str, results: Sequence["Result"]) -> "go.Figure":
        """A plot."""

    def save(
        self, results: Sequence["Result"], folder: Path, *, together: bool, more: Mapping[str, str],
        places: Sequence[str] | None = None, shown: Sequence["Result"] | None = None,
    ) -> Path:  # fmt: skip
        """Writes the files of a run, or `together` of a comparison, and `more` files by name.

        `places` are the folders of the results inside, by default their labels; `shown` are the results of the page.
        """


class Shown(Table):
    """The common part of a result and a comparison: showing and saving."""

    _views: ClassVar[Views]
    _together: ClassVar[bool]

    def _runs(self) -> list["Result"]:
        raise NotImplementedError

    def save(self, folder: str | Path, more: Mapping[str, str] | None = None) -> Path:
        """Writes the files of `--out`, and `more` by name; returns the folder. Raises OSError that lists kept files."""
        return self._views.save(self._runs(), Path(folder), together=self._together, more=more or {})

    @property
    def plot(self) -> Plots:
        """Plots of all runs: `cdf()`, `latency()`, `time()`, `flash()`, `utilization()`, `wear()`, ..."""
        return Plots(lambda name: self._views.figure(name, self._runs()))

    def __rich__(self) -> "RenderableType":
        return self._views.text(self._runs(), together=self._together)

    def _repr_html_(self) -> str:
        return self._views.html(self._runs())


def show_with(views: Views) -> None:
    """Sets the views of all results."""
    Shown._views = views


class Result(Shown):
    """The figures of one run.

    Every top-level key of the result is an attribute and an item: `result.write_amplification`,
    `result["latency_ns"]["write"]["p99"]`. Times are integer nanoseconds, amounts of data integer bytes, energies
    microjoules. Latencies are None at count fidelity, and those of reads in a run without reads.

    Results are equal if all their figures are, except those about the simulator (`sim`, `provenance`). They can be
    copied and pickled; `save` writes a folder, `palimpsest.load` reads it.

    Args:
        data: the object of `palimpsest run --json`.
        series: time series, histograms, wear, utilisation, states of blocks and timeline; None if not kept.
        configuration: the resolved configuration as TOML; empty if unknown.
        repeats: the runs of several seeds of which the figures are means; empty for a run.
    """

    _together = False

    def __init__(
        self, data: dict[str, Any], series: dict[str, Any] | None = None, configuration: str = "",
        repeats: Sequence["Result"] = (),
    ) -> None:  # fmt: skip
        self._data = data
        self._repeats = tuple(repeats)
        self._series = series
        self._configuration = configuration

    def _runs(self) -> list["Result"]:
        return [self]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - each key has a type of its own
        if name.startswith("_") or name not in self._data:
            raise AttributeError(
                f"no such figure {name!r} in this result; it has {', '.join(self.__dict__.get('_data', ()))}"
            )
        return self._data[name]

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401
        return self._data[key]

    @property
    def label(self) -> str:
        """The name in a comparison: the given label, or the layer."""
        return str(self._data.get("label") or self._data.get("ftl"))

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401
        """A top-level figure, or the default if the result lacks the figure."""
        return self._data.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        return self._figures() == other._figures()

    __hash__ = None  # type: ignore[assignment] # a dictionary inside

    def _figures(self) -> dict[str, Any]:
        return {key: value for key, value in self._data.items() if key not in ("sim", "provenance")}

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def keys(self) -> list[str]:
        """Names of the top-level figures."""
        return list(self._data)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain dictionaries."""
        return json.loads(json.dumps(self._data))  # type: ignore[no-any-return]

    def to_json(self, *, indent: int | None = 2) -> str:
        """The result as JSON of `run --json`."""
        return json.dumps(self._data, indent=indent)

    @property
    def repeats(self) -> tuple["Result", ...]:
        """The runs of several seeds of which the figures are means, as in `Replicates.contenders`; empty for a run."""
        return self._repeats

    @property
    def series(self) -> dict[str, Any] | None:
        """Time series, histograms, wear and utilisation as lists; None if not kept."""
        return self._series

    @property
    def configuration(self) -> str:
        """The resolved configuration as TOML, a file for `--ssd` and `Ssd`; empty if unknown."""
        return self._configuration

    def to_polars(self, table: str = "summary") -> "pl.DataFrame":
        """One table of the result as a data frame of polars.

        Args:
            table: `summary` (one row, a column for each figure, such as `latency_ns.read.p99`); `time` (a row for each
                window of simulated time); `latency` (histogram: class, lower_ns, count); `wear` (a row for each block);
                `utilization` (a row for each channel and die); `snapshots` (fewer than 64, evenly over the requests);
                `blocks` (states: a row for each block of each snapshot, neighbours joined on large drives);
                `operations` and `requests` (the timeline: `palimpsest help operations`); `volumes` (a row for each
                volume of a trace); `jobs` (a row for each section of a job file); `tenants` (a row for each section or
                volume); `handles` (a row for each reclaim unit handle of `fdp`).

        Raises:
            ValueError: the table is unknown, or the run kept no series.
        """
        need("report", "polars")
        if table == "summary":
            import polars as pl

            row = {name: value for name, value in figures(self._data).items() if not isinstance(value, list)}
            # Figures that may be null keep their types.
            types: dict[str, pl.DataType] = {
                name: pl.Int64() if name.startswith("latency_ns.") or name.endswith("_ns") else pl.Float64()
                for name in row
                if name.startswith(("latency_ns.", "energy_uj.", "power_w."))
            }
            return pl.DataFrame([row], infer_schema_length=None, schema_overrides=types)
        from . import tables

        records = {"volumes": tables.of_volumes, "jobs": tables.of_jobs, "tenants": tables.of_tenants}
        records["handles"] = tables.of_handles
        if table in records:
            within = (self._data.get("fdp") or {}) if table == "handles" else self._data
            return records[table](within.get(table) or [])
        found = tables.of_series(self._series)
        if table not in tables.TABLES:
            known = ", ".join(("summary", *records, *tables.TABLES))
            raise ValueError(f"no such table {table!r}; expected one of {known}")
        if table not in found:
            option = "operations" if table in tables.TIMELINE else "series"
            raise ValueError(f"this result has no table {table!r}; run with {option}=True to keep it")
        return found[table]

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={self._data.get(key)!r}" for key in ("ftl", "ssd", "workload", "write_amplification"))
        return f"Result({shown})"


class Comparison(Shown, Sequence[Result]):
    """The same workload on several translation layers, in the order of the call. Ratios are to the first.

    Equal to another comparison with equal results in the same order; can be copied, pickled and saved like them.
    """

    _together = True

    def __init__(self, results: Sequence[Result]) -> None:
        self._results = list(results)

    def _runs(self) -> list[Result]:
        return self._results

    @overload
    def __getitem__(self, index: int | str) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> "Comparison": ...
    def __getitem__(self, index: int | str | slice) -> "Result | Comparison":
        """The result at an index, or of a layer or labelled run by name."""
        if isinstance(index, slice):
            return Comparison(self._results[index])
        if isinstance(index, int):
            return self._results[index]
        for result in self._results:
            if result.label == index:
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
        """The object of `palimpsest compare --json`: `{"runs": [...], "checks": [...]}`."""
        return {"runs": [result.to_dict() for result in self._results], "checks": self._views.checks(self._results)}

    def to_json(self, *, indent: int | None = 2) -> str:
        """The comparison as JSON of `compare --json`."""
        return json.dumps(self.to_dict(), indent=indent)

    def to_polars(self, table: str = "summary") -> "pl.DataFrame":
        """The tables of all results, one below the other; `table` as in `Result.to_polars`, with the same errors.

        `summary` has a row for each layer and a column for each figure; other tables have the layer in a first column
        `ftl`.
        """
        need("report", "polars")
        import polars as pl

        tables = [result.to_polars(table) for result in self._results]
        if table != "summary":
            names = [pl.lit(result.label).alias("ftl") for result in self._results]
            tables = [each.select(name, pl.all()) for each, name in zip(tables, names, strict=True)]
        return pl.concat(tables, how="diagonal_relaxed")

    def __repr__(self) -> str:
        return f"Comparison({[result.label for result in self._results]})"
