"""The policy `mine`, as installed."""

import palimpsest as ps

SMALL = {
    "ssd.channels": 2,
    "ssd.blocks_per_plane": 48,
    "part.pages_per_block": 16,
    "ssd.over_provisioning": "28%",
    "ftl.gc_start": "2 blocks",
    "ftl.gc_stop": "3 blocks",
    "KEY": "mine",
}


def test_every_read_is_verified() -> None:
    """Runs a small and full drive; with `payload="tag"` the simulator compares each read with the host's data."""
    drive = ps.Ssd("mga-8k", ftl="page", **SMALL)
    result = drive.run("rw=randrw,bs=8k,n=20000,iodepth=4", precondition="fill:100%", payload="tag", check=True)
    assert result.gc["erased_blocks"] > 0
    assert result.config["ftl"]["FIELD"].startswith("mine@")
