"""The order of the layers on each drive: figures as ratios to a reference layer, with intervals over seeds.

A ratio is the geometric mean over the workloads of figure / figure of the reference, of the same seed: what a seed does
to both cancels. The interval is Student's t at 95 % over the seeds. A layer has no ratio of a figure that one of its
runs lacks, such as the TBW of a run without erases, because means of different runs do not compare. Ignored: weights of
figures; the order is by one figure.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import fair
from ..errors import InputError, did_you_mean
from ..intervals import Interval, interval
from ..metrics import Metric, is_silenced, metric_of
from ..sweeps.checks import of_points
from ..sweeps.finished import FinishedPoints, PointResult
from ..verdicts import leading
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

    `best` names the figures at which the layer is best, or not decided to be worse than the best (`verdicts`); `error`
    has the error of the first failed run.
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
    """The standings of each drive, in order; `left_out` has the layers without a run there.

    `checks` has the findings on each layer beside the reference, by drive and layer.
    """

    reference: str
    by: str
    drives: dict[str, list[Standing]]
    left_out: dict[str, list[str]]
    checks: dict[str, dict[str, list[fair.Finding]]]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        drives = [
            {
                "drive": drive,
                "layers": [each.to_dict() for each in found],
                "left_out": self.left_out[drive],
                "checks": [each.to_dict() for of in self.checks[drive].values() for each in of],
            }
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
    drives, left_out, checks = {}, {}, {}
    for at, points in found.grouped([DRIVE]):
        drive = str(at[DRIVE])
        checks[drive] = _checks(points, reference)
        drives[drive] = [_silenced(each, checks[drive]) for each in _standings(drive, points, reference, by)]
        known = {each.layer for each in drives[drive]}
        left_out[drive] = [layer for layer in layers if layer not in known]
    return Board(reference, by, drives, left_out, checks)


def _checks(points: Sequence[PointResult], reference: str) -> dict[str, list[fair.Finding]]:
    """The findings on each layer beside the reference under the first workload that finds any, by layer."""
    found: dict[str, list[fair.Finding]] = {}
    for workload in dict.fromkeys(point.axes[WORKLOAD] for point in points):
        of = [point for point in points if point.axes[WORKLOAD] == workload]
        base = [point for point in of if point.axes[LAYER] == reference]
        for layer in dict.fromkeys(str(point.axes[LAYER]) for point in of):
            if layer != reference and not found.get(layer):
                found[layer] = of_points([*base, *(point for point in of if point.axes[LAYER] == layer)], LAYER)
    return found


def _silenced(each: Standing, checks: dict[str, list[fair.Finding]]) -> Standing:
    """A standing that is not best in figures that do not compare with the reference's."""
    silent = fair.silenced(checks.get(each.layer, ()))
    return replace(each, best=frozenset(name for name in each.best if not is_silenced(metric(name).path, silent)))


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
    by_seed = {layer: _ratios(of, values[reference]) for layer, of in values.items()}
    ratios = {layer: {name: interval(each) for name, each in of.items()} for layer, of in by_seed.items()}
    best = {
        name: leading({layer: of[name] for layer, of in by_seed.items() if name in of}, metric(name).better)
        for name in FIGURES
    }
    found = [
        Standing(
            layer, ratios[layer], dict(_by_workload(values[layer])),
            frozenset(name for name in ratios[layer] if layer in best[name]),
            errors.get(layer),
        )
        for layer in values
    ]  # fmt: skip
    sign = -1 if metric(by).better == "high" else 1
    return sorted(
        found, key=lambda each: (by not in each.ratios, sign * each.ratios[by].mean if by in each.ratios else 0)
    )


def _ratios(of: Values, base: Values) -> dict[str, list[float]]:
    """The ratios by seed of the figures that all runs of the reference and the same runs of the layer have."""
    found = {}
    for name, values in of.items():
        runs = {run for run, value in base[name].items() if value > 0}
        if not runs or any(values.get(run, 0) <= 0 for run in runs):
            continue
        by_seed: dict[int, list[float]] = {}
        for run in sorted(runs):
            by_seed.setdefault(run[1], []).append(math.log(values[run] / base[name][run]))
        found[name] = [math.exp(math.fsum(by_seed[seed]) / len(by_seed[seed])) for seed in sorted(by_seed)]
    return found


def _by_workload(of: Values) -> Iterator[tuple[str, dict[str, Interval]]]:
    workloads = dict.fromkeys(workload for values in of.values() for workload, _ in values)
    for workload in workloads:
        runs = {name: [value for run, value in values.items() if run[0] == workload] for name, values in of.items()}
        yield workload, {name: interval(values) for name, values in runs.items() if values}
