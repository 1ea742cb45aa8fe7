"""Asks the process of `loaded.py` to run a command: `python -IS ask.py SOCKET SCRIPT WORDS..`.

The command gets the streams, the folder and the environment of this process, which exits with the command's status.
This file imports little, so a shell starts it in a tenth of the program's loading time. Not modelled: signals to this
process do not reach the command.
"""

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence


def ask(
    place: str, words: Sequence[str], folder: str, environment: Mapping[str, str], streams: Sequence[int]
) -> socket.socket:
    """Connects and sends the request; the peer answers with the command's process number and, at the end, the status.

    Args:
        place: the socket of the process that has loaded the program.
        words: the script and its arguments.
        folder: the absolute working folder.
        environment: the environment of the command.
        streams: standard input, output and errors of the command.

    Raises:
        OSError: no such process exists.
    """
    asked = socket.socket(socket.AF_UNIX)
    asked.connect(place)
    request = os.memfd_create("request")
    with os.fdopen(request, "w+", encoding="utf-8") as file:
        json.dump({"words": list(words), "folder": folder, "environment": dict(environment)}, file)
        file.flush()
        socket.send_fds(asked, [b"?"], [request, *streams])
    return asked


def number(asked: socket.socket) -> int:
    """Returns the next number; a status is negative if a signal ended the command.

    Raises:
        TimeoutError: no number arrived within the timeout of the connection.
        EOFError: the process that has loaded the program has ended.
    """
    if not (came := asked.recv(4)):
        raise EOFError("the process that has loaded the program has ended")
    return int.from_bytes(came, "little", signed=True)


def main() -> None:
    """Runs the command of the arguments as if it were this process."""
    _, place, *words = sys.argv
    with ask(place, words, os.path.realpath("."), os.environ, (0, 1, 2)) as asked:
        number(asked)
        status = number(asked)
    # A shell reports 128 plus the signal.
    os._exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
