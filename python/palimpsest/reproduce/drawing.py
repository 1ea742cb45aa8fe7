"""The renderer: figures by the descriptions in a paper's TOML.

`[[figures]]` has `id`, `title`, `note`, `table`, `width` and `height` (inches), and shapes the data of the table: `of`
(a frame in its place), `where` (rows to keep), `with` (columns to add, in groups; a group may use earlier groups) and
`columns` (to keep; `x~` keeps `x`, `x_low` and `x_high`). `panels` lists drawings: `bars`, `lines` or `levels` with the
arguments and options of the function of that name in `figures`, and changes by `_CHANGES`; `draw` names a function
instead. A panel may shape the data further by `of`, `where` and `with`. `each` repeats a figure or a panel, `like`
names an entry of `[templates]` that supplies the other keys, `implied` marks a figure of the implied setting, and
`both` is the note of the same figure at the implied setting.

Shapes are expressions of Polars over `data`, `col`, `lit` and `pl`; all other texts are templates.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from ..evidence.agreement import AT_POINTS, MECHANISM_UP_TO
from . import figures
from .claims import LEFT_AT_MOST, Claim
from .figures import Draw, Figure
from .templates import evaluate, fill

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["figure", "mechanisms", "neighbours", "repeated", "shaped"]

Described = Mapping[str, Any]
"""A figure or a panel."""
Names = Mapping[str, Any]
"""Names for expressions and templates."""

_POLARS = {"pl": pl, "col": pl.col, "lit": pl.lit}
_SHAPES = ("of", "where", "with")
_KINDS: dict[str, Callable[..., Draw]] = {"bars": figures.bars, "lines": figures.lines, "levels": figures.levels}
_OPTIONS = ("log", "paper", "line")
_CHANGES: dict[str, Callable[["Axes", Any], object]] = {
    "line_at": lambda axes, value: axes.axhline(value, color="black", linewidth=0.8),
    "bottom": lambda axes, value: axes.set_ylim(bottom=value),
    "limits": lambda axes, value: axes.set_ylim(*value),
    "legend": lambda axes, value: axes.legend(ncols=value, loc="upper right", fontsize=8),
    "slanted": lambda axes, value: axes.tick_params(axis="x", rotation=value[0], labelsize=value[1]),
    "log_x": lambda axes, _value: axes.set_xscale("log", base=2),
}
"""Changes of a panel after it is drawn, in this order; `slanted` takes angle and size, `legend` takes columns."""


def repeated(described: Described, names: Names) -> Iterator[dict[str, Any]]:
    """The description with its templates filled, once for each value of `each`: a value, or a table of names.

    Shapes and panels stay as they are; the key `names` has the names for them.
    """
    values = described.get("each", [None])
    for value in evaluate(values, names) if isinstance(values, str) else values:
        scope = {**names, **(value if isinstance(value, dict) else {}), "each": value}
        kept = {key: each for key, each in described.items() if key in ("panels", *_SHAPES)}
        filled = fill({key: each for key, each in described.items() if key not in (*kept, "each")}, scope)
        yield {**filled, **kept, "names": scope}


def shaped(data: pl.DataFrame, described: Described, names: Names) -> pl.DataFrame:
    """The rows and columns that a figure or a panel shows."""
    scope = {**names, **_POLARS, **described.get("names", {})}
    if "of" in described:
        data = evaluate(described["of"], {**scope, "data": data})
    if "where" in described:
        data = data.filter(evaluate(described["where"], scope))
    for group in described.get("with", []):
        data = data.with_columns(**{name: evaluate(each, {**scope, "data": data}) for name, each in group.items()})
    if "columns" not in described:
        return data
    kept: list[str] = []
    for name in described["columns"]:
        kept += [name[:-1] + end for end in ("", "_low", "_high")] if name.endswith("~") else [name]
    return data.select(kept)


def _drawn(panel: Described) -> Draw:
    """Draws a panel that is filled."""
    if "draw" in panel:
        draw: Draw = panel["names"][panel["draw"]]
    else:
        kind = next(kind for kind in _KINDS if kind in panel)
        draw = _KINDS[kind](*panel[kind], **{name: panel[name] for name in _OPTIONS if name in panel})

    def drawn(axes: "Axes", rows: pl.DataFrame) -> None:
        draw(axes, shaped(rows, panel, {}))
        for name, change in _CHANGES.items():
            if name in panel:
                change(axes, panel[name])

    return drawn


def figure(described: Described, data: pl.DataFrame, names: Names) -> Figure:
    """A figure of a description that is filled, with data that are shaped."""
    scope = {**names, **described["names"], "title": described["title"]}
    panels = [each for panel in described["panels"] for each in repeated(panel, scope)]
    # The page has the title above the picture, and one panel needs the room for the legend.
    titles = [each.get("title", "") if len(panels) > 1 else "" for each in panels]
    draws = list(zip(titles, map(_drawn, panels), strict=True))
    sizes = {name: described[name] for name in ("width", "height") if name in described}
    svg = figures.panels(data, draws, **sizes)
    return Figure(described["id"], described["title"], described["note"], data, svg, described.get("page", ""))


def neighbours(points: Sequence[tuple[str, str, Sequence[Claim]]], note: str, *, height: float) -> Figure:
    """Number of claims that agree at the implied setting and at each point next to the setting, with measured numbers.

    Args:
        points: the changed unknown, the value, and the claims there; the first is the setting itself.
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
    draws = [(f"{AT_POINTS}, of {count}", figures.levels("label", "agree", count, "claims", "all"))]
    svg = figures.panels(data, draws, width=10, height=height)
    return Figure("implied", "The implied setting, one thing changed at a time", note, data, svg, "sweeps")


def mechanisms(rows: Sequence[Mapping[str, Any]], *, implied: bool) -> Figure:
    """The percentage of each claim's effect that is left with each mechanism off.

    Args:
        rows: `claim`, what is `off`, the numbers `with` and `without` it in `unit`, and `left_percent`.
        implied: whether the runs are of the implied setting.
    """
    data = pl.DataFrame(rows, schema_overrides=dict.fromkeys(("with", "without", "left_percent"), pl.Float64()))
    draws = [
        (
            off,
            figures.levels("claim", "left_percent", LEFT_AT_MOST, "% of the effect left", MECHANISM_UP_TO),
        )
        for off in data["off"].unique(maintain_order=True)
    ]
    shown = [(title, _only(draw, "off", title)) for title, draw in draws]
    svg = figures.panels(data, shown, width=10, height=1.2 + 0.22 * data["claim"].n_unique())
    said = "implied" if implied else "assumed"
    return Figure(
        f"mechanism{'_implied' if implied else ''}",
        f"What is left of each effect without the paper's mechanism, {said} setting",
        "The same runs with one thing changed; first seed, synthetic workloads. At 100 % the mechanism has no part.",
        data,
        svg,
    )


def _only(draw: Draw, column: str, value: object) -> Draw:
    """The drawing of the rows with a value of a column."""
    return lambda axes, data: draw(axes, data.filter(pl.col(column) == value))
