//! Rebuild after a die failure, on parts with parity: units of the failed die are read from the other pages of their
//! stripes, and moved.
//!
//! Each host page written moves one page, and so does each step while the host is idle.

use super::Log;
use crate::log::map::Map;
use palimpsest_flash::nand::Flash;
use palimpsest_ftl_api::plan::{Gate, Io, ParityIo};
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rebuild {
    next: u32,
    /// Failed dies when the rebuild began.
    dies: usize,
    /// Per block: closes when the copies of units moved out of the block are safe.
    safe: BTreeMap<u32, Gate>,
}

impl<M: Map> Log<M> {
    /// Moves the next page of a failed die. False if there is none, or no room.
    #[cold]
    pub(super) fn rebuild(&mut self, io: &mut Io) -> Flash<bool> {
        let dies = io.nand().failed_dies().len();
        if self.rebuild.dies != dies {
            (self.rebuild.next, self.rebuild.dies) = (0, dies);
            io.note_failure();
        }
        let (pages, per_block) = (io.geometry().pages() as u32, self.shape.pages_per_block);
        while self.rebuild.next < pages {
            let ppn = self.rebuild.next;
            let block = ppn / per_block;
            if self.frontiers.blocks.valid_count(block) == 0 {
                self.rebuild.next = (block + 1) * per_block;
                continue;
            }
            if self.valid_units(ppn) == 0 || !io.nand().is_unreadable(ppn) {
                self.rebuild.next += 1;
                continue;
            }
            let plane = io.geometry().plane_of_block(block);
            let of_map = M::IN_LOG && self.shape.unit_at(io.nand(), ppn).is_some_and(|unit| self.map.is_own(unit));
            let stream = if of_map { self.frontiers.own_stream() } else { self.frontiers.moved_stream(block) };
            if !self.ensure_space(io, plane, stream)? {
                return Ok(false);
            }
            self.rebuild.next += 1;
            // Cleaning may have moved the units.
            let units = self.valid_units(ppn);
            if units != 0 {
                let safe = if self.open.protected { Gate::NONE } else { io.gate() };
                let moved = self.move_alone(io, plane, ppn, units, safe);
                let safe = io.used(safe);
                if !safe.is_none() {
                    self.rebuild.safe.retain(|_, gate| io.is_open(*gate));
                    if let Some(before) = self.rebuild.safe.insert(block, safe) {
                        io.link(before, safe);
                    }
                }
                moved?;
                io.note_moved(Some(ppn));
            }
            return Ok(true);
        }
        io.note_moved(None);
        self.rebuild.next = 0;
        Ok(false)
    }

    /// The gate that the erase of `victim` must follow: `moved`, and the copies made by the rebuild.
    #[inline]
    pub(super) fn behind_rebuild(&self, io: &mut Io, victim: u32, moved: Gate) -> Gate {
        match self.rebuild.safe.get(&victim) {
            Some(&safe) => io.all_of(&[moved, safe]),
            None => moved,
        }
    }

    /// The valid units of page `ppn`, as bits.
    fn valid_units(&self, ppn: u32) -> u64 {
        let (per_page, per_block) = (self.shape.units_per_page, self.shape.pages_per_block);
        self.frontiers.blocks.valid_bits(ppn / per_block, ppn % per_block * per_page, per_page)
    }
}
