"""The command `palimpsest serve`: a simulated drive as a network block device, for real programs."""

import dataclasses
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from . import engine, images, reruns
from .errors import Error
from .options import RunOptions
from .parameters import Duration, ParquetFile, json_option, out_option
from .progress import ProgressBoard
from .run_options import (
    force_option,
    ftl_option,
    in_order,
    precondition_option,
    seed_option,
    set_option,
    ssd_option,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

PLACE = "127.0.0.1:10809"
"""Where a drive is served if nothing else is said: the port of NBD, for programs of this machine only."""


_Command = TypeVar("_Command", bound=Callable[..., object])


class Place(click.ParamType[str]):
    """Where to listen: HOST:PORT, or unix:PATH."""

    name = "PLACE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        """The place as it is, if it is one."""
        if not re.fullmatch(r"unix:.+|.+:[0-9]{1,5}", value):
            self.fail(f"{value!r} is no place; expected HOST:PORT or unix:PATH", param, ctx)
        return str(value)


class Clock(click.ParamType[str]):
    """How the time of the drive goes: none, virtual, paced, or scaled:N."""

    name = "CLOCK"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        """The clock as it is, if it is one."""
        if not re.fullmatch(r"none|virtual|paced|scaled:[0-9.]+", value):
            what = "expected none, virtual, paced, or scaled:10 for a drive that is ten times slower"
            self.fail(f"{value!r} is no clock; {what}", param, ctx)
        return str(value)


PAGE = click.option(
    "--page",
    metavar="HOST:PORT",
    help="Show figures meanwhile at an address of this machine: a page, JSON, SMART figures, Prometheus text.",
)
RECORD = click.option(
    "--record",
    type=ParquetFile(),
    metavar="FILE",
    help="Write the requests to FILE.parquet, which run takes as --workload: the same operations of flash.",
)
PRECONDITION = precondition_option("none", "State of the drive at first, as of run; it holds noise then.")
CLOCK = click.option(
    "--clock",
    type=Clock(),
    default="none",
    help="Time of the drive: virtual (as fast as it goes), paced (replies when it would have them) or scaled:10.",
)
OUTCOME = (
    out_option("Also write JSON, TOML, Parquet and an HTML report to DIR."),
    force_option,
    json_option("the result"),
)

DRIVE = (ssd_option, ftl_option, set_option)
KEPT = (*images.OPTIONS, RECORD, PRECONDITION)
"""The options of a drive for programs, as decorators: which drive it is, and how it is kept and recorded."""


def run_option(places: str) -> Callable[[_Command], _Command]:
    """The option `--run`: a command finds these `places` in its environment."""
    text = f"Run this in a shell, with {places}, and end with it and its status."
    return click.option("--run", metavar="COMMAND", help=text)


def listen_option(text: str) -> Callable[[_Command], _Command]:
    """The option `--listen`, with this help."""
    return click.option("--listen", type=Place(), multiple=True, help=text)


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
        type=Duration(),
        default="30s",
        help="Most time for a handshake or a message; who is idle for so long leaves its place to another.",
    ),
    *OUTCOME,
)


_RECORD_ENDS = "the record ends after"
"""How the note of the core begins if a record could not be written to the end, as on a full disk."""


class OwnFolder(Protocol):
    """Makes the folder of `--out`, or finds out why it cannot."""

    def __call__(self, out: Path | None, chosen: Sequence[RunOptions], *, force: bool) -> None:
        """Makes `out` for the results of `chosen`, in the place of others only with `force`."""


def add_to(
    group: click.Group,
    check: Callable[[Sequence[RunOptions]], None],
    own_folder: OwnFolder,
    show: "Callable[[str | RenderableType], None]",
) -> None:
    """Adds the command to the command line.

    Args:
        group: gets it.
        check: finds mistakes in configurations.
        own_folder: makes the folder of `--out`.
        show: prints the result.
    """

    @group.command(short_help="Serve a drive to real programs (NBD).")
    @in_order(*_OPTIONS)
    def serve(listen: tuple[str, ...], *, once: bool, timeout: float, **options: Any) -> None:  # noqa: ANN401
        """Serve a simulated drive to real programs as a network block device (NBD), and print its figures.

        The data goes through the translation layer, and every read is verified. It is lost at the end without --image.

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
        run_drive("nbd", options, serving, check, own_folder, show)


def run_drive(
    workload: str,
    options: dict[str, Any],
    serving: Mapping[str, object],
    check: Callable[[Sequence[RunOptions]], None],
    own_folder: OwnFolder,
    show: "Callable[[str | RenderableType], None]",
) -> None:
    """Serves the drive of a command to its end, shows the result, and exits with the status of the command beside it.

    Args:
        workload: what its requests are called in the result.
        options: those of the command that all such commands have; they are taken.
        serving: how the command serves it: `listen`, `once`, `timeout_s`, and what is special to it.
        check: finds mistakes in configurations.
        own_folder: makes the folder of `--out`.
        show: prints the result.
    """
    options["overrides"] = asked = tuple(options["overrides"])
    kept = images.complete(options)
    clock, page, run, record = (options.pop(name) for name in ("clock", "page", "run", "record"))
    out, force, as_json = (options.pop(name) for name in ("out", "force", "as_json"))
    fidelity = "count" if clock == "none" else "timed"
    chosen = RunOptions(workload=workload, payload="bytes", fidelity=fidelity, series=out is not None, **options)
    # An image adds settings of its own, which not every layer reads.
    check([dataclasses.replace(chosen, overrides=asked)])
    own_folder(out, [chosen], force=force)
    record = None if record is None else str(record)
    how = {**serving, **kept, "clock": clock, "page": page, "run": run, "record": record}
    _until_its_end(chosen, how, out, show, as_json=as_json)


def _until_its_end(
    chosen: RunOptions,
    serving: Mapping[str, object],
    out: Path | None,
    show: "Callable[[str | RenderableType], None]",
    *,
    as_json: bool,
) -> None:
    """Serves a drive to its end, by a signal or a command; shows the result, and exits with the command's status.

    Args:
        chosen: the drive.
        serving: how it is served, as of `engine.serve`.
        out: where the result is saved, if it is.
        show: prints the result.
        as_json: whether as JSON.

    Raises:
        Error: the record could not be written to the end.
    """
    with ProgressBoard() as board:

        def say(line: str) -> None:
            board.end()
            click.echo(line, err=True)

        result, status = engine.serve(chosen, serving, say, board.callback("serve"))
    cut_short = next((note for note in result.get("notes", []) if note.startswith(_RECORD_ENDS)), None)
    if out is not None and serving["record"] is not None and cut_short is None:
        result = reruns.with_record(result, Path(str(serving["record"])), out, image=serving["image"] is not None)
    show(result.to_json() if as_json else result)
    if out is not None:
        result.save(out)
        click.echo(f"wrote {out}/report.html, summary.json, config.toml and Parquet tables", err=True)
    if cut_short is not None:
        raise Error(cut_short)
    if status:
        sys.exit(status)
