"""Write-once-memory codes: store a second message in flash cells that already hold one, without an erase.

>>> import numpy as np
>>> from palimpsest import wom
>>> code = wom.Code("fountain", message_bytes=4096, cell_bytes=8192, spare_bytes=128)
>>> rng = np.random.default_rng(1)
>>> page = code.write_first(rng.integers(0, 256, 8192, dtype=np.uint8))
>>> message = rng.integers(0, 256, 4096, dtype=np.uint8)
>>> again = code.encode(page, message)
>>> bool((again & ~page).any()), bool((code.decode(again) == message).all())
(False, True)

Arrays are `uint8`, 8 cells or message bits a byte, the first at weight 1; with `bits=True` an element is one cell or
bit, 0 or 1. A page has its data cells, then its spare cells. A cell of 1 may still be cleared; a cell never rises from
0 to 1. Two dimensions are a batch, a page a row, which all cores share. Results depend on the arguments alone.
`palimpsest help wom-codes` describes and measures the codes.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .errors import Error, InputError

Bytes = npt.NDArray[np.uint8]

_BLOCK = 256
"""Trials a thread between two checks for Ctrl-C."""


class EncodingFailed(Error):
    """This code cannot write a message over these cells."""


def codes() -> dict[str, str]:
    """Names of the codes with descriptions."""
    return dict(_core.list_registry("codes"))


def spare_needed(name: str, message_bytes: int, cell_bytes: int, failure: float = 0.0025) -> int:
    """The fewest bytes of erased spare with which encoding fails at most with probability `failure`.

    Half of the data cells (`cell_bytes` * 8) are assumed stuck at random. The estimate is a union bound for `polar`,
    0.6 of that bound for `polar-repair` (measured down to 1e-4, extrapolated below), the failure of random matrices and
    one cell in 800 for `fountain`, none for `table`. The default failure is that of Yadgar et al.'s LLH-FTL. Raises
    InputError for an unknown code, or sizes that the code does not support.
    """
    if not 0 < failure < 1:
        raise InputError(f"failure {failure}: expected a probability between 0 and 1")
    return _core.wom_spare_needed(name, _size("message_bytes", message_bytes), _size("cell_bytes", cell_bytes), failure)


@dataclass(frozen=True)
class Encoded:
    """The outcome of a batch; arrays have the shape of the batch, () for one page.

    Attributes:
        cells: the pages, unchanged for failed encodings; shape as given.
        ok: whether each page holds its message.
        attempts: number of encodings tried, 0 if all failed.
        equations: number of solved equations of dense linear systems.
    """

    cells: Bytes
    ok: npt.NDArray[np.bool_]
    attempts: npt.NDArray[np.uint32]
    equations: npt.NDArray[np.uint32]


def _size(name: str, value: int, most: int = 1 << 40) -> int:
    if not 0 <= value <= most:
        raise InputError(f"{name} {value}: expected a number from 0 to {most}")
    return value


class Code:
    """A code for messages, data cells and spare cells of given sizes.

    Args:
        name: one of `codes()`.
        message_bytes: size of the message of a second write.
        cell_bytes: data cells of a page / 8; a power of two for the polar codes.
        spare_bytes: spare cells / 8 that are erased until the second write; None for a failure of 0.25 %
            (`spare_needed`).
        bits: arrays have one cell or bit an element.
        jobs: threads for batches; None for one a core.

    Raises:
        InputError: the code is unknown, or does not support these sizes.
    """

    def __init__(
        self,
        name: str,
        message_bytes: int = 4096,
        cell_bytes: int = 8192,
        spare_bytes: int | None = None,
        *,
        bits: bool = False,
        jobs: int | None = None,
    ) -> None:
        if spare_bytes is None:
            spare_bytes = spare_needed(name, message_bytes, cell_bytes)
        sizes = (("message_bytes", message_bytes), ("cell_bytes", cell_bytes), ("spare_bytes", spare_bytes))
        self._core = _core.WomCode(name, *(_size(*size) for size in sizes))
        self.name = name
        self.message_bytes = message_bytes
        self.cell_bytes = cell_bytes
        self.spare_bytes = spare_bytes
        self.bits = bits
        self.jobs = max(1, jobs if jobs is not None else os.cpu_count() or 1)

    def __repr__(self) -> str:
        sizes = f"message_bytes={self.message_bytes}, cell_bytes={self.cell_bytes}, spare_bytes={self.spare_bytes}"
        return f"Code({self.name!r}, {sizes})"

    @property
    def page_bytes(self) -> int:
        """Bytes of all cells of a page, data and spare."""
        return self.cell_bytes + self.spare_bytes

    @property
    def first_bytes(self) -> int:
        """Bytes of a first write."""
        return self._core.first_bytes()

    def write_first(self, message: npt.ArrayLike) -> Bytes:
        """Pages after a first write of `first_bytes` bytes, or rows of them. Raises InputError for other shapes."""
        packed, batch = self._packed("message", message, self.first_bytes)
        return self._unpacked(self._core.write_first(packed.tobytes()), self.page_bytes, batch)

    def try_encode(self, cells: npt.ArrayLike, message: npt.ArrayLike, seed: int = 0) -> Encoded:
        """Writes messages over pages, as far as possible.

        `cells` has `page_bytes` bytes, `message` `message_bytes`, or a row of them a page; page i of a batch has `seed`
        + i, which the decoder does not need. Raises InputError for another type or shape.
        """
        pages, batch = self._packed("cells", cells, self.page_bytes)
        messages, others = self._packed("message", message, self.message_bytes)
        if batch != others:
            raise InputError(f"message: {others or 'one'} for {batch or 'one'} page(s); expected as many as pages")
        seed = _size("seed", seed, (1 << 64) - 1)
        encoded, tried, solved = self._core.encode(pages.tobytes(), messages.tobytes(), seed, self.jobs)
        attempts = np.array(tried, np.uint32).reshape(batch)
        equations = np.array(solved, np.uint32).reshape(batch)
        return Encoded(self._unpacked(encoded, self.page_bytes, batch), np.asarray(attempts > 0), attempts, equations)

    def encode(self, cells: npt.ArrayLike, message: npt.ArrayLike, seed: int = 0) -> Bytes:
        """As `try_encode`, but raises EncodingFailed if a message cannot be written over its page."""
        encoded = self.try_encode(cells, message, seed)
        failed = int(encoded.ok.size - np.count_nonzero(encoded.ok))
        if failed:
            raise EncodingFailed(
                f"code {self.name}: {failed} of {encoded.ok.size} page(s) cannot take their message; expected spare "
                "that is erased, about half of the data cells at 1 and enough spare (see spare_needed)"
            )
        return encoded.cells

    def decode(self, cells: npt.ArrayLike) -> Bytes:
        """The messages in pages, `page_bytes` bytes or a row of them a page. Raises InputError for another shape."""
        pages, batch = self._packed("cells", cells, self.page_bytes)
        return self._unpacked(self._core.decode(pages.tobytes(), self.jobs), self.message_bytes, batch)

    def failure_rate(self, trials: int, seed: int = 0, dirty: float = 0.5, scramblings: int = 1) -> float:
        """The share of random messages that cannot be written over random first writes, measured on all cores.

        Each written message is read back and compared. The standard error is sqrt(rate (1 - rate) / trials). Trial i
        depends on `seed` and i alone; `dirty` is the share of zeros in the first write, so of stuck cells for all codes
        but `table`; of `scramblings` of a first write the one with most writable cells is taken. Raises InputError for
        a number out of range.
        """
        if trials < 1 or not 0 <= dirty <= 1:
            raise InputError(f"{trials} trials, dirty {dirty}: expected a trial or more, and a share from 0 to 1")
        if not 1 <= scramblings <= 256:
            raise InputError(f"{scramblings} scramblings: expected 1 to 256")
        seed = _size("seed", seed, (1 << 64) - 1)
        step = _BLOCK * self.jobs
        failed = 0
        for begin in range(0, trials, step):
            failed += self._core.measure(begin, min(begin + step, trials), seed, dirty, scramblings, self.jobs)[0]
        return failed / trials

    def _packed(self, name: str, given: npt.ArrayLike, size: int) -> tuple[Bytes, tuple[int, ...]]:
        """The array as bytes, and the shape of its batch: () for one page, (pages,) for more."""
        array: npt.NDArray[Any] = np.asarray(given)
        expected = size * 8 if self.bits else size
        if array.ndim not in (1, 2) or array.shape[-1] != expected or array.dtype not in (np.uint8, np.bool_):
            what = "cells or bits" if self.bits else "bytes"
            raise InputError(
                f"{name}: an array of {array.dtype} with shape {array.shape}; expected uint8 with shape ({expected},) "
                f"or (pages, {expected}), {what}"
            )
        if not self.bits and array.dtype == np.bool_:
            raise InputError(f"{name}: an array of bool; expected uint8, 8 cells a byte, or a code made with bits=True")
        if self.bits:
            if array.dtype == np.uint8 and array.size and int(array.max()) > 1:
                raise InputError(
                    f"{name}: an element of {array.max()}; expected 0 or 1, as the code was made with bits=True"
                )
            array = np.packbits(array, axis=-1, bitorder="little")
        return array, array.shape[:-1]

    def _unpacked(self, raw: bytes, size: int, batch: tuple[int, ...]) -> Bytes:
        array = np.frombuffer(raw, np.uint8).reshape(*batch, size)
        return np.unpackbits(array, axis=-1, bitorder="little") if self.bits else array.copy()
