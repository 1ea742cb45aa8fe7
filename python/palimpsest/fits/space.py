"""The search space of a fit: configuration keys with bounds or choices, and the drive at a point.

A key is `KEY=LOW..HIGH` (numbers with the same unit; whole numbers if both ends are and have no unit) or `KEY=A,B,C`.
If the ends differ by a factor of four or more (whole numbers: eight), the search takes logarithms, so that half and
double are equally far.
"""

import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import _core
from ..errors import InputError
from ..options import RunOptions

Values = Mapping[str, float | str]
"""The value of each key: a number in the unit of its bounds, or a choice."""

_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z%/]*)")
_LOGARITHMIC = 4.0
_LOGARITHMIC_WHOLE = 8.0
_DECIMALS = {"ns": 0, "us": 3, "ms": 6, "s": 9, "B": 0, "KiB": 0, "MiB": 0, "GiB": 0}


@dataclass(frozen=True, slots=True)
class Drive:
    """A drive: preset or file, layer, overrides, and the seed of all random numbers."""

    ssd: str
    ftl: str | None = None
    overrides: tuple[str, ...] = ()
    seed: int = 1

    def at(self, keys: Iterable["Key"], values: Values) -> "Drive":
        """The same drive with values for keys."""
        return replace(self, overrides=(*self.overrides, *(key.override(values[key.name]) for key in keys)))

    def run(
        self, workload: str, precondition: str, requests: int | None = None, *, counted: bool = False,
        trace: Mapping[str, str] | None = None,
    ) -> RunOptions:  # fmt: skip
        """A run on the drive, full of data if `precondition` is empty; `trace` has the options to read a trace."""
        return RunOptions(
            ssd=self.ssd,
            ftl=self.ftl,
            overrides=self.overrides if trace is None else (*self.overrides, "host.fold=true"),
            workload=workload,
            precondition=precondition or "fill:90%,random:1x",
            requests=requests,
            warmup="0",
            fidelity="count" if counted else "timed",
            seed=self.seed,
            series=True,
            **(trace or {}),  # type: ignore[arg-type]
        )

    def check(self) -> None:
        """Resolves the configuration. Raises InputError for a wrong key or value."""
        _core.show(self.ssd, self.ftl, list(self.overrides))


@dataclass(frozen=True, slots=True)
class Key:
    """A configuration key that the fit changes: a range of numbers with a unit, or choices.

    `spread` is the standard deviation of the normal prior around the drive at the start, in parts of the range: half
    for a given range, whose values are all plausible; a quarter for the default range, from half to twice the value of
    the drive. A key with a time for each type of page (`part.t_read_types`) is searched by its mean, in the `ratios` of
    the drive.
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    unit: str = ""
    whole: bool = False
    choices: tuple[str, ...] = ()
    spread: float = 0.5
    ratios: tuple[float, ...] = ()

    @property
    def is_logarithmic(self) -> bool:
        """Whether the search takes logarithms."""
        least = _LOGARITHMIC_WHOLE if self.whole else _LOGARITHMIC
        return not self.choices and self.low > 0 and self.high / self.low >= least

    def at(self, part: float) -> float:
        """The number at a part of the range, 0 to 1."""
        part = min(1.0, max(0.0, part))
        if self.is_logarithmic:
            value = math.exp(math.log(self.low) + part * math.log(self.high / self.low))
        else:
            value = self.low + part * (self.high - self.low)
        return float(round(value)) if self.whole else value

    def part(self, value: float) -> float:
        """The place of a number in the range, 0 to 1."""
        if self.is_logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def text(self, value: float | str) -> str:
        """A value in the form of the configuration."""
        if isinstance(value, str):
            return value
        # Times are whole nanoseconds, sizes whole numbers of their unit.
        decimals = _DECIMALS.get(self.unit)
        return f"{value:.6g}{self.unit}" if decimals is None else f"{round(value, decimals):.12g}{self.unit}"

    def override(self, value: float | str) -> str:
        """`KEY=VALUE`."""
        each = ", ".join(f'"{self.text(value * ratio)}"' for ratio in self.ratios if not isinstance(value, str))
        return f"{self.name}={f'[{each}]' if self.ratios else self.text(value)}"

    def ends(self) -> tuple[float | str, ...]:
        """The bounds, or all choices."""
        return self.choices or (self.low, self.high)

    def __str__(self) -> str:
        values = ", ".join(self.choices) if self.choices else f"{self.text(self.low)} to {self.text(self.high)}"
        return f"{self.name}: {values}"


def parse(text: str) -> Key:
    """Reads `KEY=LOW..HIGH` or `KEY=A,B,C`. Raises InputError."""
    name, separator, values = (part.strip() for part in text.partition("="))
    place = f"--vary {text}"
    if not separator or not name or not values:
        raise InputError(f"{place}: expected KEY=LOW..HIGH or KEY=A,B,C, such as ssd.over_provisioning=7%..28%")
    if ".." in values:
        return _range(name, values, place)
    choices = tuple(dict.fromkeys(part.strip() for part in values.split(",")))
    if len(choices) < 2 or "" in choices:
        raise InputError(f"{place}: there is nothing to choose from; expected LOW..HIGH, or two values or more")
    return Key(name, choices=choices)


def _range(name: str, values: str, place: str) -> Key:
    low, high = (_NUMBER.fullmatch(end.strip()) for end in values.split("..", 1))
    if low is None or high is None:
        raise InputError(f"{place}: expected two numbers, with their units, such as 7%..28% or 30us..80us")
    if low[2] != high[2]:
        raise InputError(
            f"{place}: the ends have the units {low[2] or 'none'!r} and {high[2] or 'none'!r}; expected one"
        )
    least, most = float(low[1]), float(high[1])
    if not least < most:
        raise InputError(f"{place}: the range is empty; expected the smaller number first")
    whole = not low[2] and all(number[1].lstrip("+-").isdigit() for number in (low, high))
    return Key(name, least, most, low[2], whole)


def parse_all(texts: Sequence[str], drive: Drive) -> tuple[Key, ...]:
    """Reads keys, and checks that the drive accepts both ends of each, or all choices. Raises InputError."""
    shown = tomllib.loads(_core.show(drive.ssd, drive.ftl, list(drive.overrides)))
    keys = tuple(
        replace(key, ratios=found[2]) if not key.choices and (found := _amount(_value(shown, key.name))) else key
        for key in map(parse, texts)
    )
    for at, key in enumerate(keys):
        if key.name in {each.name for each in keys[:at]}:
            raise InputError(f"--vary {key.name}: the key is given twice; expected each key once")
        for value in key.ends():
            try:
                drive.at((key,), {key.name: value}).check()
            except InputError as error:
                raise InputError(f"--vary {key.name}: {error}") from None
    return keys


_COUNTED = ("ssd.over_provisioning", "ftl.victim", "ftl.streams")
_TIMED = (
    "part.t_read", "part.t_read_types", "part.t_program", "part.bus_rate", "controller.t_read", "controller.t_write",
    "buffer.t_write", "host.t_request", "host.link_rate", "sim.cache_read", "sim.suspend", "sim.suspend_pulse",
)  # fmt: skip
"""Default keys for counts, and for times: those that data sheets do not state."""
_CHOICES = {
    "sim.cache_read": ("true", "false"), "ftl.streams": ("1", "2"), "sim.suspend": ("none", "erase", "program-erase"),
}  # fmt: skip


def default_space(drive: Drive, *, counted: bool, timed: bool) -> tuple[Key, ...]:
    """The default keys: half to twice the preset's value, and all choices. Raises InputError if the drive has none."""
    shown = tomllib.loads(_core.show(drive.ssd, drive.ftl, list(drive.overrides)))
    names = (*(_COUNTED if counted else ()), *(_TIMED if timed else ()))
    keys = [key for name in names if (key := _around(name, _value(shown, name))) is not None]
    if any(key.name == "part.t_read_types" for key in keys):
        # The times by type of page replace the time of all pages.
        keys = [key for key in keys if key.name != "part.t_read"]
    kept = []
    for key in keys:
        try:
            for value in key.ends():
                drive.at((key,), {key.name: value}).check()
        except InputError:
            continue
        kept.append(key)
    if not kept:
        raise InputError("the search space is empty; expected --vary KEY=LOW..HIGH or --vary KEY=A,B,C")
    return tuple(kept)


def values_of(drive: Drive, keys: Sequence[Key]) -> dict[str, float | str]:
    """The values of the drive for these keys, if within their space."""
    shown = tomllib.loads(_core.show(drive.ssd, drive.ftl, list(drive.overrides)))
    found: dict[str, float | str] = {}
    for key in keys:
        value = _value(shown, key.name)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if text in key.choices:
            found[key.name] = text
        amount = None if key.choices else _amount(value)
        if amount is not None and amount[1] == key.unit and key.low <= amount[0] <= key.high:
            found[key.name] = amount[0]
    return found


def _amount(value: object) -> tuple[float, str, tuple[float, ...]] | None:
    """Number, unit, and of a list the ratios to its mean, which is the number; None for other values."""
    each = [_NUMBER.fullmatch(str(one)) for one in (value if isinstance(value, list) else [value])]
    known = [(float(one[1]), one[2]) for one in each if one is not None]
    if not known or len(known) < len(each) or len({unit for _, unit in known}) > 1:
        return None
    mean = sum(number for number, _ in known) / len(known)
    ratios = tuple(number / mean for number, _ in known) if isinstance(value, list) and mean > 0 else ()
    return mean, known[0][1], ratios


def _value(shown: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - as TOML has it
    section, _, key = name.partition(".")
    return shown.get(section, {}).get(key)


def _around(name: str, value: Any) -> Key | None:  # noqa: ANN401 - as TOML has it
    if name == "ftl.victim":
        # Victims with a parameter are left out.
        victims = tuple(each for each, _ in _core.list_registry("victims") if ":" not in each)
        return Key(name, choices=victims) if value in victims else None
    if name in _CHOICES:
        return Key(name, choices=_CHOICES[name]) if str(value).lower() in _CHOICES[name] else None
    amount = _amount(value)
    if amount is None or amount[0] <= 0:
        return None
    return Key(name, amount[0] / 2, amount[0] * 2, amount[1], spread=0.25, ratios=amount[2])
