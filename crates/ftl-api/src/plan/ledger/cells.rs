//! The ledger's records of physical subpages and blocks: the content, program and origin of each subpage, and how many
//! operations of each block are planned.
//!
//! Ignored: operations that ended before the ledger was restarted.

use super::Turn;
use palimpsest_flash::pieces::Pieces;

pub(super) struct Cells {
    /// Content, program and origin of each physical subpage; zeros if programmed before the ledger was restarted.
    subpages: Pieces<[u64; 3]>,
    /// Planned operations of each block.
    blocks: Vec<Planned>,
}

/// Numbers of planned operations of a block.
#[derive(Clone, Copy, Default)]
struct Planned {
    /// Programs and erases, and those of them that change the content.
    changes: u32,
    contents: u32,
    reads: u32,
}

impl Cells {
    pub fn new(subpages: usize) -> Self {
        Cells { subpages: Pieces::new(subpages), blocks: Vec::new() }
    }

    pub fn clear(&mut self) {
        self.subpages.clear();
        self.blocks.clear();
    }

    #[inline]
    fn of(&self, psn: u32) -> [u64; 3] {
        self.subpages.get(psn as usize)
    }

    #[inline]
    pub fn prefetch(&self, psn: u32) {
        self.subpages.prefetch(psn as usize);
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

    /// [`Self::content`] and [`Self::program_of`] of `psn`.
    #[inline]
    pub fn copied(&self, psn: u32) -> (u64, u64) {
        let [content, by, _] = self.of(psn);
        (content, by)
    }

    /// Number of the operation that programmed `psn`; 0 if programmed before the ledger was restarted.
    #[inline]
    pub fn program_of(&self, psn: u32) -> u64 {
        self.of(psn)[1]
    }

    /// Records the next operation of `block`, a read.
    #[inline]
    pub fn read(&mut self, block: u32) -> Turn {
        let planned = self.planned(block);
        planned.reads = planned.reads.wrapping_add(1);
        Turn { changes: planned.contents, reads: 0 }
    }

    /// Records the next operation of `block`, a program or erase, which may change the content.
    #[inline]
    pub fn change(&mut self, block: u32, content: bool) -> Turn {
        let planned = self.planned(block);
        let turn = Turn { changes: planned.changes, reads: if content { planned.reads } else { 0 } };
        planned.changes = planned.changes.wrapping_add(1);
        planned.contents = planned.contents.wrapping_add(content.into());
        turn
    }

    #[inline]
    fn planned(&mut self, block: u32) -> &mut Planned {
        if self.blocks.len() <= block as usize {
            self.blocks.resize(block as usize + 1, Planned::default());
        }
        &mut self.blocks[block as usize]
    }
}
