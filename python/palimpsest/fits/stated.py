"""Single figures with their workloads, as data sheets and reviews state them: TOML.

[[figure]]
workload = "rw=randread,bs=4k,iodepth=1"
measure = "read.mean"     # a name of validate.measures, or write_amplification
value = 55
unit = "us"               # us, ms, 1/s, MB/s; none for write_amplification
precondition = "fill:90%" # optional
requests = 20000          # optional
tolerance = "5%"          # optional
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..options import RunOptions
from ..result import Result
from ..validate.measures import MEASURES, measure
from .measured import GroupRuns, How, Measurement, Target, check_workload
from .space import Drive

_KEYS = ("workload", "measure", "value", "unit", "precondition", "requests", "tolerance")
_AMPLIFICATION = "write_amplification"
_REQUESTS = 20_000
_UNITS = {"us": 1.0, "ms": 1000.0}


def read(path: Path, how: How) -> Measurement:
    """Reads such figures. Raises InputError for an unknown, missing or wrong key."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: expected TOML with [[figure]] entries: {error}") from None
    entries = data.get("figure")
    if not isinstance(entries, list) or not entries or set(data) != {"figure"}:
        raise InputError(f"{path}: expected [[figure]] entries and nothing else, found {', '.join(data) or 'nothing'}")
    figures = {
        f"figure {at}": _entry(entry, f"{path}: [[figure]] {at}", how) for at, entry in enumerate(entries, start=1)
    }
    targets = tuple(
        Target(name, name, entry["measure"], entry["unit"], entry["value"], entry["tolerance"])
        for name, entry in figures.items()
    )

    def run(drive: Drive, group: str) -> RunOptions:
        entry = figures[group]
        counted = entry["measure"] == _AMPLIFICATION
        return drive.run(entry["workload"], entry["precondition"], entry["requests"], counted=counted)

    counted = all(target.name == _AMPLIFICATION for target in targets)
    return GroupRuns(path.name, targets, run, _figure, counted)


def _figure(target: Target, result: Result) -> float | None:
    return result[target.name] if target.name == _AMPLIFICATION else measure(target.name, result)


def _entry(entry: Any, place: str, how: How) -> dict[str, Any]:  # noqa: ANN401 - as TOML has it
    if not isinstance(entry, dict):
        raise InputError(f"{place}: expected keys and values")
    for key in entry:
        if key not in _KEYS:
            raise InputError(f"{place}: unknown key {key!r}; expected one of {', '.join(_KEYS)}")
    name = entry.get("measure")
    if name != _AMPLIFICATION and (not isinstance(name, str) or name not in MEASURES):
        raise InputError(f"{place}: measure is {name!r}; expected one of {', '.join((*MEASURES, _AMPLIFICATION))}")
    if not isinstance(entry.get("workload"), str):
        raise InputError(f"{place}: the workload is missing; expected one such as rw=randread,bs=4k,iodepth=1")
    check_workload(entry["workload"], f"{place}: workload")
    value = entry.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise InputError(f"{place}: value is {value!r}; expected a positive number")
    requests = entry.get("requests", _REQUESTS)
    if type(requests) is not int or requests < 1:
        raise InputError(f"{place}: requests is {requests!r}; expected a number from 1")
    return {
        "workload": entry["workload"], "measure": name, "value": value * _factor(entry, name, place),
        "unit": _own_unit(name), "precondition": str(entry.get("precondition", how.precondition)),
        "requests": requests, "tolerance": _tolerance(entry.get("tolerance", "5%"), place),
    }  # fmt: skip


def _own_unit(name: str) -> str:
    return "" if name == _AMPLIFICATION else "1/s" if name == "iops" else "MB/s" if name == "bytes_per_s" else "us"


def _factor(entry: Mapping[str, Any], name: str, place: str) -> float:
    own = _own_unit(name)
    known = tuple(_UNITS) if own == "us" else (own,)
    unit = entry.get("unit", "" if not own else None)
    if unit not in known:
        said = "is missing" if unit is None else f"is {unit!r}"
        raise InputError(f"{place}: the unit of {name} {said}; expected {' or '.join(map(repr, known))}")
    return _UNITS.get(unit, 1.0)


def _tolerance(text: object, place: str) -> float:
    try:
        share = float(str(text).removesuffix("%")) / 100 if str(text).endswith("%") else float("nan")
    except ValueError:
        share = float("nan")
    if not 0 < share < 10:
        raise InputError(f"{place}: tolerance is {text!r}; expected a share such as 5%")
    return share
