"""The command `palimpsest fit`."""

import sys
from pathlib import Path

import click

from ..commands import command, say, show
from ..errors import Interrupted
from ..parameters import COUNT, SEED, Choice, jobs_option, json_option, make_folder, out_option, size_type
from ..sweeps.engines import ENGINES


@command(short_help="Fit a drive to measurements.")
@click.argument("measurements", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--start", required=True, metavar="PRESET", help="Preset or file of the drive to start from.")
@click.option("--ftl", metavar="NAME", help="Translation layer.  [default: the drive's]")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Fix a configuration key; may be repeated."
)
@click.option("--vary", multiple=True, metavar="KEY=VALUES", help="Search LOW..HIGH, or A,B,C.  [default: see below]")
@click.option(
    "--hold-out", multiple=True, metavar="WHAT", help="Share or pattern of groups that are predicted, not fitted."
)
@click.option("--workload", default="", metavar="SPEC", help="Workload of the measurement, for counters and logs.")
@click.option("--capacity", type=size_type("7.68TB or 512GiB"), help="Size of the real drive, for counters.")
@click.option("--precondition", default="", metavar="SPEC", help="State before each run.  [default: the file's]")
@click.option("--evaluations", type=COUNT, default=80, show_default=True, help="Points to try in a stage, at most.")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Time of a stage, at most.")
@click.option("--seed", type=SEED, default=1, show_default=True, help="Seed of the search.")
@jobs_option()
@click.option("--engine", type=Choice(list(ENGINES)), default="local", help="Where points run.")
@click.option("--address", metavar="ADDRESS", help="Cluster of dask (tcp://host:8786) or ray (host:6379, auto).")
@out_option("Write the drive, fit.json and a page; resumes an earlier fit in DIR.")
@json_option("what was found")
def fit(
    *, measurements: tuple[Path, ...], start: str, ftl: str | None, overrides: tuple[str, ...],
    vary: tuple[str, ...], hold_out: tuple[str, ...], workload: str, capacity: int | None, precondition: str,
    evaluations: int, minutes: float | None, seed: int, jobs: int | None, engine: str,
    address: str | None, out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Search the drive that reproduces the MEASUREMENTS, and report which keys they determine.

    \b
    Measurements are
      fio's output (--output-format=json)   jobs with their own options, alone or together
      its logs (_lat.1.log, _bw.1.log)      of the job that --workload describes
      a trace with response times           of MSR Cambridge, Systor '17, ETW or blkparse (D and C), replayed
      counters over time (.csv)             columns host_bytes, media_bytes (or _gb, _tb, _data_units_written)
      logs of SMART and OCP (.json)         of `nvme smart-log` and `nvme ocp smart-add-log`, in one file
      tables of `palimpsest validate` (.csv)
      single figures (.toml)                [[figure]] workload, measure, value, unit

    Without --vary: over-provisioning, victims and streams for counts; times of the part, the controller and the host
    for response times. Counts are fitted first, in runs without time. With three groups or more (jobs, rows, passes),
    each is also predicted from the others. The status is 3 if the drive should not be used: a kind of figure is off by
    more than its bound (10 %, more for tails), or the measurements determine no key.

    \b
    Examples:
      palimpsest fit waf.csv --start enterprise-tlc-7.68t --out fitted
      palimpsest fit job.json --start default --vary part.t_read=30us..90us --vary host.t_request=0us..20us
      palimpsest fit rows.csv --start default --hold-out '64+*' --hold-out 25%
      palimpsest fit rows.csv --start default --engine dask --address tcp://host:8786
    """
    from . import outputs, running
    from .measured import How
    from .work import Work

    if out is not None:
        make_folder(out)
    settings = running.Settings(
        start=start, ftl=ftl, overrides=overrides, vary=vary, hold_out=hold_out, evaluations=evaluations,
        minutes=minutes, seed=seed, jobs=jobs, engine=engine, address=address,
        how=How(workload=workload, capacity=capacity, precondition=precondition),
    )  # fmt: skip

    try:
        with Work() as work:
            made = running.fit(measurements, settings, out, work)
    except (KeyboardInterrupt, Interrupted):
        if out is not None and (kept := running.kept(out)):
            say(f"{kept:,} points are kept in {out}; the same command resumes")
        raise
    show(outputs.to_json(made) if as_json else outputs.render(made))
    if out is not None:
        outputs.write(made, out)
        say(f"wrote {out}/index.html, drive.toml, fit.json, figures.csv and .parquet")
    said = outputs.verdict(made)
    if said.status:
        written = f"; {out}/drive.toml has this verdict in its first lines" if out is not None else ""
        say(f"{said.text}: the drive should not be used{written}")
        sys.exit(said.status)
