"""Real traces of a paper's workloads: files found by name, and the runs that replay them in the place of a preset.

`[real]` of a paper's TOML has:

- `published`: where the collections of the paper's traces are published, as a sentence.
- `names`: for each workload with a published trace, further patterns of names; a file of the workload's own name, and
  of pieces of it (`hm_0_first20k`), counts without.
- `instead`: patterns of other volumes or servers of the collection, which stand in where no file has the name.
- `plays`: how many times a run plays its workload (an expression; 1 if absent); `set`, names for all runs, and `full`,
  for those of `--full`; `add`, further keys; `layout`, the precondition in the place of a layout of files.
- `figures`, and `grids` of these: shown for real traces, too; `claims`: patterns of claims by the workload that they
  need, or `any` for those over whatever traces were found.

`HOW` says how a trace is replayed. Ignored: a second file for a workload, such as the next hour of a server.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from .. import _core, units
from ..errors import Error
from ..traces import TraceOptions, describe
from .templates import evaluate, fill

__all__ = ["HOW", "Found", "find", "replaced", "unreadable"]

HOW = """\
Each runs as its synthetic workload does (drive, layer, depth, replays), from its start and at most as many requests; \
volumes lie apart, only pieces of 1 MiB that a trace touches have addresses, and addresses beyond the drive are folded \
into it. Means, and the least and most, are over the traces found."""

_PLACED = ("host.fold=true", "host.compact=1MiB")
_COLLECTION = re.compile(r"(msr|fiu|msps)[-_]")


@dataclass(frozen=True)
class Found:
    """The trace of each workload, those `instead` of another volume or server, workloads without any, other files.

    `problems` are messages of files that cannot be read.
    """

    files: Mapping[str, Path]
    instead: Sequence[str]
    missing: Sequence[str]
    others: Mapping[str, Path]
    problems: Sequence[str] = ()

    def described(self, published: str) -> str:
        """What was found and what was not, and where the traces are published."""

        def listed(names: Iterable[str]) -> str:
            return ", ".join(f"{name} ({self.files[name].name})" for name in names)

        own = [name for name in self.files if name not in self.instead]
        parts = [f"Real traces: {listed(own)}."] if own else []
        if self.instead:
            parts.append(f"Other volumes or servers of the collection in their place: {listed(self.instead)}.")
        parts += [f"Cannot be read and is left out: {problem}." for problem in self.problems]
        if not self.files and not self.others and not self.problems:
            parts.append("No folder of real traces was given (--traces DIR).")
        elif self.missing:
            parts.append(f"Not found: {', '.join(self.missing)}.")
        if self.others:
            parts.append(f"For no workload of the paper: {', '.join(path.name for path in self.others.values())}.")
        return " ".join([*parts, published]).strip()

    def has(self, needed: Mapping[str, Sequence[str]], claim: str) -> bool:
        """Whether a trace was found that a claim needs; `needed` lists patterns of claims by workload, or by `any`."""
        there = [*self.files, "any"]
        return any(fnmatch(claim, each) for name, claims in needed.items() if name in there for each in claims)


def _key(path: Path) -> str:
    """The name of a trace: of the file, without endings and the name of the collection."""
    return _COLLECTION.sub("", path.name.lower().partition(".")[0], count=1)


def unreadable(files: Mapping[str, Path]) -> dict[str, str]:
    """The messages of files whose first million requests cannot be read, by name."""
    problems = {}
    for name, path in files.items():
        try:
            _length(path, 1_000_000)
        except Error as problem:
            problems[name] = str(problem)
    return problems


def find(described: Mapping[str, Any], files: Mapping[str, Path], problems: Mapping[str, str] | None = None) -> Found:
    """The traces of the workloads of `[real]` among the named files of a folder, without those in `problems`."""
    problems = problems or {}
    names: Mapping[str, Sequence[str]] = described.get("names", {})
    own = {name: [name, f"{name}_*", f"{name}-*", *more] for name, more in names.items()}
    left = {name: path for name, path in files.items() if name not in problems}
    found, instead = dict[str, Path](), list[str]()
    for patterns, is_other in ((own, False), (described.get("instead", {}), True)):
        for workload, each in patterns.items():
            fits = [name for name, path in left.items() if any(fnmatch(_key(path), one.lower()) for one in each)]
            if fits and workload not in found:
                found[workload] = left.pop(fits[0])
                instead += [workload] * is_other
    return Found(found, instead, [name for name in names if name not in found], left, list(problems.values()))


@cache
def _length(path: Path, most: int) -> int:
    """Requests of a trace, up to `most`."""
    options = TraceOptions(workload=str(path), file=True, requests=most, skip_bad=True)
    return int(describe(options)[0]["requests"]["all"])


def _last(key: str, text: str) -> str | None:
    """The last value of a key of a specification."""
    found: list[str] = re.findall(rf"(?:^|,)\s*{key}=([^,\s]+)", text)
    return found[-1] if found else None


def replaced(described: Mapping[str, Any], made: dict[str, Any], path: Path, names: Mapping[str, Any]) -> None:
    """Puts the trace `path` in the place of the workload of a run.

    `made` has the fields of `RunOptions`, which change; its `workload` begins with a preset. `described` is `[real]`,
    and `names` are those of the cell of the run.
    """
    text = f"{_core.workload_spec(made['workload'].partition(',')[0])},{made['workload']}"
    count, depth = units.parse_count(_last("n", text) or ""), _last("iodepth", text)
    plays = evaluate(described.get("plays", "1"), names)
    total = min(count, plays * _length(path, count // plays))
    more = [f"host.iodepth={depth}" if depth else "", *fill(described.get("add", []), {**names, **made})]
    made |= {"workload": str(path), "requests": total, "skip_bad": True, "repeat": str(plays) if plays > 1 else None}
    made |= {"overrides": (*made["overrides"], *_PLACED, *filter(None, more))}
    if (warmup := made.get("warmup")) is not None and str(warmup).isdigit():
        made["warmup"] = str(total * int(warmup) // count)
    if made["precondition"] == "layout":
        made["precondition"] = described["layout"]
