"""The setting that the LLH paper's own numbers imply, and how far each unknown may move before a claim breaks.

How it was found. The paper's reductions with 28 % of over-provisioning are "very close" to its formula, which has all
low pages of reused blocks invalid and no data moved; so few places are written again, by the Zipf workloads too. On
the assumed drive these write all of it, the baseline then programs 2.5 pages for each page of the host, and reuse
saves half of what the formula says. Eight logical pages of 4 KiB are invalid at once nearly as often as two (1 point),
so that what looks hot and then stays is a few percent of hot writes at most; it is not much less either, as data
copied by collection grows by half at most, and not many times over. That OP/2 saves more than OP/4 needs hot data that
lives as long as OP/4 lets a block wait, and the 6 points with 7 % of over-provisioning bound it from above. A trace
that writes 7 GB on a drive of 32 GB and has it collect (wdev_0) needs a drive that was full before; two replays then
bring each threshold to rest, so that blocks that wait are not counted as saved. All of it was searched jointly, one
group of workloads after the other; the paper states none of it, and nothing here is more than consistent with its
numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import polars as pl

from ..options import RunOptions
from . import implied
from .batch import Batch
from .claims import Claim
from .figures import Figure
from .llh_claims import (
    CLAIMED,
    claims_of_response,
    claims_over_seeds,
    effects,
    judged,
    needed,
    normalized_erases,
    over_seeds,
    response_needed,
    response_rows,
)
from .llh_figures import SYNTHETIC, fig_7
from .llh_runs import FULL, SEEDS, WORKLOADS, Scale, Variant
from .measures import over_seeds as mean_over_seeds

__all__ = ["ABOUT", "BY_SEED", "IMPLIED", "NEIGHBOURS", "SCALE", "Setting", "claims_and_figures", "neighbours"]

SCALE = FULL
"""Of the implied setting, in quick runs too: on smaller banks few blocks wait, and thresholds have coarse steps."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of everything that the paper does not say.

    Attributes:
        what: which unknown is not as implied.
        value: its value, in words.
        hot: of the MSR workloads, percent of the places of hot data (5 % of the drive) that most of it goes to.
        stays: percent of hot data that goes to the other places, at random.
        fiu: percent of the drive in which sequences of the FIU workloads start.
        zipf: percent of the drive that the Zipf workloads write.
        precondition: state of the drive.
        replays: of the workload before the measurement.
        keys: configuration keys of `llh`.
        both: configuration keys of `llh` and of the baseline.
        seed: of the run.
    """

    what: str = "implied"
    value: str = "as found"
    hot: int = 50
    stays: int = 3
    fiu: int = 3
    zipf: int = 10
    precondition: str = "fill:95%,bs:64KiB"
    replays: int = 2
    keys: tuple[str, ...] = ()
    both: tuple[str, ...] = ()
    seed: int = SEEDS[0]

    def _changes(self, name: str) -> str:
        match WORKLOADS[name].group:
            case "msr":
                return f"random_distribution=zoned:{100 - self.stays}/{self.hot}:{self.stays}/{100 - self.hot}"
            case "fiu":
                return f"size={self.fiu}%"
            case _:
                return f"size={self.zipf}%"

    def _variant(self, variant: Variant) -> Variant:
        return replace(variant, overrides=(*self.both, *(self.keys if variant.ftl == "llh" else ())))

    def options(self, scale: Scale, name: str, variant: Variant) -> RunOptions:
        """The run that counts operations."""
        changes, replays = self._changes(name), self.replays
        own = self._variant(variant)
        return scale.options(name, own, changes, self.precondition, replays=replays, seed=self.seed)

    def timed(self, scale: Scale, name: str, variant: Variant) -> RunOptions:
        """The run that measures response times."""
        return scale.timed(name, self._variant(variant), self._changes(name), self.precondition)


IMPLIED = Setting()
BY_SEED = tuple(replace(IMPLIED, seed=seed) for seed in SEEDS)
"""The implied setting, once for each seed."""
_TEXT = ("ftl.threshold_steps=1", "ftl.threshold_floor=0", "ftl.reuse_empty=false")
_PUBLISHED = ("ftl.threshold_rule=published", "ftl.threshold_cap=112 blocks")
_CLEANING = ("ftl.open_block=before", "ftl.absorb=false")
NEIGHBOURS = (
    IMPLIED,
    *(Setting("places of Zipf", f"{each} % of the drive", zipf=each) for each in (5, 25, 100)),
    *(Setting("where sequences start, FIU", f"{each} % of the drive", fiu=each) for each in (1, 10)),
    *(Setting("places of hot data, MSR", f"{each / 20:g} % of the drive", hot=each) for each in (20, 80)),
    *(Setting("hot data that stays, MSR", f"{each} %", stays=each) for each in (1, 5)),
    *(Setting("fill", f"{each} % of the drive", precondition=f"fill:{each}%,bs:64KiB") for each in (100, 90)),
    Setting("replays before the measurement", "1", replays=1),
    Setting("threshold and reuse", "as the text alone says", keys=_TEXT),
    Setting("threshold, cleaning", "as in the authors' published FTL", keys=_PUBLISHED, both=_CLEANING),
)
"""The implied setting, and what is next to it: one thing changed each."""

ABOUT = (
    "Implied: the setting that the paper's own numbers imply. "
    f"{100 - IMPLIED.stays} % of the hot data of the MSR workloads goes to {IMPLIED.hot / 20:g} % of the drive, the "
    f"rest to places that are seldom written again; sequences of the FIU workloads start in {IMPLIED.fiu} % of it; the "
    f"Zipf workloads write {IMPLIED.zipf} % of it. The drive is 95 % full, and the workload was replayed twice before. "
    "The rules of the FTL are those of the assumed setting. Found by a joint search: it is consistent with the paper, "
    "which states none of it. One bank with the paper's blocks, timed runs on all, in --quick too; means of "
    f"{len(SEEDS)} seeds, response times of one. The figure 'implied', with --full, shows how far each unknown may "
    "move."
)


def _needed(setting: Setting) -> Iterator[RunOptions]:
    return needed(partial(setting.options, SCALE), CLAIMED)


def _measured(batch: Batch, setting: Setting) -> pl.DataFrame:
    return normalized_erases(batch, partial(setting.options, SCALE), CLAIMED)


def claims_and_figures(batch: Batch) -> tuple[list[Claim], list[Figure]]:
    """The claims at the implied setting, and Figure 7 there."""
    respond = partial(IMPLIED.timed, SCALE)
    batch.run([*(run for setting in BY_SEED for run in _needed(setting)), *response_needed(respond)])
    each = [_measured(batch, setting) for setting in BY_SEED]
    claims = [
        *claims_over_seeds([effects(rows) for rows in each], "Implied, "),
        *claims_of_response(response_rows(batch, respond)),
    ]
    return claims, fig_7(over_seeds(each), "At the implied setting, one bank with the paper's blocks.", "_implied")


def neighbours(batch: Batch) -> Figure:
    """What is next to the implied setting, each as the mean of all seeds."""
    settings = [[replace(setting, seed=seed) for seed in SEEDS] for setting in NEIGHBOURS]
    batch.run(run for each in settings for setting in each for run in _needed(setting))
    points = []
    for each in settings:
        means = mean_over_seeds([effects(_measured(batch, setting)) for setting in each])
        points.append((each[0].what, each[0].value, [judged(name, ours) for name, ours in means.items()]))
    note = f"{SYNTHETIC} One bank with the paper's blocks, means of {len(SEEDS)} seeds."
    return implied.neighbours_figure(points, note, height=4.4)
