"""The distribution `palimpsest-ssd`: extras with optional packages, and the refusal to run among another one's files.

The registry's distribution `palimpsest` is another project, whose package has the same name. In one folder of packages
each replaces files of the other. Ignored: distributions in other folders, because Python imports from one folder only.
"""

import contextlib
import os
import sys
from pathlib import Path

from . import interrupts

NAME = "palimpsest-ssd"
"""The name in registries of Python. Package and command are `palimpsest`."""

_OTHER, _ENDINGS = "palimpsest-", (".dist-info", ".egg-info")
_FOLDER = Path(__file__).resolve().parent.parent


EXTRAS = {
    "report": ("polars", "plotly", "matplotlib"),
    "sweep": ("polars", "cmaes"),
    "arrow": ("polars", "pyarrow"),
    "pandas": ("polars", "pandas", "pyarrow"),
    "dask": ("distributed",),
    "ray": ("ray",),
    "gym": ("gymnasium",),
}
"""The packages of each extra. `run`, `compare`, `list` and `trace info` must work without all of these packages."""


def install(extra: str) -> str:
    """The command that installs an extra, for messages."""
    return f"`pip install '{NAME}[{extra}]'`"


def missing(package: str | None) -> str | None:
    """The message about a package that an extra has; None for other packages."""
    extra = next((extra for extra, packages in EXTRAS.items() if package in packages), None)
    return extra and f"{package} is needed for this; expected {install(extra)} before it"


def need(extra: str, *packages: str) -> None:
    """Raises ModuleNotFoundError if a package of an extra is not installed: one of `packages`, or by default of all."""
    for package in packages or EXTRAS[extra]:
        if not _is_installed(package):
            said = f"{package} is needed for this; expected {install(extra)} before it"
            raise ModuleNotFoundError(said, name=package)


def _is_installed(package: str) -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def other(folder: Path = _FOLDER) -> str | None:
    """Another distribution with files in the package `palimpsest` of a folder: name and version; None without one."""
    # Reading names takes a hundredth of the time of importing importlib.metadata.
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for each in entries:
            if each.name.lower().startswith(_OTHER) and each.name.endswith(_ENDINGS) and _has_files(Path(each.path)):
                return f"palimpsest {Path(each.name[len(_OTHER) :]).stem}"
    return None


def _has_files(info: Path) -> bool:
    """True if a distribution lists a file in the package `palimpsest`, or lists no files."""
    try:
        listed = (info / "RECORD").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return any(line.startswith("palimpsest/") for line in listed.splitlines())


def refuse_other() -> None:
    """Ends the command, or raises ImportError, if another distribution has files in this package."""
    if (found := other()) is None:
        return
    said = (
        f"{_FOLDER}: the distribution {found} has files in the package of {NAME}; expected "
        f"`pip uninstall palimpsest {NAME}`, and {NAME} installed again"
    )
    if interrupts.is_command(sys.orig_argv[1:]):
        raise SystemExit(f"error: {said}")
    raise ImportError(said, name="palimpsest")
