"""The setting that the MGA paper's own numbers imply, and how far each unknown may move before a claim breaks.

How it was found. The paper's write amplifications fix the alignment: -7.42 % is 0.47 more subpages a write with pages
of 8 KiB, and -30.83 % is 2.63 with 16 KiB, where starts at any multiple of 4 KiB give 1.0 and 3.0. So half of the
writes are of odd sizes, and requests start at multiples of 8 KiB, as database pages do. Its bound on map bytes, 16.5 %,
needs a footprint of a few percent of the drive. Times as short as its own need reads that transfer what is asked, but
for the page map. Reads that count for logical pages, as it says, would merge every page that is written again, unless
counts age within some hundred requests. All of it was searched jointly; the paper states none of it, and nothing here
is more than consistent with its numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..options import RunOptions
from . import mga_runs
from .batch import Batch
from .mga_runs import SEEDS, THRESHOLDS, Scale

__all__ = ["ABOUT", "BY_SEED", "IMPLIED", "NEIGHBOURS", "Setting", "effects", "runs"]

_READS = "4k/60:8k/9:16k/13:32k/12:64k/6"
_WRITES = "4k/47:8k/18:16k/10:32k/8:64k/9:128k/8"


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of everything that the paper does not say.

    Attributes:
        what: which unknown is not as implied.
        value: its value, in words.
        footprint: share of the drive that requests go to.
        align: where requests of `trade` start.
        fill: share of the drive that is written before the run.
        rate: requests a second.
        threshold: allocation threshold.
        read_count: whose reads are counted.
        aging: requests after which read counts halve; 0: never.
        read: what a read transfers, of all layers but the page map.
        log: share of the drive that sector-log has for its log.
        length: how many times the requests of the assumed runs. Collection erases a fifth of the drive at a time: with
            few rounds in a run, erases differ by whole rounds.
        seed: of the run.
    """

    what: str = "implied"
    value: str = "as found"
    footprint: str = "3.7%"
    align: str = "8k"
    fill: str = "90%"
    rate: int = 50
    threshold: str = THRESHOLDS[1]
    read_count: str = "page"
    aging: int = 100
    read: str = "dma"
    log: str = "1%"
    length: float = 1.75
    seed: int = 1

    def options(self, scale: Scale, ftl: str, workload: str, page: int, threshold: str) -> RunOptions:
        """A run of it; the allocation threshold of the setting replaces the second of `THRESHOLDS`."""
        changes = f"size={self.footprint},rate_iops={self.rate}"
        if workload == "trade":
            changes += f",blockalign={self.align},bssplit={_READS},{_WRITES}"
        overrides = [] if ftl == "page" else [f"ftl.read={self.read}"]
        if ftl == "mga":
            own = self.threshold if threshold == THRESHOLDS[1] else threshold
            overrides.append(f"ftl.allocation_threshold={own}")
            overrides += [f"ftl.read_count={self.read_count}", f"ftl.read_count_aging={self.aging}"]
        if ftl == "sector-log":
            overrides.append(f"ftl.log_fraction={self.log}")
        longer = replace(scale, requests=int(self.length * scale.requests))
        made = longer.options(ftl, workload, page, changes, *overrides)
        return replace(made, precondition=f"fill:{self.fill}", seed=self.seed)


IMPLIED = Setting()
BY_SEED = tuple(replace(IMPLIED, seed=seed) for seed in SEEDS)
"""The implied setting, once for each seed."""
NEIGHBOURS = (
    IMPLIED,
    *(Setting("footprint", each, footprint=each) for each in ("1%", "2%", "3.9%", "6%", "10%")),
    *(Setting("start of requests", f"multiples of {each}", align=each) for each in ("4k", "16k")),
    *(Setting("utilisation", f"{each} full", fill=each) for each in ("70%", "80%", "100%")),
    *(Setting("arrivals", f"{each} requests/s", rate=each) for each in (10, 200, 500)),
    *(Setting("allocation threshold", each, threshold=each) for each in ("25%", "35%")),
    *(Setting("aging of read counts", f"every {each} requests", aging=each) for each in (50, 200, 500, 1000)),
    Setting("aging of read counts", "never", aging=0),
    Setting("read counts", "of pages with a subpage map only, never aged", read_count="entry", aging=0),
    Setting("reads", "transfer whole pages", read="page"),
    *(Setting("log of sector-log", each, log=each) for each in ("2%", "5%")),
    *(Setting("length", f"{each:g} times the requests", length=each) for each in (1.0, 1.25, 1.5, 2.0, 3.0, 6.0)),
)
"""The implied setting, and what is next to it: one thing changed each."""

ABOUT = (
    "Implied: the setting that the paper's own numbers imply. Footprint of 3.7 % of the drive; requests of trade start "
    "at multiples of 8 KiB, and its writes are 4k/47:8k/18:16k/10:32k/8:64k/9:128k/8; reads transfer what is asked "
    "(ftl.read=dma) but under the page map; read counts of logical pages halve every 100 requests; a log of 1 % for "
    "sector-log; 1.75 times as many requests as the assumed runs, as erases come in rounds of a fifth of the drive (in "
    "longer runs their change tends to that of write amplification). Found by a joint search: it is consistent with "
    "the paper, which states none of it. Means of three seeds. The figure 'implied' shows how far each may move."
)


def runs(scale: Scale, setting: Setting) -> Iterator[RunOptions]:
    """The runs that `effects` needs."""
    return (setting.options(scale, *run) for run in mga_runs.needed())


def effects(batch: Batch, scale: Scale, setting: Setting) -> dict[str, float | None]:
    """The effects of all claims at a setting."""
    return mga_runs.all_effects(lambda *run: batch[setting.options(scale, *run)])
