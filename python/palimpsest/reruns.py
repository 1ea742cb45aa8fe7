"""`palimpsest rerun DIR`: repeats the runs of a folder with their recorded options, and compares the bytes.

Figures, notes and tables are compared, except `sim`: the same sources of the simulator give the same bytes. A drive
from a file is taken from `config.toml` of the folder, which is complete. Traces must have the same path and content.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _core, engine, outputs, tables
from .errors import InputError
from .evidence import agreement
from .files import digest
from .options import RunOptions
from .result import Result, flatten

_SHOWN = 5

SERVED = ("nbd", "device", "files")
"""The workloads of drives that programs used."""

_OF_SERVING = ("workload", "trace_format", "endurance", "life", "notes", "interrupted", "steady", "basis.is_open")
"""Figures about the programs that used a drive, which a record lacks, about the end of the service, and about windows,
which begin at other times in a run."""


@dataclass(frozen=True)
class Outcome:
    """The comparison of one run: a changed simulator, and figures and tables that differ, with both values."""

    label: str
    notes: list[str]
    differences: list[str]

    def lines(self) -> Iterator[str]:
        """The lines for a terminal."""
        count = len(self.differences)
        yield f"{self.label}: {agreement.bytes_agree(count)}"
        yield from (f"  {line}" for line in (*self.notes, *self.differences[:_SHOWN]))
        if count > _SHOWN:
            yield f"  and {count - _SHOWN} more"


def rerun(
    folder: Path, progress: Callable[[str], engine.Progress | None] = lambda _label: None
) -> tuple[list[Outcome], list[Result]]:
    """Repeats the run or comparison in a folder. Raises InputError if its options or inputs are missing or changed."""
    found = outputs.runs(folder)
    before = [result for result, _ in found]
    plans = [_options(result, place) for result, place in found]
    outcomes, made = [], []
    labels = [result.label for result in before]
    for old, options in zip(before, plans, strict=True):
        name = old.label if labels.count(old.label) == 1 else f"{old.label}, seed {old['seed']}"
        new = engine.run_one(options, progress(name))
        data = new.to_dict() | {"ssd": old["ssd"]}
        data["config"]["name"] = old["config"].get("name", data["config"].get("name"))
        apart = _OF_SERVING if _record_of(old) is not None else ()
        came = old["provenance"]
        was, now = f"{came['version']} ({came['sources']})", f"{_core.version()} ({_core.build()})"
        notes = [] if was == now else [f"made by palimpsest {was}, repeated by {now}"]
        outcomes.append(Outcome(name, notes, _differences(old, Result(data, new.series), apart)))
        made.append(new)
    return outcomes, made


def _options(result: Result, folder: Path) -> RunOptions:
    came = result.get("provenance")
    place = folder / "summary.json"
    known = {field.name for field in dataclasses.fields(RunOptions)}
    if not isinstance(came, dict) or not isinstance(came.get("options"), dict) or came["options"].keys() - known:
        raise InputError(
            f"{place}: the result does not say how it was made; expected one of this version or a later one"
        )
    record = _record_of(result)
    if came["options"].get("workload") in SERVED and record is None:
        drive = f"--ssd {folder / 'config.toml'} --workload FILE.parquet --precondition none"
        what = "the requests came from programs, and are not in the folder"
        expected = f"expected the file that --record wrote, to play it: palimpsest run {drive}"
        raise InputError(f"{place}: {what}; {expected}")
    fields: dict[str, Any] = came["options"] | {"overrides": tuple(came["options"]["overrides"])}
    if "ssd" in came.get("files_blake2b", {}):
        # `config.toml` has all keys, also from the options.
        fields |= {"ssd": str(folder / "config.toml"), "ftl": None, "overrides": ()}
    wanted = came.get("files_blake2b", {}).get("workload")
    if record is not None:
        fields["workload"], wanted = str(folder / record["file"]), record["blake2b"]
    if wanted is not None:
        path = Path(fields["workload"])
        try:
            found = digest(path)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}; expected the trace that {place} was made from") from error
        if found != wanted:
            raise InputError(f"{path}: the file is not the one that {place} was made from; expected that one")
    kept = {"series": bool(result.series), "sketch": "latency_sketch" in result, "label": result.get("label")}
    return RunOptions(**fields, **kept)


def with_record(result: Result, record: Path, out: Path, *, image: bool) -> Result:
    """Adds the record of a served drive that was new, so not in an image, to its result, for `rerun`."""
    if image:
        return result
    data, whole = result.to_dict(), record.resolve()
    inside = whole.is_relative_to(out.resolve())
    found = {"file": str(whole.relative_to(out.resolve()) if inside else whole), "blake2b": digest(record)}
    data["provenance"] = {**data["provenance"], "record": found}
    return Result(data, result.series, result.configuration)


def _record_of(result: Result) -> dict[str, str] | None:
    came = result.get("provenance")
    record = came.get("record") if isinstance(came, dict) else None
    return record if isinstance(record, dict) and {"file", "blake2b"} <= record.keys() else None


def _differences(old: Result, new: Result, of_serving: tuple[str, ...]) -> list[str]:
    # A repetition leaves out the timeline, which has the parts of response times, and the figures of another program.
    apart = ("sim", "provenance", "why", "against", "slo", *of_serving)
    one, two = (
        {key: value for key, value in flatten(each.to_dict()).items() if not {key, key.partition(".")[0]} & {*apart}}
        for each in (old, new)
    )
    keys = sorted(one.keys() | two.keys())
    found = [
        f"{key}: {_text(one.get(key))} before, {_text(two.get(key))} now"
        for key in keys
        if json.dumps(one.get(key)) != json.dumps(two.get(key))
    ]
    if of_serving:
        # The service has other times than a run.
        return found
    before, after = tables.of_series(old.series), tables.of_series(new.series)
    for name in sorted(before.keys() & after.keys()):
        if not before[name].equals(after[name]):
            found.append(f"table {name} ({tables.TABLES[name][0]})")
    return found


def _text(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
