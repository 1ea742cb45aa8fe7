"""Quantities for people: `1.2 ms`, `16KiB`, `1e6`. Results hold exact integers (nanoseconds, bytes)."""

import math
import re
from collections.abc import Mapping
from typing import Any

_COUNT = re.compile(r"\s*((?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9][0-9_]*)(?:\.[0-9]*)?(?:[eE][+]?[0-9]+)?)\s*([kKmMgG]?)\s*")
_COUNT_FACTOR = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_BYTES = re.compile(r"\s*([0-9.]+)\s*([kKMGTP]?i?)B?\s*")
_BYTES_FACTOR = {"": 1, "k": 1000, "K": 1000, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BYTES_FACTOR |= {f"{letter}i": 1024 ** (power + 1) for power, letter in enumerate("KMGTP")}
_LARGEST_COUNT = 2**63

ABSENT = "-"
"""Printed for a value that was not measured."""
NOT_MODELLED = "not modelled"
"""Printed for a time or energy that the drive does not model, as many drives of papers."""


def parse_count(text: str) -> int:
    """A whole number from 1 to 2^63 - 1: `250000`, `1e6`, `100k`, `1.5M`. Raises ValueError with the expected form."""
    match = _COUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"not a number; expected one such as 250000, 1e6 or 100k, found {text!r}")
    digits, suffix = match.groups()
    if len(digits) > 40:
        raise ValueError(f"too large a number; expected less than 2^63, found {text[:20]!r}...")
    value = float(digits.replace(",", "").replace("_", "")) * _COUNT_FACTOR[suffix.lower()]
    if not 1 <= value < _LARGEST_COUNT:
        raise ValueError(f"expected a number from 1 to 2^63 - 1, found {text!r}")
    if value != math.floor(value):
        raise ValueError(f"expected a whole number, found {text!r}")
    return int(value)


def parse_bytes(value: object) -> int | None:
    """Bytes of a resolved configuration value (`16KiB`, or a plain number of bytes); None for any other value."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _BYTES.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in _BYTES_FACTOR:
        return None
    try:
        return round(float(match[1]) * _BYTES_FACTOR[match[2]])
    except ValueError:
        return None


def number(value: float) -> str:
    """Three significant figures: 0.0123, 1.23, 12.3, 123, 1,234. An exponent only below a thousandth."""
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:,.0f}"
    if magnitude >= 9.995:
        return f"{value:.1f}"
    if magnitude >= 0.9995 or magnitude == 0:
        return f"{value:.2f}"
    if magnitude < 1e-3:
        return f"{value:.2g}"
    decimals = 2 - math.floor(math.log10(magnitude))
    return f"{value:.{decimals}f}"


def _scaled(value: float | None, steps: list[tuple[float, str]]) -> str:
    if value is None:
        return ABSENT
    for factor, unit in steps:
        # 999.95 would print as "1,000": the next unit up reads better.
        if abs(value) >= 0.9995 * factor:
            return f"{number(value / factor)} {unit}"
    factor, unit = steps[-1]
    return f"{number(value / factor) if value else '0'} {unit}"


def nanoseconds(value: float | None) -> str:
    """A time in nanoseconds: `812 ns`, `35.2 us`, `1.80 ms`, `2.41 s`, `3.10 h`."""
    return _scaled(value, [(3600e9, "h"), (60e9, "min"), (1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns")])


def size(value: float | None) -> str:
    """An amount of data in bytes, in binary units: `16.0 KiB`, `1.21 GiB`."""
    return _scaled(value, [(1024.0**power, f"{'KMGTP'[power - 1]}iB") for power in range(5, 0, -1)] + [(1, "B")])


def exact_size(value: int) -> str:
    """All digits of an amount of data or a place in bytes: `8 KiB`, `8,264.5 KiB`, `3 B`."""
    unit, name = next(((unit, name) for unit, name in _EXACT if value >= unit and value % (unit // 2) == 0), (1, "B"))
    return f"{value / unit:,.1f} {name}".replace(".0 ", " ")


_EXACT = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def terabytes(value: float | None) -> str:
    """An amount of data in terabytes of 10^12 bytes, as data sheets give endurance: `3,650 TB`."""
    return ABSENT if value is None else f"{number(value)} TB"


def rate(value: float | None) -> str:
    """A rate in bytes a second, in the decimal units of data sheets: `312 MB/s`."""
    return _scaled(value, [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")])


def energy(value: float | None) -> str:
    """An energy in microjoules: `12.3 mJ`; None for a part without energies."""
    return NOT_MODELLED if value is None else _scaled(value, [(1e9, "kJ"), (1e6, "J"), (1e3, "mJ"), (1, "uJ")])


def count(value: float | None) -> str:
    """A number of things: exact below ten million, in millions (M) or thousands of millions (G) above.

    A fractional rate below a hundred has three significant figures: traces have 0.00177 requests a second.
    """
    if value is None:
        return ABSENT
    if abs(value) < 99.95 and value != int(value):
        return number(value)
    if abs(value) < 10_000_000:
        return f"{value:,.0f}"
    return _scaled(value, [(1e9, "G"), (1e6, "M")])


def ratio(value: float | None) -> str:
    """A factor: `1.83`."""
    return ABSENT if value is None else number(value)


def own(value: float | None) -> str:
    """A figure of unknown unit: a count exactly, others with three significant figures."""
    return count(value) if isinstance(value, int) else ratio(value)


def percent(value: float | None) -> str:
    """A share of one as per cent: `28 %`."""
    return ABSENT if value is None else f"{number(value * 100).removesuffix('.00').removesuffix('.0')} %"


def volume_name(volume: Mapping[str, Any]) -> str:
    """The name of a volume of a trace: `xvda1`, or its number."""
    return str(volume.get("name", volume["volume"]))
