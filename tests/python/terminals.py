"""Runs programs at a terminal of a given width and returns their output."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def read_all(terminal: int) -> str:
    """All output that programs write to a terminal until the last one closes it; closes our end."""
    seen = b""
    # Linux reports the end as an error, other systems as no data.
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 65536):
            seen += part
    os.close(terminal)
    return seen.decode()


def at_terminal(
    command: Sequence[str], width: int = 80, environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Exit status of a command whose standard streams are a terminal, and all of the output."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    inherited = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    variables = inherited | {"TERM": "xterm-256color"} | dict(environment or {})
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables) as process:
        os.close(theirs)
        seen = read_all(ours)
    return process.returncode, seen.replace("\r\n", "\n")


def plain(text: str) -> str:
    """The text without escape codes."""
    return _ESCAPE.sub("", text)
