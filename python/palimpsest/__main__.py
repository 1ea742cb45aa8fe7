"""`python -m palimpsest` is the command `palimpsest`."""

import gc
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command; an interrupt while modules load ends the process without a traceback."""
    # What is loaded stays: to look for garbage in it takes a tenth of a short command, and as much at its end.
    gc.set_threshold(100_000)
    from .cli import main as command

    try:
        command()
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
