"""The command `palimpsest validate`."""

import sys
from pathlib import Path

import click

from ..commands import command, say, show
from ..parameters import Folder, cores, jobs_option, json_option, make_folder, out_option
from ..progress import ProgressBoard


@command(short_help="Compare presets with real drives.")
@click.option("--quick/--full", "quick", default=False, help="Short runs on small drives: a minute.")
@click.option(
    "--truth",
    type=Folder(exists=True),
    metavar="DIR",
    help="Folder of tables of the same form.  [default: the package's]",
)
@jobs_option()
@out_option("Also write index.html, the rows, and data and a picture of each table.")
@json_option("the rows")
def validate(*, quick: bool, truth: Path | None, jobs: int | None, out: Path | None, as_json: bool) -> None:
    """Run published figures of real drives on the presets that model them.

    Each row has the real figure, ours, the deviation, the allowed deviation (bar), and whether the preset was fitted to
    the row or predicts it. The last table says which kinds of figures of each preset may be trusted; the status is 3 if
    some kind may not.

    \b
    Examples:
      palimpsest validate --quick
      palimpsest validate --out results/validate
      palimpsest validate --truth measured --json | jq '.rows[] | select(.within == false)'
    """
    from .. import reproduce
    from . import outputs, running

    tables = running.read(truth)
    if out is not None:
        make_folder(out)
    with ProgressBoard() as board:
        made = running.validate(tables, reproduce.Batch(cores(jobs), board.callback), quick=quick)
    show(outputs.to_json(made, out) if as_json else outputs.render(made))
    if out is not None:
        outputs.write(made, out)
        say(f"wrote {out}/index.html, validate.json, rows.csv, and data and pictures of the tables")
    if made.verdict.status:
        say(f"not to be trusted: {made.verdict.reason}")
        sys.exit(made.verdict.status)
