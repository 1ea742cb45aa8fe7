"""The commands `palimpsest attach` and `palimpsest detach`: a simulated drive as a block device of the kernel."""

from typing import Any

import click

from . import _core
from .commands import command, say
from .run_options import in_order, seed_option
from .serving import CLOCK, DRIVE, KEPT, OUTCOME, PAGE, listen_option, run_drive, run_option

_ALWAYS = {"once": False, "timeout_s": 30.0}
"""Settings of every attached drive; `timeout_s` limits messages of NBD clients."""

_OPTIONS = (
    *DRIVE,
    click.option("--name", metavar="NAME", help="Name of the drive.  [default: the first free of pal0, pal1, ...]"),
    click.option("--file", "file_only", is_flag=True, help="Attach a file only, without a loop device."),
    run_option("the device as $dev and the file as $file"),
    listen_option("Also serve the drive by NBD, at HOST:PORT or unix:PATH."),
    PAGE,
    *KEPT,
    CLOCK,
    seed_option,
    *OUTCOME,
)


@command(short_help="Attach a drive as a block device (Linux).")
@in_order(*_OPTIONS)
def attach(*, name: str | None, file_only: bool, listen: tuple[str, ...], **options: Any) -> None:  # noqa: ANN401
    """Attach a simulated drive to this machine as a block device, and print its figures at the end.

    The drive is a file, by FUSE, and for root also a loop device over that file, so any file system and program can use
    the drive. Ctrl-C, SIGTERM and palimpsest detach unmount file systems on the drive and end the command. --image
    keeps the drive.

    \b
    Examples:
      palimpsest attach
      palimpsest attach --ssd mga-8k --ftl mga --name nand --json
      palimpsest attach --run 'mkfs.ext4 -q $dev && mount $dev /mnt && cp -r src /mnt && fstrim -v /mnt'
      palimpsest attach --image drive.pal --ssd mga-16k
      palimpsest attach --clock paced --ssd tlc-32g --page 127.0.0.1:8080
      palimpsest attach --file --run 'fio --name=a --filename=$file --rw=randwrite --bs=4k --direct=1 --size=64m'
    """
    serving = {"listen": list(listen), "attach": {"name": name, "file_only": file_only}, **_ALWAYS}
    run_drive("device", options, serving)


@command(short_help="End attached drives.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="End all attached drives of this user.")
def detach(names: tuple[str, ...], *, everything: bool) -> None:
    """End attached drives, by name, device or file: unmount their file systems, and wait for the end.

    Also removes the remains of a killed palimpsest attach.

    \b
    Examples:
      palimpsest detach pal0
      palimpsest detach /dev/loop0
      palimpsest detach --all
    """
    if not names and not everything:
        raise click.UsageError("expected the name of an attached drive, or --all")
    _core.detach(list(names), everything, say)
