//! Planes of a die that has failed: the log writes to them no more. The first program or erase that fails there tells it so.
//!
//! What such a plane holds stays mapped where it is: reads of it fail until the host writes it again, so nothing that is lost takes space
//! elsewhere. Erased blocks are retired, open ones are closed, and cleaning passes the plane by, as it finds no room in it; what waits
//! in memory to be moved there goes to another plane.

use super::Log;
use super::frontiers::Frontiers;
use crate::log::map::Map;
use palimpsest_ftl_api::plan::Io;

impl Frontiers {
    /// Nothing is written to `plane` any more. Returns how many blocks are retired.
    fn lose_plane(&mut self, plane: u32) -> u64 {
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
}

impl<M: Map> Log<M> {
    /// A program of `block` failed: whether that is because its die has; then none of its planes is written to any more.
    #[cold]
    pub(super) fn lose_die_of(&mut self, io: &Io, block: u32) -> bool {
        let Some(planes) = io.nand().planes_lost_with(block) else { return false };
        for plane in planes {
            self.counters.retired += self.frontiers.lose_plane(plane);
        }
        true
    }

    /// After a power cut: `block` is of a die that has failed.
    pub(super) fn adopt_dead(&mut self, io: &Io, block: u32, written: &mut Vec<u32>) {
        let plane = io.geometry().plane_of_block(block);
        self.frontiers.rotation.pass_by(plane);
        let cached = self.frontiers.fixed.holds(block);
        if cached {
            self.frontiers.fixed.drop_block(plane, block);
        } else {
            self.frontiers.blocks.open_this(block);
        }
        if io.nand().next_page(block) == 0 || io.nand().is_torn(block) {
            self.frontiers.retire(plane, block);
            return;
        }
        if io.tables().is_none() {
            self.mark_valid(io, block);
        }
        written.push(block);
    }
}
