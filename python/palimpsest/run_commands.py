"""The commands `palimpsest run`, `compare` and `show`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from . import _core, completion, engine, errors, states, tenants, timelines
from .commands import command, echo, say, show
from .needs import is_given
from .options import COMPARED_FTLS, FIRST_OPERATIONS, RunOptions
from .parameters import Parsed, cores, jobs_option
from .progress import ProgressBoard
from .replicates import repeated, replicate
from .result import Comparison, Result
from .run_options import check, fit, fit_memory_option, ftl_option, own_folder, run_options, set_option, ssd_option
from .sweeps import conditions


@command(short_help="Run a workload on a drive, and print its figures.")
@click.argument("job", required=False, metavar="[WORKLOAD]", shell_complete=completion.files_and("workloads"))
@ftl_option
@run_options
@click.option(
    "--against", type=click.Path(path_type=Path), metavar="FILE",
    help="Compare with fio's --output-format=json of a real drive; without a workload, play the jobs that it records.",
)  # fmt: skip
@click.option("--alone", is_flag=True, help="Run each job or volume alone too: slowdowns and fairness.")
def run(
    job: str | None, ftl: str | None, *, against: Path | None, alone: bool, fit_memory: int | None, out: Path | None,
    force: bool, operations: Path | str | None, as_json: bool, strict: bool, **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Run a workload on a drive, and print its figures.

    WORKLOAD is as with --workload.

    \b
    Examples:
      palimpsest run
      palimpsest run job.fio --against result.json
      palimpsest run --ssd mga-16k --ftl mga --workload trace.csv.zst --precondition fill:90%
      palimpsest run --workload rw=randwrite,bs=4k,n=1e6,iodepth=32 --set ftl.victim=fifo
      palimpsest run --json | jq .write_amplification
      palimpsest run --out results/a --operations operations.parquet
      palimpsest run --operations slowest:20 --out results/b
      palimpsest run --seeds 1..3
      palimpsest run --alone --workload runtime=50ms,name=a,rw=randread,name=b,rw=write
      palimpsest run --state states
      palimpsest run --ssd d5-p5336-30.72t --fit-memory 1GiB
    """
    if ftl is not None and "," in ftl:
        raise errors.InputError(f"--ftl {ftl}: expected one translation layer; `palimpsest compare` takes several")
    seeds, method = _seeds(options)
    given = is_given(click.get_current_context(), "workload")
    if job is not None:
        if given:
            raise errors.InputError(f"{job}: --workload names the workload too; expected one of them")
        options["workload"] = job
    chosen = RunOptions(ftl=ftl, series=out is not None, strict=strict, **_plain(options, operations))
    beside = None
    if against is not None:
        from . import against as measured

        beside = measured.Against(against, chosen, out, given=given or job is not None)
        chosen = beside.options
    if alone:
        _check_alone(chosen, seeds)
    check([chosen], strict=strict)
    [chosen] = fit([chosen], fit_memory)
    own_folder(out, repeated([chosen], seeds) if seeds else [chosen], force=force)
    if seeds:
        _replicate([chosen], seeds, method, _at_a_time(fit_memory), out, as_json=as_json)
        return
    if beside is not None:
        beside.begin()
    with ProgressBoard() as board:
        result = engine.run_one(chosen, board.callback("run"), keep_interrupted=True)
        if beside is not None:
            result = beside.compared(result)
        failure = None
        if alone and not result.get("interrupted"):
            result, failure = tenants.compared(chosen, result, _at_a_time(fit_memory), board.callback)
    show(result.to_json() if as_json else result)
    if out is not None:
        result.save(out)
        say(f"wrote {out}/report.html, summary.json, config.toml and Parquet tables")
    _write_operations(result, operations, chosen.operations)
    if not as_json and result.get("why"):
        from . import why

        show(why.render([result]))
    if not as_json and beside is not None:
        show(measured.render(result["against"]))
    if failure is not None:
        raise failure
    if result.to_dict().get("interrupted"):
        raise KeyboardInterrupt


def _at_a_time(memory: int | None) -> int:
    """Runs at a time of `run`: the drive of --fit-memory takes the memory of one."""
    return cores(None) if memory is None else 1


def _check_alone(chosen: RunOptions, seeds: Sequence[int] | None) -> None:
    """Raises InputError for a run whose tenants cannot run alone."""
    if seeds:
        raise errors.InputError("--alone: with --seeds each run would need its own; expected only one of the two")
    tenants.check(chosen)


@command(short_help="Run several translation layers or settings side by side.")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--ftl",
    metavar="A,B,...",
    help=f"Translation layers; ratios are to the first.  [default: {','.join(COMPARED_FTLS)}]",
    shell_complete=completion.layers,
)
@jobs_option()
@click.option(
    "--slo", type=Parsed("FIGURE<BOUND,...", conditions.parsed), help="Which runs hold them: read.p99<500us,dwpd>=1."
)
@run_options
def compare(
    runs: tuple[str, ...], ftl: str | None, *, jobs: int | None, slo: str | None, fit_memory: int | None,
    out: Path | None, force: bool, operations: Path | str | None, as_json: bool, strict: bool,
    **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Run the same workload on several translation layers, or with several settings, side by side.

    A RUN is a layer, or LABEL:KEY=VALUE,... with configuration keys, ftl or ssd.

    \b
    Examples:
      palimpsest compare
      palimpsest compare greedy:ftl.victim=greedy cb:ftl.victim=cost-benefit
      palimpsest compare page small:ftl=mga,ftl.allocation_threshold=25% --ssd mga-16k
      palimpsest compare --ftl page,subpage,mga --ssd mga-16k --workload trace.csv.zst
      palimpsest compare --ssd mga-16k --ftl page,mga --fidelity count --out results/mga
      palimpsest compare --ftl page,subpage --slo "read.p99<500us,wa<4"
    """
    seeds, method = _seeds(options)
    wanted = conditions.conditions(slo) if slo is not None else []
    if wanted and seeds:
        raise errors.InputError("--slo: conditions are those of one seed; expected no --seeds, or `palimpsest sweep`")
    conditions.expect_measured(wanted, options["fidelity"])
    base = RunOptions(series=out is not None, strict=strict, **_plain(options, operations))
    names = runs or _names(",".join(COMPARED_FTLS) if ftl is None else ftl)
    chosen = [base.labelled(text) for text in names]
    labels = [each.label or each.ftl or "" for each in chosen]
    for label in labels:
        if labels.count(label) > 1:
            raise errors.InputError(f"run {label!r}: given twice; expected a label of its own for each run")
    check(chosen, strict=strict)
    chosen = fit(chosen, fit_memory, cores(jobs))
    own_folder(out, repeated(chosen, seeds) if seeds else chosen, force=force)
    if seeds:
        _replicate(chosen, seeds, method, cores(jobs), out, as_json=as_json)
        return
    jobs = min(cores(jobs), len(chosen))
    if len({(each.ssd, each.ftl) for each in chosen}) < len(chosen):
        states.share()
    with ProgressBoard() as board:
        results, failure = engine.run_many(chosen, jobs, board.callback)
    results = [conditions.judged(each, wanted) if wanted else each for each in results]
    if results:
        show(Comparison(results).to_json() if as_json else Comparison(results))
        if out is not None:
            Comparison(results).save(out)
            say(f"wrote {out}/report.html, summary.json and a folder for each layer")
        _write_operations(Comparison(results), operations, base.operations)
    if failure is not None:
        if results:
            say(f"{len(results)} of {len(chosen)} runs finished")
        raise failure


@command("show", short_help="Print the resolved configuration.")
@ssd_option
@ftl_option
@set_option
@fit_memory_option
def show_(ssd: str, ftl: str | None, overrides: Sequence[str], *, fit_memory: int | None) -> None:
    """Print the resolved configuration as TOML: every key with its meaning and the source of its value.

    \b
    Examples:
      palimpsest show --ssd mga-16k
      palimpsest show --ssd mga-16k --set part.nop=4 > my-drive.toml
      palimpsest show --ssd d5-p5336-30.72t --fit-memory 16GiB > small.toml
    """
    chosen = [RunOptions(ssd=ssd, ftl=ftl, overrides=tuple(overrides))]
    check(chosen)
    [made] = fit(chosen, fit_memory)
    echo(_core.show(ssd, ftl, list(made.overrides)), nl=False)


def _plain(options: dict[str, Any], operations: Path | str | None) -> dict[str, Any]:
    """Converts options of the command line to options of a run; `operations`: the timeline's file, or a window."""
    window = options.pop("operations_window")
    if isinstance(operations, str):
        if window is not None:
            raise errors.InputError(f"--operations-window {window}: expected with --operations FILE, not a window")
        window = operations
    return options | {
        "overrides": tuple(options["overrides"]),
        "operations": None if operations is None else FIRST_OPERATIONS if window is None else window,
    }


def _seeds(options: dict[str, Any]) -> tuple[tuple[int, ...] | None, str]:
    """Takes the seeds and the method of the intervals out of the options."""
    return options.pop("seeds"), options.pop("interval")


def _replicate(
    chosen: list[RunOptions], seeds: Sequence[int], method: str, jobs: int, out: Path | None, *, as_json: bool
) -> None:
    """Runs each with each seed, and prints means and intervals; after an error of the finished seeds."""
    with ProgressBoard() as board:
        made, failure = replicate(chosen, seeds, method, jobs, board.callback)
    if made is not None:
        show(made.to_json() if as_json else made)
        if out is not None:
            made.save(out)
            say(f"wrote {out}/intervals.csv, report.html, summary.json and LABEL/seed-N for each run")
        if not as_json and any(each.get("why") for each in made.contenders):
            from . import why

            show(why.render(made.contenders))
    if failure is not None:
        if made is not None:
            say(f"{len(made.seeds)} of {len(seeds)} seeds finished in every run")
        raise failure


def _write_operations(results: Result | Comparison, file: Path | str | None, window: str | None) -> None:
    """Writes the timeline to `file`, if given. Raises InputError if the window is beyond the end of every run."""
    if not isinstance(file, Path):
        return
    beyond = timelines.beyond_the_end(window, [results] if isinstance(results, Result) else list(results))
    if beyond is not None:
        raise errors.InputError(beyond)
    from . import outputs

    written = outputs.save_operations(results, file)
    say(f"wrote {' and '.join(map(str, written))}")


def _names(ftls: str) -> list[str]:
    names = [name.strip() for name in ftls.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise errors.InputError(
            f"--ftl {ftls}: expected different names with commas between them, such as page,subpage"
        )
    return names
