//! The records of one call of a layer, which the ledger makes and `sim` verifies: operations with the events that they
//! wait for and the data that they store or destroy, and the promise of the request.
//!
//! Each list has one allocation for all operations of all calls. Ignored: gates, which the engine alone follows.

use super::super::operations::OperationKind;
use super::super::{Cause, Gate, Operation};
use palimpsest_flash::units::Nanos;

/// An event that an operation or request waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The arrival of the data of the read with this number in the plan.
    Read(u64),
    /// The end of the program with this number in the plan.
    Program(u64),
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

/// An operation by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// Number of the flash operation.
    pub number: u64,
    /// Block of the drive.
    pub block: u32,
    /// Page within the block.
    pub page: u16,
    /// Kind of the operation.
    pub kind: OperationKind,
    /// Why the operation is planned.
    pub cause: Cause,
}

/// The place of an operation among the planned ones of its block since the run is timed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turn {
    /// Of a read: earlier operations that changed the block's content. Of others: earlier programs and erases.
    pub changes: u32,
    /// Of an operation that changes the block's content: earlier reads; 0 for others.
    pub reads: u32,
}

/// An operation of the plan with its effect on data. Its entries in a list end where those of the next operation begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Noted {
    pub named: Named,
    pub turn: Turn,
    /// First entry in [`Call::sources`], counted from the first call: events that must have happened. Of a read: the
    /// programs that stored the data, and the read that located the data in a map kept in flash. Of a program: events
    /// that the data waits for.
    pub sources: u32,
    /// First entry in [`Call::stored`], counted alike: logical subpages that a program stores; none if the program
    /// fails.
    pub stored: u32,
    /// First entry in [`Call::held`], counted alike: logical subpages that an erase or program destroys: in its page,
    /// or in the whole block if a program begins a pass.
    pub held: u32,
    /// True for an operation that changes the content of the block's pages.
    pub destroys: bool,
    /// True if [`Call::barriers`] has the barrier that the operation must follow: an erase, and a program that stores
    /// records of a file system or destroys data.
    pub barred: bool,
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
    /// Barriers that operations must follow, each with the index of the operation.
    pub barriers: Vec<(u32, Barrier)>,
    /// Promise of the request.
    pub promise: Promise,
    /// A contradiction within the call.
    pub violation: Option<String>,
}

impl Noted {
    /// A read without effect.
    pub const NOTHING: Noted = Noted {
        named: Named { number: 0, block: 0, page: 0, kind: OperationKind::Read, cause: Cause::Host },
        turn: Turn { changes: 0, reads: 0 },
        sources: 0,
        stored: 0,
        held: 0,
        destroys: false,
        barred: false,
    };
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
        self.barriers.clear();
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
