"""The runs of a reproduction: collected, run side by side once each, and found again by their options."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from .. import engine
from ..engine import Progress
from ..errors import InputError
from ..options import RunOptions
from ..result import Result
from ..sweeps.runs import Runner

__all__ = ["Batch"]


_ENDINGS = (".zst", ".gz", ".csv", ".trace")


def _traces_in(folder: str) -> list[Path]:
    return [path for path in sorted(Path(folder).iterdir()) if path.is_file() and path.suffix in _ENDINGS]


class Batch:
    """Runs simulations and keeps their results, so that several figures can share a run.

    Args:
        jobs: runs at a time. Results never depend on the number.
        progress: returns the progress callback of the run with a label.
        traces: folder of real traces; None where there is none.
        first_seed: replaces the seed 1, and shifts all other seeds. The key of a result has the unshifted seed.
        runner: runs the simulations instead of threads of this process.

    Raises:
        InputError: the folder has no traces.
    """

    def __init__(
        self,
        jobs: int = 1,
        progress: Callable[[str], Progress | None] = lambda _label: None,
        traces: str | None = None,
        first_seed: int = 1,
        runner: Runner | None = None,
    ) -> None:
        if traces is not None and not _traces_in(traces):
            raise InputError(f"--traces {traces}: no traces there; expected files that end in {', '.join(_ENDINGS)}")
        self.jobs = jobs
        self.traces = traces
        self.first_seed = first_seed
        self._progress = progress
        self.runner = runner
        self._results: dict[RunOptions, Result] = {}

    def trace_files(self) -> dict[str, Path]:
        """The real traces by name."""
        files = _traces_in(self.traces) if self.traces is not None else []
        return {path.name.split(".")[0]: path for path in files}

    def seeded(self, options: RunOptions) -> RunOptions:
        """The run with the seed that it has here."""
        return replace(options, seed=options.seed + self.first_seed - 1)

    def run(self, runs: Iterable[RunOptions]) -> None:
        """Runs the simulations that have no result yet.

        Raises:
            Error: a run failed; see `engine.run_one`.
        """
        new = [options for options in dict.fromkeys(runs) if options not in self._results]
        if not new:
            return
        seeded = [self.seeded(options) for options in new]
        if self.runner is None:
            results, failure = engine.run_many(seeded, min(self.jobs, len(new)), self._progress)
        else:
            results, failure = self.runner(seeded)
        if failure is not None:
            raise failure
        self._results.update(zip(new, results, strict=True))

    def is_one_sided(self, traces: Iterable[Path]) -> bool:
        """Whether a run of these traces had no reads, or no writes."""
        names = {str(path) for path in traces}
        counts = [result["requests"] for options, result in self._results.items() if options.workload in names]
        return any(not (each["read"] and each["write"]) for each in counts)

    def __getitem__(self, options: RunOptions) -> Result:
        """The result of a run, which runs now if no earlier call ran it."""
        self.run([options])
        return self._results[options]

    def __contains__(self, options: RunOptions) -> bool:
        """Whether the run has a result already."""
        return options in self._results

    def __len__(self) -> int:
        return len(self._results)
