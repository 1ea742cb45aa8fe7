"""The command `palimpsest objects`: a flash cache on a drive with placement handles, and with one handle for all."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import _core, completion, engine
from .commands import command, say, show
from .errors import InputError
from .evidence.life import too_short
from .options import ARRIVALS, FIDELITIES, RunOptions
from .parameters import COUNT, Choice, cores, jobs_option, json_option, out_option
from .progress import ProgressBoard
from .result import Comparison, Result
from .run_options import check, force_option, own_folder, seed_option, set_option, ssd_option
from .units import count, nanoseconds, percent, ratio, size, terabytes

if TYPE_CHECKING:
    from rich.console import RenderableType

LABELS = ("placed", "together")
"""Names of the two runs: a handle for each part of the cache, and one for all."""

_HANDLES = "fdp.handles"
_HEADS = {"placed": "a handle each", "together": "one handle"}
_CACHE = "80%"
"""The cache of a trace without `--cache`."""
_FTL = "fdp-subpage"
"""A layer with placement handles that maps units of 4 KiB, the size of a bucket."""


def description(workload: str, cache: str | None, policy: str | None, requests: int | None) -> str:
    """The description of an object workload: a preset or a description with changes, or the trace in a file.

    Raises InputError for another workload.
    """
    name = workload.partition(",")[0]
    base = _core.workload_spec(name)
    if base is None and not workload.startswith("cache="):
        if "," in workload:
            raise InputError(f"{workload}: a file of a trace has no comma in its name; expected another name")
        base, workload = "cache=", f"cache={cache or _CACHE},trace={workload}"
    if not (base or workload).startswith("cache="):
        raise InputError(f"{workload}: no object workload; expected fdp-cache, fdp-kvcache, cache=.., or a trace")
    if "placement=" in workload:
        raise InputError(f"{workload}: the command runs with and without placement; expected no placement=")
    changes = {"cache": cache, "policy": policy, "n": requests}
    return ",".join([workload, *(f"{key}={value}" for key, value in changes.items() if value is not None)])


def runs(text: str, options: RunOptions) -> list[RunOptions]:
    """The two runs of a description. Raises InputError if the layer has no placement handles."""
    # Only layers with placement handles read the key.
    overrides = [each for each in options.overrides if each.partition("=")[0].strip() != _HANDLES]
    unread = _core.unread_keys(options.ssd, options.ftl, [*overrides, f"{_HANDLES}=1"])
    if any(key == _HANDLES for key, *_ in unread):
        expected = "expected fdp, fdp-subpage or fdp-dftl"
        raise InputError(f"--ftl {options.ftl}: this layer has no placement handles; {expected}")
    endings = {"placed": "", "together": ",placement=off"}
    return [replace(options, workload=text + endings[label], label=label) for label in LABELS]


def figures(result: Result) -> dict[str, Any]:
    """The answers of a run; None for those that it lacks."""
    cache, endurance = result["objects"], result["endurance"]
    [gets] = [job for job in result["jobs"] if job["job"] == "get"]
    times = (gets["latency_ns"] or {}).get("read") or {}
    application, device = cache["application_write_amplification"], result["write_amplification"]
    # Handles of the drive are in order; the cache has one of the same number for all its parts without placement.
    by_handle = {each["handle"]: each["write_amplification"] for each in (result["fdp"] or {}).get("handles", ())}
    return {
        "label": result.label,
        "hit_ratio": cache["hit_ratio"],
        "gets": cache["gets"],
        "write_amplification": device,
        "application_write_amplification": application,
        "total_write_amplification": None if application is None or device is None else application * device,
        "get_ns": {name: times.get(name) for name in ("mean", "p50", "p99", "p999")},
        # A closed loop writes as fast as the drive can, for which no life in years is meant.
        **{name: endurance[name] if cache["open_loop"] else None for name in ("dwpd", "years")},
        **{name: endurance[name] for name in ("dwpd_5_years", "tbw")},
        "no_lifetime": too_short(result),
        "classes": [
            {
                "class": part["class"],
                "handle": part["handle"],
                "capacity_bytes": part["capacity_bytes"],
                "written_bytes": part["written_bytes"],
                "hits": part["hits"],
                "inserts": part["inserts"],
                "write_amplification": by_handle.get(part["handle"]) if part["handle"] else None,
            }
            for part in cache["classes"]
        ],
    }


def require_inserts(results: Sequence[Result]) -> None:
    """Raises InputError if no run inserted an object: there is nothing to compare."""
    caches = [each["objects"] for each in results]
    if not any(part["inserts"] for cache in caches for part in cache["classes"]):
        made = f"{count(caches[0]['gets'])} gets and the puts between"
        raise InputError(
            f"{results[0]['workload']}: no object was inserted by {made}, so the cache wrote nothing; "
            "expected more requests, or a trace with puts or misses"
        )


def _known_life(of: dict[str, Any], name: str) -> float | None:
    """A life of a run; None if the run is too short for one."""
    value: float | None = None if of["no_lifetime"] else of[name]
    return value


_ROWS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("hit ratio", lambda of: percent(of["hit_ratio"])),
    ("gets", lambda of: count(of["gets"])),
    ("get, p50", lambda of: nanoseconds(of["get_ns"]["p50"])),
    ("get, p99", lambda of: nanoseconds(of["get_ns"]["p99"])),
    ("get, p99.9", lambda of: nanoseconds(of["get_ns"]["p999"])),
    ("write amplification, drive", lambda of: ratio(of["write_amplification"])),
    ("write amplification, cache", lambda of: ratio(of["application_write_amplification"])),
    ("drive writes a day", lambda of: ratio(of["dwpd"])),
    ("drive writes a day for 5 years", lambda of: ratio(_known_life(of, "dwpd_5_years"))),
    ("years at this rate", lambda of: ratio(_known_life(of, "years"))),
    ("endurance, bytes written", lambda of: terabytes(_known_life(of, "tbw"))),
)


def rows(found: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Name, and the figure of each run."""
    table = [[name, *(shown(each) for each in found)] for name, shown in _ROWS]
    for at, part in enumerate(found[0]["classes"]):
        written = [size(each["classes"][at]["written_bytes"]) for each in found]
        table.append([f"{part['class']}, written", *written])
        amplified = [ratio(each["classes"][at]["write_amplification"]) for each in found]
        table.append([f"{part['class']}, write amplification", *amplified])
    return table


def sentence(found: Sequence[dict[str, Any]]) -> str:
    """The answer in a sentence."""
    placed, together = (each["write_amplification"] for each in found)
    said = (
        f"write amplification is {ratio(placed)} with a handle for each part of the cache, {ratio(together)} with one"
    )
    lives = [life for each in found if (life := _known_life(each, "dwpd_5_years"))]
    if len(lives) == len(found):
        said += f"; with a handle each the drive endures {ratio(lives[0] / lives[1])} times as many writes"
    return f"{said}; {percent(found[0]['hit_ratio'])} of gets hit"


def render(results: Sequence[Result]) -> "RenderableType":
    """The answers for a terminal, both runs side by side."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from . import summary
    from .metrics import labelled_notes

    found = [figures(each) for each in results]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for at, head in enumerate(("", *(_HEADS[each["label"]] for each in found))):
        table.add_column(head, header_style="bold", justify="right" if at else "left")
    for row in rows(found):
        table.add_row(*row)
    lines = [("drive", summary.drive_line(results[0])), ("workload", str(results[0]["workload"]))]
    notes = [Text(f"note: {note}", style="yellow") for note in labelled_notes(results)]
    return Group(summary.facts(lines), Text(), table, Text(), Text(sentence(found)), *notes)


def to_json(results: Sequence[Result]) -> str:
    """The answers of both runs, and the runs."""
    answers = [figures(each) for each in results]
    return json.dumps({"objects": answers, **Comparison(results).to_dict()}, indent=2)


_AMPLIFICATION = (
    "Bytes programmed for each byte that the cache writes. A part of the cache has a figure of its own if it has a "
    "handle of its own."
)


def page(results: Sequence[Result]) -> str:
    """The page: the answers, write amplification by part of the cache, and the time of a get."""
    from . import page as shell
    from .charts.common import Specification, trace, unit_of

    found = [figures(each) for each in results]
    heads = [_HEADS[each["label"]] for each in found]
    names = ["whole drive", *(part["class"] for part in found[0]["classes"])]
    amplified = [
        [each["write_amplification"], *(part["write_amplification"] for part in each["classes"])] for each in found
    ]
    drawn: dict[str, Specification] = {
        "amplification": {
            "data": [
                trace(slot, type="bar", name=heads[slot], x=names, y=values) for slot, values in enumerate(amplified)
            ],
            "layout": {"yaxis": {"title": {"text": "write amplification"}}, "bargap": 0.3},
        }
    }
    sections = [
        shell.Section(
            "of-amplification",
            "Write amplification",
            shell.chart("amplification", _AMPLIFICATION),
        )
    ]
    times = [[each["get_ns"][name] for name in ("p50", "p99", "p999")] for each in found]
    if any(value for values in times for value in values):
        factor, unit = unit_of([value for values in times for value in values])
        bars = [
            trace(slot, type="bar", name=heads[slot], x=["p50", "p99", "p99.9"],
                  y=[None if value is None else value / factor for value in values])
            for slot, values in enumerate(times)
        ]  # fmt: skip
        drawn["gets"] = {
            "data": bars,
            "layout": {"yaxis": {"title": {"text": f"time of a get ({unit})"}}, "bargap": 0.3},
        }
        says = "Response times of gets that read the drive; the writes of the cache disturb them."
        sections.append(shell.Section("of-gets", "Time of a get", shell.chart("gets", says)))
    table = shell.table("settings", [shell.row(["", *heads], "th"), *map(shell.row, rows(found))])
    sections.append(shell.Section("figures", "Figures", table))
    return shell.fill(
        title="Cache of objects",
        under=f"{results[0]['workload']} on {results[0]['ssd']}, {results[0]['ftl']}",
        head=f'<p class="answer">{shell.escape(sentence(found).capitalize())}.</p>',
        sections=sections,
        drawn=drawn,
    )


@command(short_help="Put a flash cache on a drive, with and without placement.")
@click.argument("workload", metavar="[WORKLOAD]", default="fdp-cache", shell_complete=completion.files_and("workloads"))
@click.option("--cache", metavar="SIZE|PCT", help=f"Size of the cache.  [default: the workload's; a trace: {_CACHE}]")
@click.option("--policy", metavar="NAME", help="Eviction policy.", shell_complete=completion.policies)
@click.option("--requests", type=COUNT, help="Object requests, such as 1e6.  [default: the workload's, all of a trace]")
@ssd_option
@click.option(
    "--ftl", metavar="NAME", default=_FTL, help="Layer with placement handles.", shell_complete=completion.layers
)
@set_option
@click.option("--fidelity", type=Choice(FIDELITIES), default="timed", help="count: operation counts, no times.")
@seed_option
@click.option(
    "--from",
    "format",
    metavar="FORMAT",
    help="Read a trace in this format instead of recognising it.",
    shell_complete=completion.object_formats,
)
@click.option("--skip-bad", is_flag=True, help="Count and skip bad lines of a trace.")
@click.option(
    "--arrivals",
    type=Choice(ARRIVALS),
    default="recorded",
    help="spread: requests of one time over the tick of the trace's clock.",
)
@click.option("--cold", is_flag=True, help="Begin with an empty cache on a new drive.")
@jobs_option()
@out_option("Also write objects.html, and the report, JSON and tables of both runs.")
@force_option
@json_option("the answers and both runs")
def objects(
    workload: str, *, cache: str | None, policy: str | None, requests: int | None, cold: bool, overrides: Sequence[str],
    jobs: int | None, out: Path | None, force: bool, as_json: bool, **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Put a flash cache of objects on a drive: with a placement handle for each part of the cache, and with one.

    WORKLOAD is a preset (fdp-cache, fdp-kvcache), a description (cache=80%,policy=lru,...), or the file of a trace;
    `palimpsest help objects` has the keys. Prints hit ratio, write amplification, time of a get and endurance of both.

    \b
    Examples:
      palimpsest objects
      palimpsest objects fdp-cache,cache=100% --out results/cache
      palimpsest objects kvcache.csv.zst --cache 50% --policy s3-fifo --ssd p5520-1.92t
      palimpsest objects fdp-kvcache --json | jq '.objects[].write_amplification'
    """
    text = description(workload, cache, policy, requests)
    base = RunOptions(overrides=tuple(overrides), series=out is not None,
                      precondition="none" if cold else "layout", **options)  # fmt: skip
    chosen = runs(text, base)
    check(chosen)
    own_folder(out, chosen, force=force)
    with ProgressBoard() as board:
        results, failure = engine.run_many(chosen, min(cores(jobs), len(chosen)), board.callback)
    if failure is not None:
        raise failure
    require_inserts(results)
    show(to_json(results) if as_json else render(results))
    if out is not None:
        from . import outputs

        outputs.save(results, out, together=True, more={"objects.html": page(results)})
        say(f"wrote {out}/objects.html, report.html, summary.json and a folder for each run")
