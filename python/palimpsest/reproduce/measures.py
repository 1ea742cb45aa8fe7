"""Measures of results, changes between results, and means over seeds, for all reproductions."""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from ..result import Result
from .templates import evaluate

__all__ = ["change", "iops", "mean", "means", "over_seeds", "response_ns", "seeds_note", "with_spread"]


def change(of: float | None, base: float | None) -> float | None:
    """The change from `base` in percent; None where there is nothing to change."""
    return 100 * (of / base - 1) if of is not None and base else None


def response_ns(result: Result) -> float:
    """Mean response time of all requests in nanoseconds."""
    return float(result["latency_ns"]["all"]["mean"])


def iops(result: Result) -> float:
    """Requests a second of simulated time."""
    return float(result["throughput"]["iops"])


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of those that were measured; None where none was."""
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def over_seeds(effects: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The mean of each effect, from one mapping for each seed."""
    return {name: mean(each[name] for each in effects) for name in effects[0]}


def seeds_note(effects: Sequence[Mapping[str, float | None]], name: str) -> str:
    """Spread of an effect over seeds, as "3 seeds: 1.2 to 1.4."; empty if no seed measured the effect."""
    values = [value for each in effects if (value := each[name]) is not None]
    if len(values) > 1 and min(values) == max(values):
        return f"{len(effects)} seeds: all {values[0]:.4g}, so no spread is known."
    return f"{len(effects)} seeds: {min(values):.4g} to {max(values):.4g}." if values else ""


def with_spread(data: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Rows of several seeds as one row for each combination of keys, in their order.

    Args:
        data: a row for each seed and combination of `keys`; all other columns are numbers.
        keys: columns that name a row.

    Returns:
        The keys, and of each other column `x` the mean as `x`, and the least and greatest as `x_low` and `x_high`.
    """
    others = [name for name in data.columns if name not in keys]
    made = [
        expression
        for name in others
        for expression in (
            pl.col(name).mean(),
            pl.col(name).min().cast(pl.Float64).alias(f"{name}_low"),
            pl.col(name).max().cast(pl.Float64).alias(f"{name}_high"),
        )
    ]
    return data.group_by(keys, maintain_order=True).agg(made)


def means(data: pl.DataFrame, keys: Sequence[str], then: Mapping[str, str]) -> pl.DataFrame:
    """Rows of several seeds as one row for each combination of keys, in their order.

    Args:
        data: a row for each seed and combination of `keys`; all other columns are numbers.
        keys: columns that name a row.
        then: further columns, as expressions over the means (`templates`).

    Returns:
        The keys, the mean of each other column over the seeds with a number, and the further columns.
    """
    others = [name for name in data.columns if name not in keys]
    rows = []
    for each in data.partition_by(keys, maintain_order=True):
        row = each.select(keys).row(0, named=True) | {name: mean(each[name]) for name in others}
        rows.append(row | {name: evaluate(expression, row) for name, expression in then.items()})
    numbers = dict.fromkeys((*others, *then), pl.Float64())
    return pl.DataFrame(rows, schema={**{name: data.schema[name] for name in keys}, **numbers})
