"""`palimpsest check`: the model suite on one translation layer, with a verdict and the shortest history of a failure.

The native module draws the cases, runs and shrinks them in a process of its own, which a thread of the module ends if
the layer never returns from a call; this module prints. A report in a file outlives that process. Ignored: such layers
where a process cannot be copied (Windows).

The budget is a number of cases of each kind, so that verdict and cases are the same on every machine. Only a time limit
of the user (`seconds`) leaves cases undone; then the layer has *passed in part*.
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
from .evidence import passing
from .parameters import COUNT, SEED, json_option
from .progress import ProgressBoard
from .run_options import set_option

if TYPE_CHECKING:
    from rich.table import Table

CASES = 48
"""Cases of each kind: more than there are values of drives to cover, and about a minute for the layer `page`."""
_PATIENCE = 20
"""Seconds that a call of a layer may take, without the time in which the machine runs other programs. Requests on the
small drives of a check take milliseconds."""
STATUSES = {"passed": 0, "passed in part": 3, "failed": EXIT_FAILURE}
"""The status of each verdict."""
_Message = list[Any]
"""`progress` with its arguments, `checked` with the result, or `error` with class and text."""


def check_layer(
    layer: str, overrides: Sequence[str] = (), *, seed: int = 1, cases: int | None = None,
    seconds: float | None = None, case: str | None = None, ssd: str | None = None, patience: float = _PATIENCE,
    board: ProgressBoard | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Checks a layer with so many cases of each kind (default `CASES`), or with one `case` alone.

    Returns the `verdict` ("passed", "passed in part" or "failed"), `rows` with counts of each kind (`cases` of
    `expected`, `supported`, `reason`), `drives` with the cases of each value of each dimension, `cases_digest`, and
    `broken`, a failure or None. Equal arguments give equal results on every machine, unless the check takes longer than
    `seconds`. `ssd`, a preset or a TOML file, fixes the shape of all drives, scaled down. A call of the layer that
    takes longer than `patience` seconds is a failure; time in which the machine runs other programs does not count.
    Raises InputError for an unknown layer, key, drive or case, Error if the layer ends the process, and
    KeyboardInterrupt if no failure was found before.
    """
    if case is not None and (cases is not None or seconds is not None):
        option = "--cases" if cases is not None else "--seconds"
        raise errors.InputError(f"{option}: has no effect with --case, which runs one case; expected one of the two")
    for option, number in (("--cases", cases), ("--seconds", seconds)):
        if number is not None and not number > 0:
            raise errors.InputError(f"{option} {number}: expected more than 0")
    options = {
        "layer": layer, "set": list(overrides), "seed": seed, "cases": cases or CASES, "seconds": seconds,
        "case": case, "ssd": ssd,
    }  # fmt: skip
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
        counts = [f"{row[name]:,}" if row["runs"] else "-" for name in ("requests", "cuts")]
        about = row["about"] if row["supported"] else "not supported"
        table.add_row(row["kind"], _of(row) if row["supported"] else "-", *counts, about)
    return table


def _of(row: Mapping[str, Any]) -> str:
    """The cases of a kind, of the expected number if some are left."""
    done, expected = row["cases"], row["expected"]
    return f"{done:,}" if done == expected else f"{done:,} of {expected:,}"


def _first_clause(reason: str) -> str:
    """A reason without the expectation behind the first semicolon."""
    return reason.partition("; ")[0]


def _verdict_lines(layer: str, checked: Mapping[str, Any], options: str) -> list[str]:
    """The last lines of a check without a failure: kinds without support, shape, absent drives, verdict."""
    refused = [row for row in checked["rows"] if not row["supported"]]
    lines = [f"no case of {row['kind']}: {_first_clause(row['reason'])}" for row in refused]
    if ssd := checked["ssd"]:
        changes = [f"{change['key']} {change['scaled']} (of {change['given']})" for change in ssd["changes"]]
        lines.append(f"the shape of {ssd['name']}, scaled down: {', '.join(changes) or 'blocks and buffers alone'}")
    absent: dict[str, list[str]] = {}
    for drive in checked["drives"]:
        if not drive["cases"]:
            absent.setdefault(drive["dimension"], []).append(drive["value"])
    if absent:
        said = "; ".join(f"{dimension} {', '.join(values)}" for dimension, values in absent.items())
        lines.append(f"no drive had: {said}")
    rows = [row for row in checked["rows"] if row["supported"]]
    verdict = passing.passed({row["kind"]: (row["cases"], row["expected"]) for row in rows})
    if verdict.reason is None:
        return [*lines, f"{layer} {verdict.text}, seed {checked['seed']}"]
    lines.append(f"{layer} {verdict.text}, seed {checked['seed']}; {verdict.reason}")
    return [*lines, f"all cases: palimpsest check {shlex.quote(layer)} --seed {checked['seed']}{options}"]


def _shape_options(overrides: Sequence[str], ssd: str | None) -> str:
    """The options that fix settings of all drives."""
    drive = [f" --ssd {shlex.quote(ssd)}"] if ssd is not None else []
    return "".join([*drive, *(f" --set {shlex.quote(each)}" for each in overrides)])


def _repeat(layer: str, checked: Mapping[str, Any], options: str) -> str:
    """The command that runs the failed case alone."""
    return f"palimpsest check {shlex.quote(layer)} --seed {checked['seed']}{options} --case {checked['broken']['case']}"


def _broken_lines(layer: str, checked: Mapping[str, Any], options: str) -> list[str]:
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
        f"repeat with: {_repeat(layer, checked, options)}",
    ]


@command(short_help="Test a translation layer: faults, power cuts, shortest history of a failure.")
@click.argument("layer", metavar="LAYER", shell_complete=completion.layers)
@click.option("--cases", type=COUNT, help=f"Cases of each kind, each with all its power cuts.  [default: {CASES}]")
@click.option("--seconds", type=COUNT, help="Most time of the check; kinds with cases left have status 3.")
@click.option("--seed", type=SEED, default=1, help="Seed of all cases.")
@set_option
@click.option(
    "--ssd",
    metavar="NAME|FILE",
    help="Check on the shape of this drive, scaled down.  [default: drives of many shapes]",
    shell_complete=completion.files_and("ssds"),
)
@click.option("--case", metavar="KIND:NUMBER", help="Run this case alone, with all its power cuts.")
@json_option("what was found")
def check(
    layer: str, *, cases: int | None, seconds: int | None, seed: int, overrides: Sequence[str], ssd: str | None,
    case: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Run the model suite on a translation layer: 48 cases of each kind, about a minute for a fast layer.

    Drives of many shapes are drawn, or of one shape (--ssd). Random requests run against a record of the host's data,
    counted and timed, with failing programs and erases, power cuts at every operation and in recovery, and with each
    feature of the drive that the layer supports. The same seed draws the same cases on every machine. The first failure
    is shrunk to a short history. A call of the layer that has not returned after 20 seconds is a failure. The status is
    0 if all cases pass, 3 if --seconds ended the check before, 1 if a case fails, 2 for wrong input.

    \b
    Examples:
      palimpsest check page --cases 5
      palimpsest check subpage --cases 3 --seed 7 --set buffer.ack=volatile
      palimpsest check page --cases 2 --ssd mga-8k
      palimpsest check page --case cuts:0 --json
    """
    checked = check_layer(
        layer, overrides, seed=seed, cases=cases, seconds=seconds, case=case, ssd=ssd, board=ProgressBoard()
    )
    broken, options = checked["broken"], _shape_options(overrides, ssd)
    if as_json:
        repeat = {"repeat": _repeat(layer, checked, options)} if broken else {}
        show(json.dumps({**checked, **repeat}, indent=2))
    else:
        if broken:
            show("\n".join([*_broken_lines(layer, checked, options), ""]))
        if rows := [row for row in checked["rows"] if row["runs"] or not (broken or case)]:
            show(_table(rows))
        if case and not broken:
            show(f"\n{layer} {passing.passed_case(case)}, seed {checked['seed']}")
        elif not broken:
            show("\n".join(["", *_verdict_lines(layer, checked, options)]))
    if status := STATUSES[checked["verdict"]]:
        sys.exit(status)
