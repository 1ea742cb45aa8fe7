"""Remedies of refused commands, executed: with the remedy of its message each command runs."""

import json
import re
import shlex
from pathlib import Path

import pytest

from conftest import Command

pytestmark = pytest.mark.contract

SHORT = "--workload rw=randwrite,bs=4k,n=300 --precondition none"
TRACE = "time_ns,op,offset_bytes,size_bytes\n" + "".join(f"{9000 * n},W,{4096 * n},4096\n" for n in range(300))


@pytest.mark.parametrize(
    ("command", "remedy", "drops"),
    [
        (f"run {SHORT} --check --fidelity count", "--fidelity timed", "--fidelity count"),
        (f"run {SHORT} --payload none --set faults.power_cut_at=100", "--payload tag", "--payload none"),
        (f"run {SHORT} --payload none --check", "tag", "--payload none"),
        (f"run {SHORT} --operations o.parquet --fidelity count", "--fidelity timed", "--fidelity count"),
        (f"run {SHORT} --operations-window 1..9", "--operations FILE", ""),
        (f"run {SHORT} --set host.speedup=2", "no host.speedup", "--set host.speedup=2"),
        (f"run {SHORT} --set host.compact=64KiB", "no host.compact", "--set host.compact=64KiB"),
        (f"run {SHORT} --requests 200 --warmup 200", "at most 199", "--warmup 200"),
        (f"run {SHORT} --warmup 10%x", "a number of requests such as 10000", "--warmup 10%x"),
        (f"run {SHORT} --interval bootstrap", "--seeds 1..5", ""),
        (f"run {SHORT} --seed 2 --seeds 1..2", "one of them", "--seed 2"),
        (f"run {SHORT} --seeds 3", "--seed 3", "--seeds 3"),
        (f"run {SHORT} --force", "--out DIR", ""),
        (f"run {SHORT} --state s", "no --state", "--state s"),
        (f"run {SHORT} --volumes apart", "a trace", SHORT),
        (f"run {SHORT} --payload tags", "tag", "--payload tags"),
        (f"run {SHORT} --fit-memory sixteen", "16GiB", "--fit-memory sixteen"),
        (f"run --ftl page,subpage {SHORT}", "palimpsest compare", "run"),
        (f"run {SHORT} --ftl page --set ftl.log_fraction=4%", "ftl.name = sector-log", "--ftl page"),
        (
            f"run {SHORT} --ftl page --set ftl.log_fraction=4% --set ftl.allocation_threshold=20%",
            "no ftl.log_fraction and no ftl.allocation_threshold",
            "--set ftl.log_fraction=4% --set ftl.allocation_threshold=20%",
        ),
        (f"run {SHORT} --ssd tlc-32g --set ftl.streams=200", "ftl.streams = 16", "--set ftl.streams=200"),
        (
            "run --workload rw=randwrite,bs=4k,n=300 --ssd zn540 --ftl page --precondition layout",
            "fill",
            "--precondition layout",
        ),
    ],
)  # fmt: skip
def test_the_command_runs_with_the_remedy(
    palimpsest: Command, tmp_path: Path, command: str, remedy: str, drops: str
) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    refused = palimpsest(*shlex.split(command), cwd=tmp_path)
    assert refused.returncode == 2, refused.stderr
    said = refused.stderr
    assert remedy in said.split("expected", 1)[-1], said
    words = {"DIR": "out", "FILE": "o.parquet", "a trace": "--workload t.csv", "palimpsest compare": "compare"}
    words |= {"at most 199": "--warmup 199", "a number of requests such as 10000": "--warmup 200"}
    words |= {"tag": "--payload tag", "16GiB": "--fit-memory 16GiB", "one of them": "", "fill": "--precondition none"}
    applied = words.get(remedy, remedy)
    for word in ("DIR", "FILE"):
        applied = applied.replace(word, words[word])
    if remedy.startswith("no "):
        applied = ""
    settings = re.sub(r"([a-z_.]+) = (\S+)", r"--set \1=\2", applied)
    kept = command.replace(drops, settings if drops == "run" else "", 1) if drops else command
    done = palimpsest(*shlex.split(kept if drops == "run" else f"{kept} {settings}"), cwd=tmp_path)
    assert done.returncode == 0, f"{kept} {settings}\n{done.stderr}"


@pytest.mark.parametrize("ssd", ["d5-p5336-30.72t", "enterprise-tlc-7.68t"])
def test_large_drives_run_in_little_memory(palimpsest: Command, tmp_path: Path, ssd: str) -> None:
    """The option scales the drive to 256 MiB, a run passes, and its configuration repeats the drive."""
    load = ("--workload", "rw=randwrite,bs=64k,n=300", "--ssd", ssd, "--precondition", "fill:50%")
    done = palimpsest("run", *load, "--fit-memory", "256MiB", "--json", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    line = r"note: --fit-memory: scaled from \S+ TB to \S+ GB, factor 0\.\d+, for 0\.2 GiB of memory: [^\n]+"
    assert re.fullmatch(line, done.stderr.splitlines()[0]), done.stderr
    result = json.loads(done.stdout)
    assert result["fit_memory"]["factor"] < 0.1
    assert any(note.startswith("--fit-memory: scaled from ") for note in result["notes"])
    assert result["sim"]["peak_rss_bytes"] < 700 << 20
    again = palimpsest("run", *load[:2], "--ssd", "out/config.toml", *load[4:], "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["flash"] == result["flash"]


def test_a_drive_that_fits_keeps_its_size(palimpsest: Command) -> None:
    done = palimpsest("show", "--fit-memory", "64GiB")
    assert done.stdout == palimpsest("show").stdout
    assert re.search(r"^note: --fit-memory: the drive of \S+ GB takes .* of memory, and keeps its size$", done.stderr)


def test_a_comparison_and_a_sweep_scale_all_drives_alike(palimpsest: Command, tmp_path: Path) -> None:
    load = ("--workload", "rw=randwrite,bs=4k,n=300", "--precondition", "fill:50%")
    done = palimpsest("compare", "page", "subpage", "mga", *load, "--fit-memory", "64MiB", "--json")
    runs = json.loads(done.stdout)["runs"]
    assert len({run["config"]["ssd"]["blocks_per_plane"] for run in runs}) == 1
    assert len({run["fit_memory"]["factor"] for run in runs}) == 1
    file = tmp_path / "s.toml"
    file.write_text('[base]\nworkload = "rw=randwrite,n=100"\n[grid]\nftl.name = ["page", "mga"]\n')
    swept = palimpsest("sweep", str(file), "--dry-run", "--fit-memory", "64MiB")
    assert swept.returncode == 0, swept.stderr
    assert swept.stderr.count("note: --fit-memory: scaled from ") == 1, swept.stderr
