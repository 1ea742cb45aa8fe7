//! The checks of a log against itself and against flash. Slow: for tests and the end of a run.

use super::Log;
use crate::log::map::{IN_OPEN_PAGE, Map, UNMAPPED};
use palimpsest_ftl_api::plan::Io;

/// What flash holds of a unit is fetched into the caches this many units before it is compared.
const AHEAD: u32 = 32;

impl<M: Map> Log<M> {
    /// Checks that each unit is where the map says, and that nothing else is valid.
    ///
    /// # Errors
    /// What does not agree.
    pub fn check(&mut self, io: &Io) -> Result<(), String> {
        self.frontiers.check()?;
        self.map.check(io.nand())?;
        self.check_passes(io.nand())?;
        let mut copies = 0u64;
        let units = self.map.units();
        for unit in 0..units {
            if unit + AHEAD < units
                && let ahead = self.on_flash(unit + AHEAD)
                && ahead != UNMAPPED
            {
                io.nand().prefetch_logical(ahead * self.shape.unit_subpages);
            }
            let entry = self.map.locate(unit);
            if entry != UNMAPPED && entry >= IN_OPEN_PAGE {
                let holds = self.open.slot(entry).unit;
                if holds != unit {
                    return Err(format!("unit {unit} is said to be in an open page that holds {holds}"));
                }
            }
            let physical = self.on_flash(unit);
            if physical == UNMAPPED {
                continue;
            }
            copies += 1;
            let (block, index) = self.shape.per_block.split(physical);
            if !self.frontiers.blocks.is_valid(block, index) {
                return Err(format!("unit {unit} is mapped to {physical}, which is not valid"));
            }
            let found = self.shape.unit_at(io.nand(), physical);
            if found != Some(unit) {
                return Err(format!("unit {unit} is mapped to {physical}, which holds {found:?}"));
            }
        }
        let counts = (0..io.geometry().blocks()).map(|block| u64::from(self.frontiers.blocks.valid_count(block)));
        let valid: u64 = counts.sum();
        if valid != copies {
            return Err(format!("{copies} units are mapped to flash but {valid} are valid"));
        }
        Ok(())
    }
}
