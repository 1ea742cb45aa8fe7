"""Compares the results of two revisions: `make golden REV=main~3`, or `REV=main~9 WITH=main~3`.

For changes of form, which must leave every figure unchanged. Builds both revisions (without WITH the working tree is
the second) and runs the same matrix with each: every layer of both, random and file workloads, counted and timed,
through collection, open loops, jobs. Lists each figure that differs. Figures of only one revision are named, but are no
difference. Ignores: time and memory of the simulator (`sim`), the settings (`config`; a new default is no difference),
notes, origin (`provenance`), pages and tables. Exit status 1 if a figure differs, or a run fails in one revision only.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOT_COMPARED = ("schema_version", "config", "sim", "notes", "provenance")
FIGURES_SHOWN = 5
"""Most figures that are printed for a run that differs."""

WORKLOADS = {
    "random": "rw=randrw,bssplit=4k/60:16k/40,rwmixread=30",
    "mysql-like": "mysql-like,size=80%",
    "exchange": "exchange",
}
SMALL = (
    "--set",
    "ssd.channels=2",
    "--set",
    "ssd.blocks_per_plane=32",
    "--set",
    "host.fold=true",
    "--precondition",
    "fill:90%,random:1x",
)
DRIVES = [
    ("--ssd", ssd, "--set", f"ssd.over_provisioning={over_provisioning}")
    for ssd in ("default", "spread-16g", "llh-64g", "womv-16g")
    for over_provisioning in ("20%", "100%", "200%")
]
"""A layer runs on the first of these drives that has the required commands, cells and spare pages."""
ARRIVALS = "rw=randrw,bssplit=4k/60:16k/40,rwmixread=30,rate_iops=20k,open_loop"
JOBS = """
[global]
runtime=60ms
time_based
[readers]
rw=randread
iodepth=16
numjobs=2
[log]
rw=write
bs=64k
rate_iops=2000
open_loop
startdelay=10ms
"""
"""Workloads with arrival times run timed only."""
FIDELITIES = {"timed": (), "counted": ("--fidelity", "count")}
REQUESTS = {"timed": "4000", "counted": "20000"}


@dataclass(frozen=True)
class Revision:
    """A checkout, and a copy of the package with a separate native module; the module in use stays unchanged."""

    name: str
    root: Path
    folder: Path

    def build(self) -> None:
        """Builds the native module, as `make dev` does."""
        target = self.folder / "target"
        environment = os.environ | {"CARGO_TARGET_DIR": str(target), "CARGO_INCREMENTAL": "0"}
        # Older revisions had the module in `py`.
        crate = "extension" if (self.root / "crates" / "extension").is_dir() else "py"
        command = ["cargo", "build", "--locked", "--quiet", "--lib", "--manifest-path", f"crates/{crate}/Cargo.toml"]
        if subprocess.run(command, cwd=self.root, env=environment).returncode:
            raise SystemExit(f"golden: {self.name} does not build")
        shutil.rmtree(self.python, ignore_errors=True)
        shutil.copytree(self.root / "python", self.python, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        module = next(
            path for path in sorted((target / "debug").glob("lib_core.*")) if path.suffix in (".so", ".dylib")
        )
        shutil.copy(module, self.python / "palimpsest" / "_core.abi3.so")

    @property
    def python(self) -> Path:
        """Path of the package's copy."""
        return self.folder / "python"

    def palimpsest(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs the command of this revision."""
        environment = os.environ | {
            "PYTHONPATH": str(self.python), "PYTHONSAFEPATH": "1", "PALIMPSEST_NO_CACHE": "1",
        }  # fmt: skip
        environment.pop("PALIMPSEST_CORE", None)
        command = [sys.executable, "-m", "palimpsest", *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    def layers(self) -> list[str]:
        """Layers of this revision, in the order of the registry."""
        names = re.findall(r"^ {0,2}([a-z][\w-]*)  ", self.palimpsest("list", "ftls").stdout, re.MULTILINE)
        if not names:
            raise SystemExit(f"golden: {self.name} lists no layers")
        return names

    def figures(self, arguments: tuple[str, ...]) -> Mapping[str, object] | str:
        """Figures of one run by their path in the summary; if the run failed, the last line of the error."""
        with tempfile.TemporaryDirectory() as folder:
            done = self.palimpsest("run", *arguments, "--out", folder)
            if done.returncode:
                return (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
            found = next(path for name in ("summary.json", "result.json") if (path := Path(folder, name)).exists())
            summary = json.loads(found.read_text())
        return dict(flat({key: value for key, value in summary.items() if key not in NOT_COMPARED}))


def flat(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Numbers and words of a JSON value, each with the path."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from flat(below, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def matrix(revision: Revision, layers: list[str], jobs: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Name and arguments of each run, on drives on which the layer runs in `revision`.

    Raises:
        SystemExit: a layer runs on no drive.
    """
    for layer in layers:
        tried = ("--ftl", layer, "--workload", WORKLOADS["random"], "--requests", "1", "--fidelity", "count", *SMALL)
        drive = next((drive for drive in DRIVES if not isinstance(revision.figures((*tried, *drive)), str)), None)
        if drive is None:
            raise SystemExit(f"golden: {layer} runs on no drive of DRIVES; expected one for each layer")
        for workload, text in WORKLOADS.items():
            for fidelity, options in FIDELITIES.items():
                what = ("--ftl", layer, "--workload", text, "--requests", REQUESTS[fidelity])
                yield f"{layer} {workload} {fidelity}", (*what, *SMALL, *drive, *options)
        of_times = {"arrivals": (ARRIVALS, "--requests", REQUESTS["timed"]), "jobs": (str(jobs),)}
        for workload, timed in of_times.items():
            yield f"{layer} {workload} timed", ("--ftl", layer, "--workload", *timed, *SMALL, *drive)


def compare(name: str, before: Mapping[str, object] | str, after: Mapping[str, object] | str) -> bool:
    """Prints the differences, and returns whether there are none."""
    if isinstance(before, str) or isinstance(after, str):
        is_same = isinstance(before, str) and isinstance(after, str)
        if not is_same:
            print(f"differs  {name}: " + " / ".join(run if isinstance(run, str) else "ran" for run in (before, after)))
        else:
            print(f"neither  {name}: {after}")
        return is_same
    changed = [key for key in before if key in after and before[key] != after[key]]
    if changed:
        shown = "; ".join(f"{key} {before[key]} -> {after[key]}" for key in changed[:FIGURES_SHOWN])
        rest = len(changed) - FIGURES_SHOWN
        print(f"differs  {name}: {shown}" + (f"; {rest} more" if rest > 0 else ""), flush=True)
    return not changed


@contextmanager
def checked_out(name: str, folder: Path) -> Iterator[Revision]:
    """A revision in a separate worktree; without a name, the working tree."""
    if not name:
        yield Revision("the working tree", ROOT, folder)
        return
    git = ("git", "-C", str(ROOT))
    found = subprocess.run(
        [*git, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"], capture_output=True, text=True
    )
    if found.returncode:
        raise SystemExit(f"golden: {name!r} is no revision of this repository; expected one, as in REV=main~3")
    checkout = folder / "checkout"
    remove = [*git, "worktree", "remove", "--force", str(checkout)]
    if checkout.exists():
        subprocess.run(remove, check=True)
    subprocess.run([*git, "worktree", "add", "--quiet", "--detach", str(checkout), found.stdout.strip()], check=True)
    try:
        yield Revision(name, checkout, folder)
    finally:
        subprocess.run(remove, check=True)


def main(names: list[str]) -> int:
    """Compares the two revisions in `names`."""
    first, second = [*names, "", ""][:2]
    if not first:
        raise SystemExit("golden: expected a revision, as in `make golden REV=main~3`")
    folder = ROOT / "target" / "golden"
    with checked_out(first, folder / "first") as before, checked_out(second, folder / "second") as after:
        before.build()
        after.build()
        known = after.layers()
        layers = [layer for layer in before.layers() if layer in known]
        runs = same = figures = ran = 0
        only: tuple[set[str], set[str]] = (set(), set())
        jobs = folder / "jobs.fio"
        jobs.write_text(JOBS)
        for name, arguments in matrix(before, layers, jobs):
            one, other = before.figures(arguments), after.figures(arguments)
            runs += 1
            same += compare(name, one, other)
            if not isinstance(one, str) and not isinstance(other, str):
                ran += 1
                figures += len(one.keys() & other.keys())
                only[0].update(one.keys() - other.keys())
                only[1].update(other.keys() - one.keys())
    for revision, keys in zip((before, after), only, strict=True):
        if keys:
            print(f"only in {revision.name}: {', '.join(sorted(keys))}")
    print(
        f"golden: {same} of {runs} runs have the figures of {before.name} "
        f"({ran} ran in both, {figures:,} figures held against each other)"
    )
    return int(same != runs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
