"""Options of `palimpsest run` and `compare`, some of them also of other commands, and the checks before a run."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click

from . import completion, engine, fitting, timelines
from .commands import say
from .errors import InputError
from .intervals import METHODS
from .options import ARRIVALS, FIDELITIES, FIRST_OPERATIONS, PAYLOADS, RunOptions
from .parameters import (
    COUNT,
    SEED,
    SEEDS,
    Choice,
    OperationsFile,
    Parsed,
    json_option,
    make_folder,
    out_option,
    state_options,
)

_DEFAULT = RunOptions()
_Command = TypeVar("_Command", bound=Callable[..., object])

ftl_option = click.option(
    "--ftl", metavar="NAME", help="Translation layer.  [default: the drive's own]", shell_complete=completion.layers
)
ssd_option = click.option(
    "--ssd",
    default=_DEFAULT.ssd,
    metavar="NAME|FILE",
    help="Drive: preset or TOML file.",
    shell_complete=completion.files_and("ssds"),
)
set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a configuration key; may be repeated.",
    shell_complete=completion.settings,
)
seed_option = click.option("--seed", type=SEED, default=_DEFAULT.seed, help="Seed of everything random.")


def precondition_option(default: str | None, text: str) -> Callable[[_Command], _Command]:
    """The option `--precondition` with this default and help."""
    return click.option(
        "--precondition", default=default, metavar="SPEC", shell_complete=completion.preconditions, help=text
    )


def in_order(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """A decorator that gives a command these options, in this order."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


force_option = click.option("--force", is_flag=True, help="Replace the results of another run in the folder of --out.")


def strict_option(runs: str, more: str = "") -> Callable[[_Command], _Command]:
    """The option `--strict`, for these `runs`, with `more` effects."""
    text = f"Refuse a setting that one of the {runs} does not read, instead of a note{more}."
    return click.option("--strict", is_flag=True, help=text)


fit_memory_option = click.option(
    "--fit-memory", type=Parsed("SIZE", fitting.memory_of), is_flag=False, flag_value="auto",
    help="Scale the drive to this memory for each run, such as 16GiB, or to the memory at hand (auto, also without "
    "SIZE), with all ratios of sizes kept.",
)  # fmt: skip

_RUN_OPTIONS = (
    ssd_option,
    click.option(
        "--workload",
        default=_DEFAULT.workload,
        metavar="NAME|FILE|SPEC",
        shell_complete=completion.files_and("workloads"),
        help="Preset, trace file (plain, .gz or .zst), fio job file, or fio-like text as rw=randwrite,bs=4k,n=1e6.",
    ),
    set_option,
    fit_memory_option,
    precondition_option(
        _DEFAULT.precondition,
        "State of the drive before the run: none, fill:90%, fill:90%,random:2x, steady or layout.",
    ),
    click.option(
        "--requests", type=COUNT, help="Stop after this number of requests, such as 1e6 or 100k.  [default: all]"
    ),
    click.option(
        "--warmup",
        metavar="auto|N|PCT",
        help="Bring a preconditioned drive to the level of the load first (auto, the "
        "default), or leave the first requests (5000, 10%) out of the figures.",
    ),
    click.option(
        "--fidelity", type=Choice(FIDELITIES), default=_DEFAULT.fidelity, help="count: operation counts, no times."
    ),
    click.option(
        "--payload",
        type=Choice(PAYLOADS),
        default=_DEFAULT.payload,
        help="tag: verify every read, and all times of a timed run; bytes: carry real data too; none: verify nothing.",
    ),
    click.option(
        "--check",
        is_flag=True,
        help="Verify data and times, as the default payload does: refuses --payload none.",
    ),
    seed_option,
    click.option("--seeds", type=SEEDS, help="Repeat with these seeds (1..5 or 1,2,7): means with intervals."),
    click.option(
        "--interval",
        type=Choice(METHODS),
        default="t",
        help="Confidence intervals of --seeds, of 95 %: Student's t, or the bootstrap.",
    ),
    click.option(
        "--skip-bad", is_flag=True, help="Count and skip bad lines of a trace instead of stopping at the first."
    ),
    click.option(
        "--from",
        "format",
        metavar="FORMAT",
        help="Read a trace in this format instead of recognising it.",
        shell_complete=completion.formats,
    ),
    click.option(
        "--columns",
        metavar="ROLE=N[:UNIT],...",
        help="Read any text by its columns: time=1:us,op=3,offset=5:sectors,size=4,volume=2.",
    ),
    click.option(
        "--volumes",
        metavar="apart|overlaid|3,xvda1",
        help="Volumes of a trace: apart, sharing addresses, or some only.  [default: apart, if the format has any]",
    ),
    click.option(
        "--arrivals",
        type=Choice(ARRIVALS),
        default=_DEFAULT.arrivals,
        help="spread: requests of one time over the tick of the trace's clock.",
    ),
    click.option(
        "--start",
        metavar="PCT|spread",
        help="Begin a trace at this share of its requests, and play the requests before last; spread: the runs of "
        "--seeds begin at evenly spread requests.",
    ),
    click.option("--repeat", metavar="N|2dw", help="Play the workload again: N times, or until 2 drive writes."),
    click.option(
        "--until",
        metavar="1%|p99:5%|worn-out",
        help="Go on until the figures are known within 1 %, or p99 within 5 %; or until the drive can write no more "
        "(worn-out, with faults.wear_out).",
    ),
    click.option("--at-most", metavar="N|TIME", help="Requests or simulated time (20s) of --until.  [default: 10e6]"),
    out_option("Also write JSON, TOML, Parquet and an HTML report to DIR."),
    force_option,
    json_option("the result"),
    strict_option("runs", "; end at the first failed command on a zone"),
    state_options,
    click.option(
        "--operations",
        type=OperationsFile(),
        metavar="FILE|slowest:N",
        help="Also write the times of flash operations to FILE.parquet, or explain response times with the N slowest "
        "requests; with --out, the page draws them.",
    ),
    click.option(
        "--operations-window",
        metavar="FIRST..LAST",
        help=f"Requests, times (10ms..12ms) or slowest:N of --operations.  [default: {FIRST_OPERATIONS}]",
    ),
)


def run_options(command: _Command) -> _Command:
    """The options that `run` and `compare` share."""
    return in_order(*_RUN_OPTIONS)(command)


def check(runs: Sequence[RunOptions], *, strict: bool = False) -> None:
    """Checks configurations, and prints notes on settings that only some runs read. Raises InputError."""
    for each in runs:
        timelines.expect_inside(each)
    for line in engine.check(runs, strict=strict):
        say(f"note: {line}")


def fit(runs: Sequence[RunOptions], memory: int | None, jobs: int = 1) -> list[RunOptions]:
    """The runs on drives scaled to `memory` (`fitting.fitted`); prints a line for each scaling. Raises InputError."""
    made, lines = fitting.fitted(runs, memory, jobs)
    for line in lines:
        say(f"note: {line}")
    return made


def own_folder(out: Path | None, runs: Sequence[RunOptions], *, force: bool) -> None:
    """Makes the folder of `--out`; refuses a folder with results of other runs, unless `force`."""
    if out is None:
        return
    summary = out / "summary.json"
    if not force and summary.is_file():
        found = engine.made_from(summary)
        if found != [engine.provenance(each)["options"] for each in runs]:
            raise InputError(
                f"--out {out}: there are results of another run; expected another folder, or --force to replace them"
            )
    make_folder(out)
