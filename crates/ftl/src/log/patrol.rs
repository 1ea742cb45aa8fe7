//! Patrol: while the host is idle, what is stored is read page by page, so that a block is refreshed before a read
//! of the host fails for good.
//!
//! All pages of the drive have their turn in `ftl.patrol`, evenly over that time, and those that hold valid units are read then, or as soon
//! as the host is idle; of what is late by more than that time a round is left out. One page is read at a time. A block of which a read
//! needs `ecc.refresh_retries` steps is due, and is refreshed at once, where there is room. Ignored: pages that are being moved, and reads
//! of erased blocks.

use super::Log;
use super::blocks::BlockState;
use crate::log::map::Map;
use palimpsest_flash::nand::{Flash, SubpageMask, first_subpages};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Cause, Io, Read};

/// How far the patrol has come.
#[derive(Default)]
pub(super) struct Patrol {
    /// Time of a round; 0: there is no patrol.
    round: Nanos,
    /// Pages of the drive.
    pages: u32,
    /// When the present round began, and the page that is next.
    begun: Nanos,
    next: u32,
}

impl Patrol {
    /// Of a drive of `pages` pages, each of which has its turn once in `round`.
    pub fn new(round: Nanos, pages: u32) -> Self {
        Patrol { round, pages, begun: 0, next: 0 }
    }

    /// The turn of the next page.
    fn turn(&self) -> Nanos {
        self.begun + (u128::from(self.round) * u128::from(self.next) / u128::from(self.pages)) as Nanos
    }

    fn advance(&mut self) {
        self.next += 1;
        if self.next == self.pages {
            (self.begun, self.next) = (self.begun + self.round, 0);
        }
    }
}

impl<M: Map> Log<M> {
    /// When the next page is to be read; `None` without a patrol.
    pub fn patrol_at(&self) -> Option<Nanos> {
        (self.patrol.round > 0).then(|| self.patrol.turn())
    }

    /// The turns until now are over: reads the next page that holds anything, or refreshes what such a read found. False where nothing was done.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    pub fn patrol(&mut self, io: &mut Io) -> Flash<bool> {
        if io.nand().has_due() && self.refresh(io)? {
            return Ok(true);
        }
        let late = io.now().saturating_sub(self.patrol.turn());
        self.patrol.begun += late / self.patrol.round * self.patrol.round;
        while self.patrol.turn() <= io.now() {
            let ppn = self.patrol.next;
            self.patrol.advance();
            let wanted = self.held(ppn);
            if wanted != 0 {
                io.read(Read { policy: self.read, ..Read::new(ppn, wanted, Cause::Patrol) })?;
                return Ok(true);
            }
        }
        // The next turn that is worth waiting for; a drive that holds nothing has one a round.
        for _ in 0..self.patrol.pages {
            if self.held(self.patrol.next) != 0 {
                break;
            }
            self.patrol.advance();
        }
        Ok(false)
    }

    /// The subpages of page `ppn` that hold valid units, in a block that is closed or of the fixed share of the fast cache.
    fn held(&self, ppn: u32) -> SubpageMask {
        let (per_page, width) = (self.shape.units_per_page, self.shape.unit_subpages);
        let (block, page) = (ppn / self.shape.pages_per_block, ppn % self.shape.pages_per_block);
        if !matches!(self.frontiers.blocks.state(block), BlockState::Closed | BlockState::Aside) {
            return 0;
        }
        let units = self.frontiers.blocks.valid_bits(block, page * per_page, per_page);
        if width == 1 || units == 0 { units } else { first_subpages(width * per_page) }
    }
}
