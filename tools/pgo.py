"""Builds the wheel with a profile of the simulator: `make wheel-pgo`.

maturin builds a release with counters, trains it (`python tools/pgo.py train`), and builds the wheel from the counts.
The training must not use `benches/`: the runs have other workloads, sizes and drives, each paper's layers, file
systems, counted and timed. The profile changes times only, no figure. The toolchain's `llvm-profdata` merges the
counters (component `llvm-tools`, from rustup); without it the plain wheel is built, and the last line says so.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFAULT = ("--set", "ssd.capacity=4GiB")
SMALL = ("--set", "ssd.blocks_per_plane=48", "--set", "host.fold=true")
MIX = "rw=randrw,rwmixread=70,bssplit=4k/70:32k/30,n=300k,iodepth=12"
PAGES = ("--set", "part.page_size=4KiB", "--set", "ssd.over_provisioning=20%", "--precondition", "fill:100%,random:2x")
BY_BLOCKS = ("--set", "ftl.gc_pace=block")
SKEWED = "rw=randrw,rwmixread=20,bssplit=4k/60:12k/40,random_distribution=zipf:0.8,n=300k,iodepth=10"
FILES = ("--precondition", "layout", "--workload", "exchange,n=60k")
TRAINING: tuple[tuple[str, ...], ...] = (
    ("run", *DEFAULT, "--requests", "300k"),
    ("run", *DEFAULT, "--workload", "rw=randread,bs=8k,n=400k,iodepth=24"),
    ("run", *DEFAULT, "--workload", MIX),
    ("run", *DEFAULT, "--workload", "rw=write,bs=128k,n=40k,iodepth=4"),
    ("run", "--ssd", "tlc-32g", *SMALL, "--ftl", "page", "--workload", "rw=randwrite,bs=16k,n=300k,iodepth=8"),
    ("run", "--ssd", "tlc-32g", *SMALL, *PAGES, *BY_BLOCKS, "--ftl", "page", "--workload", SKEWED),
    ("run", "--ssd", "tlc-32g", *SMALL, "--fidelity", "count", "--workload", "rw=randwrite,bs=8k,n=1e6"),
    ("compare", "--ssd", "mga-16k", *SMALL, "--ftl", "page,subpage,sector-log,mga", "--workload", "trade,n=150k"),
    ("compare", "--ssd", "mga-16k", *SMALL, "--ftl", "mga,page", "--fidelity", "count", "--workload", "synth-a,n=300k"),
    ("compare", "--ssd", "llh-16g", *SMALL, "--ftl", "hotcold,llh", "--workload", "rw=randwrite,bs=8k,n=200k"),
    ("compare", "--ssd", "spread-16g", *SMALL, "--ftl", "page-fgm,dma-fgm,spftl", "--workload", MIX),
    ("compare", "--ssd", "codesign-8ch", "--ftl", "fs-page,codesign", *FILES),
)
"""Arguments of `palimpsest` for the runs of the build with counters."""


def main(arguments: Sequence[str]) -> int:
    """Builds the wheel, or trains the build that is installed beside this interpreter."""
    if list(arguments) == ["train"]:
        return train()
    if arguments:
        raise SystemExit(f"wheel-pgo: expected nothing or train, not {' '.join(arguments)}")
    how, options = "without a profile: no llvm-profdata; `rustup component add llvm-tools` adds it", []
    if find_profdata():
        how, options = f"with the profile of {len(TRAINING)} runs", ["--pgo"]
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    maturin = [str(Path(sys.executable).parent / "maturin"), "build", "--release", "--locked", "--quiet"]
    options += ["--out", "dist", "--interpreter", sys.executable]
    status = subprocess.run([*maturin, *options], cwd=ROOT).returncode
    if status == 0:
        print(f"wheel-pgo: dist/{next((ROOT / 'dist').glob('*.whl')).name}, {how}")
    return status


def find_profdata() -> bool:
    """Whether the toolchain has `llvm-profdata`, after an attempt to add it."""
    inside = Path(said("--print", "sysroot"), "lib", "rustlib", host(), "bin", "llvm-profdata")
    if not inside.is_file() and (rustup := shutil.which("rustup")):
        subprocess.run([rustup, "component", "add", "llvm-tools"], cwd=ROOT, capture_output=True)
    return inside.is_file()


def host() -> str:
    """The target triple of this machine."""
    return next(line.removeprefix("host: ") for line in said("-vV").splitlines() if line.startswith("host: "))


def said(*arguments: str) -> str:
    """Output of rustc.

    Raises:
        SystemExit: rustc failed, or does not exist.
    """
    try:
        done = subprocess.run(["rustc", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"wheel-pgo: rustc {' '.join(arguments)}: {error}") from None
    return done.stdout.strip()


def train() -> int:
    """Runs all of [`TRAINING`]; 1, with the error, if one fails."""
    with tempfile.TemporaryDirectory() as folder:
        for arguments in TRAINING:
            command = [sys.executable, "-m", "palimpsest", *arguments]
            # Preconditioning is a part of the training.
            environment = os.environ | {"PALIMPSEST_NO_CACHE": "1"}
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            if done.returncode:
                print(f"wheel-pgo: palimpsest {' '.join(arguments)}: {done.stderr.strip()}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
