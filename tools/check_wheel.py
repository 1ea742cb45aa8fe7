"""Installs the wheel in dist/ as a user would, and uses it: `python tools/check_wheel.py [--everywhere] [WHEEL]`.

The environment is new, without site packages of others, and PATH has no Rust toolchain. Packages are pinned by
requirements/runtime.lock and extras.lock, with hashes. All programs run in a folder outside the project.
`--everywhere` does the tutorials that need no Rust, and repeats the demo with each Python from 3.11 in PATH or of
pyenv, in a path with spaces, without HOME, and as another user; the last line names checks that need another machine.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import tutorials

_ROOT = Path(__file__).resolve().parent.parent
_UV = Path(sys.executable).with_name("uv")
"""Installs like pip in a third of the time."""
_WORKLOAD = "rw=randrw,bs=4k,n=20k,iodepth=8"
_SMALL = ("--workload", _WORKLOAD, "--precondition", "none")
_LARGEST = 120
"""Most megabytes of an installation without extras."""
_LONGEST = 60
"""Most seconds of the demo."""
_OTHER_USER = 65534
_SNIPPET = f"""
import sys
import palimpsest as ps
assert not sys.modules["palimpsest"].__file__.startswith({str(_ROOT) + os.sep!r}), "not the installed package"
run = ps.Ssd("mga-16k", ftl="mga").run({_WORKLOAD!r}, precondition="none")
assert run.requests["read"] + run.requests["write"] == 20_000
both = ps.compare(["page", "subpage"], workload={_WORKLOAD!r}, fidelity="count", precondition="none")
assert "<table" in both._repr_html_()
print(ps.__version__)
"""
_WITH_EXTRAS = """
import palimpsest as ps
both = ps.load("both")
assert both.to_polars().height == 2
assert both.plot.latency().data
"""


class Environment:
    """A new virtual environment with no other programs in PATH."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        if python == sys.executable:
            venv.create(folder / "venv", with_pip=not _UV.is_file())
        else:
            pip = ("--without-pip",) if _UV.is_file() else ()
            subprocess.run([python, "-m", "venv", *pip, folder / "venv"], check=True)
        programs = folder / "venv" / "bin"
        dropped = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        self.variables = {key: value for key, value in os.environ.items() if key not in dropped}
        self.variables |= {"PATH": str(programs), "NO_COLOR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self.variables["PALIMPSEST_NO_CACHE"] = "1"
        self.user: int | None = None
        for tool in ("cargo", "rustc"):
            assert shutil.which(tool, path=str(programs)) is None, f"{tool} is in the PATH of the check"
        self.programs = programs

    def result(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A finished program of the environment."""
        return subprocess.run(
            [self.programs / program, *arguments], cwd=self.work, env=self.variables, capture_output=True, text=True,
            user=self.user,
        )  # fmt: skip

    def call(self, program: str, *arguments: str) -> str:
        """Standard output of a program of the environment; a failure prints the output and ends the check."""
        done = self.result(program, *arguments)
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

    def install(self, wheel: Path) -> None:
        """Installs the wheel and its packages, without extras."""
        self.locked("runtime")
        self.pip("install", "--only-binary", ":all:", "--no-deps", str(wheel))
        self.pip("check")

    def locked(self, name: str) -> None:
        """Installs the packages of a lock file."""
        lock = _ROOT / "requirements" / f"{name}.lock"
        self.pip("install", "--only-binary", ":all:", "--require-hashes", "-r", str(lock))

    def megabytes(self) -> float:
        """The size of all installed packages, without pip and compiled files."""
        packages = next((self.programs.parent / "lib").glob("python*/site-packages"))
        files = (each for each in packages.rglob("*") if each.is_file() and each.suffix != ".pyc")
        return sum(each.stat().st_size for each in files if each.relative_to(packages).parts[0][:3] != "pip") / 1e6


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
    environment.call("palimpsest", "compare", *_SMALL, "--out", "both")
    for name in ("report.html", "page/latency.parquet", "subpage/summary.json"):
        assert (environment.work / "both" / name).is_file(), f"compare --out wrote no {name}"
    lists = json.loads(environment.call("palimpsest", "list", "--json"))
    empty = [kind for kind, names in lists.items() if not names]
    assert empty == ["plugins"], f"empty lists: {empty}; a new environment has no plug-in and some of everything else"
    assert environment.call("palimpsest", "help", "results") == (_ROOT / "docs" / "results.md").read_text("utf-8")
    assert "IOPS" in environment.call("python", "-m", "palimpsest", "run", "--ssd", "spread-16g", "--requests", "1000")
    said = environment.call("python", "-c", _SNIPPET).strip()
    version = environment.call("palimpsest", "--version").strip()
    assert version in (f"palimpsest {said}", f"palimpsest {said} (dev build)"), version
    assert json.loads(environment.call("palimpsest", "trace", "info", "mysql-like", "--json"))["requests"]
    return len(lists["ssds"])


def use_extras(environment: Environment) -> None:
    """Reads and draws results, which needs the extras; without them the command must name the extra in one line."""
    refused = environment.result("palimpsest", "report", "both")
    said = "error: polars is needed for this; expected `pip install 'palimpsest-ssd[report]'` before it\n"
    assert (refused.returncode, refused.stderr) == (1, said), refused.stderr
    environment.locked("extras")
    environment.call("palimpsest", "report", "both")
    environment.call("python", "-c", _WITH_EXTRAS)
    environment.call("palimpsest", "figure", "cdf", "both", "-o", "cdf.pdf")


def demo(environment: Environment) -> float:
    """Runs the demo to the picture in a terminal and the page, and returns the seconds."""
    begin = time.monotonic()
    shown = environment.call("palimpsest", "demo")
    assert "write amplification" in shown, shown
    assert "<html" in (environment.work / "results" / "demo" / "report.html").read_text(encoding="utf-8")
    return time.monotonic() - begin


def pythons() -> Iterator[str]:
    """Each Python from 3.11 in PATH or of pyenv that starts."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob("3.*/bin")
    path = os.pathsep.join([*map(str, versions), os.environ["PATH"]])
    for minor in range(11, 20):
        program = shutil.which(f"python3.{minor}", path=path)
        if program and subprocess.run([program, "-V"], capture_output=True).returncode == 0:
            yield program


def everywhere(wheel: Path, folder: Path, first: Environment) -> str:
    """Does the tutorials in the first environment, and repeats the demo in others; returns which ones."""
    folder.chmod(0o755)
    done, left = [], []
    if tool := tutorials.rust():
        left.append(f"the tutorials ({tool} is in {tutorials.SYSTEM})")
    else:
        stranger = folder / "stranger"
        stranger.mkdir()
        variables = {key: value for key, value in first.variables.items() if key != "PALIMPSEST_NO_CACHE"}
        commands = tutorials.do(stranger, variables | {"HOME": str(stranger)})
        done.append(f"{commands} commands of the tutorials")
    for program in pythons():
        name = Path(program).name
        environment = Environment(folder / f"with spaces {name}", program)
        environment.variables.pop("HOME", None)
        environment.install(wheel)
        demo(environment)
        done.append(f"{name} in a path with spaces, without HOME")
    system = "/usr/bin/python3"
    if os.geteuid() != 0 or not Path(system).is_file():
        left.append("another user (needs root and /usr/bin/python3)")
    else:
        environment = Environment(folder / "other", system)
        environment.install(wheel)
        environment.work.chmod(0o777)
        environment.user = _OTHER_USER
        environment.variables["HOME"] = "/nonexistent"
        demo(environment)
        done.append("another user without a home")
    return f"; also {', '.join(done)}" + (f"; not done here: {', '.join(left)}" if left else "")


def main() -> None:
    """Checks the wheel, and ends with one line about the result."""
    arguments = [each for each in sys.argv[1:] if each != "--everywhere"]
    wheel = the_wheel(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = Environment(folder / "first")
        environment.install(wheel)
        installed = environment.megabytes()
        assert installed <= _LARGEST, f"an installation has {installed:.0f} MB; expected at most {_LARGEST}"
        presets = use(environment)
        seconds = demo(environment)
        if not environment.call("palimpsest", "--version").endswith("(dev build)\n"):
            assert seconds <= _LONGEST, f"the demo took {seconds:.0f} s; expected at most {_LONGEST}"
        use_extras(environment)
        more = everywhere(wheel, folder, environment) if "--everywhere" in sys.argv else ""
    size = wheel.stat().st_size / 2**20
    print(
        f"wheel: {wheel.name} ({size:.1f} MiB, {installed:.0f} MB installed) runs without a Rust toolchain; "
        f"{presets} drives found; the demo took {seconds:.0f} s{more}"
    )


if __name__ == "__main__":
    main()
