//! Failed blocks, which are evacuated and retired, and planes of failed dies.
//!
//! Writes to a die stop at the first program that fails there, and cleaning skips its planes. Data there stays mapped,
//! occupies no space elsewhere, and is lost until the host writes again. Data that was being moved when the die failed
//! goes to other planes, with lost parts as lost.

use super::Mga;
use palimpsest_flash::nand::Flash;
use palimpsest_ftl_api::plan::{Gate, Io};

impl Mga {
    /// Stops programs of `block` after a failed program; valid data is moved later. If the die has failed, stops
    /// programs of all blocks of the die.
    #[cold]
    pub(super) fn drop_block(&mut self, io: &Io, block: u32) {
        self.disturbed = true;
        if self.lose_die_of(io, block) {
            return;
        }
        self.pages.close_block(block);
        self.pages.space.drop_block(io.geometry().plane_of_block(block), block);
        self.counters.retired += 1;
        self.failed.push(block);
    }

    /// Handles a failed program of `block`. If the die has failed, stops programs of all planes of the die and returns
    /// true. Data there stays mapped, and is lost until the host writes again.
    fn lose_die_of(&mut self, io: &Io, block: u32) -> bool {
        let Some(planes) = io.nand().planes_lost_with(block) else { return false };
        let of_plane = self.collector.blocks_per_plane;
        for plane in planes {
            (plane * of_plane..(plane + 1) * of_plane).for_each(|block| self.pages.close_block(block));
            self.counters.retired += self.pages.space.lose_plane(plane);
        }
        true
    }

    /// Moves valid data out of failed blocks, and retires the blocks.
    #[inline]
    pub(super) fn evacuate_failed(&mut self, io: &mut Io) -> Flash<()> {
        while let Some(block) = self.failed.pop() {
            self.collector.safe = Gate::NONE;
            let plane = block / self.collector.blocks_per_plane;
            self.move_valid(io, plane, Some(block), None, true)?;
            self.frontiers().retire(plane, block);
        }
        Ok(())
    }
}
