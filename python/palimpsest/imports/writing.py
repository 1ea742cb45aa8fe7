"""The files of an import: a drive as TOML, generated flows as a job file, and the command that runs both."""

import re
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .. import _core
from ..errors import InputError
from ..files import write_whole
from ..options import RunOptions
from .elements import printable
from .record import NEAR, Imported, Note, Value, largest

_START, _STOP, _IDLE_STOP = "ftl.gc_start", "ftl.gc_stop", "ftl.gc_idle_stop"
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml(of: Imported, comments: list[str], changes: Mapping[str, Value] | None = None) -> str:
    """The drive as TOML with the origin of each value; `changes` replace values."""
    tables: dict[str, list[str]] = {}
    for key, (value, origin) in of.keys.items():
        table, _, name = key.partition(".")
        shown = _value((changes or {}).get(key, value))
        tables.setdefault(table, []).append(f"{name} = {shown}  # {''.join(filter(str.isprintable, origin))}")
    head = [f"# {''.join(filter(str.isprintable, line))}" for line in comments]
    body = [line for table, lines in tables.items() for line in ("", f"[{table}]", *lines)]
    return "\n".join([*head, *body]) + "\n"


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return f'"{value}"'


def fit(of: Imported, source: Path | str) -> None:
    """Lowers the thresholds of collection as far as the drive needs. Raises InputError if no drive is possible."""
    with tempfile.TemporaryDirectory(prefix="palimpsest-") as folder:
        path = Path(folder) / "drive.toml"

        def refusal(changes: Mapping[str, Value]) -> str:
            path.write_text(toml(of, [], changes), encoding="utf-8")
            try:
                _core.show(str(path), None, [])
            except InputError as error:
                return re.sub(rf"{re.escape(str(path))}(:\d+)?:? ?", "", str(error))
            return ""

        if not refusal({}):
            return
        if _START not in of.keys:
            raise InputError(f"{source}: this drive cannot be simulated: {refusal({})}")
        wanted = {key: int(str(of.keys[key][0]).split()[0]) for key in (_START, _STOP, _IDLE_STOP) if key in of.keys}

        def at(most: int) -> dict[str, Value]:
            # A drive collects while the host is idle only above the start.
            limits = {key: min(count, most + (key == _IDLE_STOP)) for key, count in wanted.items()}
            return {key: f"{count} block{'s' * (count > 1)}" for key, count in limits.items()}

        if reason := refusal(at(1)):
            raise InputError(f"{source}: this drive cannot be simulated: {reason}")
        most = largest(lambda number: not refusal(at(number)), max(wanted.values()))
        for key, value in at(most).items():
            before, origin = of.keys[key]
            if before != value:
                of.keys[key] = (value, origin)
                why = "a full drive has no more spare blocks in a plane"
                of.notes.append(Note(NEAR, f"{key} = {before}", f"{key} = {value}", why))


def options(of: Imported, drive: Path) -> RunOptions:
    """The run of the files."""
    job = str(_job(drive)) if of.job else of.workload
    made = RunOptions(ssd=_path(drive), precondition=of.options.get("precondition", "none"))
    requests = of.options.get("requests")
    return RunOptions(
        ssd=made.ssd, workload=job or made.workload, precondition=made.precondition,
        requests=int(requests) if requests else None, seed=int(of.options.get("seed", "1")),
        columns=of.options.get("columns"), repeat=of.options.get("repeat"),
    )  # fmt: skip


def command(of: Imported, drive: Path) -> str:
    """The command line that runs the files."""
    words = ["palimpsest", "run", "--ssd", _path(drive)]
    if of.job or of.workload:
        words += ["--workload", str(_job(drive)) if of.job else of.workload]
    for name in ("columns", "precondition", "requests", "repeat", "seed"):
        if name in of.options:
            words += [f"--{name}", of.options[name]]
    return shlex.join(words)


def write(of: Imported, drive: Path, sources: list[str], *, force: bool) -> list[Path]:
    """Writes the files; returns their paths. Raises InputError if a file exists, unless `force`."""
    if drive.suffix != ".toml":
        raise InputError(f"--out {drive}: expected a name that ends in .toml")
    files = {drive: toml(of, [_origin(of, sources), f"Run: {command(of, drive)}"])}
    if of.job:
        files[_job(drive)] = "\n".join([f"; {_origin(of, sources)}", *of.job]).rstrip("\n") + "\n"
    for path in files:
        if path.is_dir() or (path.exists() and not force):
            what = "is a folder" if path.is_dir() else "is already there"
            raise InputError(f"{path} {what}; expected another --out FILE.toml, or --force to replace files")
    for path, text in files.items():
        try:
            write_whole(path, text.encode("utf-8", "replace"))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; expected a file that can be written") from error
    return list(files)


def _origin(of: Imported, sources: list[str]) -> str:
    return f"Written by `palimpsest import` from {of.simulator}: {', '.join(map(printable, sources))}."


def _job(drive: Path) -> Path:
    return drive.with_suffix(".fio")


def _path(drive: Path) -> str:
    return str(drive)
