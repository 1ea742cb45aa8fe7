"""Answers for the first screen of a page: sentences and cards on results, and notes by weight.

A comparison is answered by the layer that is best at most of the figures of `_ASKED`. Latencies, and rates of requests
that wait for them, are left out if layers acknowledge writes at different times.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import units
from .metrics import METRICS, Metric, best, labelled_notes, relative, response_time, unequal_promises
from .result import Result
from .why import PARTS, kinds, share

_ASKED: tuple[tuple[str, str, str], ...] = (
    ("write_amplification", "writes", "flash"), ("latency_ns.read.p99", "needs", "time for the p99 read"),
    ("latency_ns.write.p99", "needs", "time for the p99 write"), ("throughput.iops", "has", "throughput"),
    ("endurance.tbw", "", ""), ("mapping.bytes_peak", "needs", "map DRAM"), ("energy_uj.total", "uses", "energy"),
)  # fmt: skip
"""Path of a figure, and verb and noun of a difference; figures without a verb have a card only."""

_LEAST = 0.05
"""The least difference in the sentence on a comparison."""
_INFORMS = re.compile(r"the trace was read as |read verified|acknowledgement checked|the timeline has the first ")
_LISTED = 3


def weighed_notes(results: Sequence[Result]) -> tuple[list[str], list[str]]:
    """The notes that change the meaning of a figure, unequal promises first, and the notes that only inform."""
    unequal = unequal_promises((result.label, result) for result in results)
    warnings, informing = [unequal] if unequal else [], list[str]()
    for note in labelled_notes(results):
        (informing if _INFORMS.search(note) else warnings).append(note)
    return warnings, informing


def _compared(results: Sequence[Result]) -> list[tuple[Metric, str, str]]:
    """The asked figures that these results have and that compare."""
    by_path = {".".join(metric.path): metric for metric in METRICS}
    equal = unequal_promises((result.label, result) for result in results) is None
    skipped = () if equal else ("latency", "throughput")
    found = [(by_path[path], verb, noun) for path, verb, noun in _ASKED if not path.startswith(skipped)]
    return [each for each in found if any(each[0].of(result) for result in results)]


def amount(ratio: float) -> str:
    """A ratio in words: `2.3 times less`, `43 % less`, `12 % more`, `2.3 times the`."""
    if ratio >= 2 or 0 < ratio <= 0.5:
        times = max(ratio, 1 / ratio)
        return f"{times:,.{times < 10:d}f} times {'the' if ratio >= 2 else 'less'}"
    if ratio < 1:
        return f"{100 * (1 - ratio):.0f} % less"
    return f"{100 * (ratio - 1):.0f} % more"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _card(results: Sequence[Result], metric: Metric) -> tuple[str, str, str]:
    """The label of a figure, the best layers, and their value against the first layer, or else the next best."""
    values = [metric.of(result) for result in results]
    marks = best(metric, values)
    if not any(marks):
        shown = dict.fromkeys(metric.cell(result) for result in results)
        return metric.label, "equal" if len(shown) == 1 else "not compared", ", ".join(shown)
    winner = marks.index(True)
    rest = [at for at, value in enumerate(values) if value and not marks[at]]
    rest.sort(key=lambda at: (at > 0, (values[at] or 0) * (1 if metric.better == "low" else -1)))
    ratio = relative(values[winner], values[rest[0]]) if rest else None
    said = "" if ratio is None else f", {amount(ratio)} than {results[rest[0]].label}".replace(" the than", "")
    names = [result.label for result, mark in zip(results, marks, strict=True) if mark]
    return (
        metric.label,
        _listed(names if len(names) < _LISTED else [names[0], f"{len(names) - 1} more"]),
        (metric.cell(results[winner]) + said),
    )


def cards(results: Sequence[Result]) -> list[tuple[str, str, str]]:
    """A card for each figure in question."""
    return [_card(results, metric) for metric, _, _ in _compared(results)]


def comparison(results: Sequence[Result]) -> str:
    """One sentence: the differences of the layer that is best at most figures from the first, or else the second."""
    asked = [each for each in _compared(results) if each[1]]
    wins = [best(metric, [metric.of(result) for result in results]) for metric, _, _ in asked]
    order = sorted(range(len(results)), key=lambda at: -sum(marks[at] for marks in wins))
    subject = results[order[0]]
    other = results[0] if order[0] else results[order[1]]
    better: list[tuple[str, str, str]] = []
    worse: list[tuple[str, str, str]] = []
    for metric, verb, noun in asked:
        ratio = relative(metric.of(subject), metric.of(other))
        if ratio and abs(ratio - 1) >= _LEAST:
            link = "of" if ratio >= 2 else "than"
            said = (verb, f"{amount(ratio)} {noun}", f" {link} {other.label}")
            (better if (ratio < 1) == (metric.better == "low") else worse).append(said)
    good, bad = better[:_LISTED], worse[:2]
    if not good and not bad:
        return f"{subject.label} and {other.label} are within 5 % of each other in every figure below."
    words: list[str] = []
    last = ""
    for verb, what, link in [*good, *bad]:
        words.append(f"{'' if verb == last else f'{verb} '}{what}{'' if words else link}")
        last = verb
    parts = [_listed(words[: len(good)]), _listed(words[len(good) :])]
    return f"{subject.label} {', but '.join(filter(None, parts))}."


def slo(results: Sequence[Result]) -> str:
    """The runs that hold the conditions of `--slo`, and what the others miss; empty without conditions."""
    found = [(result.label, result["slo"]) for result in results if result.get("slo")]
    if not found:
        return ""
    wanted = " and ".join(each["condition"] for each in found[0][1])
    holding = [label for label, of in found if all(each["holds"] for each in of)]
    missed = [
        f"{label} has {_listed([each['shown'] for each in of if not each['holds']])}"
        for label, of in found
        if label not in holding
    ]
    head = f"{_listed(holding)} {'holds' if len(holding) == 1 else 'hold'}" if holding else "No run holds"
    return f"{'; '.join([f'{head} {wanted}', *missed])}."


_SPANS = ((1.0, "years"), (365.25, "days"), (8766.0, "hours"), (525960.0, "minutes"))


def life(years: float) -> str:
    """A life in words: `12.3 years`, `32.1 minutes`."""
    factor, unit = next((each for each in _SPANS if years * each[0] >= 1), _SPANS[-1])
    return f"{units.number(years * factor)} {unit}"


def _slowdown(tenant: Mapping[str, Any]) -> float | None:
    """The mean response time of a tenant over that of the tenant alone, if measured."""
    found: float | None = (tenant.get("slowdown") or {}).get("mean")
    return found


def run(result: Result) -> str:
    """One sentence on a run: response times, flash written, the slowest tenant, and life."""
    times = result["latency_ns"] or {}
    said = [
        f"{kind}s within {response_time(times[kind], 'p99')}"
        for kind in ("read", "write")
        if result["requests"].get(kind) and (times.get(kind) or {}).get("p99")
    ]
    parts = [f"99 % of {_listed(said)}".replace("within", "end within", 1)] if said else []
    if result["write_amplification"] is not None:
        parts.append(f"flash stores {units.ratio(result['write_amplification'])} bytes for each byte written")
    slowed = [(means, each["name"]) for each in result.get("tenants") or () if (means := _slowdown(each))]
    if slowed:
        most, name = max(slowed)
        parts.append(f"beside the other tenants {name} takes {units.ratio(most)} times as long as alone")
    worn = result.get("endurance") or {}
    if worn.get("years") is not None:
        parts.append(f"at this load the drive lasts {life(worn['years'])}")
    elif worn.get("tbw") is not None:
        parts.append(f"the drive endures {units.terabytes(worn['tbw'])} of writes")
    if result.get("fidelity") == "count":
        parts.append("a counted run has no response times")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


_WAITS = {"host", "suspend", "behind_reads", "behind_programs", "collection", "erase", "upkeep", "gather", "earlier"}


def waits(result: Result, key: str, kind: str) -> list[tuple[str, float, bool]]:
    """The parts of a percentile, the largest first: name, share, and whether the request waited for other work."""
    explained = kinds(result)[kind][key]
    found = [(name, share(explained, part), part in _WAITS) for part, name in PARTS.items()]
    return sorted((each for each in found if each[1]), key=lambda each: -each[1])
