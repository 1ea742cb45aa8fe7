"""The command `palimpsest sweep`."""

import json
from pathlib import Path

import click

from .. import errors
from ..commands import command, say, show
from ..parameters import DURATION, Choice, Parsed, cores, jobs_option, json_option, out_option, state_options
from ..run_options import fit_memory_option, strict_option
from . import driver
from .board import SweepBoard
from .conditions import parsed
from .engines import ENGINES, find
from .results import Sweep, load
from .store import is_sweep, read_points


@command(short_help="Run a grid of configurations and workloads.")
@click.argument("file", metavar="FILE.toml", type=click.Path(path_type=Path))
@out_option("Folder that keeps the results.  [default: results/FILE]")
@jobs_option("Points")
@click.option("--engine", type=Choice(list(ENGINES)), default="local", help="Where points run.")
@click.option("--address", metavar="ADDRESS", help="Cluster of dask (tcp://host:8786) or ray (host:6379, auto).")
@click.option("--dry-run", is_flag=True, help="Check and list the points without running them.")
@click.option("--point-timeout", type=DURATION, help="A point that takes longer fails, such as 90s or 10min.")
@click.option(
    "--slo", type=Parsed("CONDITIONS", parsed),
    help="Which configurations hold them, and the cheapest: read.p99<500us,dwpd>=1.",
)  # fmt: skip
@strict_option("points")
@fit_memory_option
@click.option("--fresh", is_flag=True, help="Run finished points again.")
@state_options
@json_option("points and key figures")
def sweep(
    file: Path, *, out: Path | None, jobs: int | None, engine: str, address: str | None, dry_run: bool,
    point_timeout: float | None, slo: str | None, strict: bool, fit_memory: int | None, fresh: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Run a grid or list of configurations and workloads, on all cores or on a cluster.

    All points are checked before the first one runs. Each is kept when done: after Ctrl-C or a crash the same command
    resumes, and of a changed file it runs only new points. DIR gets sweep.parquet, a row for each point, and
    report.html.

    \b
    A file:
      [base]
      workload = "oltp-zipf,n=1e5"
      [grid]
      ftl = ["page", "subpage"]
      ssd.over_provisioning = ["7%", "28%"]
      seed = {from = 1, to = 3, step = 1}

    \b
    Examples:
      palimpsest sweep op.toml --dry-run
      palimpsest sweep op.toml --out results/op --jobs 4
      palimpsest sweep op.toml --state states
      palimpsest sweep op.toml --slo "read.p99<500us,wa<4"
      palimpsest sweep op.toml --fit-memory 8GiB
      palimpsest sweep op.toml --json | jq '.points[].figures'
      palimpsest sweep op.toml --engine dask --address tcp://host:8786
      palimpsest sweep op.toml --engine ray --address auto
    """
    planned = driver.plan(file, out, strict=strict, slo=slo, memory=fit_memory, jobs=cores(jobs))
    for note in planned.notes:
        say(f"note: {note}")
    find(engine, address, point_timeout)
    if dry_run:
        _print_plan(planned, as_json, fresh=fresh)
        return
    labels = {point.identity: point.label for point in planned.points}
    try:
        with SweepBoard(None, labels) as board:
            found = driver.run(
                planned, engine=engine, address=address, jobs=jobs, fresh=fresh, point_timeout=point_timeout,
                note=lambda what: say(f"note: {what}"),
                watch=board.watch, begin=board.begin, finished=board.finished,
                show=lambda found: _show(found, board, as_json=as_json),
            )  # fmt: skip
    except BaseException:
        _say_kept(planned)
        raise
    say(f"wrote {planned.folder}/sweep.parquet and report.html")
    _fail_for(found)


def _print_plan(planned: driver.Plan, as_json: bool, *, fresh: bool) -> None:
    folder = planned.folder or Path()
    found = read_points(folder, [point.identity for point in planned.points])
    finished = frozenset(() if fresh else (identity for identity, _ in found))
    if as_json:
        points = [
            {"axes": point.axes, "identity": point.identity, "finished": point.identity in finished}
            for point in planned.points
        ]
        show(json.dumps({"title": planned.definition.title, "out": str(folder), "points": points}, indent=2))
        return
    from .show import render_plan

    show(render_plan(planned.definition.axes, planned.points, finished))


def _show(found: Sweep, board: SweepBoard, *, as_json: bool) -> None:
    board.end()
    show(found.to_json() if as_json else found)


def _say_kept(planned: driver.Plan) -> None:
    """After an interrupt or a failure, prints the number of kept points, and how to resume."""
    folder = planned.folder
    if folder is None or not is_sweep(folder):
        return
    kept = len(load(folder))
    if kept:
        say(f"{kept:,} of {len(planned.points):,} points are kept in {folder}; the same command resumes")


def _fail_for(found: Sweep) -> None:
    if found.failed:
        first = found.failed[0]
        raise errors.Error(
            f"{len(found.failed):,} of {found.total:,} points failed; the first, {first.label}: {first.error}"
        )
