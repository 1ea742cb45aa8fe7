"""The word *steady*: figures of a run, with its verdicts on its windows as their evidence.

A run judges its figures itself (`steady` in the result, docs/results.md): from the windows of its measurement, by
MSER-5, SNIA's five rounds and batch means. A figure that the run does not judge has the evidence of the figure that it
follows: rates of bytes follow requests, lifetimes follow write amplification. Figures of the drive alone, such as the
memory of the map, need none. Means over repeats (`Result.repeats`) have the verdict of their worst run, and Student's t
interval over the runs. Ignored: contenders, which `verdicts` compares.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..intervals import interval
from ..result import Result
from ..units import count
from . import life

Verdict = Literal["yes", "no", "unknown"]

_OF_ALL = {"iops": "throughput", "mean": "mean time", "p50": "p50", "p99": "p99", "wa": "write amplification"}
"""The judged figures of all requests, and their names in a sentence."""
_FOLLOWS = {
    "throughput": "iops", "write_amplification": "wa", "endurance": "wa", "lifetime": "wa", "gc": "wa", "flash": "wa",
    "energy_uj": "wa", "power_w": "iops", "merge": "wa", "read_amplification": "iops",
}  # fmt: skip
"""Tables of a result whose figures follow a judged one."""
_NO_METHOD = "no run tells it for an endless one"


@dataclass(frozen=True)
class Evidence:
    """A verdict on a figure, its reason unless steady, and the interval of the figure of an endless run.

    `batches` is the number of nearly independent parts of the run behind the interval; 0 without one.
    """

    verdict: Verdict
    reason: str | None = None
    interval: tuple[float, float] | None = None
    batches: int = 0

    @property
    def half(self) -> float | None:
        """Half of the interval as a share of its middle; None without an interval."""
        if self.interval is None or sum(self.interval) <= 0:
            return None
        low, high = self.interval
        return (high - low) / (high + low)


def _read(found: Mapping[str, Any]) -> Evidence:
    interval, batches = found["interval"], (found.get("events") or {}).get("batches", 0)
    return Evidence(found["verdict"], found["reason"], tuple(interval) if interval else None, batches)


def of(result: Result, figure: str) -> Evidence:
    """The evidence for a figure by its dotted name, such as `latency_ns.read.p99`."""
    if result.repeats:
        return _of_repeats(result, figure)
    if figure in life.FIGURES and (short := life.too_short(result)):
        return Evidence("unknown", short)
    steady = result.get("steady")
    table, _, rest = figure.partition(".")
    if table == "latency_ns":
        kind, _, key = rest.partition(".")
        judged = (steady or {}) if kind == "all" else (steady or {}).get(kind) or {}
        return _read(judged[key]) if judged.get(key) else Evidence("unknown", _NO_METHOD)
    if table not in _FOLLOWS:
        return Evidence("yes")
    judged = (steady or {}).get(_FOLLOWS[table])
    if judged:
        return _read(judged)
    return Evidence("unknown", "nothing was written" if _FOLLOWS[table] == "wa" else "the run is counted, without time")


_WORST: tuple[Verdict, ...] = ("no", "unknown", "yes")


def _number(result: Result, figure: str) -> float | None:
    value: object = result.to_dict()
    for key in figure.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int | float) else None


def _of_repeats(result: Result, figure: str) -> Evidence:
    """The worst verdict of the repeats, and the interval over them, or none if all are equal."""
    found = [of(each, figure) for each in result.repeats]
    at, worst = min(enumerate(found), key=lambda each: _WORST.index(each[1].verdict))
    reason = None if worst.reason is None else f"seed {result.repeats[at]['seed']}: {worst.reason}"
    values = [value for each in result.repeats if (value := _number(each, figure)) is not None]
    over = interval(values, result.get("interval", "t")) if values else None
    if over is None or over.low is None or over.high is None:
        return Evidence(worst.verdict, reason, None, 0)
    return Evidence(worst.verdict, reason, (over.low, over.high), len(values))


def converged(reached: bool | None) -> str:
    """The end of a line on a precondition that overwrites until write amplification stays; None if it has no such end.

    The evidence is the precondition's own: consecutive windows that differ by less than 1 %.
    """
    return "" if reached is None else ", steady" if reached else ", not yet steady"


LABEL = "steady"
"""Label of the row with `sentence`."""


def spread(result: Result, figure: str) -> str:
    """The interval of a figure for a cell, such as ` ± 2.1 %`; empty without one."""
    half = of(result, figure).half
    return "" if half is None else f" ± {100 * half:.2g} %"


def sentence(result: Result) -> str:
    """Whether the figures are those of a steady drive, why not, and how long a run must be; empty if counted."""
    if result.repeats:
        return _sentence_of_repeats(result.repeats)
    steady = result.get("steady")
    if not steady:
        return ""
    found = {name: _read(steady[key]) for key, name in _OF_ALL.items() if steady[key]}
    if not found:
        return ""
    if all(each.verdict == "yes" for each in found.values()):
        widest = max((each.half or 0.0) for each in found.values())
        batches = max(steady[key]["events"]["batches"] for key in _OF_ALL if steady[key])
        what = "every figure" if len(found) > 1 else next(iter(found))
        return f"yes: {what} within {100 * widest:.2g} % of an endless run's (95 %, {batches} batches)"
    reasons: dict[tuple[Verdict, str], list[str]] = {}
    for name, each in found.items():
        if each.verdict != "yes":
            reasons.setdefault((each.verdict, each.reason or ""), []).append(name)
    said = [
        f"{verdict}: {'all figures' if len(names) == len(found) else ', '.join(names)}: {why}"
        for (verdict, why), names in sorted(reasons.items(), key=lambda each: each[0][0] != "no")
    ]
    return "; ".join([*said, *remedies(result)])


def remedies(result: Result) -> list[str]:
    """The option that makes a run long enough, with the number of requests that this takes as far as it tells."""
    needs = (result.get("steady") or {}).get("needs_requests")
    if not needs or result.get("until"):
        return []
    if result.get("trace_format"):
        times = -(-needs // max(sum(result["requests"].values()), 1))
        return [f"expected --repeat {times}"]
    return [f"expected --until 5% (about {count(needs)} requests)"]


def _sentence_of_repeats(repeats: Sequence[Result]) -> str:
    """The sentence of the first run that is not steady, and the number of such runs."""
    said = [(each["seed"], sentence(each)) for each in repeats]
    doubted = [(seed, text) for seed, text in said if not text.startswith("yes")]
    if not said[0][1]:
        return ""
    if not doubted:
        return f"yes: every figure with each of {len(said)} seeds"
    seed, text = doubted[0]
    return f"{text} (seed {seed}; {len(doubted)} of {len(said)} seeds are not steady)"


def rows(results: Sequence[Result]) -> list[tuple[str, str]]:
    """Rows of a label and the sentence of each run, under its name if there are several; equal sentences once."""
    found: dict[str, list[str]] = {}
    for result in results:
        if said := sentence(result):
            found.setdefault(said, []).append(result.label)
    alone = len(found) == 1
    return [(LABEL, said if alone else f"{', '.join(labels)}: {said}") for said, labels in found.items()]


def lasting(proofs: Sequence[bool]) -> str:
    """A reservation on claims, each of steady runs or not."""
    return "" if all(proofs) else ", in runs of this length, which are not steady"


def unlike(figures: Sequence[str], more: str) -> str:
    """A sentence on figures of some contenders without the evidence that the others have."""
    return (
        f"Unlike the others', {'; '.join(figures)} {'is' if len(figures) == 1 else 'are'} not known to be steady{more}."
    )
