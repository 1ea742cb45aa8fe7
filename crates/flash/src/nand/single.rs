//! Blocks whose cells hold one bit each: for a while, or always, as the fast cache of TLC and QLC does. Times depend on it, and of blocks that
//! always do so what they endure (`part.endurance_slc`): they fail by that, and their bits go wrong as those of a block that is as much younger.
//! Ignored: that single bits wear the cells of other blocks less, and take less energy.

use super::Nand;

impl Nand {
    /// Whether the cells of `block` hold one bit each.
    #[inline]
    pub fn is_single(&self, block: u32) -> bool {
        self.blocks[block as usize].single
    }

    /// The first `blocks` blocks of each plane always hold one bit a cell. Before anything is written.
    pub fn hold_single(&mut self, blocks: u32) {
        self.always_single = blocks;
        let gain = f64::from(self.part.endurance_slc) / f64::from(self.part.endurance);
        let per_plane = self.geometry.blocks_per_plane;
        for (_, endures) in (0..).zip(&mut self.endurances).filter(|&(block, _): &(u32, _)| block % per_plane < blocks)
        {
            *endures = (f64::from(*endures) * gain).round().clamp(1.0, f64::from(u32::MAX)) as u32;
        }
    }

    /// Whether the cells of `block` always hold one bit each.
    #[inline]
    pub fn is_always_single(&self, block: u32) -> bool {
        block % self.geometry.blocks_per_plane < self.always_single
    }

    /// Blocks of each plane that always hold one bit a cell.
    pub fn always_single(&self) -> u32 {
        self.always_single
    }

    /// Erases of `block`, as many as wear a block with all its bits as much.
    pub(super) fn worn(&self, block: u32) -> f64 {
        let erases = f64::from(self.erases(block));
        match self.is_always_single(block) {
            true => erases * f64::from(self.part.endurance) / f64::from(self.part.endurance_slc),
            false => erases,
        }
    }

    /// A page of the block of `ppn` is programmed next, with one bit a cell or with all.
    #[inline]
    pub fn note_single(&mut self, ppn: u32, single: bool) {
        let block = self.split(ppn).0;
        self.blocks[block as usize].single = single;
    }
}
