"""The runs of a reproduction: collected, run side by side once each, and found again by their options."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from .. import engine
from ..engine import Progress
from ..options import RunOptions
from ..result import Result
from ..sweeps.runs import Runner

__all__ = ["Batch"]


class Batch:
    """Runs simulations and keeps their results, so that several figures can share a run.

    Args:
        jobs: how many run at a time. Results do not depend on it.
        progress: gives the progress callback of a run by its label.
        traces: folder of real traces; None where there is none.
        first_seed: what a run with the seed 1 takes instead; others move with it. A run is found by its own options.
        runner: what runs them instead of threads of this process.
    """

    def __init__(
        self,
        jobs: int = 1,
        progress: Callable[[str], Progress | None] = lambda _label: None,
        traces: str | None = None,
        first_seed: int = 1,
        runner: Runner | None = None,
    ) -> None:
        self.jobs = jobs
        self.traces = traces
        self.first_seed = first_seed
        self._progress = progress
        self._runner = runner
        self._results: dict[RunOptions, Result] = {}

    def trace_files(self) -> dict[str, Path]:
        """The real traces by name."""
        files = sorted(Path(self.traces).iterdir()) if self.traces is not None else []
        known = (path for path in files if path.is_file() and path.suffix in (".zst", ".gz", ".csv"))
        return {path.name.split(".")[0]: path for path in known}

    def run(self, runs: Iterable[RunOptions]) -> None:
        """Runs what has not been run yet.

        Raises:
            Error: a run failed; see `engine.run_one`.
        """
        new = [options for options in dict.fromkeys(runs) if options not in self._results]
        if not new:
            return
        seeded = [replace(options, seed=options.seed + self.first_seed - 1) for options in new]
        if self._runner is None:
            results, failure = engine.run_many(seeded, min(self.jobs, len(new)), self._progress)
        else:
            results, failure = self._runner(seeded)
        if failure is not None:
            raise failure
        self._results.update(zip(new, results, strict=True))

    def __getitem__(self, options: RunOptions) -> Result:
        """The result of a run; it is run now if it was not before."""
        self.run([options])
        return self._results[options]

    def __len__(self) -> int:
        return len(self._results)
