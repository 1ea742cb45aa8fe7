"""The setting that the co-design paper's own numbers imply, and how far each unknown may move before a claim breaks.

How it was found. A scheme that removes no work can gain at most the share of time in which channels are idle; with
pages in turn that is 1 to 10 % here, and the paper gains 7 to 24 %. So its round robin is by address, page n of the
disk on channel n mod 8, as its Fig. 1 and the static allocations that it cites have it, and its requests load channels
unevenly. Requests that start at multiples of 8 or 16 KiB do: small ones hit every second or fourth channel. Its schemes
add up in `hybrid`, so each departs from the same static allocation for a reason of its own, and `depth` gains on all
workloads only if all have some requests of more than 16 pages, and planes share commands for their pages alone. Sizes,
starts, files and hot pages were then searched for each workload, at the paper's read ratio and mean request. They are
fitted: eight numbers of the paper against some twenty choices, each within what a server could do. Nothing here is more
than consistent with the paper.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import polars as pl

from ..options import RunOptions
from . import codesign_runs, figures
from .batch import Batch
from .codesign_runs import OWN, SCHEMES, WORKLOADS, Scale
from .figures import Figure
from .measures import change, iops, response_ns

__all__ = [
    "ABOUT",
    "BASE",
    "IMPLIED",
    "NEIGHBOURS",
    "SCALE",
    "SEEDS",
    "SWEEP",
    "Gains",
    "Setting",
    "gains",
    "gains_figure",
    "metadata_percent",
    "runs",
]

SCALE = Scale(blocks=512, requests=160_000, trace_requests=0, everything=True)
"""Of the implied setting, in quick runs too: with half the space the file system would collect."""
SWEEP = Scale(blocks=256, requests=80_000, trace_requests=0, everything=True)
"""Of what is next to it."""
BASE = "static"
"""The paper's round robin, by address."""
_COMPARED = (BASE, *SCHEMES[1:], OWN)


@dataclass(frozen=True, slots=True)
class _Requests:
    """What is fitted of a workload: sizes in KiB with their percent, starts, sizes of files, hot pages."""

    sizes: str
    starts: str
    files: str
    hot: str = "random"


_FITTED = {
    "livemaps": _Requests("8k/12:16k/12:24k/18:72k/58", "16k", "4m"),
    "exchange": _Requests("8k/52:16k/35.5:72k/10:128k/2.5", "16k", "64k/7:4m/93"),
    "development": _Requests("8k/67:12k/20:128k/13", "16k", "1m", "hotblocks:64/8.5"),
    "msnstorage": _Requests("4k/57:8k/32:16k/4:24k/4.4:128k/2.6", "8k", "4k/21:16k/74:1m/5", "hotblocks:32/20"),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of everything that the paper does not say.

    Attributes:
        what: which unknown is not as implied.
        value: its value, in words.
        starts: requests start at multiples of this; None: as fitted for each workload.
        is_skewed: whether some pages of development and msnstorage are hot.
        keeps_files: whether files have the sizes that were fitted; else those of the presets.
        in_flight: requests at a time.
        overrides: configuration keys that differ.
        seed: of the run.
    """

    what: str = "implied"
    value: str = "as found"
    starts: str | None = None
    is_skewed: bool = True
    keeps_files: bool = True
    in_flight: int = 16
    overrides: dict[str, str] = field(default_factory=dict, hash=False)
    seed: int = 1

    def options(self, scale: Scale, scheme: str, workload: str) -> RunOptions:
        """A run of it, on a drive that collects nothing."""
        fitted = _FITTED[workload]
        changes = [f"bssplit={fitted.sizes}", f"blockalign={self.starts or fitted.starts}", f"iodepth={self.in_flight}"]
        if self.keeps_files:
            changes.append(f"filesize={fitted.files}")
        if self.is_skewed:
            changes.append(f"random_distribution={fitted.hot}")
        keys = [f"{key}={value}" for key, value in (_KEYS | self.overrides).items()]
        return scale.options("codesign", workload, ",".join(changes), f"fs.scheme={scheme}", *keys, seed=self.seed)


_KEYS = {
    "ssd.dies_per_chip": "1",
    "sim.cache_register": "false",
    "sim.scheduler": "fifo",
    "sim.multi_plane": "group",
    "fs.turn": "address",
    "fs.depth_pages": "apart",
    "fs.dispatch_overhead": "0us",
}
IMPLIED = Setting()
SEEDS = tuple(replace(IMPLIED, seed=seed) for seed in codesign_runs.SEEDS)
"""The implied setting, once for each seed."""
NEIGHBOURS = (
    IMPLIED,
    *(Setting("start of requests", f"multiples of {each}", starts=each) for each in ("4k", "8k", "16k", "32k")),
    Setting("hot pages", "none", is_skewed=False),
    Setting("files", "as in the presets", keeps_files=False),
    *(Setting("queue depth", f"{each} in flight", in_flight=each) for each in (4, 8, 12, 24, 32)),
    Setting("turns of the schemes", "in order of arrival", overrides={"fs.turn": "arrival"}),
    Setting("plane commands", "none", overrides={"sim.multi_plane": "off"}),
    Setting("plane commands", "whenever planes wait", overrides={"sim.multi_plane": "waiting"}),
    Setting("deep writes", "consecutive pages to a channel", overrides={"fs.depth_pages": "consecutive"}),
    *(
        Setting("DRAM exchange", f"{each} us", overrides={"fs.dispatch_overhead": f"{each}us"})
        for each in ("1", "3", "10")
    ),
    Setting("dies", "2 a channel", overrides={"ssd.dies_per_chip": "2"}),
    Setting("cache register", "on", overrides={"sim.cache_register": "true"}),
    Setting("scheduling", "reads first", overrides={"sim.scheduler": "read-first"}),
)
"""The implied setting, and what is next to it: one thing changed each."""

_WORKLOADS = "; ".join(
    f"{name}: requests of {each.sizes} from multiples of {each.starts}, files of {each.files}"
    + (f", {each.hot}" if each.hot != "random" else "")
    for name, each in _FITTED.items()
)
ABOUT = (
    "Implied: the setting that the paper's own numbers imply. Round robin by address, page n of the disk on channel n "
    "mod 8 (fs.scheme=static); the schemes depart from it (fs.turn=address); planes share commands only where a "
    "request of more than 16 pages sends several to a channel, reads too (sim.multi_plane=group, "
    "fs.depth_pages=apart); one die of two planes a channel, no cache register, fifo, 16 in flight, DRAM exchanges "
    f"that take no time, a drive of {SCALE.blocks} blocks a plane, so that nothing is collected, {SCALE.requests:,} "
    f"requests, in --quick too. {_WORKLOADS}. These are fitted, by a joint search at the paper's read ratios and mean "
    "requests: consistent with the paper, which states none of them. Means of three seeds. The figure 'implied' shows "
    "how far each unknown may move."
)

Gains = dict[str, dict[str, tuple[float, float]]]
"""Changes of mean response time and of throughput over `BASE` in percent, by scheme and workload."""


def runs(scale: Scale, setting: Setting) -> Iterator[RunOptions]:
    """The runs that `gains` needs."""
    yield from (setting.options(scale, scheme, workload) for workload in WORKLOADS for scheme in _COMPARED)


def gains(batch: Batch, scale: Scale, settings: tuple[Setting, ...]) -> Gains:
    """The gains of each scheme, means over settings that differ in the seed."""
    found: Gains = {scheme: {} for scheme in _COMPARED[1:]}
    for workload in WORKLOADS:
        for scheme, own in found.items():
            pairs = [
                tuple(batch[setting.options(scale, each, workload)] for each in (scheme, BASE)) for setting in settings
            ]
            responses = [change(response_ns(one), response_ns(base)) or 0.0 for one, base in pairs]
            rates = [change(iops(one), iops(base)) or 0.0 for one, base in pairs]
            own[workload] = (sum(responses) / len(pairs), sum(rates) / len(pairs))
    return found


def metadata_percent(batch: Batch, scale: Scale, scheme: str) -> float:
    """Pages of metadata among all programmed, the largest of four workloads."""
    shares: list[float] = []
    for workload in WORKLOADS:
        causes = batch[IMPLIED.options(scale, scheme, workload)]["flash"]["by_cause"]
        shares.append(100 * causes["metadata"]["programs"] / sum(each["programs"] for each in causes.values()))
    return max(shares)


def gains_figure(batch: Batch, scale: Scale, paper: dict[str, float], note: str) -> Figure:
    """Fig. 7 at the implied setting, with the range of the paper and the spread over seeds."""
    rows = []
    for workload in WORKLOADS:
        for scheme in _COMPARED[1:]:
            each = [gains(batch, scale, (setting,))[scheme][workload][0] for setting in SEEDS]
            row = {"workload": workload, "scheme": scheme, "change_percent": sum(each) / len(each)}
            row |= {"change_percent_low": min(each), "change_percent_high": max(each)}
            rows.append(row | {f"paper_{which}": paper.get(f"{scheme}_{which}") for which in ("least", "most")})
    data = pl.DataFrame(rows, infer_schema_length=None)
    draws = [
        (
            "Mean response time over round robin by address",
            figures.bars("workload", "scheme", "change_percent", "%", paper=("paper_least", "paper_most")),
        )
    ]
    svg = figures.panels(data, draws)
    return Figure("fig7_implied", "Fig. 7 at the implied setting", note, data, svg)
