"""Checks of the comparisons in a sweep: points that differ in one axis, and in axes that follow from it, by `fair`.

Seeds of a point are one contender. Ignored: points that differ in several axes, which no axis compares, and of large
sweeps the comparisons beyond `MOST_READ` points of an axis.
"""

from collections.abc import Iterable, Iterator

from .. import fair
from .finished import FinishedPoints, PointResult
from .values import axis_text

MOST_READ = 2_000
"""Most points that the comparisons along an axis read."""
_SEED = "seed"


def _follow(sweep: FinishedPoints, axis: str) -> set[str]:
    """The axes whose value the value of `axis` determines, `axis` among them."""
    found = set()
    for other in sweep.axes:
        pairs = {(point.axes.get(axis), point.axes.get(other)) for point in sweep}
        if len(pairs) == len({value for value, _ in pairs}):
            found.add(other)
    return found


def _comparisons(sweep: FinishedPoints, axis: str) -> Iterator[list[PointResult]]:
    """Points that agree in all axes but `axis`, the axes that follow, and the seed."""
    rest = [other for other in sweep.axes if other not in _follow(sweep, axis) | {_SEED}]
    for _, points in sweep.grouped(rest):
        if len({point.axes.get(axis) for point in points}) > 1:
            yield points


def checks(sweep: FinishedPoints) -> list[fair.Finding]:
    """The findings on all comparisons along axes, each rule once, with the number of comparisons."""
    found: list[fair.Finding] = []
    for axis in sweep.axes:
        read = 0
        for points in _comparisons(sweep, axis) if axis != _SEED else ():
            read += len(points)
            if read > MOST_READ:
                break
            found += of_points(points, axis)
    return fair.merged(found)


def of_points(points: Iterable[PointResult], axis: str) -> list[fair.Finding]:
    """The findings on points that differ in `axis` and perhaps the seed; failed points are left out."""
    return fair.labelled(
        (axis_text(point.axes.get(axis)), result) for point in points if (result := point.result) is not None
    )
