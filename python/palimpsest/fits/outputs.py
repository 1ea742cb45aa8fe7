"""The output of a fit: a drive file with the source of each value, JSON, tables, pictures and a page."""

import html
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from .. import _core
from .. import page as shell
from ..files import parquet
from ..reproduce import figures
from ..reproduce.figures import Figure
from ..reproduce.outputs import STYLE
from .determined import Range
from .measured import Measurement, Target, residual
from .running import Fit

if TYPE_CHECKING:
    from rich.console import Group

_Rows = Sequence[tuple[Measurement, Target, float | None]]


def _rms(rows: _Rows) -> float | None:
    """Root mean square of the deviations, in percent."""
    found = [math.log(ours / target.real) for _, target, ours in rows if ours]
    return 100 * math.sqrt(sum(each * each for each in found) / len(found)) if found else None


def _mean_and_spread(rows: _Rows) -> tuple[float, float] | None:
    """Deviation of the mean, and mean absolute deviation, in percent."""
    pairs = [(target.real, ours) for _, target, ours in rows if ours]
    if not pairs:
        return None
    real, ours = (sum(column) for column in zip(*pairs, strict=True))
    return 100 * (ours / real - 1), 100 * sum(abs(b / a - 1) for a, b in pairs) / len(pairs)


def status(made: Fit) -> str:
    """One line: fitted values, and deviations of fitted and held-out groups."""
    seen = _mean_and_spread(made.of(held_out=False))
    parts = [f"{each.key.name} {each.key.text(each.best)}" for stage in made.stages for each in stage.ranges]
    said = f"fit: {', '.join(parts)}"
    if seen is not None:
        said += f"; mean {seen[0]:+.2f} %, mean absolute deviation {seen[1]:.2f} %"
    hidden = _mean_and_spread(made.of(held_out=True))
    if hidden is not None:
        said += f"; held out: mean {hidden[0]:+.2f} %, mean absolute deviation {hidden[1]:.2f} %"
    means = [each[0] for at in made.others if (each := _mean_and_spread(made.of(held_out=True, at=at)))]
    if means:
        said += f" (at {len(means)} other drives that fit as well: mean {min(means):+.2f} to {max(means):+.2f} %)"
    return said if made.is_validated else f"{said}; fitted, not validated"


def _range_text(known: Range) -> str:
    if known.key.choices:
        return ", ".join(known.choices)
    assert known.low is not None
    assert known.high is not None
    return f"{known.key.text(known.low)} to {known.key.text(known.high)}"


def _remarks(known: Range) -> str:
    said = []
    if known.leans:
        said.append(f"leans on the {'lower' if known.leans == 'low' else 'upper'} bound: widen the range")
    others = [name for name in known.flat if name != known.key.name]
    if others:
        said.append(f"these measurements cannot tell {known.key.name} from {' and '.join(others)}")
    elif known.flat or not known.is_determined:
        said.append("not determined by these measurements")
    return "; ".join(said)


def configuration(made: Fit) -> str:
    """The found drive as TOML, with the source of each fitted value."""
    drive = made.drive
    shown = _core.show(drive.ssd, drive.ftl, list(drive.overrides))
    names = ", ".join(each.name for each in made.measurements)
    notes = {
        known.key.name: f"fitted to {names}: as good from {_range_text(known)}" if not known.key.choices
        else f"fitted to {names}: as good: {_range_text(known)}"
        for stage in made.stages for known in stage.ranges
    }  # fmt: skip
    lines, section = [f"# Fitted from {made.settings.start}; keys without a remark are unchanged. {status(made)}"], ""
    for line in shown.splitlines():
        if line.startswith("["):
            section = line.strip("[] ")
        key = f"{section}.{line.partition('=')[0].strip()}"
        bare = line.partition("#")[0].rstrip()
        lines.append(f"{bare}  # {notes[key]}" if key in notes else line)
    return "\n".join(lines) + "\n"


def _rows(made: Fit) -> pl.DataFrame:
    rows = []
    drives = zip(made.ours, *made.others, strict=True)
    for measurement, ours, start, hidden in zip(made.measurements, drives, made.start, made.held_out, strict=True):
        for at, target in enumerate(measurement.targets):
            own = ours[0].get(target.id)
            all_of_them = [value for each in ours if (value := each.get(target.id)) is not None]
            rows.append(
                {
                    "measurement": measurement.name, "group": target.group, "id": target.id, "figure": target.name,
                    "unit": target.unit, "at": float(at) if target.at is None else target.at, "real": target.real,
                    "start": start.get(target.id), "ours": own,
                    "least": min(all_of_them, default=None), "most": max(all_of_them, default=None),
                    "deviation_percent": 100 * (own / target.real - 1) if own else None,
                    "residual": residual(target, own), "held_out": target.group in hidden,
                }
            )  # fmt: skip
    texts = ("measurement", "group", "id", "figure", "unit", "held_out")
    numbers = {name: pl.Float64() for name in rows[0] if name not in texts}
    return pl.DataFrame(rows, schema_overrides=numbers)


def _pictures(made: Fit) -> list[Figure]:
    rows = _rows(made)
    return [
        _picture(rows.filter(pl.col("measurement") == measurement.name), f"measurement{at}", sorted(hidden))
        for at, (measurement, hidden) in enumerate(zip(made.measurements, made.held_out, strict=True), start=1)
    ]


def _picture(own: pl.DataFrame, name: str, hidden: Sequence[str]) -> Figure:
    """Measured and modelled figures, and the deviation below."""
    if own["figure"].n_unique() == 1 and own.height > _FEW:
        long = own.unpivot(on=("real", "ours", "start"), index="at", variable_name="of", value_name="value")
        first = figures.lines("at", "of", "value", "passes over the drive", own["figure"][0])
        second = figures.lines("at", "measurement", "deviation_percent", "passes over the drive", "%", from_zero=False)
    else:
        long = own.unpivot(on=("real", "ours", "start"), index="id", variable_name="of", value_name="value")
        first = figures.slanted(figures.bars("id", "of", "value", "", log=True), degrees=60, size=7)
        second = figures.slanted(figures.bars("id", "measurement", "deviation_percent", "%"), degrees=60, size=7)
    draws: list[tuple[str, figures.Draw]] = [
        ("Measured, modelled, and where the search started", first),
        ("Deviation", lambda axes, _: second(axes, own)),
    ]
    some = ", ".join(hidden[:_SHOWN]) + (", ..." if len(hidden) > _SHOWN else "")
    note = f"{own.height} figures in {own['group'].n_unique()} groups. " + (f"Held out: {some}." if hidden else "")
    return Figure(name, own["measurement"][0], note, long, figures.panels(long, draws, width=10, height=3.6))


_FEW = 12
_SHOWN = 6


def _agreement(rows: _Rows) -> dict[str, float | int | None]:
    mean, spread = _mean_and_spread(rows) or (None, None)
    return {
        "figures": len(rows), "rms_percent": _rms(rows), "mean_percent": mean, "mean_absolute_percent": spread,
    }  # fmt: skip


def to_dict(made: Fit) -> dict[str, Any]:
    """The fit in the form of the contract."""
    seen, hidden = made.of(held_out=False), made.of(held_out=True)
    return {
        "start": made.settings.start,
        "status": status(made),
        "validated": made.is_validated,
        "keys": [
            {
                "key": known.key.name, "stage": stage.name, "value": known.key.text(known.best),
                "space": list(map(known.key.text, known.key.ends())),
                "range": list(known.choices) or [known.key.text(end or 0.0) for end in (known.low, known.high)],
                "determined": known.is_determined, "leans_on": known.leans or None,
                "not_told_from": [name for name in known.flat if name != known.key.name],
            }
            for stage in made.stages for known in stage.ranges
        ],
        "without_effect": list(made.without_effect),
        "notes": {each.name: list(each.notes) for each in made.measurements if each.notes},
        "stages": [
            {"name": stage.name, "evaluations": stage.evaluations, "left_out_rms_tolerances": stage.left_out}
            for stage in made.stages
        ],
        "fitted": _agreement(seen),
        "held_out": _agreement(hidden),
        "figures": _rows(made).to_dicts(),
    }  # fmt: skip


def to_json(made: Fit) -> str:
    """The object of `fit --json`, and of `fit.json`."""
    return json.dumps(to_dict(made), indent=2)


_HEADS = ("key", "value", "as good", "space", "remarks")


def _cells(known: Range) -> tuple[str, ...]:
    space = ", ".join(known.key.choices) or f"{known.key.text(known.key.low)} to {known.key.text(known.key.high)}"
    return known.key.name, known.key.text(known.best), _range_text(known), space, _remarks(known)


def _notes(made: Fit) -> list[str]:
    """Predictions of groups by the others, and what is not used."""
    said = [f"{each.name}: {note}" for each in made.measurements for note in each.notes]
    if made.without_effect:
        said.append(f"without effect, and left as they were: {', '.join(made.without_effect)}")
    for stage in made.stages:
        if stage.left_out:
            worst = max(stage.left_out, key=lambda group: stage.left_out[group])
            mean = math.sqrt(sum(each * each for each in stage.left_out.values()) / len(stage.left_out))
            said.append(
                f"{stage.name}: each of {len(stage.left_out)} groups predicted by the point that the others choose: "
                f"{mean:.2f} tolerances off (root mean square), at most {stage.left_out[worst]:.2f} ({worst})"
            )
    return said


def render(made: Fit) -> "Group":
    """The keys as a table, predictions of groups, and the closing line."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in _HEADS:
        table.add_column(head, overflow="fold", no_wrap=head == "key")
    for stage in made.stages:
        for known in stage.ranges:
            table.add_row(*_cells(known))
    return Group(table, Text(), *map(Text, _notes(made)), Text(status(made)))


def page(made: Fit) -> str:
    """One self-contained page."""

    def cell(text: object) -> str:
        return html.escape(str(text))

    keys = "".join(
        "<tr>" + "".join(f"<td>{cell(text)}</td>" for text in _cells(known)) + "</tr>"
        for stage in made.stages
        for known in stage.ranges
    )
    heads = "".join(f'<th scope="col">{head}</th>' for head in _HEADS)
    left = "".join(f"<p>{cell(line)}</p>" for line in _notes(made))
    if not made.is_validated:
        left += "<p><strong>Fitted, not validated</strong>: nothing was held out.</p>"
    found = (
        f'<div class="claims wide"><table><tr>{heads}</tr>{keys}</table></div>'
        f"<p>As good: the mean square of the deviations grows by a fifth at most, other keys moved along.</p>{left}"
    )
    drawn = "".join(picture.to_html() for picture in _pictures(made))
    sections = [
        shell.Section("keys", "What was found", found, short="keys"),
        shell.Section("figures", "Measured and modelled", f'<div class="figures">{drawn}</div>', short="figures"),
    ]
    title = f"Fit of {made.settings.start}"
    return shell.fill(title=title, under=status(made), head="", sections=sections, drawn={}, style=STYLE)


def write(made: Fit, folder: Path) -> None:
    """Writes drive.toml, fit.json, figures.csv and figures.parquet, index.html, and data and a picture of each file."""
    rows = _rows(made)
    more: dict[str, bytes | str] = {
        "drive.toml": configuration(made),
        "figures.csv": rows.write_csv(),
        "figures.parquet": parquet(rows),
    }
    figures.write_page(folder, "fit", to_dict(made), page(made), _pictures(made), more)
