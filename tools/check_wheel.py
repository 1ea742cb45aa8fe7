"""Installs the wheel in dist/ as a user would, and uses it: `python tools/check_wheel.py [WHEEL]`.

The environment is new, without site packages of others, and PATH has no Rust toolchain. Packages are pinned by
requirements/runtime.lock, with hashes. All programs run in a folder outside the project.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_UV = Path(sys.executable).with_name("uv")
"""Installs like pip in a third of the time."""
_WORKLOAD = "rw=randrw,bs=4k,n=20k,iodepth=8"
_SNIPPET = f"""
import sys
import palimpsest as ps
assert not sys.modules["palimpsest"].__file__.startswith({str(_ROOT) + os.sep!r}), "not the installed package"
run = ps.Ssd("mga-16k", ftl="mga").run({_WORKLOAD!r}, precondition="none")
assert run.requests["read"] + run.requests["write"] == 20_000
assert run.to_polars().height == 1
both = ps.compare(["page", "subpage"], workload={_WORKLOAD!r}, fidelity="count", precondition="none")
assert "<table" in both._repr_html_()
print(ps.__version__)
"""


class Environment:
    """A new virtual environment with no other programs in PATH."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        venv.create(folder / "venv", with_pip=not _UV.is_file())
        programs = folder / "venv" / "bin"
        dropped = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        self.variables = {key: value for key, value in os.environ.items() if key not in dropped}
        self.variables |= {"PATH": str(programs), "NO_COLOR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self.variables["PALIMPSEST_NO_CACHE"] = "1"
        for tool in ("cargo", "rustc"):
            assert shutil.which(tool, path=str(programs)) is None, f"{tool} is in the PATH of the check"
        self.programs = programs

    def call(self, program: str, *arguments: str) -> str:
        """Standard output of a program of the environment; a failure prints the output and ends the check."""
        done = subprocess.run(
            [self.programs / program, *arguments], cwd=self.work, env=self.variables, capture_output=True, text=True
        )
        if done.returncode:
            said = f"{done.stdout}{done.stderr}".strip()
            raise SystemExit(f"wheel: `{program} {' '.join(arguments)}` ended with {done.returncode}:\n{said}")
        return done.stdout

    def pip(self, *arguments: str) -> None:
        """A command of pip, run by uv if available."""
        if _UV.is_file():
            self.call(str(_UV), "pip", arguments[0], "--quiet", "--python", str(self.programs.parent), *arguments[1:])
        else:
            no_compile = ("--no-compile",) if arguments[0] == "install" else ()
            self.call("python", "-m", "pip", "--quiet", arguments[0], *no_compile, *arguments[1:])


def the_wheel(arguments: list[str]) -> Path:
    """The named wheel, or the only wheel in dist/; the name must declare any Python from 3.11 on."""
    found = [Path(argument).resolve() for argument in arguments] or sorted(
        (_ROOT / "dist").glob("palimpsest_ssd-*.whl")
    )
    if len(found) != 1:
        raise SystemExit(f"wheel: expected one wheel in dist/, found {len(found)}; `make wheel` builds it")
    if not re.search(r"-cp311-abi3-(manylinux|musllinux|macosx)[^-]*\.whl$", found[0].name):
        raise SystemExit(
            f"wheel: expected a name with cp311-abi3 and a platform that others have, found {found[0].name}"
        )
    return found[0]


def use(environment: Environment) -> int:
    """Runs typical commands of a user, and returns the number of drive presets."""
    run = json.loads(environment.call("palimpsest", "run", "--workload", _WORKLOAD, "--json"))
    assert run["requests"]["read"] + run["requests"]["write"] == 20_000
    environment.call("palimpsest", "compare", "--workload", _WORKLOAD, "--precondition", "none", "--out", "both")
    for name in ("report.html", "page/latency.parquet", "subpage/summary.json"):
        assert (environment.work / "both" / name).is_file(), f"compare --out wrote no {name}"
    lists = json.loads(environment.call("palimpsest", "list", "--json"))
    empty = [kind for kind, names in lists.items() if not names]
    assert empty == ["plugins"], f"empty lists: {empty}; a new environment has no plug-in and some of everything else"
    assert "IOPS" in environment.call("python", "-m", "palimpsest", "run", "--ssd", "spread-16g", "--requests", "1000")
    said = environment.call("python", "-c", _SNIPPET).strip()
    version = environment.call("palimpsest", "--version").strip()
    assert version in (f"palimpsest {said}", f"palimpsest {said} (dev build)"), version
    return len(lists["ssds"])


def main() -> None:
    """Checks the wheel, and ends with one line about the result."""
    wheel = the_wheel(sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder))
        lock = _ROOT / "requirements" / "runtime.lock"
        environment.pip("install", "--only-binary", ":all:", "--require-hashes", "-r", str(lock))
        environment.pip("install", "--only-binary", ":all:", "--no-deps", str(wheel))
        environment.pip("check")
        presets = use(environment)
    size = wheel.stat().st_size / 2**20
    print(f"wheel: {wheel.name} ({size:.1f} MiB) installs and runs without a Rust toolchain; {presets} drives found")


if __name__ == "__main__":
    main()
