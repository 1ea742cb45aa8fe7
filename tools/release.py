"""Builds and checks the files that a release publishes, in dist/: `make release`, or `python tools/release.py STEP...`.

Each step is one function, which returns a line about its result. A step that this machine cannot do raises Skipped
with the reason; a step whose result this machine cannot try returns Untried. The last lines name both. A step that
fails ends the release. Nothing is published.
Ignored: wheels of macOS and Windows, which `.github/workflows/wheels.yml` builds and no one has run.
"""

import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from sbom import document, of_release, write_licences

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
PROFILE = os.environ.get("RELEASE_PROFILE", "release")
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
WORKLOAD = "rw=randrw,bs=4k,n=20k,iodepth=8"
LIVE = "palimpsest/live/palimpsest.wasm.gz"
CRATES = ("flash", "ftl-api", "wom", "ftl", "fs", "layer", "sim", "workload", "lab", "check", "drive", "server", "py")
"""The crates in the order of publishing: each after the crates that it uses."""


class Skipped(Exception):
    """A step that this machine cannot do, with the reason."""


class Untried(str):
    """The line of a step whose result this machine cannot try, with the reason in it."""


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
    write_licences(of_release())
    # maturin looks for the package ziglang in the Python of PATH.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    call(*maturin, "build", "--profile", PROFILE, "--locked", "--quiet", "--zig", "--target", target,
         "--compatibility", tag, "--out", DIST, PATH=path)  # fmt: skip
    named = f"palimpsest_ssd-{version()}-cp311-abi3-{tag}_{target.partition('-')[0]}.whl"
    if not (found := [each for each in DIST.glob("*.whl") if re.fullmatch(_tagged(named), each.name)]):
        raise SystemExit(f"release: expected {named} in dist/, found {', '.join(each.name for each in DIST.iterdir())}")
    contents(found[0], target.partition("-")[0])
    line = f"{found[0].name}, {found[0].stat().st_size / 2**20:.1f} MiB"
    if target == MACHINE:
        return line
    variable = f"PYTHON_{target.replace('-unknown-linux', '').replace('-', '_').upper()}"
    if (python := os.environ.get(variable)) is None:
        return Untried(f"{line}, not run: {variable} names no Python of {target}, such as one in an emulator")
    return f"{line}, run by {variable}: {run_by(shlex.split(python), found[0])}"


def run_by(python: Sequence[str], path: Path) -> str:
    """Runs the command of a wheel by the Python of another machine; returns the requests that it simulated."""
    version = call(*python, "-c", "import sys; print('%d%d' % sys.version_info[:2])").strip()
    platform = path.stem.split("-")[-1].split(".")[-1]
    with tempfile.TemporaryDirectory() as folder:
        call(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder,
             "--only-binary", ":all:", "--platform", platform, "--python-version", version, path)  # fmt: skip
        ran = call(*python, "-m", "palimpsest", "run", "--ssd", "mga-16k", "--workload", WORKLOAD, "--precondition",
                   "none", "--json", PYTHONPATH=folder)  # fmt: skip
    requests = json.loads(ran)["requests"]
    return f"{requests['read']} reads, {requests['write']} writes"


def contents(path: Path, machine: str) -> None:
    """Checks that a wheel has the module of a machine and the licences, and the live lab if the checkout has it."""
    with zipfile.ZipFile(path) as packed:
        names = set(packed.namelist())
        texts = f"palimpsest_ssd-{version()}.dist-info/licenses/"
        wanted = {"palimpsest/_core.abi3.so", f"{texts}LICENSE", f"{texts}LICENCES.md"}
        if (ROOT / "python" / LIVE).is_file():
            wanted.add(LIVE)
        if missing := sorted(wanted - names):
            raise SystemExit(f"release: {path.name} lacks {', '.join(missing)}")
        with packed.open("palimpsest/_core.abi3.so") as module:
            (found,) = struct.unpack_from("<H", module.read(20), 18)
    if found != ELF_MACHINES[machine]:
        raise SystemExit(f"release: {path.name} has a module of ELF machine {found}, expected {ELF_MACHINES[machine]}")


def _tagged(name: str) -> str:
    """A pattern for the name of a wheel, which may have an older tag beside the expected one."""
    return re.escape(name).replace("manylinux_2_28", r"(manylinux\w+\.)?manylinux_2_28")


def check_wheel() -> str:
    """Installs the wheel of this machine in fresh environments, and uses it."""
    found = sorted(DIST.glob("*-manylinux_2_28_x86_64.whl"))
    if not found:
        raise Skipped("there is no wheel of this machine")
    return call(sys.executable, ROOT / "tools" / "check_wheel.py", found[0]).strip().splitlines()[-1]


def live() -> str:
    """Builds the live lab, which the wheels contain."""
    target = "wasm32-unknown-unknown"
    if not has_target(target):
        raise Skipped(f"the toolchain has no {target} (`rustup target add {target}`)")
    return call("make", "--no-print-directory", "live").strip().splitlines()[-1].removeprefix("live: ")


def sdist() -> str:
    """Packs the sources, and builds a wheel from the unpacked sources alone."""
    write_licences(of_release())
    call(*tool("maturin"), "sdist", "--out", DIST)
    packed = DIST / f"palimpsest_ssd-{version()}.tar.gz"
    inside = call("tar", "--list", "--file", packed)
    for name in ("Cargo.lock", "LICENCES.md", "crates/lab/presets/ssds/default.toml", "python/palimpsest/__init__.py"):
        if f"/{name}\n" not in inside:
            raise SystemExit(f"release: {packed.name} lacks {name}")
    with tempfile.TemporaryDirectory() as name:
        call("tar", "--extract", "--file", packed, "--directory", name)
        sources = Path(name, packed.name.removesuffix(".tar.gz"))
        manifest = sources / "crates" / "extension" / "Cargo.toml"
        call(*tool("maturin"), "build", "--profile", PROFILE, "--locked", "--quiet", "--manifest-path", manifest,
             "--target-dir", ROOT / "target", "--out", name)  # fmt: skip
        (built,) = Path(name).glob("*.whl")
        with zipfile.ZipFile(built) as wheel_of_sdist:
            texts = [each for each in wheel_of_sdist.namelist() if each.endswith("licenses/LICENCES.md")]
        if not texts:
            raise SystemExit(f"release: {built.name}, built from the sdist, lacks LICENCES.md")
        tried = fresh(Path(name, "venv"), [built])
    return f"{packed.name}, {inside.count(chr(10))} files; a wheel built from it: {tried}"


def fresh(folder: Path, packages: Sequence[str | Path]) -> str:
    """The version that the command prints in a new environment with packages."""
    venv.create(folder, with_pip=True)
    call(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return call(folder / "bin" / "palimpsest", "--version").strip()


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
    file = ROOT / "packaging" / "Containerfile"
    shutil.copy(file, DIST)
    programs = [found for name in ("podman", "docker") if (found := shutil.which(name))]
    engines = [each for each in programs if subprocess.run([each, "info"], capture_output=True).returncode == 0]
    if not engines:
        wheels = sorted(DIST.glob("*-manylinux_2_28_x86_64.whl"))
        if not wheels:
            raise Skipped("there is neither an engine of podman or docker nor a wheel of this machine")
        wanted = re.findall(r'"([a-z]+[<>=][^"]*)"', file.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as name:
            tried = fresh(Path(name), [*wanted, wheels[0]])
        return Untried(f"no image, because no engine of podman or docker runs; its packages in a folder: {tried}")
    name = f"palimpsest:{version()}"
    call(engines[0], "build", "--quiet", "--tag", name, "--file", DIST / "Containerfile", DIST)
    return f"{name}: {call(engines[0], 'run', '--rm', name, '--version').strip()}"


def conda() -> str:
    """Writes the recipe with version and digest of the sdist, and builds it where conda can."""
    source = DIST / f"palimpsest_ssd-{version()}.tar.gz"
    if not source.is_file():
        raise Skipped("there is no sdist to name the digest of")
    recipe = (ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8")
    filled = recipe.replace("@VERSION@", version()).replace("@SHA256@", digest(source))
    (DIST / "recipe.yaml").write_text(filled, encoding="utf-8")
    if (program := shutil.which("rattler-build")) is None:
        return Untried("recipe.yaml, not built: there is no rattler-build")
    call(program, "build", "--recipe", DIST / "recipe.yaml", "--output-dir", DIST / "conda")
    return "recipe.yaml, built"


def bill() -> str:
    """Writes the linked crates and the dependencies (CycloneDX), and the licences with their texts."""
    found = of_release()
    written = json.dumps(document(found, version()), indent=1) + "\n"
    (DIST / "sbom.cdx.json").write_text(written, encoding="utf-8")
    shutil.copy(write_licences(found), DIST)
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
    "live": live,
    **{name: functools.partial(wheel, *wanted) for name, wanted in WHEELS.items()},
    "check": check_wheel, "sdist": sdist, "crates": crates, "container": container, "conda": conda, "bill": bill,
    "sums": sums,
}  # fmt: skip
"""The steps in order."""


def main(arguments: Sequence[str]) -> None:
    """Runs the named steps, or all in an empty dist/; the last lines name every step untried or left out."""
    unknown = [name for name in arguments if name not in STEPS]
    if unknown:
        raise SystemExit(f"release: {unknown[0]}: no such step; expected some of {', '.join(STEPS)}")
    if not arguments:
        shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir(exist_ok=True)
    done: list[str] = []
    untried: list[str] = []
    skipped: list[str] = []
    for name in arguments or STEPS:
        try:
            line = STEPS[name]()
        except Skipped as reason:
            skipped.append(f"{name} ({reason})")
            continue
        print(f"release: {name}: {line}", flush=True)
        (untried if isinstance(line, Untried) else done).append(name)
    print(f"release: palimpsest-ssd {version()} in dist/")
    for title, names in (("built and checked", done), ("not tried here", untried), ("not done here", skipped)):
        print(f"release: {title}: {', '.join(names) or 'none'}")


if __name__ == "__main__":
    main(sys.argv[1:])
