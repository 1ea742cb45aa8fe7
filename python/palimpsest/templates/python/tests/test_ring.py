"""The layer `ring`, as installed."""

import subprocess
import sys

import palimpsest as ps

SMALL = {"ssd.channels": 2, "ssd.blocks_per_plane": 24, "part.pages_per_block": 16, "ssd.over_provisioning": "30%"}


def test_every_read_is_verified() -> None:
    """Runs a small and full drive; with `payload="tag"` the simulator compares each read with the host's data."""
    drive = ps.Ssd("mga-8k", ftl="ring", **SMALL)
    result = drive.run("rw=randrw,bs=8k,n=5000,iodepth=4", precondition="fill:100%", payload="tag", check=True)
    assert result.gc["erased_blocks"] > 0
    assert result.ftl.startswith("ring@")


def test_the_model_suite_finds_nothing() -> None:
    """Checks the layer on small drives of many shapes, with faults and power cuts."""
    line = [sys.executable, "-m", "palimpsest", "check", "ring", "--cases", "2"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
