"""The runs behind the reproduction of the SPREAD paper: drives, workloads, and what the paper leaves open.

The paper fixes the drive (16 GB on 4 channels of 2 chips), the times of flash (its Table I and Sec. V-A) and the mixes
of its Table II. It is silent about queue depth, over-provisioning, how full and how fragmented the drive is, and what
its platform adds to a flash command. Each of these is an `Unknown` here: a default, and other values to run instead.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from .. import _core
from ..options import RunOptions
from ..result import Result
from . import sweeps_old as sweeps
from .batch import Batch
from .measures import change, iops

__all__ = [
    "COLLECTED",
    "DEFAULT",
    "EFFECTS",
    "FULL",
    "FULL_SWEEP",
    "LAYERS",
    "MOTIVATION",
    "QUICK",
    "T_READ_US",
    "UNKNOWNS",
    "WORKLOADS",
    "Scale",
    "Unknown",
    "collection_ns",
    "counted_bound",
    "effects",
    "effects_runs",
    "mean",
    "options_of",
    "read_ns",
    "read_sizes",
    "sizes_bound",
    "spec_of",
    "statistics_run",
]

LAYERS = ("page-fgm", "dma-fgm", "spftl")
MOTIVATION = ("kv1", "kv2", "gr1", "su")
WORKLOADS = ("kv", "grp", "prj", "usr", "stg")
COLLECTED = ("usr", "stg")

T_READ_US = (35.0, 45.0, 55.0, 65.0, 75.0, 85.0, 95.0, 99.0)
"""Table I: sensing 1 to 8 code words of 2 KiB."""
T_WORD_US = 2.5
"""Table I: transferring one of them."""
WORD, WORDS = 2048, 8
CHANNELS, CHIPS = 4, 2
T_PROGRAM_US, T_ERASE_US = 660.0, 3500.0

IN_ORDER = "fill:100%"
SHARE = 70
"""Percent of the drive that PRJ, USR and STG use."""
HISTORY = {"su": "fill:100%,random:0.25x", "prj": f"fill:{SHARE}%"} | dict.fromkeys(
    COLLECTED, f"fill:{SHARE}%,random:1x"
)
"""State of the drive before a run, where it is not written whole and in order."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the runs are. The drive shrinks in blocks; channels, chips, pages and blocks stay as they are.

    Attributes:
        blocks: blocks of a chip; the paper has 512.
        requests: of a run.
        seeds: runs of USR that are averaged. Its reads queue behind collections, and whether those of several chips
            fall together is chance: IOPS of single runs differ by a tenth.
        trace_requests: of a real trace.
        repeats: whether the runs of all workloads are averaged.
        first_seed: of those.
    """

    blocks: int
    requests: int
    seeds: int
    trace_requests: int
    repeats: bool = False
    first_seed: int = 1

    def options(
        self, ftl: str, workload: str, changes: str = "", *overrides: str, precondition: str | None = None
    ) -> RunOptions:
        """The run of a workload, with changes to its specification, on a layer."""
        return RunOptions(
            ssd="spread-16g",
            ftl=ftl,
            workload=",".join(part for part in (workload, changes, f"n={self.requests}") if part),
            overrides=(f"ssd.blocks_per_plane={self.blocks}", *overrides),
            precondition=precondition or HISTORY.get(workload, IN_ORDER),
        )

    def repeated(self, options: RunOptions) -> tuple[RunOptions, ...]:
        """The run, as often as it is averaged, with a seed of its own each time."""
        count = self.seeds if self.repeats or options.workload.startswith("usr") else 1
        return tuple(replace(options, seed=self.first_seed + index) for index in range(count))


QUICK = Scale(blocks=48, requests=40_000, seeds=3, trace_requests=5_000)
FULL_SWEEP = Scale(blocks=128, requests=100_000, seeds=4, trace_requests=0)
FULL = Scale(blocks=512, requests=800_000, seeds=3, trace_requests=100_000)


def spec_of(workload: str) -> dict[str, str]:
    """The keys of a workload preset and their values."""
    text = _core.workload_spec(workload)
    if text is None:
        raise KeyError(workload)
    pairs: dict[str, str] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if value:
            pairs[name] = value
            last = name
        else:
            pairs[last] += f",{part}"
    return pairs


def _bytes(text: str) -> int:
    return int(text[:-1]) * 1024 if text.endswith("k") else int(text)


def read_sizes(workload: str) -> dict[int, float]:
    """Sizes in bytes of the reads of a workload preset, and the share of each."""
    spec = spec_of(workload)
    if "bssplit" not in spec:
        return {_bytes(spec["bs"].split(",")[0]): 1.0}
    split = (part.split("/") for part in spec["bssplit"].split(",")[0].split(":"))
    return {_bytes(size): int(share) / 100 for size, share in split}


def _command_us(layer: str, words: int) -> tuple[float, float]:
    """Microseconds that a command for so many words takes its chip, and of those the bus."""
    bus = T_WORD_US * (WORDS if layer == "page-fgm" else words)
    return bus + (T_READ_US[words - 1] if layer == "spftl" else T_READ_US[-1]), bus


def sizes_bound(layer: str, workload: str) -> float:
    """Most reads a second on a drive that was written in order: 4 min(2 / E[tR + tDMA], 1 / E[tDMA]).

    The means are over the sizes of the reads and the places where they may start.
    """
    align = _bytes(spec_of(workload).get("blockalign", "4k"))
    page = WORD * WORDS
    chip = bus = 0.0
    for size, share in read_sizes(workload).items():
        starts = range(0, page, align)
        for start in starts:
            at = start
            while at < start + size:
                end = min(start + size, (at // page + 1) * page)
                words = -(-(end % page or page) // WORD) - at % page // WORD
                times = _command_us(layer, words)
                chip += share * times[0] / len(starts)
                bus += share * times[1] / len(starts)
                at = end
    return 1e6 * CHANNELS * min(CHIPS / chip, 1 / bus)


def counted_bound(result: Result) -> float:
    """Most requests a second if no chip and no bus were ever idle, from the operations that a run counted.

    Sensing times of spread reads are taken from the straight line through the first and the last of Table I, under
    which none of the others lies, so that the bound is one.
    """
    flash, requests = result["flash"], result["requests"]
    reads, us_per_word = flash["page_reads"], (T_READ_US[-1] - T_READ_US[0]) / (WORDS - 1)
    if result["ftl"] == "spftl":
        sensing = reads * (T_READ_US[0] - us_per_word) + flash["bytes_sensed"] / WORD * us_per_word
    else:
        sensing = reads * T_READ_US[-1]
    bus = flash["bytes_transferred"] / WORD * T_WORD_US
    chip = bus + sensing + flash["page_programs"] * T_PROGRAM_US + flash["erases"] * T_ERASE_US
    least_us = max(chip / (CHANNELS * CHIPS), bus / CHANNELS)
    return float(1e6 * (requests["read"] + requests["write"]) / least_us)


@dataclass(frozen=True, slots=True)
class Unknown(sweeps.Unknown):
    """One thing that the paper does not say, at another value than the default.

    Attributes:
        changes: keys of the workloads' specifications.
        overrides: configuration keys.
        share: percent of the drive that USR and STG use.
        overwritten: how many times over it was overwritten at random before.
    """

    changes: str = ""
    overrides: tuple[str, ...] = ()
    share: int = SHARE
    overwritten: str = "1"


DEFAULT = Unknown("default", "32 in flight, 70 % of the drive, overwritten once")
UNKNOWNS = (
    DEFAULT,
    *(Unknown("queue depth", f"{depth} in flight", changes=f"iodepth={depth}") for depth in (1, 8, 16, 128)),
    *(
        Unknown("overhead of a flash command", f"{time} us on the bus", overrides=(f"part.t_command={time}us",))
        for time in (10, 20, 30, 40)
    ),
    *(Unknown("utilisation", f"{share} % of the drive", share=share) for share in (50, 60, 80, 90)),
    *(Unknown("history", f"overwritten {times} times", overwritten=times) for times in ("0.25", "0.5", "2", "4")),
    Unknown("skew", "Zipf 0.9", changes="random_distribution=zipf:0.9"),
    Unknown("skew", "Zipf 1.2", changes="random_distribution=zipf:1.2"),
    Unknown("over-provisioning", "28 %", overrides=("ssd.over_provisioning=28%",)),
    Unknown("over-provisioning", "60 %", overrides=("ssd.over_provisioning=60%",)),
    Unknown("alignment", "reads start at any multiple of 4 KiB", changes="blockalign=4k"),
    Unknown("streams", "one for host and moved data", overrides=("ftl.streams=1",)),
    Unknown("write buffer", "64 KiB", overrides=("buffer.size=64KiB",)),
    Unknown("scheduling", "reads first", overrides=("sim.scheduler=read-first",)),
    Unknown(
        "scheduling", "reads suspend programs", overrides=("sim.scheduler=read-first", "sim.suspend=program-erase")
    ),
    Unknown("cache register", "reads pipeline", overrides=("sim.cache_register=true",)),
    *(Unknown("host link", f"{rate} MB/s", overrides=(f"host.link_rate={rate}MB/s",)) for rate in (450, 600, 1200)),
    Unknown("two at once", "20 us of overhead, 90 % of the drive", overrides=("part.t_command=20us",), share=90),
    Unknown("two at once", "link of 600 MB/s, 90 % of the drive", overrides=("host.link_rate=600MB/s",), share=90),
)
"""The first is the default; the others change one thing each, but for the last two."""

EFFECTS = {
    "iops_page": "IOPS, kv, spftl over page-fgm (%)",
    "iops_dma": "IOPS, kv, spftl over dma-fgm (%)",
    "latency_page": "mean read latency, kv, spftl over page-fgm (%)",
    "latency_dma": "mean read latency, kv, spftl over dma-fgm (%)",
    "dma_page": "IOPS, kv, dma-fgm over page-fgm (%)",
    "iops_usr": "IOPS, usr, spftl over page-fgm (%)",
    "iops_stg": "IOPS, stg, spftl over page-fgm (%)",
    "gc_usr": "mean time of a collection, usr, spftl over page-fgm (%)",
    "gc_stg": "mean time of a collection, stg, spftl over page-fgm (%)",
    "su": "read bandwidth, su, page-fgm over ideal (%)",
}
"""What is measured at each point, by the name of its claim."""


def options_of(scale: Scale, unknown: Unknown, ftl: str, workload: str, precondition: str | None = None) -> RunOptions:
    """The run of a workload on a layer at a point of what the paper does not say."""
    changes = unknown.changes
    if precondition is not None:
        # Ideal: reads of whole pages, wherever other reads start.
        changes = "" if "blockalign" in changes else changes
    if workload in COLLECTED and unknown.share != SHARE:
        changes = ",".join(part for part in (changes, f"size={unknown.share}%") if part)
    if workload in COLLECTED:
        precondition = f"fill:{unknown.share}%,random:{unknown.overwritten}x"
    return scale.options(ftl, workload, changes, *unknown.overrides, precondition=precondition)


def effects_runs(scale: Scale, unknown: Unknown) -> Iterator[RunOptions]:
    """The runs that `effects` needs."""
    for ftl in LAYERS:
        yield from scale.repeated(options_of(scale, unknown, ftl, "kv"))
    for workload in COLLECTED:
        for ftl in ("page-fgm", "spftl"):
            yield from scale.repeated(options_of(scale, unknown, ftl, workload))
    for precondition in (None, IN_ORDER):
        yield from scale.repeated(options_of(scale, unknown, "page-fgm", "su", precondition))


def read_ns(result: Result) -> float:
    """Mean latency of reads in nanoseconds."""
    return float(result["latency_ns"]["read"]["mean"])


def collection_ns(result: Result) -> float | None:
    """Mean time of a collection in nanoseconds; None where none ran."""
    time = result["gc"]["mean_ns"]
    return None if time is None else float(time)


def mean(results: Iterable[Result], measure: Callable[[Result], float | None]) -> float | None:
    """The mean of a measure over runs; None where no run has it."""
    found = [value for value in map(measure, results) if value is not None]
    return sum(found) / len(found) if found else None


def effects(batch: Batch, scale: Scale, unknown: Unknown) -> dict[str, float | None]:
    """The effects at one point."""

    def of(
        ftl: str, workload: str, measure: Callable[[Result], float | None], state: str | None = None
    ) -> float | None:
        runs = scale.repeated(options_of(scale, unknown, ftl, workload, state))
        return mean((batch[run] for run in runs), measure)

    def against(workload: str, measure: Callable[[Result], float | None], ftl: str, base: str) -> float | None:
        return change(of(ftl, workload, measure), of(base, workload, measure))

    page, dma, own = LAYERS
    return {
        "iops_page": against("kv", iops, own, page),
        "iops_dma": against("kv", iops, own, dma),
        "latency_page": against("kv", read_ns, own, page),
        "latency_dma": against("kv", read_ns, own, dma),
        "dma_page": against("kv", iops, dma, page),
        "iops_usr": against("usr", iops, own, page),
        "iops_stg": against("stg", iops, own, page),
        "gc_usr": against("usr", collection_ns, own, page),
        "gc_stg": against("stg", collection_ns, own, page),
        "su": change(of(page, "su", iops), of(page, "su", iops, IN_ORDER)),
    }


def statistics_run(workload: str) -> RunOptions:
    """The run that counts what a workload preset generates."""
    return replace(FULL.options("spftl", workload, precondition="none"), workload=workload, fidelity="count")
