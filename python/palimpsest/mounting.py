"""The command `palimpsest mount`: the co-designed file system on a simulated drive, for any program."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from . import engine
from .commands import command
from .errors import InputError
from .needs import is_given
from .options import RunOptions
from .run_options import in_order, seed_option
from .serving import DRIVE, KEPT, OUTCOME, PAGE, run_drive, run_option

CHOOSES_CHANNELS = "block"
"""The layer above which the file system chooses channels: the default of a mount."""

_OPTIONS = (
    *DRIVE,
    click.option(
        "--scheme",
        default="rr",
        metavar="SCHEME",
        help="Which channel each page of a write goes to, above the layer block; as of list schemes.  [default: rr]",
    ),
    PAGE,
    run_option("the folder as $mount"),
    *KEPT,
    click.option(
        "--clock",
        type=click.Choice(["none", "virtual"]),
        default="none",
        help="Time of the drive: none, or virtual, one request after the other.",
    ),
    seed_option,
    *OUTCOME,
)


@command(short_help="Mount the co-designed file system (Linux).")
@click.argument("folder", type=click.Path(path_type=Path))
@in_order(*_OPTIONS)
def mount(folder: Path, *, scheme: str, **options: Any) -> None:  # noqa: ANN401
    """Mount the co-designed file system, on a simulated drive, at the empty FOLDER; print the figures at the end.

    Any program can use the file system, which is empty at first. umount, Ctrl-C and SIGTERM end the command. --image
    keeps the drive.

    \b
    Examples:
      palimpsest mount /mnt
      palimpsest mount /mnt --ssd codesign-8ch --scheme hybrid --json
      palimpsest mount /mnt --image files.pal
      palimpsest mount /mnt --ftl page --run 'cp -r src $mount && sync && du -sh $mount'
    """
    image = options["image"] if options["image"] is not None and options["image"].exists() else None
    if options["ftl"] is None and image is None:
        options["ftl"] = CHOOSES_CHANNELS
    if is_given(click.get_current_context(), "scheme"):
        _expect_channels(scheme, options, image)
    serving = {"listen": [], "once": False, "timeout_s": 30.0, "mount": {"at": str(folder), "scheme": scheme}}
    run_drive("files", options, serving)


def _expect_channels(scheme: str, options: Mapping[str, Any], image: Path | None) -> None:
    """Raises InputError for a scheme above a layer that chooses the channels itself."""
    is_of_image = image is not None and not is_given(click.get_current_context(), "ssd")
    ssd = str(image.absolute()) if is_of_image and image is not None else options["ssd"]
    layer = engine.layer_of(RunOptions(ssd=ssd, ftl=options["ftl"], overrides=tuple(options["overrides"])))
    if layer != CHOOSES_CHANNELS:
        what = f"the layer {layer} chooses the channels itself; expected --ftl {CHOOSES_CHANNELS}, or no --scheme"
        raise InputError(f"--scheme {scheme}: {what}")
