//! Operations that have not ended. Collection queues tens of thousands, more than the inner caches of the processor
//! hold. The fields that the engine reads often therefore fill one cache line, and fields that copies of pages lack are
//! stored apart.

use super::NONE;
use palimpsest_flash::prefetch::prefetch;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Cause, Operation, OperationKind};
use palimpsest_ftl_api::plan::{replacing, under_way};

/// Distance, in operations, at which a free place is prefetched before its use.
const AHEAD: usize = 4;

/// How urgent an operation is, beside its kind and cause.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// A step of collection that no request waits for yet.
    Step,
    Usual,
    /// A read that a request waits for, whatever its cause ([`super::joins`]).
    Joined,
    /// Such a read, planned as a step of collection.
    JoinedStep,
}

impl Rank {
    /// The rank of an operation that is a step of collection, or is not.
    #[inline]
    pub(super) fn of(step: bool) -> Self {
        if step { Rank::Step } else { Rank::Usual }
    }
}

/// An operation that has not ended. Fields of the same name are described in [`Operation`].
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Pending {
    pub(super) order: u64,
    /// Negative once the engine has counted the energy.
    pub(super) energy: i64,
    /// Time since which the operation could start, so that others may overtake it.
    pub(super) ready_at: Nanos,
    /// Slot of the gate to signal, which is open until then; [`NONE`]: none.
    pub(super) signal: u32,
    /// Number of events to wait for before the operation is ready.
    pub(super) waits: u32,
    /// The next operation in the order of the block.
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
    pub(super) rank: Rank,
    /// True if the operation has [`Details`].
    pub(super) detailed: bool,
}

/// Fields of an operation that is no copy of a page, beside [`Pending`].
#[derive(Clone, Copy)]
pub(super) struct Details {
    pub(super) enqueued: Nanos,
    /// Time at which the data has arrived over the host link.
    pub(super) data_at: Nanos,
    pub(super) codec: u32,
    pub(super) link_bytes: u32,
    pub(super) frees: u32,
    pub(super) stored: u32,
    /// Head of the list of operations that follow this one.
    pub(super) followers: u32,
    pub(super) group: u16,
    pub(super) loads: u8,
    pub(super) again: bool,
}

impl Details {
    /// Details of a copy.
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
        rank: Rank::Usual,
        detailed: false,
    };

    /// `operation` with number `order`, for `plane` of `die`, without anything to wait for yet.
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
            rank: Rank::of(operation.step),
            detailed,
        }
    }

    #[inline]
    pub(super) fn die(&self) -> u32 {
        self.die.into()
    }

    /// True for a read that serves a request, so that it may suspend programs and erases.
    #[inline]
    pub(super) fn is_urgent(&self) -> bool {
        let is_awaited = match self.rank {
            Rank::Step => false,
            Rank::Usual => !self.cause.is_upkeep(),
            Rank::Joined | Rank::JoinedStep => true,
        };
        self.kind == OperationKind::Read && is_awaited
    }

    /// True for a step of collection, even if a request waits for it by now.
    #[inline]
    pub(super) fn is_step(&self) -> bool {
        matches!(self.rank, Rank::Step | Rank::JoinedStep)
    }

    /// True for a step of collection that no request waits for yet.
    #[inline]
    pub(super) fn is_low(&self) -> bool {
        self.rank == Rank::Step
    }

    /// Records that a request waits for the operation.
    pub(super) fn join(&mut self) {
        self.rank = if self.is_step() { Rank::JoinedStep } else { Rank::Joined };
    }
}

/// All operations that have not ended, by index.
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
    /// Adds `operation` with number `order`, for `plane` of `die`, without anything to wait for yet. The data arrives
    /// over the host link until `data_at`.
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

    /// As [`Self::add`], for a copy.
    #[inline(always)]
    pub(super) fn add_copy(&mut self, operation: &Operation, order: u64, (die, plane): (u32, u32), now: Nanos) -> u32 {
        let index = self.take_place();
        self.entries[index as usize] = Pending::of(operation, order, (die, plane), now, false);
        index
    }

    /// A free place; prefetches a later one.
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

    /// Frees the place of operation `index`, which has ended.
    #[inline]
    pub(super) fn remove(&mut self, index: u32) {
        self.free.push(index);
    }

    /// Details of operation `index`.
    #[inline]
    pub(super) fn details(&self, index: u32) -> &Details {
        const OF_COPIES: &Details = &Details::NONE;
        if self[index].detailed { &self.details[index as usize] } else { OF_COPIES }
    }

    /// [`Details::data_at`] of operation `index`.
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

    /// As [`Self::details`], mutable.
    pub(super) fn details_mut(&mut self, index: u32) -> &mut Details {
        if !self[index].detailed {
            self[index].detailed = true;
            self.details[index as usize] = Details::NONE;
        }
        &mut self.details[index as usize]
    }

    /// Prefetches operation `index`, if there is one.
    #[inline]
    pub(super) fn ask_for(&self, index: u32) {
        prefetch(&self.entries, index as usize);
    }

    /// Number of operations that have not ended.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        (self.entries.len() - self.free.len()) as u32
    }

    /// Operations that have not ended.
    pub(super) fn live(&self) -> Vec<u32> {
        let mut live = vec![true; self.entries.len()];
        self.free.iter().for_each(|&index| live[index as usize] = false);
        (0..self.entries.len() as u32).filter(|&index| live[index as usize]).collect()
    }
}
