//! The input of the engine: the operations of a plan, and the gates between them.

use super::replacing::{self, Replacing};
use super::under_way::{self, UnderWay};
use super::{Cause, Gate, Gates};
use palimpsest_flash::nand::{Nand, TORN};
use palimpsest_flash::units::{Nanos, Picojoules};
use std::ops::Range;

/// Kind of a planned operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum OperationKind {
    /// Sense a page and transfer out.
    Read,
    /// Transfer in and program a page.
    Program,
    /// Erase a block.
    Erase,
}

/// One flash operation for the engine. What engines keep of each together lies together here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Operation {
    /// What.
    pub kind: OperationKind,
    /// Why.
    pub cause: Cause,
    /// A step of collection that no request waits for yet.
    pub step: bool,
    /// A program that changes what pages of its block hold: like an erase it follows the reads planned before.
    pub again: bool,
    /// Transfers that bring the data of a program, each of a page; one for all others.
    pub loads: u8,
    /// A program that stores what the host may still be sending.
    pub from_host: bool,
    /// Page within the block.
    pub page: u16,
    /// Block of the drive.
    pub block: u32,
    /// Bytes over the bus of the channel.
    pub bytes: u32,
    /// Time in the array.
    pub array: u32,
    /// The entry of its page in [`UnderWay`].
    pub under_way: u32,
    /// Tells this gate when it has ended.
    pub signal: Gate,
    /// Picojoules that it takes, where they are metered. What it takes back of an earlier estimate counts here, too.
    pub energy: i64,
    /// Starts after this gate has closed.
    pub after: Gate,
    /// Time of a code in the controller, which holds neither bus nor die: before a program, once it may start; after a read.
    pub codec: u32,
    /// Bytes over the host link, of a read for the host.
    pub link_bytes: u32,
    /// Subpages of the write buffer that are free when it has ended.
    pub frees: u32,
    /// The first entry of what it stores in [`Replacing`].
    pub stored: u32,
    /// What a file system sent together has the same number; 0: alone.
    pub group: u16,
}

impl Operation {
    /// A read of page 0 of block 0 that takes no time, with nothing before or behind it.
    pub const NOTHING: Operation = Operation {
        kind: OperationKind::Read,
        cause: Cause::Host,
        step: false,
        again: false,
        loads: 1,
        from_host: false,
        page: 0,
        block: 0,
        codec: 0,
        bytes: 0,
        array: 0,
        signal: Gate::NONE,
        under_way: under_way::NONE,
        link_bytes: 0,
        after: Gate::NONE,
        energy: 0,
        frees: 0,
        stored: replacing::NONE,
        group: 0,
    };
}

impl Plan {
    /// An operation that is planned now, as [`Operation::NOTHING`] but for `kind` and `cause`.
    #[inline(always)]
    pub(super) fn operation(&self, kind: OperationKind, cause: Cause) -> Operation {
        Operation { kind, cause, step: self.step, codec: self.codec, group: self.group, ..Operation::NOTHING }
    }
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
    /// Which of them are copies of pages of one block to another: of each a read, and the program that follows it.
    pub copies: Vec<Range<usize>>,
    pub gates: Gates,
    /// Pairs (gate, later gate): the second also waits for the first.
    pub links: Vec<(Gate, Gate)>,
    /// Gates that also wait for a moment.
    pub delays: Vec<(Gate, Nanos)>,
    /// Erases, and programs over data, follow this gate.
    pub barrier: Gate,
    /// What programs under way store, where the plan is not protected.
    pub replacing: Replacing,
    /// The pages of programs under way.
    pub under_way: UnderWay,
    /// Whether these are read from memory.
    pub reads_memory: bool,
    /// Pairs (destroyer, program): operations of the plan that destroy what pages hold also follow these programs.
    pub follows: Vec<(u32, Program)>,
    /// Whether what the layer holds in memory, and what is planned, survives a power cut.
    pub protected: bool,
    /// A flush need not wait for programs, because the buffer is protected. A file system must still commit.
    pub flush_is_free: bool,
    /// The command group of what is planned now, as in [`Operation::group`].
    pub group: u16,
    /// [`Operation::codec`] of what is planned now.
    pub codec: u32,
    /// [`Operation::step`] of what is planned now.
    pub step: bool,
    /// The energy of flash up to the last operation of the plan, where operations get theirs.
    pub metered: Option<Picojoules>,
    /// Whether a plan is wanted; without one only cells and counters change.
    pub timed: bool,
}

// Before anything is timed there are no gates, and nothing is under way.
palimpsest_flash::state!(Plan { group, codec, step } built {
    operations, copies, gates, links, delays, barrier, replacing, under_way, reads_memory, follows, protected, flush_is_free, metered, timed
});

impl Plan {
    /// The next operation destroys what `pages` hold, as an erase does: it follows the programs under way that replace that. Until they have ended
    /// these pages have the only version that is safe. Left out are those of block `before`, which end before it in any case, and what signals
    /// `after`, as the operation follows that gate.
    pub(super) fn follow_replacing(&mut self, nand: &Nand, pages: Range<u32>, before: Option<u32>, after: Gate) {
        if self.replacing.is_empty() {
            return;
        }
        for ppn in pages {
            for &lsn in nand.logical_of(ppn) {
                if lsn < TORN && self.replacing.may_store(lsn) {
                    self.follow_programs_of(lsn, before, after);
                }
            }
        }
    }

    /// The next operation follows the programs that store logical subpage `lsn`.
    #[inline(never)]
    fn follow_programs_of(&mut self, lsn: u32, before: Option<u32>, after: Gate) {
        let destroyer = self.operations.len() as u32;
        for program in self.replacing.of(lsn, before) {
            let waits = match program {
                Program::Running(_) => false,
                Program::Planned(index) => !after.is_none() && self.operations[index as usize].signal == after,
            };
            if !waits && self.follows.last() != Some(&(destroyer, program)) {
                self.follows.push((destroyer, program));
            }
        }
    }

    /// The engine has taken the plan, or the power has failed.
    #[inline]
    pub fn clear(&mut self) {
        self.links.clear();
        self.delays.clear();
        self.operations.clear();
        self.copies.clear();
        self.follows.clear();
    }
}
