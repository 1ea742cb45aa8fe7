//! Planes of a failed die: the log stops writing to them at the first program or erase that fails there.
//!
//! Units there stay mapped: reads fail until the host writes the units again, so lost data occupies no space elsewhere.
//! Erased blocks are retired and open blocks closed. Cleaning skips the plane, because no unit fits there. Units in
//! memory that were to move there go to another plane.

use super::Log;
use super::frontiers::Frontiers;
use crate::log::map::Map;
use palimpsest_flash::nand::Nand;
use palimpsest_ftl_api::plan::Io;

impl Frontiers {
    /// Stops writes to `plane`. Returns the number of retired blocks.
    pub fn lose_plane(&mut self, plane: u32) -> u64 {
        self.rotation.pass_by(plane);
        self.close_all(plane);
        let cached = self.fixed.lose_plane(plane);
        cached.iter().for_each(|&block| self.retire(plane, block));
        let free = self.blocks.free_of(plane).in_order();
        for &block in &free {
            self.take_free(plane, block);
            self.set_marked(plane, block, false);
            self.retire(plane, block);
        }
        self.free_pages[plane as usize] = 0;
        (free.len() + cached.len()) as u64
    }

    /// After a power cut: adopts `block` of a failed die as an open block. False if the block holds no data.
    pub fn adopt_dead(&mut self, nand: &Nand, block: u32) -> bool {
        let plane = nand.geometry().plane_of_block(block);
        self.rotation.pass_by(plane);
        if self.fixed.holds(block) {
            self.fixed.drop_block(plane, block);
        } else {
            self.blocks.open_this(block);
        }
        let holds = nand.next_page(block) > 0 && !nand.is_torn(block);
        if !holds {
            self.retire(plane, block);
        }
        holds
    }
}

impl<M: Map> Log<M> {
    /// Handles a failed program of `block`. If the die has failed, stops writes to the planes of the die and returns
    /// true.
    #[cold]
    pub(super) fn lose_die_of(&mut self, io: &Io, block: u32) -> bool {
        let Some(planes) = io.nand().planes_lost_with(block) else { return false };
        for plane in planes {
            self.counters.retired += self.frontiers.lose_plane(plane);
        }
        true
    }
}
