"""The command line on the stand-in: `python fake_cli.py SECONDS_A_RUN ARGUMENT...`.

FAKE_LINE_EVERY has the seconds between two lines of progress.
"""

import os
import sys

import fake_core

if __name__ == "__main__":
    sys.modules["palimpsest._core"] = fake_core
    fake_core.DELAY_S = float(sys.argv.pop(1))
    from palimpsest import progress
    from palimpsest.cli import main

    progress.LINE_EVERY_S = float(os.environ.get("FAKE_LINE_EVERY", progress.LINE_EVERY_S))
    main()
