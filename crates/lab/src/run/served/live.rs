//! Live figures of a served drive: its present result and the states of all blocks. Ignored: requests in flight.

use super::super::summary;
use super::Served;
use crate::metrics::snapshots::{BlockMap, Snapshots};
use crate::metrics::summary::Summary;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::{TORN, UNWRITTEN};
use palimpsest_sim::engine::present::Present;

impl Served<'_> {
    /// The present result, without requests in flight.
    pub fn figures(&self) -> Summary {
        let (read, options) = (summary::TraceRead::default(), &self.session.options);
        let present = summary::outcome(&self.resolved, &self.session, options, read, self.precondition.clone()).summary;
        Summary { life: self.life(), ..present }
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

    /// Shape of the flash.
    pub fn geometry(&self) -> &Geometry {
        self.session.drive.io.nand.physical()
    }

    /// The flash operations that have not ended, in the order of planning.
    pub fn operations(&self) -> Vec<Present> {
        self.session.drive.engine.present()
    }

    /// The present state of all pages, with planned operations. Takes time in proportion to the pages of the drive.
    pub fn pages(&self) -> Pages {
        let (nand, geometry) = (&self.session.drive.io.nand, self.geometry());
        let width = geometry.subpages_per_page;
        let (blocks, cells) = (geometry.blocks() as usize, (geometry.pages() * u64::from(width)) as usize);
        let mut found = Pages {
            programs: vec![0; geometry.pages() as usize],
            logical: vec![UNWRITTEN; cells],
            is_newest: vec![false; cells],
            valid: None,
            erases: vec![0; blocks],
            bad: vec![false; blocks],
        };
        // The newest copy of each logical subpage: its sequence number, and its place on the drive.
        let mut newest = std::collections::BTreeMap::new();
        for ppn in 0..nand.all_pages() as u32 {
            let (block, page) = nand.place(ppn);
            let at = block * geometry.pages_per_block + page;
            found.programs[at as usize] = nand.programs(ppn);
            for subpage in 0..width {
                let (psn, place) = (ppn * width + subpage, (at * width + subpage) as usize);
                let logical = nand.logical(psn);
                found.logical[place] = logical;
                if logical < TORN {
                    let best = newest.entry(logical).or_insert((0, place));
                    *best = (*best).max((nand.sequence(psn), place));
                }
            }
        }
        newest.into_values().for_each(|(_, place)| found.is_newest[place] = true);
        for block in 0..nand.geometry().blocks() {
            for member in nand.members(block) {
                found.erases[member as usize] = nand.erases(block);
                found.bad[member as usize] = nand.is_bad(block);
            }
        }
        found.valid = self.valid(&found.is_newest);
        found
    }

    /// Valid subpages by block of the drive, if the layer counts them.
    fn valid(&self, is_newest: &[bool]) -> Option<Vec<u32>> {
        let nand = &self.session.drive.io.nand;
        let mut valid = vec![0; nand.geometry().blocks() as usize];
        let is_counted = self.session.drive.ftl.count_valid(&mut valid);
        // A layer counts the valid subpages of a superblock.
        let of_block = self.geometry().subpages_per_block() as usize;
        let newest = || is_newest.chunks(of_block).map(|of| of.iter().filter(|&&is_newest| is_newest).count() as u32);
        is_counted.then(|| if nand.has_stripes() { newest().collect() } else { valid })
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
    /// By block: valid subpages, on a drive with superblocks the newest ones; `None` if the layer does not count them.
    pub valid: Option<Vec<u32>>,
    /// By block: erases.
    pub erases: Vec<u32>,
    /// By block: whether the layer must not use it.
    pub bad: Vec<bool>,
}
