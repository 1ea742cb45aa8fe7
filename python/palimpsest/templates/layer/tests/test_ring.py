"""The layer `ring`, as installed."""

import palimpsest as ps

SMALL = {
    "ssd.blocks_per_plane": 16,
    "part.pages_per_block": 8,
    "ssd.over_provisioning": "30%",
}


def test_every_read_is_verified() -> None:
    """Runs a small and full drive; with `payload="tag"` the simulator compares each read with the host's data."""
    drive = ps.Ssd("mga-8k", ftl="ring", **SMALL)
    result = drive.run("rw=randrw,bs=4k,n=3000,iodepth=8", precondition="fill:100%", payload="tag", check=True)
    assert result.gc["runs"] > 0
