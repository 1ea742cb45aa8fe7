//! Refresh: a block of which a read needed many steps of a retry is moved and erased before reads of it fail for good (read reclaim too: its
//! bits may be wrong for their age, or for the reads of the block), or of which a power cut left pages that are read from copies. Done before
//! the next write, or while the host is idle.
//!
//! Ignored: blocks without reads, but where a [patrol](super::patrol) does.

use super::Log;
use crate::log::blocks::BlockState;
use crate::log::map::Map;
use palimpsest_flash::nand::Flash;
use palimpsest_ftl_api::plan::Io;

impl<M: Map> Log<M> {
    /// Moves the blocks that are due, where there is room; those that the reads of these moves make due wait for the next time. False where
    /// none was moved.
    #[cold]
    pub(super) fn refresh(&mut self, io: &mut Io) -> Flash<bool> {
        let mut refreshed = io.nand().is_rebuilding() && self.rebuild(io)?;
        let due: Vec<u32> = std::iter::from_fn(|| io.take_due()).collect();
        for block in due {
            let plane = io.geometry().plane_of_block(block);
            if self.frontiers.fixed.holds(block) {
                let folded = self.fold_this(io, plane, block)?;
                self.counters.refreshed += u64::from(folded);
                refreshed |= folded;
                continue;
            }
            let closed = self.frontiers.blocks.state(block) == BlockState::Closed;
            if closed && self.fits(io, plane, block, self.collector.slack) {
                self.counters.refreshed += 1;
                self.clean(io, block)?;
                refreshed = true;
            } else {
                io.delay_due(block);
            }
        }
        Ok(refreshed)
    }
}
