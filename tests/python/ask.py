"""Asks the process that has loaded the program (`loaded.py`) for a command: `python -IS ask.py SOCKET SCRIPT WORDS..`.

The command has the streams, the folder and the environment of this process, which ends with its status. It imports
little, so that a shell starts it in a tenth of the time of the program. Not modelled: signals to this process do not
reach the command.
"""

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence


def ask(
    place: str, words: Sequence[str], folder: str, environment: Mapping[str, str], streams: Sequence[int]
) -> socket.socket:
    """A connection on which two numbers come: the process of the command, then its status when it has ended.

    Args:
        place: the socket of the process that has loaded the program.
        words: the script and its arguments.
        folder: where it runs, absolute.
        environment: its environment.
        streams: its standard input, output and errors.

    Raises:
        OSError: no such process is there.
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
    """What comes next; a status is negative where a signal ended the command.

    Raises:
        TimeoutError: it did not come within the timeout of the connection.
        EOFError: the process that has loaded the program has ended.
    """
    if not (came := asked.recv(4)):
        raise EOFError("the process that has loaded the program has ended")
    return int.from_bytes(came, "little", signed=True)


def main() -> None:
    """Runs the command that the arguments say, as if it were this process."""
    _, place, *words = sys.argv
    with ask(place, words, os.path.realpath("."), os.environ, (0, 1, 2)) as asked:
        number(asked)
        status = number(asked)
    # A shell says 128 and the signal.
    os._exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
