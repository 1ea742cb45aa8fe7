"""`palimpsest check`: the model suite on one translation layer, and what passed or the shortest history that broke.

The native module draws the cases, runs and shrinks them; this module prints. Ignored: layers that never return from a
call, because Ctrl-C ends a check between two cases.
"""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from . import _core, completion
from .commands import command, show
from .errors import EXIT_FAILURE, Interrupted
from .parameters import COUNT, SEED, json_option
from .progress import ProgressBoard
from .run_options import set_option

if TYPE_CHECKING:
    from rich.table import Table

_SECONDS = 60


def check_layer(
    layer: str, overrides: Sequence[str] = (), *, seed: int = 1, seconds: float = _SECONDS, case: str | None = None,
    board: ProgressBoard | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Checks a layer for some seconds: counts of each kind of cases in `rows`, and a failure or None in `broken`.

    Raises InputError for an unknown layer, key or case, and KeyboardInterrupt.
    """
    options = {"layer": layer, "set": list(overrides), "seed": seed, "seconds": seconds, "case": case}
    try:
        found = _core.check_layer(json.dumps(options), board.callback(layer) if board is not None else None)
    except Interrupted as error:
        raise KeyboardInterrupt from error
    checked: dict[str, Any] = json.loads(found)
    return checked


def _table(rows: Sequence[Mapping[str, Any]]) -> "Table":
    """Kinds of cases with their counts; a kind that the layer does not support has none."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("kind")
    for name in ("cases", "requests", "power cuts"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in rows:
        counts = [f"{row[name]:,}" if row["cases"] else "-" for name in ("cases", "requests", "cuts")]
        about = row["about"] if row["cases"] else "not reached" if row["supported"] else "not supported by the layer"
        table.add_row(row["kind"], *counts, about)
    return table


def _repeat(layer: str, checked: Mapping[str, Any], overrides: Sequence[str]) -> str:
    """The command that runs the failed case alone."""
    sets = "".join(f" --set {shlex.quote(each)}" for each in overrides)
    return f"palimpsest check {shlex.quote(layer)} --seed {checked['seed']}{sets} --case {checked['broken']['case']}"


def _broken_lines(layer: str, checked: Mapping[str, Any], overrides: Sequence[str]) -> list[str]:
    """The failure: message, drive, history and the command that repeats the case."""
    broken = checked["broken"]
    place = f" (at {broken['place']})" if broken["place"] else ""
    return [
        f"{layer} broke in case {broken['case']}: {broken['message']}{place}",
        "",
        f"the shortest history, {broken['shortest']} of {broken['requests']} requests; {broken['form']}:",
        *(f"  {line}" for line in broken["history"]),
        "",
        "the drive: " + " ".join(f"--set {shlex.quote(each)}" for each in broken["settings"]),
        f"repeat with: {_repeat(layer, checked, overrides)}",
    ]


@command(short_help="Test a translation layer: faults, power cuts, shortest history of a failure.")
@click.argument("layer", metavar="LAYER", shell_complete=completion.layers)
@click.option("--seconds", type=COUNT, default=_SECONDS, help="Time of the check, which a failure ends.")
@click.option("--seed", type=SEED, default=1, help="Seed of all cases.")
@set_option
@click.option("--case", metavar="KIND:NUMBER", help="Run this case alone, with all its power cuts.")
@json_option("what was found")
def check(layer: str, *, seconds: int, seed: int, overrides: Sequence[str], case: str | None, as_json: bool) -> None:
    """Run the model suite on a translation layer, for a minute.

    Drives of many shapes are drawn. Random requests run against a record of the host's data, counted and timed, with
    failing programs and erases, power cuts at every operation and in recovery, and with each feature of the drive that
    the layer supports. The first failure is shrunk to a short history. The status is 0 if no case fails, 1 if one does,
    2 for wrong input.

    \b
    Examples:
      palimpsest check page --seconds 5
      palimpsest check subpage --seconds 5 --seed 7 --set buffer.ack=volatile
      palimpsest check page --case cuts:0 --json
    """
    with ProgressBoard() as board:
        checked = check_layer(layer, overrides, seed=seed, seconds=seconds, case=case, board=board)
    broken = checked["broken"]
    if as_json:
        repeat = {"repeat": _repeat(layer, checked, overrides)} if broken else {}
        show(json.dumps({**checked, **repeat}, indent=2))
    else:
        if broken:
            show("\n".join([*_broken_lines(layer, checked, overrides), ""]))
        show(_table([row for row in checked["rows"] if row["cases"] or not (broken or case)]))
        if not broken:
            show(f"\n{layer} passed, seed {checked['seed']}")
    if broken:
        sys.exit(EXIT_FAILURE)
