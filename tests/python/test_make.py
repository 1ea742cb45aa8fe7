"""The recipes of `make` are shell that parses, for any trace; the compiler of `.ci/run` lints and documents."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("trace", ["", "TRACE=mysql-like", "TRACE=somewhere/else.csv"])
@pytest.mark.parametrize("target", ["demo", "test", "soak", "audit", "check", "bench", "docs", "wheel", "wheel-pgo"])
def test_recipes_parse(target: str, trace: str) -> None:
    command = ["make", "--no-print-directory", "--always-make", "-n", target, *([trace] if trace else [])]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert printed.returncode == 0, printed.stderr
    parsed = subprocess.run(["bash", "-n"], input=printed.stdout, capture_output=True, text=True, check=False)
    assert (parsed.returncode, parsed.stderr) == (0, "")
    assert trace.removeprefix("TRACE=") in printed.stdout or target != "demo"


@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo")
def test_the_module_and_the_tests_share_what_they_build() -> None:
    """A feature that only tests enable makes cargo rebuild a crate, and all crates above, for the module."""

    def crates(*selection: str) -> set[str]:
        command = ["cargo", "tree", "--locked", "--offline", "--prefix", "none", "--format", "{p} {f}", *selection]
        printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout
        return {line.removesuffix(" (*)") for line in printed.splitlines()}

    module = crates("--package", "palimpsest-py", "--edges", "normal,build")
    assert len(module) > 50
    assert module - crates("--workspace", "--edges", "normal,build,dev") == set()


@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo")
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("pub fn has_none(values: &[u8]) -> bool {\n    values.len() == 0\n}\n", "len_zero"),
        ("fn unused() {}\n", "function `unused` is never used"),
        ("/// As [`nothing`].\npub fn something() {}\n", "unresolved link to `nothing`"),
        ("/// As [`something`].\npub fn something() {}\n", ""),
    ],
    ids=["lint", "warning", "page", "clean"],
)
def test_the_compiler_of_ci_lints_and_documents(tmp_path: Path, source: str, said: str) -> None:
    manifest = tmp_path / "Cargo.toml"
    manifest.write_text('[package]\nname = "planted"\nversion = "1.0.0"\nedition = "2024"\n[workspace]\n')
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "lib.rs").write_text(source)
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    if not Path(sysroot, "bin", "clippy-driver").exists():
        pytest.skip("clippy is not installed")
    environment = os.environ | {
        "CARGO_TARGET_DIR": str(tmp_path / "target"),
        "RUSTC": f"{sysroot}/bin/rustc",
        "RUSTC_WORKSPACE_WRAPPER": str(ROOT / "tools" / "rustc.sh"),
        "CLIPPY_ARGS": "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
    }
    command = ["cargo", "build", "--offline", "--manifest-path", str(manifest)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode == 0) == (not said), done.stderr
    assert said in done.stderr
    assert (tmp_path / "target" / "doc" / "planted" / "index.html").exists() == (not said)


AT_WORK = ROOT / "tools" / "at_work.sh"


def test_a_quiet_build_prints_lines_and_a_short_one_none() -> None:
    long = subprocess.run([AT_WORK, "0.2", "setup: building", "sleep", "1"], capture_output=True, text=True, timeout=60)
    assert (long.returncode, long.stdout) == (0, "")
    assert set(long.stderr.splitlines()) <= {"setup: building for 0:00", "setup: building for 0:01"}
    assert long.stderr.count("\n") >= 2
    begin = time.monotonic()
    short = subprocess.run([AT_WORK, "30", "setup", "sh", "-c", "echo a; exit 3"], capture_output=True, text=True)
    assert (short.returncode, short.stdout, short.stderr) == (3, "a\n", "")
    assert time.monotonic() - begin < 20, "the lines end with the command"


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("target", ["setup", "dev", "compiled", "wheel"])
def test_every_quiet_build_has_a_sign_of_life(target: str) -> None:
    command = ["make", "--no-print-directory", "--always-make", "-n", target]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout
    quiet = [line for line in printed.replace("\\\n", " ").splitlines() if "--quiet" in line]
    assert quiet
    assert [line for line in quiet if "tools/at_work.sh 10 " not in line] == []


def test_a_line_says_how_far_the_build_is() -> None:
    line = [str(AT_WORK), "0.2", "setup: building", "sleep", "0.5"]
    environment = os.environ | {"FAR": "echo 3 of 4 crates begun"}
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, env=environment)
    assert re.fullmatch(r"(setup: building for 0:0\d, 3 of 4 crates begun\n)+", done.stderr)


@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo")
def test_the_crates_of_the_module_are_counted(tmp_path: Path) -> None:
    for name in ("serde-0a1b2c3d4e5f6071", "serde-1a1b2c3d4e5f6071", "libm-0a1b2c3d4e5f6071"):
        (tmp_path / "release" / ".fingerprint" / name).mkdir(parents=True)
    environment = os.environ | {"CARGO_TARGET_DIR": str(tmp_path)}
    line = [ROOT / "tools" / "crates_begun.sh"]
    said = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60).stdout
    found = re.fullmatch(r"2 of (\d+) crates begun\n", said)
    assert found is not None, said
    assert int(found[1]) > 50


def test_the_demo_installs_no_packages_of_developers() -> None:
    def pinned(name: str) -> set[str]:
        text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
        return set(re.findall(r"^([\w.-]+==[\w.]+)", text, re.MULTILINE))

    demo, runtime = pinned("demo"), pinned("runtime")
    assert {each.partition("==")[0] for each in demo - runtime} == {"maturin"}
    assert runtime < pinned("extras") < pinned("dev")
    command = ["make", "--no-print-directory", "--always-make", "-n", "demo"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "requirements/demo.lock" in printed
    assert "requirements/dev.lock" not in printed
