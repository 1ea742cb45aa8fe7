"""Figures by their descriptions: the data that they show, and the panels of their picture.

`[[figures]]` has `id`, `title`, `note`, `table`, and what to change of the table: `where` (rows), `with` (columns to
add, in groups that use each other), `columns` (to keep; `x~` keeps `x`, `x_low` and `x_high`). `panels` lists drawings: `bars`, `lines`
or `levels` with the arguments of the function of that name in `figures`, their options, and the changes of `_CHANGES`.
`each` repeats a figure or a panel. Conditions and columns are expressions of Polars over `col`, `lit` and `pl`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from . import figures
from .claims import Claim
from .figures import Draw, Figure
from .templates import evaluate, fill

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["figure", "neighbours", "repeated", "shaped"]

_POLARS = {"pl": pl, "col": pl.col, "lit": pl.lit}
_KINDS: dict[str, Callable[..., Draw]] = {"bars": figures.bars, "lines": figures.lines, "levels": figures.levels}
_SHAPES = ("of", "where", "with")
"""Expressions over the data; `repeated` leaves them as they are."""
_OPTIONS = ("log", "paper", "line", "from_zero")


def _log_x(axes: "Axes", _value: Any) -> None:  # noqa: ANN401
    axes.set_xscale("log", base=2)


_CHANGES: dict[str, Callable[["Axes", Any], object]] = {
    "slanted": lambda axes, value: axes.tick_params(axis="x", rotation=value[0], labelsize=value[1]),
    "line_at": lambda axes, value: axes.axhline(value, color="black", linewidth=0.8),
    "bottom": lambda axes, value: axes.set_ylim(bottom=value),
    "limits": lambda axes, value: axes.set_ylim(*value),
    "legend": lambda axes, value: axes.legend(ncols=value, loc="upper right", fontsize=8),
    "log_x": _log_x,
}
"""Changes of a panel after it is drawn, in this order: angle and size of names, a line across, limits, legend, axis."""


def repeated(described: Mapping[str, Any], names: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The description, filled once for each value of its `each`: a value, or a table of names."""
    values = described.get("each", [None])
    for value in evaluate(values, names) if isinstance(values, str) else values:
        more = value if isinstance(value, dict) else {}
        scope = {**names, **more, "each": value}
        kept = {key: each for key, each in described.items() if key in ("panels", "each", *_SHAPES)}
        yield {**fill({key: each for key, each in described.items() if key not in kept}, scope), **kept, "names": scope}


def shaped(data: pl.DataFrame, described: Mapping[str, Any], names: Mapping[str, Any]) -> pl.DataFrame:
    """The rows and columns of a table that a description keeps or adds."""
    scope = {**names, **_POLARS, **described.get("names", {})}
    if "of" in described:
        data = evaluate(described["of"], {**scope, "data": data})
    if "where" in described:
        data = data.filter(evaluate(described["where"], scope))
    for group in described.get("with", []):
        data = data.with_columns(**{name: evaluate(each, {**scope, "data": data}) for name, each in group.items()})
    if "columns" in described:
        spread = [name[:-1] if name.endswith("~") else "" for name in described["columns"]]
        data = data.select(
            column
            for name, base in zip(described["columns"], spread, strict=True)
            for column in ((base, f"{base}_low", f"{base}_high") if base else (name,))
        )
    return data


def _drawn(panel: Mapping[str, Any], scope: Mapping[str, Any]) -> Draw:
    """What draws a panel that is filled; `where` is filled, too."""
    if "draw" in panel:
        draw: Draw = scope[panel["draw"]]
    else:
        kind = next(kind for kind in _KINDS if kind in panel)
        options = {name: panel[name] for name in _OPTIONS if name in panel}
        draw = _KINDS[kind](*panel[kind], **options)

    def drawn(axes: "Axes", rows: pl.DataFrame) -> None:
        shown = shaped(rows, {name: panel[name] for name in _SHAPES if name in panel}, scope)
        draw(axes, shown)
        for name, change in _CHANGES.items():
            if name in panel:
                change(axes, panel[name])

    return drawn


def _panels(listed: Sequence[Mapping[str, Any]], names: Mapping[str, Any]) -> Iterator[tuple[str, Draw]]:
    for described in listed:
        for panel in repeated(described, names):
            yield panel.get("title", ""), _drawn(panel, panel["names"])


def figure(described: Mapping[str, Any], data: pl.DataFrame, names: Mapping[str, Any]) -> Figure:
    """A figure of this description, which is filled, with these data."""
    scope = {**names, **described.get("names", {}), "title": described["title"], "data": data}
    draws = list(_panels(described["panels"], scope))
    sizes = {name: described[name] for name in ("width", "height") if name in described}
    svg = figures.panels(data, draws, **sizes)
    return Figure(described["id"], described["title"], described["note"], data, svg)


def neighbours(points: Sequence[tuple[str, str, Sequence[Claim]]], note: str, *, height: float) -> Figure:
    """How many claims agree at the implied setting and next to it, and their numbers.

    Args:
        points: what is changed, its value, and the claims there; the first is the setting itself.
        note: below the picture.
        height: of the picture in inches.
    """
    rows = [
        {"unknown": what, "value": value, "label": f"{what}: {value}"}
        | {"agree": sum(claim.agrees for claim in claims)}
        | {"broken": ", ".join(claim.id for claim in claims if not claim.agrees)}
        | {claim.id: claim.ours for claim in claims}
        for what, value, claims in points
    ]
    data = pl.DataFrame(rows)
    count = len(points[0][2])
    draws = [(f"Claims that agree, of {count}", figures.levels("label", "agree", count, "claims", "all"))]
    svg = figures.panels(data, draws, width=10, height=height)
    return Figure("implied", "The implied setting, one thing changed at a time", note, data, svg)
