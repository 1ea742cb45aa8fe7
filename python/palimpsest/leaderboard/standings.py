"""The order of the layers on each drive: figures as ratios to a reference layer, with intervals over seeds.

A ratio is the geometric mean over the workloads of figure / figure of the reference, of the same seed: what a seed does
to both cancels. The interval is Student's t at 95 % over the seeds. A layer has no ratio of a figure that one of its
runs lacks, such as the TBW of a run without erases, because means of different runs do not compare. Ignored: weights of
figures; the order is by one figure.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, did_you_mean
from ..intervals import Interval, interval
from ..metrics import Metric, metric_of
from ..sweeps.finished import FinishedPoints, PointResult
from .entries import DRIVE, LAYER, SEED, WORKLOAD

FIGURES = {
    "wa": "write_amplification", "read.p99": "latency_ns.read.p99", "write.p99": "latency_ns.write.p99",
    "dram": "mapping.bytes_peak", "tbw": "endurance.tbw", "energy": "energy_uj.total",
}  # fmt: skip
"""The figures by the short names of conditions."""

SHORT = ("WA", "read p99", "write p99", "DRAM", "TBW", "energy")
"""Headings of the figures."""


@dataclass(frozen=True)
class Standing:
    """A layer on a drive: `ratios` to the reference and, by workload, `values`; both by the names of `FIGURES`.

    `best` names the figures whose interval reaches that of the best layer; `error` is that of the first failed run.
    """

    layer: str
    ratios: dict[str, Interval]
    values: dict[str, dict[str, Interval]]
    best: frozenset[str]
    error: str | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "layer": self.layer, "error": self.error, "best": sorted(self.best),
            "ratios": {name: found._asdict() for name, found in self.ratios.items()},
            "workloads": {
                workload: {name: found._asdict() for name, found in of.items()} for workload, of in self.values.items()
            },
        }  # fmt: skip


@dataclass(frozen=True)
class Board:
    """The standings of each drive, in order; `left_out` has the layers without a run there."""

    reference: str
    by: str
    drives: dict[str, list[Standing]]
    left_out: dict[str, list[str]]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        drives = [
            {"drive": drive, "layers": [each.to_dict() for each in found], "left_out": self.left_out[drive]}
            for drive, found in self.drives.items()
        ]
        return {"schema_version": 1, "reference": self.reference, "by": self.by, "drives": drives}


def metric(name: str) -> Metric:
    """The figure of a name of `FIGURES`."""
    return metric_of(FIGURES[name])


def board(found: FinishedPoints, layers: Sequence[str], reference: str, by: str) -> Board:
    """The standings of a sweep of `Entries`. Raises InputError if the reference has no result on a drive."""
    if reference not in layers:
        said = did_you_mean(reference, layers) or f"; expected one of {', '.join(layers)}"
        raise InputError(f"--reference {reference}: no such layer competes{said}")
    drives, left_out = {}, {}
    for at, points in found.grouped([DRIVE]):
        drive = str(at[DRIVE])
        drives[drive] = _standings(drive, points, reference, by)
        known = {each.layer for each in drives[drive]}
        left_out[drive] = [layer for layer in layers if layer not in known]
    return Board(reference, by, drives, left_out)


Values = dict[str, dict[tuple[str, int], float]]
"""Figures by name, then by workload and seed."""


def _standings(drive: str, points: Sequence[PointResult], reference: str, by: str) -> list[Standing]:
    values: dict[str, Values] = {}
    errors: dict[str, str] = {}
    for point in points:
        layer, result = str(point.axes[LAYER]), point.result
        of = values.setdefault(layer, {name: {} for name in FIGURES})
        if result is None:
            errors.setdefault(layer, str(point.error))
            continue
        run = (str(point.axes[WORKLOAD]), int(str(point.axes[SEED])))
        for name in FIGURES:
            if (value := metric(name).of(result)) is not None:
                of[name][run] = value
    if not any(values.get(reference, {}).values()):
        raise InputError(f"--reference {reference}: the layer has no result on {drive}; expected one that has")
    ratios = {layer: _ratios(of, values[reference]) for layer, of in values.items()}
    best = {name: _best(name, [of[name] for of in ratios.values() if name in of]) for name in FIGURES}
    found = [
        Standing(
            layer, ratios[layer], dict(_by_workload(values[layer])),
            frozenset(name for name, each in ratios[layer].items() if _reaches(name, each, best[name])),
            errors.get(layer),
        )
        for layer in values
    ]  # fmt: skip
    sign = -1 if metric(by).better == "high" else 1
    return sorted(
        found, key=lambda each: (by not in each.ratios, sign * each.ratios[by].mean if by in each.ratios else 0)
    )


def _ratios(of: Values, base: Values) -> dict[str, Interval]:
    """The ratios of the figures that all runs of the reference and the same runs of the layer have."""
    found = {}
    for name, values in of.items():
        runs = {run for run, value in base[name].items() if value > 0}
        if not runs or any(values.get(run, 0) <= 0 for run in runs):
            continue
        by_seed: dict[int, list[float]] = {}
        for run in sorted(runs):
            by_seed.setdefault(run[1], []).append(math.log(values[run] / base[name][run]))
        found[name] = interval([math.exp(math.fsum(logs) / len(logs)) for logs in by_seed.values()])
    return found


def _by_workload(of: Values) -> Iterator[tuple[str, dict[str, Interval]]]:
    workloads = dict.fromkeys(workload for values in of.values() for workload, _ in values)
    for workload in workloads:
        runs = {name: [value for run, value in values.items() if run[0] == workload] for name, values in of.items()}
        yield workload, {name: interval(values) for name, values in runs.items() if values}


def _best(name: str, found: Sequence[Interval]) -> Interval | None:
    choose = max if metric(name).better == "high" else min
    return choose(found, key=lambda each: each.mean) if found else None


def _reaches(name: str, each: Interval, best: Interval | None) -> bool:
    if best is None:
        return False
    if metric(name).better == "high":
        return (each.high or each.mean) >= (best.low or best.mean)
    return (each.low or each.mean) <= (best.high or best.mean)
