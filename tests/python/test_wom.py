"""The Python side of write-once-memory codes, on the native module: shapes, types, batches, errors."""

import numpy as np
import numpy.typing as npt
import pytest

import palimpsest as ps
from palimpsest import wom

pytestmark = pytest.mark.contract

RNG = np.random.default_rng(3)


def bytes_of(*shape: int) -> npt.NDArray[np.uint8]:
    return RNG.integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("name", wom.codes())
def test_a_batch_is_its_pages(name: str) -> None:
    code = wom.Code(name, 256, 512, jobs=3)
    pages = code.write_first(bytes_of(7, code.first_bytes))
    assert pages.shape == (7, code.page_bytes)
    messages = bytes_of(7, 256)
    done = code.try_encode(pages, messages, seed=40)
    assert not (done.cells & ~pages).any()
    assert done.ok.any()
    assert (code.decode(done.cells)[done.ok] == messages[done.ok]).all()
    assert (done.cells[~done.ok] == pages[~done.ok]).all()
    for row in range(7):
        one = code.try_encode(pages[row], messages[row], seed=40 + row)
        assert one.ok.shape == ()
        assert (one.cells == done.cells[row]).all()
        assert one.attempts == done.attempts[row]


def test_bits_are_the_bits_of_the_bytes() -> None:
    packed, single = wom.Code("fountain", 64, 128, 40), wom.Code("fountain", 64, 128, 40, bits=True)
    page, message = packed.write_first(bytes_of(128)), bytes_of(64)
    cells = single.encode(np.unpackbits(page, bitorder="little"), np.unpackbits(message, bitorder="little") != 0)
    assert cells.shape == (8 * 168,)
    assert (np.packbits(cells, bitorder="little") == packed.encode(page, message)).all()
    assert (np.packbits(single.decode(cells), bitorder="little") == message).all()


def test_failure_rates_depend_on_the_seed_alone() -> None:
    rates = [wom.Code("polar", 512, 1024, 100, jobs=jobs).failure_rate(700, seed=5) for jobs in (1, 4)]
    assert rates[0] == rates[1]
    assert 0 < rates[0] < 0.2
    assert wom.Code("polar", 512, 1024, 100).failure_rate(50, dirty=0.9) == 1
    assert wom.Code("table", 512, 1024).failure_rate(50, dirty=0.9) == 0


def test_spare_needed_grows_as_failures_shrink() -> None:
    for name in ("polar", "polar-repair", "fountain"):
        spares = [wom.spare_needed(name, 4096, 8192, failure) for failure in (0.1, 0.0025, 1e-6)]
        assert spares == sorted(spares)
        assert wom.Code(name).spare_bytes == spares[1]


def test_mistakes_are_reported() -> None:
    code = wom.Code("polar", 32, 64, 8)
    page = np.full(72, 255, np.uint8)
    for wrong in (page[:-1], page.astype(np.int64), page.astype(np.bool_), page.reshape(1, 1, 72)):
        with pytest.raises(ps.InputError, match="expected uint8"):
            code.decode(wrong)
    with pytest.raises(ps.InputError, match="expected as many as pages"):
        code.encode(page, bytes_of(2, 32))
    with pytest.raises(ps.InputError, match="expected 0 or 1"):
        wom.Code("polar", 32, 64, 8, bits=True).decode(np.full(8 * 72, 2, np.uint8))
    with pytest.raises(ps.InputError, match="expected one of table, polar"):
        wom.Code("polr")
    with pytest.raises(ps.InputError, match="expected a power of two"):
        wom.Code("polar", 32, 96)
    with pytest.raises(ps.InputError, match="expected a number"):
        wom.Code("polar", 32, 64, -1)
    with pytest.raises(wom.EncodingFailed, match="1 of 1 page"):
        code.encode(np.zeros(72, np.uint8), bytes_of(32))


def test_no_pages_are_no_pages() -> None:
    code = wom.Code("polar", 32, 64, 8)
    done = code.try_encode(np.zeros((0, 72), np.uint8), np.zeros((0, 32), np.uint8))
    assert done.cells.shape == (0, 72)
    assert code.decode(done.cells).shape == (0, 32)
