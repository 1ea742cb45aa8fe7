"""Files that are written completely or not at all, and never through a link. Errors name the file."""

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
"""Most bytes of a file of settings."""

_digests: dict[tuple[str, int, int], str] = {}
_digests_lock = threading.Lock()


def is_file(path: str | Path) -> bool:
    """True for a file. A text that cannot name one, such as a long specification, is none; `Path.is_file` may raise."""
    return os.path.isfile(path)  # noqa: PTH113


def is_there(path: str | Path) -> bool:
    """True if something has the path; any text may be asked, as with `is_file`."""
    return os.path.exists(path)  # noqa: PTH110


def holder(path: Path) -> Path:
    """The file with the content of a path: the path, or the archive in a path such as `traces.zip/a.csv`."""
    if is_there(path):
        return path
    return next((parent for parent in path.parents if is_file(parent)), path)


_IMAGE = b"PALIMPSEST-FLASH"
"""First bytes of the image of a drive; `crates/flash/src/nand/image/layout.rs` has the layout."""

_PAGE, _CONFIGURATION = 4096, 1 << 20


def digest(path: Path) -> str:
    """The digest of a file's content, blake2b of 128 bits, cached until the file changes. Raises OSError.

    A trace in an archive has the digest of archive and name, an image of a drive that of header and configuration.
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
    """Opens a text file to write, and creates it if needed. Raises OSError, also for a link."""
    return os.fdopen(os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, 0o666), "a+", encoding="utf-8")


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file completely or not at all, also in place of a link. Raises OSError that names `path`."""
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
    """Makes errors of the operating system inside name this file, because a write to a full disk names none."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno or 0, error.strerror or str(error), str(path)) from error


def write_in_order(folder: Path, files: Iterable[tuple[str, bytes | str]]) -> None:
    """Writes files, the most important first, which a full disk keeps. Raises OSError that lists the kept files."""
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
    """Returns a table as the bytes of a Parquet file."""
    written = io.BytesIO()
    table.write_parquet(written)
    return written.getvalue()


def read_text(path: Path) -> str:
    """Reads a file of settings. Raises OSError, also for a file that is too long, or UnicodeDecodeError."""
    with path.open("rb") as file:
        content = file.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise OSError(0, f"the file has more than {LARGEST_TEXT >> 20} MiB")
    return content.decode("utf-8")
