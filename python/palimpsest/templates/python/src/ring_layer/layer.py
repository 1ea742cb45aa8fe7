"""`ring`: a page map over one circular log, as the layer in Rust of this name."""

from collections import deque

import numpy as np

from palimpsest.layers import Io, Key, Layer, NoSpace


class Ring(Layer):
    """Page map over one circular log."""

    parity = True  # each page is programmed whole and once
    keys = {"ring.reserve": Key("150%", "erased pages that only cleaning may use, as a share of a block", least=1)}

    def __init__(self, io: Io) -> None:
        self.map = np.full(io.units, -1)  # logical page -> physical page
        self.free = deque(np.flatnonzero(io.block_states().bad == 0).tolist())  # erased blocks
        self.full: deque[int] = deque()  # written blocks, oldest first
        self.open = -1  # the block that is being written, or -1
        self.reserve = int(io.pages_per_block * io.settings["ring.reserve"])
        self.runs = self.erased = self.retired = 0

    def left(self, io: Io) -> int:
        """Pages that can still be written in the open block."""
        if self.open < 0 or io.is_bad(self.open):
            return 0
        return io.pages_per_block - io.next_page(self.open)

    def take(self, io: Io, most: int) -> np.ndarray:
        """The next pages to write, at most `most`, all in one block."""
        left = self.left(io)
        if left == 0:
            if not self.free:
                raise NoSpace
            if self.open >= 0:
                self.full.append(self.open)
            self.open, left = self.free.popleft(), io.pages_per_block
        first = (self.open + 1) * io.pages_per_block - left
        return np.arange(first, first + min(left, most))

    def room(self, io: Io) -> int:
        """Pages that can still be written without an erase."""
        return self.left(io) + len(self.free) * io.pages_per_block

    def make_room(self, io: Io) -> None:
        for _ in range(2 * io.blocks + 1):
            if self.room(io) > self.reserve:
                return
            if self.full:
                self.clean(io, self.full[0])
        raise NoSpace

    def clean(self, io: Io, victim: int) -> None:
        pages = np.arange(victim * io.pages_per_block, (victim + 1) * io.pages_per_block)
        units = io.logical(pages)
        valid = (units >= 0) & (self.map[units] == pages)
        pages, units, moved = pages[valid], units[valid], io.gate()
        while len(pages):
            targets = self.take(io, len(pages))
            done = io.copy(pages[: len(targets)], targets, signal=moved)
            self.map[units[:done]] = targets[:done]
            pages, units = pages[done:], units[done:]
        self.full.remove(victim)
        self.runs += 1
        if not io.is_bad(victim) and io.erase(victim, after=io.used(moved)):
            self.erased += 1
            self.free.append(victim)
        else:
            self.retired += 1

    def write(self, io: Io, units: range) -> None:
        for unit in units:
            self.make_room(io)
            while not io.write(page := self.take(io, 1)[0], unit, self.map[unit]):
                pass  # the program failed: again in another block
            self.map[unit] = page

    def read(self, io: Io, units: range) -> None:
        io.deliver(units, self.map[units.start : units.stop])

    def trim(self, io: Io, units: range) -> None:
        self.map[units.start : units.stop] = -1

    def relocate(self, io: Io, block: int) -> bool:
        if fits := block in self.full and (self.map // io.pages_per_block == block).sum() <= self.room(io):
            self.clean(io, block)
        return fits

    def recover(self, io: Io) -> None:
        for block in np.flatnonzero(io.block_states().torn & ~io.block_states().bad):
            io.erase(block)
        pages = np.arange(io.blocks * io.pages_per_block)
        units, sequence = io.logical(pages), io.sequence(pages)
        written = np.flatnonzero(units >= 0)
        written = written[sequence[written].argsort()]
        self.map = np.full(io.units, -1)
        self.map[units[written]] = written  # of several copies the newest, the last
        newest = np.where(units >= 0, sequence, 0).reshape(io.blocks, -1).max(axis=1)
        bad, _, used, _ = io.block_states()
        partly = np.flatnonzero((used > 0) & (used < io.pages_per_block) & (bad == 0))  # a cut may leave several
        self.open = int(partly[used[partly].argmin()]) if len(partly) else -1
        self.free = deque(np.flatnonzero((used == 0) & (bad == 0)).tolist())
        # Fewest valid pages first, because a cut during cleaning leaves little room.
        valid = ((units >= 0) & (self.map[units] == pages)).reshape(io.blocks, -1).sum(axis=1)
        oldest = np.lexsort((newest, valid)).tolist()
        self.full = deque(block for block in oldest if used[block] and block != self.open)

    def check(self, io: Io) -> None:
        mapped = np.flatnonzero(self.map >= 0)
        assert (io.logical(self.map[mapped]) == mapped).all(), "a logical page is mapped to a page that holds another"
        known = sorted([*self.free, *self.full, *([self.open] if self.open >= 0 else [])])
        assert len(known) == len(set(known)), "a block is in two lists"
        bad, _, used, _ = io.block_states()
        assert not set(np.flatnonzero(bad == 0)) - set(known), "a good block is in no list"
        assert not used[list(self.free)].any(), "a block counts as free but is not erased"

    def figures(self) -> dict[str, object]:
        tables = {"map": len(self.map) * 8}  # as the papers count an entry
        return {"tables": tables, "gc_runs": self.runs, "gc_erased": self.erased, "retired_blocks": self.retired}
