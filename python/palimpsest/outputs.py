"""Files of `--out DIR`: written after a run, read again by `palimpsest report DIR`.

A run: summary.json, config.toml, report.html, and the tables timeseries, latency, wear, utilization, snapshots and
blocks as Parquet, with operations and requests if a timeline was kept. A comparison: summary.json with all runs,
report.html over them, and a folder of a run for each layer. Replicates (`--seeds`): the same, with `LABEL/seed-N` for
each run, means in report.html, and intervals.csv.

Files are written to a temporary folder beside DIR, figures before pages, and moved into DIR when all are complete,
summary.json last: a DIR with summary.json has all files of one result. After an error, such as a full disk, the files
before the failed one are moved and stay. Links in DIR are replaced, not followed.
"""

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import tables
from .distribution import need
from .errors import InputError
from .files import is_file, is_there, named, parquet, write_in_order, write_whole
from .replicates import MANIFEST, Replicates, place
from .replicates import read as read_replicates
from .result import Comparison, Result

_PAGE = "report.html"
_REQUIRED = ("ftl", "ssd", "workload", "seed", "requests", "host", "flash", "mapping", "gc", "sim")


def _page(results: Sequence[Result], places: Mapping[tuple[str, int], str] | None = None) -> str:
    # Imported late, because reading a folder needs no pages.
    from . import report

    return report.page(results, places)


def _figures(result: Result, within: str = "") -> Iterator[tuple[str, bytes | str]]:
    """The files of a run except the page."""
    yield f"{within}summary.json", result.to_json() + "\n"
    yield f"{within}config.toml", result.configuration
    for name, content in tables.files(result.series):
        yield f"{within}{name}", content


def _files(
    results: Sequence[Result], together: bool, more: Mapping[str, str], places: Sequence[str], shown: Sequence[Result]
) -> Iterator[tuple[str, bytes | str]]:
    """All files of a run or a comparison, pages last; each page is made after the files before it are written."""
    if not together:
        yield from _figures(results[0])
    elif "summary.json" not in more:
        yield "summary.json", Comparison(results).to_json() + "\n"
    yield from more.items()
    inside = list(zip(places, results, strict=True)) if together else []
    for where, result in inside:
        yield from _figures(result, f"{where}/")
    yield _PAGE, _page(shown, {(result.label, result["seed"]): where for where, result in inside})
    for where, result in inside:
        yield f"{where}/{_PAGE}", _page([result])


def save(
    results: Sequence[Result], folder: Path, *, together: bool, more: Mapping[str, str] | None = None,
    places: Sequence[str] | None = None, shown: Sequence[Result] | None = None,
) -> Path:  # fmt: skip
    """Writes the files of a run, or of a comparison (`together`), and `more`. Raises OSError that lists kept files.

    `places` are the folders of the results inside, by default their labels; `shown` are the results of the page, by
    default all.
    """
    of_runs = [result.label for result in results] if places is None else places
    with named(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=_place_beside(folder)))
    failure: OSError | None = None
    try:
        made.chmod(0o777 & ~_umask())
        try:
            write_in_order(made, _files(results, together, more or {}, of_runs, results if shown is None else shown))
        except OSError as error:
            # The user knows the folder, not the temporary one.
            where = str(error.filename or made).replace(str(made), str(folder), 1)
            failure = OSError(error.errno or 0, error.strerror or str(error), where)
        _expect_room(made, folder)
        if failure is None or any(made.iterdir()):
            with named(folder):
                _put(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    if failure is not None:
        raise failure
    return folder


def _place_beside(folder: Path) -> Path:
    """The parent of the temporary folder: beside the folder, or inside if files could not be moved from there."""
    if not folder.is_dir():
        return folder.parent
    is_mounted = folder.stat().st_dev != folder.parent.stat().st_dev
    return folder if is_mounted or not os.access(folder.parent, os.W_OK) else folder.parent


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _expect_room(made: Path, folder: Path) -> None:
    """Raises OSError for a file in the place of a folder, or the reverse, before anything changes."""
    for path in made.rglob("*"):
        place = folder / path.relative_to(made)
        if not place.is_symlink() and place.exists() and place.is_dir() != path.is_dir():
            found = "a folder is in its place" if place.is_dir() else "a file is in its place"
            raise OSError(0, found, str(place))


def _put(made: Path, folder: Path) -> None:
    """Moves the files of a result into its folder, replacing an earlier result."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        made.replace(folder.resolve())
        return
    here = {path.name for path in made.iterdir()}
    for name in ("summary.json", "config.toml", _PAGE, *(file for file, _ in tables.TABLES.values())):
        # A file that is not replaced, because of a full disk, would belong to another result.
        if name not in here or name not in ("config.toml", _PAGE):
            (folder / name).unlink(missing_ok=True)
    for path in sorted(made.iterdir(), key=lambda path: path.name == "summary.json"):
        place = folder / path.name
        if not path.is_dir():
            path.replace(place)
            continue
        if place.is_symlink():
            place.unlink()
        place.mkdir(exist_ok=True)
        _put(path, place)


def save_operations(results: Result | Comparison, file: Path) -> list[Path]:
    """Writes operations to `file`, requests to `NAME-requests.parquet`; `ftl` is the first column of comparisons."""
    files = [file, file.with_name(f"{file.stem}-requests.parquet")]
    names = [path.name for path in files]
    made = (parquet(results.to_polars(table)) for table in tables.TIMELINE)
    write_in_order(file.parent, zip(names, made, strict=True))
    return files


def load(folder: str | Path) -> Result | Comparison | Replicates:
    """Reads the results in a folder of a run, a comparison or replicates. Raises InputError without, or if damaged."""
    data, results, _ = _read_results(Path(folder))
    if "runs" not in data:
        return results[0]
    return read_replicates(data, results, Path(folder) / "summary.json") or Comparison(results)


def runs(folder: Path) -> list[tuple[Result, Path]]:
    """Each run in a folder, with its own folder; labels of replicates name contenders. Raises InputError as `load`."""
    data, results, places = _read_results(folder)
    found = read_replicates(data, results, folder / "summary.json")
    return list(zip(found.results if found else results, places, strict=True))


def contenders(folder: str | Path) -> list[Result]:
    """The results of a folder side by side: one for a run, the means of replicates. Raises InputError as `load`."""
    loaded = load(folder)
    if isinstance(loaded, Replicates):
        return loaded.contenders
    return [loaded] if isinstance(loaded, Result) else list(loaded)


def _read_summary(folder: Path) -> dict[str, Any]:
    path = folder / "summary.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        if is_there(path):
            raise
        if is_file(folder / "sweep.json"):
            raise InputError(
                f"{folder}: this is the folder of a sweep; expected that of a run or a comparison "
                "(palimpsest.Sweep.load reads sweeps)"
            ) from None
        raise InputError(
            f"{path}: no such file; expected a folder that `palimpsest run --out` or `compare --out` wrote"
        ) from None
    except RecursionError as error:
        raise InputError(f"{path}:1: nested too deep; expected the JSON that `run --out` wrote") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        line = getattr(error, "lineno", 1)
        raise InputError(f"{path}:{line}: expected the JSON that `run --out` wrote: {error}") from error
    runs = data.get("runs", [data]) if isinstance(data, dict) else None
    if (
        not isinstance(data, dict)
        or not isinstance(runs, list)
        or not all(isinstance(run, dict) and set(_REQUIRED) <= run.keys() for run in runs)
    ):
        raise InputError(f"{path}:1: expected results that `run --out` wrote, each with {', '.join(_REQUIRED)}")
    return data


def _inside(folder: Path, name: str) -> Path:
    """The folder of a run inside the folder of its comparison. Raises InputError for any other place."""
    path = folder / name
    if Path(name).name != name or name in (".", "..") or path.is_symlink():
        raise InputError(f"{folder / 'summary.json'}:1: ftl {name!r}: expected a folder of a run inside this one")
    return path


def _read_run(data: dict[str, Any], folder: Path) -> Result:
    need("report", "polars")
    import polars as pl

    found = {}
    for name, (file, _) in tables.TABLES.items():
        if (folder / file).is_file():
            try:
                found[name] = pl.read_parquet(folder / file)
            except pl.exceptions.PolarsError as error:
                raise InputError(f"{folder / file}: expected the Parquet that `run --out` wrote: {error}") from error
    expected = [file for name, (file, _) in tables.TABLES.items() if name not in tables.TIMELINE]
    missing = [file for file in [*expected, "config.toml"] if found and not (folder / file).is_file()]
    if missing:
        what = f"{folder}: {', '.join(missing)} missing; expected all files that `run --out` wrote"
        warnings.warn(what, UserWarning, stacklevel=4)
    config = folder / "config.toml"
    configuration = config.read_text(encoding="utf-8") if config.is_file() else ""
    return Result(data, tables.to_series(found) if found else None, configuration)


def _read_results(folder: Path) -> tuple[dict[str, Any], list[Result], list[Path]]:
    """The content of summary.json, the results, and their folders."""
    data = _read_summary(folder)
    together = "runs" in data
    results, places = list[Result](), list[Path]()
    for run in data["runs"] if together else [data]:
        where = _inside(folder, str(run.get("label") or run["ftl"])) if together else folder
        if MANIFEST in data:
            where = _inside(where, Path(place(Result(run))).name)
        results.append(_read_run(run, where))
        places.append(where)
    if not results:
        raise InputError(f"{folder / 'summary.json'}:1: expected at least one run")
    return data, results, places


def rewrite_report(folder: Path) -> Path:
    """Writes report.html from the results in a folder; returns its path. Raises InputError as `load`."""
    path = folder / _PAGE
    places = {(result.label, result["seed"]): str(where.relative_to(folder)) for result, where in runs(folder)}
    write_whole(path, _page(contenders(folder), places).encode())
    return path
