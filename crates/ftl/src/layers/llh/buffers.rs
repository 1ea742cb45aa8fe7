//! Merge buffers: pages in controller memory until programmed, three per bank (hot, cold, moved).
//!
//! A slot stores the place of the unit's previous copy, which stays valid until the page is programmed. If buffers do
//! not survive a power cut, cleaning copies such a previous copy, too. The copy is a *shadow* in the buffer of moved
//! data, never newer than the shadowed unit.

use super::{BUFFERS_PER_BANK, HOT, IN_BUFFER, Llh, MOVED, SLOTS, UNMAPPED};
use crate::log::Append;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Cause, Gate, Io};

/// Unit number of a slot whose unit was trimmed, or is obsolete.
pub(super) const HOLE: u32 = u32::MAX;
/// A buffer without a waiting request.
pub(super) const NOT_WAITING: Nanos = Nanos::MAX;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slot {
    pub unit: u32,
    pub data: Data,
    /// Closes when the content has arrived.
    pub arrived: Gate,
    /// Physical unit of the previous copy, or [`UNMAPPED`].
    pub previous: u32,
    /// Subpages held in the host's write buffer.
    pub holds: u32,
    /// True for a copy of old content, replaced by a newer unit in another buffer.
    pub shadow: bool,
}

palimpsest_flash::state!(Slot { unit, data, arrived, previous, holds, shadow });

/// A slot whose unit is obsolete.
pub(super) const EMPTY: Slot =
    Slot { unit: HOLE, data: Data::ZERO, arrived: Gate::NONE, previous: UNMAPPED, holds: 0, shadow: false };

/// A page that is being filled.
#[derive(Default)]
pub(super) struct Buffer {
    pub slots: Vec<Slot>,
    /// Closes when all data read for this page has arrived.
    pub ready: Option<Gate>,
    /// Closes when the page is programmed.
    pub done: Option<Gate>,
    /// True if the page holds data of the host.
    pub from_host: bool,
}

palimpsest_flash::state!(Buffer { slots, ready, done, from_host });

impl Llh {
    #[inline]
    pub(super) fn buffer_of(bank: u32, kind: u32) -> usize {
        (bank * BUFFERS_PER_BANK + kind) as usize
    }

    /// The buffer and slot that a map entry of `unit` names.
    #[inline]
    pub(super) fn slot_of(&self, unit: u32, entry: u32) -> (usize, usize) {
        let place = entry - IN_BUFFER;
        (Self::buffer_of(self.bank_of(unit), place / SLOTS), (place % SLOTS) as usize)
    }

    /// Replaces the content of a unit in a buffer. False if no buffer holds the unit.
    #[inline]
    pub(super) fn replace_in_buffer(&mut self, io: &mut Io, what: Append) -> bool {
        let entry = self.map[what.unit as usize];
        if entry == UNMAPPED || entry < IN_BUFFER {
            return false;
        }
        let (buffer, slot) = self.slot_of(what.unit, entry);
        io.pin(what.data);
        let slot = &mut self.buffers[buffer].slots[slot];
        io.unpin(slot.data);
        (slot.data, slot.arrived) = (what.data, what.after);
        self.attach(io, buffer, what);
        true
    }

    /// Makes `buffer` follow and signal the gates of `what`.
    #[inline]
    pub(super) fn attach(&mut self, io: &mut Io, buffer: usize, what: Append) {
        if what.cause == Cause::Host || !self.protected {
            let since = &mut self.since[buffer];
            *since = (*since).min(io.now());
            self.oldest = self.oldest.min(*since);
        }
        let page = &mut self.buffers[buffer];
        page.from_host |= io.present.is_from_host(what.cause);
        if io.is_open(what.after) {
            let ready = match page.ready {
                Some(ready) if io.is_open(ready) => ready,
                _ => io.gate(),
            };
            page.ready = Some(ready);
            io.link(what.after, ready);
        }
        if !what.signal.is_none() {
            let done = *page.done.get_or_insert_with(|| io.gate());
            io.link(done, what.signal);
        }
    }

    /// Adds a unit to the buffer `kind` of the unit's bank; `previous` is the place of the previous copy.
    #[inline]
    pub(super) fn push(&mut self, io: &mut Io, kind: u32, what: Append, previous: u32) {
        let bank = self.bank_of(what.unit);
        let buffer = Self::buffer_of(bank, kind);
        if kind == MOVED {
            self.drop_shadow(io, what.unit);
        }
        self.attach(io, buffer, what);
        let slots = &mut self.buffers[buffer].slots;
        self.map[what.unit as usize] = IN_BUFFER + kind * SLOTS + slots.len() as u32;
        let Append { unit, data, after: arrived, holds, .. } = what;
        slots.push(Slot { unit, data, arrived, previous, holds, shadow: false });
        io.pin(what.data);
    }

    /// Adds a shadow of the previous copy of a unit, at `previous`, to the buffer of moved data.
    pub(super) fn push_shadow(&mut self, io: &mut Io, what: Append, previous: u32) {
        let buffer = Self::buffer_of(self.bank_of(what.unit), MOVED);
        self.attach(io, buffer, what);
        let Append { unit, data, after: arrived, .. } = what;
        self.buffers[buffer].slots.push(Slot { unit, data, arrived, previous, holds: 0, shadow: true });
        io.pin(what.data);
    }

    #[inline]
    pub(super) fn drop_shadow(&mut self, io: &mut Io, unit: u32) {
        if self.protected {
            return;
        }
        let buffer = Self::buffer_of(self.bank_of(unit), MOVED);
        for slot in self.buffers[buffer].slots.iter_mut().filter(|slot| slot.shadow && slot.unit == unit) {
            io.unpin(slot.data);
            *slot = EMPTY;
        }
    }

    /// Empties the slot that `entry` names; the slot remains. Returns the place of the unit's previous copy.
    pub(super) fn vacate(&mut self, io: &mut Io, unit: u32, entry: u32) -> u32 {
        let (buffer, index) = self.slot_of(unit, entry);
        let slot = &mut self.buffers[buffer].slots[index];
        let vacated = std::mem::replace(slot, Slot { holds: slot.holds, ..EMPTY });
        io.unpin(vacated.data);
        vacated.previous
    }

    pub(super) fn unmap(&mut self, io: &mut Io, unit: u32) {
        match std::mem::replace(&mut self.map[unit as usize], UNMAPPED) {
            UNMAPPED => {}
            entry if entry >= IN_BUFFER => {
                let previous = self.vacate(io, unit, entry);
                if previous != UNMAPPED {
                    self.invalidate(previous);
                }
                self.drop_shadow(io, unit);
            }
            physical => self.invalidate(physical),
        }
    }

    /// Removes the first `count` slots of `buffer`; the others move up.
    pub(super) fn remove_slots(&mut self, io: &Io, buffer: usize, count: usize) {
        let kind = buffer as u32 % BUFFERS_PER_BANK;
        let page = &mut self.buffers[buffer];
        page.slots.drain(..count);
        for (index, slot) in page.slots.iter().enumerate() {
            if slot.unit != HOLE && !slot.shadow {
                self.map[slot.unit as usize] = IN_BUFFER + kind * SLOTS + index as u32;
            }
        }
        if page.slots.is_empty() {
            (page.ready, page.done, page.from_host) = (None, None, false);
            let since = std::mem::replace(&mut self.since[buffer], NOT_WAITING);
            // In runs without time, all are equally old and the order does not matter.
            if io.plan.timed && since == self.oldest && since != NOT_WAITING {
                self.find_oldest();
            }
        }
    }

    pub(super) fn find_oldest(&mut self) {
        self.oldest = self.since.iter().copied().min().unwrap_or(NOT_WAITING);
    }

    /// Moves the first `count` slots of the hot buffer of `bank`, which cannot be encoded, to the buffer of moved data.
    pub(super) fn divert_to_moved(&mut self, io: &mut Io, bank: u32, count: usize) {
        let (from, to) = (Self::buffer_of(bank, HOT), Self::buffer_of(bank, MOVED));
        let (ready, done) = (self.buffers[from].ready, self.buffers[from].done);
        let since = self.since[from];
        for index in 0..count {
            let slot = self.buffers[from].slots[index];
            let mut moved = slot;
            if slot.unit != HOLE {
                self.drop_shadow(io, slot.unit);
                let place = self.buffers[to].slots.len() as u32;
                self.map[slot.unit as usize] = IN_BUFFER + MOVED * SLOTS + place;
            }
            moved.shadow = false;
            self.buffers[to].slots.push(moved);
        }
        let from_host = self.buffers[from].from_host;
        self.remove_slots(io, from, count);
        self.join(io, to, (ready, done, from_host), since);
    }

    /// Makes buffer `to` follow and signal the gates of a buffer whose units it took.
    pub(super) fn join(
        &mut self,
        io: &mut Io,
        to: usize,
        (ready, done, from_host): (Option<Gate>, Option<Gate>, bool),
        since: Nanos,
    ) {
        self.buffers[to].from_host |= from_host;
        self.since[to] = self.since[to].min(since);
        self.oldest = self.oldest.min(since);
        if let Some(ready) = ready.filter(|&ready| io.is_open(ready)) {
            let behind = *self.buffers[to].ready.get_or_insert_with(|| io.gate());
            let behind = if io.is_open(behind) { behind } else { io.gate() };
            self.buffers[to].ready = Some(behind);
            io.link(ready, behind);
        }
        if let Some(done) = done {
            let first = *self.buffers[to].done.get_or_insert_with(|| io.gate());
            io.link(first, done);
        }
    }
}
