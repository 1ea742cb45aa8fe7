//! Planes of a failed die: writes stop at the first program that fails there, and cleaning skips the planes.
//!
//! Data there stays mapped, occupies no space elsewhere, and is lost until the host writes again. Data that was being
//! moved when the die failed goes to other planes, with lost parts as lost.

use super::Mga;
use crate::log::blocks::BlockState;
use palimpsest_ftl_api::plan::Io;

impl Mga {
    /// Handles a failed program of `block`. If the die has failed, stops programs of all planes of the die and returns
    /// true.
    pub(super) fn lose_die_of(&mut self, io: &Io, block: u32) -> bool {
        let Some(planes) = io.nand().planes_lost_with(block) else { return false };
        let blocks_per_plane = io.geometry().blocks_per_plane;
        for plane in planes {
            self.rotation.pass_by(plane);
            let first = plane * blocks_per_plane;
            (first..first + blocks_per_plane).for_each(|block| self.lose_block(plane, block));
        }
        true
    }

    fn lose_block(&mut self, plane: u32, block: u32) {
        self.pages.close_block(block);
        match self.pages.blocks.state(block) {
            BlockState::Open => {
                self.space.drop_frontier(block);
                self.pages.blocks.close(block);
            }
            BlockState::Free => {
                self.pages.blocks.open_this(block);
                self.pages.blocks.retire(block);
                self.space.lose_block(plane);
                self.counters.retired += 1;
            }
            BlockState::Closed | BlockState::Victim | BlockState::Retired | BlockState::Aside => {}
        }
    }

    /// After a power cut: adopts `block` of a failed die.
    pub(super) fn adopt_dead(&mut self, io: &Io, block: u32, written: &mut Vec<u32>) {
        self.rotation.pass_by(io.geometry().plane_of_block(block));
        self.pages.blocks.open_this(block);
        let (first, used) = (block * io.geometry().pages_per_block, io.nand().next_page(block));
        if used == 0 || io.nand().is_torn(block) {
            self.pages.blocks.retire(block);
            return;
        }
        (first..first + used).for_each(|ppn| self.restore_page(io, ppn, true));
        written.push(block);
    }
}
