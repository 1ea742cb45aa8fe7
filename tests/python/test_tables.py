"""Results as values and as tables of other libraries: equality, copies, files, pandas, Arrow. On the stand-in."""

import copy
import importlib.util
import io
import pickle
import re
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from rich.console import Console

import palimpsest as ps
from palimpsest import tables

pytestmark = pytest.mark.unit


@pytest.fixture
def run(fake: Any) -> ps.Result:
    assert fake
    return ps.Ssd("mga-16k", ftl="mga").run("oltp", requests=1000)


@pytest.fixture
def both(fake: Any) -> ps.Comparison:
    assert fake
    return ps.compare(["page", "mga"], ssd="mga-16k", workload="oltp", requests=1000)


def test_equal_when_all_figures_are(run: ps.Result, both: ps.Comparison) -> None:
    again = ps.Ssd("mga-16k", ftl="mga").run("oltp", requests=1000)
    slower = again.to_dict() | {"sim": {"wall_s": 99.0, "requests_per_s": 1.0, "peak_rss_bytes": 1}}
    assert run == again == ps.Result(slower)
    assert run != ps.Result(again.to_dict() | {"seed": 2})
    assert run != again.to_dict()
    assert both["mga"] == run
    assert both == ps.Comparison([both[0], run])
    assert both != ps.Comparison([run, both[0]])
    with pytest.raises(TypeError, match="unhashable"):
        hash(run)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_are_equal(duplicate: Any, run: ps.Result, both: ps.Comparison) -> None:
    twin = duplicate(run)
    assert twin == run
    assert (twin.series, twin.configuration) == (run.series, run.configuration)
    assert duplicate(both) == both


def test_files_of_tables_have_the_values_and_types_of_frames(run: ps.Result) -> None:
    series = copy.deepcopy(run.series)
    assert series is not None
    series["time"]["read_p99_ns"][0] = None
    frames, files = tables.of_series(series), dict(tables.files(series))
    assert files.keys() == {tables.TABLES[name][0] for name in frames}
    for name, frame in frames.items():
        read = pl.read_parquet(io.BytesIO(files[tables.TABLES[name][0]]))
        assert read.schema == frame.schema, name
        assert read.equals(frame), name
    assert frames["time"]["read_p99_ns"][0] is None


def test_wrong_columns_of_a_table_are_refused() -> None:
    write: Any = ps._core.parquet_table
    with pytest.raises(ps.InputError, match="word: expected u32, u64"):
        write([("a", "word", [1])])
    with pytest.raises(ps.InputError, match=r"[Rr]ow"):
        write([("a", "u32", [1]), ("b", "u32", [])])
    with pytest.raises(OverflowError):
        write([("a", "u32", [-1])])
    with pytest.raises(TypeError):
        write([("a", "text", [1])])
    for kind, values in {
        "u64": [2**64 - 1, None, 0],
        "i64": [-(2**63), 7],
        "text": ["", "\u00e9"],
        "f64": [0.1, 1],
    }.items():
        read = pl.read_parquet(io.BytesIO(write([("a", kind, values)])))
        assert read["a"].to_list() == values
        assert read.schema == tables.types({"a": kind})


def test_saved_and_loaded(run: ps.Result, both: ps.Comparison, tmp_path: Path) -> None:
    assert run.save(tmp_path / "run") == tmp_path / "run"
    assert ps.load(str(tmp_path / "run")) == run
    both.save(tmp_path / "both")
    again = ps.load(tmp_path / "both")
    assert isinstance(again, ps.Comparison)
    assert again == both
    assert [each.series for each in again] == [each.series for each in both]
    assert again.to_polars("wear").equals(both.to_polars("wear"))


def test_failed_write_names_the_file(run: ps.Result, tmp_path: Path) -> None:
    (tmp_path / "latency.parquet").mkdir()
    with pytest.raises(OSError, match=r"latency\.parquet"):
        run.save(tmp_path)


@pytest.mark.parametrize("table", ["summary", "time", "latency", "wear", "utilization"])
def test_same_table_everywhere(table: str, run: ps.Result, both: ps.Comparison) -> None:
    for each in (run, both):
        frame, arrow = each.to_pandas(table), each.to_arrow(table)
        expected = each.to_polars(table)
        assert isinstance(frame, pd.DataFrame)
        assert isinstance(arrow, pa.Table)
        assert list(frame.columns) == arrow.column_names == expected.columns
        assert (len(frame), arrow.num_rows) == (expected.height, expected.height)
        assert pl.DataFrame(arrow).equals(expected)


def test_arrow_without_a_copy_by_hand(run: ps.Result, both: ps.Comparison) -> None:
    assert pa.table(run).column("latency_ns.write.p99").to_pylist() == [1_006_880]
    assert pa.table(both)["ftl"].to_pylist() == ["page", "mga"]


def test_tables_of_a_comparison_name_the_layer(both: ps.Comparison) -> None:
    time = both.to_polars("time")
    assert time.columns[0] == "ftl"
    assert time["ftl"].unique(maintain_order=True).to_list() == ["page", "mga"]
    assert time.height == 40


def test_missing_library_names_the_extra(run: ps.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    said = "polars is needed for this; expected `pip install 'palimpsest-ssd"
    with pytest.raises(ImportError, match=rf"{said}\[arrow\]'` before it"):
        run.to_arrow()
    with pytest.raises(ImportError, match=rf"{said}\[pandas\]'` before it"):
        run.to_pandas()


def test_latencies_that_were_not_measured_keep_their_columns(fake: Any, run: ps.Result) -> None:
    assert fake
    reads = ps.Result(run.to_dict() | {"latency_ns": run.latency_ns | {"write": None}})
    counted = ps.run("w", fidelity="count", series=False)
    assert run.to_polars().columns == reads.to_polars().columns
    assert reads.to_polars()["latency_ns.write.p99"].to_list() == [None]
    assert reads.to_polars().schema["latency_ns.write.p99"] == run.to_polars().schema["latency_ns.write.p99"]
    assert counted.to_polars()["latency_ns.all.mean"].to_list() == [None]
    assert ps.Comparison([run, reads])._repr_html_()


def test_keys_that_nothing_reads_are_refused(fake: Any) -> None:
    assert fake
    keys: dict[str, object] = {"ftl.allocation_threshold": "20%"}
    said = "--set ftl.allocation_threshold=20%: page does not read ftl.allocation_threshold"
    with pytest.raises(ps.InputError, match=f"^{said}; expected ftl.name = mga, or no ftl.allocation_threshold$"):
        ps.run("w", ftl="page", overrides=keys)
    ps.run("w", ftl="mga", overrides=keys)
    with pytest.warns(UserWarning, match=f"^{said}$"):
        ps.compare(["page", "mga"], workload="w", overrides=keys)


def text(result: object, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(result)
    return console.export_text()


def test_energies_that_a_part_has_not_are_not_modelled(run: ps.Result, both: ps.Comparison, tmp_path: Path) -> None:
    none = {"energy_uj": dict.fromkeys(run.energy_uj), "power_w": dict.fromkeys(run.power_w)}
    without = ps.Result(run.to_dict() | none)
    assert re.search(r"energy +not modelled: the part gives none", text(without))
    assert " W " not in text(without)
    compared = ps.Comparison([both[0], without])
    assert re.search(r"energy .* not modelled\n", text(compared))
    assert all(len(line) <= 80 for line in text(compared).splitlines())
    assert "<td>not modelled</td>" in without._repr_html_()
    page = compared.save(tmp_path / "both") / "report.html"
    assert "<td>not modelled</td>" in page.read_text()
    assert without.to_polars().schema == run.to_polars().schema


def test_mean_power_names_the_time_that_it_is_of(run: ps.Result) -> None:
    assert re.search(r"power +flash 3\.1 W over 3\.00 s, to its last operation; at most 4\.4 W", text(run))
