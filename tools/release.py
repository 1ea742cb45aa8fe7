"""Builds and checks the files that a release publishes, in dist/: `make release`, or `python tools/release.py STEP...`.

Each step is one function, which returns a line about its result. A step that this machine cannot do raises Skipped
with the reason; the last line names these steps. A step that fails ends the release. Nothing is published.
Ignored: wheels of macOS and Windows, which `.github/workflows/wheels.yml` builds and no one has run.
"""

import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sbom import components, document, licences

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
MACHINE = "x86_64-unknown-linux-gnu"
WHEELS = {
    "wheel": (MACHINE, "manylinux_2_28"),
    "wheel-musl": ("x86_64-unknown-linux-musl", "musllinux_1_2"),
    "wheel-arm": ("aarch64-unknown-linux-gnu", "manylinux_2_28"),
    "wheel-arm-musl": ("aarch64-unknown-linux-musl", "musllinux_1_2"),
}
"""Target and tag of the wheel of a step. All are linked by zig, because the C library of this machine is newer."""
CRATES = ("flash", "ftl-api", "wom", "ftl", "fs", "layer", "sim", "workload", "lab", "check", "drive", "server", "py")
"""The crates in the order of publishing: each after the crates that it uses."""


class Skipped(Exception):
    """A step that this machine cannot do, with the reason."""


def call(*command: str | Path, **variables: str) -> str:
    """Standard output of a program in the checkout. Raises SystemExit with the last lines if it fails."""
    line = [str(each) for each in command]
    done = subprocess.run(line, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True)
    if done.returncode:
        said = "\n".join(f"{done.stdout}{done.stderr}".strip().splitlines()[-20:])
        raise SystemExit(f"release: `{' '.join(line)}` ended with {done.returncode}:\n{said}")
    return done.stdout


def version() -> str:
    """The version of the project, which pyproject.toml, Cargo.toml and CITATION.cff must share."""
    python = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    crates = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    if not python == crates == (cited and cited[1]):
        raise SystemExit(f"release: pyproject.toml has version {python}, Cargo.toml {crates}, CITATION.cff {cited}")
    return str(python)


def tool(module: str) -> tuple[str, ...]:
    """The command of a Python package of this environment. Raises Skipped if the package is not installed."""
    if subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True).returncode:
        raise Skipped(f"the package {module} is not installed (requirements/release.lock)")
    return (sys.executable, "-m", module)


def has_target(target: str) -> bool:
    """Whether the toolchain has the standard library of a target."""
    sysroot = call("rustc", "--print", "sysroot").strip()
    return Path(sysroot, "lib", "rustlib", target, "lib").is_dir()


def wheel(target: str, tag: str) -> str:
    """Builds the wheel of a target, and checks its name."""
    maturin = tool("maturin")
    tool("ziglang")
    if not has_target(target):
        raise Skipped(f"the toolchain has no {target} (`rustup target add {target}`)")
    profile = os.environ.get("RELEASE_PROFILE", "release")
    call(*maturin, "build", "--profile", profile, "--locked", "--quiet", "--zig", "--target", target,
         "--compatibility", tag, "--out", DIST)  # fmt: skip
    named = f"palimpsest_ssd-{version()}-cp311-abi3-{tag}_{target.partition('-')[0]}.whl"
    if not (found := [each for each in DIST.glob("*.whl") if re.fullmatch(_tagged(named), each.name)]):
        raise SystemExit(f"release: expected {named} in dist/, found {', '.join(each.name for each in DIST.iterdir())}")
    return f"{found[0].name}, {found[0].stat().st_size / 2**20:.1f} MiB"


def _tagged(name: str) -> str:
    """A pattern for the name of a wheel, which may have an older tag beside the expected one."""
    return re.escape(name).replace("manylinux_2_28", r"(manylinux\w+\.)?manylinux_2_28")


def check_wheel() -> str:
    """Installs the wheel of this machine in fresh environments, and uses it."""
    found = sorted(DIST.glob("*-manylinux_2_28_x86_64.whl"))
    if not found:
        raise Skipped("there is no wheel of this machine")
    return call(sys.executable, ROOT / "tools" / "check_wheel.py", found[0]).strip().splitlines()[-1]


def sdist() -> str:
    """Packs the sources, and checks that the crates and the presets are inside."""
    call(*tool("maturin"), "sdist", "--quiet", "--out", DIST)
    packed = DIST / f"palimpsest_ssd-{version()}.tar.gz"
    inside = call("tar", "--list", "--file", packed)
    for name in ("Cargo.lock", "crates/lab/presets/ssds/default.toml", "python/palimpsest/__init__.py"):
        if f"/{name}\n" not in inside:
            raise SystemExit(f"release: {packed.name} lacks {name}")
    return f"{packed.name}, {inside.count(chr(10))} files"


def crates() -> str:
    """Packs the crates and builds each from its package, as a registry does; ORDER lists them."""
    selected = [option for name in CRATES for option in ("--package", f"palimpsest-{name}")]
    call("cargo", "package", "--locked", "--quiet", "--allow-dirty", *selected)
    folder = DIST / "crates"
    folder.mkdir(exist_ok=True)
    packages = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "package")
    for name in CRATES:
        shutil.copy(packages / f"palimpsest-{name}-{version()}.crate", folder)
    (folder / "ORDER").write_text("".join(f"palimpsest-{name}\n" for name in CRATES), encoding="utf-8")
    return f"{len(CRATES)} crates, each built from its package"


def container() -> str:
    """Builds the image of packaging/Containerfile from the wheel, and runs its command."""
    program = shutil.which("podman") or shutil.which("docker")
    shutil.copy(ROOT / "packaging" / "Containerfile", DIST)
    if program is None:
        raise Skipped("there is neither podman nor docker; dist/Containerfile was not built")
    name = f"palimpsest:{version()}"
    call(program, "build", "--quiet", "--tag", name, "--file", DIST / "Containerfile", DIST)
    return f"{name}: {call(program, 'run', '--rm', name, '--version').strip()}"


def conda() -> str:
    """Writes the recipe with version and digest of the sdist, and builds it where conda can."""
    source = DIST / f"palimpsest_ssd-{version()}.tar.gz"
    if not source.is_file():
        raise Skipped("there is no sdist to name the digest of")
    recipe = (ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8")
    filled = recipe.replace("@VERSION@", version()).replace("@SHA256@", digest(source))
    (DIST / "recipe.yaml").write_text(filled, encoding="utf-8")
    if (program := shutil.which("rattler-build")) is None:
        raise Skipped("there is no rattler-build; dist/recipe.yaml was not built")
    call(program, "build", "--recipe", DIST / "recipe.yaml", "--output-dir", DIST / "conda")
    return "recipe.yaml, built"


def bill() -> str:
    """Writes the linked crates and the dependencies (CycloneDX), and the licences with their texts."""
    metadata: dict[str, Any] = json.loads(
        call("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", MACHINE)
    )
    found = components(metadata, (ROOT / "requirements" / "runtime.lock").read_text(encoding="utf-8"))
    written = json.dumps(document(found, version()), indent=1) + "\n"
    (DIST / "sbom.cdx.json").write_text(written, encoding="utf-8")
    (DIST / "LICENCES.md").write_text(licences(found), encoding="utf-8")
    return f"{len(found)} components in sbom.cdx.json and LICENCES.md"


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sums() -> str:
    """Writes SHA256SUMS over all files in dist/, as `sha256sum --check` reads it."""
    listed = DIST / "SHA256SUMS"
    listed.unlink(missing_ok=True)
    files = sorted(each for each in DIST.rglob("*") if each.is_file() and each.name != ".gitignore")
    lines = [f"{digest(each)}  {each.relative_to(DIST).as_posix()}\n" for each in files]
    listed.write_text("".join(lines), encoding="utf-8")
    return f"{len(files)} files in SHA256SUMS"


STEPS: dict[str, Callable[[], str]] = {
    **{name: functools.partial(wheel, *wanted) for name, wanted in WHEELS.items()},
    "check": check_wheel, "sdist": sdist, "crates": crates, "container": container, "conda": conda, "bill": bill,
    "sums": sums,
}  # fmt: skip
"""The steps in order."""


def main(arguments: Sequence[str]) -> None:
    """Runs the named steps, or all in an empty dist/; the last line names every step that was left out."""
    unknown = [name for name in arguments if name not in STEPS]
    if unknown:
        raise SystemExit(f"release: {unknown[0]}: no such step; expected some of {', '.join(STEPS)}")
    if not arguments:
        shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir(exist_ok=True)
    skipped = {}
    for name in arguments or STEPS:
        try:
            print(f"release: {name}: {STEPS[name]()}", flush=True)
        except Skipped as reason:
            skipped[name] = str(reason)
    left = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
    print(f"release: palimpsest-ssd {version()} in dist/; " + (f"not done here: {left}" if left else "all steps done"))


if __name__ == "__main__":
    main(sys.argv[1:])
