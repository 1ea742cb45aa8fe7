//! The checks of a log against itself and against flash. Slow: for tests and the end of a run.

use super::Log;
use crate::log::map::{IN_OPEN_PAGE, Map, UNMAPPED};
use palimpsest_flash::nand::{Nand, TORN, first_subpages};
use palimpsest_ftl_api::plan::Io;

/// What the map holds of the units of a page is fetched into the caches this many pages before it is compared.
const AHEAD: u32 = 8;

impl<M: Map> Log<M> {
    /// Checks that each unit is where the map says, and that nothing else is valid: each valid unit of flash is where the map says, and there
    /// are as many of them as units that the map says are on flash.
    ///
    /// # Errors
    /// What does not agree.
    pub fn check(&mut self, io: &Io) -> Result<(), String> {
        self.frontiers.check()?;
        self.map.check(io.nand())?;
        self.check_passes(io.nand())?;
        let mut valid = 0;
        for block in 0..io.geometry().blocks() {
            valid += u64::from(self.frontiers.blocks.valid_count(block));
            if self.frontiers.blocks.valid_count(block) > 0 {
                self.check_block(io.nand(), block)?;
            }
        }
        let copies = self.count_on_flash()?;
        if valid != copies {
            return Err(format!("{copies} units are mapped to flash but {valid} are valid"));
        }
        Ok(())
    }

    /// Units that the map says are on flash; those in open pages are where it says.
    fn count_on_flash(&self) -> Result<u64, String> {
        let (mut copies, mut wrong) = (0, Ok(()));
        self.map.each_placed(|unit, entry| {
            if entry < IN_OPEN_PAGE {
                copies += 1;
                return;
            }
            let slot = self.open.slot(entry);
            copies += u64::from(slot.previous != UNMAPPED);
            if slot.unit != unit {
                wrong = Err(format!("unit {unit} is said to be in an open page that holds {}", slot.unit));
            }
        });
        wrong.map(|()| copies)
    }

    /// Checks that the map says of each unit that `block` has valid that it is there.
    fn check_block(&self, nand: &Nand, block: u32) -> Result<(), String> {
        let (pages, per_page) = (self.shape.pages_per_block, self.shape.units_per_page);
        for page in 0..pages {
            let ppn = block * pages + page;
            if page + AHEAD < pages {
                let ahead = nand.logical_of(ppn + AHEAD).iter().step_by(self.shape.unit_subpages as usize);
                ahead
                    .filter(|&&logical| logical < TORN)
                    .for_each(|logical| self.prefetch_entry(self.shape.unit_of(*logical)));
            }
            let mut bits = self.frontiers.blocks.valid_bits(block, page * per_page, per_page);
            if bits == first_subpages(per_page) && self.holds_all(nand, ppn) {
                continue;
            }
            while bits != 0 {
                let physical = ppn * per_page + bits.trailing_zeros();
                bits &= bits - 1;
                let Some(unit) = self.shape.unit_at(nand, physical) else {
                    return Err(format!("physical unit {physical} is valid, and holds none"));
                };
                if unit >= self.map.units() || self.on_flash(unit) != physical {
                    return Err(format!(
                        "physical unit {physical} is valid, and the map does not say that {unit} is there"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether page `ppn` has consecutive units of a subpage each, and the map says so.
    fn holds_all(&self, nand: &Nand, ppn: u32) -> bool {
        let logical = nand.logical_of(ppn);
        let Some(&first) = logical.first() else { return false };
        self.shape.unit_subpages == 1
            && self.passes.most == 1
            && (first..).zip(logical).all(|(unit, &logical)| unit == logical)
            && self.map.holds_run(first, logical.len() as u32, ppn * self.shape.units_per_page)
    }
}
