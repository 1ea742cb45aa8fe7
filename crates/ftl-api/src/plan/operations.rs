//! What the engine is handed: the operations of a plan, and the gates between them.

use super::{Cause, Gate, Gates};
use palimpsest_flash::units::Nanos;

/// Kind of a planned operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum OperationKind {
    /// Sense a page and transfer out.
    Read,
    /// Transfer in and program a page.
    Program,
    /// Erase a block.
    Erase,
}

/// One flash operation as the engine sees it.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// What.
    pub kind: OperationKind,
    /// Why.
    pub cause: Cause,
    /// Page within the block.
    pub page: u16,
    /// Block of the drive.
    pub block: u32,
    /// Bytes over the bus of the channel.
    pub bytes: u32,
    /// Bytes over the host link, of a read for the host.
    pub link_bytes: u32,
    /// Time in the array.
    pub array: u32,
    /// Starts after this gate has closed.
    pub after: Gate,
    /// Tells this gate when it has ended.
    pub signal: Gate,
    /// Subpages of the write buffer that are free when it has ended.
    pub frees: u32,
}

/// The plan of the present call.
#[derive(Default)]
pub struct Plan {
    pub operations: Vec<Operation>,
    pub gates: Gates,
    /// Pairs (gate, later gate): the second also waits for the first.
    pub links: Vec<(Gate, Gate)>,
    /// Gates that also wait for a moment.
    pub delays: Vec<(Gate, Nanos)>,
    /// Whether a plan is wanted; without one only cells and counters change.
    pub timed: bool,
}
