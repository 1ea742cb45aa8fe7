"""The command line: `palimpsest run`, `compare`, `sweep`, `reproduce`, `validate`, `report`, `list`, `show`, ....

Results go to standard output; progress and messages to standard error. Exit status 0: done; 2: wrong input, with a
message of one line; 130: interrupted, finished results are kept; 1: any other failure. Tables, plots and Parquet are
imported on use, because `run --json` needs none of them.
"""

import contextlib
import io
import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from . import _core, completion, engine, errors, interrupts, native, plugins, states, tenants, timelines, trace_commands
from . import objects as object_command
from . import reproduce as reproduction
from .commands import Commands, forget_unknown_width, help_width, say, show
from .fits import command as fit_command
from .needs import is_given
from .options import COMPARED_FTLS, FIRST_OPERATIONS, REGISTRIES, RunOptions
from .paper import command as figure_command
from .parameters import Choice, Folder, Parsed, cores, jobs_option, json_option, make_folder, out_option
from .progress import ProgressBoard
from .result import Comparison, Result
from .run_options import check, ftl_option, own_folder, run_options, set_option, ssd_option
from .sweeps import command as sweep_command
from .sweeps import conditions
from .sweeps import store as sweep_store
from .sweeps.board import SweepBoard
from .sweeps.engines import ENGINES
from .sweeps.runs import runner
from .validate import command as validate_command


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "terminal_width": help_width()},
    epilog="See `palimpsest COMMAND --help` for options and examples.",
)
@click.version_option(
    # Runs are slower with the module of `make dev`.
    _core.version() + (" (dev build)" if _core.profile() == "dev" else ""),
    prog_name="palimpsest",
    message="%(prog)s %(version)s",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Simulate solid-state drives, and compare flash translation layers on them.

    \b
    palimpsest run                               a full present-day drive under an OLTP load
    palimpsest compare --ftl page,subpage        two translation layers side by side
    palimpsest list                              names of drives, layers, workloads, ...
    """
    if native.PROBLEM:
        raise errors.InputError(native.PROBLEM)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@cli.command()
@click.argument("job", required=False, metavar="[WORKLOAD]", shell_complete=completion.files_and("workloads"))
@ftl_option
@run_options
@click.option(
    "--against", type=click.Path(path_type=Path), metavar="FILE",
    help="Compare with fio's --output-format=json of a real drive; without a workload, play the jobs that it records.",
)  # fmt: skip
@click.option("--alone", is_flag=True, help="Run each job or volume alone too: slowdowns and fairness.")
def run(
    job: str | None, ftl: str | None, *, against: Path | None, alone: bool, out: Path | None, force: bool,
    operations: Path | str | None, as_json: bool, strict: bool, **options: Any,  # noqa: ANN401
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
    own_folder(out, [chosen], force=force)
    if seeds:
        _replicate([chosen], seeds, method, cores(None), out, as_json=as_json)
        return
    if beside is not None:
        beside.begin()
    with ProgressBoard() as board:
        result = engine.run_one(chosen, board.callback("run"), keep_interrupted=True)
        if beside is not None:
            result = beside.compared(result)
        failure = None
        if alone and not result.get("interrupted"):
            result, failure = tenants.compared(chosen, result, cores(None), board.callback)
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


def _check_alone(chosen: RunOptions, seeds: Sequence[int] | None) -> None:
    """Raises InputError for a run whose tenants cannot run alone."""
    if seeds:
        raise errors.InputError("--alone: with --seeds each run would need its own; expected only one of the two")
    tenants.check(chosen)


@cli.command(short_help="Run several translation layers or settings side by side.")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--ftl",
    metavar="A,B,...",
    help=f"Translation layers; ratios are to the first.  [default: {','.join(COMPARED_FTLS)}]",
    shell_complete=completion.layers,
)
@jobs_option()
@click.option(
    "--slo", type=Parsed("CONDITIONS", conditions.parsed), help="Which runs hold them: read.p99<500us,dwpd>=1."
)
@run_options
def compare(
    runs: tuple[str, ...], ftl: str | None, *, jobs: int | None, slo: str | None, out: Path | None, force: bool,
    operations: Path | str | None, as_json: bool, strict: bool, **options: Any,  # noqa: ANN401
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
    own_folder(out, chosen, force=force)
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


cli.add_command(sweep_command.sweep)


@cli.command(short_help="Repeat the experiments of a paper.")
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
    from .reproduce import outputs

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


cli.add_command(validate_command.validate)
cli.add_command(fit_command.fit)


@cli.command(short_help="Make an HTML page from results.")
@click.argument("folder", metavar="DIR", type=Folder())
def report(folder: Path) -> None:
    """Write DIR/report.html, one self-contained page, from the results in DIR.

    \b
    Example:
      palimpsest run --out results/a && palimpsest report results/a
    """
    if sweep_store.is_sweep(folder):
        from .sweeps import driver

        click.echo(driver.rewrite(folder))
        return
    from . import outputs

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        path = outputs.rewrite_report(folder)
    for warning in caught:
        say(f"warning: {warning.message}")
    click.echo(path)


cli.add_command(figure_command.figure)


@cli.command(short_help="Repeat the runs of a folder, and compare.")
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
            click.echo(line)
    if any(outcome.differences for outcome in outcomes):
        sys.exit(errors.EXIT_FAILURE)


@cli.command(short_help="Print how to cite this version.")
def cite() -> None:
    """Print the BibTeX entry of this version; a result has the same version and digest (`provenance`).

    \b
    Examples:
      palimpsest cite >> thesis.bib
    """
    click.echo(
        "@software{palimpsest,\n"
        "  author  = {{The Palimpsest developers}},\n"
        "  title   = {{Palimpsest: a laboratory for solid-state drives}},\n"
        f"  version = {{{_core.version()}}},\n"
        "  year    = {2026},\n"
        f"  note    = {{Simulator of flash translation layers; sources {_core.build()}}},\n"
        "}"
    )


@cli.command("why", short_help="Print where the response times of a run come from.")
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

    loaded = outputs.load(folder)
    results = [loaded] if isinstance(loaded, Result) else list(loaded)
    if not any(map(why.kinds, results)):
        expected = "expected a result of `palimpsest run --operations slowest:20 --out DIR`"
        raise errors.InputError(f"{folder}: this result has no parts of response times; {expected}")
    parts = {each.label: why.kinds(each) for each in results}
    show(json.dumps(parts, indent=2) if as_json else why.render(results))


@cli.command("list")
@click.argument("kind", required=False, type=Choice(REGISTRIES), metavar="[KIND]")
@click.option("--json", "as_json", is_flag=True, help='Print {"KIND": {"NAME": "DESCRIPTION"}}.')
def list_(kind: str | None, as_json: bool) -> None:
    """List the names of drives, layers, workloads, ...

    KIND is one of ftls, parts, ssds, workloads, traces, objects (traces of objects), policies (evictions of caches),
    victims, classifiers, schemes, codes, faults and plugins; the default is all of them.

    \b
    Examples:
      palimpsest list
      palimpsest list ftls
      palimpsest list --json | jq '.workloads | keys'
    """
    found = {each: plugins.entries(each) for each in ([kind] if kind else REGISTRIES)}
    if as_json:
        show(json.dumps({each: dict(entries) for each, entries in found.items()}, indent=2))
        return
    from . import listing

    show(listing.render(found))


@cli.command("show", short_help="Print the resolved configuration.")
@ssd_option
@ftl_option
@set_option
def show_(ssd: str, ftl: str | None, overrides: Sequence[str]) -> None:
    """Print the resolved configuration as TOML: every key with its meaning and the source of its value.

    \b
    Examples:
      palimpsest show --ssd mga-16k
      palimpsest show --ssd mga-16k --set part.nop=4 > my-drive.toml
    """
    check([RunOptions(ssd=ssd, ftl=ftl, overrides=tuple(overrides))])
    click.echo(_core.show(ssd, ftl, list(overrides)), nl=False)


@cli.command("completion", short_help="Print the script that completes commands in a shell.")
@click.argument("shell", type=Choice(completion.SHELLS))
def completion_(shell: str) -> None:
    """Print the script that completes commands, options, names and configuration keys in a shell.

    \b
    Examples:
      palimpsest completion bash >> ~/.bashrc
      palimpsest completion zsh >> ~/.zshrc
      palimpsest completion fish > ~/.config/fish/completions/palimpsest.fish
    """
    click.echo(completion.script(shell, cli))


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
    """Runs each with each seed, and prints means and intervals."""
    from .replicates import replicate

    with ProgressBoard() as board:
        made = replicate(chosen, seeds, method, jobs, board.callback)
    show(made.to_json() if as_json else made)
    if out is not None:
        made.save(out)
        say(f"wrote {out}/intervals.csv, report.html, summary.json and a folder for each run and seed")


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


cli.add_command(trace_commands.trace)
cli.add_command(object_command.objects)


def _add_rest() -> None:
    """Adds other commands late, because importing them takes a quarter of the start of a command."""
    from . import attaching, checking, images, mounting, new_layer, nvme, serving
    from .crash import command as crash_command

    served = (serving.serve, nvme.nvme, attaching.attach, attaching.detach, mounting.mount)
    for each in (images.image_group, *served, crash_command.crash, new_layer.new_layer, checking.check):
        cli.add_command(each)


cli.add_rest = _add_rest


def _fail(error: BaseException) -> NoReturn:
    """Prints the cause of a failure in one line, and exits with the matching status."""
    if shown := error if os.environ.get("PALIMPSEST_DEBUG") else errors.of_the_user(error):
        traceback.print_exception(shown)
    status, text = _ending(error)
    if isinstance(error, OSError) and not error.filename:
        _drop_output()
    interrupts.at_end(status)
    if status == errors.EXIT_INTERRUPTED:
        say(text)
    else:
        _say(text)
    sys.exit(status)


def _ending(error: BaseException) -> tuple[int, str]:
    """Returns status and message for the exception that ended the command."""
    if isinstance(error, KeyboardInterrupt | errors.Interrupted | click.Abort):
        return errors.EXIT_INTERRUPTED, "interrupted"
    if isinstance(error, click.UsageError):
        return errors.EXIT_INPUT, _usage_text(error)
    if isinstance(error, click.ClickException):
        return errors.EXIT_FAILURE, error.format_message()
    if isinstance(error, errors.Error):
        return errors.exit_status(error), str(error)
    if isinstance(error, OSError):
        return errors.EXIT_FAILURE, f"{error.filename or 'standard output'}: {error.strerror or error}"
    what = f"unexpected {type(error).__name__}: {error} (PALIMPSEST_DEBUG=1 shows where; please report it)"
    return errors.EXIT_FAILURE, what


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        say(f"error: {errors.one_line(text)}")


def _usage_text(error: click.UsageError) -> str:
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter) and error.param:
        name = next((name for name in error.param.opts if name.startswith("--")), error.param.human_readable_name)
        source = error.ctx.get_parameter_source(error.param.name or "") if error.ctx else None
        # The user set the environment variable, not the option.
        if source == click.core.ParameterSource.ENVIRONMENT and isinstance(error.param.envvar, str):
            name = error.param.envvar
        if "expected" in error.message:
            return f"{name}: {error.message}"
        error = click.UsageError(f"{name}: {error.message}", error.ctx)
    given = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1] in cli.commands else ""
    command = error.ctx.command_path if error.ctx else f"palimpsest {given}".rstrip()
    return f"{error.format_message().rstrip('.')}; expected as `{command} --help` says"


def _drop_output() -> None:
    """Redirects standard output, which cannot be written, because Python would try again at exit, and fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _buffer_output() -> None:
    """Buffers standard output under PYTHONUNBUFFERED too, because the rest of a short write would be lost."""
    if isinstance(sys.stdout, io.TextIOWrapper) and isinstance(sys.stdout.buffer, io.RawIOBase):
        encoding, wrong = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(sys.stdout.detach()), encoding, wrong)


def main() -> NoReturn:
    """Runs the command; ends the process with the status that the contract names."""
    if os.environ.get(completion.VARIABLE):
        sys.exit(completion.answer(cli, os.environ[completion.VARIABLE]))
    if sys.stdout is None:
        _say("standard output is closed; expected a terminal, a pipe or a file")
        sys.exit(errors.EXIT_FAILURE)
    try:
        interrupts.at_work()
        forget_unknown_width()
        _buffer_output()
        # cli.main() has other messages and statuses for failures.
        with cli.make_context("palimpsest", sys.argv[1:]) as ctx:
            cli.invoke(ctx)
        sys.stdout.flush()
        interrupts.at_end(0)
    except click.exceptions.Exit as end:
        interrupts.at_end(end.exit_code)
        sys.exit(end.exit_code)
    except SystemExit:
        raise
    except BrokenPipeError:
        # The reader has gone, so end without a message, as programs in a pipe do.
        _drop_output()
        sys.exit(128 + signal.SIGPIPE)
    except BaseException as error:
        _fail(error)
    sys.exit(0)
