//! Refresh and patrol: the drive moves the data of a block before reads of the block become uncorrectable, on every
//! layer.
//!
//! A block is due when a read needed `ecc.refresh_retries` retry steps, because its data is old or the block was read
//! often. A block is also due when a power cut left pages that are read from copies. The layer relocates a due block
//! before the next write, or while the host is idle. A patrol reads all programmed pages once in `ftl.patrol`, evenly
//! over that time, while the host is idle. Turns that are late by more than a round are skipped. Ignored: erased
//! blocks.

use super::Drive;
use palimpsest_flash::nand::{Flash, TORN, UNWRITTEN};
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::select::ReadPolicy;
use palimpsest_ftl_api::plan::{Cause, Read};

/// The position of a patrol.
pub struct Patrol {
    /// Time of a round.
    round: Nanos,
    read: ReadPolicy,
    /// Pages of the drive.
    pages: u32,
    /// Start of the present round.
    begun: Nanos,
    /// The next page.
    next: u32,
}

impl Patrol {
    /// A patrol that reads each of `pages` pages once in `round`, by `read`.
    pub fn new(round: Nanos, pages: u32, read: ReadPolicy) -> Self {
        Patrol { round, read, pages, begun: 0, next: 0 }
    }

    /// Time at which the next page is due.
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

impl Drive {
    /// Starts `patrol`.
    pub fn set_patrol(&mut self, patrol: Patrol) {
        self.patrol = Some(patrol);
    }

    /// Time at which the patrol reads the next page; `None` without a patrol.
    pub fn patrol_at(&self) -> Option<Nanos> {
        self.patrol.as_ref().map(Patrol::turn)
    }

    /// Reads the next page with data, or relocates a block that such a read found due.
    pub(super) fn patrol_once(&mut self) -> Flash<()> {
        if self.refresh()? {
            return Ok(());
        }
        let (Some(mut patrol), now) = (self.patrol.take(), self.io.now()) else { return Ok(()) };
        let late = now.saturating_sub(patrol.turn());
        patrol.begun += late / patrol.round * patrol.round;
        let mut found = None;
        while found.is_none() && patrol.turn() <= now {
            let (ppn, wanted) = (patrol.next, self.held(patrol.next));
            patrol.advance();
            found = (wanted != 0).then(|| Read { policy: patrol.read, ..Read::new(ppn, wanted, Cause::Patrol) });
        }
        // Skip to the next page with data, so that the drive does not wait for empty ones. An empty drive has one turn
        // per round.
        for _ in 0..if found.is_none() { patrol.pages } else { 0 } {
            if self.held(patrol.next) != 0 {
                break;
            }
            patrol.advance();
        }
        self.patrol = Some(patrol);
        found.map_or(Ok(()), |read| self.io.read(read).map(|_| ()))
    }

    /// Subpages of page `ppn` that hold readable data, outside blocks reserved by the controller.
    fn held(&self, ppn: u32) -> u64 {
        let (nand, width) = (&self.io.nand, self.io.geometry().subpages_per_page);
        let block = nand.split(ppn).0;
        if nand.programs(ppn) == 0
            || nand.is_kept(block)
            || nand.is_bad(block)
            || nand.is_torn(block)
            || nand.is_dead(block)
        {
            return 0;
        }
        let holds = |index: &u32| !matches!(nand.logical(ppn * width + index), TORN | UNWRITTEN);
        (0..width).filter(holds).fold(0, |mask, index| mask | 1 << index)
    }

    /// Relocates due blocks as far as there is room. Blocks that become due by these moves must wait. Returns true if a
    /// block was relocated.
    #[cold]
    pub(super) fn refresh(&mut self) -> Flash<bool> {
        let due: Vec<u32> = std::iter::from_fn(|| self.io.nand.take_due()).collect();
        let mut refreshed = false;
        for block in due {
            let before = self.accesses();
            if self.ftl.relocate(&mut self.io, block)? {
                self.expect_relocated(block, before)?;
                self.io.counters.refreshed_blocks += 1;
                refreshed = true;
            } else {
                self.io.nand.delay_due(block);
            }
        }
        Ok(refreshed)
    }

    /// Flash operations so far, and reads of pages under way, which memory serves.
    fn accesses(&self) -> u64 {
        self.io.nand.operations() + self.io.counters.memory_reads.iter().sum::<u64>()
    }

    /// Checks that no valid data is left in `block`, which the layer says to have relocated; `before` are the accesses
    /// before. Units may wait in memory for their new page, in layers that count valid data and in those whose units
    /// are smaller than a page. Such a layer must at least have read.
    fn expect_relocated(&self, block: u32, before: u64) -> Flash<()> {
        let nand = &self.io.nand;
        let geometry = self.io.geometry();
        let pages = block * geometry.pages_per_block..(block + 1) * geometry.pages_per_block;
        if pages.into_iter().all(|page| self.held(page) == 0) {
            return Ok(());
        }
        let may_wait = self.ftl.unit_subpages() < geometry.subpages_per_page
            || self.ftl.count_valid(&mut vec![0; geometry.blocks() as usize]);
        if may_wait && self.accesses() > before { Ok(()) } else { Err(nand.not_relocated(block)) }
    }
}
