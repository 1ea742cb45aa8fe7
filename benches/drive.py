"""Requests a second of a drive inside a C program and of batches from Python, beside those of `palimpsest run`.

    make setup && make c-library PREFIX=target/c && .venv/bin/python benches/drive.py target/c

Random requests of a unit at queue depth 32, on one core; processor time, the median of five interleaved rounds.
Ignored: arrivals at given times, and payloads.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import palimpsest as ps

REQUESTS, DEPTH, ROUNDS = 1_000_000, 32, 5
DRIVES = (("tlc-32g", "page"), ("tlc-32g", "subpage"), ("default", "subpage"))
KEYS = {"ssd.blocks_per_plane": 96}
PRECONDITION = "fill:100%,random:1x"


def _user() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def _run(preset: str, layer: str, kind: str, unit: int) -> float:
    """Two lengths, because a run also makes the drive."""

    def took(requests: int) -> float:
        begin = _user()
        spec = f"rw=rand{kind},bs={unit},iodepth={DEPTH},norandommap,n={requests}"
        ps.run(spec, ssd=ps.Ssd(preset, ftl=layer, **KEYS), precondition=PRECONDITION, payload="none")
        return _user() - begin

    short, long = took(REQUESTS // 2), took(3 * REQUESTS // 2)
    return REQUESTS / (long - short)


def _play(drive: ps.Drive, kind: str) -> float:
    units = drive.size // drive.unit_bytes
    offsets = np.random.default_rng(1).integers(0, units, REQUESTS) * drive.unit_bytes
    begin = _user()
    drive.play(kind, offsets, drive.unit_bytes, depth=DEPTH)
    return REQUESTS / (_user() - begin)


def _new(preset: str, layer: str) -> ps.Drive:
    return ps.Drive(preset, ftl=layer, closed_loop=True, payload="none", precondition=PRECONDITION, **KEYS)


def _in_c(program: Path, preset: str, layer: str, kind: str) -> float:
    keys = [f"{key}={value}" for key, value in KEYS.items()]
    command = [program, preset, layer, kind, str(REQUESTS), *keys]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _rates(program: Path, preset: str, layer: str, kind: str) -> tuple[float, ...]:
    """Medians of the three ways, interleaved."""
    unit = _new(preset, layer).unit_bytes
    _run(preset, layer, kind, unit)  # keeps the state of the preconditioned drive
    rounds = [
        (
            _run(preset, layer, kind, unit), _in_c(program, preset, layer, kind), _play(_new(preset, layer), kind)
        ) for _ in range(ROUNDS)
    ]  # fmt: skip
    return tuple(np.median(rounds, axis=0))


def main(prefix: Path) -> None:
    """Prints a row for each drive and operation."""
    ps.keep_states()
    print("| drive | operation | run | C | C / run | batches | batches / run |")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "drive"
        source = Path(__file__).with_name("drive.c")
        library = [f"-I{prefix}/include", f"-L{prefix}/lib", "-lpalimpsest", f"-Wl,-rpath,{prefix.resolve()}/lib"]
        subprocess.run(["cc", "-O2", source, *library, "-o", program], check=True)
        for preset, layer in DRIVES:
            for kind in ("read", "write"):
                run, c, batches = _rates(program, preset, layer, kind)
                rates = f"{run:.3g} | {c:.3g} | {c / run:.2f} | {batches:.3g} | {batches / run:.2f}"
                print(f"| {preset}, {layer} | {kind} | {rates} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
