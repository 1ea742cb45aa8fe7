"""Reproductions on real traces by name, and reproductions that are interrupted and resumed."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import trace_sample
from palimpsest.reproduce import outputs, real, running
from palimpsest.reproduce.batch import Batch
from palimpsest.reproduce.study import Study, load
from reproduction import changed


@pytest.mark.unit
@pytest.mark.parametrize(
    ("paper", "file", "workload", "instead"),
    [
        ("llh", "hm_0.csv.gz", "hm_0", False), ("llh", "HM_0.csv", "hm_0", False),
        ("llh", "msr_hm_1000.csv.zst", "hm_0", False), ("llh", "msr_prxy_0_first20k.csv.zst", "prxy_0", False),
        ("llh", "hm_1.csv", "hm_0", True), ("llh", "msr_web_3.csv.zst", "web_0", True),
        ("llh", "fiu_home1_1000.blkparse.zst", "webusers", True), ("llh", "online.blkparse.gz", "online", False),
        ("llh", "web-online.trace", "web-online", False), ("spread", "usr_2.csv", "usr", False),
        ("spread", "proj_1.csv.gz", "prj", False), ("mga", "DisplayAdsPayload.trace", "ads", False),
        ("codesign", "msps_DevToolsRelease.ssdsim.zst", "development", False),
        ("codesign", "Exchange.12-12-2007.trace.csv.gz", "exchange", False),
        ("codesign", "LiveMapsBackEnd.11-24-2008.csv", "livemaps", False), ("codesign", "hm_0.csv", None, False),
    ],
)  # fmt: skip
def test_files_are_found_by_name(paper: str, file: str, workload: str | None, instead: bool) -> None:
    found = real.find(load(paper)["real"], {file.split(".")[0]: Path(file)})
    assert found.files == ({workload: Path(file)} if workload else {})
    assert (list(found.instead), not found.others) == ([workload] if instead else [], workload is not None)
    said = found.described("At SNIA.")
    assert file in said
    assert said.endswith("At SNIA.")


@pytest.mark.unit
def test_a_trace_with_the_name_comes_before_another_volume() -> None:
    files = {name: Path(f"{name}.csv") for name in ("hm_0", "hm_1", "hm_0_more", "other")}
    found = real.find(load("llh")["real"], files)
    assert found.files == {"hm_0": files["hm_0"]}
    assert [*found.others] == ["hm_1", "hm_0_more", "other"]
    assert "For no workload of the paper: hm_1.csv" in found.described("")


@pytest.mark.unit
def test_a_file_that_cannot_be_read_leaves_the_others(tmp_path: Path) -> None:
    """A former bug: one damaged trace of a folder ended the reproduction of all papers."""
    files = {name: tmp_path / f"{name}.csv" for name in ("hm_0", "hm_0_more")}
    files["hm_0"].write_text("no trace\n", encoding="utf-8")
    files["hm_0_more"].write_text("128166372003061629,hm,0,Read,383496192,32768,113736\n", encoding="utf-8")
    problems = real.unreadable(files)
    assert [*problems] == ["hm_0"]
    found = real.find(load("llh")["real"], files, problems)
    assert found.files == {"hm_0": files["hm_0_more"]}
    assert f"Cannot be read and is left out: {files['hm_0']}" in found.described("")


@pytest.mark.unit
@pytest.mark.parametrize("paper", ["mga", "llh", "spread", "codesign"])
def test_descriptions_of_real_traces_are_whole(paper: str) -> None:
    data = load(paper)
    known = set(data["constants"]["workloads"])
    assert {*data["real"]["names"], *data["real"].get("instead", {})} <= known
    assert {*data["real"]["claims"]} <= known | {"any"}
    assert {*data["real"]["grids"]} <= data["grids"].keys()
    assert {*data["real"]["figures"]} <= {each["id"] for each in data["figures"]}


KINDS = {
    "llh": ("msr_hm_1000.csv.zst", "msr_wdev_1.csv.zst", "msr_web_3.csv.zst", "fiu_home2_1000.blkparse.zst"),
    "spread": ("msr_prxy_0_first20k.csv.zst",),
    "codesign": ("msps_DevToolsRelease.ssdsim.zst",),
    "mga": ("msr_prxy_0_first20k.csv.zst",),
}
"""Pieces of each kind; those of mga and spread get the name of a workload."""
NAMED = {"spread": "usr_0.csv", "mga": "TPCE.csv"}


def cut(folder: Path, paper: str) -> None:
    """Writes the first 1,200 lines of the pieces of a paper."""
    for name in KINDS[paper]:
        lines = subprocess.run(["zstd", "-dc", trace_sample(name)], capture_output=True, check=True).stdout
        head = b"\n".join(lines.split(b"\n")[:1200])
        (folder / NAMED.get(paper, name.removesuffix(".zst") + ".trace")).write_bytes(head + b"\n")


@pytest.mark.contract
@pytest.mark.parametrize("paper", KINDS)
def test_real_traces_have_claims_and_figures(paper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {
        "llh": {"banks": 1, "smaller": 4},
        "mga": {"blocks": 16, "requests": 500},
        "spread": {"blocks": 48, "requests": 500, "seeds": 1},
        "codesign": {"blocks": 40, "requests": 600},
    }
    parts = {"scales": {name: scale | small[paper] for name, scale in load(paper)["scales"].items()}}
    if paper == "llh":
        more = {"grids": ["main", "table_6"], "figures": ["table6", "fig7{letter}"]}
        parts |= {"real": more, "constants": {"pages": [8], "over_provisionings": [28]}}
    changed(monkeypatch, paper, **parts)
    (tmp_path / "own.csv").write_text("time_ns,op,offset_bytes,size_bytes\n0,w,0,4096\n")
    cut(tmp_path, paper)
    study = Study(paper, Batch(2, traces=str(tmp_path)))
    claims, figures = running.replayed(study)
    found = {"llh": ["hm_0", "wdev_0", "web_0", "webusers"], "spread": ["usr"], "codesign": ["development"],
             "mga": ["trade"]}[paper]  # fmt: skip
    assert sorted(study.found.files) == found
    assert [path.name for path in study.found.others.values()] == ["own.csv"]
    assert any(claim.ours is not None for claim in claims) or paper == "llh"
    assert figures
    for figure in figures:
        assert figure.id.endswith("_real")
        assert set(figure.data["workload"]) <= set(found)
        assert "Real traces" in figure.note or "in their place" in figure.note
        assert "own.csv" in figure.note
        left = set(found) - set(figure.data["workload"])
        assert all(name in figure.note.partition("Left out, because")[2] for name in left)
    if paper == "llh":  # too few requests for collection
        assert set(figures[0].data["workload"]) == set(found)
        return
    one = outputs.Reproduction(paper, "A paper", (), (claims[0].replayed(claims[0]),), tuple(figures))
    assert '<th scope="col">real</th>' in outputs.page([one])


PROGRAM = """
import sys
from palimpsest.reproduce import study
data = study.load("womv")
data["scales"]["quick"] |= {"blocks": 48, "lives": 1, "timed_requests": int(sys.argv.pop(1)), "trace_requests": 100}
data["constants"] |= {"seeds": [1], "codes": ["3/4", "2/4", "1/4"], "workloads": ["uniform", "Zipf 0.95"]}
from palimpsest.cli import main
main()
"""


@pytest.mark.contract
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_reproduction_resumes(number: int, tmp_path: Path) -> None:
    def command(requests: int) -> list[str]:
        out = ["--out", str(tmp_path / "o"), "--jobs", "2"]
        return [sys.executable, "-c", PROGRAM, str(requests), "reproduce", "womv", "--json", *out]

    def kept() -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in (tmp_path / "o" / "points").glob("*.json")}

    with subprocess.Popen(command(500), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as begun:
        end = time.monotonic() + 120
        while len(kept()) < 3 and time.monotonic() < end:
            time.sleep(0.02)
        begun.send_signal(number)
        output, said = begun.communicate(timeout=60)
    first = kept()
    assert (begun.returncode, output) == (130 if number == signal.SIGINT else -number, "")
    assert len(first) >= 3
    if number == signal.SIGINT:
        assert "simulations are kept in" in said
        assert said.endswith("the same command resumes\ninterrupted\n")
    whole = subprocess.run(command(500), capture_output=True, text=True, check=True, timeout=600)
    every = kept()
    assert first.items() < every.items()
    assert len(json.loads(whole.stdout)["claims"]) == 4
    if number == signal.SIGINT:
        # Another setting runs again only what it changes: the timed runs.
        subprocess.run(command(600), capture_output=True, check=True, timeout=600)
        assert every.items() < kept().items()
        assert len(kept()) < 2 * len(every)
