//! The ledger's records of physical subpages and blocks: the content, program and origin of each subpage, the last
//! change of each block, and reads that have not ended.
//!
//! Ignored: operations that ended before the ledger was restarted.

use palimpsest_flash::pieces::Pieces;
use std::collections::VecDeque;

pub(super) struct Cells {
    /// Content, program and origin of each physical subpage; zeros if programmed before the ledger was restarted.
    subpages: Pieces<[u64; 3]>,
    /// The last program or erase of each block; 0: none.
    changes: Vec<u64>,
    /// Of each block, the place of the last read, counted from the first read of the run; 0: none.
    last_reads: Vec<u64>,
    /// Reads from the first operation on that has not ended: number in the plan, and place of the read of the same
    /// block before.
    reads: VecDeque<(u64, u64)>,
    /// Place of the first of `reads`.
    first_read: u64,
}

impl Cells {
    pub fn new(subpages: usize) -> Self {
        Cells {
            subpages: Pieces::new(subpages),
            changes: Vec::new(),
            last_reads: Vec::new(),
            reads: VecDeque::new(),
            first_read: 1,
        }
    }

    pub fn clear(&mut self) {
        self.subpages.clear();
        self.changes.clear();
        self.last_reads.clear();
        self.reads.clear();
        self.first_read = 1;
    }

    #[inline]
    fn of(&self, psn: u32) -> [u64; 3] {
        self.subpages.get(psn as usize)
    }

    /// Number of the content of `psn`; 0 if programmed before the ledger was restarted.
    #[inline]
    pub fn content(&self, psn: u32) -> u64 {
        self.of(psn)[0]
    }

    /// Origin of the data of `psn`; 0 if programmed before the ledger was restarted.
    #[inline]
    pub fn origin(&self, psn: u32) -> u32 {
        self.of(psn)[2] as u32
    }

    /// Records that operation `order` programs `content` with data of `origin` in physical subpage `psn`.
    #[inline]
    pub fn program(&mut self, psn: u32, content: u64, order: u64, origin: u32) {
        *self.subpages.at(psn as usize) = [content, order, origin.into()];
    }

    /// Records that operation `order` reads the physical subpages `psns` of `block`. Appends to `stored` the programs,
    /// from number `from` on, that stored them.
    #[inline]
    pub fn read(
        &mut self,
        block: u32,
        psns: impl Iterator<Item = u32>,
        (order, from): (u64, u64),
        stored: &mut Vec<u64>,
    ) {
        while self.reads.front().is_some_and(|&(first, _)| first < from) {
            self.reads.pop_front();
            self.first_read += 1;
        }
        let place = self.first_read + self.reads.len() as u64;
        let before = std::mem::replace(of_block(&mut self.last_reads, block), place);
        self.reads.push_back((order, before));
        let mut last = 0;
        for by in psns.map(|psn| self.of(psn)[1]).filter(|&by| by >= from.max(1)) {
            if by != last {
                stored.push(by);
                last = by;
            }
        }
    }

    /// Records that operation `order` programs or erases `block`. Returns the planned change before, if its number is
    /// at least `from`.
    #[inline]
    pub fn change(&mut self, block: u32, order: u64, from: u64) -> Option<u64> {
        let before = std::mem::replace(of_block(&mut self.changes, block), order);
        Some(before).filter(|&before| before >= from.max(1))
    }

    /// Moves the reads of `block` from number `from` on to the end of `to`, because the next operation changes the
    /// content and must follow them.
    pub fn take_reads(&mut self, block: u32, from: u64, to: &mut Vec<u64>) {
        let first = to.len();
        let mut place = std::mem::take(of_block(&mut self.last_reads, block));
        while place >= self.first_read {
            let (order, before) = self.reads[(place - self.first_read) as usize];
            if order < from {
                break;
            }
            to.push(order);
            place = before;
        }
        to[first..].reverse();
    }
}

/// The entry of `block`.
#[inline]
fn of_block(entries: &mut Vec<u64>, block: u32) -> &mut u64 {
    if entries.len() <= block as usize {
        entries.resize(block as usize + 1, 0);
    }
    &mut entries[block as usize]
}
