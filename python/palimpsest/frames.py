"""Data frames as workloads: written as Parquet traces, which the process keeps until exit.

A frame is a table of polars, pandas or Arrow with the columns of the trace format `parquet` (`palimpsest help traces`).
Other columns are ignored. Frames larger than memory are not supported.
"""

from __future__ import annotations

import functools
import tempfile
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from .distribution import need
from .errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    Frame: TypeAlias = pl.DataFrame | pl.LazyFrame | pd.DataFrame | pa.Table

_REQUIRED = ("time_ns", "op", "offset_bytes", "size_bytes")
_TEXT = ("op", "file")
_KNOWN = (*_REQUIRED, "file", "stream", "fua", "placement")
_LIBRARIES = {"polars": ("DataFrame", "LazyFrame"), "pandas": ("DataFrame",), "pyarrow": ("Table",)}


def is_frame(value: object) -> bool:
    """True for a data frame; imports no library."""
    kind = type(value)
    return kind.__name__ in _LIBRARIES.get(kind.__module__.partition(".")[0], ())


def trace_of(frame: Frame) -> Path:
    """Writes a trace with the requests of a frame; equal requests give the same file. Raises InputError."""
    need("report", "polars")
    import polars as pl

    requests = _columns(frame)
    for name in _REQUIRED:
        if name not in requests.columns:
            raise InputError(
                f"workload: the data frame has no column {name}; expected {', '.join(_REQUIRED)} "
                "[, file, stream, fua, placement]"
            )
    for name, kind in requests.schema.items():
        expected = "text" if name in _TEXT else "integers"
        if not (kind == pl.String if name in _TEXT else kind.is_integer()):
            raise InputError(f"workload: the column {name} of the data frame has {kind}; expected {expected}")
        if requests[name].null_count():
            raise InputError(f"workload: the column {name} of the data frame has missing values; expected {expected}")
    written = Path(_kept().name) / "writing.parquet"
    requests.write_parquet(written, compression="zstd")
    name = blake2b(written.read_bytes(), digest_size=6).hexdigest()
    return written.rename(written.with_name(f"frame-{name}.parquet"))


def _columns(frame: Any) -> pl.DataFrame:  # noqa: ANN401 - of three libraries
    """The columns of a trace in a frame, as a data frame of polars."""
    import polars as pl

    library = type(frame).__module__.partition(".")[0]
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if library == "polars":
        return cast("pl.DataFrame", frame.select(name for name in _KNOWN if name in frame.columns))
    names = frame.column_names if library == "pyarrow" else list(frame.columns)
    return pl.DataFrame([
        pl.Series(name, frame[name].to_pylist() if library == "pyarrow" else frame[name].to_numpy())
        for name in _KNOWN if name in names
    ])  # fmt: skip


@functools.cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="palimpsest-frames-")
