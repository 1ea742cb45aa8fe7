"""The command `palimpsest figure`."""

from pathlib import Path

import click

from ..commands import command, say
from ..errors import InputError
from ..files import write_in_order
from ..parameters import Choice as Words
from ..sketches import KINDS as REQUESTS
from .styles import STYLES

_KINDS = ("cdf", "tail", "bars", "lines", "heat", "time", "table")
_ENDINGS = (".pdf", ".svg", ".pgf", ".png")


@command(short_help="Draw a figure or table for a paper.")
@click.argument("kind", type=Words(_KINDS), metavar="KIND")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RESULTS...")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), metavar="FILE", help="File to write.")
@click.option("--style", type=Words(tuple(STYLES)), default="usenix", help="Venue: widths, fonts, sizes.")
@click.option("--columns", type=click.IntRange(1, 2), default=1, help="Width in columns.")
@click.option("--figure", metavar="NAME", help="Figure to show, such as latency_ns.write.p99.")
@click.option("--class", "requests", type=Words(REQUESTS), default="all", help="Requests, for cdf and tail.")
@click.option("--x", metavar="AXIS", help="Axis of a sweep.  [default: the first]")
@click.option("--by", metavar="AXIS", help="Axis of a sweep that gives the series.")
@click.option("--xlabel", metavar="TEXT", help="Label of the x axis.")
@click.option("--ylabel", metavar="TEXT", help="Label of the y axis.")
@click.option("--log", type=Words(("none", "x", "y", "xy")), help="Logarithmic axes.  [default: by KIND]")
def figure(
    kind: str, results: tuple[Path, ...], *, output: Path, style: str, columns: int, figure: str | None,
    requests: str, x: str | None, by: str | None, xlabel: str | None, ylabel: str | None, log: str | None,
) -> None:  # fmt: skip
    """Draw a figure for a paper from folders of `run --out`, `compare --out` or `sweep`; its data go to a CSV file.

    KIND is cdf or tail (response times), bars, lines, heat (figures, over the axes of a sweep), time (series), or
    table (LaTeX).

    \b
    Examples:
      palimpsest figure cdf results/both -o cdf.pdf --class write
      palimpsest figure tail results/both -o tail.pdf --style ieee
      palimpsest figure bars results/both -o waf.svg --figure write_amplification
      palimpsest figure lines results/op -o op.pdf --x ssd.over_provisioning --by ftl
      palimpsest figure table results/both -o table.tex
    """
    from . import draw, latex, series

    endings = (".tex",) if kind == "table" else _ENDINGS
    if output.suffix not in endings:
        raise InputError(f"-o {output}: expected a name that ends in {', '.join(endings)}")
    if not output.parent.is_dir():
        raise InputError(f"-o {output}: there is no folder {output.parent}; expected one")
    source = series.load(results)
    shown = {"cdf": "latency_ns", "tail": "latency_ns"}.get(kind, (figure or "").partition(".")[0] or None)
    beside = output.with_suffix(".csv")
    if kind == "table":
        drawn: bytes | str = latex.tex(source)
        numbers = latex.table(source).write_csv()
    else:
        choice = series.Choice(kind, figure, requests, x, by)
        data = series.table(source, choice)
        for note in source.sweep.unmoved() if source.sweep is not None and kind in ("lines", "bars", "heat") else ():
            say(f"note: {note}")
        usual_x, usual_y = _labels(choice)
        labels = (xlabel if xlabel is not None else usual_x, ylabel if ylabel is not None else usual_y)
        usual = {"cdf": "x", "tail": "xy"}.get(kind, "")
        logarithmic = usual if log is None else log.replace("none", "")
        drawn = draw.draw(data, choice, output, style=style, columns=columns, labels=labels, log=logarithmic)
        numbers = data.write_csv()
    for line in series.unfair(source, shown):
        say(line)
    write_in_order(output.parent, [(beside.name, numbers), (output.name, drawn)])
    say(f"wrote {output} and {beside}")


_LABELS = {
    "write_amplification": "Write amplification", "throughput.iops": "IOPS", "flash.erases": "Erases",
    "latency_ns": "Response time", "write_mean_ns": "Mean write response time [us]",
    "read_mean_ns": "Mean read response time [us]", "requests": "Requests in a window",
}  # fmt: skip


def _labels(choice: object) -> tuple[str, str]:
    """The default labels of the axes."""
    from .series import Choice

    assert isinstance(choice, Choice)
    who = {"all": "requests", "read": "reads", "write": "writes"}[choice.requests]
    if choice.kind in ("cdf", "tail"):
        of = f"Share of {who}" if choice.kind == "cdf" else f"Share of slower {who}"
        return "Response time [us]", of
    name = choice.figure or ("write_mean_ns" if choice.kind == "time" else "write_amplification")
    y = _LABELS.get(name) or name.replace("_ns", "").replace(".", " ").replace("_", " ")
    if name.startswith("latency_ns."):
        y += " [ns]"
    if choice.kind == "time":
        return "Time [s]", y
    if choice.kind == "heat":
        return choice.x or "", choice.by or ""
    return choice.x or "", y
