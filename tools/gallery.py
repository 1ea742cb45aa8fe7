"""Draws the figures of the page "Gallery" as SVG: `python tools/gallery.py docs/images`.

Runs a comparison and a sweep of a small drive, and draws one figure of each kind by the command `palimpsest figure`.
Ignored: pictures of the report, which `demo_picture.py` takes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = (sys.executable, "-m", "palimpsest")
DRIVE = ("--ssd", "tlc-32g", "--set", "ssd.capacity=2GiB", "--set", "part.pages_per_block=33")
SWEEP = """
[base]
ssd = "tlc-32g"
"ssd.capacity" = "2GiB"
part.pages_per_block = 33
fidelity = "count"
precondition = "fill:100%,random:1x"
workload = "rw=randwrite,bs=16k,n=60000,norandommap"

[grid]
"ssd.over_provisioning" = ["10%", "14%", "20%", "28%"]
"ftl.victim" = ["greedy", "fifo", "d-choices"]
seed = [1, 2]
"""
_SWEPT = (
    "--x", "ssd.over_provisioning", "--by", "ftl.victim", "--figure", "write_amplification", "--xlabel",
    "Over-provisioning",
)  # fmt: skip
FIGURES = {
    "gallery-cdf": ("cdf", "both", "--class", "write"),
    "gallery-tail": ("tail", "both", "--class", "read"),
    "gallery-bars": ("bars", "both", "--figure", "flash.erases"),
    "gallery-time": ("time", "both", "--figure", "write_amplification"),
    "gallery-lines": ("lines", "swept", *_SWEPT),
    "gallery-heat": ("heat", "swept", *_SWEPT, "--ylabel", "Victims"),
}  # fmt: skip
"""Pictures by name: the kind, the folder of results, and options."""


def draw(images: Path) -> None:
    """Runs the drives in an empty folder and writes each picture.

    Raises:
        subprocess.CalledProcessError: a command failed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def run(*arguments: str) -> None:
            subprocess.run([*COMMAND, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)

        workload = "rw=randrw,rwmixread=50,bs=8k,n=20000,iodepth=16,norandommap"
        run("compare", "--ftl", "page,subpage", *DRIVE, "--workload", workload, "--out", "both")
        (folder / "sweep.toml").write_text(SWEEP, encoding="utf-8")
        run("sweep", "sweep.toml", "--out", "swept")
        for picture, (kind, results, *options) in FIGURES.items():
            run("figure", kind, results, "-o", str(images.resolve() / f"{picture}.svg"), *options)
            (images / f"{picture}.csv").unlink(missing_ok=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
