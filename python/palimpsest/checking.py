"""`palimpsest check`: the model suite on one translation layer, and what passed or the shortest history that broke.

The native module draws the cases, runs and shrinks them in a process of its own, which a thread of the module ends if
the layer never returns from a call; this module prints. A report in a file outlives that process. Ignored: such layers
where a process cannot be copied (Windows).
"""

import contextlib
import json
import os
import shlex
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from . import _core, completion, errors
from .commands import command, show
from .errors import EXIT_FAILURE, Interrupted
from .parameters import COUNT, SEED, json_option
from .progress import ProgressBoard
from .run_options import set_option

if TYPE_CHECKING:
    from rich.table import Table

_SECONDS = 60
_PATIENCE = 20
"""Seconds that a call of a layer may take. Requests on the small drives of a check take milliseconds."""
_Message = list[Any]
"""`progress` with its arguments, `checked` with the result, or `error` with class and text."""


def check_layer(
    layer: str, overrides: Sequence[str] = (), *, seed: int = 1, seconds: float = _SECONDS, case: str | None = None,
    patience: float = _PATIENCE, board: ProgressBoard | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Checks a layer for some seconds: counts of each kind of cases in `rows`, and a failure or None in `broken`.

    A call of the layer that takes longer than `patience` seconds is a failure. Raises InputError for an unknown layer,
    key or case, Error if the layer ends the process, and KeyboardInterrupt if no failure was found before.
    """
    options = {"layer": layer, "set": list(overrides), "seed": seed, "seconds": seconds, "case": case}
    if not hasattr(os, "fork"):
        with board or contextlib.nullcontext():
            return _checked(options, board.callback(layer) if board is not None else None)
    with tempfile.TemporaryDirectory(prefix="palimpsest-") as folder:
        report = Path(folder) / "report.json"
        process, pipe = _start(options | {"report": str(report), "patience": patience})
        try:
            with board or contextlib.nullcontext():
                progress = board.callback(layer) if board is not None else None
                for kind, *values in _messages(pipe):
                    if kind == "checked":
                        return dict(values[0])
                    if kind == "error":
                        raise getattr(errors, values[0], errors.Error)(values[1])
                    if progress is not None:
                        progress(*values)
        except KeyboardInterrupt:
            if found := _reported(report)["checked"]:
                return dict(found)
            raise
        finally:
            os.close(pipe)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            _, status = os.waitpid(process, 0)
        reported = _reported(report)
        if reported["checked"]:
            return dict(reported["checked"])
        how = os.waitstatus_to_exitcode(status)
        ended = f"signal {-how}" if how < 0 else f"status {how}"
        where = f"in case {reported['case']}" if reported["case"] else "before the first case"
        raise errors.Error(f"check {layer}: the layer ended the process {where} ({ended}); expected calls that return")


def _checked(options: Mapping[str, Any], progress: Callable[..., None] | None) -> dict[str, Any]:
    try:
        checked: dict[str, Any] = json.loads(_core.check_layer(json.dumps(options), progress))
    except Interrupted as error:
        raise KeyboardInterrupt from error
    return checked


def _start(options: Mapping[str, Any]) -> tuple[int, int]:
    """Starts the process of a check; returns its number, and the pipe from which messages come."""
    pipe, theirs = os.pipe()
    sys.stderr.flush()
    process = os.fork()
    if not process:
        os.close(pipe)
        _work(options, theirs)
    os.close(theirs)
    return process, pipe


def _work(options: Mapping[str, Any], pipe: int) -> NoReturn:
    """Runs a check in this process, and ends the process."""

    def send(*message: object) -> None:
        left = json.dumps(message).encode() + b"\n"
        while left:
            left = left[os.write(pipe, left) :]

    try:
        # The first process handles Ctrl-C, and ends this one.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        try:
            send("checked", _checked(options, lambda *values: send("progress", *values)))
        except errors.Error as error:
            send("error", type(error).__name__, str(error))
        except BaseException:
            traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def _messages(pipe: int) -> Iterator[_Message]:
    """The messages of a check, until its process ends."""
    text = b""
    while read := os.read(pipe, 1 << 16):
        *lines, text = (text + read).split(b"\n")
        yield from map(json.loads, lines)


def _reported(report: Path) -> dict[str, Any]:
    """The report of a process that has ended: the present `case`, and what it `checked` if a case failed."""
    try:
        found: dict[str, Any] = json.loads(report.read_bytes())
    except OSError:
        return {"case": "", "checked": None}
    return found


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
    of = f"{broken['shortest']} of {broken['requests']} requests"
    return [
        f"{layer} broke in case {broken['case']}: {broken['message']}{place}",
        "",
        f"the shortest history, {of}; {broken['form']}:",
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
    the layer supports. The first failure is shrunk to a short history. A call of the layer that has not returned after
    20 seconds is a failure. The status is 0 if no case fails, 1 if one does,
    2 for wrong input.

    \b
    Examples:
      palimpsest check page --seconds 5
      palimpsest check subpage --seconds 5 --seed 7 --set buffer.ack=volatile
      palimpsest check page --case cuts:0 --json
    """
    checked = check_layer(layer, overrides, seed=seed, seconds=seconds, case=case, board=ProgressBoard())
    broken = checked["broken"]
    if as_json:
        repeat = {"repeat": _repeat(layer, checked, overrides)} if broken else {}
        show(json.dumps({**checked, **repeat}, indent=2))
    else:
        if broken:
            show("\n".join([*_broken_lines(layer, checked, overrides), ""]))
        if rows := [row for row in checked["rows"] if row["cases"] or not (broken or case)]:
            show(_table(rows))
        if not broken:
            show(f"\n{layer} passed, seed {checked['seed']}")
    if broken:
        sys.exit(EXIT_FAILURE)
