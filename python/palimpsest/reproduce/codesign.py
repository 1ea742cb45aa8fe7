"""The co-design paper: Qiu et al., on building flash storage by co-designing file system and FTL.

Map bytes, Fig. 2 and Fig. 6 to 8 and the numbers of Sec. IV, on synthetic workloads with the read ratios and request
sizes of its traces. Its figures are in `codesign_figures`, what goes beyond the paper in `codesign_beyond`.
"""

from collections.abc import Iterator

import polars as pl

from ..options import RunOptions
from . import codesign_beyond, codesign_figures, codesign_implied, figures, implied, outputs, sweeps_old as sweeps
from .batch import Batch
from .claims import ASSUMED, BOTH, IMPLIED, Claim, amount, at_most, effect, within
from .codesign_figures import PAPER, PAPER_THROUGHPUT, SYNTHETIC, long_run, main_run, main_runs, value
from .codesign_runs import (
    BY_CHANNEL,
    DEFAULT,
    EFFECTS,
    FULL,
    FULL_SWEEP,
    QUICK,
    QUICK_SWEEP,
    SCHEMES,
    STATIC,
    TOGETHER,
    UNEVEN,
    UNKNOWNS,
    WORKLOADS,
    Scale,
    Unknown,
    effects,
    effects_runs,
    statistics_run,
)
from .figures import Figure
from .measures import change, response_ns

__all__ = ["PAPER", "PAPER_THROUGHPUT", "judged", "reproduce"]

_TITLE = "Co-design of file system and FTL (Qiu et al.)"
_GAINS_MOST = {"fairness": "msnstorage", "read-busy": "exchange", "depth": "livemaps"}
"""Sec. IV: the workload that gains most from each scheme."""


def _free_run(scale: Scale, workload: str) -> RunOptions:
    """Without DRAM permission exchanges."""
    return scale.scheme(SCHEMES[0], workload, "", "fs.dispatch_overhead=0us")


def judged(name: str, ours: float | None) -> Claim:
    """The claim on response time of this name, with the paper's number, the measured one, and the rule for both."""
    return effect(name, f"{EFFECTS[name].removesuffix(' (%)')}", PAPER[name], ours)


_BECAUSE = {
    "fairness": "Where a page is overwritten, its file lacks one page in one channel, and there the next write of the "
    "file goes: channels are chosen as if by address, whatever their queues, while pages in turn keep them "
    "equally busy. With requests of one page it stays within 4 % of a page map whose channels go by address "
    "(see the sweep). Its gain is in reads of whole files that were written in pieces, while channels have time "
    "to wait for each other: one in flight. ",
    "read-busy": "It uses whether a channel reads, not its queue: programs, which take five times as long as "
    "reads. Leaving out channels that read makes the others uneven, which pages in turn are not. With one in "
    "flight there is nothing to leave out. ",
    "depth": "A write of 128 KiB that waits for nothing takes 1.23 ms instead of 1.83, as its pages are there "
    "together and planes program them at once. But only requests of more than 16 pages gain, in these "
    "workloads those of 128 KiB; with many in flight queues bring pages together under round robin too; and "
    "later reads of consecutive pages share a channel (every eighth page instead: see the sweep). The "
    "DRAM permission exchanges that it saves cost little at 3 us; the paper does not state their time. ",
    "hybrid": "It adds up what its three parts gain and cost. ",
}


def _bases(measured: pl.DataFrame, scheme: str) -> str:
    """The same effect against page maps in which addresses name channels, or planes."""
    own = {
        base: ", ".join(f"{_over(measured, scheme, name, base):+.1f}" for name in WORKLOADS)
        for base in (BY_CHANNEL, STATIC)
    }
    return (
        f"Against a page map that gives each address its channel for good, which is round robin too, {scheme} changes "
        f"the four by {own[BY_CHANNEL]} %; where it gives the plane too, which costs plane commands, {own[STATIC]} %. "
    )


def _over(measured: pl.DataFrame, scheme: str, workload: str, base: str) -> float:
    """Change of mean response time from `base` in percent."""
    of = (value(measured, each, workload, "response_us") for each in (scheme, base))
    return change(*of) or 0.0


def _sweep(batch: Batch, scale: Scale) -> pl.DataFrame:
    return sweeps.points(_swept(scale), lambda unknown: effects(batch, scale, unknown), EFFECTS)


def _swept(scale: Scale) -> list[Unknown]:
    return [unknown for unknown in UNKNOWNS if unknown.quick or scale.everything]


def _reason(sweep: pl.DataFrame, name: str) -> str:
    return sweeps.reason(sweep, name, PAPER[name], lambda ours: judged(name, ours).agrees, together=TOGETHER)


def _sweep_figure(sweep: pl.DataFrame, note: str) -> Figure:
    draws = [(text, figures.levels("label", name, PAPER[name], "%")) for name, text in EFFECTS.items()]
    svg = figures.panels(sweep, draws, width=10, height=4.5)
    return Figure("sweep", "What the paper does not say, one thing changed at a time", note, sweep, svg)


def _effect_claims(
    measured: pl.DataFrame, sweep: pl.DataFrame, bounds: dict[tuple[str, str], float]
) -> Iterator[Claim]:
    room = ", ".join(f"{name} {bounds[SCHEMES[0], name]:+.1f}" for name in WORKLOADS)
    for scheme in SCHEMES[1:]:
        own = {name: value(measured, scheme, name, "response_change_percent") for name in WORKLOADS}
        faster = {name: value(measured, scheme, name, "throughput_change_percent") for name in WORKLOADS}
        each = ", ".join(f"{name} {value:+.1f}" for name, value in own.items())
        for which, pick in (("least", max), ("most", min)):
            name = f"{scheme}_{which}"
            claim = judged(name, pick(own.values()))
            note = f"By workload: {each}; each {_spread(measured, scheme):.1f} points from seed to seed at most. "
            if not claim.agrees:
                note += f"A scheme that removes no work can change them by {room} at most (figure headroom). "
                note += _BECAUSE[scheme] + _bases(measured, scheme) + _reason(sweep, name)
            yield claim.with_note(note.strip())
            text = f"throughput, {scheme} over rr, {which} gain of four workloads"
            gain = (min if which == "least" else max)(faster.values())
            made = effect(f"throughput_{name}", text, PAPER_THROUGHPUT[name], gain)
            inverse = change(1.0, 1 + PAPER[name] / 100)
            yield made.with_note(
                f"The paper's number is the inverse of its response time ({inverse:+.1f} %): bytes over response time, "
                "whatever the arrivals, and not a second measurement. "
                + ("" if made.agrees else f"See {name} for the reason.")
            )


def _spread(measured: pl.DataFrame, scheme: str) -> float:
    """The most that a change of response time differs between seeds, in percentage points."""
    column = "response_change_percent"
    return max(
        value(measured, scheme, name, f"{column}_high") - value(measured, scheme, name, f"{column}_low")
        for name in WORKLOADS
    )


def _by_address_claims(measured: pl.DataFrame) -> Iterator[Claim]:
    """The same effects against the other meaning of the paper's baseline."""
    for scheme in SCHEMES[1:]:
        own = {name: _over(measured, scheme, name, BY_CHANNEL) for name in WORKLOADS}
        planes = {name: _over(measured, scheme, name, STATIC) for name in WORKLOADS}
        for which, pick in (("least", max), ("most", min)):
            text = (
                f"mean response time, {scheme} over round robin by address (page map, page n on channel n mod 8), "
                f"{which} gain of four workloads"
            )
            made = effect(f"{scheme}_{which}_by_address", text, PAPER[f"{scheme}_{which}"], pick(own.values()))
            yield made.with_note(
                "What Fig. 1 and the work that the paper cites suggest. By workload: "
                + ", ".join(f"{name} {value:+.1f}" for name, value in own.items())
                + f". With the plane by address too {which} is {pick(planes.values()):+.1f} %: such a map has few "
                "plane commands (see figure round_robin)."
            )


def _orders(gains: dict[str, dict[str, float]]) -> Iterator[Claim]:
    """Which workload gains most, and that hybrid gains most, from changes of response time by scheme and workload."""
    for scheme, workload in _GAINS_MOST.items():
        own = gains[scheme]
        best = min(own, key=lambda name: own[name])
        text = f"mean response time, {scheme} over rr, {workload}: the largest gain of four workloads"
        note = "" if best == workload else f"Measured here, {best} gains most ({own[best]:+.1f} %). {_BECAUSE[scheme]}"
        ours = round(own[workload], 4)
        yield Claim(f"{scheme}_workload", text, "largest gain", ours, "%", best == workload, note.strip())
    short = [gains["hybrid"][name] - min(gains[scheme][name] for scheme in SCHEMES[1:4]) for name in WORKLOADS]
    text = "mean response time, hybrid over the best of its parts, worst of four workloads, percentage points"
    note = "" if max(short) <= 0 else "The parts conflict: one choice of a channel serves one of them."
    yield Claim("hybrid_best", text, "at most 0", round(max(short), 4), "points", max(short) <= 0, note)


def _imbalance_claims(measured: pl.DataFrame) -> Iterator[Claim]:
    for workload, (uneven, above) in UNEVEN.items():
        own = (value(measured, "rr", workload, column) for column in ("uneven_percent", "above_1_percent"))
        note = "The preset's sizes of files were chosen for this; overwriting in the run moves it, the more the longer."
        for which, text, paper, ours in zip(
            ("uneven", "above_1"), ("distributed unevenly", "with a rate above 1"), (uneven, above), own, strict=True
        ):
            claim = amount(f"{which}_{workload}", f"files {text} under rr, {workload}", paper, ours, "%")
            yield claim.with_note(note)


def _cost_claims(batch: Batch, scale: Scale, measured: pl.DataFrame) -> Iterator[Claim]:
    bytes_of = {scheme: value(measured, scheme, WORKLOADS[0], "map_bytes") for scheme in ("page", "fs-page", "rr")}
    # Two bits a page: what the table of page states takes says how many pages the layer below maps.
    mapped = {scheme: 4 * value(measured, scheme, WORKLOADS[0], "page_state_bytes") for scheme in ("fs-page", "rr")}
    per_page = {scheme: bytes_of[scheme] / pages for scheme, pages in mapped.items()}
    note = (
        f"Drive against drive it is {100 * bytes_of['rr'] / bytes_of['page']:.2f} %: the file system's space holds the "
        "spare blocks too, which a page map need not map."
    )
    ratio = 100 * per_page["rr"] / per_page["fs-page"]
    text = "bytes of the drive's map over those of a page map, for each page that is mapped"
    yield amount("map", text, 100 / 256, ratio, "%").with_note(note)
    ratios = {
        name: value(measured, "rr", name, "response_us") / value(measured, "page", name, "response_us")
        for name in WORKLOADS
    }
    worst = max(ratios, key=lambda name: abs(ratios[name] - 1))
    text = "mean response time, co-design with rr over the page map, furthest from 1 of four workloads"
    layered = value(measured, "rr", worst, "response_us") / value(measured, "fs-page", worst, "response_us")
    note = (
        f"{worst}; similar is read as within 10 %. The same file system above the page map, which has metadata "
        f"and permission exchanges too, is the other comparison: {layered:.3f}."
    )
    yield within("page_map", text, 0.9, 1.1, ratios[worst], "times", "similar").with_note(note)
    shares = {
        row["workload"]: row["percent"] for row in codesign_figures.metadata(batch, scale).data.iter_rows(named=True)
    }
    text = "pages of metadata among those programmed, rr, largest of four workloads"
    each = ", ".join(f"{name} {share:.1f}" for name, share in shares.items())
    note = (
        f"The paper: negligible, read as 1 %. By workload: {each}. A commit writes a log, 12 bytes a changed pointer; "
        "with fs.commit=tree it writes the inode and the page of pointers of every file that changed, which is 2 to "
        "20 %. The paper has pointers in i-nodes too, and does not say how they are written."
    )
    yield at_most("metadata", text, 1.0, max(shares.values())).with_note(note)
    slower = {
        name: change(response_ns(batch[main_run(scale, "rr", name)]), response_ns(batch[_free_run(scale, name)])) or 0.0
        for name in WORKLOADS
    }
    text = "mean response time, DRAM permission exchange of 3 us over none, rr, largest of four workloads"
    each = ", ".join(f"{name} {more:+.2f}" for name, more in slower.items())
    note = (
        f"The paper: transmission of commands is negligible, read as 1 %. By workload: {each}. The time is assumed, "
        "and swept."
    )
    yield at_most("hand_over", text, 1.0, max(slower.values())).with_note(note)


def _about(scale: Scale) -> tuple[str, ...]:
    return (
        "The paper's traces are not public in the form that it used: the workloads are synthetic, "
        "with the read ratios and mean request sizes of its Sec. IV. Files, locality and queue depth are assumed.",
        f"Drive codesign-8ch with {scale.blocks} blocks a plane and 28 % of over-provisioning, {scale.requests:,} "
        "requests, 16 in flight, of which the first tenth is not measured. Files fill 70 % of the drive and were "
        "written in order, 64 at a time, in pieces of the sizes of the workload's writes.",
        "Response time and throughput of the paper are one measurement: each gain of throughput is the inverse of a "
        "response time to 0.1 %.",
    )


def _implied_claims(gains: codesign_implied.Gains) -> Iterator[Claim]:
    """The claims on schemes, from their gains over round robin by address."""
    for scheme in SCHEMES[1:]:
        each = ", ".join(f"{name} {response:+.1f}" for name, (response, _) in gains[scheme].items())
        responses, rates = zip(*gains[scheme].values(), strict=True)
        for which in ("least", "most"):
            name = f"{scheme}_{which}"
            response, rate = (max(responses), min(rates)) if which == "least" else (min(responses), max(rates))
            yield judged(name, response).with_note(f"Implied, by workload: {each}.")
            text = f"throughput, {scheme} over rr, {which} gain of four workloads"
            yield effect(f"throughput_{name}", text, PAPER_THROUGHPUT[name], rate)
    yield from _orders({scheme: {name: one for name, (one, _) in own.items()} for scheme, own in gains.items()})


def _implied(batch: Batch) -> tuple[list[Claim], list[Figure]]:
    """The claims at the implied setting, the figure of what is next to it, and Fig. 7 there."""
    scale, swept = codesign_implied.SCALE, codesign_implied.SWEEP
    batch.run(run for setting in codesign_implied.SEEDS for run in codesign_implied.runs(scale, setting))
    batch.run(run for setting in codesign_implied.NEIGHBOURS for run in codesign_implied.runs(swept, setting))
    points = []
    for setting in codesign_implied.NEIGHBOURS:
        claims = _implied_claims(codesign_implied.gains(batch, swept, (setting,)))
        points.append((setting.what, setting.value, [claim for claim in claims if claim.id in PAPER]))
    found = list(_implied_claims(codesign_implied.gains(batch, scale, codesign_implied.SEEDS)))
    text = "pages of metadata among those programmed, rr, largest of four workloads"
    found.append(at_most("metadata", text, 1.0, codesign_implied.metadata_percent(batch, scale, codesign_implied.BASE)))
    note = f"{SYNTHETIC} {scale.blocks} blocks a plane, {scale.requests:,} requests, means of three seeds."
    near = f"{SYNTHETIC} {swept.blocks} blocks a plane, {swept.requests:,} requests each, one seed."
    made = codesign_implied.gains_figure(batch, scale, PAPER, note)
    return found, [made, implied.neighbours_figure(points, near, height=4.6)]


def reproduce(batch: Batch, *, full: bool = False, settings: str = BOTH) -> outputs.Reproduction:
    """Runs everything and draws it: under the assumed setting, the implied one, or both."""
    scale, swept = (FULL, FULL_SWEEP) if full else (QUICK, QUICK_SWEEP)
    if settings == ASSUMED:
        return _assumed(batch, scale, swept)
    claims, added = _implied(batch)
    if settings == IMPLIED:
        about = (*_about(scale)[:1], codesign_implied.ABOUT)
        return outputs.Reproduction("codesign", _TITLE, about, tuple(claims), tuple(added))
    return implied.beside(_assumed(batch, scale, swept), codesign_implied.ABOUT, claims, added)


def _assumed(batch: Batch, scale: Scale, swept: Scale) -> outputs.Reproduction:
    batch.run(
        [
            *main_runs(scale).values(),
            *(run(scale, name) for name in WORKLOADS for run in (_free_run, long_run)),
            *effects_runs(swept, DEFAULT),
            *(statistics_run(name) for name in WORKLOADS),
            *(run for unknown in _swept(swept) for run in effects_runs(swept, unknown)),
            *codesign_beyond.runs(batch, scale, swept),
        ]
    )
    measured, sweep = codesign_figures.measure(batch, scale), _sweep(batch, swept)
    room, bounds = codesign_figures.headroom(batch, scale)
    note = f"{scale.blocks} blocks a plane, {scale.requests:,} requests, 16 in flight."
    claims = [
        *_cost_claims(batch, scale, measured),
        *_imbalance_claims(measured),
        *_effect_claims(measured, sweep, bounds),
        *_by_address_claims(measured),
        *_orders(
            {
                scheme: {name: value(measured, scheme, name, "response_change_percent") for name in WORKLOADS}
                for scheme in SCHEMES[1:]
            }
        ),
    ]
    each = f"{SYNTHETIC} Each bar but the first changes one thing. {swept.requests:,} requests a run."
    return outputs.Reproduction(
        paper="codesign",
        title=_TITLE,
        about=_about(scale),
        claims=tuple(claims),
        figures=(
            codesign_figures.statistics(batch),
            codesign_figures.maps(measured, note),
            codesign_figures.metadata(batch, scale),
            codesign_figures.fig_2(batch, scale),
            *codesign_figures.responses(measured, note),
            room,
            codesign_figures.round_robins(measured),
            _sweep_figure(sweep, each),
            *codesign_beyond.figures_of(batch, scale, swept),
        ),
    )
