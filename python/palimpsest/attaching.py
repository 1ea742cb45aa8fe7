"""The commands `palimpsest attach` and `palimpsest detach`: a simulated drive as a block device of the kernel."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import _core, images
from .options import RunOptions
from .run_options import ftl_option, seed_option, set_option, ssd_option
from .serving import CLOCK, OUTCOME, PAGE, PRECONDITION, RECORD, OwnFolder, Place, until_its_end

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["add_to"]

_Command = TypeVar("_Command", bound=Callable[..., object])

_ALWAYS = {"once": False, "timeout_s": 30.0}
"""How it is served in any case: most time for a message of a client by NBD."""

_OPTIONS = (
    ssd_option,
    ftl_option,
    set_option,
    click.option("--name", metavar="NAME", help="Its name.  [default: the first free of pal0, pal1, ...]"),
    click.option("--file", "file_only", is_flag=True, help="Attach the file alone, without a loop device over it."),
    click.option(
        "--run",
        metavar="COMMAND",
        help="Run this in a shell, with the device as $dev and its file as $file, and end with it and its status.",
    ),
    click.option("--listen", type=Place(), multiple=True, help="Serve it by NBD, too, at HOST:PORT or unix:PATH."),
    PAGE,
    *images.OPTIONS,
    RECORD,
    PRECONDITION,
    CLOCK,
    seed_option,
    *OUTCOME,
)


def _options(command: _Command) -> _Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _say(line: str) -> None:
    click.echo(line, err=True)


def add_to(
    group: click.Group,
    check: Callable[[Sequence[RunOptions]], None],
    own_folder: OwnFolder,
    show: "Callable[[str | RenderableType], None]",
) -> None:
    """Adds the commands to the command line.

    Args:
        group: gets them.
        check: finds mistakes in configurations.
        own_folder: makes the folder of `--out`.
        show: prints the result.
    """

    @group.command(short_help="Attach a drive as a block device (Linux).")
    @_options
    def attach(
        *,
        name: str | None,
        file_only: bool,
        run: str | None,
        listen: tuple[str, ...],
        page: str | None,
        record: Path | None,
        clock: str,
        out: Path | None,
        force: bool,
        as_json: bool,
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Attach a simulated drive to this machine as a block device, and print its figures at the end.

        The drive is a file, by FUSE, and a loop device over it where the user is root: file systems and programs use
        it as any other. Ctrl-C, SIGTERM and palimpsest detach unmount its file systems and end it. --image keeps it.

        \b
        Examples:
          palimpsest attach
          palimpsest attach --ssd mga-8k --ftl mga --name nand --json
          palimpsest attach --run 'mkfs.ext4 -q $dev && mount $dev /mnt && cp -r src /mnt && fstrim -v /mnt'
          palimpsest attach --image drive.pal --ssd mga-16k
          palimpsest attach --clock paced --ssd tlc-32g --page 127.0.0.1:8080
          palimpsest attach --file --run 'fio --name=a --filename=$file --rw=randwrite --bs=4k --direct=1 --size=64m'
        """
        options["overrides"] = tuple(options["overrides"])
        kept = images.complete(options)
        fidelity = "count" if clock == "none" else "timed"
        chosen = RunOptions(workload="device", payload="bytes", fidelity=fidelity, series=out is not None, **options)
        check([chosen])
        own_folder(out, [chosen], force=force)
        serving = {
            "listen": list(listen),
            "attach": {"name": name, "file_only": file_only},
            "clock": clock,
            "page": page,
            "run": run,
            **kept,
            "record": None if record is None else str(record),
            **_ALWAYS,
        }
        until_its_end(chosen, serving, out, show, as_json=as_json)

    @group.command(short_help="End attached drives.")
    @click.argument("names", nargs=-1, metavar="[NAME]...")
    @click.option("--all", "everything", is_flag=True, help="End all attached drives of this user.")
    def detach(names: tuple[str, ...], *, everything: bool) -> None:
        """End attached drives, by name, device or file, and wait for it. Its file systems are unmounted first.

        What a killed palimpsest attach left behind is removed.

        \b
        Examples:
          palimpsest detach pal0
          palimpsest detach /dev/loop0
          palimpsest detach --all
        """
        if not names and not everything:
            raise click.UsageError("expected the name of an attached drive, or --all")
        _core.detach(list(names), everything, _say)
