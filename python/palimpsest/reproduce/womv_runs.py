"""The runs behind the reproduction of the WOM-v paper: codes, workloads, the drive, and what its abstract leaves open.

Of the paper only the abstract was at hand. It names no drive and no workload but "real world" ones, so all here is
assumed; what could matter is an `Unknown`: a default, and other values to run in its place.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from ..options import RunOptions
from ..result import Result
from . import sweeps_old as sweeps
from .batch import Batch
from .measures import mean

__all__ = [
    "ABSTRACT",
    "CODES",
    "DEFAULT",
    "FULL",
    "QUICK",
    "SEEDS",
    "UNKNOWNS",
    "WORKLOADS",
    "Code",
    "Scale",
    "Unknown",
    "erases_per_byte",
    "lazy_writes",
    "ratios",
    "sweep_runs",
]


@dataclass(frozen=True, slots=True)
class Code:
    """A code WOM-v(k, 4).

    Attributes:
        stored: k, bits that a cell stores.
        generations: t, writes between two erases.
    """

    stored: int
    generations: int

    @property
    def setting(self) -> str:
        """Its value of `ftl.womv_code`."""
        return f"{self.stored}/4"

    @property
    def label(self) -> str:
        """Its name in figures."""
        return f"WOM-v({self.stored}, 4)"

    @property
    def bound(self) -> float:
        """Erases over those of the uncoded drive with as much write amplification: N / (k t)."""
        return float(Fraction(4, self.stored * self.generations))


CODES = (Code(3, 2), Code(2, 5), Code(1, 15))
ABSTRACT = (4.4, 11.1)
"""How many times fewer erases the abstract states for real workloads, with both of its optimizations."""
SEEDS = (1, 2, 3)
WORKLOADS = {
    "uniform": "rw=randwrite,bs=4k",
    "Zipf 0.95": "rw=randwrite,bs=4k,random_distribution=zipf:0.95",
    "sequential": "rw=write,bs=64k",
}


_LIFE = math.lcm(768, *(192 * code.stored * code.generations for code in CODES))
"""Subpages after which a block of 48 word lines begins a life under every code at once, and without one."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the runs are.

    Attributes:
        blocks: blocks of the one plane; those of the preset womv-16g, an eighth of the part's.
        lives: how many lives of all blocks under every code a counted run measures, after half a one.
        timed_requests: of a timed run.
        trace_requests: of a real trace.
    """

    blocks: int
    lives: int
    timed_requests: int
    trace_requests: int

    def options(
        self, code: Code | None, workload: str, *overrides: str, seed: int = SEEDS[0], fidelity: str = "count"
    ) -> RunOptions:
        """A run of a workload under a code, or without one."""
        layer = ("ftl.name=subpage",) if code is None else (f"ftl.womv_code={code.setting}",)
        drive = ("ssd.channels=1", "ssd.planes_per_die=1", f"ssd.blocks_per_plane={self.blocks}")
        return RunOptions(
            ssd="womv-16g",
            workload=workload,
            overrides=(*drive, *layer, *overrides),
            precondition="fill:100%",
            fidelity=fidelity,
            seed=seed,
        )

    def counted(self, code: Code | None, workload: str, *overrides: str, seed: int = SEEDS[0]) -> RunOptions:
        """A counted run. All write as many bytes: where none move, each block is erased a whole number of times."""
        spec = WORKLOADS[workload]
        units = self.lives * self.blocks * _LIFE // (16 if "bs=64k" in spec else 1)
        run = self.options(code, f"{spec},n={units + units // 2}", *overrides, seed=seed)
        return replace(run, warmup=str(units // 2))

    def timed(self, code: Code | None, seed: int) -> RunOptions:
        """A timed run: reads and writes of 4 KiB at random, at a rate that leaves the dies idle half of the time."""
        spec = f"rw=randrw,rwmixread=70,bs=4k,rate_iops=250,open_loop,n={self.timed_requests}"
        return replace(self.options(code, spec, seed=seed, fidelity="timed"), precondition="fill:100%,random:1x")

    def trace(self, code: Code | None, path: str) -> RunOptions:
        """A real trace, folded into the drive."""
        run = self.options(code, path, "host.fold=true")
        return replace(run, requests=self.trace_requests, skip_bad=True, volumes="overlaid")


QUICK = Scale(blocks=48, lives=1, timed_requests=20_000, trace_requests=300_000)
FULL = Scale(blocks=342, lives=2, timed_requests=100_000, trace_requests=5_000_000)


@dataclass(frozen=True, slots=True)
class Unknown(sweeps.Unknown):
    """One thing that the abstract does not say, at another value than the default.

    Attributes:
        overrides: configuration keys, of the coded drive and of the other.
        same_data: whether both drives store the same data instead of having as much spare space: the uncoded drive has
            the rest of its flash as spare space.
    """

    overrides: tuple[str, ...] = ()
    same_data: bool = False


DEFAULT = Unknown("default", "28 % spare, greedy, moved data apart")
UNKNOWNS = (
    DEFAULT,
    Unknown("over-provisioning", "7 %", ("ssd.over_provisioning=7%",)),
    Unknown("over-provisioning", "14 %", ("ssd.over_provisioning=14%",)),
    Unknown("over-provisioning", "50 %", ("ssd.over_provisioning=50%",)),
    Unknown("victim", "the oldest", ("ftl.victim=fifo",)),
    Unknown("victim", "cost-benefit", ("ftl.victim=cost-benefit",)),
    Unknown("streams", "moved data with the host's", ("ftl.streams=1",)),
    Unknown("comparison", "the same data on the same flash", same_data=True),
)


def _pair(scale: Scale, unknown: Unknown, code: Code, seed: int) -> tuple[RunOptions, RunOptions]:
    """The uncoded and the coded run of an unknown."""
    base = unknown.overrides
    if unknown.same_data:
        # The coded drive has 28 % of spare space on k / 4 of the flash.
        base = (*base, f"ssd.over_provisioning={100 * (1.28 * 4 / code.stored - 1):.4f}%")
    return (
        scale.counted(None, "uniform", *base, seed=seed),
        scale.counted(code, "uniform", *unknown.overrides, seed=seed),
    )


def sweep_runs(scale: Scale) -> Iterator[RunOptions]:
    """The runs of all unknowns, of one seed."""
    for unknown in UNKNOWNS:
        for code in CODES:
            yield from _pair(scale, unknown, code, SEEDS[0])


def erases_per_byte(result: Result) -> float:
    """Erases for each byte that the host wrote."""
    return float(result["flash"]["erases"]) / float(result["host"]["bytes_written"])


def ratios(batch: Batch, scale: Scale, unknown: Unknown) -> dict[str, float | None]:
    """Erases over those of the uncoded drive, for each code by its setting."""
    found: dict[str, float | None] = {}
    for code in CODES:
        base, coded = (erases_per_byte(batch[run]) for run in _pair(scale, unknown, code, SEEDS[0]))
        found[code.setting] = mean([coded / base]) if base else None
    return found


def lazy_writes(code: Code, share: float) -> int:
    """Writes of random data until more than `share` of the cells would have to pass the highest level.

    A cell that means its value already is left as it is, and rises to the next level that means the new one otherwise:
    by 1 to 2^k - 1 levels, each as likely as staying.
    """
    values, top = 2**code.stored, 15
    # At first a cell has level 0, and any of 0 to 2^k - 1 after the first write.
    levels = [1.0] + [0.0] * top
    for writes in range(1, 200):
        after = [0.0] * (top + 1)
        for level, chance in enumerate(levels):
            for step in range(values):
                if level + step <= top:
                    after[level + step] += chance / values
        levels = after
        if 1 - math.fsum(levels) > share:
            return writes - 1
    raise AssertionError("cells have fifteen levels")
