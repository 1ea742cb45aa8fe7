"""The setting that the SPREAD paper's own numbers imply, and how far each unknown may move before a claim breaks.

How it was found. Reads of 2 KiB gain 2.2 and 1.9 times where Table I allows 3.0 and 2.6, and their latency falls by as
much as their IOPS rise, so the rest of a request's time is the same under all layers and inside what was measured: the
paper's layer runs in the host. Some 110 us of it for each request, beside that of others, give both at 20 in flight
(50 us at 8, 90 us at 16), and bring the loss of su nearer to the paper's third.
Collections gain little and usr much only on a full drive with much spare space, host and moved data in one stream, a
write buffer of some pages, and the host before collections. All was searched jointly; the paper states none of it,
and nothing here is more than consistent with its numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..options import RunOptions
from .spread_runs import Scale, Unknown, effects_runs

__all__ = ["ABOUT", "IMPLIED", "NEIGHBOURS", "SCALE", "SWEEP", "Setting", "runs"]

SCALE = Scale(blocks=512, requests=400_000, seeds=3, trace_requests=0, repeats=True)
"""Of the implied setting, in quick runs too: on smaller drives usr changes by a tenth from seed to seed."""
SWEEP = Scale(blocks=128, requests=100_000, seeds=2, trace_requests=0, repeats=True)
"""Of what is next to it."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of everything that the paper does not say.

    Attributes:
        what: which unknown is not as implied.
        value: its value, in words.
        in_flight: requests at a time.
        share: percent of the host's space that USR and STG use.
        overwritten: how many times over it was overwritten at random before.
        keys: configuration keys that differ.
    """

    what: str = "implied"
    value: str = "as found"
    in_flight: int = 20
    share: int = 100
    overwritten: str = "4"
    keys: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def point(self) -> Unknown:
        """As a point of the sweep of what the paper does not say."""
        overrides = tuple(f"{key}={value}" for key, value in (_KEYS | self.keys).items())
        return Unknown(
            self.what,
            self.value,
            changes=f"iodepth={self.in_flight}",
            overrides=overrides,
            share=self.share,
            overwritten=self.overwritten,
        )


_KEYS = {
    "host.t_request": "110us",
    "ssd.over_provisioning": "28%",
    "ftl.streams": "1",
    "buffer.size": "144KiB",
    "sim.scheduler": "host-first",
    "sim.starvation_bound": "3ms",
}
IMPLIED = Setting()


def _key(what: str, key: str, values: str, unit: str = "") -> tuple[Setting, ...]:
    return tuple(Setting(what, f"{each} {unit}".strip(), keys={key: f"{each}{unit}"}) for each in values.split())


NEIGHBOURS = (
    IMPLIED,
    *_key("time in the host", "host.t_request", "0 50 90 130 150", "us"),
    *(Setting("queue depth", f"{each} in flight", in_flight=each) for each in (8, 12, 16, 24, 32)),
    *_key("over-provisioning", "ssd.over_provisioning", "7 20 25 32", "%"),
    *(Setting("utilisation", f"{each} % of the host's space", share=each) for each in (80, 90, 95)),
    *(Setting("history", f"overwritten {each} times", overwritten=each) for each in ("0.5", "1", "2", "6")),
    *_key("streams", "ftl.streams", "2"),
    *_key("write buffer", "buffer.size", "64 128 160 192 256 1024", "KiB"),
    *_key("scheduling", "sim.scheduler", "fifo read-first"),
    *_key("longest wait of a collection", "sim.starvation_bound", "1 5 10 30", "ms"),
    *_key("host link", "host.link_rate", "450 600 800", "MB/s"),
    *_key("overhead of a flash command", "part.t_command", "5 10", "us"),
    Setting("cache register", "on", keys={"sim.cache_register": "true"}),
)
"""The implied setting, and what is next to it: one thing changed each."""

ABOUT = (
    "Implied: the setting that the paper's own numbers imply. 110 us in the host for each request (host.t_request), "
    "20 in flight; 28 % of over-provisioning; usr and stg use all of the host's space, which was written in order and "
    "then overwritten four times at random in units of 4 KiB; host and moved data in one stream, a write buffer of "
    "144 KiB, operations of the host before those of collections, which wait 3 ms at most. Found by a joint search: it "
    f"is consistent with the paper, which states none of it. {SCALE.blocks} blocks a chip as in the paper, "
    f"{SCALE.requests:,} requests, in --quick too; means of {SCALE.seeds} seeds. The figure 'implied' shows how far "
    "each may move."
)


def runs() -> Iterator[RunOptions]:
    """The runs of the figure `implied`."""
    for setting in NEIGHBOURS:
        yield from effects_runs(SWEEP, setting.point)
