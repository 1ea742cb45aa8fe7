"""Builds projects that `palimpsest new-layer` has written, and installs them in folders for PYTHONPATH."""

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import palimpsest as ps

ROOT = Path(__file__).resolve().parent.parent.parent
_TOOLS = Path(sys.executable).parent


def _run(*line: str | Path, cwd: Path | None = None, keys: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(line, cwd=cwd, env={**os.environ, **(keys or {})}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def new(folder: Path, *options: str) -> Path:
    """Writes a project, and returns its folder."""
    _run(sys.executable, "-m", "palimpsest", "new-layer", folder, *options)
    return folder


def built(project: Path) -> Path:
    """The wheel of a project, offline; of a layer in Rust, with assertions where this palimpsest has some."""
    out = project / "dist"
    if (project / "Cargo.toml").is_file():
        target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
        profile = "dev" if ps._core.profile() == "dev" else "release"
        build = (_TOOLS / "maturin", "build", "--offline", "--quiet", "--profile", profile, "--out", out)
        # Workers build projects of one name, whose libraries have one place.
        with Path(target, "plugins.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _run(*build, "--interpreter", sys.executable, cwd=project, keys={"CARGO_TARGET_DIR": f"{target}/plugins"})
    else:
        _run(_TOOLS / "uv", "build", "--offline", "--quiet", "--wheel", "--out-dir", out, project)
    return next(out.glob("*.whl"))


def installed(folder: Path, *wheels: Path) -> Path:
    """Installs wheels as pip does for users, in a folder, and returns the folder."""
    for wheel in wheels:
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", folder, wheel)
        _run(*pip, keys={"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    return folder


def pure(folder: Path, name: str, source: str, value: str = "PLUGIN") -> Path:
    """Installs a distribution of one module by hand, with an entry point that names `value` of the module."""
    module = name.replace("-", "_")
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[palimpsest.plugins]\n{name} = {module}:{value}\n", encoding="utf-8")
    return folder


def command(folders: list[Path], *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Result of the command with the distributions in `folders`."""
    paths = os.pathsep.join([*map(str, folders), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]).strip(os.pathsep)
    environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"}
    line = [sys.executable, "-m", "palimpsest", *arguments]
    return subprocess.run(line, cwd=cwd, env=environment, capture_output=True, text=True)


def said(done: subprocess.CompletedProcess[str]) -> str:
    """Standard output of a command that succeeded."""
    assert done.returncode == 0, done.stderr
    return done.stdout


def changed(path: Path, *changes: tuple[str, str]) -> None:
    """Replaces texts of a file that must each be there once."""
    text = path.read_text(encoding="utf-8")
    for before, after in changes:
        assert len(re.findall(re.escape(before), text)) == 1, before
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")
