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

/// A program that the engine has.
#[derive(Debug, Clone, Copy)]
pub struct Running {
    /// Physical page.
    ppn: u32,
    /// The engine's number.
    pub number: u32,
    /// What the first subpage stores, where the others store what follows it; else [`TORN`].
    first: u32,
}

impl Running {
    /// The program of `ppn`, the engine's `number`.
    #[inline]
    pub fn new(nand: &Nand, ppn: u32, number: u32) -> Self {
        let logical = nand.logical_of(ppn);
        let first = logical.first().copied().unwrap_or(TORN);
        let follow = first < TORN && logical.iter().zip(first..).all(|(&lsn, expected)| lsn == expected);
        Running { ppn, number, first: if follow { first } else { TORN } }
    }
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
    /// Programs that the engine has.
    pub running: Vec<Running>,
    /// Pairs (erase, program): operations of the plan that are erases also follow these programs.
    pub follows: Vec<(u32, Program)>,
    /// Whether what the layer holds in memory, and what is planned, survives a power cut.
    pub protected: bool,
    /// Whether a plan is wanted; without one only cells and counters change.
    pub timed: bool,
}

/// Bits of a filter of logical subpages.
const FILTER: u32 = 1 << 15;

impl Plan {
    /// The next operation is an erase of `block`: it follows the programs under way that store what the block holds, be it a
    /// copy or what the host has written over it. Until they have ended the block has the only version that is safe.
    /// What signals `after` is left out, as the erase follows that gate.
    pub(super) fn follow_replacing(&mut self, nand: &Nand, block: u32, after: Gate) {
        let (pages, width) = (nand.geometry().pages_per_block, nand.geometry().subpages_per_page);
        let held = (block * pages..(block + 1) * pages).flat_map(|ppn| nand.logical_of(ppn));
        let mut filter = [0u64; FILTER as usize / 64];
        for lsn in held.copied().filter(|&lsn| lsn < TORN) {
            filter[(lsn % FILTER / 64) as usize] |= 1 << (lsn % 64);
        }
        let is_held = |lsn: u32| lsn < TORN && filter[(lsn % FILTER / 64) as usize] >> (lsn % 64) & 1 == 1;
        let mut stored = Vec::new();
        let mut note = |ppn: u32, program: Program| {
            if nand.split(ppn).0 != block {
                let held = nand.logical_of(ppn).iter().copied().filter(|&lsn| is_held(lsn));
                stored.extend(held.map(|lsn| (lsn, program)));
            }
        };
        for &Running { ppn, number, first } in &self.running {
            // Mostly what a page stores follows its first subpage, and need not be fetched.
            if first == TORN || (first..first + width).any(is_held) {
                note(ppn, Program::Running(number));
            }
        }
        for (index, operation) in (0..).zip(&self.operations) {
            let waits = !after.is_none() && operation.signal == after;
            if operation.kind == OperationKind::Program && !waits {
                note(operation.block * pages + u32::from(operation.page), Program::Planned(index));
            }
        }
        if stored.is_empty() {
            return;
        }
        stored.sort_by_key(|&(lsn, _)| lsn);
        let erase = self.operations.len() as u32;
        for ppn in block * pages..(block + 1) * pages {
            for &lsn in nand.logical_of(ppn).iter().filter(|&&lsn| is_held(lsn)) {
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
