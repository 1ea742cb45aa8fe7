"""A comparison as a LaTeX table (booktabs): a row for each figure, a column for each run.

Replicates have a column for each label: means, ± half of the 95 % interval. The CSV file has the bounds.
"""

from typing import Any

import polars as pl

from .. import evidence
from ..errors import InputError
from ..metrics import METRICS, Metric
from ..result import Result
from .series import Source

_SPECIAL = {"\\": r"\textbackslash{}", **{sign: rf"\{sign}" for sign in "&%$#_{}"}, "~": r"\textasciitilde{}"}


def table(source: Source) -> pl.DataFrame:
    """Figures with their values in base units: nanoseconds, bytes, microjoules. Raises InputError for a sweep."""
    if source.sweep is not None:
        raise InputError("figure table: a sweep is a table, sweep.parquet; expected folders of runs")
    rows = []
    for metric in METRICS:
        if not metric.is_shown(source.results.values()):
            continue
        row: dict[str, Any] = {"figure": metric.label, "name": ".".join(metric.path)}
        for label, result in source.results.items():
            row[label] = metric.of(result)
            if result.repeats:
                low, high = evidence.of(result, row["name"]).interval or (None, None)
                row |= {f"{label} low": low, f"{label} high": high}
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None, strict=False)


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text).replace(" us", r" \textmu s").replace("±", r"$\pm$")


def _cell(metric: Metric, result: Result) -> str:
    """A figure, with half of its interval over the seeds if it has some."""
    return metric.cell(result) + (evidence.spread(result, ".".join(metric.path)) if result.repeats else "")


def tex(source: Source) -> str:
    """The table as LaTeX."""
    data = table(source)
    labels = list(source.results)
    shown = {".".join(metric.path): metric for metric in METRICS}
    lines = [r"\begin{tabular}{l" + "r" * len(labels) + "}", r"\toprule"]
    lines.append(" & ".join(["", *map(_escaped, labels)]) + r" \\")
    lines.append(r"\midrule")
    for row in data.to_dicts():
        values = [_cell(shown[row["name"]], result) for result in source.results.values()]
        lines.append(" & ".join(map(_escaped, [row["figure"], *values])) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])
