"""Fits: the drive that reproduces measurements, the keys that these determine, and predictions.

`running` fits, from `measured` (kinds of measurements, one module each), `space` (keys and bounds), `search` (the
optimiser) and `determined` (ranges of keys). `work` shows the progress; `engine` runs the simulations.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..distribution import need

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
    """Searches the drive that reproduces measurements, and reports which keys they determine: `palimpsest fit`.

    Args:
        measurements: files: fio's output or logs of SMART in JSON, counters or tables in CSV, single figures in TOML.
        start: preset or file of the first drive.
        ftl: its layer; None for the drive's.
        overrides: configuration keys that stay fixed.
        vary: by key, `LOW..HIGH` or `A,B,C`; None for the default space.
        hold_out: shares such as `25%`, or patterns of groups, that are predicted and not fitted to.
        workload: workload of counters, as a fio-like specification.
        capacity: bytes of the real drive, for counters.
        precondition: state of the drive before each run; empty for the measurement's.
        evaluations: most points of a stage.
        seed: seed of the search.
        jobs: runs at a time; None for all cores, or all of the cluster.
        engine: `local`, `dask` or `ray`; the result does not depend on the engine.
        address: address of the cluster.
        out: folder for the drive, fit.json, a page and the evaluations, from which a later call continues.

    Raises:
        InputError: a file, key or share is wrong, or a varied key changes no figure.
    """
    need("sweep")
    from . import outputs, running
    from .measured import How

    settings = running.Settings(
        start=start, ftl=ftl, overrides=tuple(f"{key}={value}" for key, value in (overrides or {}).items()),
        vary=tuple(f"{key}={values}" for key, values in (vary or {}).items()), hold_out=tuple(hold_out),
        evaluations=evaluations, seed=seed, jobs=jobs, engine=engine, address=address,
        how=How(workload=workload, capacity=capacity, precondition=precondition),
    )  # fmt: skip
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    made = running.fit([Path(path) for path in measurements], settings, folder)
    if folder is not None:
        outputs.write(made, folder)
    return made
