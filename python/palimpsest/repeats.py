"""The mean of runs with several seeds as one result, so that tables, charts and sentences have one contender.

A number is the mean over the runs that measured it, distributions of response times are merged, and parts of response
times are summed. The first run gives the texts. Ignored: series over time, maps of blocks and timelines, which
belong to one seed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .result import Result
from .sketches import KINDS, Sketch, merged

_NUMBER = re.compile(r"\d[\d,.]*")
_OF_FIRST = ("config", "provenance", "schema_version", "seed", "label", "steady", "run_in", "latency_sketch", "against")
"""Keys of a result that are no figures; the first run gives them."""


def mean(label: str, repeats: Sequence[Result], method: str = "t") -> Result:
    """The mean of one or more runs of a contender; `method` is the method of the intervals of the figures.

    A response time of 0 in any run is 0, because the drive models none.
    """
    runs = [result.to_dict() for result in repeats]
    data = {key: _mean(key, [run.get(key) for run in runs]) for key in runs[0] if key not in _OF_FIRST}
    data |= {key: runs[0][key] for key in _OF_FIRST if key in runs[0]}
    data |= {"label": label, "notes": notes(repeats), "interval": method}
    if any("latency_sketch" in run for run in runs):
        found = {kind: _sketch(runs, kind) for kind in KINDS}
        data["latency_sketch"] = {
            kind: each and {"lower_ns": each.lower_ns, "count": each.count} for kind, each in found.items()
        }
    return Result(data, _series(repeats), repeats[0].configuration, repeats)


def notes(repeats: Sequence[Result]) -> list[str]:
    """The notes of runs; notes that differ in numbers only appear once, with the first seed that has them."""
    found: dict[str, tuple[str, Any]] = {}
    differing: set[str] = set()
    for result in repeats:
        for note in result.get("notes", []):
            shape = _NUMBER.sub("#", note)
            if found.setdefault(shape, (note, result.get("seed")))[0] != note:
                differing.add(shape)
    return [f"{note} (seed {seed})" if shape in differing else note for shape, (note, seed) in found.items()]


def _mean(key: str, values: Sequence[Any]) -> Any:  # noqa: ANN401 - each key has a type of its own
    """The mean of the values of a key in all runs."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    first = known[0]
    if key == "why":
        return _why(known)
    if isinstance(first, bool):
        return any(known)
    if isinstance(first, int | float):
        return first if all(value == first for value in known) else sum(known) / len(known)
    if isinstance(first, dict):
        names = dict.fromkeys(name for value in known for name in value)
        made = {name: _mean(name, [value.get(name) for value in known]) for name in names}
        is_time = "p50" in made and any(value.get("p50") == 0 for value in known)
        return made | {"p50": 0} if is_time else made
    if isinstance(first, list):
        if any(len(value) != len(first) for value in known):
            return []
        return [_mean("", column) for column in zip(*known, strict=True)]
    return first


def _why(known: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The parts of response times, summed by kind of request and percentile; a latency is the mean."""
    made: dict[str, dict[str, Any]] = {}
    for kind in dict.fromkeys(kind for each in known for kind in each):
        of_kind = [each[kind] for each in known if kind in each]
        made[kind] = {}
        for percentile in of_kind[0]:
            found = [each[percentile] for each in of_kind if percentile in each]
            parts = dict.fromkeys(part for each in found for part in each["parts_ns"])
            made[kind][percentile] = {
                "requests": sum(each["requests"] for each in found),
                "latency_ns": sum(each["latency_ns"] for each in found) / len(found),
                "parts_ns": {part: sum(each["parts_ns"].get(part, 0) for each in found) for part in parts},
            }
    return made


def _sketch(runs: Iterable[Mapping[str, Any]], kind: str) -> Sketch | None:
    found = [sketch for run in runs if (sketch := Sketch.of(run, kind))]
    return merged(found) if found else None


def _series(repeats: Sequence[Result]) -> dict[str, Any] | None:
    """The histograms of all runs together; None unless every run kept its series."""
    if not all(result.series and result.series.get("latency") for result in repeats):
        return None
    made: dict[str, Any] = {}
    for kind in KINDS:
        found = [each for result in repeats if (each := (result.series or {})["latency"].get(kind))]
        together = merged(Sketch(each["lower_ns"], each["count"]) for each in found)
        made[kind] = {"lower_ns": together.lower_ns, "count": together.count}
    return {"latency": made}
