//! Blocks whose cells hold one bit each for a while: the fast cache of TLC and QLC. Only times depend on it.

use super::Nand;

impl Nand {
    /// Whether the cells of `block` hold one bit each.
    #[inline]
    pub fn is_single(&self, block: u32) -> bool {
        self.blocks[block as usize].single
    }

    /// A page of the block of `ppn` is programmed next, with one bit a cell or with all.
    #[inline]
    pub fn note_single(&mut self, ppn: u32, single: bool) {
        let block = self.split(ppn).0;
        self.blocks[block as usize].single = single;
    }
}
