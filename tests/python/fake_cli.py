"""The command line on the stand-in: `python fake_cli.py SECONDS_A_RUN ARGUMENT...`."""

import sys

import fake_core

if __name__ == "__main__":
    sys.modules["palimpsest._core"] = fake_core
    fake_core.DELAY_S = float(sys.argv.pop(1))
    from palimpsest.cli import main

    main()
