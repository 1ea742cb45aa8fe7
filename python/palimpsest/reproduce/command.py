"""The command `palimpsest reproduce`."""

import contextlib
from pathlib import Path

import click

from .. import reproduce as reproduction
from ..commands import command, say, show
from ..parameters import Choice, Folder, cores, jobs_option, json_option, make_folder, out_option
from ..sweeps import store as sweep_store
from ..sweeps.board import SweepBoard
from ..sweeps.engines import ENGINES
from ..sweeps.runs import runner


@command(short_help="Repeat the experiments of a paper.")
@click.argument("paper", type=Choice(reproduction.NAMES), metavar="PAPER")
@click.option("--quick/--full", "quick", default=True, help="Small drives in a minute, or the paper's drives.")
@click.option(
    "--both", "settings", flag_value=reproduction.BOTH, default=reproduction.BOTH,
    help="What the paper does not say: as assumed here, and beside it as its own numbers imply, where that is known.  "
    "[default]",
)  # fmt: skip
@click.option("--assumed", "settings", flag_value=reproduction.ASSUMED, help="As assumed here, chosen blind.")
@click.option("--implied", "settings", flag_value=reproduction.IMPLIED, help="As the paper's own numbers imply.")
@click.option("--traces", type=Folder(exists=True), metavar="DIR", help="Folder of real traces, by name.")
@click.option(
    "--seed", type=click.IntRange(0, 2**63), default=1, show_default=True, metavar="N",
    help="First seed; experiments with several seeds take N, N+1, ....",
)  # fmt: skip
@jobs_option()
@click.option("--engine", type=Choice(list(ENGINES)), default="local", help="Where simulations run.")
@click.option("--address", metavar="ADDRESS", help="Cluster of dask (tcp://host:8786) or ray (host:6379, auto).")
@out_option("Also write index.html, and data and a picture of each figure; resumes an earlier reproduction in DIR.")
@json_option("claims and figures")
def reproduce(
    paper: str, *, quick: bool, settings: str, traces: Path | None, seed: int, jobs: int | None, engine: str,
    address: str | None, out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Repeat the experiments of a paper: figures and claims of the paper beside the simulated ones.

    PAPER is one of mga, llh, spread, codesign and womv, or all. With --out, each simulation is kept when done: after
    Ctrl-C or a crash the same command resumes, and runs only what changed.

    \b
    Examples:
      palimpsest reproduce mga
      palimpsest reproduce mga --full --out results/mga
      palimpsest reproduce mga --implied --seed 11
      palimpsest reproduce mga --json | jq '.claims[] | select(.agrees | not)'
    """
    papers = reproduction.chosen(paper)
    reproduction.check_settings(papers, settings)
    if out is not None:
        make_folder(out)
    from . import outputs

    together, made, full = paper == "all", [], not quick
    batch = reproduction.Batch(cores(jobs), traces=None if traces is None else str(traces), first_seed=seed)
    with contextlib.ExitStack() as opened:
        board = opened.enter_context(SweepBoard(None, {}, what="simulations"))
        store = None if out is None else opened.enter_context(sweep_store.Store(out))
        run = opened.enter_context(runner(engine, address, jobs, board, store, lambda what: say(f"note: {what}")))
        batch.runner = run
        try:
            run.plan(reproduction.plan(papers, batch, full=full, settings=settings))
            for name in papers:
                made.append(reproduction.reproduce(name, batch, full=full, settings=settings))
                if out is not None:
                    outputs.write(made[-1], out / name if together else out)
        except BaseException:
            board.end()
            if out is not None and (kept := len([*(out / "points").glob("*.json")])):
                say(f"{kept:,} simulations are kept in {out}; the same command resumes")
            raise
    if out is not None and together:
        outputs.write_all(made, out)
    for shown in [outputs.to_json(made, out, each_apart=together)] if as_json else map(outputs.render, made):
        show(shown)
    if out is not None:
        say(f"wrote {out}/index.html, and the data and pictures of its figures")
