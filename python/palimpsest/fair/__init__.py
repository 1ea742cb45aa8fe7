"""When do two runs compare? The registry of rules on fair comparisons, and the words that they forbid.

Guide: docs/fair.md. All that compares runs asks here: `compare`, `sweep`, `leaderboard`, `reproduce`, `figure`, pages.
A rule sees the contenders together and returns a finding: `unfair` if the figures that the rule names do not compare,
`said` if a reader must know the difference. Ignored: chance, which intervals over seeds show.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..result import Result
from . import conditions, load
from .contenders import ALL, LIFE, TIMES, TOTALS, WRITES, Contender, Field, Finding, Found, contenders

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["RULES", "Finding", "Rule", "checks", "labelled", "merged", "of_run", "silenced", "texts", "warnings"]


@dataclass(frozen=True)
class Rule:
    """A rule: `compares` names in a table of the documentation the things that must be alike.

    `figures` are the tables concerned. `of_run`: the rule needs one run alone. `silences`: figures have no better or
    worse even if the finding is `said`.
    """

    name: str
    compares: str
    figures: tuple[str, ...]
    find: Callable[[Field], Found | None]
    of_run: bool = False
    silences: bool = False


RULES: tuple[Rule, ...] = (
    Rule("acknowledgement", "moment of the answer to a write", TIMES, conditions.acknowledgement),
    Rule("durability", "moment from which no power cut loses a write", TIMES, conditions.durability),
    Rule("unit", "bytes that collection erases together", (*TIMES, *WRITES), conditions.unit),
    Rule("spare", "spare space that the layer can use", (*TIMES, *WRITES), conditions.spare),
    Rule("dram", "memory of map, buffer and read-ahead", (*TIMES, *WRITES), conditions.dram),
    Rule("caches", "keys of buffers and caches", ALL, conditions.caches),
    Rule("drive", "drive, geometry and part", ALL, conditions.drive),
    Rule("conditions", "times, errors, faults, parity, scheduling", ALL, conditions.conditions),
    Rule("load", "requests, arrivals and depth", ALL, conditions.load),
    Rule("precondition", "writes before the run", ALL, conditions.precondition),
    Rule("warmup", "begin of the measurement", ALL, conditions.warmup),
    Rule("seed", "seeds", ALL, conditions.seed),
    Rule("fidelity", "fidelity", ALL, conditions.fidelity),
    Rule("payload", "payload and checks", ("sim",), conditions.payload),
    Rule("length", "runs to the last request", ALL, conditions.length),
    Rule("work", "numbers of requests served", TOTALS, conditions.work, silences=True),
    Rule("handles", "handles that the workload names", (*TIMES, *WRITES), load.handles, of_run=True),
    Rule("idle", "a drive that is busy enough to show a policy", TIMES, load.idle, of_run=True),
    Rule("open blocks", "spare blocks for each open block", (*TIMES, *WRITES), load.open_blocks, of_run=True),
    Rule("erases", "erases enough for a word on lifetime", LIFE, load.erases, silences=True),
    Rule("cached map", "map caches that evict", (*TIMES, *WRITES), load.cached_map),
    Rule("steadiness", "figures that are steady", (*TIMES, *WRITES), load.steadiness),
)
"""All rules, in the order of their findings."""


def checks(results: Sequence[Result]) -> list[Finding]:
    """The findings on a comparison, unfair ones first; none for less than two contenders."""
    return _apply(contenders(results), RULES)


def labelled(pairs: Iterable[tuple[str, Result]]) -> list[Finding]:
    """As `checks`, for results under other labels, such as the points of a sweep."""
    groups: dict[str, list[Result]] = {}
    for label, result in pairs:
        groups.setdefault(label, []).append(result)
    return _apply([Contender(label, tuple(found)) for label, found in groups.items()], RULES)


def of_run(result: Result) -> list[Finding]:
    """The findings on one run alone."""
    return _findings(Field([Contender(result.label, (result,))]), [rule for rule in RULES if rule.of_run])


def _apply(found: Sequence[Contender], rules: Sequence[Rule]) -> list[Finding]:
    return _findings(Field(found), rules) if len(found) > 1 else []


def _findings(field: Field, rules: Sequence[Rule]) -> list[Finding]:
    everyone = tuple(each.label for each in field.all)
    made = [
        Finding(rule.name, found.weight, found.sentence, rule.figures, found.labels or everyone, found.remedy)
        for rule in rules
        if (found := rule.find(field)) is not None
    ]
    return sorted(made, key=lambda each: each.weight != "unfair")


_SILENCING = frozenset(rule.name for rule in RULES if rule.silences)


def silenced(found: Iterable[Finding]) -> tuple[str, ...]:
    """Tables of figures of which a comparison must not say better, worse or best."""
    concerned = (each for each in found if each.weight == "unfair" or each.rule in _SILENCING)
    return tuple(dict.fromkeys(name for each in concerned for name in each.figures))


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """The findings on several comparisons, each rule once: the first sentence, with the number of comparisons."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for each in findings:
        groups.setdefault((each.rule, each.weight), []).append(each)
    return sorted(map(_one, groups.values()), key=lambda each: each.weight != "unfair")


def _one(found: Sequence[Finding]) -> Finding:
    if len(found) == 1:
        return found[0]
    labels = dict.fromkeys(label for each in found for label in each.contenders)
    sentence = f"{found[0].sentence} ({len(found):,} comparisons have this difference; this is the first.)"
    return replace(found[0], sentence=sentence, contenders=tuple(labels))


def texts(found: Iterable[Finding], weight: str) -> list[str]:
    """The sentences of one weight, with remedies."""
    return [each.text for each in found if each.weight == weight]


def warnings(found: Iterable[Finding]) -> list["Text"]:
    """The unfair findings for rich, above the figures, each on a line, and an empty line behind them."""
    from rich.text import Text

    said = [Text(text, style="yellow") for text in texts(found, "unfair")]
    return [*said, Text()] if said else []
