"""The runs of a leaderboard as a sweep: every layer on every drive under every workload, once for each seed.

All layers of a drive have the same flash, spare space and preconditioning, acknowledge a write when it is programmed,
and every read is verified. The drives are small, so that each is full and collects within a second. Ignored by
default: layers for other hosts (zones, file systems), `block`, which copies a block for each small write, and
`page-fgm`, which is `subpage`.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .. import _core
from ..errors import InputError

FILE = "leaderboard.json"
"""The file of a folder that has its entries."""

CONDITIONS: dict[str, Any] = {
    "ssd.blocks_per_plane": 128, "part.pages_per_block": 64, "ssd.over_provisioning": "35%", "buffer.ack": "program",
    "ftl.gc_start": "1 block", "ftl.gc_stop": "1 block",
}  # fmt: skip
"""Keys of the three drives: 35 % of spare space, because log blocks and reclaim units take up to twelve blocks."""

DRIVES = {"SLC": "mga-8k", "MLC": "llh-16g", "V-NAND": "spread-16g"}
"""Presets by name: `mga` programs parts of pages of the first, `llh` low pages of the second again, and `spftl` senses
words of the third."""

WORKLOADS = ("oltp-zipf", "trade", "mysql-like")
LAYER, DRIVE, WORKLOAD, SEED = "ftl", "label.drive", "workload", "seed"
_PRECONDITION = "fill:90%,random:1x"
_LEFT_OUT = ("block", "zns", "codesign", "page-fgm")
_FILE_SYSTEM = "fs-"


def usual_layers() -> tuple[str, ...]:
    """The layers for block devices, built in or installed."""
    names = [name for name, _ in _core.list_registry("ftls")]
    return tuple(name for name in names if name not in _LEFT_OUT and not name.startswith(_FILE_SYSTEM))


@dataclass(frozen=True)
class Entries:
    """What competes. `drives` are presets or files; without any, the three of this module."""

    layers: tuple[str, ...] = ()
    drives: tuple[str, ...] = ()
    workloads: tuple[str, ...] = WORKLOADS
    seeds: int = 5
    requests: int = 5_000

    def sweep(self) -> dict[str, Any]:
        """The sweep, as `palimpsest.sweep` takes it."""
        drives = {drive: drive for drive in self.drives} or DRIVES
        base = {"precondition": _PRECONDITION, "requests": self.requests, "host.fold": True}
        return {
            "title": "Leaderboard",
            "base": base | ({} if self.drives else CONDITIONS),
            "zip": [{DRIVE: [*drives], "ssd": [*drives.values()]}],
            "grid": {WORKLOAD: [*self.workloads], LAYER: [*self.layers], SEED: [*range(1, self.seeds + 1)]},
            "report": {"figure": "write_amplification", "x": LAYER, "colour": WORKLOAD, "facet": DRIVE},
        }

    def write(self, folder: Path) -> None:
        """Writes the entries into a folder."""
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def entries(folder: Path, given: Mapping[str, Any], added: tuple[str, ...]) -> Entries:
    """The entries that `given` names; what it lacks is as in the folder, or usual. `added` layers join.

    Raises InputError for a folder whose file is damaged.
    """
    path, found = folder / FILE, Entries(layers=usual_layers())
    if path.is_file():
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            lists = {name: tuple(map(str, data[name])) for name in ("layers", "drives", "workloads")}
            found = Entries(**lists, seeds=int(data["seeds"]), requests=int(data["requests"]))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}: expected what `palimpsest leaderboard` wrote: {error}") from error
    found = replace(found, **given)
    return replace(found, layers=tuple(dict.fromkeys([*found.layers, *added])))
