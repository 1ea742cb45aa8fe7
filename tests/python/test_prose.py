"""Prose of the repository: nouns named, lines within 120 columns, names of tests within 60 characters.

Not checked: whether a sentence is true or reads well.
"""

import re
import subprocess
from pathlib import Path

import pytest

import prose
from prose import ROOT

MOST_NOUNS = 2.0
MOST_ITS = 12.0
GENERATED = {"docs/reference.md", "docs/tour.md", "docs/pacing.md", "docs/standings.md"}


def names(*patterns: str) -> list[str]:
    """Paths that match `patterns`, from the root, without generated pages."""
    found = {path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern)}
    return sorted(found - GENERATED)


AREAS = {
    "docs": [
        "README.md",
        "PACKAGE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "benches/README.md",
        *names("docs/*.md"),
    ],
    "ARCHITECTURE.md": ["ARCHITECTURE.md"],
    "python": ["python"],
    "tests/python": ["tests/python"],
    "tools": ["tools"],
    "examples": ["examples"],
    "fuzz": names("fuzz/*.md", "fuzz/fuzz_targets/*.rs"),
    "tests": names("tests/*.rs", "tests/*/**/*.rs", "benches/*.rs"),
    **{crate: [crate] for crate in names("crates/*") if (ROOT / crate / "Cargo.toml").exists()},
}


def faults(*places: str) -> list[str]:
    """Counts of `places` above the limits, and long lines."""
    nouns, its = prose.count(*places).per_thousand()
    found = list(prose.long_lines(*places))
    if nouns > MOST_NOUNS:
        found.append(f"{nouns:.1f} of 1,000 words are what, who or that of; {MOST_NOUNS} are allowed")
    if its > MOST_ITS:
        found.append(f"{its:.1f} of 1,000 words are it or its; {MOST_ITS} are allowed")
    return found


def test_the_table_has_every_crate() -> None:
    assert sum(area.startswith("crates/") for area in AREAS) > 10
    assert all(list(prose.files(*places)) for places in AREAS.values())


@pytest.mark.parametrize("area", AREAS)
def test_an_area_names_nouns_and_fits_the_columns(area: str) -> None:
    found = faults(*AREAS[area])
    assert not found, "\n".join([area, *found])


RUST_TEST = re.compile(
    r"#\[(?:\w+::)*test\]\s*"
    r"(?:(?:#\[[^\n]*\]|//[^\n]*)\s*)*"
    r"(?:pub )?(?:async )?fn (\w+)"
)
TESTS = {".rs": RUST_TEST, ".py": re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)}


@pytest.mark.parametrize("suffix", TESTS)
def test_names_of_tests_are_short(suffix: str) -> None:
    command = ["git", "ls-files", f"*{suffix}"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    found = [
        (name, file)
        for file in listed
        if (ROOT / file).exists()
        for name in TESTS[suffix].findall((ROOT / file).read_text(encoding="utf-8"))
    ]
    assert len(found) > 400
    long = [f"{file}: {len(name)} characters: {name}" for name, file in found if len(name) > prose.MAX_TEST_NAME]
    assert not long, "\n".join(long)


def test_faults_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("What it does, and that of others.\n" + "wide " * 25 + "\n", encoding="utf-8")
    assert len(faults("page.md")) == 3
    code = "// What follows is code.\nlet what = 1; // It counts.\n"
    (tmp_path / "code.rs").write_text(code, encoding="utf-8")
    assert (prose.count("code.rs").nouns, prose.count("code.rs").its) == (1, 1)
    (tmp_path / "row.md").write_text("| " + "wide " * 25 + "|\n", encoding="utf-8")
    assert faults("row.md") == []


def test_a_name_of_a_test_is_found() -> None:
    assert RUST_TEST.findall('#[test]\n#[ignore = "minutes"]\n// Slow.\nfn long_runs() {}') == ["long_runs"]
    assert TESTS[".py"].findall("    def test_one(self) -> None: ...\ndef helper() -> None: ...\n") == ["test_one"]
