"""Programs at a terminal of a given width, and what they print there."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def at_terminal(
    command: Sequence[str], width: int = 80, environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Exit status of a command whose standard streams are a terminal, and all that it wrote."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    inherited = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    variables = inherited | {"TERM": "xterm-256color"} | dict(environment or {})
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            seen += part
    os.close(ours)
    return process.returncode, seen.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    """The text without escape codes."""
    return _ESCAPE.sub("", text)
