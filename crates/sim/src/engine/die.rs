//! What a die holds: the batches that it moves and works on, and which of its operations go first.

use super::NONE;
use super::ready::{CLASSES, First};
use crate::events::Key;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::OperationKind;

/// The most planes that a multi-plane command addresses.
pub(super) const MOST_PLANES: usize = 8;

/// Operations that run together in a die.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    pub(super) kind: OperationKind,
    pub(super) count: u8,
    /// Operations whose data has not left the die.
    pub(super) unmoved: u8,
    /// Pages of its word lines that have not had their turn on the bus; then the moments of the array are not known ([`super::shots`]).
    pub(super) unloaded: u8,
    pub(super) members: [u32; MOST_PLANES],
    /// All data of a program is in the die at this time.
    pub(super) loaded: Nanos,
    /// The array works on it from then on; what is suspended has begun.
    pub(super) array_from: Nanos,
    /// The array has done its work at this time; of what is suspended how much is left.
    pub(super) array_until: Nanos,
    /// A read whose data is in the page register.
    pub(super) sensed: bool,
    /// When it was first suspended; `Nanos::MAX` if never.
    pub(super) suspended_at: Nanos,
}

impl Batch {
    /// Operation `first`, of `kind`, alone.
    #[inline]
    pub(super) fn of(kind: OperationKind, first: u32) -> Self {
        let mut members = [NONE; MOST_PLANES];
        members[0] = first;
        Batch {
            kind,
            count: 1,
            unmoved: 0,
            unloaded: 0,
            members,
            loaded: 0,
            array_from: 0,
            array_until: 0,
            sensed: false,
            suspended_at: Nanos::MAX,
        }
    }

    /// Its operations.
    #[inline]
    pub(super) fn operations(&self) -> &[u32] {
        &self.members[..usize::from(self.count)]
    }

    /// Operations that have not ended. Reads end in order, one by one, and then their numbers may belong to other operations.
    pub(super) fn remaining(&self) -> &[u32] {
        let ended = if self.kind == OperationKind::Read { self.count - self.unmoved } else { 0 };
        &self.operations()[usize::from(ended)..]
    }
}

/// State of a die.
#[derive(Clone, Default)]
pub(super) struct Die {
    /// The channel that it is on.
    pub(super) channel: u32,
    /// The batch that is moved or in the array.
    pub(super) front: Option<Batch>,
    /// The batch behind it, with the cache register only.
    pub(super) back: Option<Batch>,
    pub(super) suspended: Option<Batch>,
    /// The batch in the cache register behind what is suspended, whose data stays there. Its `array_until` is how long it takes.
    pub(super) behind: Option<Batch>,
    /// Nothing may start before this time.
    pub(super) closed_until: Nanos,
    pub(super) generation: u32,
    pub(super) busy: Nanos,
    pub(super) busy_since: Nanos,
    /// Operations that are ready.
    pub(super) ready: u32,
    /// The operation that goes first of those that are ready, by class.
    pub(super) first: [First; CLASSES],
    /// When a step of collection started last.
    pub(super) stepped: Nanos,
    /// When it wakes, if something is ready by then.
    pub(super) wake: Key,
}

impl Die {
    /// An idle die on `channel`.
    pub(super) fn on(channel: u32) -> Self {
        Die { channel, ..Die::default() }
    }

    /// The batch that entered last: behind another, or alone.
    #[inline]
    pub(super) fn entered(&mut self, behind: bool) -> Option<&mut Batch> {
        if behind { self.back.as_mut() } else { self.front.as_mut() }
    }

    /// Whether anything is ready.
    #[inline]
    pub(super) fn has_ready(&self) -> bool {
        self.ready > 0
    }

    /// It does nothing any more from `now` on.
    pub(super) fn power_off(&mut self, now: Nanos) {
        let working = if self.front.is_some() { now.saturating_sub(self.busy_since) } else { 0 };
        *self = Die { busy: self.busy + working, generation: self.generation, ..Die::on(self.channel) };
    }
}
