"""Owners of bytes on a disk with a file system of the ext family, by `debugfs`; deleted files have no name."""

import re
import subprocess
from collections.abc import Collection
from pathlib import Path

_JOURNAL = "8"
_AT_ONCE = 200


def _ask(file: Path, request: str) -> str:
    command = ["debugfs", "-R", request, str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def owners(file: Path, places: Collection[int]) -> dict[int, str]:
    """Names of files, or `the journal`, of these bytes of a file system in `file`; unknown bytes are left out."""
    size = re.search(r"^Block size:\s+([0-9]+)", _ask(file, "stats -h"), re.M)
    if size is None:
        return {}
    blocks = {place: place // int(size[1]) for place in places}
    of_block: dict[int, str] = {}
    wanted = sorted(set(blocks.values()))
    for first in range(0, len(wanted), _AT_ONCE):
        said = _ask(file, "icheck " + " ".join(map(str, wanted[first : first + _AT_ONCE])))
        of_block |= {int(block): inode for block, inode in re.findall(r"^([0-9]+)\t([0-9]+)$", said, re.M)}
    names = dict(
        re.findall(r"^([0-9]+)\t(/.*)$", _ask(file, "ncheck " + " ".join(sorted(set(of_block.values())))), re.M)
    )
    names[_JOURNAL] = "the journal"
    found = {place: names.get(of_block.get(block, ""), "") for place, block in blocks.items()}
    return {place: name.replace("//", "/") for place, name in found.items() if name}
