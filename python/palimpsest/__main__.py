"""`python -m palimpsest` is the command `palimpsest`."""

from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """The command, interrupted without a traceback even while it is being loaded."""
    from .cli import main as command

    command()


if __name__ == "__main__":
    main()
