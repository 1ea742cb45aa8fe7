"""Answers for the first screen of a page: sentences and cards on results, and notes by weight.

A comparison is answered by the figures of `_ASKED` and their verdicts: a difference is stated only if it is decided.
Figures that do not compare (`fair`) are left out.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import evidence, fair, units
from .evidence import best as leading
from .evidence import holding, steady
from .intervals import LEVEL
from .metrics import METRICS, Metric, best, change, is_silenced, labelled_notes, response_time
from .result import Result
from .verdicts import BOUND, Judged, Verdict, judge
from .why import PARTS, kinds, share

_ASKED: tuple[tuple[str, str, str], ...] = (
    ("write_amplification", "writes", "flash"), ("latency_ns.read.p99", "needs", "time for the p99 read"),
    ("latency_ns.write.p99", "needs", "time for the p99 write"), ("throughput.iops", "has", "throughput"),
    ("endurance.tbw", "", ""), ("mapping.bytes_peak", "needs", "map DRAM"), ("energy_uj.total", "uses", "energy"),
)  # fmt: skip
"""Path of a figure, and verb and noun of a difference; figures without a verb have a card only."""

_WITHIN = f"within {100 * BOUND:.0f} %"
_VERSUS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("flash bytes programmed", ("write_amplification",)), ("erases", ("flash", "erases")),
    ("mean write latency", ("latency_ns", "write", "mean")), ("p99 write latency", ("latency_ns", "write", "p99")),
    ("mean read latency", ("latency_ns", "read", "mean")), ("DRAM", ("mapping", "bytes_peak")),
    ("energy", ("energy_uj", "total")),
)  # fmt: skip
"""Figures of the sentences below a comparison in a terminal, all better if lower."""
_INFORMS = re.compile(r"the trace was read as |read verified|acknowledgement checked|the timeline has the first ")
_LISTED = 3


def weighed_notes(results: Sequence[Result]) -> tuple[list[str], list[str]]:
    """The notes that change the meaning of a figure, unfair conditions first, and the notes that only inform."""
    found = fair.checks(results) if len(results) > 1 else fair.of_run(results[0])
    warnings, informing = fair.texts(found, "unfair"), fair.texts(found, "said")
    for note in labelled_notes(results):
        (informing if _INFORMS.search(note) else warnings).append(note)
    return warnings, informing


def _compared(results: Sequence[Result]) -> list[tuple[Metric, str, str]]:
    """The asked figures that these results have and that compare."""
    by_path = {".".join(metric.path): metric for metric in METRICS}
    silent = fair.silenced(fair.checks(results))
    found = [(by_path[path], verb, noun) for path, verb, noun in _ASKED if not is_silenced(path.split("."), silent)]
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


def marks(metric: Metric, results: Sequence[Result]) -> list[bool]:
    """The best results of a row: of repeats only one that is decided to be best."""
    if is_silenced(metric.path, fair.silenced(fair.checks(results))):
        return [False] * len(results)
    if not metric.better or not any(result.repeats for result in results):
        return best(metric, [metric.of(result) for result in results])
    found = judge(metric, results)
    leaders = found.leaders() if len(results) > 1 and not found.same() else []
    return [len(leaders) == 1 and result.label == leaders[0] for result in results]


def _card(results: Sequence[Result], metric: Metric) -> tuple[str, str, str]:
    """The label of a figure, its decided leader, and its value against the first contender, or else the next best."""
    values = {result.label: metric.of(result) for result in results}
    shown = ", ".join(dict.fromkeys(metric.cell(result) for result in results))
    found = judge(metric, results)
    leaders = found.leaders()
    if found.same():
        return metric.label, f"the same {_WITHIN}", shown
    if len(leaders) != 1 or sum(value is not None for value in values.values()) < 2:
        return metric.label, "undecided", shown
    winner, first = leaders[0], results[0].label
    order = sorted((label for label in values if values[label]), key=lambda label: values[label] or 0)
    others = [label for label in (order if metric.better == "low" else order[::-1]) if label != winner]
    base = others[0] if winner == first else first
    ratio = found.between(winner, base).ratio if base in others else None
    said = "" if ratio is None else f", {amount(ratio)} than {base}".replace(" the than", "")
    cell = next(metric.cell(result) for result in results if result.label == winner)
    return metric.label, winner, cell + said


def cards(results: Sequence[Result]) -> list[tuple[str, str, str]]:
    """A card for each figure in question."""
    return [_card(results, metric) for metric, _, _ in _compared(results)]


def _undecided(found: Sequence[Judged], between: str = "") -> str:
    """The undecided figures, and the first reason."""
    reason = next((reason for each in found if (reason := each.reason())), None)
    names = _listed([each.metric.label for each in found])
    return f"Undecided{between}: {names}{f' ({reason})' if reason else ''}." if found else ""


def _lasting(claims: Sequence[Verdict]) -> str:
    """A reservation on claims about runs that are not steady."""
    return steady.lasting([each.lasting for each in claims])


def comparison(results: Sequence[Result]) -> str:
    """Sentences: the decided differences of two contenders, or the best of three and more; then the undecided."""
    asked = [(judge(metric, results), verb, noun) for metric, verb, noun in _compared(results) if verb]
    asked = [each for each in asked if sum(map(bool, each[0].values.values())) > 1]
    return _pair(results, asked) if len(results) == 2 else _several(results, [each for each, _, _ in asked])


def _pair(results: Sequence[Result], asked: Sequence[tuple[Judged, str, str]]) -> str:
    """The decided differences of the contender that is better at most figures from the other."""
    first, second = (result.label for result in results)
    found = [(each, verb, noun, each.between(second, first)) for each, verb, noun in asked]
    wins = sum({"better": 1, "worse": -1}.get(verdict.word, 0) * (not verdict.within) for *_, verdict in found)
    subject, other = (second, first) if wins > 0 else (first, second)
    better: list[tuple[str, str, str]] = []
    worse: list[tuple[str, str, str]] = []
    claims, open_ones = list[Verdict](), list[Judged]()
    for each, verb, noun, _ in found:
        verdict = each.between(subject, other)
        if verdict.word == "undecided":
            open_ones.append(each)
        elif not verdict.within and verdict.ratio is not None:
            claims.append(verdict)
            link = "of" if verdict.ratio >= 2 else "than"
            said = (verb, f"{amount(verdict.ratio)} {noun}", f" {link} {other}")
            (better if verdict.word == "better" else worse).append(said)
    good, bad = better[:_LISTED], worse[:2]
    if not claims and not open_ones:
        return f"{first} and {second} are {_WITHIN} of each other in every figure below."
    if not claims:
        return f"No difference between {first} and {second} is decided. {_undecided(open_ones)}"
    words: list[str] = []
    last = ""
    for verb, what, link in [*good, *bad]:
        words.append(f"{'' if verb == last else f'{verb} '}{what}{'' if words else link}")
        last = verb
    parts = [_listed(words[: len(good)]), _listed(words[len(good) :])]
    return f"{subject} {', but '.join(filter(None, parts))}{_lasting(claims)}. {_undecided(open_ones)}".rstrip()


def _several(results: Sequence[Result], asked: Sequence[Judged]) -> str:
    """The figures at which each of several contenders is decided to be best, and those without a single best."""
    best: dict[str, list[str]] = {}
    open_ones, same, claims = list[Judged](), list[str](), list[Verdict]()
    for each in asked:
        leaders = each.leaders()
        if each.same():
            same.append(each.metric.label)
        elif len(leaders) == 1:
            best.setdefault(leaders[0], []).append(each.metric.label)
            claims += [each.between(leaders[0], label) for label in each.values if label != leaders[0]]
        else:
            open_ones.append(each)
    ranked = sorted(best.items(), key=lambda each: -len(each[1]))
    said = [leading.leads(label, _listed(names), first=not at) for at, (label, names) in enumerate(ranked)]
    parts = [f"{'; '.join(said)}{_lasting(claims)}."] if said else []
    if not said and not open_ones:
        return f"All {len(results)} are {_WITHIN} of each other in every figure below."
    if not said:
        parts.append(leading.undecided(len(results)))
    parts += [f"The same {_WITHIN}: {_listed(same)}."] if same else []
    return " ".join([*parts, *_between(len(results), open_ones)])


def _between(contenders: int, found: Sequence[Judged]) -> list[str]:
    """A sentence on the undecided figures of each set of leaders, the first with the reason."""
    sets: dict[tuple[str, ...], list[Judged]] = {}
    for each in found:
        sets.setdefault(tuple(sorted(each.leaders())), []).append(each)
    said = []
    for leaders, open_ones in sets.items():
        between = "" if len(leaders) == contenders else f" between {_listed(leaders)}"
        said.append(_undecided(open_ones, between))
    return said


def versus(results: Sequence[Result]) -> list[str]:
    """For a terminal: the best of three and more contenders, then the decided changes of each from the first."""
    if len(results) < 2:
        return []
    found = [(label, judge(Metric(label, path, units.ratio, "low"), results)) for label, path in _VERSUS]
    first = results[0].label
    said = [comparison(results), *differ(results)] if len(results) > 2 else []
    for result in results[1:]:
        silent = fair.silenced(fair.checks([results[0], result]))
        pairs = [
            (name, each.between(result.label, first))
            for name, each in found
            if each.values[first] and each.values[result.label] and not is_silenced(each.metric.path, silent)
        ]
        said.append(f"{result.label} vs {first}: {_changes(pairs)}.")
    return said


def differ(results: Sequence[Result]) -> list[str]:
    """For repeats: the figures in which some contender is shown to differ from another, with p of equal ones."""
    found = [
        (each.metric.label, p) for metric, _, _ in _compared(results) if (p := (each := judge(metric, results)).differ)
    ]
    lines = [f"{name} (p {'< 0.001' if p < 0.001 else f'= {p:.2g}'})" for name, p in found if p <= 1 - LEVEL]
    open_ones = [f"{name} (p = {p:.2g})" for name, p in found if p > 1 - LEVEL]
    said = [f"Contenders differ (randomized blocks by seed): {', '.join(lines)}."] if lines else []
    return said + ([f"No difference of contenders is shown: {', '.join(open_ones)}."] if open_ones else [])


def _changes(found: Sequence[tuple[str, Verdict]]) -> str:
    """The decided changes, lower ones first, and the names of undecided figures with the reason of the first."""
    decided = [(label, each) for label, each in found if each.word in ("better", "worse") and not each.within]
    groups = [
        [f"{label} {change(each.ratio)}" for label, each in decided if each.ratio and each.word == word]
        for word in ("better", "worse")
    ]
    said = ["; ".join(", ".join(group) for group in groups if group) + _lasting([each for _, each in decided])]
    if open_ones := [(label, each) for label, each in found if each.word == "undecided"]:
        said.append(f"undecided: {', '.join(label for label, _ in open_ones)} ({open_ones[0][1].reason})")
    return "; ".join(filter(None, said)) or f"{_WITHIN} in every figure above"


def slo(results: Sequence[Result]) -> str:
    """The runs that hold the conditions of `--slo`, and what the others miss; empty without conditions."""
    found = [(result.label, result["slo"]) for result in results if result.get("slo")]
    return holding.of_runs(found) if found else ""


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
    if lasts := evidence.lasts(result):
        parts.append(lasts.text)
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
