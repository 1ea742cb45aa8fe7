"""Named values of a foreign file, read one by one. An error names the file, the element and the expected values."""

import math
from collections.abc import Iterable, Mapping, Sequence

from ..errors import InputError, did_you_mean, one_line
from .record import Imported

_LONGEST = 60
_NO = ("", "0", "false", "FALSE")


def printable(text: str) -> str:
    """A text of a foreign file on one line, shortened, for messages and comments."""
    line = "".join(each if each.isprintable() else "?" for each in one_line(text)) if text.strip() else ""
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


class Elements:
    """The values of one section. `defaults` are the foreign simulator's; an absent value without default is an error.

    `place` names file and section in errors. `of` records absent values.
    """

    def __init__(
        self, place: str, values: Mapping[str, str], of: Imported, defaults: Mapping[str, str] | None = None
    ) -> None:
        self._place, self._values, self._of = place, values, of
        self._defaults = defaults or {}
        self._used: set[str] = set()

    def error(self, name: str, wrong: str, expected: str) -> InputError:
        """The error of an element."""
        return InputError(f"{self._place}: {name}: {wrong}; expected {expected}")

    def has(self, name: str) -> bool:
        """Whether the file gives this element."""
        return name in self._values

    def shown(self, *names: str) -> str:
        """Elements with their values, for notes."""
        return ", ".join(
            f"{name} = {printable(self._values.get(name, self._defaults.get(name, '')))}" for name in names
        )

    def text(self, name: str, expected: str = "a value") -> str:
        """The text of an element, or the default."""
        first = name not in self._used
        self._used.add(name)
        if name in self._values:
            return self._values[name].strip()
        if name not in self._defaults:
            raise self.error(name, "the element is missing", expected)
        if first:
            self._of.absent(self.shown(name))
        return self._defaults[name]

    def count(self, name: str, least: int = 0, most: int = 2**40) -> int:
        """A whole number in a range."""
        expected = f"a whole number from {least:,} to {most:,}"
        text = self.text(name, expected)
        number = int(text) if text.isascii() and text.removeprefix("-").isdigit() and len(text) < _LONGEST else None
        if number is None or not least <= number <= most:
            raise self.error(name, f"found {printable(text)!r}", expected)
        return number

    def optional(self, name: str, most: int) -> int:
        """A whole number from 0 to a bound; 0 if the file lacks the element."""
        return self.count(name, 0, most) if name in self._values else 0

    def real(self, name: str, least: float, most: float) -> float:
        """A number in a range."""
        expected = f"a number from {least:g} to {most:g}"
        text = self.text(name, expected)
        try:
            number = float(text.removesuffix("f"))
        except ValueError:
            number = math.nan
        if not least <= number <= most:
            raise self.error(name, f"found {printable(text)!r}", expected)
        return number

    def flag(self, name: str) -> bool:
        """Whether an element is true or 1."""
        text = self.text(name, "true or false")
        if text.lower() not in ("true", "false", "1", "0"):
            raise self.error(name, f"found {printable(text)!r}", "true or false")
        return text not in _NO and text.lower() != "false"

    def choice(self, name: str, words: Sequence[str]) -> str:
        """One of a few words, in capital letters."""
        text = self.text(name, f"one of {', '.join(words)}").upper()
        if text not in words:
            meant = did_you_mean(text, words)
            raise self.error(name, f"{printable(text)!r} is not known{meant}", f"one of {', '.join(words)}")
        return text

    def numbers(self, name: str, below: int) -> tuple[int, ...]:
        """Different whole numbers below a bound, separated by commas."""
        expected = f"different numbers from 0 to {below - 1} with commas between them"
        text = self.text(name, expected)
        parts = [part.strip() for part in text.split(",")]
        good = all(part.isascii() and part.isdigit() and len(part) < 10 and int(part) < below for part in parts)
        if not good or len(set(map(int, parts))) < len(parts):
            raise self.error(name, f"found {printable(text)!r}", expected)
        return tuple(map(int, parts))

    def rest(self, why: str, known: Iterable[str]) -> None:
        """Names the elements that nothing has read: the simulator does not know them (`why`)."""
        for name in self._values:
            if name not in self._used:
                self._of.lost(self.shown(name), why + did_you_mean(name, known))
                self._used.add(name)

    def skip(self, why: str, *names: str) -> None:
        """Leaves out elements that the file gives, for one reason."""
        for name in names:
            if name in self._values and name not in self._used:
                self._of.lost(self.shown(name), why)
            self._used.add(name)
