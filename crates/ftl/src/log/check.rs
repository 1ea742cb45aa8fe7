//! Checks of a log against itself and against flash. Slow: for tests and the end of a run.

use super::Log;
use super::open_pages::HOLE;
use crate::log::map::{IN_OPEN_PAGE, Map, UNMAPPED};
use palimpsest_flash::nand::{Nand, first_subpages};
use palimpsest_ftl_api::plan::Io;

/// Distance in units between the prefetch of a unit's flash state and the comparison.
const AHEAD: u32 = 32;
/// Drives with more units than this exceed the CPU caches: the check prefetches, and tries the order of flash after
/// this many scattered units.
const FEW: u32 = 1 << 16;

impl<M: Map> Log<M> {
    /// Checks that each unit is at the place in the map, and that no other unit is valid.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&mut self, io: &Io) -> Result<(), String> {
        self.frontiers.check()?;
        self.map.check(io.nand())?;
        self.check_passes(io.nand())?;
        self.check_open()?;
        let (mut copies, mut scattered, units) = (0u64, 0, self.map.units());
        let mut unit = self.map.next_placed(0);
        while unit < units {
            if units > FEW
                && units - unit > AHEAD
                && let ahead = self.on_flash(unit + AHEAD)
                && ahead != UNMAPPED
            {
                io.nand().prefetch_logical(ahead * self.shape.unit_subpages);
                let (block, index) = self.shape.per_block.split(ahead);
                self.frontiers.blocks.prefetch(block, index);
            }
            let entry = self.map.locate(unit);
            let whole = self.whole_page_at(io.nand(), unit, entry);
            copies += u64::from(whole);
            scattered += u32::from(whole == 0);
            // The order of flash is faster from here on, but finds no reason: on failure the slow check continues.
            if whole == 0 && scattered == FEW && self.is_sound(io) {
                return Ok(());
            }
            if whole == 0 {
                copies += u64::from(self.check_unit(io.nand(), unit, entry)?);
            }
            unit = self.map.next_placed(unit + whole.max(1));
        }
        let counts = (0..io.geometry().blocks()).map(|block| u64::from(self.frontiers.blocks.valid_count(block)));
        let valid: u64 = counts.sum();
        if valid != copies {
            return Err(format!("{copies} units are mapped to flash but {valid} are valid"));
        }
        Ok(())
    }

    /// Checks that the map places each unit of an open page there: a slot that a later write has replaced is a hole.
    fn check_open(&self) -> Result<(), String> {
        for open in 0..self.open.len() {
            let first = self.open.next_entry(open) - self.open.filled(open);
            for (entry, slot) in (first..).zip(&self.open.page(open).slots) {
                if slot.unit != HOLE && self.map.locate(slot.unit) != entry {
                    return Err(format!("open page {open} holds unit {}, which is mapped elsewhere", slot.unit));
                }
            }
        }
        Ok(())
    }

    /// True if [`Self::check`] finds nothing: each valid unit of flash agrees with the map, and the counts agree.
    #[cold]
    fn is_sound(&self, io: &Io) -> bool {
        let mut valid = 0;
        for block in 0..io.geometry().blocks() {
            match self.sound_units(io, block) {
                Some(units) => valid += u64::from(units),
                None => return false,
            }
        }
        let mut copies = 0;
        for unit in 0..self.map.units() {
            copies += match self.map.locate(unit) {
                UNMAPPED => 0,
                entry if entry < IN_OPEN_PAGE => 1,
                entry if self.open.slot(entry).unit != unit => return false,
                entry => u64::from(self.open.slot(entry).previous != UNMAPPED),
            };
        }
        copies == valid
    }

    /// The number of valid units of `block`; `None` if one disagrees with the map.
    fn sound_units(&self, io: &Io, block: u32) -> Option<u32> {
        let (blocks, per_block) = (&self.frontiers.blocks, self.shape.units_per_block);
        let words = if blocks.valid_count(block) > 0 { per_block.div_ceil(64) } else { 0 };
        for word in 0..words {
            self.prefetch_word(io, block, word);
            let mut valid = blocks.valid_word(block, word);
            while valid != 0 {
                let physical = block * per_block + word * 64 + valid.trailing_zeros();
                valid &= valid - 1;
                let unit = self.shape.unit_at(io.nand(), physical).filter(|&unit| unit < self.map.units())?;
                if self.on_flash(unit) != physical {
                    return None;
                }
            }
        }
        Some(blocks.valid_count(block))
    }

    /// Checks `unit` with the map entry `entry`. True if the unit is on flash.
    fn check_unit(&self, nand: &Nand, unit: u32, entry: u32) -> Result<bool, String> {
        let mut physical = entry;
        if entry != UNMAPPED && entry >= IN_OPEN_PAGE {
            let slot = self.open.slot(entry);
            if slot.unit != unit {
                return Err(format!("unit {unit} is said to be in an open page that holds {}", slot.unit));
            }
            physical = slot.previous;
        }
        if physical == UNMAPPED {
            return Ok(false);
        }
        let (block, index) = self.shape.per_block.split(physical);
        if !self.frontiers.blocks.is_valid(block, index) {
            return Err(format!("unit {unit} is mapped to {physical}, which is not valid"));
        }
        let found = self.shape.unit_at(nand, physical);
        if found != Some(unit) {
            return Err(format!("unit {unit} is mapped to {physical}, which holds {found:?}"));
        }
        Ok(true)
    }

    /// Number of units that fill a page in order from `unit` on, with `entry` as the first, if all are valid and agree
    /// with the map; else 0.
    #[inline]
    fn whole_page_at(&self, nand: &Nand, unit: u32, entry: u32) -> u32 {
        let per_page = self.shape.units_per_page;
        if self.shape.unit_subpages > 1 || self.passes.most > 1 || entry >= IN_OPEN_PAGE {
            return 0;
        }
        let (ppn, place) = self.shape.per_page.split(entry);
        if place != 0 {
            return 0;
        }
        let (block, first) = self.shape.per_block.split(entry);
        let whole = self.map.holds_run(unit, per_page, entry)
            && self.frontiers.blocks.valid_bits(block, first, per_page) == first_subpages(per_page)
            && nand.logical_of(ppn).len() == per_page as usize
            && (unit..).zip(nand.logical_of(ppn)).all(|(unit, &logical)| unit == logical);
        if whole { per_page } else { 0 }
    }
}

#[cfg(test)]
mod tests;
