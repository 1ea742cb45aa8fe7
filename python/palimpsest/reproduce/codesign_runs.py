"""The runs behind the reproduction of the co-design paper: drives, workloads, and what the paper leaves open.

The paper fixes 8 channels, the times of flash (its Table I), and read ratio and mean request size of four traces (Sec.
IV). It is silent about how many requests are in flight, the files and their sizes, how full the drive is, dies and
planes, and the time of a DRAM permission exchange. Each of these is an `Unknown` here: a default, and values to
run instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..options import RunOptions
from . import sweeps_old as sweeps
from .batch import Batch
from .measures import change, response_ns

__all__ = [
    "BY_CHANNEL",
    "DEFAULT",
    "EFFECTS",
    "FULL",
    "FULL_SWEEP",
    "OWN",
    "QUICK",
    "QUICK_SWEEP",
    "SCHEMES",
    "SEEDS",
    "STATIC",
    "STATISTICS",
    "TOGETHER",
    "UNEVEN",
    "UNKNOWNS",
    "WORKLOADS",
    "Scale",
    "Unknown",
    "effects",
    "effects_runs",
    "options_at",
    "statistics_run",
]

SCHEMES = ("rr", "fairness", "read-busy", "depth", "hybrid")
"""The paper's, round robin first."""
SEEDS = (1, 2, 3)
"""Of the runs of the figures and claims."""
OWN = "least-work"
"""Ours."""
BY_CHANNEL = "by-channel"
"""A page map that gives each address a channel for good, in turn: another meaning of round robin."""
STATIC = "static"
"""A page map that gives each address a plane for good, channels first: the same, down to planes."""
WORKLOADS = ("livemaps", "exchange", "development", "msnstorage")
STATISTICS = {
    "livemaps": (64.4, 49.1),
    "exchange": (32.1, 20.2),
    "development": (95.9, 24.2),
    "msnstorage": (64.6, 9.99),
}
"""Sec. IV: percent of reads, and mean request in KB."""
UNEVEN = {"exchange": (26.0, 6.3), "msnstorage": (67.0, 27.9)}
"""Fig. 2: percent of files with an imbalance rate above 0, and above 1."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the runs are. The drive shrinks in blocks; channels, dies, planes, pages and blocks stay as they are.

    Attributes:
        blocks: blocks of a plane.
        requests: of a run.
        trace_requests: of a real trace.
        everything: unknowns that are not marked as quick are swept too.
    """

    blocks: int
    requests: int
    trace_requests: int
    everything: bool

    def options(
        self,
        ftl: str,
        workload: str,
        changes: str = "",
        *overrides: str,
        precondition: str = "layout",
        seed: int = SEEDS[0],
    ) -> RunOptions:
        """The run of a workload, with changes to its specification, on a layer."""
        return RunOptions(
            ssd="codesign-8ch",
            ftl=ftl,
            workload=",".join(part for part in (workload, changes, f"n={self.requests}") if part),
            overrides=(f"ssd.blocks_per_plane={self.blocks}", "ssd.over_provisioning=28%", *overrides),
            precondition=precondition,
            warmup="10%",
            seed=seed,
        )

    def scheme(
        self, scheme: str, workload: str, changes: str = "", *overrides: str, seed: int = SEEDS[0]
    ) -> RunOptions:
        """The run of a workload on the co-designed file system with a scheme; on a page map: `BY_CHANNEL`, `STATIC`."""
        if scheme in (BY_CHANNEL, STATIC):
            allocation = "static" if scheme == STATIC else "channel"
            return self.options("page", workload, changes, f"ftl.allocation={allocation}", *overrides, seed=seed)
        return self.options("codesign", workload, changes, f"fs.scheme={scheme}", *overrides, seed=seed)


QUICK = Scale(blocks=64, requests=40_000, trace_requests=4000, everything=False)
QUICK_SWEEP = Scale(blocks=32, requests=6000, trace_requests=0, everything=False)
FULL = Scale(blocks=256, requests=160_000, trace_requests=50_000, everything=True)
FULL_SWEEP = Scale(blocks=64, requests=24_000, trace_requests=0, everything=True)


@dataclass(frozen=True, slots=True)
class Unknown(sweeps.Unknown):
    """One thing that the paper does not say, at another value than the default.

    Attributes:
        changes: keys of the workloads' specifications.
        overrides: configuration keys.
        base: what the schemes are compared with: a scheme, `BY_CHANNEL` or `STATIC`.
        quick: whether it is swept in quick runs too.
    """

    changes: str = ""
    overrides: tuple[str, ...] = ()
    base: str = "rr"
    quick: bool = False


TOGETHER = "two at once"
DEFAULT = Unknown("default", "16 in flight, DRAM exchange of 3 us", quick=True)
_NO_PLANES = ("sim.multi_plane=off",)
_WHOLE = "filesize=128k,size=70%,bssplit=128k/100,4k/50:16k/30:64k/20"
_BY_PAGE = "bssplit=4k/25:16k/50:64k/25,4k/100"
_WHOLE_BY_PAGE = "filesize=128k,size=70%,bssplit=128k/100,4k/100"
UNKNOWNS = (
    DEFAULT,
    *(
        Unknown("queue depth", f"{depth} in flight", f"iodepth={depth}", quick=depth in (1, 4, 64))
        for depth in (1, 2, 4, 8, 64)
    ),
    *(
        Unknown("DRAM exchange", f"{time} us", overrides=(f"fs.dispatch_overhead={time}us",), quick=time in (0, 40))
        for time in (0, 10, 20, 40, 100)
    ),
    *(
        Unknown(
            "arrivals",
            f"{rate} requests a second",
            f"rate_iops={rate},open_loop,rate_process=poisson",
            quick=rate == 1000,
        )
        for rate in (250, 1000, 2000)
    ),
    Unknown("reads", "whole files of 128 KiB, written in pieces", _WHOLE, quick=True),
    Unknown("reads", "of one page", "bssplit=4k/100,8k/25:32k/25:64k/25:128k/25", quick=True),
    Unknown("writes", "of one page", _BY_PAGE, quick=True),
    Unknown("files", "all of 128 KiB", "filesize=128k,size=70%"),
    Unknown("files", "all of 16 MiB", "filesize=16m,size=70%"),
    Unknown("files", "laid out one by one", "openfiles=1"),
    Unknown("utilisation", "40 % of the drive", "size=40%"),
    Unknown("utilisation", "90 % of the drive", "size=90%"),
    Unknown("locality", "Zipf 0.9", "random_distribution=zipf:0.9"),
    Unknown("locality", "Zipf 1.2", "random_distribution=zipf:1.2"),
    Unknown("dies", "1 a channel", overrides=("ssd.dies_per_chip=1",)),
    Unknown("dies", "4 a channel", overrides=("ssd.dies_per_chip=4",)),
    Unknown("flash commands", "no plane commands", overrides=_NO_PLANES),
    Unknown("flash commands", "no cache register", overrides=("sim.cache_register=false",)),
    Unknown("scheduling", "reads first", overrides=("sim.scheduler=read-first",), quick=True),
    Unknown("deep writes", "every eighth page to a channel", overrides=("fs.depth_pages=apart",), quick=True),
    Unknown("round robin", "channel by address, in a page map", base=BY_CHANNEL, quick=True),
    Unknown("round robin", "channel and plane by address, in a page map", base=STATIC, quick=True),
    Unknown(TOGETHER, "channel and plane by address, no plane commands", "", _NO_PLANES, base=STATIC, quick=True),
    Unknown(TOGETHER, "channel by address, requests of one page", "bssplit=4k/100", base=BY_CHANNEL, quick=True),
    Unknown(TOGETHER, "channel by address, Zipf 1.2", "random_distribution=zipf:1.2", base=BY_CHANNEL),
    Unknown(TOGETHER, "channel and plane by address, 4 in flight", "iodepth=4", base=STATIC),
    Unknown(TOGETHER, "channel and plane by address, 64 in flight", "iodepth=64", base=STATIC),
    Unknown(TOGETHER, "whole files of 128 KiB read, 1 in flight", f"{_WHOLE},iodepth=1", quick=True),
    Unknown(TOGETHER, "the same, written page by page", f"{_WHOLE_BY_PAGE},iodepth=1"),
    Unknown("programs", "as fast as reads, 60 us", overrides=("part.t_program=60us",), quick=True),
    Unknown(TOGETHER, "programs of 60 us, writes of one page", _BY_PAGE, ("part.t_program=60us",), quick=True),
    Unknown("bus", "200 MB/s instead of 40", overrides=("part.bus_rate=200MB/s",), quick=True),
)
"""The first is the default; the others change one thing each, but for those of `TOGETHER`."""

EFFECTS = {
    f"{scheme}_{which}": f"mean response time, {scheme} over rr, {which} gain of four workloads (%)"
    for scheme in SCHEMES[1:]
    for which in ("least", "most")
}
"""What is measured at each point, by the name of its claim."""


def options_at(scale: Scale, unknown: Unknown, scheme: str, workload: str) -> RunOptions:
    """The run of a workload with a scheme at one point."""
    return scale.scheme(scheme, workload, unknown.changes, *unknown.overrides)


def effects_runs(scale: Scale, unknown: Unknown) -> Iterator[RunOptions]:
    """The runs that `effects` needs."""
    for workload in WORKLOADS:
        for scheme in dict.fromkeys((unknown.base, *SCHEMES[1:])):
            yield options_at(scale, unknown, scheme, workload)


def effects(batch: Batch, scale: Scale, unknown: Unknown) -> dict[str, float | None]:
    """The effects on mean response time at one point."""
    found: dict[str, float | None] = {}
    for scheme in SCHEMES[1:]:
        changes = [
            change(
                response_ns(batch[options_at(scale, unknown, scheme, workload)]),
                response_ns(batch[options_at(scale, unknown, unknown.base, workload)]),
            )
            for workload in WORKLOADS
        ]
        known = [each for each in changes if each is not None]
        found |= {f"{scheme}_least": max(known, default=None), f"{scheme}_most": min(known, default=None)}
    return found


def statistics_run(workload: str) -> RunOptions:
    """The run that counts what a workload preset generates."""
    return replace(
        FULL.options("page", workload, precondition="none"), workload=workload, fidelity="count", warmup=None
    )
