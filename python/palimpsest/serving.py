"""The command `palimpsest serve`: a simulated drive as a network block device, for real programs."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from . import completion, engine, images
from .options import RunOptions
from .parameters import Duration, ParquetFile, json_option, out_option
from .progress import ProgressBoard
from .run_options import force_option, ftl_option, seed_option, set_option, ssd_option

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["CLOCK", "OUTCOME", "PAGE", "PLACE", "PRECONDITION", "RECORD", "OwnFolder", "add_to", "until_its_end"]

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
PRECONDITION = click.option(
    "--precondition",
    default="none",
    metavar="SPEC",
    shell_complete=completion.preconditions,
    help="State of the drive at first, as of run; it holds noise then.",
)
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
"""The options of a drive for programs, as decorators: of `serve`, and of `attach`."""

_OPTIONS = (
    ssd_option,
    ftl_option,
    set_option,
    click.option(
        "--listen",
        type=Place(),
        multiple=True,
        help=f"HOST:PORT (port 0: any free one) or unix:PATH; may be repeated.  [default: {PLACE}]",
    ),
    PAGE,
    click.option("--once", is_flag=True, help="End when the last client that used the drive has gone."),
    click.option(
        "--run",
        metavar="COMMAND",
        help="Run this in a shell, with the address as $uri, and end with it and its status.",
    ),
    *images.OPTIONS,
    RECORD,
    PRECONDITION,
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


def _options(command: _Command) -> _Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


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
    @_options
    def serve(
        listen: tuple[str, ...],
        *,
        clock: str,
        page: str | None,
        once: bool,
        run: str | None,
        record: Path | None,
        timeout: float,
        out: Path | None,
        force: bool,
        as_json: bool,
        **options: Any,  # noqa: ANN401
    ) -> None:
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
        options["overrides"] = tuple(options["overrides"])
        kept = images.complete(options)
        fidelity = "count" if clock == "none" else "timed"
        chosen = RunOptions(workload="nbd", payload="bytes", fidelity=fidelity, series=out is not None, **options)
        check([chosen])
        own_folder(out, [chosen], force=force)
        places = list(listen or [PLACE])
        serving = {
            "listen": places,
            "clock": clock,
            "page": page,
            "once": once,
            "run": run,
            **kept,
            "record": None if record is None else str(record),
            "timeout_s": timeout,
        }
        until_its_end(chosen, serving, out, show, as_json=as_json)


def until_its_end(
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
    """
    with ProgressBoard() as board:

        def say(line: str) -> None:
            board.end()
            click.echo(line, err=True)

        result, status = engine.serve(chosen, serving, say, board.callback("serve"))
    if out is not None:
        result.save(out)
        click.echo(f"wrote {out}/report.html, summary.json, config.toml and Parquet tables", err=True)
    show(result.to_json() if as_json else result)
    if status:
        sys.exit(status)
