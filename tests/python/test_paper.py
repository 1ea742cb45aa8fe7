"""`palimpsest figure`, `rerun` and `cite`, and the provenance of a result."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import palimpsest as ps
from conftest import ROOT, Command
from palimpsest.cli import cli
from palimpsest.paper.series import Choice, load, table
from palimpsest.paper.styles import COLOURS, HATCHES, STYLES

pytestmark = pytest.mark.contract

SMALL = {"ssd": "mga-8k", "precondition": "none", "workload": "rw=randrw,bs=4k,size=16MiB,n=800,iodepth=4"}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compared = ps.compare(["page", "mga"], **SMALL)  # type: ignore[arg-type]
    return compared.save(tmp_path_factory.mktemp("paper") / "both")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper") / "swept"
    grid = {"ftl": ["page", "mga"], "ssd.over_provisioning": ["100%", "150%"], "seed": [1, 2]}
    ps.sweep({"base": SMALL, "grid": grid}, out=folder, jobs=1)
    return folder


def draw(*arguments: str) -> None:
    """The command, in this process, because a separate process would load the program again."""
    cli.main(["figure", *arguments], standalone_mode=False)


def test_cdf_has_the_percentiles_of_the_result(both: Path) -> None:
    data = table(load([both]), Choice("cdf", requests="write"))
    result = ps.load(both)
    assert isinstance(result, ps.Comparison)
    for label in ("page", "mga"):
        rows = data.filter(series=label)
        p99 = rows.filter(pl.col("y") >= 0.99)["x"][0]
        assert p99 == pytest.approx(result[label]["latency_ns"]["write"]["p99"] / 1000, rel=0.002)
        assert (rows["y"][0], rows["y"][-1]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("kind", "ending", "options"),
    [
        ("cdf", "pdf", ("--class", "write", "--style", "acm")),
        ("tail", "svg", ("--style", "ieee", "--columns", "2")),
        ("bars", "png", ("--figure", "flash.erases")),
        ("time", "pdf", ("--figure", "write_amplification")),
        ("table", "tex", ()),
    ],
)
def test_figures_of_a_comparison(both: Path, tmp_path: Path, kind: str, ending: str, options: tuple[str, ...]) -> None:
    pictures = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.{ending}"
        draw(kind, str(both), "-o", str(path), *options)
        assert pl.read_csv(path.with_suffix(".csv")).height > 1
        pictures.append(path.read_bytes())
    assert pictures[0] == pictures[1], "the same data give the same bytes"
    if kind == "tail":
        width = re.search(rb'width="([0-9.]+)pt"', pictures[0])
        assert width is not None
        assert float(width[1]) / 72 == pytest.approx(STYLES["ieee"].text_in, abs=0.02)


def test_figures_of_a_sweep(swept: Path, tmp_path: Path) -> None:
    for kind in ("lines", "heat", "bars"):
        out = tmp_path / f"{kind}.pdf"
        options = ("--x", "ssd.over_provisioning", "--by", "ftl", "--figure", "latency_ns.write.mean")
        draw(kind, str(swept), "-o", str(out), *options)
    rows = pl.read_csv(tmp_path / "lines.csv").filter(series="mga").to_dicts()
    found = ps.Sweep.load(swept)
    values = [
        point.result.latency_ns["write"]["mean"]
        for point in found
        if point.result and point.axes["ftl"] == "mga" and point.axes["ssd.over_provisioning"] == "100%"
    ]
    assert rows[0]["x"] == 1.0
    assert rows[0]["y"] == pytest.approx(sum(values) / 2)
    assert rows[0]["low"] < rows[0]["y"] < rows[0]["high"]
    draw("cdf", str(swept), "-o", str(tmp_path / "c.svg"), "--by", "ftl")


def test_mistakes_say_what_was_expected(both: Path, swept: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "a.pdf")
    for arguments, said in (
        (("cdf", str(both), "-o", "a.jpg"), "expected a name that ends in .pdf"),
        (("bars", str(both), "-o", out, "--figure", "flash.erase"), "did you mean flash.erases?"),
        (("lines", str(both), "-o", out), "expected the folder of a sweep"),
        (("lines", str(swept), "-o", out, "--x", "part.nop"), "no such axis"),
        (("cdf", str(tmp_path), "-o", out), "no such file"),
    ):
        with pytest.raises(ps.InputError, match=re.escape(said)):
            draw(*arguments)


def test_styles_differ_without_colour() -> None:
    def grey(colour: str) -> float:
        red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    assert len(set(HATCHES)) == len(HATCHES) == len(COLOURS)
    assert grey(COLOURS[0]) < grey(COLOURS[1]) < grey(COLOURS[3]) < grey(COLOURS[5]) < grey(COLOURS[7])


def test_rerun_says_whether_the_bytes_agree(palimpsest: Command, tmp_path: Path) -> None:
    drive = tmp_path / "d.toml"
    drive.write_text('base = "mga-8k"\n[part]\nnop = 2\n')
    trace = tmp_path / "t.csv"
    trace.write_text("time_ns,op,offset_bytes,size_bytes\n" + "".join(f"{at}000,w,{at}000,4096\n" for at in range(300)))
    folder = tmp_path / "a"
    command = ("run", "--ssd", str(drive), "--workload", str(trace), "--precondition", "none", "--out", str(folder))
    assert palimpsest(*command, "--set", "ftl.victim=fifo").returncode == 0
    came = json.loads((folder / "summary.json").read_text())["provenance"]
    assert came["options"]["overrides"] == ["ftl.victim=fifo"]
    assert sorted(came["files_blake2b"]) == ["ssd", "workload"]
    drive.unlink()
    done = palimpsest("rerun", str(folder))
    assert (done.returncode, done.stdout) == (0, "mga: every byte agrees\n"), done.stderr
    data: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    data["flash"]["erases"] += 1
    (folder / "summary.json").write_text(json.dumps(data))
    done = palimpsest("rerun", str(folder))
    assert done.returncode == 1
    assert "flash.erases: 1 before, 0 now" in done.stdout
    trace.write_text(trace.read_text() + "999999999,w,0,4096\n")
    done = palimpsest("rerun", str(folder))
    assert done.returncode == 2
    assert f"{trace}: the file is not the one" in done.stderr


def test_citations_agree(palimpsest: Command) -> None:
    shown = palimpsest("cite").stdout
    version = re.search(r"version = \{(.*)\}", shown)
    assert version is not None
    assert f"\nversion: {version[1]}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
