//! Operations that have not ended. Where blocks are collected tens of thousands wait, more than the caches next to the processor hold: what is
//! looked at of each is one line of a cache, and what copies of pages do not have lies apart.

use super::NONE;
use palimpsest_flash::prefetch::prefetch;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Cause, Operation, OperationKind};
use palimpsest_ftl_api::plan::{replacing, under_way};

/// A free place is asked for so many operations before it is taken.
const AHEAD: usize = 4;

/// An operation that has not ended. What it shares with [`Operation`] is explained there.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Pending {
    pub(super) order: u64,
    /// Negative once the engine has counted it.
    pub(super) energy: i64,
    /// Since when it could start: from then on it can be overtaken.
    pub(super) ready_at: Nanos,
    /// The slot of the gate that it signals, which is open until then; [`NONE`]: none.
    pub(super) signal: u32,
    /// Things that must happen before it is ready.
    pub(super) waits: u32,
    /// The next operation in the order of its block.
    pub(super) next_on_block: u32,
    /// Planes are numbered die by die.
    pub(super) plane: u32,
    pub(super) block: u32,
    pub(super) bytes: u32,
    pub(super) array: u32,
    pub(super) under_way: u32,
    pub(super) page: u16,
    die: u16,
    pub(super) kind: OperationKind,
    pub(super) cause: Cause,
    pub(super) step: bool,
    /// It has [`Details`] of its own.
    pub(super) detailed: bool,
}

/// What an operation that is no copy of a page has beside [`Pending`].
#[derive(Clone, Copy)]
pub(super) struct Details {
    pub(super) enqueued: Nanos,
    /// When its data has come over the host link.
    pub(super) data_at: Nanos,
    pub(super) codec: u32,
    pub(super) link_bytes: u32,
    pub(super) frees: u32,
    pub(super) stored: u32,
    /// Head of the list of erases that follow it.
    pub(super) followers: u32,
    pub(super) group: u16,
    pub(super) loads: u8,
    pub(super) again: bool,
}

impl Details {
    /// Those of a copy.
    const NONE: Details = Details {
        enqueued: 0,
        data_at: 0,
        codec: 0,
        link_bytes: 0,
        frees: 0,
        stored: replacing::NONE,
        followers: NONE,
        group: 0,
        loads: 1,
        again: false,
    };
}

impl Pending {
    const NOTHING: Pending = Pending {
        order: 0,
        energy: 0,
        ready_at: 0,
        signal: NONE,
        waits: 0,
        next_on_block: NONE,
        plane: 0,
        block: 0,
        bytes: 0,
        array: 0,
        under_way: under_way::NONE,
        page: 0,
        die: 0,
        kind: OperationKind::Read,
        cause: Cause::Host,
        step: false,
        detailed: false,
    };

    /// `operation`, number `order`, for `plane` of `die`, which waits for nothing yet.
    #[inline(always)]
    fn of(operation: &Operation, order: u64, (die, plane): (u32, u32), now: Nanos, detailed: bool) -> Self {
        Pending {
            order,
            energy: operation.energy,
            ready_at: now,
            signal: operation.signal.slot(),
            waits: 0,
            next_on_block: NONE,
            plane,
            block: operation.block,
            bytes: operation.bytes,
            array: operation.array,
            under_way: operation.under_way,
            page: operation.page,
            die: die as u16,
            kind: operation.kind,
            cause: operation.cause,
            step: operation.step,
            detailed,
        }
    }

    #[inline]
    pub(super) fn die(&self) -> u32 {
        self.die.into()
    }
}

/// All operations that have not ended, by their numbers in the engine.
#[derive(Default)]
pub(super) struct Operations {
    entries: Vec<Pending>,
    details: Vec<Details>,
    free: Vec<u32>,
}

impl std::ops::Index<u32> for Operations {
    type Output = Pending;

    #[inline]
    fn index(&self, index: u32) -> &Pending {
        &self.entries[index as usize]
    }
}

impl std::ops::IndexMut<u32> for Operations {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Pending {
        &mut self.entries[index as usize]
    }
}

impl Operations {
    /// Adds `operation`, number `order`, for `plane` of `die`, which waits for nothing yet; its data comes over the host link until `data_at`.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        operation: &Operation,
        order: u64,
        (die, plane): (u32, u32),
        now: Nanos,
        data_at: Nanos,
    ) -> u32 {
        let index = self.take_place();
        let &Operation { kind, cause, codec, link_bytes, frees, stored, group, loads, again, .. } = operation;
        let plain =
            (codec | link_bytes | frees) == 0 && stored == replacing::NONE && (group, loads, again) == (0, 1, false);
        let detailed = !plain || cause == Cause::Host || kind == OperationKind::Erase || data_at > 0;
        self.entries[index as usize] = Pending::of(operation, order, (die, plane), now, detailed);
        if detailed {
            let (enqueued, followers) = (now, NONE);
            self.details[index as usize] =
                Details { enqueued, data_at, codec, link_bytes, frees, stored, followers, group, loads, again };
        }
        index
    }

    /// As [`Self::add`], of a copy.
    #[inline(always)]
    pub(super) fn add_copy(&mut self, operation: &Operation, order: u64, (die, plane): (u32, u32), now: Nanos) -> u32 {
        let index = self.take_place();
        self.entries[index as usize] = Pending::of(operation, order, (die, plane), now, false);
        index
    }

    /// A free place; one that is taken later is asked for.
    #[inline]
    fn take_place(&mut self) -> u32 {
        if let Some(&later) = self.free.len().checked_sub(AHEAD).and_then(|index| self.free.get(index)) {
            self.ask_for(later);
        }
        self.free.pop().unwrap_or_else(|| {
            self.entries.push(Pending::NOTHING);
            self.details.push(Details::NONE);
            self.entries.len() as u32 - 1
        })
    }

    /// Operation `index` has ended.
    #[inline]
    pub(super) fn remove(&mut self, index: u32) {
        self.free.push(index);
    }

    /// What operation `index` has beside [`Pending`].
    #[inline]
    pub(super) fn details(&self, index: u32) -> &Details {
        const OF_COPIES: &Details = &Details::NONE;
        if self[index].detailed { &self.details[index as usize] } else { OF_COPIES }
    }

    /// When the data of operation `index` has come over the host link.
    #[inline]
    pub(super) fn data_at(&self, index: u32) -> Nanos {
        if self[index].detailed { self.details[index as usize].data_at } else { 0 }
    }

    /// [`Operation::loads`] of operation `index`.
    #[inline]
    pub(super) fn loads(&self, index: u32) -> u8 {
        if self[index].detailed { self.details[index as usize].loads } else { 1 }
    }

    /// [`Operation::group`] of operation `index`.
    #[inline]
    pub(super) fn group(&self, index: u32) -> u16 {
        if self[index].detailed { self.details[index as usize].group } else { 0 }
    }

    /// [`Operation::again`] of operation `index`.
    #[inline]
    pub(super) fn again(&self, index: u32) -> bool {
        self[index].detailed && self.details[index as usize].again
    }

    /// As [`Self::details`], to change it.
    pub(super) fn details_mut(&mut self, index: u32) -> &mut Details {
        if !self[index].detailed {
            self[index].detailed = true;
            self.details[index as usize] = Details::NONE;
        }
        &mut self.details[index as usize]
    }

    /// Asks for the memory of operation `index`, if it is one.
    #[inline]
    pub(super) fn ask_for(&self, index: u32) {
        prefetch(&self.entries, index as usize);
    }

    /// Those that have not ended.
    pub(super) fn live(&self) -> Vec<u32> {
        let mut live = vec![true; self.entries.len()];
        self.free.iter().for_each(|&index| live[index as usize] = false);
        (0..self.entries.len() as u32).filter(|&index| live[index as usize]).collect()
    }
}
