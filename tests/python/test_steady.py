"""The run-in before a measurement, and runs that go on until their figures are known."""

from typing import Any

import pytest

import palimpsest as ps
from conftest import Command

DRIVE = {"ssd.channels": 2, "ssd.blocks_per_plane": 24, "ssd.over_provisioning": "20%", "buffer.size": "8MiB"}
"""A drive whose write buffer holds 2048 of the written pages."""
BEFORE = "fill:100%,random:1x"


def run(requests: int | None = 1500, *, spec: str = "", **options: Any) -> ps.Result:
    ends = "" if requests is None else f",n={requests}"
    workload = f"rw=randwrite,bs=4k,iodepth=32{ends}{spec}"
    chosen = {"overrides": DRIVE} | options
    return ps.run(workload, ftl="page", precondition=BEFORE, series=False, **chosen)


def test_a_run_in_fills_the_write_buffer() -> None:
    """Without the run-in, or with an emptied buffer, 1500 writes measure memory."""
    auto, long = run(), run(30_000)
    assert auto["run_in"]["stationary"] is True
    assert auto["run_in"]["requests"] >= 2048
    assert auto["throughput"]["iops"] == pytest.approx(long["throughput"]["iops"], rel=0.25)
    for found in (run(warmup="0"), run(overrides=DRIVE | {"buffer.start": "empty"})):
        assert found["throughput"]["iops"] > 10 * long["throughput"]["iops"]
        assert any("the write buffer is empty at the start and has room for 100 %" in each for each in found["notes"])
        assert found["steady"]["iops"]["verdict"] != "yes"
    assert "run_in" not in run(warmup="0").to_dict()


def test_equal_seeds_give_equal_run_ins() -> None:
    one, two, other = (run(seed=seed).to_dict() for seed in (3, 3, 4))
    assert one["run_in"] == two["run_in"]
    assert one["latency_ns"] == two["latency_ns"] != other["latency_ns"]


@pytest.mark.parametrize(
    "workload",
    ["rw=randread,bs=4k,n=500", "rw=randwrite,bs=4k,n=500,rate_iops=900", "mysql-like,n=500,size=300MiB"],
)
def test_a_load_of_any_rate_has_a_run_in(workload: str) -> None:
    found = ps.run(workload, ftl="page", precondition=BEFORE, series=False, overrides=DRIVE)
    assert found["run_in"]["requests"] >= 1000
    assert sum(found["requests"].values()) >= 500


@pytest.mark.parametrize(("precondition", "options"), [("none", {}), (BEFORE, {"fidelity": "count"})])
def test_new_drives_and_counted_runs_have_no_run_in(precondition: str, options: dict[str, Any]) -> None:
    workload = "rw=randwrite,bs=4k,n=500,iodepth=32"
    found = ps.run(workload, ftl="page", precondition=precondition, series=False, overrides=DRIVE, **options)
    assert "run_in" not in found.to_dict()


def test_a_run_goes_on_until_its_figures_are_known() -> None:
    found = run(None, until="wa:5%,write.p99:10%")
    assert found["until"] == {"asked": "wa:5%,write.p99:10%", "met": True}
    for finding, share in ((found["steady"]["wa"], 0.05), (found["steady"]["write"]["p99"], 0.10)):
        low, high = finding["interval"]
        assert finding["verdict"] == "yes"
        assert (high - low) / (high + low) <= share
    # Two looks in a row, a quarter of the run apart.
    least = run(40_000, until="20%")
    assert least["requests"]["write"] >= 50_000
    assert least["until"]["met"] is True


def test_a_run_ends_without_its_figures_at_most_then() -> None:
    found = run(None, until="0.1%", at_most=12_000)
    assert found["requests"]["write"] == 12_000
    assert found["until"]["met"] is False
    assert any(note.startswith("--until 0.1% is not reached within --at-most 12000: ") for note in found["notes"])
    timed = run(None, until="0.1%", at_most="1s")
    assert 1e9 <= timed["simulated_ns"] < 4e9
    assert "within --at-most 1s" in " ".join(timed["notes"])


def test_a_counted_run_judges_write_amplification() -> None:
    found = run(None, spec=",norandommap", until="5%", fidelity="count")
    steady = found["steady"]
    assert found["until"] == {"asked": "5%", "met": True}
    assert (steady["iops"], steady["mean"], steady["read"]) == (None, None, None)
    low, high = steady["wa"]["interval"]
    assert low < found["write_amplification"] < high
    long = run(10 * sum(found["requests"].values()), spec=",norandommap", fidelity="count")
    assert long["write_amplification"] == pytest.approx(found["write_amplification"], rel=0.05)
    assert long["steady"]["wa"]["verdict"] == "yes"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--until", "p98:1%"), "names no judged figure"),
        (("--until", "1"), "is no share"),
        (("--until", "1%", "--requests", "500"), "expected only one of the two; --at-most bounds a run with --until"),
        (("--until", "1%", "--repeat", "2"), "--repeat: --until 1% is given too"),
        (("--until", "p99:1%", "--fidelity", "count"), "a counted run does not measure p99; expected wa, or"),
        (("--until", "1%", "--fidelity", "count", "--at-most", "9s"), "a counted run has no time; expected a number"),
        (
            ("--until", "1%", "--at-most", "0"),
            "expected a number of requests such as 1e6, or simulated time such as 20s",
        ),
        (("--at-most", "5"), "expected --until 1%"),
        (("--until", "1%", "--workload", "fdp-rocksdb"), "continues from its last state; expected a larger n"),
    ],
)
def test_ends_without_effect_are_refused(palimpsest: Command, options: tuple[str, ...], says: str) -> None:
    found = palimpsest("run", *options)
    assert found.returncode == 2
    assert says in found.stderr
    assert len(found.stderr.splitlines()) == 1
