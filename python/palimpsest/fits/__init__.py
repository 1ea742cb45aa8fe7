"""Fits: the drive that gives what was measured, which of its keys the measurements determine, and what it predicts.

`running` does it, from `measured` (kinds of measurements, one module each), `space` (what may change), `search` (the
optimiser) and `determined` (ranges of keys). Nothing here simulates: runs are those of `engine`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .running import Fit

__all__ = ["fit"]


def fit(
    measurements: Sequence[str | Path],
    start: str,
    *,
    ftl: str | None = None,
    overrides: Mapping[str, object] | None = None,
    vary: Mapping[str, str] | None = None,
    hold_out: Sequence[str] = (),
    workload: str = "",
    capacity: int | None = None,
    precondition: str = "",
    evaluations: int = 80,
    seed: int = 1,
    jobs: int | None = 1,
    engine: str = "local",
    address: str | None = None,
    out: str | Path | None = None,
) -> "Fit":
    """Searches the drive that gives measurements, and says which keys they determine: `palimpsest fit`.

    Args:
        measurements: files: fio's output in JSON, counters or tables in CSV, single figures in TOML.
        start: preset or file of the drive to start from.
        ftl: its layer; the drive's where None.
        overrides: configuration keys of it that are kept.
        vary: by key, `LOW..HIGH` or `A,B,C`; the default space where None.
        hold_out: shares such as `25%`, or patterns of groups, that are predicted and not fitted to.
        workload: what was run, for counters, as a fio-like specification.
        capacity: of the real drive in bytes, for counters.
        precondition: state of the drive before each run; that of the measurement where empty.
        evaluations: points of a stage, at most.
        seed: of the search.
        jobs: runs at a time; None: all cores, or all that the cluster has.
        engine: `local`, `dask` or `ray`; what is found does not depend on it.
        address: of the cluster, for `dask` and `ray`.
        out: folder for the drive, fit.json and a page; what was evaluated is kept there, and found again.

    Raises:
        InputError: a file, key or share is wrong, or a key that was asked for moves no figure.
    """
    from . import outputs, running
    from .measured import How

    settings = running.Settings(
        start=start,
        ftl=ftl,
        overrides=tuple(f"{key}={value}" for key, value in (overrides or {}).items()),
        vary=tuple(f"{key}={values}" for key, values in (vary or {}).items()),
        hold_out=tuple(hold_out),
        evaluations=evaluations,
        seed=seed,
        jobs=jobs,
        engine=engine,
        address=address,
        how=How(workload=workload, capacity=capacity, precondition=precondition),
    )
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    made = running.fit([Path(path) for path in measurements], settings, folder)
    if folder is not None:
        outputs.write(made, folder)
    return made
