"""Files that are written whole or not at all, and never through a link. Errors name the file."""

import contextlib
import hashlib
import io
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    import polars as pl

LARGEST_TEXT = 16 << 20
"""Bytes of the longest file of settings that is read."""


_digests: dict[tuple[str, int, int], str] = {}
_digests_lock = threading.Lock()


def holder(path: Path) -> Path:
    """The file that has the content of a path: itself, or the archive in a path such as `traces.zip/a.csv`."""
    if path.exists():
        return path
    return next((parent for parent in path.parents if parent.is_file()), path)


_IMAGE = b"PALIMPSEST-FLASH"
"""The first bytes of an image of a drive: `crates/flash/src/nand/image/layout.rs` has the places of the rest."""

_PAGE, _CONFIGURATION = 4096, 1 << 20


def digest(path: Path) -> str:
    """The digest of a file's content, blake2b of 128 bits; of one that did not change since, from memory.

    Of a trace in an archive (`traces.zip/a.csv`) it is that of the archive and the name; of an image of a drive that of
    its header and configuration, which is what it says of a drive.

    Raises:
        OSError: it cannot be read.
    """
    file_of = holder(path)
    if file_of != path:
        both = f"{digest(file_of)}/{path.relative_to(file_of)}"
        return hashlib.blake2b(both.encode(), digest_size=16).hexdigest()
    status = path.stat()
    key = (str(path), status.st_size, status.st_mtime_ns)
    with _digests_lock:
        if key not in _digests:
            with path.open("rb") as file:
                if file.read(len(_IMAGE)) == _IMAGE:
                    file.seek(0)
                    header = file.read(_PAGE)
                    file.seek(2 * _PAGE)
                    _digests[key] = hashlib.blake2b(header + file.read(_CONFIGURATION)).hexdigest()[:32]
                else:
                    file.seek(0)
                    _digests[key] = hashlib.file_digest(file, "blake2b").hexdigest()[:32]
        return _digests[key]


def open_new(path: Path, flags: int) -> TextIO:
    """Opens a text file to write, which is made if it is not there.

    Raises:
        OSError: it cannot be opened, or is a link.
    """
    return os.fdopen(os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, 0o666), "a+", encoding="utf-8")


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file that is there completely or not at all, whatever happens meanwhile, in place of a link too.

    Raises:
        OSError: the file could not be written; the error names `path`.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with named(path):
        try:
            partial.unlink(missing_ok=True)
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Errors of the operating system inside name this file: a write to a full disk names none."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno or 0, error.strerror or str(error), str(path)) from error


def write_in_order(folder: Path, files: Iterable[tuple[str, bytes | str]]) -> None:
    """Writes files into a folder, which is made if it is not there. After an error the files before it stay.

    Args:
        folder: the folder.
        files: names and contents, the most important first: a full disk keeps the first files.

    Raises:
        OSError: a file could not be written; the error names this file, and lists those that were kept.
    """
    kept: list[str] = []
    for name, content in files:
        path = folder / name
        try:
            with named(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise OSError(error.errno or 0, f"{error.strerror}; {_kept_text(kept)}", str(path)) from error
        kept.append(name)


def _kept_text(names: Sequence[str]) -> str:
    if not names:
        return "kept no file"
    more = f" and {len(names) - 3} more" if len(names) > 4 else ""
    return f"kept {', '.join(names[:3] if more else names)}{more}"


def parquet(table: "pl.DataFrame") -> bytes:
    """A table as the bytes of a Parquet file."""
    written = io.BytesIO()
    table.write_parquet(written)
    return written.getvalue()


def read_text(path: Path) -> str:
    """The text of a file of settings.

    Raises:
        OSError: it cannot be read, or is far too long.
        UnicodeDecodeError: it is no text.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise OSError(0, f"the file has more than {LARGEST_TEXT >> 20} MiB")
    return content.decode("utf-8")
