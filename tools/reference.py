"""Writes the reference page of the documentation from the program: registries, and every configuration key."""

import sys
from itertools import product
from pathlib import Path

from palimpsest import _core, plugins
from palimpsest.errors import InputError
from palimpsest.options import REGISTRIES

_HEAD = """# Reference

This page is written by the program when the documentation is built.
"""


FEATURES = {
    "protected buffer": ("buffer.ack=buffer",),
    "volatile buffer": ("buffer.ack=volatile",),
    "one-shot word lines": (
        "part.cell=tlc",
        "part.pages_per_program=3",
        "part.pages_per_block=192",
        "part.t_read_types=[]",
    ),
    "fast cache": ("part.cell=tlc", "ftl.streams=2", "ftl.slc_cache=10%"),
    "fixed fast cache": ("part.cell=tlc", "ftl.streams=2", "ftl.slc_fixed=5%"),
    "checkpoints": ("ftl.checkpoint=16MiB",),
    "parity": ("ftl.rain=3",),
    "collected superblocks": ("ftl.superblocks=collected",),
    "ECC and refresh": ("ecc.strength=40", "ecc.refresh_retries=1"),
    "patrol": ("ecc.strength=40", "ftl.patrol=1s"),
    "die failure": ("faults.die_failure=at:1000@1",),
    "read-ahead": ("controller.read_ahead=8",),
}
"""Settings that switch each feature on. A feature works on a layer if one of `PRESETS` takes the settings."""
OTHERWISE: dict[str, list[tuple[str, ...]]] = {
    "one-shot word lines": [("part.pages_per_program=4",)],
    "fast cache": [("part.cell=tlc", "ftl.slc_cache=10%", "fdp.unit=block")],
    "checkpoints": [("ftl.checkpoint=16MiB", "fdp.unit=block"), ("ftl.checkpoint=16MiB", "zns.zone_dies=1")],
    "collected superblocks": [("fdp.unit=superblock",), ("zns.zone_dies=0",)],
}
"""The same, for layers that need QLC, and for those whose reclaim units or zones are superblocks or blocks."""
FIXED_BY_SOME = "ftl.streams"
"""A key that features need on some layers and other layers fix."""
PRESETS = ("tlc-32g", "default", "spread-16g", "mga-16k", "llh-64g", "womv-16g", "codesign-8ch")


def refusal(layer: str, feature: str) -> str | None:
    """Why `layer` does not take the settings of `feature`, in the words of the program; none if some preset does."""
    why, settings = None, FEATURES[feature]
    # A layer may need the cells of the preset.
    own_cells = tuple(setting for setting in settings if not setting.startswith("part.cell="))
    for preset, tried in product(PRESETS, dict.fromkeys((own_cells, settings, *OTHERWISE.get(feature, ())))):
        try:
            _core.show(preset, layer, [])
        except InputError:
            continue
        try:
            _core.show(preset, layer, list(tried))
        except InputError as error:
            why = why or str(error).split("): ")[-1]
            continue
        unread = [
            what
            for key, _, what, _, gravity in _core.unread_keys(preset, layer, list(tried))
            if gravity == "mistake" and key != FIXED_BY_SOME
        ]
        if not unread:
            return None
        why = why or unread[0]
    return why or "no preset has a part for this layer"


def features() -> str:
    """The table of layers and features, and the reason of each refusal."""
    names = [name for name, _ in _core.list_registry("ftls")]
    cells = {(name, feature): refusal(name, feature) for name in names for feature in FEATURES}
    rows = [
        f"| `{name}` | {' | '.join('refused' if cells[name, feature] else 'yes' for feature in FEATURES)} |"
        for name in names
    ]
    reasons: dict[tuple[str, str], list[str]] = {}
    for (name, feature), why in cells.items():
        if why is not None:
            reasons.setdefault(
                (feature, why.split("; expected")[0].replace(f"{name} does", "the layer does")), []
            ).append(name)
    listed = [f"- {feature}, {', '.join(f'`{name}`' for name in of)}: {why}." for (feature, why), of in reasons.items()]
    refused = sum(why is not None for why in cells.values())
    return "\n".join(
        [
            "## Features of layers\n",
            f"| layer | {' | '.join(FEATURES)} |",
            f"| --- |{' --- |' * len(FEATURES)}",
            *rows,
            f"\n{refused} of {len(cells)} cells are refused:\n",
            *listed,
            "",
        ]
    )


def page() -> str:
    """The page, as Markdown."""
    parts = [_HEAD, "## Names\n"]
    for kind in REGISTRIES:
        rows = [f"| `{name}` | {description.replace('|', '&#124;')} |" for name, description in plugins.entries(kind)]
        if rows:
            parts.append("\n".join([f"### {kind}\n", "| name | what it is |", "| --- | --- |", *rows, ""]))
    parts.append(features())
    parts.append(
        "## Configuration keys\n\n"
        "What `palimpsest show` prints for the preset `default`: each key with its meaning and where its value comes "
        "from.\n\n"
        f"```toml\n{_core.show('default', None, [])}\n```\n"
    )
    return "\n".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
