"""Values of an axis: ranges expanded, and quantities as numbers.

A range goes from a first to a last value by a step or a factor, and includes both ends if the steps meet them. Its ends
may have a unit, the same at both: `{from = "4KiB", to = "64KiB", factor = 2}`. Steps are decimal, so that 0.1 to 0.5 by
0.1 has the expected five values.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

Value = str | int | float | bool
"""One value of an axis, as in the sweep file."""

LARGEST_RANGE = 100_000
"""Most values of a range."""

_RANGE_KEYS = {"from", "to", "step", "factor"}
_EXAMPLE = "{from = 1, to = 16, factor = 2} or {from = 0, to = 10, step = 2}"
_QUANTITY = re.compile(r"\s*([-+]?[0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z%/]*)\s*")
UNITS: dict[str, tuple[Decimal, str]] = {
    "%": (Decimal("0.01"), "share"),
    "ns": (Decimal(1), "ns"),
    "us": (Decimal(10**3), "ns"),
    "ms": (Decimal(10**6), "ns"),
    "s": (Decimal(10**9), "ns"),
    "min": (Decimal(60 * 10**9), "ns"),
    "h": (Decimal(3600 * 10**9), "ns"),
    "B": (Decimal(1), "bytes"),
    **{f"{letter}B": (Decimal(1000) ** power, "bytes") for power, letter in enumerate("kMGT", 1)},
    "KB": (Decimal(1000), "bytes"),
    **{f"{letter}iB": (Decimal(1024) ** power, "bytes") for power, letter in enumerate("KMGT", 1)},
    **{f"{letter}B/s": (Decimal(1000) ** power, "bytes_per_s") for power, letter in enumerate("kMGT", 1)},
    **{f"{letter}iB/s": (Decimal(1024) ** power, "bytes_per_s") for power, letter in enumerate("KMGT", 1)},
}
"""Units of quantities: the factor to the base unit, and the base unit."""

_FIO_SIZES = {"workload.bs", "workload.size", "workload.io_size", "workload.filesize"}
_FIO_UNITS = {letter: Decimal(1024) ** power for power, letter in enumerate("kmgt", 1)}


def is_label(key: str) -> bool:
    """Whether a key of the sweep file only names the settings beside it."""
    return key.startswith("label.")


def readable_axes(axes: Sequence[str], points: Sequence[Mapping[str, Value | None]]) -> list[str]:
    """The axes without those whose value, of points, a label of all points determines."""
    labels = [axis for axis in axes if is_label(axis) and all(point.get(axis) is not None for point in points)]

    def is_determined(axis: str) -> bool:
        pairs = [{(point[label], axis_text(point.get(axis))) for point in points} for label in labels]
        return any(len(dict(found)) == len(found) for found in pairs)

    return [axis for axis in axes if is_label(axis) or not is_determined(axis)]


def axes_of(shown: Mapping[str, str], key: str) -> list[str]:
    """The axes in a value of `[report]`, such as `seed,ssd`; empty without the key."""
    return [name.strip() for name in shown.get(key, "").split(",") if name.strip()]


def is_range(value: object) -> bool:
    """Whether a value of the sweep file is meant as a range."""
    return isinstance(value, Mapping) and "from" in value


def expand(value: Mapping[str, object]) -> list[Value]:
    """The values of a range. Raises ValueError with the expected form."""
    unknown = sorted(value.keys() - _RANGE_KEYS)
    if unknown or "to" not in value or ("step" in value) == ("factor" in value):
        raise ValueError(f"expected a range such as {_EXAMPLE}")
    (first, unit), (last, last_unit) = _number(value["from"]), _number(value["to"])
    if unit != last_unit:
        raise ValueError(f"expected the same unit at both ends of a range; found {value['from']!r} and {value['to']!r}")
    by_factor = "factor" in value
    by, by_unit = _number(value["factor" if by_factor else "step"])
    if by_unit not in (("",) if by_factor else ("", unit)):
        raise ValueError(
            f"expected a {'plain factor' if by_factor else f'step in {unit or chr(49)}'}, found {by_unit!r}"
        )
    if first == last:
        return [_shown(first, unit)]
    if by_factor:
        if first * last <= 0 or by <= 0 or (by > 1) != (abs(last) > abs(first)) or by == 1:
            raise ValueError("expected a factor from the first value to the last: above 1 upwards, below 1 downwards")
    elif by == 0 or (by > 0) != (last > first):
        raise ValueError("expected a step that leads from the first value to the last")
    found: list[Value] = []
    at = first
    while abs(at - first) <= abs(last - first):
        found.append(_shown(at, unit))
        if len(found) > LARGEST_RANGE:
            raise ValueError(f"the range has more than {LARGEST_RANGE} values; expected fewer")
        at = at * by if by_factor else at + by
    return found


def _number(value: object) -> tuple[Decimal, str]:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"expected numbers in a range such as {_EXAMPLE}")
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        raise ValueError(f'expected a number, or a quantity such as "16KiB", found {value!r}')
    try:
        return Decimal(match[1].replace("_", "")), match[2]
    except InvalidOperation:
        raise ValueError(f"expected a number, found {value!r}") from None


def _shown(number: Decimal, unit: str) -> Value:
    whole = number == number.to_integral_value()
    if unit:
        return f"{int(number) if whole else number.normalize()}{unit}"
    return int(number) if whole else float(number)


def quantity(key: str, value: Value) -> tuple[float, str] | None:
    """A quantity in its base unit, and the unit: `("28%")` gives 0.28, share; None for other values."""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    number, unit = Decimal(match[1].replace("_", "")), match[2]
    if key in _FIO_SIZES and unit.lower() in _FIO_UNITS:
        return float(number * _FIO_UNITS[unit.lower()]), "bytes"
    if unit not in UNITS:
        return None
    factor, base = UNITS[unit]
    return float(number * factor), base


def measures(key: str, values: Sequence[Value]) -> tuple[list[float | None], str] | None:
    """An axis of numbers or quantities, and the base unit, empty for numbers; None for any other axis."""
    if values and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return [float(value) for value in values], ""
    return numbers(key, values)


def numbers(key: str, values: Sequence[Value | None]) -> tuple[list[float | None], str] | None:
    """An axis of quantities in their base unit, and the unit; None if some value is no quantity."""
    found = [None if value is None else quantity(key, value) for value in values]
    units = {each[1] for each in found if each is not None}
    if len(units) != 1 or any(each is None for each, value in zip(found, values, strict=True) if value is not None):
        return None
    return [None if each is None else each[0] for each in found], units.pop()


def axis_text(value: object) -> str:
    """A value of an axis as text."""
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)


_WORDS = {
    "ftl": "layer", "ssd": "drive", "workload.iodepth": "queue depth (requests)",
    "host.iodepth": "queue depth (requests)", "workload.bs": "request size", "workload.rwmixread": "reads (%)",
    "workload.rate_iops": "rate (requests/s)", "workload.size": "addressed range", "part.page_size": "page size",
    "ssd.over_provisioning": "over-provisioning", "ssd.blocks_per_plane": "blocks of a plane",
    "part.pages_per_block": "pages of a block", "buffer.size": "write buffer",
    "part.endurance": "rated erases of a block",
}  # fmt: skip


def named_axes(axes: Sequence[str]) -> list[str]:
    """The axes in words with the unit of plain numbers, else the end of the key; whole keys if words repeat."""
    named = [_WORDS.get(name) or name.rpartition(".")[2].replace("_", " ") for name in axes]
    return [word if named.count(word) == 1 else name for word, name in zip(named, axes, strict=True)]
