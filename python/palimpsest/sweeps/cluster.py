"""The address of a cluster: whether a server listens there. The engines that have one share this."""

import re
import socket

PATIENCE_S = 10
"""Seconds that a cluster has to answer."""


def answers(address: str) -> bool:
    """Whether a server listens at `[PROTOCOL://]HOST:PORT`; True of other forms, which only the clients parse.

    The clients themselves take up to a minute to find out that none does.
    """
    match = re.fullmatch(r"(?:(?:tcp|tls|ray)://)?\[?([^\[\]/]+?)\]?:(\d{1,5})", address)
    if match is None:
        return True
    try:
        socket.create_connection((match[1], int(match[2])), timeout=PATIENCE_S).close()
    except (OSError, OverflowError):
        return False
    return True
