"""Crashes of real programs: every state that a power cut may leave of a program's writes, and a check of each.

>>> from palimpsest.crash import check_crashes
>>> def test_store(tmp_path):
...     check_crashes(run=write_some, check=all_that_was_said_is_there, out=tmp_path, size="1MiB")
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..parameters import cores
from ..states import size_of
from .commands import Plan, Step
from .exploring import Limits, explore_in
from .findings import Finding, findings, summary
from .page import page
from .store import Store

__all__ = ["CrashError", "Exploration", "Finding", "check_crashes", "explore"]


class CrashError(AssertionError):
    """A power cut loses data."""


@dataclass(frozen=True)
class Exploration:
    """The result of an exploration; `duplicates` are unchecked states with the bytes and output of checked ones."""

    findings: tuple[Finding, ...]
    states: int
    duplicates: int
    is_complete: bool
    out: Path


def _steps(given: Step | Sequence[Step] | None) -> tuple[Step, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) or callable(given) else tuple(given)


def explore(
    run: Step,
    check: Step | Sequence[Step],
    setup: Step | Sequence[Step] | None = None,
    *,
    mount: bool = False,
    out: str | Path | None = None,
    size: str | int = "64MiB",
    cache: str = "volatile",
    budget: int = 1000,
    minutes: float | None = None,
    jobs: int | None = None,
    seed: int = 1,
    ssd: str | None = None,
    ftl: str | None = None,
    force: bool = True,
    **options: Any,  # noqa: ANN401
) -> Exploration:
    """Runs a program once on a recorded disk, and checks the states that a power cut may leave.

    Args:
        run: a command, or a function of the path. Its output (flushed) is a promise.
        check: commands, or functions of the path, or of the path and the output before the cut. A failure is a finding.
        setup: commands or functions that make the disk: `mkfs.ext4 -q {dev}`.
        mount: functions get the folder of the mounted file system instead of the file of the disk.
        out: folder for recording and states; None for a temporary one.
        size: size of the disk.
        cache: `volatile`, `protected` or `none`.
        budget: most checked states.
        minutes: most time.
        jobs: processes; None for one a core.
        seed: seed of the drawn states.
        ssd: a simulated drive, whose states after each flash operation are explored, too.
        ftl: its layer; None for the drive's.
        force: replace another exploration in the folder.
        options: more of `Plan`: `unit`, `mount_options`, `timeout_s`, `run_timeout_s`, `overrides`.

    Raises:
        InputError: a command fails without a cut, or this machine cannot record.
    """
    plan = Plan(
        setup=_steps(setup), run=run, check=_steps(check), mounts=mount, size=size_of(size), cache=cache, ssd=ssd,
        ftl=ftl, seed=seed, **options,
    )  # fmt: skip
    limits = Limits(budget, None if minutes is None else minutes * 60)
    if out is not None:
        return _explored(plan, Path(out), limits, jobs, force)
    with tempfile.TemporaryDirectory(prefix="palimpsest-crash-") as folder:
        return _explored(plan, Path(folder), limits, jobs, force)


def _explored(plan: Plan, out: Path, limits: Limits, jobs: int | None, force: bool) -> Exploration:
    store = Store(out.resolve(), plan, force=force)
    try:
        explored, checkers = explore_in(plan, store, limits, cores(jobs), lambda _line: None)
        try:
            found = findings(explored, store, checkers)
        finally:
            checkers.end()
        described = summary(explored, found)
        store.write(described, page(explored, found, described))
    finally:
        store.close()
    return Exploration(tuple(found), len(explored.states), explored.duplicates, explored.is_complete, out)


def check_crashes(
    run: Step,
    check: Step | Sequence[Step],
    setup: Step | Sequence[Step] | None = None,
    **options: Any,  # noqa: ANN401
) -> Exploration:
    """As `explore`, for tests. Raises CrashError with the history of each failure."""
    found = explore(run, check, setup, **options)
    if found.findings:
        text = "\n".join(line for finding in found.findings for line in finding.lines())
        raise CrashError(f"power cuts lose data, in {found.states} states\n{text}")
    return found
