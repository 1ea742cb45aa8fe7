"""`make release`: steps that cannot be done are named, and the documents have all that is linked in."""

import json
import re
import subprocess
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import documents
import release
import sbom
import tutorials
from conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(release, "DIST", tmp_path / "dist")
    return tmp_path / "dist"


def skipped() -> str:
    raise release.Skipped("there is no such tool")


def test_the_last_lines_name_what_was_not_tried(
    dist: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        release, "STEPS", {"a": lambda: "done", "b": skipped, "c": lambda: release.Untried("no machine")}
    )
    release.main(["a", "b", "c"])
    assert capsys.readouterr().out.splitlines() == [
        "release: a: done",
        "release: c: no machine",
        f"release: palimpsest-ssd {PROJECT['version']} in dist/",
        "release: built and checked: a",
        "release: not tried here: c",
        "release: not done here: b (there is no such tool)",
    ]
    release.main(["a"])
    assert capsys.readouterr().out.endswith("not tried here: none\nrelease: not done here: none\n")
    assert dist.is_dir()
    with pytest.raises(SystemExit, match="d: no such step; expected some of a, b, c"):
        release.main(["d"])


def test_a_wheel_needs_its_module_and_the_licences(tmp_path: Path) -> None:
    texts = f"palimpsest_ssd-{PROJECT['version']}.dist-info/licenses/"
    names = {"palimpsest/_core.abi3.so": b"\x7fELF" + bytes(14) + b"\xb7\x00", f"{texts}LICENSE": b"",
             f"{texts}LICENCES.md": b"", release.LIVE: b""}  # fmt: skip

    def pack(*left_out: str) -> Path:
        with zipfile.ZipFile(tmp_path / "a.whl", "w") as packed:
            for name, data in names.items():
                if name not in left_out:
                    packed.writestr(name, data)
        return tmp_path / "a.whl"

    release.contents(pack(), "aarch64")
    with pytest.raises(SystemExit, match="has a module of ELF machine 183, expected 62"):
        release.contents(pack(), "x86_64")
    with pytest.raises(SystemExit, match=r"a\.whl lacks .*LICENCES\.md"):
        release.contents(pack(f"{texts}LICENCES.md"), "aarch64")


def test_all_versions_agree() -> None:
    version = PROJECT["version"]
    assert release.version() == version
    needed = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["dependencies"]
    crates = {name: each["version"] for name, each in needed.items() if name.startswith("palimpsest-")}
    assert set(crates.values()) == {version}
    for folder in (".", "fuzz", "examples/aisimulate", "examples/moonpool"):
        locked = tomllib.loads((ROOT / folder / "Cargo.lock").read_text(encoding="utf-8"))["package"]
        ours = {each["name"]: each["version"] for each in locked if each["name"] in crates}
        assert len(ours) > 8
        assert set(ours.values()) == {version}, folder
    released = re.findall(
        r"^## \[(\d.*)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M
    )
    assert released[0] == version


def test_sums_are_what_sha256sum_checks(dist: Path) -> None:
    (dist / "crates").mkdir(parents=True)
    (dist / "crates" / "a.crate").write_text("a")
    (dist / "b.whl").write_text("b")
    assert release.sums() == "2 files in SHA256SUMS"
    checked = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=dist, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout) == (0, "b.whl: OK\ncrates/a.crate: OK\n")
    (dist / "b.whl").write_text("c")
    assert subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=dist, capture_output=True).returncode == 1


def test_crates_follow_those_that_they_use() -> None:
    manifests = {
        path.parent.name: tomllib.loads(path.read_text(encoding="utf-8"))
        for path in (ROOT / "crates").glob("*/Cargo.toml")
    }
    assert set(manifests) - set(release.CRATES) == {"c", "extension", "live"}
    for at, name in enumerate(release.CRATES):
        used = {each.removeprefix("palimpsest-") for each in manifests[name]["dependencies"] if "palimpsest" in each}
        assert used <= set(release.CRATES[:at]), name
        package = manifests[name]["package"]
        assert {"description", "license", "readme", "repository", "version"} <= set(package)
        assert "publish" not in package
        assert (ROOT / "crates" / name / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_wheels_may_have_two_tags() -> None:
    name = f"palimpsest_ssd-{release.version()}-cp311-abi3-manylinux_2_28_x86_64.whl"
    older = name.replace("manylinux_2_28", "manylinux2014_x86_64.manylinux_2_28")
    assert re.fullmatch(release._tagged(name), name)
    assert re.fullmatch(release._tagged(name), older)
    assert not re.fullmatch(release._tagged(name), name.replace("2_28", "2_34"))


def test_the_installation_page_has_the_tags_of_the_wheels() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["rust-version"]
    assert f"Rust {rust} or newer" in page
    for _, tag in release.WHEELS.values():
        major, minor = tag.split("_")[1:]
        library = "glibc" if tag.startswith("many") else "musl"
        assert f"{library} {major}.{minor} (`{tag}`)" in page


METADATA: dict[str, Any] = {
    "packages": [
        {"id": name, "name": name, "version": "1.0", "license": "MIT/Apache-2.0",
         "manifest_path": f"/x/{name}/Cargo.toml", "targets": [{"kind": ["proc-macro" if name == "macro" else "lib"]}]}
        for name in ("palimpsest-extension", "linked", "below", "macro", "build", "test")
    ],
    "resolve": {"nodes": [
        {"id": "palimpsest-extension", "deps": [
            {"pkg": "linked", "dep_kinds": [{"kind": None}]}, {"pkg": "build", "dep_kinds": [{"kind": "build"}]},
            {"pkg": "macro", "dep_kinds": [{"kind": None}]}]},
        {"id": "linked", "deps": [
            {"pkg": "below", "dep_kinds": [{"kind": None}]}, {"pkg": "test", "dep_kinds": [{"kind": "dev"}]}]},
        *({"id": name, "deps": []} for name in ("below", "macro", "build", "test")),
    ]},
}  # fmt: skip


def test_only_what_is_linked_is_a_component() -> None:
    found = sbom.components(METADATA, "numpy==2.4.6 ; python_full_version < '3.12' \\\n    --hash=sha256:0\n")
    assert [each.url for each in found] == ["pkg:cargo/below@1.0", "pkg:cargo/linked@1.0", "pkg:pypi/numpy@2.4.6"]
    document = sbom.document(found, "9.9")
    assert json.loads(json.dumps(document))["metadata"]["component"]["purl"] == "pkg:pypi/palimpsest-ssd@9.9"
    assert document["components"][0]["licenses"] == [{"expression": "MIT OR Apache-2.0"}]
    assert document["dependencies"][0]["dependsOn"] == [each.url for each in found]


def test_licences_have_each_text_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "LICENSE-MIT").write_text("the terms\n")
        (tmp_path / name / "lib.rs").write_text("no terms\n")
    found = [sbom.Component(name, "1.0", "", "MIT", tmp_path / name) for name in ("a", "b")]
    page = sbom.licences(found)
    assert "- MIT: a 1.0, b 1.0\n" in page
    assert page.count("the terms") == 1
    assert "## a, b\n" in page
    assert "no terms" not in page
    with pytest.raises(SystemExit, match="a name no licence"):
        sbom.licences([sbom.Component("a", "1.0", "", None, tmp_path / "a")])


def test_tutorials_run_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "planted.md"
    monkeypatch.setattr(tutorials, "_ROOT", tmp_path)
    monkeypatch.setattr(tutorials, "PAGES", ("planted",))
    monkeypatch.setattr(documents, "TRACES", ("touch trace.csv",))
    good = "```console\n$ ls\n...\ntrace.csv\n```\n\n<!-- not run: fails -->\n```console\n$ false\n```\n"
    page.write_text(f"```toml\n# a.toml\nb = 1\n```\n{good}", encoding="utf-8")
    work = tmp_path / "work"
    work.mkdir()
    assert tutorials.do(work, {"PATH": "/nonexistent"}) == 1
    assert (work / "a.toml").is_file()
    for text, said in (("$ false\n", "`false` ended with 1"), ("$ echo b\na\n", "shows another output than this:\nb")):
        page.write_text(f"```console\n{text}```\n", encoding="utf-8")
        with pytest.raises(SystemExit, match=said):
            tutorials.do(work, {"PATH": "/nonexistent"})


def test_the_packages_of_a_release_are_those_of_the_project() -> None:
    recipe = (ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8")
    container = (ROOT / "packaging" / "Containerfile").read_text(encoding="utf-8")
    assert len(PROJECT["dependencies"]) == 3
    for each in PROJECT["dependencies"]:
        name = re.split(r"[^\w-]", each)[0]
        assert f"- {name} {each.removeprefix(name)}\n" in recipe
        assert f'"{each}"' in container
    assert f"- python {PROJECT['requires-python']}\n" in recipe


def test_the_workflow_says_that_no_one_has_run_it() -> None:
    text = (ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8")
    assert "No one has run this file" in text
    assert "publish" not in text.partition("jobs:")[2]
