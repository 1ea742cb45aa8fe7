//! Blocks with one bit a cell: temporarily, or always, as in the fast cache of MLC, TLC and QLC parts. Times depend on
//! the mode. Blocks that always hold one bit endure `part.endurance_slc` erases, and their bit errors grow in
//! proportion.
//!
//! Ignored: less wear and energy of single bits in other blocks.

use super::Nand;

impl Nand {
    /// Whether the cells of `block` hold one bit each now.
    #[inline]
    pub fn is_single(&self, block: u32) -> bool {
        self.blocks[block as usize].single
    }

    /// Makes the first `blocks` blocks of each plane always hold one bit a cell. Must precede all writes.
    pub fn hold_single(&mut self, blocks: u32) {
        self.failures.always_single = blocks;
        let gain = f64::from(self.part.endurance_slc) / f64::from(self.part.endurance);
        let per_plane = self.geometry.blocks_per_plane;
        for (_, endures) in
            (0..).zip(&mut self.failures.endurances).filter(|&(block, _): &(u32, _)| block % per_plane < blocks)
        {
            *endures = (f64::from(*endures) * gain).round().clamp(1.0, f64::from(u32::MAX)) as u32;
        }
    }

    /// Whether the cells of `block` always hold one bit each.
    #[inline]
    pub fn is_always_single(&self, block: u32) -> bool {
        block % self.geometry.blocks_per_plane < self.failures.always_single
    }

    /// Blocks of each plane that always hold one bit a cell.
    pub fn always_single(&self) -> u32 {
        self.failures.always_single
    }

    /// Erases of `block`, scaled to the equivalent wear of a block with all bits.
    pub(super) fn worn(&self, block: u32) -> f64 {
        let erases = f64::from(self.erases(block));
        match self.is_always_single(block) {
            true => erases * f64::from(self.part.endurance) / f64::from(self.part.endurance_slc),
            false => erases,
        }
    }

    /// Sets the mode of the block of `ppn` before a program: one bit a cell, or all.
    #[inline]
    pub fn note_single(&mut self, ppn: u32, single: bool) {
        let block = self.split(ppn).0;
        self.blocks[block as usize].single = single;
    }
}
