"""`python -m palimpsest` is the command `palimpsest`."""

from .cli import main

if __name__ == "__main__":
    main()
