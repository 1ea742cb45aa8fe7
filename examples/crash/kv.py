r"""A key-value store of a hundred lines with common faults to plant, for `palimpsest crash`.

A key is a file in the folder `data`, written under a new name and renamed. `update` changes the pages of one file in
place, after a copy in a journal. Each FAULT omits one safety measure.

    palimpsest crash --setup 'mkfs.ext4 -q {dev}' --setup 'python kv.py create {mount}' \
        --run 'python kv.py run {mount}' --check 'python kv.py check {mount} {output}' --out kv

FAULT is none, no-fsync (before the rename), no-directory (no fsync of the folder) or torn (no journal).
"""

import os
import sys
import zlib
from pathlib import Path

KEYS, ROUNDS, PAGES, PAGE = 4, 3, 8, 8192


def fsync(path: Path) -> None:
    """Makes the content of a file or folder durable."""
    number = os.open(path, os.O_RDONLY)
    os.fsync(number)
    os.close(number)


def value(key: int, version: int) -> bytes:
    """A value that names its key and version, after a checksum."""
    body = f"{key}:{version}:".encode() * 700
    return zlib.crc32(body).to_bytes(4, "little") + body


def version_of(key: int, data: bytes) -> int:
    """Returns the version of a value.

    Raises:
        ValueError: the value is torn.
    """
    if zlib.crc32(data[4:]).to_bytes(4, "little") != data[:4]:
        raise ValueError(f"the value of key {key} is torn")
    return int(data[4:].split(b":")[1])


def put(folder: Path, key: int, version: int, fault: str) -> None:
    """Writes a version of a value durably, under a name of its own, and deletes older versions."""
    fresh, name = folder / "fresh", folder / f"{key}.{version}"
    fresh.write_bytes(value(key, version))
    if fault != "no-fsync":
        fsync(fresh)
    fresh.rename(name)
    if fault != "no-directory":
        fsync(folder)
    for old in folder.glob(f"{key}.*"):
        if old != name:
            old.unlink()


def update(folder: Path, page: int, version: int, fault: str) -> None:
    """Changes a page in place, after a durable copy in the journal."""
    new = value(page, version)[:PAGE].ljust(PAGE, b".")
    new = zlib.crc32(new[4:]).to_bytes(4, "little") + new[4:]
    if fault != "torn":
        journal = folder / "journal"
        with journal.open("r+b") as file:
            file.write(page.to_bytes(4, "little") + new)
            file.flush()
            os.fsync(file.fileno())
    with (folder / "pages").open("r+b") as file:
        file.seek(page * PAGE)
        file.write(new)
        file.flush()
        os.fsync(file.fileno())


def create(folder: Path) -> None:
    """Creates an empty, durable store."""
    (folder / "data").mkdir()
    (folder / "pages").write_bytes(bytes(PAGES * PAGE))
    (folder / "journal").write_bytes(bytes(4 + PAGE))
    for path in (folder / "pages", folder / "journal", folder / "data", folder):
        fsync(path)


def run(folder: Path, fault: str) -> None:
    """Puts and updates, and prints each durable change."""
    for version in range(1, ROUNDS + 1):
        for key in range(KEYS):
            put(folder / "data", key, version, fault)
            print("put", key, version, flush=True)
            update(folder, key, version, fault)
            print("page", key, version, flush=True)


def check(folder: Path, said: str) -> None:
    """Checks that every printed change exists and is whole.

    Raises:
        ValueError: a change is lost or torn.
    """
    promised = {tuple(map(str, line.split()[:2])): int(line.split()[2]) for line in said.splitlines()}
    for key in range(KEYS):
        found = [version_of(key, path.read_bytes()) for path in (folder / "data").glob(f"{key}.*")]
        least = promised.get(("put", str(key)), 0)
        if max(found, default=0) < least:
            raise ValueError(f"version {least} of key {key} is lost")
    pages, journal = (folder / "pages").read_bytes(), (folder / "journal").read_bytes()
    for page in range(PAGES):
        held = pages[page * PAGE :][:PAGE]
        if zlib.crc32(journal[8:]).to_bytes(4, "little") == journal[4:8] and journal[:4] == page.to_bytes(4, "little"):
            held = journal[4:]
        least = promised.get(("page", str(page)), 0)
        if (version_of(page, held) if held.strip(b"\0") else 0) < least:
            raise ValueError(f"version {least} of page {page} is lost")


if __name__ == "__main__":
    action, folder = sys.argv[1], Path(sys.argv[2])
    fault = os.environ.get("FAULT", "none")
    try:
        if action == "create":
            create(folder)
        elif action == "run":
            run(folder, fault)
        else:
            check(folder, Path(sys.argv[3]).read_text(encoding="ascii"))
    except ValueError as error:
        sys.exit(str(error))
