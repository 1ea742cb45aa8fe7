"""The command `palimpsest mount`: the co-designed file system on a simulated drive, for any program."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import images
from .options import RunOptions
from .run_options import ftl_option, seed_option, set_option, ssd_option
from .serving import OUTCOME, PAGE, PRECONDITION, RECORD, OwnFolder, until_its_end

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["CHOOSES_CHANNELS", "add_to"]

_Command = TypeVar("_Command", bound=Callable[..., object])

CHOOSES_CHANNELS = "block"
"""The layer above which the file system chooses channels: that of a mount where no other is said."""

_OPTIONS = (
    ssd_option,
    ftl_option,
    set_option,
    click.option(
        "--scheme",
        default="rr",
        metavar="SCHEME",
        help="Which channel each page of a write goes to, above the layer block; as of list schemes.  [default: rr]",
    ),
    PAGE,
    click.option(
        "--run",
        metavar="COMMAND",
        help="Run this in a shell, with the folder as $mount, and end with it and its status.",
    ),
    *images.OPTIONS,
    RECORD,
    PRECONDITION,
    click.option(
        "--clock",
        type=click.Choice(["none", "virtual"]),
        default="none",
        help="Time of the drive: none, or virtual, one request after the other.",
    ),
    seed_option,
    *OUTCOME,
)


def _options(command: _Command) -> _Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


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

    @group.command(short_help="Mount the co-designed file system (Linux).")
    @click.argument("folder", type=click.Path(path_type=Path))
    @_options
    def mount(
        folder: Path,
        *,
        scheme: str,
        page: str | None,
        run: str | None,
        record: Path | None,
        clock: str,
        out: Path | None,
        force: bool,
        as_json: bool,
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Mount the co-designed file system, on a simulated drive, at the empty FOLDER; print the figures at the end.

        Any program can use it. It is empty at first. umount, Ctrl-C and SIGTERM end it. --image keeps it.

        \b
        Examples:
          palimpsest mount /mnt
          palimpsest mount /mnt --ssd codesign-8ch --scheme hybrid --json
          palimpsest mount /mnt --image files.pal
          palimpsest mount /mnt --ftl page --run 'cp -r src $mount && sync && du -sh $mount'
        """
        options["overrides"] = tuple(options["overrides"])
        if options["ftl"] is None and (options["image"] is None or not options["image"].exists()):
            options["ftl"] = CHOOSES_CHANNELS
        kept = images.complete(options)
        fidelity = "count" if clock == "none" else "timed"
        chosen = RunOptions(workload="files", payload="bytes", fidelity=fidelity, series=out is not None, **options)
        check([chosen])
        own_folder(out, [chosen], force=force)
        serving: dict[str, object] = {
            "listen": [],
            "once": False,
            "timeout_s": 30.0,
            **kept,
            "mount": {"at": str(folder), "scheme": scheme},
            "clock": clock,
            "page": page,
            "run": run,
            "record": None if record is None else str(record),
        }
        until_its_end(chosen, serving, out, show, as_json=as_json)
