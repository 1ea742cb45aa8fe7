"""Drives that wear out, and reads that fail for good: a run continues, and has a complete result."""

import re
from pathlib import Path

from conftest import Command, figures

SMALL = (
    "--ssd", "tlc-32g", "--set", "ssd.channels=2", "--set", "ssd.blocks_per_plane=16",
    "--set", "part.pages_per_block=32", "--set", "ssd.over_provisioning=40%", "--precondition", "fill:100%", "--json",
)  # fmt: skip


def test_a_run_goes_to_the_end_of_life_and_has_its_result(palimpsest: Command, tmp_path: Path) -> None:
    load = ("--workload", "rw=randrw,rwmixread=30,bs=16k,norandommap,n=3000", "--until", "worn-out")
    wear = ("--set", "faults.wear_out=true", "--set", "part.endurance=12", "--set", "part.endurance_deviation=10%")
    for fidelity in ("count", "timed"):
        out = tmp_path / fidelity
        done = palimpsest("run", *load, *wear, *SMALL, "--fidelity", fidelity, "--payload", "tag", "--out", str(out))
        result = figures(done)
        life = result["lifetime"]
        assert life["worn_out"]
        assert life["retired_blocks"] > 0
        assert life["host_bytes"] > result["host"]["bytes_written"] > 0
        assert life["min_erases"] <= life["mean_erases"] <= life["max_erases"] <= 12 * 2
        assert any("end of its life" in note for note in result["notes"])
        assert (out / "wear.parquet").exists()
    refused = palimpsest("run", *load, *SMALL)
    assert refused.returncode == 2
    assert "expected --set faults.wear_out=true" in refused.stderr


def test_reads_that_fail_for_good_count_and_the_run_continues(palimpsest: Command) -> None:
    load = ("--workload", "rw=randrw,rwmixread=70,bs=16k,norandommap,n=8000", "--payload", "tag")
    errors = (
        "--set", "part.ber_fresh=0.05%", "--set", "ecc.strength=20", "--set", "ecc.disturb_reads=300",
        "--set", 'ecc.t_retries=["50us"]', "--set", 'ecc.retry_rates=["80%"]',
    )  # fmt: skip
    result = figures(palimpsest("run", *load, *errors, *SMALL))
    reliability = result["reliability"]
    assert result["flash"]["read_retries"] > 0
    assert sum(reliability["lost_subpages"].values()) > 0
    assert 0 < reliability["failed_reads"] < result["requests"]["read"]
    assert figures(palimpsest("run", *load, *SMALL))["reliability"] is None


def test_power_cuts_and_their_recoveries_are_in_the_summary(palimpsest: Command) -> None:
    """The row has the figures of the JSON; a run without a cut has no row."""
    small = ["--set", "ssd.blocks_per_plane=16", "--set", "ssd.channels=1", "--precondition", "fill:50%"]
    run = [
        "run",
        "--ssd",
        "mga-8k",
        "--ftl",
        "page",
        *small,
        "--workload",
        "rw=randwrite,bs=8k,n=3000",
        "--payload",
        "tag",
    ]
    cut = [*run, "--set", "faults.power_cuts=every:1k"]
    power = figures(palimpsest(*cut, "--json"))["power"]
    assert power["cuts"] >= 2
    assert power["recovery_ns"]["max"] >= power["recovery_ns"]["p99"] >= power["recovery_ns"]["p50"] > 0
    row = re.search(r"^recovery .*?(?=^\S)", palimpsest(*cut).stdout, re.MULTILINE | re.DOTALL)
    assert row is not None
    said = " ".join(row[0].split())
    assert f"of {power['cuts']} power cuts: " in said
    assert f"{power['pages_scanned']:,} pages scanned" in said
    assert "recovery " not in palimpsest(*run).stdout


def test_a_die_fails_and_the_run_goes_on_with_the_others(palimpsest: Command) -> None:
    load = ("--workload", "rw=randrw,rwmixread=50,bs=16k,norandommap,n=6000", "--payload", "tag")
    fails = ("--set", "faults.die_failure=at:2k@1")
    for fidelity in ("count", "timed"):
        result = figures(palimpsest("run", *load, *fails, *SMALL, "--fidelity", fidelity))
        reliability = result["reliability"]
        assert reliability["failed_dies"] == 1
        assert sum(reliability["lost_subpages"].values()) > 0
        assert 0 < reliability["failed_reads"] < result["requests"]["read"]
        assert any(note.startswith("die 1 failed") for note in result["notes"])
        assert result["lifetime"]["retired_blocks"] > 0
    for settings, said in (
        (("faults.die_failure=at:2k@99",), "expected each to fail once, and dies from 0 to"),
        (("faults.die_failure=sometimes",), "expected never, at:50k@3"),
        (("faults.die_failure=at:2k", "ftl.checkpoint=16MiB"), "expected never, ftl.checkpoint = 0B"),
    ):
        given = [part for setting in settings for part in ("--set", setting)]
        refused = palimpsest("run", *load, *given, *SMALL)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr


def test_parity_across_dies_loses_nothing_to_a_die(palimpsest: Command) -> None:
    load = ("--workload", "rw=randrw,rwmixread=50,bs=16k,norandommap,n=6000", "--payload", "tag")
    rain = ("--set", "ftl.rain=1", "--set", "faults.die_failure=at:2k@1")
    without = figures(palimpsest("run", *load, *SMALL))
    assert without["rain"] is None
    for fidelity in ("count", "timed"):
        result = figures(palimpsest("run", *load, *rain, *SMALL, "--fidelity", fidelity))
        parity, reliability = result["rain"], result["reliability"]
        assert reliability == {"lost_subpages": {}, "failed_reads": 0, "failed_dies": 1}
        assert parity["rebuilt_reads"] > 0
        assert parity["failed_rebuilds"] == 0
        assert parity["moved_pages"] > 0
        assert result["flash"]["by_cause"]["parity"]["programs"] == parity["parity_programs"] > 0
        assert result["flash"]["by_cause"]["rebuild"]["reads"] > 0
        assert (parity["rebuild_latency_ns"] is None) == (fidelity == "count")
    for settings, said in (
        (("ftl.rain=4",), "expected a number that is one less than a divisor"),
        (("ftl.rain=1", "ftl.checkpoint=16MiB"), "expected 0, or ftl.checkpoint = 0B"),
    ):
        given = [part for setting in settings for part in ("--set", setting)]
        refused = palimpsest("run", *load, *given, *SMALL)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
    refused = palimpsest("run", "--ssd", "mga-8k", *load, "--set", "ftl.rain=1")
    assert refused.returncode == 2
    assert "this layer programs pages several times, and a page of parity is programmed once" in refused.stderr
