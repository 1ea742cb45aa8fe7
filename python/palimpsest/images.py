"""Files that keep drives for programs: the options `--image`, and the commands `palimpsest image`."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from . import _core
from .commands import Commands, echo, say
from .parameters import ImageFile, json_option

OPTIONS = (
    click.option(
        "--image",
        type=ImageFile(),
        metavar="FILE",
        help="Keep the drive in FILE, made if needed: flushed data survives kill -9. Without --ssd: the drive in FILE.",
    ),
    click.option("--image-sync", is_flag=True, help="Flushed data also survives a crash of the machine (fdatasync)."),
)
"""The options of a drive in an image, as decorators."""


def complete(options: dict[str, Any]) -> dict[str, str | bool | None]:
    """Completes the options of a drive in an image: drive and seed of an existing image replace the defaults.

    Takes the options of `OPTIONS` out, changes `ssd`, `overrides` and `seed`, and returns arguments for `engine.serve`.
    Raises InputError if an image cannot keep this drive, or the file is a damaged image.
    """
    image: Path | None = options.pop("image")
    kept = {"image": None if image is None else str(image), "image_sync": bool(options.pop("image_sync"))}
    if image is None:
        return kept
    context = click.get_current_context()

    def is_default(name: str) -> bool:
        return context.get_parameter_source(name) == click.core.ParameterSource.DEFAULT

    seed = _core.image_seed(str(image))
    if seed is not None:
        if is_default("ssd"):
            options["ssd"] = f"./{image}" if image.parent == Path() else str(image)
        if is_default("seed"):
            options["seed"] = seed
    needed = _core.image_settings(options["ssd"], options["ftl"], list(options["overrides"]))
    reasons = {
        "buffer.ack=program": "no buffer survives the end of the server, so writes are acknowledged when programmed",
        "fs.files=addresses": "flash does not say which program's file has which address, so a range of them is a file",
    }
    for setting in needed if not image.exists() else []:
        if setting in reasons:
            say(f"{setting}: {reasons[setting]}")
    options["overrides"] = (*options["overrides"], *needed)
    return kept


def look(what: str, image: Path) -> dict[str, Any]:
    """Inspects an image: `info`, `check` (checksums) or `compact` (frees space). Raises InputError."""
    found: dict[str, Any] = json.loads(_core.look_at_image(what, str(image)))
    return found


def _size(count: int) -> str:
    """Bytes with a unit."""
    size, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size:.4g} {units[0]}"


def _info_lines(found: Mapping[str, Any]) -> list[str]:
    written, wear = found["written"], found["wear"]
    ended = "well" if found["ended_well"] else "broken off, or not ended yet"
    return [
        f"{found['image']}: image of a drive, format {found['format']}",
        f"drive          {found['drive']}, {_size(found['drive_bytes'])} of {_size(found['flash_bytes'])} flash",
        f"layer          {found['ftl']} on {found['part']}, seed {found['seed']}",
        f"configuration  {found['configuration_hash']}",
        f"UUID           {found['uuid'] or 'none until the next service'}",
        f"written        {_size(written['host_bytes'])} by the host, {_size(written['host_read_bytes'])} read",
        f"stored         {_size(written['stored_bytes'])} in {written['programmed_pages']} pages"
        f" of {written['used_blocks']} blocks",
        f"wear           {wear['mean_erases']:.4g} erases of a block ({wear['min_erases']} to {wear['max_erases']})"
        f" of {wear['rated_erases']}, {wear['bad_blocks']} of {wear['blocks']} blocks bad",
        f"services       {found['services']}, of which {found['broken_off']} were broken off; the last: {ended}",
        f"on disk        {_size(found['disk_bytes'])} of a file of {_size(found['file_bytes'])}",
    ]


def _check_lines(found: Mapping[str, Any]) -> list[str]:
    image, damaged = found["image"], found["damaged"]
    lines = [f"{image}: {finding}" for finding in found["findings"]]
    if damaged > len(lines):
        lines.append(f"{image}: and {damaged - len(lines)} more")
    checked = f"{found['checked_pages']} pages with {_size(found['checked_bytes'])}"
    lines.append(f"{image}: {checked} checked, " + (f"{damaged} damaged" if damaged else "all match their checksums"))
    return lines


def _compact_lines(found: Mapping[str, Any]) -> list[str]:
    before, after, freed = (_size(found[key]) for key in ("disk_bytes_before", "disk_bytes", "freed_bytes"))
    return [f"{found['image']}: {before} on disk, now {after}: {freed} given back"]


_image = click.argument("image", type=ImageFile(exists=True), metavar="FILE")


@click.group("image", cls=Commands, short_help="Look at the file that keeps a served drive.")
def image_group() -> None:
    """Inspect a file of palimpsest serve --image: one drive with its pages, wear and bad blocks."""


@image_group.command()
@_image
@json_option("the contents")
def info(image: Path, *, as_json: bool) -> None:
    """Show drive, layer and configuration, written amounts, wear, and size on disk.

    \b
    Examples:
      palimpsest image info drive.pal
      palimpsest image info drive.pal --json
    """
    found = look("info", image)
    echo(json.dumps(found, indent=2) if as_json else "\n".join(_info_lines(found)))


@image_group.command()
@_image
@json_option("the findings")
def check(image: Path, *, as_json: bool) -> None:
    """Verify header, block marks and all page checksums; status 1 if anything is damaged.

    \b
    Examples:
      palimpsest image check drive.pal
    """
    found = look("check", image)
    echo(json.dumps(found, indent=2) if as_json else "\n".join(_check_lines(found)))
    if found["damaged"]:
        sys.exit(1)


@image_group.command()
@_image
@json_option("the freed space")
def compact(image: Path, *, as_json: bool) -> None:
    """Return disk space of erased blocks, and of cells without data, to the file system.

    \b
    Examples:
      palimpsest image compact drive.pal
    """
    found = look("compact", image)
    echo(json.dumps(found, indent=2) if as_json else "\n".join(_compact_lines(found)))
