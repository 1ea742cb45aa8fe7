//! The map of a log: where each unit is. A log moves units and says where they are; how that is kept is up to the map.

use super::Log;
use palimpsest_flash::nand::{Flash, Nand};
use palimpsest_flash::state::State;
use palimpsest_ftl_api::LayerFigures;
use palimpsest_ftl_api::plan::{Gate, Io};

/// Entry of a unit that was never written, or was trimmed.
pub const UNMAPPED: u32 = u32::MAX;
/// Entries from here on name a slot of an open page.
pub const IN_OPEN_PAGE: u32 = u32::MAX - (1 << 16);
/// No unit may have this number or a larger one (flash marks padding with the largest numbers).
pub const MAX_UNITS: u32 = u32::MAX - (1 << 17);

/// Where the units of a log are: an entry is a physical unit, a slot of an open page from [`IN_OPEN_PAGE`] on, or [`UNMAPPED`].
pub trait Map: Send + Sized + State {
    /// Whether the map has units of its own in the log: they are pages, in blocks of their own.
    const IN_LOG: bool = false;

    /// Whether [`Self::place_run`] is all that happens when units are written that never were, and [`Self::place`] when one moves.
    const TAKES_RUNS: bool = false;

    /// Units, its own included.
    fn units(&self) -> u32;

    /// The entry of `unit`.
    fn locate(&self, unit: u32) -> u32;

    /// `unit` now is at `entry`. Returns where it was.
    fn place(&mut self, unit: u32, entry: u32) -> u32;

    /// The `count` units from `first` on, which were nowhere, are at the entries from `entry` on.
    fn place_run(&mut self, first: u32, count: u32, entry: u32) {
        for index in 0..count {
            self.place(first + index, entry + index);
        }
    }

    /// Whether the `count` units from `first` on are at the entries from `entry` on.
    fn holds_run(&self, first: u32, count: u32, entry: u32) -> bool {
        count <= self.units()
            && first <= self.units() - count
            && (0..count).all(|at| self.locate(first + at) == entry + at)
    }

    /// The first unit from `unit` on that may be somewhere; the number of units where none is.
    #[inline]
    fn next_placed(&self, unit: u32) -> u32 {
        unit
    }

    /// After a power cut: the newest copy of `unit` that was found so far is at `entry`.
    fn restore(&mut self, unit: u32, entry: u32) {
        self.place(unit, entry);
    }

    /// The power is back: no unit is found yet.
    fn clear(&mut self);

    /// Appends what a checkpoint has of the map; `place` is where a unit is on flash.
    fn save_places(&self, bytes: &mut Vec<u8>, place: impl Fn(u32) -> u32) {
        (0..self.units()).for_each(|unit| bytes.extend(place(unit).to_le_bytes()));
    }

    /// After a power cut: restores what [`Self::save_places`] appended, but for entries that are void.
    fn restore_places(&mut self, bytes: &[u8], is_void: impl Fn(u32) -> bool) {
        for (unit, entry) in (0..self.units()).zip(entries_in(bytes)) {
            if entry != UNMAPPED && !is_void(entry) {
                self.restore(unit, entry);
            }
        }
    }

    /// After a power cut: every unit is found that is not where it was at a checkpoint, of which entries may be void. False where that does not
    /// say where all are: then all of flash has to be read.
    fn restored(&mut self, _nand: &Nand, _is_void: impl Fn(u32) -> bool) -> bool {
        true
    }

    /// Asks for the entry of `unit`, which will be wanted soon.
    fn prefetch(&self, unit: u32);

    /// Whether `unit` is one of the map's own.
    #[inline]
    fn is_own(&self, _unit: u32) -> bool {
        false
    }

    /// Subpages of `unit` whose newest content the layer keeps outside the log.
    #[inline]
    fn outside(&self, _unit: u32) -> u32 {
        0
    }

    /// Closes when all subpages outside the log are programmed: a unit that moves without them follows it, as a power cut would
    /// leave no readable copy of them.
    #[inline]
    fn settled(&self) -> Gate {
        Gate::NONE
    }

    /// `unit` was programmed without the subpages `absent`.
    #[inline]
    fn programmed(&mut self, _unit: u32, _absent: u32) {}

    /// Brings the entry of `unit` into DRAM; the gate closes when it is there.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    #[inline]
    fn fetch(_log: &mut Log<Self>, _io: &mut Io, _unit: u32) -> Flash<Gate> {
        Ok(Gate::NONE)
    }

    /// Writes back what has no place in DRAM any more.
    ///
    /// # Errors
    /// As [`Self::fetch`].
    #[inline]
    fn settle(_log: &mut Log<Self>, _io: &mut Io) -> Flash<()> {
        Ok(())
    }

    /// Checks the map against itself and against what it keeps in flash.
    ///
    /// # Errors
    /// What does not agree.
    fn check(&self, _nand: &Nand) -> Result<(), String> {
        Ok(())
    }

    /// Adds its tables and figures to `report`.
    fn describe(&self, figures: &mut LayerFigures);
}

/// Entries as bytes have them.
pub fn entries_in(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(|entry| entry.try_into().map_or(UNMAPPED, u32::from_le_bytes))
}
