"""The commands `palimpsest trace info`, `convert` and `synth`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from . import completion, traces
from .commands import Commands, say, show
from .needs import is_given
from .parameters import COUNT, json_option, make_folder, out_option
from .progress import ProgressBoard
from .run_options import in_order, seed_option

_Command = TypeVar("_Command", bound=Callable[..., object])


def _options(*, trace: bool, generated: bool) -> Callable[[_Command], _Command]:
    """The options of a command that reads traces, generates workloads, or both."""
    options = []
    if generated:
        options += [
            click.option(
                "--ssd",
                default="default",
                metavar="NAME|FILE",
                help="Drive for the layout of a specification.",
                shell_complete=completion.files_and("ssds"),
            ),
            seed_option,
        ]
    options.append(click.option("--requests", type=COUNT, help="Stop after this number of requests.  [default: all]"))
    if trace:
        options += [
            click.option(
                "--from",
                "input_format",
                metavar="FORMAT",
                help="Read in this format instead of recognising it.",
                shell_complete=completion.formats,
            ),
            click.option(
                "--columns", metavar="ROLE=N[:UNIT],...", help="Read any text by its columns: see `run --help`."
            ),
            click.option(
                "--volumes", metavar="apart|overlaid|3,xvda1", help="Volumes: apart, sharing addresses, or some only."
            ),
            click.option("--skip-bad", is_flag=True, help="Count and skip bad lines instead of stopping at the first."),
        ]
    return in_order(*options)


def _files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, "file")]


_output_format = click.option(
    "--format",
    "output_format",
    metavar="FORMAT",
    help="Format of OUT.  [default: by its ending]",
    shell_complete=completion.formats,
)


@click.group("trace", cls=Commands, short_help="Describe traces, convert and generate them.")
def trace() -> None:
    """Describe traces, convert them, and generate new ones.

    `palimpsest list traces` has the formats. Traces are recognised by their content, plain, .gz or .zst.
    """


@trace.command(short_help="Describe a workload.")
@click.argument("workload", metavar="FILE|SPEC", shell_complete=completion.files_and("workloads"))
@_options(trace=True, generated=True)
@out_option("Also write trace.html and trace.json to DIR.")
@json_option("the description")
def info(out: Path | None, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Describe a workload: sizes, locality, arrivals.

    Read ratio, footprint, overwrites, sequentiality, hot share, reuse distances, miss ratios of caches, working
    sets: `palimpsest help howto-trace` has the terms.

    \b
    Examples:
      palimpsest trace info trace.csv.zst
      palimpsest trace info trace.csv.zst --out results/trace
      palimpsest trace info trade,n=1e5 --json | jq .locality.hot_write_ratio
    """
    if out is not None:
        make_folder(out)
    with ProgressBoard() as board:
        of_generated = tuple(f"--{name}" for name in ("ssd", "seed") if is_given(click.get_current_context(), name))
        chosen = traces.TraceOptions(**options, of_generated=of_generated)
        description, counts = traces.describe(chosen, board.callback("read"))
    if as_json:
        show(json.dumps(description, indent=2))
    if not as_json:
        from . import trace_table

        show(trace_table.render(description))
    if out is not None:
        from . import trace_report

        trace_report.write(description, counts, out)
        say(f"wrote {out}/trace.html and trace.json")


@trace.command(short_help="Write a trace in another format.")
@click.argument("source", metavar="IN", shell_complete=_files)
@click.argument("output", metavar="OUT", shell_complete=_files)
@_options(trace=True, generated=False)
@_output_format
def convert(source: str, output: str, **options: Any) -> None:  # noqa: ANN401
    """Write the trace IN as OUT, in the format that the ending of OUT names, or --format; .gz or .zst compress.

    Standard error reports all data that the format cannot hold.

    \b
    Examples:
      palimpsest trace convert web_3.csv web_3.parquet
      palimpsest trace convert web_3.csv web_3.blkparse.zst
      palimpsest trace convert old.trace new.trace.gz --from disksim --format mqsim
    """
    _write(traces.TraceOptions(source, file=True, output=output, **options))


@trace.command(short_help="Write a generated workload as a trace.")
@click.argument("workload", metavar="SPEC", shell_complete=completion.files_and("workloads"))
@click.argument("output", metavar="OUT", shell_complete=_files)
@_options(trace=False, generated=True)
@_output_format
def synth(workload: str, output: str, **options: Any) -> None:  # noqa: ANN401
    """Write the workload SPEC (a preset, fio-like text or a fio job file) as the trace OUT.

    Arrival times come from rate_iops or rate; without one a workload is a closed loop, which has none.

    \b
    Examples:
      palimpsest trace synth rw=randwrite,bs=4k,n=1e5,rate_iops=20000 random.csv.zst
      palimpsest trace synth trade,n=1e6 trade.parquet --ssd mga-16k
      palimpsest trace synth job.fio job.iolog
    """
    _write(traces.TraceOptions(workload, output=output, **options))


def _write(options: traces.TraceOptions) -> None:
    with ProgressBoard() as board:
        done = traces.convert(options, board.callback("write"))
    for line in traces.losses(done, Path(options.output)):
        say(line)
    say(f"wrote {options.output} ({done['output_format']}): {done['written']:,} requests")
