"""Data frames as workloads: the same figures as for the same requests in a trace file."""

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import palimpsest as ps

pytestmark = pytest.mark.contract

SSD = ps.Ssd("mga-8k", ftl="page", **{"ssd.blocks_per_plane": 16})
REQUESTS: dict[str, list[Any]] = {
    "time_ns": [1000 * number for number in range(400)],
    "op": ["write" if number % 3 else "read" for number in range(400)],
    "offset_bytes": [8192 * (number * 7 % 100) for number in range(400)],
    "size_bytes": [4096 * (1 + number % 2) for number in range(400)],
    "note": ["not of the trace"] * 400,
}


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "arrow"])
def test_a_frame_runs_as_its_trace(kind: str, tmp_path: Path) -> None:
    frames = {"polars": pl.DataFrame, "lazy": pl.LazyFrame, "pandas": pd.DataFrame, "arrow": pa.table}
    csv = tmp_path / "a.csv"
    pl.DataFrame(REQUESTS).drop("note").write_csv(csv)
    expected, found = SSD.run(csv), SSD.run(frames[kind](REQUESTS))
    assert found["requests"] == expected["requests"] == {"read": 134, "write": 266, "trim": 0, "flush": 0}
    for part in ("latency_ns", "flash", "host", "simulated_ns"):
        assert found[part] == expected[part]
    assert found["trace_format"] == "parquet"


def test_frames_are_compared_and_described() -> None:
    frame = pl.DataFrame(REQUESTS)
    both = ps.compare(["page", "mga"], ssd=SSD, workload=frame)
    assert both["page"]["workload"] == SSD.run(frame)["workload"]
    assert ps.trace(frame).info()["requests"]["all"] == 400


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"size_bytes": None}, "workload: the data frame has no column size_bytes; expected time_ns, op, offset_bytes"),
        ({"time_ns": [0.5] * 400}, "workload: the column time_ns of the data frame has Float64; expected integers"),
        ({"op": [1] * 400}, "workload: the column op of the data frame has Int64; expected text"),
        (
            {"offset_bytes": [None, *[0] * 399]},
            "workload: the column offset_bytes of the data frame has missing values",
        ),
    ],
)
def test_wrong_frames_are_one_sentence(change: dict[str, list[Any] | None], says: str) -> None:
    columns = {name: values for name, values in (REQUESTS | change).items() if values is not None}
    with pytest.raises(ps.InputError, match=says):
        SSD.run(pl.DataFrame(columns))
