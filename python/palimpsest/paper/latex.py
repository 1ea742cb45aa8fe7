"""A comparison as a LaTeX table (booktabs): a row for each figure, a column for each run."""

import polars as pl

from ..errors import InputError
from ..metrics import METRICS
from .series import Source

_SPECIAL = {"\\": r"\textbackslash{}", **{sign: rf"\{sign}" for sign in "&%$#_{}"}, "~": r"\textasciitilde{}"}


def table(source: Source) -> pl.DataFrame:
    """Figures with their values in base units: nanoseconds, bytes, microjoules. Raises InputError for a sweep."""
    if source.sweep is not None:
        raise InputError("figure table: a sweep is a table, sweep.parquet; expected folders of runs")
    rows = []
    for metric in METRICS:
        values = {label: metric.of(result) for label, result in source.results.items()}
        if metric.is_shown(source.results.values()):
            rows.append({"figure": metric.label, "name": ".".join(metric.path)} | values)
    return pl.DataFrame(rows, infer_schema_length=None, strict=False)


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text).replace(" us", r" \textmu s")


def tex(source: Source) -> str:
    """The table as LaTeX."""
    data = table(source)
    labels = list(source.results)
    shown = {".".join(metric.path): metric for metric in METRICS}
    lines = [r"\begin{tabular}{l" + "r" * len(labels) + "}", r"\toprule"]
    lines.append(" & ".join(["", *map(_escaped, labels)]) + r" \\")
    lines.append(r"\midrule")
    for row in data.to_dicts():
        values = [shown[row["name"]].cell(source.results[label]) for label in labels]
        lines.append(" & ".join(map(_escaped, [row["figure"], *values])) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])
