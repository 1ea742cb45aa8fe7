"""`palimpsest demo`: two translation layers under a synthetic workload of the package, in seconds.

Ignored: real traces, which the package does not have; `make demo` in a checkout replays one if there is one.
"""

from pathlib import Path

import click

from .commands import command, say
from .parameters import out_option
from .run_commands import compare

_FTLS, _WORKLOAD = "page,subpage", "mysql-like"
_DRIVE = "ssd.capacity=4GiB"
"""The default drive, small: filling the whole one takes half of the time."""


@command(short_help="Compare two layers on a small workload, with a report.")
@out_option("Folder of the report and all results.  [default: results/demo; earlier results are replaced]")
@click.pass_context
def demo(context: click.Context, out: Path | None) -> None:
    """Compare the layers page and subpage behind the same write buffer, and write a report.

    The workload has the shape of an hour of a production MySQL server, and is part of the package.

    \b
    Examples:
      palimpsest demo
      palimpsest demo --out first
    """
    folder = out or Path("results", "demo")
    arguments = [
        "--ftl",
        _FTLS,
        "--set",
        _DRIVE,
        "--workload",
        _WORKLOAD,
        "--seeds",
        "1..3",
        "--out",
        str(folder),
        "--force",
    ]
    say(f"demo: palimpsest compare {' '.join(arguments)}")
    with compare.make_context("compare", arguments, parent=context.parent) as inner:
        compare.invoke(inner)
    say(f"demo: open {folder / 'report.html'} in a browser; `palimpsest list` has more layers, drives and workloads")
