"""The command `palimpsest leaderboard`."""

import json
from pathlib import Path
from typing import Any

import click

from .. import completion, errors
from ..commands import command, say, show
from ..parameters import COUNT, Choice, jobs_option, json_option, out_option, state_options
from ..sweeps import driver
from ..sweeps.board import SweepBoard
from .entries import entries
from .page import page
from .show import render
from .standings import FIGURES, board

_FOLDER = Path("results/leaderboard")
_PAGE = "leaderboard.html"


def _names(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in (value or "").split(","))))


@command(short_help="Rank layers on three drives, with intervals.")
@click.option(
    "--ftl", metavar="A,B,...", callback=_names, shell_complete=completion.layers,
    help="Layers that compete.  [default: those of the folder, else all for block devices]",
)  # fmt: skip
@click.option(
    "--add", metavar="A,B,...", callback=_names, shell_complete=completion.layers,
    help="Layers that join those of the folder, such as mylayer.py:Ring.",
)  # fmt: skip
@click.option("--ssd", metavar="A,B,...", callback=_names, help="Drives.  [default: small SLC, MLC and V-NAND drives]")
@click.option(
    "--workload", metavar="NAME|FILE", multiple=True, help="Workload or trace; may be repeated.  [default: three]"
)
@click.option("--seeds", type=COUNT, help="Runs of each, with seeds 1 to N.  [default: 5]")
@click.option("--requests", type=COUNT, help="Requests of a run.  [default: 5000]")
@click.option("--reference", metavar="LAYER", help="Layer of the ratio 1.  [default: the first]")
@click.option("--by", type=Choice(list(FIGURES)), default="wa", help="Figure of the order.")
@out_option(f"Folder that keeps the runs.  [default: {_FOLDER}]")
@jobs_option()
@state_options
@json_option("the standings")
def leaderboard(
    *, ftl: tuple[str, ...], add: tuple[str, ...], ssd: tuple[str, ...], workload: tuple[str, ...], seeds: int | None,
    requests: int | None, reference: str | None, by: str, out: Path | None, jobs: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Rank layers on three drives under three workloads, with an interval over seeds for each figure.

    Runs are kept: after Ctrl-C the same command resumes, and a layer that joins runs alone. Options that are not
    given are as in the folder.

    \b
    Examples:
      palimpsest leaderboard
      palimpsest leaderboard --add mylayer.py:Ring
      palimpsest leaderboard --ftl page,mga --workload trace.blkparse.zst --seeds 3
      palimpsest leaderboard --by tbw --json | jq '.drives[].layers[0].layer'
    """
    folder = out or _FOLDER
    given: dict[str, Any] = {
        "layers": ftl, "drives": ssd, "workloads": workload, "seeds": seeds, "requests": requests,
    }  # fmt: skip
    compete = entries(folder, {name: value for name, value in given.items() if value}, add)
    planned = driver.plan(compete.sweep(), folder)
    for note in planned.notes if ftl or add else ():  # of usual layers the tables say which have no place
        say(f"note: {note}")
    labels = {point.identity: point.label for point in planned.points}
    with SweepBoard(None, labels, what="runs") as progress:
        found = driver.run(
            planned, jobs=jobs, note=lambda what: say(f"note: {what}"), watch=progress.watch, begin=progress.begin,
            finished=progress.finished,
        )  # fmt: skip
    compete.write(folder)
    ranked = board(found, compete.layers, reference or compete.layers[0], by)
    conditions = "\n".join(f"{key} = {value}" for key, value in compete.sweep()["base"].items())
    (folder / _PAGE).write_text(page(ranked, compete.seeds, compete.workloads, conditions), encoding="utf-8")
    show(json.dumps(ranked.to_dict(), indent=2) if as_json else render(ranked, compete.seeds, compete.workloads))
    say(f"wrote {folder}/{_PAGE} and sweep.parquet")
    if found.failed:
        first = found.failed[0]
        raise errors.Error(
            f"{len(found.failed):,} of {found.total:,} runs failed; the first, {first.label}: {first.error}"
        )
