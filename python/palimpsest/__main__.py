"""`python -m palimpsest` is the command `palimpsest`."""

import gc
from typing import NoReturn


def main() -> NoReturn:
    """The command, interrupted without a traceback even while it is being loaded."""
    # What is loaded stays: to look for garbage in it takes a tenth of a short command, and as much at its end.
    gc.set_threshold(100_000)
    from .cli import main as command

    try:
        command()
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
