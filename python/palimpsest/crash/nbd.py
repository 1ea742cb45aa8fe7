"""The disk as a network block device, for programs that take an NBD URI: a small server of one file, beside a step.

Each request is applied to the file in the order of its connection, so the record has the requests of the program. A
write with FUA goes to the file by O_DSYNC, and makes nothing else durable; a flush is an fsync. Zeroes are written. Not
supported: structured replies, trims, TLS; `palimpsest serve` is the complete server. Source: `doc/proto.md` of
NetworkBlockDevice/nbd.
"""

import contextlib
import os
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InputError
from .namespaces import fork

_READ, _WRITE, _DISCONNECT, _FLUSH, _WRITE_ZEROES = 0, 1, 2, 3, 6
_EXPORT_NAME, _ABORT, _LIST, _INFO, _GO = 1, 2, 3, 6, 7
_ACKNOWLEDGED, _SERVER, _INFORMED, _UNSUPPORTED = 1, 2, 3, 1 << 31 | 1
_FLAGS = 1 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 8
"""Has flags, takes flushes, FUA and zeroes, and connections share one cache."""

_MOST = 32 << 20
_EIO, _EINVAL, _ENOSPC = 5, 22, 28
_REQUEST = struct.Struct(">IHHQQI")
_OPTION = struct.Struct(">8sII")


def uri_of(place: Path) -> str:
    """The URI of the socket `place`."""
    return f"nbd+unix:///?socket={place}"


@contextmanager
def served(file: Path, place: Path) -> Iterator[None]:
    """Serves a file at the socket `place` by a child process. Raises InputError if the socket cannot be made."""
    place.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        try:
            listening.bind(str(place))
        except OSError as error:
            raise InputError(f"{{nbd}}: {place}: {error}; expected an --out with a shorter name") from error
        listening.listen()
        child = fork()
        if child == 0:
            try:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                _accept(listening, file)
            finally:
                os._exit(0)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        # `kill_others` may have waited for the child.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
        place.unlink(missing_ok=True)


def _accept(listening: socket.socket, file: Path) -> None:
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=_serve, args=(connection, file), daemon=True).start()


def _take(connection: socket.socket, count: int) -> bytes:
    """The next bytes. Raises EOFError if the client has gone."""
    taken = bytearray()
    while len(taken) < count:
        more = connection.recv(count - len(taken))
        if not more:
            raise EOFError
        taken += more
    return bytes(taken)


def _serve(connection: socket.socket, file: Path) -> None:
    size = file.stat().st_size
    opened = [os.open(file, os.O_RDWR | more) for more in (0, os.O_DSYNC)]
    with contextlib.suppress(EOFError, OSError), connection:
        if _negotiate(connection, size):
            while _answer(connection, opened, size):
                pass
    for each in opened:
        os.close(each)


def _negotiate(connection: socket.socket, size: int) -> bool:
    """The handshake; returns whether requests follow."""
    connection.sendall(struct.pack(">8s8sH", b"NBDMAGIC", b"IHAVEOPT", 3))
    (flags,) = struct.unpack(">I", _take(connection, 4))

    def reply(option: int, kind: int, data: bytes = b"") -> None:
        connection.sendall(struct.pack(">QIII", 0x0003E889045565A9, option, kind, len(data)) + data)

    while True:
        magic, option, length = _OPTION.unpack(_take(connection, _OPTION.size))
        if magic != b"IHAVEOPT" or length > 1 << 16:
            return False
        _take(connection, length)
        if option == _EXPORT_NAME:
            connection.sendall(struct.pack(">QH", size, _FLAGS) + (b"" if flags & 2 else bytes(124)))
            return True
        if option in (_INFO, _GO):
            reply(option, _INFORMED, struct.pack(">HQH", 0, size, _FLAGS))
            reply(option, _ACKNOWLEDGED)
            if option == _GO:
                return True
        elif option == _LIST:
            reply(option, _SERVER, struct.pack(">I", 0))
            reply(option, _ACKNOWLEDGED)
        elif option == _ABORT:
            reply(option, _ACKNOWLEDGED)
            return False
        else:
            reply(option, _UNSUPPORTED)


def _answer(connection: socket.socket, opened: list[int], size: int) -> bool:
    """Serves a request; returns whether more may come."""
    magic, flags, kind, cookie, offset, length = _REQUEST.unpack(_take(connection, _REQUEST.size))
    if magic != 0x25609513 or kind == _DISCONNECT or (kind == _WRITE and length > _MOST):
        return False
    data, error = _take(connection, length) if kind == _WRITE else b"", 0
    try:
        if kind != _FLUSH and (length == 0 or (kind == _READ and length > _MOST)):
            error = _EINVAL
        elif kind != _FLUSH and offset + length > size:
            error = _EINVAL if kind == _READ else _ENOSPC
        elif kind == _READ:
            data = os.pread(opened[0], length, offset)
        elif kind in (_WRITE, _WRITE_ZEROES):
            _write(opened[flags & 1], data, offset, length)
        elif kind == _FLUSH:
            os.fsync(opened[0])
        else:
            error = _EINVAL
    except OSError:
        error = _EIO
    connection.sendall(struct.pack(">IIQ", 0x67446698, error, cookie) + (data if kind == _READ and not error else b""))
    return True


def _write(file: int, data: bytes, offset: int, length: int) -> None:
    """Writes the data of a write, or zeroes."""
    for begin in range(0, length, _MOST):
        piece = data if data else bytes(min(_MOST, length - begin))
        if os.pwrite(file, piece, offset + begin) < len(piece):
            raise OSError(_EIO, os.strerror(_EIO))
