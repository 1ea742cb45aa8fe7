"""`python -m palimpsest` is the command `palimpsest`."""

import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """The command, interrupted without a traceback even while it is being loaded."""
    try:
        from .cli import main as command
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
