//! Live figures of a served drive: its present result and the states of all blocks. Ignored: requests in flight.

use super::super::summary;
use super::Served;
use crate::metrics::snapshots::{BlockMap, Snapshots};
use crate::metrics::summary::Summary;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::TORN;
use palimpsest_sim::engine::present::Present;

impl Served<'_> {
    /// The present result, without requests in flight.
    pub fn figures(&self) -> Summary {
        let (read, options) = (summary::TraceRead::default(), &self.session.options);
        summary::outcome(&self.resolved, &self.session, options, read, self.precondition.clone()).summary
    }

    /// Data bytes programmed since preconditioning, planned programs included.
    pub fn programmed_bytes(&self) -> u64 {
        self.session.drive.io.counters.data_bytes - self.session.baseline.io.data_bytes
    }

    /// Blocks of a new drive beyond those that the logical capacity fills, and blocks that failed.
    pub fn spare_blocks(&self) -> (u64, u64) {
        let drive = &self.resolved.drive;
        let filled = drive.logical_pages().div_ceil(drive.geometry.pages_per_block.into());
        let spare = u64::from(drive.geometry.blocks()).saturating_sub(filled);
        (spare, self.session.drive.figures().retired_blocks)
    }

    /// The temperature of flash in degrees Celsius.
    pub fn celsius(&self) -> u32 {
        let cells = &self.resolved.drive.errors.cells;
        if cells.temperature > 0 { cells.temperature } else { cells.reference }
    }

    /// The present state of all blocks, with planned operations.
    pub fn blocks(&self) -> BlockMap {
        let drive = &self.session.drive;
        Snapshots::new(&self.resolved.drive.geometry).map(&drive.io.nand, &*drive.ftl)
    }

    /// Shape of the drive.
    pub fn geometry(&self) -> &Geometry {
        &self.resolved.drive.geometry
    }

    /// The flash operations that have not ended, in the order of planning.
    pub fn operations(&self) -> Vec<Present> {
        self.session.drive.engine.present()
    }

    /// The present state of all pages, with planned operations. Takes time in proportion to the pages of the drive.
    pub fn pages(&self) -> Pages {
        let (nand, geometry) = (&self.session.drive.io.nand, self.geometry());
        let mut valid = vec![0; geometry.blocks() as usize];
        let is_counted = self.session.drive.ftl.count_valid(&mut valid);
        let subpages = 0..geometry.subpages() as u32;
        let logical: Vec<u32> = subpages.clone().map(|psn| nand.logical(psn)).collect();
        // The newest copy of each logical subpage.
        let mut newest = std::collections::BTreeMap::new();
        for psn in subpages.filter(|&psn| logical[psn as usize] < TORN) {
            let place = newest.entry(logical[psn as usize]).or_insert(psn);
            if nand.sequence(psn) >= nand.sequence(*place) {
                *place = psn;
            }
        }
        let mut is_newest = vec![false; logical.len()];
        newest.into_values().for_each(|psn| is_newest[psn as usize] = true);
        Pages {
            programs: (0..geometry.pages() as u32).map(|page| nand.programs(page)).collect(),
            logical,
            is_newest,
            valid: is_counted.then_some(valid),
            erases: (0..geometry.blocks()).map(|block| nand.erases(block)).collect(),
            bad: (0..geometry.blocks()).map(|block| nand.is_bad(block)).collect(),
        }
    }
}

/// The state of all pages. Blocks, pages and subpages are in the order of their numbers.
#[derive(Debug)]
pub struct Pages {
    /// By page: programs since the erase.
    pub programs: Vec<u32>,
    /// By subpage: the logical number, or a mark of [`palimpsest_flash::nand`].
    pub logical: Vec<u32>,
    /// By subpage: the newest copy of a logical subpage. Stays true after a trim.
    pub is_newest: Vec<bool>,
    /// By block: valid subpages; `None` if the layer does not count them.
    pub valid: Option<Vec<u32>>,
    /// By block: erases.
    pub erases: Vec<u32>,
    /// By block: whether the layer must not use it.
    pub bad: Vec<bool>,
}
