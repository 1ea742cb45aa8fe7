"""Repetitions with several seeds: intervals, sketches, `--seeds`, and the distributions of a sweep."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import palimpsest as ps
from conftest import Command, figures
from palimpsest.intervals import interval, t_quantile
from palimpsest.sketches import Sketch, merged


@pytest.mark.parametrize(
    ("degrees", "value"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (5, 2.5706), (10, 2.2281), (29, 2.0452), (1000, 1.9623)],
)
def test_quantiles_of_t_are_those_of_the_tables(degrees: int, value: float) -> None:
    assert t_quantile(degrees) == pytest.approx(value, abs=5e-5)


def test_intervals() -> None:
    found = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.mean, found.number) == (3.0, 5)
    assert found.deviation == pytest.approx(math.sqrt(2.5))
    assert found.high == pytest.approx(3 + 2.7764 * math.sqrt(0.5), abs=1e-4)
    bootstrap = interval([1.0, 2.0, 3.0, 4.0, 5.0], "bootstrap")
    assert bootstrap.low is not None
    assert found.low is not None
    assert found.low < bootstrap.low < 3.0
    assert bootstrap == interval([1.0, 2.0, 3.0, 4.0, 5.0], "bootstrap")
    assert interval([7.0]) == (7.0, None, None, None, 1)
    for method in ("t", "bootstrap"):
        assert interval([0.3, 0.3, 0.3], method) == (0.3, None, None, 0.0, 3)
    with pytest.raises(ps.InputError, match="expected one of t, bootstrap"):
        interval([1.0, 2.0], "z")


def bucketed(values: list[int]) -> Sketch:
    counts: dict[int, int] = {}
    for value in values:
        shift = max(0, value.bit_length() - 7)
        counts[value >> shift << shift] = counts.get(value >> shift << shift, 0) + 1
    return Sketch(sorted(counts), [counts[lower] for lower in sorted(counts)])


@given(st.lists(st.lists(st.integers(0, 2**50), min_size=1, max_size=30), min_size=1, max_size=4))
def test_merged_percentiles_are_within_a_128th(parts: list[list[int]]) -> None:
    together = merged(map(bucketed, parts))
    values = sorted(value for part in parts for value in part)
    for percent in (1, 50, 99, 100):
        exact = values[math.ceil(len(values) * percent / 100) - 1]
        found = together.percentile(percent)
        assert found is not None
        assert abs(found - exact) <= exact / 128 + 1
    times, shares = together.cdf()
    assert (shares[0], shares[-1], together.total) == (0.0, 1.0, len(values))
    assert times == sorted(times)


@pytest.mark.usefixtures("fake")
def test_ratios_are_paired_by_seed() -> None:
    made = ps.replicate(["page", "mga"], seeds=[1, 2, 3], requests=1000)
    data = made.to_dict()
    assert [run["label"] for run in data["runs"]][:4] == ["page", "page", "page", "mga"]
    assert [run["seed"] for run in data["runs"]] == [1, 2, 3, 1, 2, 3]
    ratio = data["groups"][1]["ratios"]["write_amplification"]
    # The seed acts on both runs alike, so that all ratios are equal and have no interval.
    assert (ratio["mean"], ratio["low"], ratio["deviation"], ratio["number"]) == (pytest.approx(0.62), None, 0.0, 3)
    assert data["groups"][0]["merged_latency_ns"]["read"]["p50"] == 49_152 + 256
    assert made.to_polars().filter(label="mga", figure="flash.erases")["number"].item() == 3
    with pytest.raises(ps.InputError, match="each once"):
        ps.replicate(seeds=[1, 1])


@pytest.mark.contract
def test_seeds_on_the_command_line(palimpsest: Command, tmp_path: Any) -> None:
    small = ("--ssd", "mga-8k", "--precondition", "none", "--workload", "rw=randrw,bs=4k,size=16MiB,n=2000,iodepth=4")
    found = figures(palimpsest("run", *small, "--seeds", "1..3", "--json", "--out", str(tmp_path / "a")))
    means = [run["latency_ns"]["write"]["mean"] for run in found["runs"]]
    shown = found["groups"][0]["figures"]["latency_ns.write.mean"]
    assert (found["seeds"], shown["mean"]) == ([1, 2, 3], pytest.approx(sum(means) / 3))
    assert shown["low"] < shown["mean"] < shown["high"]
    exact = sorted(run["latency_ns"]["write"]["p50"] for run in found["runs"])
    assert exact[0] * 0.99 <= found["groups"][0]["merged_latency_ns"]["write"]["p50"] <= exact[-1] * 1.01
    assert len(ps.load(tmp_path / "a").to_dict()["runs"]) == 3
    done = palimpsest("run", *small, "--seeds", "3..1")
    assert done.returncode == 2
    assert "--seeds: '3..1' is no list of seeds" in done.stderr


@pytest.mark.contract
def test_sweeps_keep_distributions(tmp_path: Any) -> None:
    spec = {
        "base": {"workload": "rw=randrw,bs=4k,size=16MiB,n=1000", "ssd": "mga-8k", "precondition": "none"},
        "grid": {"ftl": ["page", "mga"], "seed": [1, 2, 3]},
    }
    swept = ps.sweep(spec, out=tmp_path / "s", jobs=1)
    table = swept.latency()
    assert table.columns == ["ftl", "seed", "identity", "class", "lower_ns", "count"]
    assert table.filter(ftl="mga", seed=2)["class"].unique().sort().to_list() == ["all", "read", "write"]
    assert swept.sketch("all", ftl="mga").total == 3000
    merged_rows = swept.percentiles(["ftl"], "write")
    exact = [point.result.latency_ns["write"]["p50"] for point in swept if point.result and point.axes["ftl"] == "mga"]
    assert min(exact) * 0.99 <= merged_rows.filter(ftl="mga")["p50_ns"].item() <= max(exact) * 1.01
    means = swept.intervals("latency_ns.write.mean", ["ftl"])
    assert means["number"].to_list() == [3, 3]
    assert (tmp_path / "s" / "latency.parquet").is_file()
    assert ps.Sweep.load(tmp_path / "s").latency().equals(table)


TRACE = "".join(f"{at * 20000},0,W,{at * 7919 % 4096 * 4096},4096\n" for at in range(3000))
WHY = (
    "seeds 1, 2, 3 give equal figures, which have no interval: a trace is replayed as recorded with every seed, and "
    "--precondition fill:90% draws nothing; fill:90%,random:1x draws overwrites from the seed"
)


@pytest.fixture
def trace(tmp_path: Any) -> str:
    path = tmp_path / "trace.csv"
    path.write_text("time_ns,stream,op,offset_bytes,size_bytes\n" + TRACE)
    return str(path)


@pytest.mark.contract
def test_equal_figures_of_all_seeds_have_no_interval(palimpsest: Command, tmp_path: Any, trace: str) -> None:
    """A former bug: a trace after a fill, on which no seed acts, had intervals of width zero in every figure."""
    small = ("--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=24", "--workload", trace, "--seeds", "1..3")
    out = tmp_path / "both"
    found = figures(
        palimpsest("compare", *small, "--ftl", "page,mga", "--precondition", "fill:90%", "--json", "--out", str(out))
    )
    for group in found["groups"]:
        assert group["no_interval"] == WHY
        known = [each for each in (*group["figures"].values(), *group["ratios"].values()) if each is not None]
        assert known
        assert all((each["low"], each["high"], each["deviation"]) == (None, None, 0.0) for each in known)
    shown = palimpsest("run", *small, "--precondition", "fill:90%").stdout
    assert "±" not in shown
    assert WHY in " ".join(shown.split())
    assert f"page, mga: {WHY}" in (out / "report.html").read_text()
    drawn = figures(palimpsest("run", *small, "--precondition", "fill:90%,random:1x", "--json"))["groups"][0]
    assert drawn["no_interval"] is None
    assert drawn["figures"]["latency_ns.write.mean"]["low"] is not None


@pytest.mark.contract
def test_equal_points_of_a_sweep_have_no_whiskers(palimpsest: Command, tmp_path: Any, trace: str) -> None:
    spec = {
        "base": {"ssd": "mga-8k", "ssd.blocks_per_plane": 24, "workload": trace, "ftl": "mga"},
        "grid": {"precondition": ["fill:90%", "fill:90%,random:1x"], "seed": [1, 2, 3]},
    }
    swept = ps.sweep(spec, out=tmp_path / "s", jobs=1)
    rows = swept.intervals("latency_ns.write.mean", ["precondition"]).to_dicts()
    assert [(row["low"] is None, row["deviation"] == 0) for row in rows] == [(True, True), (False, False)]
    assert swept.to_dict()["no_interval"] == [f"1 of 2 configurations: {WHY}"]
    page = swept.plot("latency_ns.write.mean", "precondition").to_dict()["data"]
    assert [[length is None for length in line["error_y"]["array"]] for line in page] == [[True, False]]
    done = palimpsest(
        "figure", "bars", str(tmp_path / "s"), "-o", str(tmp_path / "a.svg"), "--figure", "latency_ns.write.mean",
        "--x", "precondition",
    )  # fmt: skip
    assert f"note: 1 of 2 configurations: {WHY}" in done.stderr
    table = (tmp_path / "a.csv").read_text().splitlines()
    assert table[1].endswith(",,")
    assert not table[2].endswith(",,")


@pytest.mark.contract
def test_starts_of_a_trace_are_spread(tmp_path: Any) -> None:
    """Reads, then writes: a run that begins with the writes reads written data."""
    lines = [f"{at * 100_000},0,{'read' if at < 500 else 'write'},{at % 500 * 4096},4096" for at in range(1000)]
    trace = tmp_path / "halves.csv"
    trace.write_text("time_ns,stream,op,offset_bytes,size_bytes\n" + "\n".join(lines) + "\n")
    options: dict[str, Any] = {"ssd": "mga-8k", "precondition": "none", "series": False}
    made = ps.replicate(None, seeds=[1, 2], workload=trace, start="spread", **options)
    first, second = made.results
    assert [each["provenance"]["options"]["start"] for each in made.results] == ["0%", "50%"]
    assert first["requests"] == second["requests"]
    assert (first["flash"]["page_reads"], second["flash"]["page_reads"] > 0) == (0, True)
    assert "the trace began at its request 501, and the requests before came last" in second["notes"]
    alone = ps.run(trace, start="50%", seed=2, **options).to_dict()
    assert alone["latency_ns"] == second["latency_ns"]
    for wrong, says in (("100%", "expected a share"), ("spread", "or spread with --seeds")):
        with pytest.raises(ps.InputError, match=says):
            ps.run(trace, start=wrong, **options)
    with pytest.raises(ps.InputError, match="--start: the option is for traces"):
        ps.run("rw=read,n=10", start="10%", **options)
