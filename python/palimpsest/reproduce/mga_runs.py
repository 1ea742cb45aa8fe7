"""The runs behind the reproduction of the MGA paper: workloads, drives, and what the paper leaves open.

The paper fixes blocks of 128 pages, planes of 512 blocks, pages of 8 and 16 KiB and subpages of 4 KiB. Its traces are
not public; the workload presets have the statistics of its Table II and are synthetic. Everything else that it
is silent about is an `Unknown` here: a default, and other values to run in its place.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ..options import RunOptions
from ..result import Result
from . import sweeps_old as sweeps
from .batch import Batch
from .claims import TOLERANCE
from .measures import change, response_ns

__all__ = [
    "DEFAULT",
    "EFFECTS",
    "FULL",
    "FULL_SWEEP",
    "PAGES",
    "QUICK",
    "SEEDS",
    "TABLE_II",
    "THRESHOLDS",
    "UNKNOWNS",
    "WORKLOADS",
    "Scale",
    "Unknown",
    "all_effects",
    "effects",
    "effects_of",
    "effects_runs",
    "needed",
]

WORKLOADS = ("cfs", "radius", "ads", "trade", "synth-a", "synth-b")
PAGES = (8, 16)
THRESHOLDS = ("25%", "30%", "35%")
"""The allocation thresholds of Fig. 10; the other figures are at the second."""
SEEDS = (1, 2, 3)
"""Of the runs of the figures and claims."""
TABLE_II = {
    "cfs": (23.90, 81.99, 90.6),
    "radius": (210.67, 22.51, 8.1),
    "ads": (63.80, 11.28, 86.7),
    "trade": (3.23, 5.91, 18.8),
    "synth-a": (1.0, 1.0, 40.8),
    "synth-b": (6.58, 5.38, 45.5),
}
"""Mean read and write in units of 4 KiB, and percent of reads."""

PRECONDITION = "fill:90%"


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the runs are. The drive and the run shrink together, pages and blocks stay as they are.

    Attributes:
        blocks: blocks of a plane with pages of 16 KiB; twice as many with 8 KiB, for the same capacity.
        requests: of a run.
        first: how many requests Fig. 8 shows.
        trace_requests: of a real trace.
    """

    blocks: int
    requests: int
    first: int
    trace_requests: int

    def options(
        self, ftl: str, workload: str, page: int, changes: str = "", *overrides: str, seed: int = SEEDS[0]
    ) -> RunOptions:
        """The run of a workload, with changes to its specification, on a layer."""
        blocks = self.blocks * 16 // page
        spec = ",".join(part for part in (workload, changes, f"n={self.requests}") if part)
        return RunOptions(
            ssd=f"mga-{page}k",
            ftl=ftl,
            workload=spec,
            overrides=(f"ssd.blocks_per_plane={blocks}", *overrides),
            precondition=PRECONDITION,
            seed=seed,
        )


QUICK = Scale(blocks=16, requests=20_000, first=24, trace_requests=5_000)
FULL_SWEEP = Scale(blocks=64, requests=80_000, first=0, trace_requests=0)
FULL = Scale(blocks=512, requests=640_000, first=48, trace_requests=100_000)


@dataclass(frozen=True, slots=True)
class Unknown(sweeps.Unknown):
    """One thing that the paper does not say, at another value than the default.

    Attributes:
        changes: keys of the workload's specification; "{trade}" alone where only `trade` changes.
        overrides: configuration keys.
        precondition: state of the drive.
        shorter: by what the number of requests is divided.
        trade_only: whether the change is one of `trade` and says nothing about the other workloads.
    """

    changes: str = ""
    overrides: tuple[str, ...] = ()
    precondition: str = PRECONDITION
    shorter: int = 1
    trade_only: bool = False


_FEW_SMALL = "bssplit=4k/27:8k/30:16k/26:32k/17,4k/27:8k/18:16k/16:32k/20:64k/19"
_MANY_SMALL = "bssplit=4k/80:32k/10:64k/10,4k/80:64k/8:128k/12"

DEFAULT = Unknown("default", "drive 90 % full, 50 requests/s, 60 % of 4 KiB, Zipf 0.9 over half the drive")
UNKNOWNS = (
    DEFAULT,
    Unknown("collection", "none runs (drive half full, a quarter of the requests)", precondition="fill:50%", shorter=4),
    Unknown("collection", "also while idle", overrides=("ftl.gc_background=true",)),
    Unknown("collection", "from 10 % to 20 % free", overrides=("ftl.gc_start=10%", "ftl.gc_stop=20%")),
    Unknown("utilisation", "drive 70 % full", precondition="fill:70%"),
    Unknown("utilisation", "drive 80 % full", precondition="fill:80%"),
    Unknown("utilisation", "drive 100 % full", precondition="fill:100%"),
    Unknown("history", "overwritten once at random", precondition="fill:90%,random:1x"),
    Unknown("size mixture", "27 % of 4 KiB", changes=_FEW_SMALL, trade_only=True),
    Unknown("size mixture", "80 % of 4 KiB", changes=_MANY_SMALL, trade_only=True),
    Unknown("alignment", "requests start at multiples of 16 KiB", changes="blockalign=16k"),
    Unknown("footprint", "100 % of the drive", changes="size=100%"),
    Unknown("footprint", "10 % of the drive", changes="size=10%"),
    Unknown("footprint", "1 % of the drive", changes="size=1%"),
    Unknown("skew", "uniform", changes="random_distribution=random"),
    Unknown("skew", "Zipf 1.2", changes="random_distribution=zipf:1.2"),
    Unknown("runs", "half of the requests sequential", changes="percentage_random=50"),
    Unknown("arrivals", "10 requests/s", changes="rate_iops=10"),
    Unknown("arrivals", "200 requests/s", changes="rate_iops=200"),
    Unknown("allocation threshold", "25 %", overrides=("ftl.allocation_threshold=25%",)),
    Unknown("allocation threshold", "35 %", overrides=("ftl.allocation_threshold=35%",)),
    Unknown("over-provisioning", "150 %", overrides=("ssd.over_provisioning=150%",)),
)
"""The first is the default; the others change one thing each."""

EFFECTS = {
    "response_trade": "change of the mean response time, trade (%)",
    "response_synth_a": "change of the mean response time, synth-a (%)",
    "erases_trade": "change of erases, trade, 16 KiB (%)",
    "wa_trade_8k": "change of write amplification, trade, 8 KiB (%)",
    "wa_trade_16k": "change of write amplification, trade, 16 KiB (%)",
    "map_growth": "map bytes of mga over those of page, trade, 16 KiB (%)",
}
"""What is measured at each point, by the name of its claim."""


def _options(scale: Scale, unknown: Unknown, ftl: str, workload: str, page: int) -> RunOptions:
    smaller = replace(scale, requests=scale.requests // unknown.shorter)
    changes = "" if unknown.trade_only and workload != "trade" else unknown.changes
    options = smaller.options(ftl, workload, page, changes, *unknown.overrides)
    return replace(options, precondition=unknown.precondition)


def effects_runs(scale: Scale, unknown: Unknown) -> Iterator[RunOptions]:
    """The runs that `effects` needs."""
    for workload in ("trade", "synth-a"):
        for page in PAGES:
            for ftl in ("page", "mga"):
                yield _options(scale, unknown, ftl, workload, page)


def effects(batch: Batch, scale: Scale, unknown: Unknown) -> dict[str, float | None]:
    """The effects at one point."""
    return effects_of(lambda *run: batch[_options(scale, unknown, *run)])


def effects_of(result: Callable[[str, str, int], Result]) -> dict[str, float | None]:
    """The effects, from the result of a layer, workload and page size in KiB.

    Response times: the larger reduction of the two page sizes ("up to" in the paper).
    """

    def pair(workload: str, page: int) -> tuple[Result, Result]:
        return result("mga", workload, page), result("page", workload, page)

    def response(workload: str) -> float | None:
        found = [change(response_ns(own), response_ns(base)) for own, base in (pair(workload, page) for page in PAGES)]
        return min(each for each in found if each is not None)

    (own_8, base_8), (own_16, base_16) = pair("trade", 8), pair("trade", 16)
    return {
        "response_trade": response("trade"),
        "response_synth_a": response("synth-a"),
        "erases_trade": change(own_16["flash"]["erases"], base_16["flash"]["erases"]),
        "wa_trade_8k": change(own_8["write_amplification"], base_8["write_amplification"]),
        "wa_trade_16k": change(own_16["write_amplification"], base_16["write_amplification"]),
        "map_growth": change(own_16["mapping"]["bytes_peak"], base_16["mapping"]["bytes_peak"]),
    }


Measured = Callable[[str, str, int, str], Result]
"""The result of a layer, workload, page size in KiB and allocation threshold."""


def needed() -> Iterator[tuple[str, str, int, str]]:
    """Layer, workload, page size in KiB and allocation threshold of the runs that `all_effects` needs."""
    for workload in WORKLOADS:
        for page in PAGES:
            yield from ((ftl, workload, page, THRESHOLDS[1]) for ftl in ("page", "sector-log", "mga"))
    yield from (("mga", "trade", 16, threshold) for threshold in THRESHOLDS)


def all_effects(result: Measured) -> dict[str, float | None]:
    """The effects of all claims at one seed.

    Those of `effects_of`; `map_growth`, the largest of all workloads and page sizes; `hybrid_close`, the share (%) of
    workloads and page sizes where the mean response time of sector-log is within `TOLERANCE` of that of mga;
    `merges_at`, subpages that merges move at the highest allocation threshold over those at the lowest; `merges`, the
    most of the three against sector-log (%). The last two are of trade with 16 KiB pages.
    """

    def at(ftl: str, workload: str, page: int) -> Result:
        return result(ftl, workload, page, THRESHOLDS[1])

    def moved(ftl: str, threshold: str) -> float:
        return float(result(ftl, "trade", 16, threshold)["merge"]["moved_subpages"])

    growth, close = [], []
    for workload in WORKLOADS:
        for page in PAGES:
            own = at("mga", workload, page)
            growth.append(change(own["mapping"]["bytes_peak"], at("page", workload, page)["mapping"]["bytes_peak"]))
            ratio = response_ns(at("sector-log", workload, page)) / response_ns(own)
            close.append(abs(math.log(ratio)) <= math.log(1 + TOLERANCE))
    merged = [moved("mga", threshold) for threshold in THRESHOLDS]
    return effects_of(at) | {
        "map_growth": max(each for each in growth if each is not None),
        "hybrid_close": 100 * sum(close) / len(close),
        "merges_at": merged[-1] / merged[0] if merged[0] else None,
        "merges": change(max(merged), moved("sector-log", THRESHOLDS[1])),
    }
