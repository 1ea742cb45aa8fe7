"""The output of a fit: a drive file with the source of each value, JSON, tables and a page."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from .. import _core, evidence
from .. import page as shell
from ..evidence.fitting import Deviations, bound
from ..files import parquet, write_in_order
from . import charts
from .determined import Range
from .measured import Measurement, Target, residual
from .running import Fit, Ours

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


def _deviations(made: Fit, *, held_out: bool, at: Ours | None = None) -> list[Deviations]:
    """The evidence of each kind of figure, of held-out groups or of the others."""
    found: dict[str, list[tuple[Target, float | None]]] = {}
    for _, target, ours in made.of(held_out=held_out, at=at):
        found.setdefault(target.name, []).append((target, ours))
    return [
        Deviations(
            name, tuple(ours / target.real - 1 for target, ours in of if ours),
            bound(max(target.tolerance for target, _ in of)),
            sum(not ours for _, ours in of), predicted=held_out,
        )
        for name, of in found.items()
    ]  # fmt: skip


def _evidence(made: Fit) -> list[Deviations]:
    """The kinds of figures that were held out; the fitted ones if nothing was."""
    return _deviations(made, held_out=True) or _deviations(made, held_out=False)


def verdict(made: Fit) -> evidence.Said:
    """Whether the drive fits, by its deviations and the keys that the measurements determine."""
    known = {each.key.name: each.is_determined for each in _ranges(made)}
    others = [each for at in made.others for each in _deviations(made, held_out=True, at=at)]
    return evidence.whole(_evidence(made), known, others)


def _range_text(known: Range) -> str:
    if known.key.choices:
        return ", ".join(known.choices)
    assert known.low is not None
    assert known.high is not None
    return f"{known.key.text(known.low)} to {known.key.text(known.high)}"


def _ranges(made: Fit) -> list[Range]:
    """The ranges of all stages; the values that lean on a bound are first."""
    return sorted((each for stage in made.stages for each in stage.ranges), key=lambda each: not each.leans)


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
    lines = [
        f"# Fitted from {made.settings.start}; keys without a remark are unchanged. {status(made)}",
        f"# Verdict: {verdict(made).text}.",
    ]
    section = ""
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


def _agreement(rows: _Rows) -> dict[str, float | int | None]:
    mean, spread = _mean_and_spread(rows) or (None, None)
    return {
        "figures": len(rows), "rms_percent": _rms(rows), "mean_percent": mean, "mean_absolute_percent": spread,
    }  # fmt: skip


def to_dict(made: Fit) -> dict[str, Any]:
    """The fit in the form of the contract."""
    seen, hidden = made.of(held_out=False), made.of(held_out=True)
    said = verdict(made)
    return {
        "start": made.settings.start,
        "status": status(made),
        "validated": made.is_validated,
        "verdict": said.verdict,
        "verdict_text": said.text,
        "verdict_reason": said.reason,
        "verdicts": [
            {
                "figure": each.figure, "verdict": found.verdict, "reason": found.reason, "held_out": each.predicted,
                "mean_absolute_percent": None if each.mean is None else 100 * each.mean,
                "bound_percent": 100 * each.bound, "figures": len(each.shares), "not_modelled": each.missing,
            }
            for each in _evidence(made) if (found := evidence.fits(each))
        ],
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
    for known in _ranges(made):
        table.add_row(*_cells(known), style="red" if known.leans else "")
    said = verdict(made)
    kinds = (evidence.fits(each) for each in _evidence(made))
    last = [Text("; ".join(each.text for each in kinds)), Text(said.text, style="bold red" if said.status else "bold")]
    return Group(table, Text(), *map(Text, _notes(made)), Text(status(made)), *last)


def _answer(made: Fit) -> str:
    """One paragraph: deviations, then the keys by what the measurements say about them."""
    fitted, hidden = (_mean_and_spread(made.of(held_out=held)) for held in (False, True))
    said = f"Fitted figures deviate by {fitted[1]:.1f} % (mean absolute)" if fitted else "No fitted figure has a model"
    said += f", held-out figures by {hidden[1]:.1f} %." if hidden else "."
    ranges = _ranges(made)
    parts = (
        ("Leaning on a bound of its range, which must be wider", [each for each in ranges if each.leans]),
        ("Determined", [each for each in ranges if each.is_determined and not each.leans]),
        ("Not determined", [each for each in ranges if not each.is_determined and not each.leans]),
    )
    named = (f" {said}: {', '.join(each.key.name for each in some)}." for said, some in parts if some)
    checked = "" if made.is_validated else " Not validated: no group was held out."
    return said + "".join(named) + checked


def page(made: Fit) -> str:
    """One self-contained page."""
    known = _ranges(made)
    keys = shell.records(_HEADS, map(_cells, known), ["failed" if each.leans else "" for each in known])
    notes = "".join(f"<p>{shell.escape(line)}</p>" for line in _notes(made))
    good = "<p>As good: the mean square of the deviations grows by a fifth at most, other keys moved along.</p>"
    drawn, sections, every = {}, [], _rows(made)
    for at, measurement in enumerate(made.measurements):
        rows = every.filter(pl.col("measurement") == measurement.name)
        both = zip(("measured", "deviations"), (charts.measured, charts.deviations), charts.says(rows), strict=True)
        body = ""
        for name, draw, says in both:
            drawn[f"{name}{at}"] = draw(rows)
            body += shell.chart(f"{name}{at}", says)
        sections.append(
            shell.Section(f"file{at}", f"Measured and modelled: {measurement.name}", body, measurement.name)
        )
    sections.append(shell.Section("reading", "Ranges and predictions", good + notes, short="ranges"))
    said = verdict(made).text
    head = f'<p class="answer">{shell.escape(f"{said[:1].upper()}{said[1:]}.")}</p>'
    head += f'<p class="answer">{shell.escape(_answer(made))}</p>{keys}'
    return shell.fill(
        f"Fit of {made.settings.start}", "What the measurements say about the drive", head, sections, drawn
    )


def write(made: Fit, folder: Path) -> None:
    """Writes drive.toml, fit.json, figures.csv and figures.parquet, and index.html."""
    rows = _rows(made)
    files: dict[str, bytes | str] = {
        "fit.json": to_json(made) + "\n",
        "drive.toml": configuration(made),
        "figures.csv": rows.write_csv(),
        "figures.parquet": parquet(rows),
        "index.html": page(made),
    }
    write_in_order(folder, files.items())
