"""Lifetimes and flash consumed, on the installed command: enough erases, the load of a closed loop, the terminal."""

import json
import math
from typing import Any

import pytest

from conftest import Command, figures

pytestmark = pytest.mark.contract

DRIVE = (
    "--set", "ssd.channels=1", "--set", "ssd.chips_per_channel=1", "--set", "ssd.dies_per_chip=1",
    "--set", "ssd.planes_per_die=1", "--set", "ssd.blocks_per_plane=24", "--set", "ssd.over_provisioning=30%",
    "--ftl", "subpage", "--precondition", "fill:100%", "--warmup", "0",
)  # fmt: skip
WRITES = "rw=randwrite,bs=16k,iodepth=8"
ENOUGH = f"{WRITES},n=100000"


def blocks(result: dict[str, Any]) -> int:
    names = ("channels", "chips_per_channel", "dies_per_chip", "planes_per_die", "blocks_per_plane")
    return math.prod(result["config"]["ssd"][name] for name in names)


def test_flash_consumed_are_the_erases_times_a_block(palimpsest: Command) -> None:
    result = figures(palimpsest("run", *DRIVE, "--workload", f"{WRITES},n=5000", "--json"))
    part, flash = result["config"]["part"], result["flash"]
    assert part["page_size"] == "16KiB"
    assert flash["erases"] > 0
    assert flash["consumed_bytes"] == flash["erases"] * part["pages_per_block"] * 16384
    shown = " ".join(palimpsest("run", *DRIVE, "--workload", f"{WRITES},n=5000").stdout.split())
    assert "of flash consumed (erased)" in shown
    assert "the run is too short for a lifetime" in shown
    assert "at full load" not in shown
    assert f"{flash['erases'] / blocks(result):.3g} erases a block; expected 5" in shown


@pytest.mark.parametrize(("load", "closed", "said"), [
    (ENOUGH, True, " at full load, day and night ("), (f"{ENOUGH},rate_iops=400", False, " at this load ("),
])  # fmt: skip
def test_a_life_of_enough_erases_names_its_load(palimpsest: Command, load: str, closed: bool, said: str) -> None:
    result = figures(palimpsest("run", *DRIVE, "--workload", load, "--json"))
    assert result["flash"]["erases"] >= 5 * blocks(result), "enough erases for a lifetime"
    assert result["endurance"]["full_load"] is closed
    shown = " ".join(palimpsest("run", *DRIVE, "--workload", load).stdout.split())
    assert said in shown, shown
    assert "too short for a lifetime" not in shown


def test_a_table_of_short_runs_has_no_lifetime(palimpsest: Command) -> None:
    layers = [*DRIVE[: DRIVE.index("--ftl")], "--ftl", "subpage,page", "--precondition", "fill:100%", "--warmup", "0"]
    done = palimpsest("compare", *layers, "--workload", f"{WRITES},n=10000", "--json")
    assert all(run["endurance"]["tbw"] for run in json.loads(done.stdout)["runs"]), "JSON has the figure"
    shown = palimpsest("compare", *layers, "--workload", f"{WRITES},n=10000").stdout
    assert "TBW" not in shown.partition("ratio:")[0]
    assert "no lifetime: " in shown
    assert "flash consumed" in shown
