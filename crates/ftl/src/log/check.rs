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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Append;
    use crate::log::settings::{KEYS, LogSettings};
    use crate::maps::full::FullMap;
    use palimpsest_flash::geometry::Geometry;
    use palimpsest_flash::nand::data::{Data, Payload};
    use palimpsest_flash::nand::part::samples::slc;
    use palimpsest_flash::rng::Rng;
    use palimpsest_ftl_api::plan::{Cause, Gate};
    use palimpsest_ftl_api::settings::Settings;

    const UNITS: u32 = 400;

    fn written() -> (Log<FullMap>, Io) {
        let geometry = Geometry {
            channels: 2,
            chips_per_channel: 1,
            dies_per_chip: 1,
            planes_per_die: 1,
            blocks_per_plane: 12,
            pages_per_block: 8,
            subpages_per_page: 4,
            subpage_bytes: 4096,
        };
        let settings = LogSettings::new(&Settings::of_defaults("subpage", KEYS));
        let mut io = Io::new(Nand::new(geometry, slc(), Payload::Tag, None), false);
        let mut log = Log::new(&io, &settings, FullMap::new(UNITS), 1, true, 1);
        let mut rng = Rng::new(1, 1);
        for write in 0..UNITS + 321 {
            // The first in order, so that whole pages are consecutive; the rest at random, and the last is in an open page.
            let unit = if write < UNITS { write } else { rng.below(u64::from(UNITS) / 4) as u32 };
            let (cause, after, signal) = (Cause::Host, Gate::NONE, Gate::NONE);
            log.append(&mut io, 0, Append { unit, data: Data::new(1), cause, after, signal, holds: 1 }).expect("room");
        }
        log.check(&io).expect("nothing is wrong yet");
        (log, io)
    }

    fn place(log: &mut Log<FullMap>, unit: u32, entry: u32) {
        log.map.place(unit, entry);
    }

    /// Each of these is one wrong entry or bit.
    #[test]
    fn what_is_wrong_is_found() {
        let physical_of = |log: &Log<FullMap>, unit| Some(log.map.locate(unit)).filter(|&entry| entry < IN_OPEN_PAGE);
        let mut tried = [0; 6];
        for unit in 0..UNITS {
            for (damage, tried) in tried.iter_mut().enumerate() {
                let (mut log, io) = written();
                let other = (unit + 7) % UNITS;
                let (Some(one), Some(two)) = (physical_of(&log, unit), physical_of(&log, other)) else { continue };
                match damage {
                    0 => place(&mut log, unit, UNMAPPED),
                    1 => place(&mut log, unit, two),
                    2 => [(unit, two), (other, one)].into_iter().for_each(|(unit, at)| place(&mut log, unit, at)),
                    3 => log.invalidate(one),
                    4 => {
                        let entry = log.open.next_entry(0) - 1;
                        place(&mut log, unit, entry);
                    }
                    _ => {
                        let stale = |&at: &u32| {
                            let (block, index) = log.shape.per_block.split(at);
                            log.shape.unit_at(io.nand(), at).is_some() && !log.frontiers.blocks.is_valid(block, index)
                        };
                        let Some(at) = (one..one + 8).find(stale) else { continue };
                        log.validate(at);
                    }
                }
                assert!(log.check(&io).is_err(), "damage {damage} at unit {unit} is not found");
                *tried += 1;
            }
        }
        assert!(tried.iter().all(|&tried| tried > 10), "{tried:?}");
    }
}
