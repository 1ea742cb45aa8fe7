"""The contenders of a comparison, the settings that differ between them, and findings on the differences.

A contender is a run, or the same run with several seeds. Settings differ if a user gave them differently: derived
values, such as the blocks of a capacity, follow from others. Ignored: settings that change no figure.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ..result import Result, flatten

Weight = Literal["unfair", "said"]
"""`unfair`: the named figures do not compare. `said`: a reader must know the difference."""

TIMES = ("latency_ns", "throughput", "jobs", "tenants")
WRITES = (
    "write_amplification", "flash", "gc", "merge", "padding_bytes", "read_amplification", "energy_uj", "power_w",
    "lifetime", "endurance",
)  # fmt: skip
LIFE = ("lifetime", "endurance")
TOTALS = ("flash", "merge", "padding_bytes", "energy_uj")
ALL = (*TIMES, *WRITES, "mapping")
"""Tables of figures that a rule may name."""

LAYER, DRIVE = "ftl.name", "ssd"
"""Settings that stand for a whole table of keys: another layer, another drive."""
_OPTIONS = ("workload", "precondition", "warmup", "seed", "fidelity")
_PLAYED = ("requests", "repeat", "format", "columns", "volumes", "arrivals", "skip_bad", "tenant")
"""Options that change the requests of a workload."""
_NO_MATTER = re.compile(r"ftl\.name$|name$")


@dataclass(frozen=True)
class Finding:
    """A difference found by a rule.

    Attributes:
        rule: name of the rule in the registry.
        weight: `unfair` or `said`.
        sentence: the difference and its effect.
        figures: tables of figures concerned, such as `latency_ns`.
        contenders: labels of the contenders concerned.
        remedy: arguments of `compare` or `run` that end the difference; None if no setting does.
    """

    rule: str
    weight: Weight
    sentence: str
    figures: tuple[str, ...]
    contenders: tuple[str, ...]
    remedy: str | None = None

    @property
    def text(self) -> str:
        """The sentence, and the remedy if there is one."""
        return f"{self.sentence}{f' Remedy: {self.remedy}' if self.remedy else ''}"

    def to_dict(self) -> dict[str, Any]:
        """The object in `checks` of the JSON of a comparison."""
        return {
            "rule": self.rule, "weight": self.weight, "sentence": self.sentence, "figures": list(self.figures),
            "contenders": list(self.contenders), "remedy": self.remedy,
        }  # fmt: skip


@dataclass(frozen=True)
class Found:
    """The part of a finding that a rule computes; without `labels` the finding concerns all contenders."""

    weight: Weight
    sentence: str
    remedy: str | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Contender:
    """A run under the label of a comparison; `results` has one for each seed, of which rules read the first."""

    label: str
    results: tuple[Result, ...]

    @property
    def result(self) -> Result:
        """The result of the first seed."""
        return self.results[0]

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved configuration by dotted keys."""
        found = self.result.get("config")
        return flatten(found) if isinstance(found, dict) else {}

    @cached_property
    def basis(self) -> Mapping[str, Any]:
        """The conditions that the run recorded; empty in a result of an earlier version."""
        return self.result.get("basis") or {}

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """The options of the run; empty if the result does not have them."""
        provenance = self.result.get("provenance") or {}
        return provenance.get("options") or {}

    @cached_property
    def given(self) -> dict[str, str]:
        """The configuration keys that the user gave, and their texts."""
        pairs = (str(text).partition("=") for text in self.options.get("overrides") or ())
        return {key: value for key, _, value in pairs}

    @cached_property
    def played(self) -> tuple[object, ...]:
        """The requests of the run: contents of files, or else the name, and options that choose among them."""
        digests = ((self.result.get("provenance") or {}).get("files_blake2b") or {}).values()
        files = tuple(sorted(map(str, digests))) if self.result.get("trace_format") else ()
        return (files or self.result.get("workload"), *(repr(self.options.get(name)) for name in _PLAYED))

    def setting(self, key: str) -> object:
        """The resolved value of a key, or the text that the user gave."""
        return self.config.get(key, self.given.get(key))

    def share(self, path: str) -> float | None:
        """A number of `basis` by its dotted name."""
        value = flatten(dict(self.basis)).get(path)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _runs(result: Result) -> list[Result]:
    """The runs behind a result, labelled as such."""
    suffix = f"{result.label}-seed-"
    of = [Result(run.to_dict() | {"label": f"{suffix}{run['seed']}"}, run.series) for run in result.repeats]
    return of or [result]


def contenders(results: Sequence[Result]) -> list[Contender]:
    """The contenders of results: repeats, and runs whose labels differ in the seed alone, are one."""
    groups: dict[str, list[Result]] = {}
    for result in (run for each in results for run in _runs(each)):
        label = result.label.removesuffix(f"-seed-{result.get('seed')}")
        if label == result.label and label in groups:
            label = f"{label} ({len(groups) + 1})"
        groups.setdefault(label, []).append(result)
    return [Contender(label, tuple(found)) for label, found in groups.items()]


class Field:
    """The contenders of a comparison together, and `changed`: the settings that differ between them."""

    def __init__(self, found: Sequence[Contender]) -> None:
        self.all = list(found)
        self.changed = frozenset(self._changed())

    def differs(self, of: Callable[[Contender], object]) -> bool:
        """Whether a property differs between contenders that know it."""
        return len({repr(value) for each in self.all if (value := of(each)) is not None}) > 1

    def _changed(self) -> set[str]:
        keys = {key for each in self.all for key in each.given}
        drives = self.differs(lambda each: each.options.get("ssd", each.result.get("ssd")))
        if any(not each.options for each in self.all) or (
            drives and not self.differs(lambda each: each.result.get("ssd"))
        ):
            keys |= {key for each in self.all for key in each.config}
        found = {key for key in keys if not _NO_MATTER.match(key) and self._varies(Contender.setting, key)}
        found |= {DRIVE} if self.differs(lambda each: each.result.get("ssd")) else set()
        found |= {LAYER} if self.differs(lambda each: each.result.get("ftl")) else set()
        return found | {f"--{name}" for name in _OPTIONS if self._varies(_option, name)}

    def _varies(self, of: Callable[[Contender, str], object], name: str) -> bool:
        return self.differs(lambda each: of(each, name))

    def weight(self, own: Callable[[str], bool]) -> Weight:
        """`said` if nothing but settings that `own` accepts differs, because these are then the subject."""
        return "said" if all(map(own, self.changed)) else "unfair"

    def among(self, own: Callable[[str], bool]) -> list[str]:
        """The changed settings that `own` accepts, in order."""
        return sorted(filter(own, self.changed))

    def values(self, key: str) -> str:
        """The values of a setting by contender: `7% (a), 28% (b)`."""
        found: dict[str, list[str]] = {}
        for each in self.all:
            found.setdefault(_shown(each, key), []).append(each.label)
        return ", ".join(f"{value} ({', '.join(labels)})" for value, labels in found.items())

    def as_first(self, keys: Sequence[str]) -> str | None:
        """The runs with the first contender's values of these keys, as arguments of `compare`."""
        first, made = self.all[0], []
        for each in self.all[1:]:
            changes = {key: first.given.get(key, first.setting(key)) for key in keys if not key.startswith("--")}
            if any(repr(each.setting(key)) != repr(first.setting(key)) for key in changes):
                made.append(self.run(each, changes))
        options = [f"{key} {_shown(first, key)}" for key in keys if key.startswith("--")]
        return " ".join([*made, *options]) or None

    def with_value(self, key: str, value: str, labels: Iterable[str]) -> str:
        """Arguments that give a key one value: `--set`, or the runs `labels` anew if a run has a value of its own."""
        if key not in self.changed:
            return f"--set {key}={value}"
        return " ".join(self.run(each, {key: value}) for each in self.all if each.label in labels)

    def run(self, of: Contender, changes: Mapping[str, object]) -> str:
        """A contender with changed keys as an argument of `compare`: `LABEL:ftl=NAME,KEY=VALUE,...`."""
        common = {
            key for key, value in of.given.items() if all(each.given.get(key) == value for each in self.all)
        }  # fmt: skip
        own = {key: value for key, value in of.given.items() if key not in common} | dict(changes)
        keys = {"ftl": of.result.get("ftl"), **own}
        return f"{of.label}:" + ",".join(f"{key}={_text(value)}" for key, value in keys.items())


def _text(value: object) -> str:
    """A value as `--set` takes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _option(of: Contender, name: str) -> object:
    """A property of a run beside its configuration."""
    if name == "workload":
        return of.played
    if name == "seed":
        return sorted(str(each.get("seed")) for each in of.results)
    if name == "precondition":
        return (of.result.get("precondition") or {}).get("spec")
    return of.options.get(name, of.result.get(name)) or ("auto" if name == "warmup" else None)


def _shown(of: Contender, key: str) -> str:
    """A setting in a sentence."""
    if key == "--workload":
        return str(of.result.get("workload"))
    if key == "--seed":
        return ", ".join(str(each.get("seed")) for each in of.results)
    if key == DRIVE:
        return str(of.result.get("ssd"))
    return str(_option(of, key[2:])) if key.startswith("--") else _text(of.setting(key))


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
