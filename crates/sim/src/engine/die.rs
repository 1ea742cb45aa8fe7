//! The state of a die: the batches in transfer and in the array, and the ready operations that go first.
//!
//! Ignored: contents, which flash stores.

use super::NONE;
use super::ready::{CLASSES, First};
use crate::events::Key;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::OperationKind;

/// Largest number of planes in a multi-plane command.
pub(super) const MOST_PLANES: usize = 8;

/// Operations that run together in a die.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    pub(super) kind: OperationKind,
    pub(super) count: u8,
    /// Operations whose data has not left the die.
    pub(super) unmoved: u8,
    /// Pages of the word lines that have not been on the bus. Above 0, the times of the array are not known
    /// ([`super::shots`]).
    pub(super) unloaded: u8,
    pub(super) members: [u32; MOST_PLANES],
    /// Time at which all data of a program is in the die.
    pub(super) loaded: Nanos,
    /// Start of the array's work; a suspended batch has started.
    pub(super) array_from: Nanos,
    /// End of the array's work; for a suspended batch, the remaining work.
    pub(super) array_until: Nanos,
    /// True for a read whose data is in the page register.
    pub(super) sensed: bool,
    /// Time for which the array has been suspended; of a suspended batch, without the present suspension.
    pub(super) held: Nanos,
    /// Time at which the array of a suspended batch stopped.
    pub(super) stopped_at: Nanos,
    pub(super) suspensions: u32,
}

impl Batch {
    /// A batch of operation `first` alone.
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
            held: 0,
            stopped_at: 0,
            suspensions: 0,
        }
    }

    #[inline]
    pub(super) fn operations(&self) -> &[u32] {
        &self.members[..usize::from(self.count)]
    }

    /// Operations that have not ended. Reads end one by one in order, and the indices of ended reads may already belong
    /// to other operations.
    pub(super) fn remaining(&self) -> &[u32] {
        let ended = if self.kind == OperationKind::Read { self.count - self.unmoved } else { 0 };
        &self.operations()[usize::from(ended)..]
    }
}

/// State of a die.
#[derive(Clone, Default)]
pub(super) struct Die {
    /// Channel of the die.
    pub(super) channel: u32,
    /// The batch in transfer or in the array.
    pub(super) front: Option<Batch>,
    /// The batch behind `front`; only with the cache register.
    pub(super) back: Option<Batch>,
    pub(super) suspended: Option<Batch>,
    /// The batch in the cache register behind a suspended one. The data stays there; `array_until` is the length of the
    /// array's work.
    pub(super) behind: Option<Batch>,
    /// No operation may start before this time.
    pub(super) closed_until: Nanos,
    pub(super) generation: u32,
    pub(super) busy: Nanos,
    pub(super) busy_since: Nanos,
    /// Number of ready operations.
    pub(super) ready: u32,
    /// Number of ready reads that may suspend programs and erases; counted only if any may.
    pub(super) urgent: u32,
    /// The first of the ready operations, by class.
    pub(super) first: [First; CLASSES],
    /// Time at which a step of collection last started.
    pub(super) stepped: Nanos,
    /// The reserved wake-up, added to the events only if an operation is ready by then.
    pub(super) wake: Key,
}

impl Die {
    /// An idle die on `channel`.
    pub(super) fn on(channel: u32) -> Self {
        Die { channel, ..Die::default() }
    }

    /// The batch that entered last: `back` if `behind`, else `front`.
    #[inline]
    pub(super) fn entered(&mut self, behind: bool) -> Option<&mut Batch> {
        if behind { self.back.as_mut() } else { self.front.as_mut() }
    }

    /// True if any operation is ready.
    #[inline]
    pub(super) fn has_ready(&self) -> bool {
        self.ready > 0
    }

    /// Stops the die at `now`.
    pub(super) fn power_off(&mut self, now: Nanos) {
        let working = if self.front.is_some() { now.saturating_sub(self.busy_since) } else { 0 };
        *self = Die { busy: self.busy + working, generation: self.generation, ..Die::on(self.channel) };
    }
}
