"""`python -m palimpsest` runs the command `palimpsest`."""

import gc
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command; an interrupt while modules load ends the process without a traceback."""
    # Loaded modules stay, and searching them for garbage takes a fifth of a short command.
    gc.set_threshold(100_000)
    from . import distribution

    # Another distribution may have replaced `__init__.py`, which refuses first.
    distribution.refuse_other()
    from .cli import main as command

    try:
        command()
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
