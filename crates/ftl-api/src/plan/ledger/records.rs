//! The records of one call of a layer, which the ledger makes and `sim` verifies: operations with the events that they
//! wait for and the data that they store or destroy, and the promise of the request.
//!
//! Each list has one allocation for all operations of all calls. Ignored: gates, which the engine alone follows.

use super::super::operations::OperationKind;
use super::super::{Cause, Gate, Operation};
use palimpsest_flash::units::Nanos;

/// An event that data waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The end of the read with this number in the plan.
    Read(u64),
    /// The arrival over the host link, at this time.
    Link(Nanos),
}

/// A logical subpage with its stored content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Logical subpage.
    pub lsn: u32,
    /// Content number.
    pub content: u64,
}

/// A barrier of a file system: later operations must wait for everything written before.
#[derive(Debug, Clone, Copy, Default)]
pub struct Barrier {
    /// Closes when everything before the barrier is programmed.
    pub gate: Gate,
    /// Number in the plan of the first operation behind the barrier.
    pub until: u64,
}

/// Consecutive entries of one of the lists of a [`Call`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Items {
    /// The first entry.
    pub first: u32,
    /// Number of entries.
    pub count: u32,
}

/// An operation of the plan with its effect on data. The items are empty where the kind of operation has none.
#[derive(Debug, Clone, Copy)]
pub struct Noted {
    /// Kind of the operation.
    pub kind: OperationKind,
    /// Why the operation is planned.
    pub cause: Cause,
    /// Page within the block.
    pub page: u16,
    /// Block of the drive.
    pub block: u32,
    /// Number of the flash operation.
    pub number: u64,
    /// Of a read: the read that located the data, in a map kept in flash.
    pub located: Option<Source>,
    /// In [`Call::sources`], of a program: events that the data waits for.
    pub sources: Items,
    /// In [`Call::stored`]: logical subpages that a program stores; none if the program fails.
    pub stored: Items,
    /// In [`Call::held`]: logical subpages that an erase or program destroys: in its page, or in the whole block if a
    /// program begins a pass.
    pub held: Items,
    /// In [`Call::orders`]. Of a read: the programs that stored the data. Of others: operations that must have started
    /// before, which are the last change of the block, and reads of the changed content.
    pub orders: Items,
    /// The barrier that an erase must follow, and a program that stores records of a file system or destroys data.
    pub barrier: Barrier,
}

/// The promise of a completed request.
#[derive(Debug, Clone, Default)]
pub struct Promise {
    /// Events that the delivered or written data waits for, merged data included.
    pub sources: Vec<Source>,
    /// Logical subpages of a write that must be durable when the request completes.
    pub stored: Vec<Stored>,
}

/// All records of one call.
#[derive(Debug, Default)]
pub struct Call {
    /// Operations, in the order of the plan.
    pub noted: Vec<Noted>,
    /// Events, as the operations name them. This list and those below are in the order of the operations.
    pub sources: Vec<Source>,
    /// Logical subpages that programs store.
    pub stored: Vec<Stored>,
    /// Logical subpages that are destroyed and were not forgotten, each with the number of its program.
    pub held: Vec<(u32, u64)>,
    /// Numbers of operations in the plan.
    pub orders: Vec<u64>,
    /// Promise of the request.
    pub promise: Promise,
    /// A contradiction within the call.
    pub violation: Option<String>,
}

impl Items {
    /// The entries of `list` from `first` on.
    #[inline]
    pub(super) fn since<T>(first: usize, list: &[T]) -> Self {
        Items { first: first as u32, count: (list.len() - first) as u32 }
    }
}

impl Noted {
    /// `operation` under flash operation `number`, without effect on data.
    #[inline]
    pub(super) fn of(operation: &Operation, number: u64) -> Self {
        let none = Items::default();
        Noted {
            kind: operation.kind,
            cause: operation.cause,
            page: operation.page,
            block: operation.block,
            number,
            located: None,
            sources: none,
            stored: none,
            held: none,
            orders: none,
            barrier: Barrier::default(),
        }
    }
}

impl Promise {
    /// Drops the promise.
    pub fn clear(&mut self) {
        self.sources.clear();
        self.stored.clear();
    }
}

impl Call {
    /// Empties the lists of operations.
    pub fn clear(&mut self) {
        self.noted.clear();
        self.sources.clear();
        self.stored.clear();
        self.held.clear();
        self.orders.clear();
    }
}

/// A deliberate planning error, for tests of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mutation {
    /// Kind of the operations to mutate.
    pub kind: OperationKind,
    /// Cause of the operations to mutate.
    pub cause: Cause,
    /// True: drops the gate that they follow. False: drops their signal, so that the signalled gate may close too
    /// early.
    pub drops_after: bool,
}

impl Mutation {
    pub(super) fn fits(self, operation: &Operation) -> bool {
        self.kind == operation.kind && self.cause == operation.cause
    }
}
