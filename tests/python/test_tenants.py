"""Tenants: shares, slowdowns and fairness in results, tables and pages; `--alone` and queues of real runs."""

from pathlib import Path
from typing import Any

import pytest

import palimpsest as ps
from conftest import Command, figures
from palimpsest import answers, charts, metrics, tenants
from palimpsest.result import figures as figures_of
from palimpsest.sweeps.conditions import conditions

SMALL = ("--ssd", "mga-8k", "--set", "ssd.blocks_per_plane=64", "--precondition", "fill:90%")
READER = "bs=4k,runtime=40ms,time_based,name=reader,rw=randread"
"""With a full write buffer 7 reads complete in 10 ms: too few for an order of means."""
WRITER = "name=writer,rw=randwrite,iodepth=64"


def test_fairness_of_slowdowns() -> None:
    assert tenants.fairness([2.0, 2.0]) == {"least_over_most": 1.0, "jain": 1.0}
    # Speeds 1 and 1/4: (5/4)^2 / (2 * 17/16).
    assert tenants.fairness([1.0, 4.0]) == {"least_over_most": 0.25, "jain": pytest.approx(25 / 34)}


def test_a_result_has_rows_and_facts_of_tenants(fake: Any) -> None:
    assert fake
    assert tenants.rows(ps.run("w"))[1] == []
    result = ps.run("oltp", alone=True)
    heads, rows = tenants.rows(result)
    assert [name for name, _ in rows] == ["volume 0", "volume 1", "volume 2"]
    assert [dict(zip(heads, cells, strict=True))["slower"] for _, cells in rows] == ["2.00", "2.00", "2.50"]
    said = dict(tenants.facts(result))
    assert said["tenants"] == (
        "10.0 MiB programmed, data belongs to its last writer; 1.00 MiB without a tenant (older data, records)"
    )
    assert said["fairness"] == "0.800 (least / most slowdown), Jain 0.990"
    table = result.to_polars("tenants")
    assert table["slowdown.mean"].round(2).to_list() == [2.0, 2.0, 2.5]
    assert [run["name"] for run in (charts.specification("tenants", [result]) or {})["data"]] == [
        "reads", "reads alone", "writes", "writes alone",
    ]  # fmt: skip
    assert "; beside the other tenants volume 2 takes 2.50 times as long as alone" in answers.run(result)
    assert "alone" not in answers.run(ps.run("oltp"))
    assert "2.50" in result._repr_html_() or result.to_dict()["tenancy"]["fairness"]


def test_more_runs_than_tenants_are_drawn_by_run(fake: Any) -> None:
    assert fake
    results = [ps.run("oltp", ftl=name) for name in ("page", "mga")]
    few = charts.specification("tenants", results) or {}
    assert few["data"][0]["x"] == ["volume 0", "volume 1", "volume 2"]
    many = charts.specification("tenants", results * 2) or {}
    assert [run["name"] for run in many["data"]][:2] == ["volume 0, reads", "volume 0, writes"]
    assert many["data"][0]["x"] == ["page", "mga"] * 2
    least = min(min(run["y"]) for run in many["data"])
    assert 10 ** many["layout"]["yaxis"]["range"][0] < least


def test_figures_of_tenants_have_names(fake: Any) -> None:
    assert fake
    result = ps.run("oltp", alone=True)
    row = result.to_polars().to_dicts()[0]
    volume = result["tenants"][2]
    assert row["tenants.volume_2.latency_ns.read.p99"] == volume["latency_ns"]["read"]["p99"]
    assert row["tenants.volume_2.slowdown.mean"] == volume["slowdown"]["mean"]
    assert metrics.metric_of("tenants.volume_2.latency_ns.read.p99").label == "volume_2 read p99"
    assert metrics.metric_of("tenants.volume_2.throughput.iops").of(result) == volume["throughput"]["iops"]
    assert metrics.metric_of("tenants.volume_7.throughput.iops").of(result) is None
    # A result with many tenants has their table only.
    data = result.to_dict()
    data["tenants"] = [volume | {"name": f"volume {number}"} for number in range(21)]
    assert not any(name.startswith("tenants.") for name in figures_of(data))


def test_conditions_take_figures_of_tenants() -> None:
    (found,) = conditions("tenants.flow-1.latency_ns.read.p99<500us")
    assert (found.figure, found.bound) == ("tenants.flow-1.latency_ns.read.p99", 500_000)
    assert str(found) == "flow-1 read p99 < 500 us"
    with pytest.raises(ps.InputError, match=r"no result has a figure tenants\.a\.latency"):
        conditions("tenants.a.latency<1us")


def test_the_matrix_of_waits() -> None:
    requests = {"read": 3, "write": 1, "trim": 0, "flush": 0}
    by_writer = {"tenant": 1, "name": "b", "parts_ns": {"behind_programs": 6000, "collection": 1000, "erase": 1000}}
    background = {"tenant": None, "name": None, "parts_ns": {"collection": 4000}}
    found: Any = {"tenants": [
        {"name": "a", "requests": requests, "waits": [background, by_writer]},
        {"name": "b", "requests": requests, "waits": []},
    ]}  # fmt: skip
    heads, rows = tenants.waits(found)
    assert heads == ["in the background", "for b"]
    cells = ["1.00 us: collection 100 %", "2.00 us: programs 75 %, collection 12 %"]
    assert rows == [("a", cells), ("b", ["-", "-"])]
    found["tenants"] = []
    assert tenants.waits(found) == ([], [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fidelity": "count"}, "a run at count fidelity has no times"),
        ({"workload": "-"}, "the workload - is read once; expected a file"),
        ({"workload": "w"}, "the workload has one tenant; expected 2 to 64 sections"),
    ],
)
def test_a_run_that_cannot_be_alone_is_refused(fake: Any, options: dict[str, Any], message: str) -> None:
    assert fake
    with pytest.raises(ps.InputError, match=message):
        ps.run(options.pop("workload", "oltp"), alone=True, **options)


@pytest.mark.contract
def test_tenants_of_a_run_sum_to_its_figures(palimpsest: Command, tmp_path: Path) -> None:
    line = ("run", *SMALL, "--workload", f"{READER},{WRITER}", "--alone", "--out", str(tmp_path / "out"))
    result = figures(palimpsest(*line, "--json"))
    reader, writer = result["tenants"]
    assert (reader["name"], writer["name"]) == ("reader", "writer")
    for kind in ("read", "write", "trim", "flush"):
        assert reader["requests"][kind] + writer["requests"][kind] == result["requests"][kind]
    tenancy = result["tenancy"]
    assert reader["bytes_programmed"] == 0
    assert writer["bytes_programmed"] + tenancy["bytes_without_tenant"] == tenancy["bytes_programmed"]
    assert tenancy["bytes_programmed"] == pytest.approx(result["write_amplification"] * writer["bytes_written"])
    assert reader["slowdown"]["mean"] > 1.1
    assert tenancy["fairness"]["least_over_most"] < 1
    page = (tmp_path / "out" / "report.html").read_text()
    assert 'id="by-tenant"' in page
    assert page.count("writer") >= 2


@pytest.mark.contract
def test_a_tenant_that_nothing_delays_has_no_slowdown(palimpsest: Command) -> None:
    """The other tenant begins after the end of the first, on a drive that collects nothing."""
    other = "name=late,rw=randread,startdelay=50ms,number_ios=9"
    result = figures(palimpsest("run", *SMALL, "--workload", f"{READER},{other}", "--alone", "--json"))
    assert [tenant["slowdown"] for tenant in result["tenants"]] == [{"mean": 1.0, "p99": 1.0}] * 2
    assert result["tenancy"]["fairness"] == {"least_over_most": 1.0, "jain": 1.0}


@pytest.mark.contract
def test_dies_of_a_namespace_isolate_its_tenant(palimpsest: Command, tmp_path: Path) -> None:
    """The reader waits for the writer's programs on shared dies, and for nothing of it on dies of its own."""
    jobs = ["--ftl", "page", "--workload", f"{READER},{WRITER}", "--operations", "slowest:1"]
    jobs += ["--set", "ssd.namespaces=50%:50%"]

    def waits(*settings: str) -> dict[str, int]:
        found = figures(palimpsest("run", *SMALL, *jobs, *settings, "--json"))
        caused = [wait for wait in found["tenants"][0].get("waits", []) if wait["name"] == "writer"]
        return dict(caused[0]["parts_ns"]) if caused else {}

    assert waits()["behind_programs"] > 0
    apart = ("--set", "ftl.allocation=namespace", "--set", "ssd.channels=2")
    assert {"behind_programs", "collection", "erase"}.isdisjoint(waits(*apart))
    done = palimpsest("run", *SMALL, *jobs, *apart, "--out", str(tmp_path / "out"))
    assert "waits" in done.stdout
    assert "Who waits for whom" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.contract
def test_dies_of_a_namespace_are_a_smaller_drive(palimpsest: Command) -> None:
    """A writer on half of the dies has the figures of a drive of half the size, collection included."""
    drive = ("--ssd", "tlc-32g", "--ftl", "page", "--set", "part.pages_per_block=32", "--precondition", "fill:100%")
    writer = ("--workload", "bs=128k,rw=randwrite,iodepth=64,n=4000", "--json")
    half = ("ssd.channels=4", "ssd.capacity=384MiB")
    own = ("ssd.capacity=768MiB", "ssd.namespaces=50%:50%", "ftl.allocation=namespace")
    found = [
        figures(palimpsest("run", *drive, *(part for each in settings for part in ("--set", each)), *writer))
        for settings in (half, own)
    ]
    assert found[0]["write_amplification"] > 2
    for figure in ("throughput", "latency_ns", "write_amplification", "flash"):
        assert found[0][figure] == found[1][figure], figure


SWEEP = """\
[base]
ssd = "mga-8k"
ssd.blocks_per_plane = 64
precondition = "fill:90%"
workload = "{workload}"

[[zip]]
label.order = ["any", "turns", "bursts"]
controller.commands = [0, 4, 4]
host.burst = [1, 1, 8]

[report]
figure = "tenants.reader.latency_ns.read.p99"
scale = "log"
"""


@pytest.mark.contract
def test_a_sweep_has_the_figures_of_tenants(palimpsest: Command, tmp_path: Path) -> None:
    (tmp_path / "orders.toml").write_text(SWEEP.format(workload=f"{READER},{WRITER}"))
    done = palimpsest("sweep", "orders.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "reader read p99" in done.stdout
    assert "burst" not in done.stdout.splitlines()[0], "a label replaces the axes beside it"
    swept = ps.Sweep.load(tmp_path / "results" / "orders").to_polars()
    p99 = dict(zip(swept["label.order"], swept["tenants.reader.latency_ns.read.p99"], strict=True))
    assert p99["turns"] < p99["bursts"]
    assert swept["host.burst"].to_list() == [1, 1, 8]


@pytest.mark.contract
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("ssd.namespaces=60%:60%",), "shares of the capacity up to 100% together"),
        (
            ("ftl.allocation=namespace",),
            "dies belong to namespaces, below no file system; expected ftl.allocation = round-robin",
        ),
        (
            ("ftl.name=page", "ftl.allocation=namespace", "ssd.namespaces=33%:67%"),
            "shares of whole dies that add up to 100%",
        ),
        (("ftl.name=fs-page", "ssd.namespaces=50%:50%", "ftl.allocation=namespace"), "below no file system"),
        (("ftl.name=mga", "ssd.namespaces=50%:50%", "ftl.allocation=namespace"), "data of several namespaces"),
    ],
)
def test_wrong_namespaces_are_one_line(palimpsest: Command, settings: tuple[str, ...], message: str) -> None:
    given = [part for setting in settings for part in ("--set", setting)]
    done = palimpsest("run", *SMALL, *given, "--workload", f"{READER},{WRITER}")
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.contract
def test_an_urgent_reader_goes_before_a_writer(palimpsest: Command) -> None:
    limit = ("--set", "controller.commands=4", "--workload", f"{READER},{WRITER}", "--json")
    weighted = ("--set", "host.arbitration=weighted", "--set")

    def mean(*settings: str) -> float:
        found = figures(palimpsest("run", *SMALL, *limit, *settings))
        return float(found["tenants"][0]["latency_ns"]["read"]["mean"])

    turns, urgent = mean(), mean(*weighted, "host.classes=urgent:low")
    low = mean(*weighted, "host.classes=low:high")
    assert urgent <= turns < low
    assert mean("--set", "host.burst=16") > turns


@pytest.mark.contract
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ("host.burst=3", "controller.commands=4"),
            "expected host.burst = 4 (a power of 2 up to 64, or 0 for no limit",
        ),
        (("host.burst=2",), "host.burst"),
        (
            ("controller.commands=4", "host.classes=low:high"),
            "does not read host.classes without host.arbitration = weighted; expected host.arbitration = weighted, ",
        ),
        (("controller.commands=4", "host.arbitration=weighted", "host.classes=urgent:admin"), "expected classes in"),
        (("controller.commands=4", "host.arbitration=weighted", "host.weights=8:4"), "1 to 256 each"),
        (
            ("controller.commands=4", "host.arbitration=weighted", "host.classes=low:low:low"),
            "3 classes; the workload has 2 tenants",
        ),
    ],
)
def test_wrong_queues_are_one_line(palimpsest: Command, settings: tuple[str, ...], message: str) -> None:
    given = [part for setting in settings for part in ("--set", setting)]
    done = palimpsest("run", *SMALL, *given, "--workload", f"{READER},{WRITER}")
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert len(done.stderr) < 250
