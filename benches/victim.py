"""Requests a second of steady writes with a victim policy in Python, beside the native one.

    make setup && .venv/bin/python benches/victim.py

The drive of `speed.rs`, `cost-age-times`, timed, on one core; user time of two lengths, so that preconditioning does
not count; five interleaved rounds. Ignored: other policies, whose own time differs.
"""

import resource
from typing import Any

import numpy as np

import palimpsest as ps
from palimpsest.policies import Candidates

KEYS: dict[str, Any] = {
    "part.page_size": "4KiB", "part.subpage_size": "4KiB", "part.pages_per_block": 256, "part.nop": 4,
    "part.order": "ascending", "ssd.channels": 8, "ssd.chips_per_channel": 4, "ssd.dies_per_chip": 1,
    "ssd.planes_per_die": 2, "ssd.blocks_per_plane": 328, "ssd.over_provisioning": "28%", "ftl.gc_pace": "block",
    "ftl.moved_to": "plane",
}  # fmt: skip
SHORT, LONG, ROUNDS = 500_000, 2_500_000, 5


class CostAgeTimes:
    """As the built-in policy."""

    def choose(self, blocks: Candidates) -> Any:  # noqa: ANN401  # an integer of numpy
        """The cheapest, oldest and least worn block."""
        cost = blocks.valid * (blocks.erases + 1)
        return (cost / ((blocks.units - blocks.valid) * blocks.age)).argmin()


def _took(policy: object, requests: int) -> float:
    begin = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    ps.run(
        f"rw=randwrite,bs=4k,iodepth=32,norandommap,n={requests}", ssd=ps.Ssd("tlc-32g", ftl="page", **KEYS),
        precondition="fill:100%,random:1x", payload="none", policies={"ftl.victim": policy},
    )  # fmt: skip
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime - begin


def main() -> None:
    """Prints the rates of each round, and the ratios of the best and the median."""
    ps.keep_states()
    policies = ("cost-age-times", CostAgeTimes())
    for policy in policies:
        _took(policy, SHORT)  # keeps the state of the preconditioned drive
    rounds = []
    for _ in range(ROUNDS):
        rounds.append([(LONG - SHORT) / (_took(policy, LONG) - _took(policy, SHORT)) for policy in policies])
        print(f"native {rounds[-1][0]:.3g}, Python {rounds[-1][1]:.3g} requests/s", flush=True)
    for name, of in (("best", np.max), ("median", np.median)):
        native, python = of(rounds, axis=0)
        print(f"{name}: {python / native:.2f}")


if __name__ == "__main__":
    main()
