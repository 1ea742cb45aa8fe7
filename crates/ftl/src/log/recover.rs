//! After a power cut: the map from what is on flash, and the checks of a log against flash.
//!
//! Every subpage carries its logical number and the number of its program in its out-of-band area; the newest readable copy
//! of a unit wins. What was trimmed since its last program may come back, as the NVMe standard allows for deallocated
//! blocks. Open pages come back where the buffer is protected, and are lost where writes are acknowledged by programs.

use super::{Frontier, HOLE, IN_OPEN_PAGE, OpenPage, UNMAPPED, UnitLog};
use crate::log::blocks::{Blocks, NO_BLOCK};
use palimpsest_flash::nand::data::Payload;
use palimpsest_flash::nand::{Flash, Outcome};
use palimpsest_ftl_api::plan::{Cause, Erase, Io};

/// Open pages that survived a power cut.
pub struct Survivors(Vec<OpenPage>);

impl UnitLog {
    /// Rebuilds everything from flash. Blocks whose erase was cut off are erased again.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    pub fn recover(&mut self, io: &mut Io) -> Flash<()> {
        let survivors = self.recover_map(io);
        self.recover_blocks(io, survivors)
    }

    /// The first half of [`Self::recover`]: the map, and the open pages that survived. Nothing on flash changes yet, so a
    /// layer may say now what stands elsewhere.
    pub fn recover_map(&mut self, io: &Io) -> Survivors {
        assert_ne!(io.nand().payload(), Payload::None, "recovery needs the numbers that a payload keeps");
        let geometry = *io.geometry();
        let survivors = self.open.iter_mut().map(|page| std::mem::replace(page, OpenPage::new())).collect();
        self.oldest = None;
        self.failed.clear();
        self.emptying.clear();
        self.map.fill(UNMAPPED);
        self.frontiers.fill(Frontier { block: NO_BLOCK, next_page: 0 });
        self.elsewhere.fill(0);
        self.blocks = Blocks::new(&geometry, self.blocks.units_per_block(), |block| self.is_apart(block));
        self.free_pages.fill(0);
        for block in 0..geometry.blocks() {
            if !self.is_apart(block) {
                self.find_newest(io, block);
            }
        }
        Survivors(survivors)
    }

    /// After [`Self::recover_map`]: all of `unit` stands elsewhere.
    pub fn forget_recovered(&mut self, unit: u32) {
        self.map[unit as usize] = UNMAPPED;
    }

    /// The second half of [`Self::recover`]: blocks whose erase was cut off are erased, failed ones are evacuated.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    pub fn recover_blocks(&mut self, io: &mut Io, Survivors(survivors): Survivors) -> Flash<()> {
        let geometry = *io.geometry();
        if self.protected {
            // Before anything can fail: the power may be cut again.
            self.restore_open_pages(survivors);
        }
        let mut begun = Vec::new();
        for block in 0..geometry.blocks() {
            if !self.is_apart(block) {
                self.adopt(io, block, &mut begun)?;
            }
        }
        self.resume_frontiers(io, begun);
        for page in 0..self.open.len() as u32 {
            if self.open[page as usize].slots.len() as u32 == self.units_per_page {
                self.program_restored(io, page)?;
            }
        }
        self.evacuate_failed(io)
    }

    /// Blocks that were not written to their end are frontiers again: the emptiest ones, that of moved data first.
    fn resume_frontiers(&mut self, io: &Io, mut begun: Vec<u32>) {
        begun.sort_by_key(|&block| io.nand().next_page(block));
        for block in begun {
            let (plane, next_page) = (io.geometry().plane_of_block(block), io.nand().next_page(block));
            let streams = std::iter::once(self.moved_stream()).chain(0..self.moved_stream());
            let mut frontiers = streams.map(|stream| self.frontier(plane, stream));
            match frontiers.find(|&index| self.frontiers[index].block == NO_BLOCK) {
                Some(index) => {
                    self.frontiers[index] = Frontier { block, next_page };
                    self.free_pages[plane as usize] += self.pages_per_block - next_page;
                }
                None => self.blocks.close(block),
            }
        }
    }

    /// Programs an open page whose program was cut off, where that takes no free block if possible.
    fn program_restored(&mut self, io: &mut Io, page: u32) -> Flash<()> {
        let home = self.stream_of(page);
        let streams = self.settings.streams;
        let places = (0..io.geometry().planes()).flat_map(|plane| (0..streams).map(move |stream| (plane, stream)));
        let best = places.max_by_key(|&(plane, stream)| {
            let begun = self.frontiers[self.frontier(plane, stream)].block != NO_BLOCK;
            // Cleaning needs its own frontier the most; a block that must be opened becomes its frontier.
            let preferred = begun == (stream != self.moved_stream());
            (begun, self.blocks.free_count(plane), begun && stream == home, preferred, u32::MAX - plane)
        });
        let (plane, stream) = best.unwrap_or((0, home));
        self.program_open_at(io, plane, stream, page)
    }

    /// Lets the map point to the units of `block` that are newer than those it points to.
    fn find_newest(&mut self, io: &Io, block: u32) {
        let nand = io.nand();
        if nand.is_torn(block) {
            return;
        }
        let (per_block, width) = (self.blocks.units_per_block(), self.unit_subpages);
        for physical in block * per_block..(block + 1) * per_block {
            let Some(unit) = self.unit_at(nand, physical) else { continue };
            let entry = &mut self.map[unit as usize];
            if *entry == UNMAPPED || nand.sequence(physical * width) > nand.sequence(*entry * width) {
                *entry = physical;
            }
        }
    }

    /// Decides what becomes of `block`: free, closed, to be retired, or, with pages left, one of `begun`.
    fn adopt(&mut self, io: &mut Io, block: u32, begun: &mut Vec<u32>) -> Flash<()> {
        let geometry = *io.geometry();
        let plane = geometry.plane_of_block(block);
        let bad = io.nand().is_bad(block);
        if !bad && io.nand().is_torn(block) && io.erase(Erase::new(block, Cause::Gc))? == Outcome::Failed {
            return self.adopt(io, block, begun);
        }
        let used = io.nand().next_page(block);
        if used == 0 && !bad {
            self.free_pages[plane as usize] += self.pages_per_block;
            return Ok(());
        }
        self.blocks.open_this(block);
        self.mark_valid(io, block);
        if bad {
            self.blocks.abandon(block);
            self.failed.push(block);
            return Ok(());
        }
        if used < self.pages_per_block {
            begun.push(block);
        } else {
            self.blocks.close(block);
        }
        Ok(())
    }

    fn mark_valid(&mut self, io: &Io, block: u32) {
        let per_block = self.blocks.units_per_block();
        for unit in 0..per_block {
            let physical = block * per_block + unit;
            let Some(logical) = self.unit_at(io.nand(), physical) else { continue };
            let entry = self.map[logical as usize];
            let on_flash = if entry == UNMAPPED || entry < IN_OPEN_PAGE {
                entry
            } else {
                let (page, slot) = self.slot_of(entry);
                self.open[page].slots[slot].previous
            };
            if on_flash == physical {
                self.blocks.validate(block, unit);
            }
        }
    }

    fn restore_open_pages(&mut self, survivors: Vec<OpenPage>) {
        for (open, page) in survivors.into_iter().enumerate() {
            let mut restored = OpenPage { since: page.since, held: page.held, cause: page.cause, ..OpenPage::new() };
            for mut slot in page.slots {
                if slot.unit != HOLE {
                    let entry = IN_OPEN_PAGE + open as u32 * self.units_per_page + restored.slots.len() as u32;
                    slot.previous = std::mem::replace(&mut self.map[slot.unit as usize], entry);
                }
                restored.slots.push(slot);
            }
            self.open[open] = restored;
        }
        self.find_oldest();
    }

    /// Checks the log against itself and against flash. Slow: for tests and the end of a run.
    ///
    /// # Errors
    /// What does not agree.
    pub fn check(&mut self, io: &Io) -> Result<(), String> {
        self.blocks.check()?;
        let per_block = self.blocks.units_per_block();
        let mut copies = 0u64;
        for unit in 0..self.map.len() as u32 {
            let physical = match self.map[unit as usize] {
                entry if entry != UNMAPPED && entry >= IN_OPEN_PAGE => {
                    let (open, slot) = self.slot_of(entry);
                    let slot = self.open[open].slots[slot];
                    if slot.unit != unit {
                        return Err(format!("unit {unit} is said to stand in an open page that holds {}", slot.unit));
                    }
                    slot.previous
                }
                entry => entry,
            };
            if physical == UNMAPPED {
                continue;
            }
            copies += 1;
            if !self.blocks.is_valid(physical / per_block, physical % per_block) {
                return Err(format!("unit {unit} is mapped to {physical}, which is not valid"));
            }
            let found = self.unit_at(io.nand(), physical);
            if found != Some(unit) {
                return Err(format!("unit {unit} is mapped to {physical}, which holds {found:?}"));
            }
        }
        let valid: u64 = (0..io.geometry().blocks()).map(|block| u64::from(self.blocks.valid_count(block))).sum();
        if valid != copies {
            return Err(format!("{copies} units are mapped to flash but {valid} are valid"));
        }
        self.check_free_pages(io)
    }

    fn check_free_pages(&self, io: &Io) -> Result<(), String> {
        for plane in 0..io.geometry().planes() {
            let streams = 0..self.settings.streams;
            let frontiers = streams.map(|stream| self.frontiers[self.frontier(plane, stream)]);
            let at_frontiers: u32 = frontiers
                .filter(|frontier| frontier.block != NO_BLOCK)
                .map(|frontier| self.pages_per_block - frontier.next_page)
                .sum();
            let expected = self.blocks.free_count(plane) * self.pages_per_block + at_frontiers;
            if self.free_pages[plane as usize] != expected {
                return Err(format!(
                    "plane {plane} counts {} free pages, not {expected}",
                    self.free_pages[plane as usize]
                ));
            }
        }
        Ok(())
    }
}
