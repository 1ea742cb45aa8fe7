"""The layer of a plug-in, `ring` as `new-layer` writes it, works like a built-in layer."""

import json
import re
from pathlib import Path

import pytest

from documents import Block, agrees, commands
from plugin_projects import built, changed, command, installed, new, said

ROOT = Path(__file__).resolve().parent.parent.parent
TUTORIAL = ROOT / "docs" / "tutorial-layer.md"
GUIDE = ROOT / "docs" / "write-an-ftl.md"
SETTINGS = {
    "ssd.blocks_per_plane": "16",
    "part.pages_per_block": "8",
    "ssd.over_provisioning": "30%",
}
SMALL = ["--ssd=mga-8k", *(f"--set={key}={value}" for key, value in SETTINGS.items())]
OF_PAGE = ["--set=ftl.gc_start=1 block", "--set=ftl.gc_stop=1 block"]
"""Settings of `page`, which `ring` does not read."""
WORKLOAD = ["--workload=rw=randrw,bs=4k,n=3000,iodepth=8", "--precondition=fill:100%", "--payload=tag"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The project of `new-layer ring`, built and installed as by a user except for the profile."""
    folder = tmp_path_factory.mktemp("ring")
    return [installed(folder / "site", built(new(folder / "ring")))]


def test_it_is_listed_with_its_key(site: list[Path]) -> None:
    assert "page map over one circular log" in said(command(site, "list", "ftls"))
    shown = said(command(site, "show", "--ftl=ring", "--set=ring.reserve=250%"))
    assert re.search(r'\[ring\]\nreserve = "250%" +# ring: erased pages .* \[--set ring\.reserve=250%\]', shown), shown


def test_it_is_checked(site: list[Path]) -> None:
    checked = json.loads(said(command(site, "check", "ring", "--cases=2", "--json")))
    assert checked["broken"] is None
    assert sum(row["cuts"] for row in checked["rows"]) > 100


def test_its_check_refuses_like_any_other(site: list[Path]) -> None:
    refused = command(site, "run", *SMALL, "--ftl=ring", "--set=ring.reserve=50%")
    assert refused.returncode == 2
    assert refused.stderr.startswith(
        "error: --set ring.reserve=50%: ring.reserve = 50%: cleaning moves a block at a time"
    )
    unknown = command(site, "run", *SMALL, "--ftl=ring", "--set=ring.reserv=2")
    assert "did you mean ring.reserve?" in unknown.stderr
    unused = command(site, "run", *SMALL, *WORKLOAD, *OF_PAGE, "--ftl=page", "--set=ring.reserve=200%")
    expected = "page does not read ring.reserve; expected no ring.reserve"
    assert unused.stderr == f"error: --set ring.reserve=200%: {expected}\n"


def test_it_is_compared_and_reported(site: list[Path], tmp_path: Path) -> None:
    arguments = ["--ftl=page,ring", *SMALL, *OF_PAGE, *WORKLOAD, f"--out={tmp_path / 'out'}"]
    assert "every read verified" in said(command(site, "compare", *arguments))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "ring" in page
    saved = [json.loads(path.read_text()) for path in (tmp_path / "out").rglob("*.json")]
    assert any(each.get("ftl") == "ring" and each["gc"]["runs"] > 0 for each in saved if isinstance(each, dict))


def test_its_key_is_an_axis_of_sweeps(site: list[Path], tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.toml"
    lines = [
        "[base]",
        'ssd = "mga-8k"',
        'ftl = "ring"',
        'workload = "rw=randwrite,bs=4k,n=2000"',
        'precondition = "fill:100%"',
        *(f'"{key}" = "{value}"' for key, value in SETTINGS.items()),
        "[grid]",
        '"ring.reserve" = ["100%", "300%"]',
    ]
    sweep.write_text("\n".join(lines), encoding="utf-8")
    printed = said(command(site, "sweep", str(sweep), "--out", str(tmp_path / "points"), cwd=tmp_path))
    assert "reserve" in printed
    assert "300%" in printed


@pytest.mark.parametrize("named", ["nothing-here.so", "json", "no_such_module"])
def test_a_module_that_is_none_is_one_line(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALIMPSEST_CORE", named)
    done = command([], "list", "ftls")
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: PALIMPSEST_CORE={named}: ")
    assert len(done.stderr.splitlines()) == 1


def tutorial() -> tuple[list[tuple[str, str]], list[str]]:
    """The changes of the tutorial (old and new text), and the blocks of commands."""
    text = TUTORIAL.read_text(encoding="utf-8")
    code = re.findall(r"```rust\n(.*?)```", text, re.S)
    return list(zip(code[::2], code[1::2], strict=True)), re.findall(r"```text\n(.*?)```", text, re.S)


def test_the_tutorial_changes_what_is_there() -> None:
    example = (ROOT / "examples" / "ring" / "src" / "ring.rs").read_text(encoding="utf-8")
    changes, _ = tutorial()
    assert len(changes) == 1
    assert all(example.count(before) == 1 for before, _ in changes)


def run_tutorial(block: str, site: list[Path], folder: Path) -> None:
    """Runs the commands of a block except builds, and compares their output with the shown lines."""
    found = re.search(r"# idea\.toml\n.*?(?=```)", TUTORIAL.read_text(encoding="utf-8"), re.S)
    assert found
    (folder / "idea.toml").write_text(found[0], encoding="utf-8")
    for each in commands(Block(TUTORIAL.name, 1, "console", block, "")):
        if each.text.startswith("palimpsest "):
            # A new layer is written before its plug-in is installed.
            folders = [] if "new-layer" in each.text else site
            printed = said(command(folders, *each.text.replace("\\\n", "").split()[1:], cwd=folder))
            assert each.shown is not None
            assert agrees(each.shown, printed), printed


def test_the_tutorial_begins_with_the_example(site: list[Path], tmp_path: Path) -> None:
    run_tutorial(tutorial()[1][0], site, tmp_path)


@pytest.mark.long
def test_the_tutorial_ends_with_a_better_layer(site: list[Path], tmp_path: Path) -> None:
    """Makes the layer by the page's instructions, and runs all shown commands."""
    changes, blocks = tutorial()
    run_tutorial(blocks[1], site, tmp_path)
    changed(tmp_path / "lean" / "src" / "lean.rs", *changes)
    both = [*site, installed(tmp_path / "site", built(tmp_path / "lean"))]
    for block in blocks[2:]:
        run_tutorial(block, both, tmp_path)


def test_the_guide_shows_the_file_of_the_example() -> None:
    code = re.findall(r"```rust\n(.*?)\n```", GUIDE.read_text(encoding="utf-8"), re.S)[0]
    layer, _, _ = code.partition("// From here on")
    example = (ROOT / "examples" / "ring" / "src" / "ring.rs").read_text(encoding="utf-8")
    assert example.rstrip() == layer.rstrip()


WIDE = {"ssd.channels": "4", "ssd.blocks_per_plane": "24", "ssd.over_provisioning": "60%", "part.cell": "slc"}
AGEING = {"ecc.strength": "9", "part.ber_fresh": "0.05%", "part.word_size": "512B", "ecc.disturb_reads": "20"}
RETRIES = {"ecc.t_retries": '["50us", "90us"]', "ecc.retry_rates": '["80%", "60%"]', "ecc.refresh_retries": "1"}
FEATURES = {
    "checkpoints": ({"ftl.checkpoint": "256KiB", "faults.power_cuts": "every:900"}, ["checkpoint", "begun"]),
    "patrol": ({"ftl.patrol": "20ms", "ftl.gc_idle": "100us", **AGEING}, ["flash", "by_cause", "patrol", "reads"]),
    "refresh": ({**AGEING, **RETRIES}, ["ftl_stats", "refreshed_blocks"]),
    "parity": ({"ftl.rain": "3"}, ["rain", "parity_programs"]),
}


@pytest.mark.parametrize("feature", FEATURES)
def test_it_has_features_of_the_drive_without_a_line(site: list[Path], feature: str) -> None:
    """The drive checkpoints, patrols, refreshes and protects a layer that names none of this; reads are verified."""
    settings, figure = FEATURES[feature]
    job = "--workload=rw=randrw,bs=4k,n=3000,rate_iops=1000"
    options = [f"--set={key}={value}" for key, value in {**SETTINGS, **WIDE, **settings}.items()]
    arguments = ["run", "--ssd=mga-8k", *options, job, "--precondition=fill:100%", "--payload=tag", "--check", "--json"]
    found = json.loads(said(command(site, *arguments, "--ftl=ring")))
    for name in figure:
        found = found[name]
    assert found > 0
    source = (ROOT / "examples" / "ring" / "src" / "ring.rs").read_text(encoding="utf-8")
    assert not re.search("checkpoint|patrol|refresh|stripe|rain", source)
