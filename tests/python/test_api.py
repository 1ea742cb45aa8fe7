"""The Python API, results, tables, plots and pages, on the stand-in."""

import array
import base64
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import palimpsest as ps
from conftest import native
from palimpsest import answers, charts, metrics, outputs, units
from palimpsest.charts import blocks
from palimpsest.charts import latency as response
from palimpsest.options import RunOptions

pytestmark = pytest.mark.unit


@pytest.fixture
def result(fake: Any) -> ps.Result:
    assert fake
    overrides: dict[str, Any] = {"part.nop": 4}
    return ps.Ssd("mga-16k", ftl="mga", **overrides).run("oltp", precondition="fill:90%")


def test_figures_are_attributes_and_items(result: ps.Result) -> None:
    assert result.latency_ns["write"]["p99"] == result["latency_ns"]["write"]["p99"] == 1_006_880
    assert result.sim["peak_rss_bytes"] > 1_000_000
    assert "gc" in result
    with pytest.raises(AttributeError, match="write_amplification"):
        _ = result.waf


def test_options_reach_the_native_module(fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def run(options: str, _progress: object) -> tuple[str, str]:
        seen.append(json.loads(options))
        return json.dumps(fake.summary(seen[-1])), "null"

    monkeypatch.setattr(native, "run", run)
    overrides: dict[str, Any] = {"part.nop": 4, "host.fold": True}
    ps.Ssd("mga-16k", **overrides).run(Path("a.csv"), requests=1e6, warmup=5, series=False)
    assert seen[0] == {
        "ssd": "mga-16k", "ftl": None, "workload": "a.csv", "set": ["part.nop=4", "host.fold=true"],
        "precondition": RunOptions().precondition, "requests": 1_000_000, "warmup": "5", "fidelity": "timed",
        "payload": "tag", "check": False, "seed": 1, "skip_bad": False, "format": None, "series": False,
        "sketch": False, "columns": None, "volumes": None, "arrivals": "recorded", "start": None, "repeat": None,
        "until": None, "at_most": None,
        "tenant": None, "operations": None, "strict": False,
    }  # fmt: skip


def test_errors_have_the_documented_classes(fake: Any) -> None:
    assert fake
    with pytest.raises(ps.InputError, match="did you mean"):
        ps.Ssd("defualt")
    with pytest.raises(ps.DeviceError):
        ps.run("w", ftl="block")
    with pytest.raises(TypeError, match="unexpected option 'request'"):
        ps.run("w", request=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="list"):
        ps.compare("page")


def test_fio_text() -> None:
    text = ps.fio(rw="randwrite", bs="4k", n=1e6, random_distribution="zipf:0.95", direct=True)
    assert text == "rw=randwrite,bs=4k,n=1000000,random_distribution=zipf:0.95,direct=1"


def test_comparison_is_a_sequence_by_name(fake: Any) -> None:
    assert fake
    compared = ps.compare(["page", "mga"], ssd="mga-16k", workload="trade", jobs=2)
    assert [run.ftl for run in compared] == ["page", "mga"]
    assert compared["mga"].ftl == compared[1].ftl == "mga"
    assert compared.to_polars()["ftl"].to_list() == ["page", "mga"]
    assert "<strong>" in compared._repr_html_()


@pytest.mark.parametrize(
    ("ratio", "printed", "multiple"),
    [
        (0, "-100 %", "0"),
        (0.0156, "-98.4 %", "64x less"),
        (0.002, "-99.8 %", "500x less"),
        (0.67, "-33 %", "0.67x"),
        (0.945, "-5.5 %", "0.94x"),
        (1.0997, "+10 %", "1.10x"),
        (4, "+300 %", "4.00x"),
        (12.3, "12x", "12x"),
        (1234.5, "1,234x", "1,234x"),
    ],
)
def test_changes_are_signed_per_cent(ratio: float, printed: str, multiple: str) -> None:
    assert metrics.change(ratio) == printed
    assert metrics.factor(ratio) == multiple


def test_verdicts_list_what_is_lower_then_what_is_higher(fake: Any) -> None:
    layers = {"page": "page", "mga": "mga", "buffered": "page"}
    runs = {label: {"ftl": layer} for label, layer in layers.items()}
    page, mga, buffered = ps.compare(runs, ssd="mga-16k", workload="trade")
    buffered.latency_ns["write"]["mean"] = 0
    assert fake
    assert answers.versus([page, mga, buffered])[1:] == [
        "mga vs page: flash bytes programmed -38 %, erases -38 %, mean write latency -38 %, p99 write latency -38 %, "
        "mean read latency -38 %, energy -31 %; DRAM +61 %.",
        "buffered vs page: within 5 % in every figure above.",
    ]
    assert answers.versus([page, page]) == ["page vs page: within 5 % in every figure above."]


def test_tables(result: ps.Result) -> None:
    assert result.to_polars()["latency_ns.write.p99"].to_list() == [1_006_880]
    assert result.to_polars("time").height == 20
    assert result.to_polars("latency")["class"].unique().sort().to_list() == ["all", "read", "write"]
    with pytest.raises(ValueError, match="utilization"):
        result.to_polars("nothing")


def test_a_plot_of_parts_names_the_option(result: ps.Result) -> None:
    """test_operations.py draws the plot from a run."""
    with pytest.raises(ValueError, match=re.escape("run with operations='slowest:20'")):
        result.plot.why()


@pytest.mark.parametrize("name", [name for name in charts.CHARTS if name not in ("why", "handles")])
def test_plots_are_valid_plotly(result: ps.Result, name: str) -> None:
    figure = getattr(result.plot, name)()
    assert len(figure.data) >= 1
    both = charts.specification(name, [result, result])
    assert both is not None


def test_heights_of_a_thinned_distribution_are_exact() -> None:
    lower = [1000 + number for number in range(4000)]
    times, shares = response.cumulative(lower, [1] * 4000)
    assert len(times) < 1000
    assert (times[0], shares[-1]) == (1.0, 100)
    for time, share in zip(times[1:], shares[:-1], strict=True):
        assert share == pytest.approx(100 * (round(1000 * time) - 1000) / 4000)


def test_snapshots_are_packed_as_the_page_reads_them(result: ps.Result) -> None:
    frames = blocks.frames(result)
    assert frames is not None
    assert result.series is not None
    seen = result.series["blocks"]
    state = base64.b64decode(frames["state"])
    erases = array.array("H", base64.b64decode(frames["erases"]))
    assert (len(state), len(erases), len(frames["rows"])) == (5 * 32, 5 * 32, 4)
    assert [seen["states"][number] for number in (state[0], state[-1])] == ["free", "full"]
    assert erases[3] / 65535 * frames["most_erases"] == pytest.approx(seen["erases"][3], abs=1e-4)
    assert frames["counts"][0][0] + frames["counts"][0][3] == 64
    assert frames["rows"][1] == "channel 0, die 0, plane 2"


def test_subpages_of_flash_are_valid_invalid_or_free(result: ps.Result) -> None:
    """Shares of the drive, of cells of two blocks: half of the programmed units are valid; the sum is all flash."""
    drawn = charts.specification("states", [result])
    assert drawn is not None
    shares = {line["name"]: line["y"] for line in drawn["data"] if line["yaxis"] == "y"}
    assert list(shares) == ["valid", "invalid", "free"]
    assert shares["valid"] == pytest.approx(shares["invalid"])
    assert [sum(each) for each in zip(*shares.values(), strict=True)] == pytest.approx([100.0] * len(shares["free"]))
    full, free = (line["y"] for line in drawn["data"] if line["yaxis"] == "y2" and line["name"] in ("full", "free"))
    assert shares["free"] == pytest.approx(
        [100 * each / (each + other) for each, other in zip(full, free, strict=True)]
    )


def test_tail_is_the_share_at_least_as_slow() -> None:
    assert response.exceedance([1000, 2000, 4000], [5, 0, 5]) == ([1.0, 4.0], [1.0, 0.5])


def test_count_fidelity_still_makes_a_page(fake: Any, tmp_path: Path) -> None:
    assert fake
    counted = ps.run("w", fidelity="count", series=False)
    counted.save(tmp_path)
    assert "Plotly" in (tmp_path / "report.html").read_text()
    with pytest.raises(ValueError, match="series"):
        counted.plot.latency()


def test_files_come_back_as_they_were(result: ps.Result, tmp_path: Path) -> None:
    result.save(tmp_path)
    again = ps.load(tmp_path)
    assert isinstance(again, ps.Result)
    assert again.to_dict() == result.to_dict()
    assert again.series == result.series
    assert again.configuration == result.configuration
    assert "# seed" not in result.configuration
    assert "seed = 1" in result.configuration
    assert pl.read_parquet(tmp_path / "latency.parquet")["count"].dtype == pl.UInt64


def test_page_needs_nothing_but_itself(result: ps.Result, tmp_path: Path) -> None:
    result.save(tmp_path)
    before = (tmp_path / "report.html").read_text()
    ours = re.sub(r"<script>/\*\*.*?</script>", "", before, flags=re.S)
    assert not re.search(r"""(src|href)\s*=\s*(?!["']#)""", ours[:20_000])
    outputs.rewrite_report(tmp_path)
    assert (tmp_path / "report.html").read_text() == before


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_foreign_folder_is_the_users_mistake(tmp_path: Path, text: str) -> None:
    (tmp_path / "summary.json").write_text(text)
    with pytest.raises(ps.InputError, match=r"summary\.json:1: expected"):
        ps.load(tmp_path)


def test_best_is_marked_only_where_there_is_one() -> None:
    low = metrics.Metric("x", ("x",), units.ratio, "low")
    assert metrics.best(low, [2.0, 1.0, None]) == [False, True, False]
    assert metrics.best(low, [1.0, 1.0]) == [False, False]
    assert metrics.best(low, [None, 1.0]) == [False, False]
    # Values that print alike are equally good.
    assert metrics.best(low, [1.0, 1.00001]) == [False, False]
    assert metrics.best(low, [2.0, 1.0, 1.00001]) == [False, True, True]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 ns"), (812, "812 ns"), (35_200, "35.2 us"), (999_950, "1.00 ms"), (2.41e9, "2.41 s"), (None, "-")],
)
def test_times(value: float | None, shown: str) -> None:
    assert units.nanoseconds(value) == shown


@pytest.mark.parametrize(("text", "value"), [("1e6", 10**6), ("100k", 10**5), ("1.5M", 1_500_000), ("1,000", 1000)])
def test_counts(text: str, value: int) -> None:
    assert units.parse_count(text) == value


@given(st.text(max_size=12))
def test_any_text_is_a_count_or_an_error(text: str) -> None:
    try:
        count = units.parse_count(text)
    except ValueError:
        return
    assert 1 <= count < 2**63


@given(st.floats(min_value=0, max_value=1e18))
def test_times_are_short(value: float) -> None:
    assert len(units.nanoseconds(value)) <= 12


@pytest.mark.parametrize("wrong", [{"requests": -1}, {"requests": 0}, {"requests": 1.5}, {"seed": -1}])
def test_numbers_that_are_not_possible_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ps.InputError, match=rf"{next(iter(wrong))}: expected a whole number from"):
        ps.run("rw=read,n=10", **wrong)
