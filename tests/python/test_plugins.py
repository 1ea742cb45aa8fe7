"""Plug-ins: wheels that users install, layers in Rust and policies in Python, and those that cannot be loaded."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import palimpsest as ps
from palimpsest import new_layer
from plugin_projects import ROOT, built, changed, command, installed, new, pure, said

pytestmark = pytest.mark.contract

SETTINGS = {
    "ssd.blocks_per_plane": "24", "part.pages_per_block": "8", "ssd.over_provisioning": "40%",
    "ftl.gc_start": "1 block", "ftl.gc_stop": "1 block",
}  # fmt: skip
SMALL = ["--ssd=mga-8k", *(f"--set={key}={value}" for key, value in SETTINGS.items())]
LOAD = ["--workload=rw=randrw,bs=4k,n=3000,iodepth=8", "--precondition=fill:100%", "--payload=tag"]
POLICIES = {
    "ftl.victim": (
        "class Mine:\n    def choose(self, blocks):\n"
        "        return (blocks.valid * (blocks.erases + 1) / ((blocks.units - blocks.valid) * blocks.age)).argmin()\n"
    ),
    "ftl.classifier": "class Mine:\n    def classify(self, requests):\n        return requests.size >= 65536\n",
    "ftl.gc_pace": "class Mine:\n    def spread(self, victim):\n        return victim.most\n",
}
"""As the built-in policies `cost-age-times`, `size` and `paced`."""
BUILT_IN = {"ftl.victim": "cost-age-times", "ftl.classifier": "size", "ftl.gc_pace": "paced"}
LOGGED = """mod boom;

use palimpsest_layer::ftl::{Entry, dftl, page, subpage};

const LOGGED: Entry = Entry { name: "logged", ..page::ENTRY };
const HALVES: Entry = Entry { name: "halves", ..subpage::ENTRY };
const CACHED: Entry = Entry { name: "cached", ..dftl::ENTRY };

palimpsest_layer::plugin!(boom::ENTRY, LOGGED, HALVES, CACHED);
"""
"""Layers of the project under other names: they must give the same figures from another library."""


@pytest.fixture(scope="session")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of `new-layer`, as its user builds and installs it."""
    folder = tmp_path_factory.mktemp("ring")
    return installed(folder / "site", built(new(folder / "ring")))


@pytest.fixture(scope="session")
def boom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second distribution: `boom` panics at some writes, others are layers of the project."""
    folder = tmp_path_factory.mktemp("boom")
    project = new(folder / "boom")
    write = "fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {\n"
    planted = '        assert!(extent.sector % 64 != 48, "planted at {}", extent.sector);\n'
    changed(project / "src" / "boom.rs", (write, write + planted))
    (project / "src" / "lib.rs").write_text(LOGGED, encoding="utf-8")
    return installed(folder / "site", built(project))


def figures(folders: list[Path], *arguments: str) -> dict[str, Any]:
    """The result of a run without all that names the layer, the policies and the machine."""
    given = any(each.startswith("--workload") for each in arguments)
    load = LOAD[1:] if given else LOAD
    found = json.loads(said(command(folders, "run", "--json", *SMALL, *load, *arguments)))
    return {key: value for key, value in found.items() if key not in ("sim", "provenance", "config", "label", "ftl")}


def test_two_plugins_are_listed_run_and_compared(ring: Path, boom: Path, tmp_path: Path) -> None:
    both = [ring, boom]
    listed = said(command(both, "list", "plugins"))
    assert re.search(r"^boom-layers 0\.1\.0 +layers boom, logged, halves, cached$", listed, re.M), listed
    assert re.search(r"^ring-layers 0\.1\.0 +layers ring$", listed, re.M), listed
    assert "page map over one circular log" in said(command(both, "list", "ftls"))
    options = ["--ftl=page,ring,logged", *SMALL, *LOAD, "--check", f"--out={tmp_path / 'out'}"]
    assert "every read verified" in said(command(both, "compare", *options))
    assert "logged" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("fidelity", ["count", "timed"])
@pytest.mark.parametrize(("layer", "same"), [("page", "logged"), ("subpage", "halves"), ("dftl", "cached")])
def test_figures_equal_those_of_the_built_in_layer(boom: Path, layer: str, same: str, fidelity: str) -> None:
    run = [f"--fidelity={fidelity}", "--set=faults.program_fail=0.1%"]
    assert figures([boom], f"--ftl={same}", *run) == figures([boom], f"--ftl={layer}", *run)


@pytest.mark.parametrize("key", POLICIES)
def test_policies_in_python_work_in_a_layer_of_a_plugin(boom: Path, key: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(POLICIES[key], encoding="utf-8")
    sizes = "--workload=rw=randrw,bssplit=4k/80:64k/20,n=3000,iodepth=8"
    run = ["--set=ftl.streams=3", sizes] if key == "ftl.classifier" else []
    ours = figures([boom], "--ftl=logged", f"--set={key}={tmp_path / 'mine.py'}:Mine", *run)
    assert ours == figures([boom], "--ftl=page", f"--set={key}={BUILT_IN[key]}", *run)
    # Without the policy, or with another one where this is the default, the figures differ.
    source = POLICIES[key].replace("victim.most", "0") if key == "ftl.gc_pace" else ""
    (tmp_path / "other.py").write_text(source, encoding="utf-8")
    other = [f"--set={key}={tmp_path / 'other.py'}:Mine"] if source else []
    assert ours != figures([boom], "--ftl=logged", *other, *run)


def test_an_exception_of_a_policy_in_a_plugin_ends_the_run(boom: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine:\n    def choose(self, blocks):\n        1 / 0\n", encoding="utf-8")
    done = command([boom], "run", *SMALL, *LOAD, "--ftl=logged", f"--set=ftl.victim={tmp_path / 'mine.py'}:Mine")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr.splitlines()[-1]


def test_a_panic_in_a_plugin_is_an_exception(boom: Path) -> None:
    """As of a built-in layer: the process lives, and Python code goes on."""
    boom_reads = {key: value for key, value in SETTINGS.items() if not key.startswith("ftl.gc_")}
    source = f"""
import palimpsest as ps
drive = dict(ssd=ps.Ssd("mga-8k", ftl="boom", **{boom_reads!r}))
for _ in range(2):
    try:
        ps.run("rw=randwrite,bs=4k,n=3000", **drive)
    except BaseException as error:
        print(type(error).__name__, error)
print(ps.run("rw=randread,bs=4k,n=300", precondition="none", **drive).ftl, "reads")
"""
    keys = {**os.environ, "PYTHONPATH": str(boom)}
    done = subprocess.run([sys.executable, "-c", source], env=keys, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second, last = done.stdout.splitlines()
    assert re.fullmatch(r"PanicException the layer boom of a plug-in: planted at \d+", first)
    assert second == first
    assert last == "boom reads"


def test_a_sweep_runs_plugins_in_workers(ring: Path, boom: Path, tmp_path: Path) -> None:
    broken = pure(tmp_path / "broken", "broken", "PLUGIN = 5\n")
    lines = [
        "[base]", 'ssd = "mga-8k"', 'workload = "rw=randwrite,bs=4k,n=2000"', 'precondition = "fill:100%"',
        *(f'"{key}" = "{value}"' for key, value in SETTINGS.items()), "[grid]", 'ftl = ["page", "ring", "logged"]',
    ]  # fmt: skip
    (tmp_path / "sweep.toml").write_text("\n".join(lines), encoding="utf-8")
    done = command([ring, boom, broken], "sweep", "sweep.toml", "--out", "points", cwd=tmp_path)
    assert "logged" in said(done)
    assert done.stderr.count("warning: plug-in broken 1.0") == 1, "workers repeat no warning"
    paths = list((tmp_path / "points" / "points").glob("*.json"))
    results = [json.loads(path.read_text(encoding="utf-8"))["result"] for path in paths]
    found = {each["ftl"]: each["provenance"].get("plugins") for each in results}
    assert found.keys() == {"page", "ring", "logged"}
    assert found["page"] is None
    assert list(found["ring"]) == ["ring-layers 0.1.0"]
    # Other code of the plug-in is another point.
    package = ring / "ring_layers" / "__init__.py"
    package.write_text(package.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    again = command([ring, boom], "sweep", "sweep.toml", "--out", "points", "--json", cwd=tmp_path)
    assert json.loads(said(again))["reused"] == 2, "ring alone runs again"


def test_another_seam_is_one_line_with_both(ring: Path, tmp_path: Path) -> None:
    """The library names another compiler, as one that a newer compiler built."""
    site = tmp_path / "site"
    shutil.copytree(ring, site)
    library = next((site / "ring_layers").glob("_native*"))
    content = library.read_bytes()
    at = content.index(b"palimps1")
    here = re.search(rb"rustc [\d.]+", content[at : at + 200])
    assert here
    other = content[:at] + content[at : at + 200].replace(here[0], b"rustc 9" + here[0][7:]) + content[at + 200 :]
    library.write_bytes(other)
    done = command([site], "list", "ftls")
    assert done.returncode == 0
    assert "circular" not in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert re.search(
        r"warning: plug-in ring-layers 0\.1\.0: _native.*: built for seam \w+ of .* by rustc 9", done.stderr
    )
    assert "but this is seam" in done.stderr


IMPORT = "from palimpsest.plugins import Plugin\n"
BROKEN = {
    "raise ValueError('mine')": "broken:PLUGIN: ValueError: mine",
    "import nothing_of_this_name": "ModuleNotFoundError",
    "PLUGIN = 5": "of type int; expected palimpsest.plugins.Plugin",
    f"{IMPORT}PLUGIN = Plugin(layers=['_native'])": "has no library _native",
    f"{IMPORT}PLUGIN = Plugin(layers=['text.so'])": "text.so: ",
    f"{IMPORT}PLUGIN = Plugin(layers=[5])": "layers: 5; expected the name",
    f"{IMPORT}PLUGIN = Plugin(policies={{'ftl.streams': {{'a': 'b:C'}}}})": "no policy of",
    f"{IMPORT}PLUGIN = Plugin(policies={{'ftl.victim': {{'a b': 'b:C'}}}})": "small letters",
    f"{IMPORT}PLUGIN = Plugin(policies={{'ftl.victim': {{'a': 'b'}}}})": "MODULE:CLASS",
    f"{IMPORT}PLUGIN = Plugin(policies={{'ftl.victim': {{'fifo': 'b:C'}}}})": "palimpsest has",
}


@pytest.mark.parametrize("body", BROKEN)
def test_a_broken_plugin_is_one_line_and_stops_nothing(body: str, tmp_path: Path) -> None:
    site = pure(tmp_path / "site", "broken", body)
    (site / "text.so").write_text("text", encoding="utf-8")
    done = command([site], "show", "--ssd=mga-8k")
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("warning: plug-in broken 1.0: ")
    assert BROKEN[body] in done.stderr
    assert "failed: " in said(command([site], "list", "plugins"))


POLICY = f"{IMPORT}PLUGIN = Plugin(policies={{'ftl.victim': {{'oldest': 'MODULE:Mine'}}}})\n"


def test_a_clash_names_both_distributions(tmp_path: Path) -> None:
    folders = [pure(tmp_path / name, name, POLICY.replace("MODULE", name)) for name in ("one", "two")]
    done = command(folders, "list", "plugins")
    assert "warning: plug-in two 1.0: one 1.0 has a policy ftl.victim = oldest already" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_clash_of_layers_names_both_distributions(ring: Path, tmp_path: Path) -> None:
    """The library of `ring-layers`, in a distribution of another name."""
    package = shutil.copytree(ring / "ring_layers", tmp_path / "site" / "theirs")
    (package / "__init__.py").rename(tmp_path / "site" / "theirs.py")
    next(package.glob("_native*")).rename(tmp_path / "site" / "_native.so")
    shutil.rmtree(package)
    source = (tmp_path / "site" / "theirs.py").read_text(encoding="utf-8")
    done = command([ring, pure(tmp_path / "site", "theirs", source)], "list", "ftls")
    assert done.returncode == 0
    expected = "_native.so: ring-layers 0.1.0 has a layer called ring already; expected another name"
    assert done.stderr == f"warning: plug-in theirs 1.0: {expected}\n"


def test_a_policy_by_name_has_the_digest_of_the_code(tmp_path: Path) -> None:
    site = pure(tmp_path / "site", "one", POLICY.replace("MODULE", "one") + POLICIES["ftl.victim"])
    ours = figures([site], "--ftl=page", "--set=ftl.victim=oldest")
    assert ours == figures([site], "--ftl=page", "--set=ftl.victim=cost-age-times")
    shown = said(command([site], "show", "--ftl=page", "--set=ftl.victim=oldest"))
    named = re.search(r"oldest@[0-9a-f]{16}", shown)
    assert named
    assert figures([site], "--ftl=page", f"--set=ftl.victim={named[0]}") == ours
    module = site / "one.py"
    module.write_text(module.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    other = command([site], "show", "--ftl=page", f"--set=ftl.victim={named[0]}")
    assert other.returncode == 2
    assert "so this is other code" in other.stderr
    assert "oldest" in said(command([site], "list", "victims"))
    wrong = command([site], "show", "--ftl=page", "--set=ftl.victim=oldset")
    assert "oldest, FILE.py:CLASS" in wrong.stderr


@pytest.mark.parametrize("kind", ["victim", "classifier", "pace", "format"])
def test_a_new_policy_or_format_passes_its_test(kind: str, tmp_path: Path) -> None:
    project = new(tmp_path / "my-own", f"--{kind}")
    site = installed(tmp_path / "site", built(project))
    assert "my-own" in said(command([site], "list", "plugins"))
    run_tests(project, site)


def test_a_new_layer_in_python_works_like_a_built_in_one(tmp_path: Path) -> None:
    project = new(tmp_path / "my-own", "--python")
    site = installed(tmp_path / "site", built(project))
    run_tests(project, site, passed=2)
    assert "ftl.name = my-own" in said(command([site], "list", "plugins"))
    assert "of the plug-in my-own-layer 0.1.0" in said(command([site], "list", "ftls"))
    small = ["--ssd=mga-8k", "--set=ssd.blocks_per_plane=24", "--set=part.pages_per_block=8"]
    load = ["--workload=rw=randrw,bs=4k,n=2000", "--precondition=fill:100%"]
    lines = ["--ftl=page,my-own", "--set=my_own.reserve=200%", *small, *load, f"--out={tmp_path / 'out'}"]
    assert "my-own@" in said(command([site], "compare", *lines))
    saved = json.loads(next((tmp_path / "out").glob("my-own*/summary.json")).read_text(encoding="utf-8"))
    assert saved["provenance"]["plugins"].keys() == {"my-own-layer 0.1.0"}
    (tmp_path / "sweep.toml").write_text(
        '[base]\nssd = "mga-8k"\nftl = "my-own"\nworkload = "rw=randwrite,bs=8k,n=1000"\n'
        '"ssd.blocks_per_plane" = 24\n[grid]\n"my_own.reserve" = ["150%", "300%"]\n', encoding="utf-8")  # fmt: skip
    assert "300%" in said(command([site], "sweep", str(tmp_path / "sweep.toml"), f"--out={tmp_path / 'points'}"))


def test_a_layer_in_python_cannot_take_a_name(ring: Path, tmp_path: Path) -> None:
    for name, owner in {"page": "palimpsest", "ring": "ring-layers 0.1.0"}.items():
        source = f"{IMPORT}PLUGIN = Plugin(classes={{'{name}': 'theirs:Mine'}})\n"
        done = command([ring, pure(tmp_path / name, "theirs", source)], "list", "ftls")
        assert f"{owner} has a layer called {name} already; expected another name" in done.stderr


def test_a_new_layer_passes_its_test(ring: Path) -> None:
    run_tests(ring.parent / "ring", ring)


def run_tests(project: Path, site: Path, passed: int = 1) -> None:
    """Runs the tests of a project."""
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(project), "tests"]
    keys = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(line, cwd=project, env=keys, capture_output=True, text=True)
    assert (done.returncode, f"\n{passed} passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_a_new_layer_is_the_example(tmp_path: Path) -> None:
    """Both are one source, except for the place of the crates and the profile."""
    project, example = new(tmp_path / "ring"), ROOT / "examples" / "ring"
    for path in (
        each for each in project.rglob("*") if each.is_file() and each.name not in ("Cargo.toml", "Cargo.lock")
    ):
        assert path.read_bytes() == (example / path.relative_to(project)).read_bytes(), path


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("page", "the name is taken"), ("ssd", "the name is taken"), ("loop", "a word of Rust"), ("A", "small letters"),
        ("palimpsest-x", "a name of palimpsest"), ("full", "there is such a file or folder"),
        ("lean --source /nowhere", "no crates/layer there"), ("greedy --victim", "the name is taken"),
        ("lean --pace --source .", "has no crates"),
    ],
)  # fmt: skip
def test_wrong_new_layers_are_refused(arguments: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    done = command([], "new-layer", *arguments.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert what in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "lean").exists()


def test_crates_come_from_a_repository_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = new(tmp_path / "lean", "--source", "https://example.org/palimpsest.git")
    text = (project / "Cargo.toml").read_text(encoding="utf-8")
    assert 'palimpsest-layer = { git = "https://example.org/palimpsest.git" }' in text
    assert not (project / "Cargo.lock").exists()
    monkeypatch.setattr(new_layer, "_CHECKOUT", tmp_path)
    with pytest.raises(ps.InputError, match="--source: palimpsest is installed from a wheel"):
        new_layer._crate(None)
