"""The address of a cluster: whether a server listens there. Engines with a cluster share this check."""

import re
import socket

PATIENCE_S = 10
"""Seconds that a cluster has to answer."""


def answers(address: str) -> bool:
    """Whether a server listens at `[PROTOCOL://]HOST:PORT`, which clients take a minute to find out; True otherwise."""
    match = re.fullmatch(r"(?:(?:tcp|tls|ray)://)?\[?([^\[\]/]+?)\]?:(\d{1,5})", address)
    if match is None:
        return True
    try:
        socket.create_connection((match[1], int(match[2])), timeout=PATIENCE_S).close()
    except (OSError, OverflowError):
        return False
    return True
