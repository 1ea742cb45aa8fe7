"""The runs behind the reproduction of the LLH paper: workloads, drives, and what the paper leaves open.

The paper fixes 16 banks, pages of 8 and 32 KiB, blocks of 128 of them, drives of 16, 32 and 64 GB, 7 % and 28 % of
over-provisioning and initial thresholds of OP/2 and OP/4. Its MSR and FIU traces are not public; the workload presets
have the statistics of its Table 6 and are synthetic, the Zipf ones are the paper's own. Everything happens within a
bank, and pages are striped over the banks, so that fewer banks with the paper's blocks, and as many fewer requests, do
in a bank what the whole drive does.
"""

from dataclasses import dataclass, replace

from ..options import RunOptions
from ..result import Result
from . import sweeps_old as sweeps

__all__ = [
    "BEYOND",
    "FULL",
    "OVER_PROVISIONING",
    "QUICK",
    "SEEDS",
    "THRESHOLDS",
    "TIMED",
    "UNKNOWNS",
    "WORKLOADS",
    "Scale",
    "Unknown",
    "Variant",
    "Workload",
    "erases",
]


@dataclass(frozen=True, slots=True)
class Workload:
    """A row of Table 6.

    Attributes:
        group: `msr`, `fiu` or `zipf`, each with a classifier of its own (Sec. 5.3).
        requests: in millions.
        drive: of 16, 32 or 64 GB.
        rate: requests a second.
        writes: share of requests that write.
        hot: share of the pages written that are hot.
        gib: total writes.
    """

    group: str
    requests: float
    drive: int
    rate: float
    writes: float
    hot: float
    gib: float


_TABLE_6 = {
    "src1_2": Workload("msr", 2, 16, 3.15, 0.75, 0.22, 45),
    "stg_0": Workload("msr", 2, 16, 3.36, 0.85, 0.85, 16),
    "hm_0": Workload("msr", 4, 32, 6.6, 0.64, 0.7, 23),
    "rsrch_0": Workload("msr", 1.5, 32, 2.37, 0.91, 0.95, 11),
    "src2_0": Workload("msr", 1.5, 32, 2.58, 0.89, 0.91, 10),
    "ts_0": Workload("msr", 2, 32, 2.98, 0.82, 0.94, 12),
    "usr_0": Workload("msr", 2.5, 32, 3.7, 0.6, 0.86, 14),
    "wdev_0": Workload("msr", 1, 32, 1.89, 0.8, 0.85, 7),
    "prxy_0": Workload("msr", 12.5, 64, 20.7, 0.97, 0.67, 83),
    "proj_0": Workload("msr", 4, 64, 6.98, 0.88, 0.14, 145),
    "web_0": Workload("msr", 2, 64, 3.36, 0.7, 0.87, 17),
    "online": Workload("fiu", 5.5, 16, 3.14, 0.74, 0.31, 16),
    "webresearch": Workload("fiu", 3, 16, 1.8, 1, 0.41, 13),
    "webusers": Workload("fiu", 8, 16, 4.26, 0.9, 0.32, 27),
    "webmail": Workload("fiu", 8, 32, 4.3, 0.82, 0.3, 24),
    "web-online": Workload("fiu", 14, 32, 7.88, 0.78, 0.31, 43),
    "zipf-0.9": Workload("zipf", 12.5, 16, 200, 1, 0.5, 48),
    "zipf-0.95": Workload("zipf", 12.5, 16, 200, 1, 0.5, 48),
    "zipf-1": Workload("zipf", 12.5, 16, 200, 1, 0.5, 48),
}

_GROUPS = ("msr", "fiu", "zipf")
WORKLOADS = dict(sorted(_TABLE_6.items(), key=lambda item: (_GROUPS.index(item[1].group), item[1].gib / item[1].drive)))
"""By source, and within it by the data written over the size of the drive, as in Fig. 7 (a)."""

OVER_PROVISIONING = (28, 7)
THRESHOLDS = ("OP/2", "OP/4")
SEEDS = (1, 2, 3)
"""Of the runs of Figure 7 and of the claims on erases."""
TIMED = ("wdev_0", "hm_0", "stg_0", "src1_2")
"""Representative MSR traces: the paper does not say which it took, but for src1_2."""

# What the paper does not say of the threshold, its authors' published FTL does (the paper's reference 1), and so do the
# drives: it moves after seven victims in a row that point the same way, not below five blocks; and a partially-used
# block without a valid page is reused at once, however few there are. Smaller banks have a smaller floor.
_FLOOR = 5

# Requests of 64 KiB, so that a layer that classifies writes by size takes the fill as cold.
PRECONDITION = "fill:100%,bs:64KiB"


@dataclass(frozen=True, slots=True)
class Variant:
    """A layer with its settings.

    Attributes:
        ftl: `llh` or its baseline `hotcold`.
        page: KiB of a page: 8, or 32 for the paper's -32.
        over_provisioning: percent.
        threshold: initial threshold of partially-used blocks.
        overrides: further configuration keys.
    """

    ftl: str
    page: int = 8
    over_provisioning: int = 28
    threshold: str = "OP/2"
    overrides: tuple[str, ...] = ()

    @property
    def baseline(self) -> "Variant":
        """The layer without reuse on the same drive."""
        return Variant("hotcold", self.page, self.over_provisioning)


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the runs are. Requests shrink with the drive.

    Attributes:
        banks: of the paper's 16, in runs that count.
        smaller: by what the blocks of a bank are divided.
        timed_smaller: the same for the timed runs, which have all banks.
        trace_requests: of a real trace.
    """

    banks: int
    smaller: int
    timed_smaller: int
    trace_requests: int

    def options(
        self,
        name: str,
        variant: Variant,
        changes: str = "",
        precondition: str = PRECONDITION,
        *,
        replays: int = 1,
        seed: int = SEEDS[0],
    ) -> RunOptions:
        """The run that counts the operations of a workload, which has been replayed so often before."""
        share = self.smaller * 16 // self.banks
        options, count = self._run(name, variant, changes, self.smaller, share, _banks(self.banks), 1 + replays)
        warmup = str(replays * count) if replays else None
        return replace(options, fidelity="count", precondition=precondition, warmup=warmup, seed=seed)

    def timed(self, name: str, variant: Variant, changes: str = "", precondition: str = PRECONDITION) -> RunOptions:
        """The run that measures response times: sped up ten times, the last 12 hours of the second replay."""
        week_hours = 168
        options, count = self._run(name, variant, changes, self.timed_smaller, self.timed_smaller, (), 2)
        return replace(
            options,
            overrides=(*options.overrides, "host.speedup=10"),
            precondition=precondition,
            warmup=str(2 * count - count * 12 // week_hours),
        )

    def _run(
        self, name: str, variant: Variant, changes: str, smaller: int, share: int, banks: tuple[str, ...], replays: int
    ) -> tuple[RunOptions, int]:
        """A run of so many replays, and the requests of one."""
        workload = WORKLOADS[name]
        drive = f"llh{'32' if variant.page == 32 else ''}-{workload.drive}g"
        blocks = workload.drive * 2**30 // 16 // (variant.page * 1024 * 128) // smaller
        count = int(workload.requests * 1e6) // share
        spec = ",".join(part for part in (name, changes, f"n={replays * count}") if part)
        floor = {"ftl.threshold_floor": str(max(1, round(_FLOOR / smaller)))} if smaller > 1 else {}
        coin = {"ftl.wom_failure": "0.25%"}  # paper, Sec. 4
        keys = {"ftl.threshold_pu": variant.threshold} | coin | floor if variant.ftl == "llh" else {}
        keys |= dict(override.split("=", 1) for override in variant.overrides)
        options = RunOptions(
            ssd=drive,
            ftl=variant.ftl,
            workload=spec,
            overrides=(
                f"ssd.over_provisioning={variant.over_provisioning}%",
                f"ssd.blocks_per_plane={blocks}",
                *banks,
                *classifier(name),
                *(f"{key}={value}" for key, value in keys.items()),
            ),
        )
        return options, count


def _banks(banks: int) -> tuple[str, ...]:
    if banks == 16:
        return ()
    channels = min(banks, 4)
    return (f"ssd.channels={channels}", f"ssd.chips_per_channel={banks // channels}")


def classifier(name: str) -> tuple[str, ...]:
    """The keys of the classifier of a workload's source (Sec. 5.3)."""
    match WORKLOADS[name].group:
        case "msr":
            return ("ftl.classifier=size",)
        case "fiu":
            return ("ftl.classifier=sequence",)
        case _:
            return ("ftl.classifier=address", f"ftl.hot_below=zipf:{name.removeprefix('zipf-')}")


QUICK = Scale(banks=1, smaller=4, timed_smaller=4, trace_requests=20_000)
FULL = Scale(banks=1, smaller=1, timed_smaller=1, trace_requests=1_000_000)


def erases(result: Result) -> int:
    """Blocks erased in the measured part."""
    return int(result["flash"]["erases"])


@dataclass(frozen=True, slots=True)
class Unknown(sweeps.Unknown):
    """One thing that the paper does not say, at another value than the default.

    Attributes:
        changes: keys of the workload, by its group.
        overrides: configuration keys of `llh`.
        precondition: state of the drive.
    """

    changes: tuple[tuple[str, str], ...] = ()
    overrides: tuple[str, ...] = ()
    precondition: str = PRECONDITION


_QUICK_THRESHOLD = ("ftl.threshold_steps=1", "ftl.threshold_floor=0")
UNKNOWNS = (
    Unknown("default", "full drive, hot writes by Zipf 0.9 over 5 % (MSR), 10 % (FIU) or all of it (Zipf)"),
    Unknown("history", "overwritten once at random", precondition="fill:100%,random:1x,bs:64KiB"),
    Unknown("history", "half full", precondition="fill:50%,bs:64KiB"),
    Unknown("history", "a new drive", precondition="none"),
    Unknown("footprint", "a fifth of it", (("msr", "size=11%"), ("fiu", "size=2%"))),
    Unknown("footprint", "five times as large", (("msr", "size=35%"), ("fiu", "size=50%"))),
    Unknown("skew", "uniform", (("msr", "random_distribution=random"), ("fiu", "random_distribution=random"))),
    Unknown("skew", "Zipf 1.2", (("msr", "random_distribution=zipf:1.2"), ("fiu", "random_distribution=zipf:1.2"))),
    Unknown("window of the threshold", "1", overrides=("ftl.threshold_window=1",)),
    Unknown("window of the threshold", "20", overrides=("ftl.threshold_window=20",)),
    Unknown("threshold", "moves at each collection, as far as none", overrides=_QUICK_THRESHOLD),
    Unknown("reuse", "blocks without a valid page wait, too", overrides=("ftl.reuse_empty=false",)),
    Unknown("reuse", "both, as the text alone says", overrides=(*_QUICK_THRESHOLD, "ftl.reuse_empty=false")),
    Unknown("threshold", "never moves", overrides=("ftl.threshold_window=0",)),
)
"""The first is the default; the others change one thing each."""

BEYOND = {
    "as the paper": Variant("llh"),
    "code that never fails": Variant("llh", overrides=("ftl.wom_failure=0%",)),
    "code that fails once in ten": Variant("llh", overrides=("ftl.wom_failure=10%",)),
    "cold blocks reused, too": Variant("llh", overrides=("ftl.reuse_cold=true",)),
    "ideal chip that allows LHL": Variant("llh", overrides=("part.order=low-high-low",)),
    "ideal chip, cold blocks, too": Variant("llh", overrides=("part.order=low-high-low", "ftl.reuse_cold=true")),
    "mga, low pages first": Variant("mga", overrides=("ftl.low_pages_first=true",)),
}
"""What no chip, code or layer of the paper allows."""
