"""The command `palimpsest serve`: a simulated drive as a network block device, for real programs."""

import dataclasses
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from . import engine, images, page, reruns
from .commands import command, say, show
from .errors import Error
from .options import RunOptions
from .parameters import DURATION, ParquetFile, Parsed, json_option, out_option
from .progress import ProgressBoard
from .run_options import (
    check,
    force_option,
    ftl_option,
    in_order,
    own_folder,
    precondition_option,
    seed_option,
    set_option,
    ssd_option,
)

PLACE = "127.0.0.1:10809"
"""The default place of a drive: the port of NBD, for programs of this machine only."""

_Command = TypeVar("_Command", bound=Callable[..., object])


def _place(text: str) -> str:
    if not re.fullmatch(r"unix:.+|.+:[0-9]{1,5}", text):
        raise ValueError(f"{text!r} is no place; expected HOST:PORT or unix:PATH")
    return text


def _clock(text: str) -> str:
    if not re.fullmatch(r"none|virtual|paced|scaled:[0-9.]+", text):
        what = "expected none, virtual, paced, or scaled:10 for a drive that is ten times slower"
        raise ValueError(f"{text!r} is no clock; {what}")
    return text


PAGE = click.option(
    "--page",
    metavar="HOST:PORT",
    help="Serve figures at an address of this machine: a page, JSON, SMART figures, Prometheus text.",
)
RECORD = click.option(
    "--record",
    type=ParquetFile(),
    metavar="FILE",
    help="Write the requests to FILE.parquet, which run takes as --workload: the same operations of flash.",
)
PRECONDITION = precondition_option("none", "First state of the drive, as of run; its data is noise.")
CLOCK = click.option(
    "--clock",
    type=Parsed("CLOCK", _clock),
    default="none",
    help="Time of the drive: virtual (as fast as possible), paced (replies at the simulated time) or scaled:10.",
)
OUTCOME = (
    out_option("Also write JSON, TOML, Parquet and an HTML report to DIR."),
    force_option,
    json_option("the result"),
)

DRIVE = (ssd_option, ftl_option, set_option)
KEPT = (*images.OPTIONS, RECORD, PRECONDITION)
"""The options of a drive for programs, as decorators: the drive, the image, the record."""


def run_option(places: str) -> Callable[[_Command], _Command]:
    """The option `--run`; the environment of the command has these `places`."""
    text = f"Run this in a shell, with {places}; end with its status."
    return click.option("--run", metavar="COMMAND", help=text)


def listen_option(text: str) -> Callable[[_Command], _Command]:
    """The option `--listen`, with this help."""
    return click.option("--listen", type=Parsed("PLACE", _place), multiple=True, help=text)


_OPTIONS = (
    *DRIVE,
    listen_option(f"HOST:PORT (port 0: any free one) or unix:PATH; may be repeated.  [default: {PLACE}]"),
    PAGE,
    click.option("--once", is_flag=True, help="End when the last client that used the drive has gone."),
    run_option("the address as $uri"),
    *KEPT,
    CLOCK,
    seed_option,
    click.option(
        "--timeout",
        type=DURATION,
        default="30s",
        help="Most time for a handshake or a message; a client that is idle for longer may be replaced.",
    ),
    *OUTCOME,
)


_RECORD_ENDS = "the record ends after"
"""The beginning of the note of the core about an incomplete record, such as on a full disk."""


@command(short_help="Serve a drive to real programs (NBD).")
@in_order(*_OPTIONS)
def serve(listen: tuple[str, ...], *, once: bool, timeout: float, **options: Any) -> None:  # noqa: ANN401
    """Serve a simulated drive to real programs as a network block device (NBD), and print its figures.

    The data goes through the translation layer, and every read is verified. Without --image the data is lost at the
    end.

    \b
    Examples:
      palimpsest serve
      palimpsest serve --ssd mga-16k --ftl mga --listen unix:drive.sock --json
      palimpsest serve --clock paced --ssd tlc-32g --page 127.0.0.1:8080
      palimpsest serve --image drive.pal --ssd mga-16k
      palimpsest serve --record run.parquet --run 'nbdcopy disk.img $uri'
      palimpsest serve --run 'fio --name=a --ioengine=nbd --uri=$uri --rw=randwrite --size=64m' --out results/a
    """
    serving = {"listen": list(listen or [PLACE]), "once": once, "timeout_s": timeout}
    run_drive("nbd", options, serving)


def run_drive(workload: str, options: dict[str, Any], serving: Mapping[str, object]) -> None:
    """Serves the drive of a command to its end, shows the result, and exits with the status of the command beside it.

    `workload` names the requests in the result; the common `options` are taken; `serving` has `listen`, `once`,
    `timeout_s`, and settings of one command. Raises Error if the record is incomplete.
    """
    options["overrides"] = asked = tuple(options["overrides"])
    kept = images.complete(options)
    clock, place, run, record = (options.pop(name) for name in ("clock", "page", "run", "record"))
    out, force, as_json = (options.pop(name) for name in ("out", "force", "as_json"))
    fidelity = "count" if clock == "none" else "timed"
    chosen = RunOptions(workload=workload, payload="bytes", fidelity=fidelity, series=out is not None, **options)
    # Not every layer reads the settings that an image adds.
    check([dataclasses.replace(chosen, overrides=asked)])
    own_folder(out, [chosen], force=force)
    record = None if record is None else str(record)
    shown = None if place is None else {"place": place, "html": page.live()}
    serving = {**serving, **kept, "clock": clock, "page": shown, "run": run, "record": record}
    with ProgressBoard() as board:

        def say_alone(line: str) -> None:
            board.end()
            say(line)

        result, status = engine.serve(chosen, serving, say_alone, board.callback("serve"))
    cut_short = next((note for note in result.get("notes", []) if note.startswith(_RECORD_ENDS)), None)
    if out is not None and record is not None and cut_short is None:
        result = reruns.with_record(result, Path(record), out, image=kept["image"] is not None)
    show(result.to_json() if as_json else result)
    if out is not None:
        result.save(out)
        say(f"wrote {out}/report.html, summary.json, config.toml and Parquet tables")
    if cut_short is not None:
        raise Error(cut_short)
    if status:
        sys.exit(status)
