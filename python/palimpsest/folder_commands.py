"""The commands on a folder of results: `palimpsest report`, `rerun` and `why`."""

import json
import sys
import warnings
from pathlib import Path

import click

from . import errors
from .commands import command, echo, say, show
from .parameters import Folder, json_option
from .progress import ProgressBoard
from .sweeps import store as sweep_store


@command(short_help="Make an HTML page from results.")
@click.argument("folder", metavar="DIR", type=Folder())
def report(folder: Path) -> None:
    """Write DIR/report.html, one self-contained page, from the results in DIR.

    \b
    Example:
      palimpsest run --out results/a && palimpsest report results/a
    """
    if sweep_store.is_sweep(folder):
        from .sweeps import driver

        echo(str(driver.rewrite(folder)))
        return
    from . import outputs

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        path = outputs.rewrite_report(folder)
    for warning in caught:
        say(f"warning: {warning.message}")
    echo(str(path))


@command(short_help="Repeat the runs of a folder, and compare.")
@click.argument("folder", metavar="DIR", type=Folder(exists=True))
def rerun(folder: Path) -> None:
    """Repeat the run or comparison in DIR with its recorded options, and compare the bytes (status 1 if they differ).

    \b
    Example:
      palimpsest run --out results/a && palimpsest rerun results/a
    """
    from . import reruns

    with ProgressBoard() as board:
        outcomes, _ = reruns.rerun(folder, board.callback)
    for outcome in outcomes:
        for line in outcome.lines():
            echo(line)
    if any(outcome.differences for outcome in outcomes):
        sys.exit(errors.EXIT_FAILURE)


@command("why", short_help="Print where the response times of a run come from.")
@click.argument("folder", type=Folder(exists=True), metavar="DIR")
@json_option("the parts")
def why_(folder: Path, *, as_json: bool) -> None:
    """Print the parts of the response times at p50, p99, p99.9 and the longest.

    DIR is a folder that `run` or `compare` wrote with --operations slowest:N.

    \b
    Examples:
      palimpsest run --operations slowest:20 --out results/a
      palimpsest why results/a
    """
    from . import outputs, why

    expected = "expected a result of `palimpsest run --operations slowest:20 --out DIR`"
    if sweep_store.is_sweep(folder):
        raise errors.InputError(f"{folder}: this is the folder of a sweep, which keeps no parts; {expected}")
    results = outputs.contenders(folder)
    if not any(map(why.kinds, results)):
        raise errors.InputError(f"{folder}: this result has no parts of response times; {expected}")
    parts = {each.label: why.kinds(each) for each in results}
    show(json.dumps(parts, indent=2) if as_json else why.render(results))
