//! The interface of a log's map: the place of each unit. The log moves units and records their places; the map chooses
//! the storage.

use super::Log;
use palimpsest_flash::nand::{Flash, Nand};
use palimpsest_flash::state::State;
use palimpsest_ftl_api::LayerFigures;
use palimpsest_ftl_api::plan::{Gate, Io};

/// Entry of a unit that was never written, or was trimmed.
pub const UNMAPPED: u32 = u32::MAX;
/// Entries from here on name a slot of an open page.
pub const IN_OPEN_PAGE: u32 = u32::MAX - (1 << 16);
/// Unit numbers must be below this, because flash marks padding with the largest numbers.
pub const MAX_UNITS: u32 = u32::MAX - (1 << 17);

/// Places of a log's units. An entry is a physical unit, a slot of an open page from [`IN_OPEN_PAGE`] on, or
/// [`UNMAPPED`].
pub trait Map: Send + Sized + State {
    /// True if the map has units in the log: whole pages, in separate blocks.
    const IN_LOG: bool = false;

    /// True if [`Self::place_run`] does everything when new units are written, and [`Self::place`] when a unit moves.
    const TAKES_RUNS: bool = false;

    /// True if [`Self::place`] does everything when a unit moves that is not the map's.
    const MOVES_RUNS: bool = Self::TAKES_RUNS;

    /// Number of units, including the map's.
    fn units(&self) -> u32;

    /// The entry of `unit`.
    fn locate(&self, unit: u32) -> u32;

    /// Sets the entry of `unit`. Returns the previous entry.
    fn place(&mut self, unit: u32, entry: u32) -> u32;

    /// Sets the entries of `count` unmapped units from `first` on to `entry` and following.
    fn place_run(&mut self, first: u32, count: u32, entry: u32) {
        for index in 0..count {
            self.place(first + index, entry + index);
        }
    }

    /// True if the `count` units from `first` on have the entries from `entry` on.
    fn holds_run(&self, first: u32, count: u32, entry: u32) -> bool {
        count <= self.units()
            && first <= self.units() - count
            && (0..count).all(|at| self.locate(first + at) == entry + at)
    }

    /// The first unit from `unit` on that may be mapped, or the number of units.
    #[inline]
    fn next_placed(&self, unit: u32) -> u32 {
        unit
    }

    /// After a power cut: the newest copy of `unit` found so far is at `entry`.
    fn restore(&mut self, unit: u32, entry: u32) {
        self.place(unit, entry);
    }

    /// After a power cut: forgets all entries.
    fn clear(&mut self);

    /// Appends the map's part of a checkpoint; `place` returns the place of a unit on flash.
    fn save_places(&self, bytes: &mut Vec<u8>, place: impl Fn(u32) -> u32) {
        (0..self.units()).for_each(|unit| bytes.extend(place(unit).to_le_bytes()));
    }

    /// After a power cut: restores the bytes of [`Self::save_places`], except void entries.
    fn restore_places(&mut self, bytes: &[u8], is_void: impl Fn(u32) -> bool) {
        for (unit, entry) in (0..self.units()).zip(entries_in(bytes)) {
            if entry != UNMAPPED && !is_void(entry) {
                self.restore(unit, entry);
            }
        }
    }

    /// After a power cut: runs once every unit that moved after the checkpoint is found. Entries of the checkpoint may
    /// be void. False if places are still missing; then all of flash must be read.
    fn restored(&mut self, _nand: &Nand, _is_void: impl Fn(u32) -> bool) -> bool {
        true
    }

    /// Prefetches the entry of `unit` into CPU caches.
    fn prefetch(&self, unit: u32);

    /// True if `unit` is a unit of the map.
    #[inline]
    fn is_own(&self, _unit: u32) -> bool {
        false
    }

    /// The first unit whose entry is in `unit`, which is the map's.
    fn first_of(&self, unit: u32) -> u32 {
        unit
    }

    /// Units of the map in `block`.
    #[inline]
    fn own_in(&self, _block: u32) -> u32 {
        0
    }

    /// Subpages of `unit` whose newest content the layer stores outside the log.
    #[inline]
    fn outside(&self, _unit: u32) -> u32 {
        0
    }

    /// Closes when all subpages outside the log are programmed. A unit that moves without them must follow, because a
    /// power cut would otherwise leave no readable copy.
    #[inline]
    fn settled(&self) -> Gate {
        Gate::NONE
    }

    /// Records that `unit` was programmed without the subpages `absent`.
    #[inline]
    fn programmed(&mut self, _unit: u32, _absent: u32) {}

    /// Loads the entry of `unit` into DRAM. The gate closes when the entry has arrived.
    ///
    /// # Errors
    /// [`palimpsest_flash::nand::Halt`]s of flash.
    #[inline]
    fn fetch(_log: &mut Log<Self>, _io: &mut Io, _unit: u32) -> Flash<Gate> {
        Ok(Gate::NONE)
    }

    /// Writes back entries that exceed the DRAM.
    ///
    /// # Errors
    /// As [`Self::fetch`].
    #[inline]
    fn settle(_log: &mut Log<Self>, _io: &mut Io) -> Flash<()> {
        Ok(())
    }

    /// Checks the map against itself and against the entries stored in flash.
    ///
    /// # Errors
    /// The first inconsistency.
    fn check(&self, _nand: &Nand) -> Result<(), String> {
        Ok(())
    }

    /// Adds tables and figures of the map to `figures`.
    fn describe(&self, figures: &mut LayerFigures);
}

/// Decodes entries from bytes.
pub fn entries_in(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(|entry| entry.try_into().map_or(UNMAPPED, u32::from_le_bytes))
}
