"""The co-design paper: Qiu et al., on building flash storage by co-designing file system and FTL.

Map bytes, Fig. 2 and Fig. 6 to 8 and the numbers of Sec. IV, on synthetic workloads with the read ratios and request
sizes of its traces. What goes beyond the paper is in `codesign_beyond`.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from ..options import RunOptions
from . import codesign_beyond, codesign_implied, figures, implied, outputs, sweeps
from .batch import Batch
from .claims import ASSUMED, BOTH, IMPLIED, Claim, amount, at_most, effect, within
from .codesign_runs import (
    BY_CHANNEL,
    DEFAULT,
    EFFECTS,
    FULL,
    FULL_SWEEP,
    OWN,
    QUICK,
    QUICK_SWEEP,
    SCHEMES,
    STATIC,
    STATISTICS,
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
from .measures import change, iops, response_ns

__all__ = ["PAPER", "PAPER_THROUGHPUT", "judged", "reproduce", "statistics"]

SYNTHETIC = "Synthetic workloads with the statistics of the paper's."
BASELINES = ("page", "fs-page")
_TITLE = "Co-design of file system and FTL (Qiu et al.)"
LONG = 4
"""How many times as long the runs are in which metadata is counted."""
_Rows = list[dict[str, Any]]

PAPER = {
    "fairness_least": -7.0,
    "fairness_most": -23.1,
    "read-busy_least": -7.4,
    "read-busy_most": -17.2,
    "depth_least": -7.8,
    "depth_most": -15.5,
    "hybrid_least": -14.4,
    "hybrid_most": -24.4,
}
"""Sec. IV: mean response time over round robin."""
PAPER_THROUGHPUT = {
    "fairness_least": 7.5,
    "fairness_most": 30.1,
    "read-busy_least": 8.0,
    "read-busy_most": 20.7,
    "depth_least": 8.4,
    "depth_most": 18.4,
    "hybrid_least": 16.8,
    "hybrid_most": 32.3,
}
"""Sec. IV: throughput over round robin; each is 1 / (1 + the change of response time) - 1 to 0.1."""
_GAINS_MOST = {"fairness": "msnstorage", "read-busy": "exchange", "depth": "livemaps"}
"""Sec. IV: the workload that gains most from each scheme."""


def _main_runs(scale: Scale) -> dict[tuple[str, str], RunOptions]:
    """By layer or scheme, and workload."""
    made = {
        (scheme, name): scale.scheme(scheme, name)
        for name in WORKLOADS
        for scheme in (*SCHEMES, OWN, BY_CHANNEL, STATIC)
    }
    return made | {(layer, name): scale.options(layer, name) for name in WORKLOADS for layer in BASELINES}


def _long_run(scale: Scale, workload: str) -> RunOptions:
    """For seconds, so that commits come."""
    return replace(scale, requests=LONG * scale.requests).scheme(SCHEMES[0], workload)


def _free_run(scale: Scale, workload: str) -> RunOptions:
    """Without DRAM permission exchanges."""
    return scale.scheme(SCHEMES[0], workload, "", "fs.dispatch_overhead=0us")


def statistics(batch: Batch) -> Figure:
    """Read ratio and mean request of the synthetic workloads beside the paper's."""
    rows: _Rows = []
    for name, paper in STATISTICS.items():
        result = batch[statistics_run(name)]
        requests, host = result["requests"], result["host"]
        total = requests["read"] + requests["write"]
        own = (100 * requests["read"] / total, (host["bytes_read"] + host["bytes_written"]) / total / 1024)
        for what, unit, of, ours in zip(("reads", "mean request"), ("%", "KiB"), paper, own, strict=True):
            off = 100 * (ours / of - 1)
            rows.append({"workload": name, "what": what, "unit": unit, "paper": of, "ours": ours, "off_percent": off})
    data = pl.DataFrame(rows)
    draw = figures.bars("workload", "what", "ours", "% or KiB")
    note = f"{SYNTHETIC} Measured over the 200,000 requests of each preset; a test holds them within 2 % of the paper."
    svg = figures.panels(data, [("Share of reads, and mean request", draw)])
    return Figure("statistics", "Sec. IV: statistics of the synthetic workloads and the paper's", note, data, svg)


def _measured(batch: Batch, scale: Scale) -> pl.DataFrame:
    """A row for each workload and layer or scheme."""
    rows: _Rows = []
    for (scheme, workload), options in _main_runs(scale).items():
        result = batch[options]
        stats, latency = result["ftl_stats"], result["latency_ns"]
        own = {
            "response_us": response_ns(result) / 1000,
            "read_us": latency["read"]["mean"] / 1000,
            "write_us": latency["write"]["mean"] / 1000,
            "iops": iops(result),
            "map_bytes": result["mapping"]["bytes"],
            "groups": stats.get("fs_command_groups"),
            "page_state_bytes": stats.get("fs_page_state_bytes"),
            "files": stats.get("imbalance_files"),
            "uneven_percent": _percent(stats.get("imbalance_uneven")),
            "above_1_percent": _percent(stats.get("imbalance_above_1")),
        }
        rows.append({"workload": workload, "scheme": scheme} | own)
    data = pl.DataFrame(rows, infer_schema_length=None)
    base = data.filter(pl.col("scheme") == SCHEMES[0]).select("workload", base_us="response_us", base_iops="iops")
    joined = data.join(base, on="workload", maintain_order="left")
    return joined.with_columns(
        response_change_percent=100 * (pl.col("response_us") / pl.col("base_us") - 1),
        throughput_change_percent=100 * (pl.col("iops") / pl.col("base_iops") - 1),
    ).drop("base_us", "base_iops")


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _value(measured: pl.DataFrame, scheme: str, workload: str, column: str) -> float:
    row = measured.row(by_predicate=(pl.col("scheme") == scheme) & (pl.col("workload") == workload), named=True)
    return float(row[column])


def _fig_2(batch: Batch, scale: Scale) -> Figure:
    rows: _Rows = []
    for workload in UNEVEN:
        for scheme in SCHEMES[:2]:
            stats = batch[_main_runs(scale)[scheme, workload]]["ftl_stats"]
            before = 0.0
            for name, share in stats.items():
                if name.startswith("imbalance_cdf_"):
                    row = {"workload": workload, "scheme": scheme, "rate": float(name.removeprefix("imbalance_cdf_"))}
                    rows.append(row | {"pdf_percent": 100 * (share - before), "cdf_percent": 100 * share})
                    before = share
    data = pl.DataFrame(rows).with_columns(line=pl.col("workload") + ", " + pl.col("scheme"))
    drawn = data.with_columns(upto=pl.col("rate").cast(pl.String))
    draws = [
        ("Files with a rate of at most", figures.lines("rate", "line", "cdf_percent", "imbalance rate", "%")),
        ("Files between this rate and the one before", figures.bars("upto", "line", "pdf_percent", "%")),
    ]
    note = (
        f"{SYNTHETIC} At the end of the run; the sizes of files in the presets are chosen such that the two shares "
        "that the paper states come out under round robin."
    )
    return Figure("fig2", "Fig. 2: imbalance rate of files", note, data, figures.panels(drawn, draws, height=3.0))


def _responses(measured: pl.DataFrame, note: str) -> list[Figure]:
    def of(schemes: tuple[str, ...], *columns: str) -> pl.DataFrame:
        rows = measured.filter(pl.col("scheme").is_in(schemes))
        return rows.select("workload", "scheme", *columns)

    fig_6 = of((*BASELINES, SCHEMES[0]), "response_us", "read_us", "write_us")
    fig_7 = of((*SCHEMES, OWN), "response_us", "read_us", "write_us", "response_change_percent")
    fig_8 = of((*SCHEMES, OWN), "iops", "throughput_change_percent")
    own = f" {OWN} is not in the paper."
    made = [
        ("fig6", "Fig. 6: page map and co-design, mean response time", fig_6, "response_us", "us", ""),
        ("fig7", "Fig. 7: mean response time by scheme", fig_7, "response_change_percent", "%, rr = 0", own),
        ("fig8", "Fig. 8: throughput by scheme", fig_8, "throughput_change_percent", "%, rr = 0", own),
    ]
    figures_made = []
    for name, title, data, column, label, more in made:
        drawn = data if name == "fig6" else data.filter(pl.col("scheme") != SCHEMES[0])
        svg = figures.panels(drawn, [("", figures.bars("workload", "scheme", column, label))])
        figures_made.append(Figure(name, title, f"{SYNTHETIC} {note}{more}", data, svg))
    return figures_made


def _round_robins(measured: pl.DataFrame) -> Figure:
    """The schemes against each meaning of round robin."""
    rows: _Rows = []
    for name in WORKLOADS:
        for base in (SCHEMES[0], BY_CHANNEL, STATIC):
            of = _value(measured, base, name, "response_us")
            for scheme in (*SCHEMES[1:], OWN):
                ours = change(_value(measured, scheme, name, "response_us"), of)
                rows.append({"workload": name, "base": base, "scheme": scheme, "change_percent": ours})
    data = pl.DataFrame(rows)
    draw = figures.bars("workload", "scheme", "change_percent", "%")

    def against(base: str) -> figures.Draw:
        return lambda axes, rows: draw(axes, rows.filter(pl.col("base") == base))

    draws = [
        ("Against pages in turn, as they come", against(SCHEMES[0])),
        ("Against channels by address", against(BY_CHANNEL)),
        ("Against channels and planes by address", against(STATIC)),
    ]
    note = (
        f"{SYNTHETIC} The paper compares with round robin and does not say which. Its Fig. 1 gives requests the byte "
        "offset at which they start on the disk, it cites work in which round robin is a static allocation, and it "
        "holds its schemes against static allocation: all of that means page n of the disk on channel n mod 8. Where "
        "the address names the channel only, and a channel's planes take turns, the drive is about as fast as with "
        "pages in turn. Where it names the plane too, the pages of two planes that wait together are seldom at the "
        "same place of their blocks, so that there are few plane commands: that, not channels, is what the third panel "
        "shows; the sweep has it without plane commands."
    )
    svg = figures.panels(data, draws, height=3.0)
    return Figure("round_robin", "Three meanings of round robin: mean response time", note, data, svg)


def _maps(measured: pl.DataFrame, note: str) -> Figure:
    data = measured.filter(pl.col("scheme").is_in((*BASELINES, SCHEMES[0])))
    data = data.select("workload", "scheme", "map_bytes", "page_state_bytes", "groups")
    draw = figures.bars("workload", "scheme", "map_bytes", "bytes", log=True)
    draws = [("Bytes of the map in the drive", draw)]
    text = (
        f"{SYNTHETIC} {note} The map that the drive saves is kept by the file system instead: pointers of 4 bytes "
        "a page in inodes and indirect pages, written with each commit, and two bits a page in the host's memory."
    )
    return Figure("maps", "Sec. III-A: maps", text, data, figures.panels(data, draws, height=3.0))


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
    of = (_value(measured, each, workload, "response_us") for each in (scheme, base))
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


def _effect_claims(measured: pl.DataFrame, sweep: pl.DataFrame) -> Iterator[Claim]:
    for scheme in SCHEMES[1:]:
        own = {name: _value(measured, scheme, name, "response_change_percent") for name in WORKLOADS}
        faster = {name: _value(measured, scheme, name, "throughput_change_percent") for name in WORKLOADS}
        each = ", ".join(f"{name} {value:+.1f}" for name, value in own.items())
        for which, pick in (("least", max), ("most", min)):
            name = f"{scheme}_{which}"
            claim = judged(name, pick(own.values()))
            note = f"By workload: {each}. "
            if not claim.agrees:
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
        own = (_value(measured, "rr", workload, column) for column in ("uneven_percent", "above_1_percent"))
        note = "The preset's sizes of files were chosen for this; overwriting in the run moves it, the more the longer."
        for which, text, paper, ours in zip(
            ("uneven", "above_1"), ("distributed unevenly", "with a rate above 1"), (uneven, above), own, strict=True
        ):
            claim = amount(f"{which}_{workload}", f"files {text} under rr, {workload}", paper, ours, "%")
            yield claim.with_note(note)


def _cost_claims(batch: Batch, scale: Scale, measured: pl.DataFrame) -> Iterator[Claim]:
    bytes_of = {scheme: _value(measured, scheme, WORKLOADS[0], "map_bytes") for scheme in ("page", "fs-page", "rr")}
    # Two bits a page: what the table of page states takes says how many pages the layer below maps.
    mapped = {scheme: 4 * _value(measured, scheme, WORKLOADS[0], "page_state_bytes") for scheme in ("fs-page", "rr")}
    per_page = {scheme: bytes_of[scheme] / pages for scheme, pages in mapped.items()}
    note = (
        f"Drive against drive it is {100 * bytes_of['rr'] / bytes_of['page']:.2f} %: the file system's space holds the "
        "spare blocks too, which a page map need not map."
    )
    ratio = 100 * per_page["rr"] / per_page["fs-page"]
    text = "bytes of the drive's map over those of a page map, for each page that is mapped"
    yield amount("map", text, 100 / 256, ratio, "%").with_note(note)
    ratios = {
        name: _value(measured, "rr", name, "response_us") / _value(measured, "page", name, "response_us")
        for name in WORKLOADS
    }
    worst = max(ratios, key=lambda name: abs(ratios[name] - 1))
    text = "mean response time, co-design with rr over the page map, furthest from 1 of four workloads"
    layered = _value(measured, "rr", worst, "response_us") / _value(measured, "fs-page", worst, "response_us")
    note = (
        f"{worst}; similar is read as within 10 %. The same file system above the page map, which has metadata "
        f"and permission exchanges too, is the other comparison: {layered:.3f}."
    )
    yield within("page_map", text, 0.9, 1.1, ratios[worst], "times", "similar").with_note(note)
    shares = {row["workload"]: row["percent"] for row in _metadata(batch, scale).data.iter_rows(named=True)}
    text = "pages of metadata among those programmed, rr, largest of four workloads"
    each = ", ".join(f"{name} {share:.1f}" for name, share in shares.items())
    note = (
        f"The paper: negligible, read as 1 %. By workload: {each}. A commit writes a log, 12 bytes a changed pointer; "
        "with fs.commit=tree it writes the inode and the page of pointers of every file that changed, which is 2 to "
        "20 %. The paper has pointers in i-nodes too, and does not say how they are written."
    )
    yield at_most("metadata", text, 1.0, max(shares.values())).with_note(note)
    slower = {
        name: change(response_ns(batch[scale.scheme("rr", name)]), response_ns(batch[_free_run(scale, name)])) or 0.0
        for name in WORKLOADS
    }
    text = "mean response time, DRAM permission exchange of 3 us over none, rr, largest of four workloads"
    each = ", ".join(f"{name} {more:+.2f}" for name, more in slower.items())
    note = (
        f"The paper: transmission of commands is negligible, read as 1 %. By workload: {each}. The time is assumed, "
        "and swept."
    )
    yield at_most("hand_over", text, 1.0, max(slower.values())).with_note(note)


def _metadata(batch: Batch, scale: Scale) -> Figure:
    rows: _Rows = []
    for name in WORKLOADS:
        result = batch[_long_run(scale, name)]
        programs = {cause: counts["programs"] for cause, counts in result["flash"]["by_cause"].items()}
        row = {"workload": name, "seconds": result["simulated_ns"] / 1e9}
        row |= {"commits": result["ftl_stats"]["fs_commits"], "what": "metadata"}
        row |= {cause: programs[cause] for cause in ("host", "gc", "metadata")}
        rows.append(row | {"percent": 100 * programs["metadata"] / sum(programs.values())})
    data = pl.DataFrame(rows)
    svg = figures.panels(
        data, [("Pages of metadata, of all programmed", figures.bars("workload", "what", "percent", "%"))]
    )
    note = (
        f"{SYNTHETIC} rr, {LONG * scale.requests:,} requests, so that commits come: every 5 s, after 65,536 pages, or "
        "when collection needs the blocks that it cleaned. They are in all totals and in write amplification."
    )
    return Figure("metadata", "Sec. IV: pages of metadata", note, data, svg)


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
            *_main_runs(scale).values(),
            *(run(scale, name) for name in WORKLOADS for run in (_free_run, _long_run)),
            *effects_runs(swept, DEFAULT),
            *(statistics_run(name) for name in WORKLOADS),
            *(run for unknown in _swept(swept) for run in effects_runs(swept, unknown)),
            *codesign_beyond.runs(batch, scale, swept),
        ]
    )
    measured, sweep = _measured(batch, scale), _sweep(batch, swept)
    note = f"{scale.blocks} blocks a plane, {scale.requests:,} requests, 16 in flight."
    claims = [
        *_cost_claims(batch, scale, measured),
        *_imbalance_claims(measured),
        *_effect_claims(measured, sweep),
        *_by_address_claims(measured),
        *_orders(
            {
                scheme: {name: _value(measured, scheme, name, "response_change_percent") for name in WORKLOADS}
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
            statistics(batch),
            _maps(measured, note),
            _metadata(batch, scale),
            _fig_2(batch, scale),
            *_responses(measured, note),
            _round_robins(measured),
            _sweep_figure(sweep, each),
            *codesign_beyond.figures_of(batch, scale, swept),
        ),
    )
