//! The input of the engine: the operations of a plan, and the gates between them.

use super::{Cause, Gate, Gates};
use palimpsest_flash::nand::{Nand, TORN};
use palimpsest_flash::units::Nanos;

/// Kind of a planned operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum OperationKind {
    /// Sense a page and transfer out.
    Read,
    /// Transfer in and program a page.
    Program,
    /// Erase a block.
    Erase,
}

/// One flash operation for the engine.
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
    /// A program that stores what the host may still be sending.
    pub from_host: bool,
}

/// A program under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// The engine has it, under this number.
    Running(u32),
    /// It is this operation of the plan.
    Planned(u32),
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
    /// Erases follow this gate.
    pub barrier: Gate,
    /// Programs that the engine has: page, and the engine's number.
    pub running: Vec<(u32, u32)>,
    /// Pairs (erase, program): operations of the plan that are erases also follow these programs.
    pub follows: Vec<(u32, Program)>,
    /// Whether what the layer holds in memory, and what is planned, survives a power cut.
    pub protected: bool,
    /// Whether a plan is wanted; without one only cells and counters change.
    pub timed: bool,
}

/// Bits of a filter of logical subpages.
const FILTER: u32 = 1 << 12;

impl Plan {
    /// The next operation is an erase of `block`: it follows the programs under way that store what the block holds, be it a
    /// copy or what the host has written over it. Until they have ended the block has the only version that is safe.
    pub(super) fn follow_replacing(&mut self, nand: &Nand, block: u32) {
        let planned = (0..).zip(&self.operations).filter(|(_, operation)| operation.kind == OperationKind::Program);
        let pages = nand.geometry().pages_per_block;
        let planned = planned
            .map(|(index, operation)| (operation.block * pages + u32::from(operation.page), Program::Planned(index)));
        let running = self.running.iter().map(|&(ppn, pending)| (ppn, Program::Running(pending)));
        let elsewhere = |&(ppn, _): &(u32, Program)| nand.split(ppn).0 != block;
        let mut filter = [0u64; FILTER as usize / 64];
        let mut stored = Vec::new();
        for (ppn, program) in running.chain(planned).filter(elsewhere) {
            for lsn in nand.logical_of(ppn).iter().copied().filter(|&lsn| lsn < TORN) {
                filter[(lsn % FILTER / 64) as usize] |= 1 << (lsn % 64);
                stored.push((lsn, program));
            }
        }
        if stored.is_empty() {
            return;
        }
        stored.sort_by_key(|&(lsn, _)| lsn);
        let erase = self.operations.len() as u32;
        for ppn in block * pages..(block + 1) * pages {
            for &lsn in nand.logical_of(ppn) {
                if filter[(lsn % FILTER / 64) as usize] >> (lsn % 64) & 1 == 1 {
                    let first = stored.partition_point(|&(other, _)| other < lsn);
                    for &(_, program) in stored[first..].iter().take_while(|(other, _)| *other == lsn) {
                        if self.follows.last() != Some(&(erase, program)) {
                            self.follows.push((erase, program));
                        }
                    }
                }
            }
        }
    }
}
