//! The gates of a run: which are open, and how many operations each still waits for.

use super::Gate;
use palimpsest_flash::prefetch::prefetch;
use palimpsest_flash::state::{Loaded, Reader, State};

// A drive is saved at rest, when every gate has closed; a byte, as every element of a list has.
impl State for Gate {
    fn save(&self, out: &mut Vec<u8>) {
        out.push(0);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Loaded {
        *self = Gate::NONE;
        from.take(1).map(drop)
    }
}

/// All gates made so far, in slots that are reused.
#[derive(Default)]
pub struct Gates {
    pub slots: Vec<GateSlot>,
    free: Vec<u32>,
}

/// One gate.
#[derive(Clone, Copy)]
pub struct GateSlot {
    pub generation: u32,
    pub remaining: u32,
    /// Head of the engine's list of operations that wait for the gate.
    pub waiters: u32,
    /// Head of the engine's list of reads that the gate waits for and that others overtake; [`NO_WAITER`]: none.
    pub sources: u32,
    /// Set by the engine: a time that the gate also waits for, after `remaining` is 0; 0: none.
    pub due: u128,
}

impl GateSlot {
    /// An unused slot.
    fn new(generation: u32) -> Self {
        GateSlot { generation, remaining: 0, waiters: NO_WAITER, sources: NO_WAITER, due: 0 }
    }
}

/// Distance, in gates, at which a free slot is prefetched before its use.
const AHEAD: usize = 4;

/// End of a list of waiters.
pub const NO_WAITER: u32 = u32::MAX;

impl Gates {
    /// Opens a gate that waits for nothing yet.
    #[inline]
    pub fn open(&mut self) -> Gate {
        // The collection of a victim opens many gates, in slots that another victim's gates had.
        if let Some(&later) = self.free.len().checked_sub(AHEAD).and_then(|index| self.free.get(index)) {
            prefetch(&self.slots, later as usize);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(GateSlot::new(0));
            self.slots.len() as u32 - 1
        });
        Gate::new(slot, self.slots[slot as usize].generation)
    }

    /// True if `gate` is still open.
    #[inline]
    pub fn is_open(&self, gate: Gate) -> bool {
        !gate.is_none() && self.slots[gate.slot() as usize].generation == gate.generation()
    }

    /// Makes `gate` wait for one more event.
    #[inline]
    pub fn expect(&mut self, gate: Gate) {
        self.expect_many(gate, 1);
    }

    /// Makes `gate` wait for `many` more events. The gate must be open.
    #[inline]
    pub fn expect_many(&mut self, gate: Gate, many: u32) {
        if !gate.is_none() {
            debug_assert!(self.is_open(gate), "a closed gate cannot wait for more");
            self.slots[gate.slot() as usize].remaining += many;
        }
    }

    /// Prefetches the gate in `slot`, which will close soon.
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        prefetch(&self.slots, slot as usize);
    }

    /// Closes every gate without starting the operations that waited.
    pub(super) fn close_all(&mut self) {
        for slot in &mut self.slots {
            let generation = slot.generation.wrapping_add(1);
            *slot = GateSlot::new(generation);
        }
        self.free = (0..self.slots.len() as u32).collect();
    }

    /// Makes the slot of a closed gate reusable.
    #[inline]
    pub fn close(&mut self, gate: Gate) {
        let slot = &mut self.slots[gate.slot() as usize];
        slot.generation = slot.generation.wrapping_add(1);
        (slot.waiters, slot.sources) = (NO_WAITER, NO_WAITER);
        self.free.push(gate.slot());
    }
}
