"""The command `palimpsest crash`: every state that a power cut may leave of a program's writes, and a check of each."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from .. import completion
from .. import progress as lines
from ..commands import command, echo, say
from ..errors import EXIT_FAILURE, InputError
from ..parameters import COUNT, DURATION, Choice, cores, jobs_option, json_option, out_option, size_type
from ..run_options import ftl_option, in_order, precondition_option, seed_option, set_option
from .checking import image_of, write_image
from .commands import Plan
from .cuts import Cuts
from .exploring import Checkers, Explored, Interrupted, Limits, explore_in, line_of, prepare
from .findings import Finding, describe, findings, summary
from .history import History
from .page import page
from .store import Store, id_of, plan_in, state_of
from .windows import CACHES, State, key_of

_SSD, _FTL = "mga-8k", "page"
"""The drive where none is named: one whose layer can have any cache."""

_OPTIONS = (
    click.option(
        "--setup", multiple=True, metavar="COMMAND", help="Make the file system and its first content; may be repeated."
    ),
    click.option("--run", metavar="COMMAND", help="The program; its output is a promise."),
    click.option(
        "--check", multiple=True, metavar="COMMAND", help="Exit with status 0 if a state is right; may be repeated."
    ),
    out_option("Keep recording, states and page in DIR.", required=True),
    click.option(
        "--cache", type=Choice(CACHES), default="volatile", help="Effect of a power cut on the drive's cache."
    ),
    click.option(
        "--budget", type=COUNT, default="1000", metavar="N", help="Check at most this number of states of DIR."
    ),
    click.option("--minutes", type=click.FloatRange(min=0, min_open=True), metavar="M", help="End after this time."),
    click.option("--size", type=size_type("64MiB"), default="64MiB", help="Bytes of the disk."),
    click.option(
        "--atomic", type=Choice(("512", "4096")), default="4096", help="Bytes that are kept or lost as a whole."
    ),
    click.option("--mount-options", default="", metavar="A,B", help="Options of the mount, such as noauto_da_alloc."),
    click.option(
        "--timeout", type=DURATION, default="60s", help="Most time of a check; setup and run have ten times as much."
    ),
    click.option(
        "--ssd",
        metavar="NAME|FILE",
        shell_complete=completion.files_and("ssds"),
        help=f"The drive that recovers from cuts.  [default: {_SSD} with {_FTL}]",
    ),
    ftl_option,
    set_option,
    precondition_option("none", "First state of the drive, as of run: a drive in use collects garbage."),
    click.option("--no-drive", is_flag=True, help="Explore states of the cache only, no cuts of a drive."),
    jobs_option("Checks"),
    seed_option,
    click.option("--force", is_flag=True, help="Replace another exploration in DIR."),
    click.option("--state", metavar="ID", help="Build, check and describe this state of DIR."),
    click.option(
        "--keep",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="With --state: write the disk to FILE.",
    ),
    json_option("what was found"),
)


def _plan(out: Path, state: str | None, options: dict[str, Any]) -> Plan:
    """The plan of the options, or of the folder."""
    given = click.get_current_context()
    known = plan_in(out) if not options["force"] else None

    def is_given(name: str) -> bool:
        return given.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE

    if known is not None and not any(map(is_given, ("setup", "run", "check"))):
        return replace(known, timeout_s=options["timeout"]) if is_given("timeout") else known
    if options["run"] is None:
        if state is not None:
            raise InputError(f"--state {state}: {out} has no states; expected the --out of an exploration")
        raise InputError("--run: missing; expected the command whose writes are explored")
    drive: dict[str, Any] = {}
    if not options["no_drive"]:
        ssd = options["ssd"] or _SSD
        drive = {"ssd": ssd, "ftl": options["ftl"] or (_FTL if options["ssd"] is None else None)}
        drive |= {"overrides": tuple(options["overrides"]), "precondition": options["precondition"]}
    return Plan(
        setup=tuple(options["setup"]), run=options["run"], check=tuple(options["check"]), size=options["size"],
        unit=int(options["atomic"]), cache=options["cache"], mount_options=options["mount_options"],
        timeout_s=options["timeout"], run_timeout_s=10 * options["timeout"], seed=options["seed"], **drive,
    )  # fmt: skip


@command(short_help="Explore what a power cut leaves of a program (Linux).")
@in_order(*_OPTIONS)
def crash(
    *, out: Path, budget: int, minutes: float | None, jobs: int | None, state: str | None, keep: Path | None,
    as_json: bool, **options: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Run a program once on a recorded disk, and check each state that a power cut may leave.

    Setup, run and check are for the shell. {dev} is the block device, {file} its file, {mount} the folder where its
    file system is mounted, {nbd} the NBD URI of the disk, {output} a file with the output of the program before the
    cut.
    The status is 0 if no check fails, 1 if one does, 2 for wrong input. With the same --out the exploration continues.

    \b
    Examples:
      palimpsest crash --setup 'mkfs.ext4 -q {dev}' --run './run.sh {mount}' --check './check.sh {mount}' --out a
      palimpsest crash --run './store {file}' --check './store --verify {file} {output}' --size 1MiB --out b
      palimpsest crash --out a --budget 10000
      palimpsest crash --out a --state 3fa91c02d7aa --keep state.img
    """
    plan = _plan(out, state, options)
    store = Store(out.resolve(), plan, force=options["force"])
    try:
        if state is not None:
            sys.exit(_replay(plan, store, state, keep, as_json=as_json))
        limits = Limits(budget, None if minutes is None else minutes * 60)
        found = _explore(plan, store, limits, cores(jobs), as_json=as_json)
    finally:
        store.close()
    if found:
        sys.exit(EXIT_FAILURE)


def _explore(plan: Plan, store: Store, limits: Limits, jobs: int, *, as_json: bool) -> bool:
    shows, begun, before = lines.at_terminal(), time.monotonic(), store.states()
    said = [begun]

    def progress(done: int, all_: int, failed: int) -> None:
        if shows:
            click.echo(f"\r{done} of {all_} states, {failed} fail ", nl=False, err=True)
        elif time.monotonic() - said[0] >= lines.LINE_EVERY_S:
            # No thread prints this, because checks run in forked processes.
            said[0] = time.monotonic()
            rate = (done - len(before)) / (said[0] - begun)
            left = f", {rate:.3g}/s, {lines.clock((all_ - done) / rate)} left" if rate > 0 else ""
            say(f"states: {done:,} of {all_:,} ({100 * done / all_:.0f} %), {failed} fail{left}")

    interrupted: Interrupted | None = None
    try:
        explored, checkers = explore_in(plan, store, limits, jobs, say, progress)
    except Interrupted as error:
        interrupted, explored = error, error.explored
        made = findings(explored, store, None)
    else:
        try:
            made = findings(explored, store, checkers)
        finally:
            checkers.end()
    if shows:
        click.echo("\r", nl=False, err=True)
    _write(explored, made, store, as_json=as_json)
    if interrupted is not None:
        raise KeyboardInterrupt
    return bool(made)


def _write(explored: Explored, made: list[Finding], store: Store, *, as_json: bool) -> None:
    found = summary(explored, made)
    if as_json:
        echo(json.dumps(found, indent=2))
    else:
        for number, finding in enumerate(made, 1):
            echo("\n".join([f"{number}. {finding.lines()[0]}", *finding.lines()[1:]]))
        echo(_closing_line(explored, made, store.out))
    store.write(found, page(explored, made, found))


def _closing_line(explored: Explored, made: list[Finding], out: Path) -> str:
    fail = sum(not line["ok"] for line in explored.states)
    all_ = "all there are" if explored.is_complete else f"of {len(explored.found)} windows"
    rate = f", {len(explored.states) / explored.seconds * 3600:,.0f} an hour" if explored.seconds > 0 else ""
    summary = f"{len(explored.states)} states ({all_}{rate}), {explored.duplicates} more had the same bytes"
    summary += f", {explored.cuts} cuts of the drive: " if explored.operations else ": "
    return summary + (
        f"{fail} fail, in {len(made)} {'way' if len(made) == 1 else 'ways'}; see {out}" if made else "nothing is lost"
    )


def _cut_again(cuts: Cuts, history: History, one: State, state: str) -> None:
    """Repeats the power cut. Raises InputError if the drive holds another state then."""
    left = cuts.left(one.cut)
    found = None if left.state is None else id_of(key_of(history, left.state))
    if found != state:
        what = f"the cut in flash operation {', '.join(map(str, one.cut))} leaves {found or 'nothing'} now"
        raise InputError(f"--state {state}: {what}; expected the version of palimpsest that explored it, or --force")
    say(f"cut the power of the drive again; its last recovery had {left.recovery} flash operations")


def _replay(plan: Plan, store: Store, state: str, keep: Path | None, *, as_json: bool) -> int:
    """Builds and checks one state; returns the status of the command."""
    line = next((line for line in store.states() if line["id"] == state), None)
    if line is None:
        raise InputError(f"--state {state}: there is no such state in {store.out}; expected one that was explored")
    sized, history = prepare(plan, store, say)
    one = state_of(line)
    if one.cut:
        _cut_again(Cuts(sized, history), history, one, state)
    if keep is not None:
        write_image(history, image_of(history, one), keep)
    checkers = Checkers(1, plan, history, store, None)
    try:
        verdict = checkers.do([one])[0]
    finally:
        checkers.end()
    finding = describe(history, line_of(history, one, verdict), 1)
    if as_json:
        echo(json.dumps({"ok": verdict.ok, **finding.to_dict()}, indent=2))
    else:
        echo(
            "\n".join(
                [*finding.lines()[:-1], verdict.output.rstrip()]
                if not verdict.ok
                else ["right", *finding.lines()[1:-1]]
            )
        )
    return 0 if verdict.ok else EXIT_FAILURE
