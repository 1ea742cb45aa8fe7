//! The input of the engine: the operations of a plan, and the gates between them.
//!
//! Ignored here: times of start and end, which the engine computes.

use super::arrival::Crossing;
use super::replacing::{self, Replacing};
use super::under_way::{self, UnderWay};
use super::{Cause, Gate, Gates};
use palimpsest_flash::nand::{Nand, NandCounters, TORN};
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

impl OperationKind {
    /// All kinds, by number.
    pub const ALL: [OperationKind; 3] = [OperationKind::Read, OperationKind::Program, OperationKind::Erase];
}

/// One flash operation for the engine. The order of fields keeps together those that the engine copies together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Operation {
    /// Kind of the operation.
    pub kind: OperationKind,
    /// Why the operation is planned.
    pub cause: Cause,
    /// True for a step of collection that no request waits for yet.
    pub step: bool,
    /// True for a program that changes the content of its block's pages. Like an erase, the program must follow reads
    /// planned before.
    pub again: bool,
    /// Transfers of one page each that load the data of a program; one for all other operations.
    pub loads: u8,
    /// Page within the block.
    pub page: u16,
    /// Block of the drive.
    pub block: u32,
    /// Bytes over the channel bus.
    pub bytes: u32,
    /// Time in the array, in nanoseconds, retries included.
    pub array: u32,
    /// The entry of the page in [`UnderWay`].
    pub under_way: u32,
    /// The gate to signal at the end.
    pub signal: Gate,
    /// Energy in picojoules, if metered. A correction of an earlier estimate counts here too, so the value may be
    /// negative.
    pub energy: i64,
    /// The operation starts only after this gate has closed.
    pub after: Gate,
    /// Time of a code in the controller, in nanoseconds, which occupies neither bus nor die: before a program, once the
    /// program may start, and after a read.
    pub codec: u32,
    /// Bytes over the host link, of a host read.
    pub link_bytes: u32,
    /// Subpages of the write buffer that the end of the operation frees.
    pub frees: u32,
    /// The first entry of the stored subpages in [`Replacing`].
    pub stored: u32,
    /// Command group: operations that a file system sent together have the same number; 0: none.
    pub group: u16,
    /// Time of the retries of a read, in nanoseconds.
    pub retry: u32,
}

impl Operation {
    /// A read of page 0 of block 0 that takes no time and has no gates.
    pub const NOTHING: Operation = Operation {
        kind: OperationKind::Read,
        cause: Cause::Host,
        step: false,
        again: false,
        loads: 1,
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
        retry: 0,
    };
}

impl Plan {
    /// An operation as [`Operation::NOTHING`], with `kind`, `cause` and the present settings of the plan.
    #[inline(always)]
    pub(super) fn operation(&self, kind: OperationKind, cause: Cause) -> Operation {
        Operation { kind, cause, step: self.step, codec: self.codec, group: self.group, ..Operation::NOTHING }
    }
}

/// A program that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// A program in the engine, by its number there.
    Running(u32),
    /// A program in the plan, by its index.
    Planned(u32),
}

/// The plan of the present call.
#[derive(Default)]
pub struct Plan {
    pub operations: Vec<Operation>,
    /// Ranges of operations that copy pages from one block to another: pairs of a read and the program that follows it.
    pub copies: Vec<Range<usize>>,
    pub gates: Gates,
    /// Pairs (gate, later gate): the second also waits for the first.
    pub links: Vec<(Gate, Gate)>,
    /// Gates that also wait for a time.
    pub delays: Vec<(Gate, Nanos)>,
    /// Programs whose data the host is still sending, by index in `operations`, in order.
    pub late: Vec<(u32, Crossing)>,
    /// Erases, and programs over data, must follow this gate.
    pub barrier: Gate,
    /// Logical subpages stored by programs that have not ended; unused if the plan is protected.
    pub replacing: Replacing,
    /// Pages of programs that have not ended.
    pub under_way: UnderWay,
    /// True if pages under way are read from memory.
    pub reads_memory: bool,
    /// Pairs (destroyer, program): operations of the plan that destroy data must also follow these programs.
    pub follows: Vec<(u32, Program)>,
    /// True if the layer's memory and all planned operations survive a power cut.
    pub protected: bool,
    /// True if a flush need not wait for programs, because the buffer is protected. A file system must still commit.
    pub flush_is_free: bool,
    /// Command group of operations planned now, as in [`Operation::group`].
    pub group: u16,
    /// [`Operation::codec`] of operations planned now.
    pub codec: u32,
    /// [`Operation::step`] of operations planned now.
    pub step: bool,
    /// Energy of flash up to the last operation of the plan, if metered.
    pub metered: Option<Picojoules>,
    /// True if operations are planned; false if only cells and counters change.
    pub timed: bool,
}

// Before a timed run there are no gates, and no operation is under way.
palimpsest_flash::state!(Plan { group, codec, step } built {
    operations, copies, gates, links, delays, late, barrier, replacing, under_way, reads_memory, follows, protected,
    flush_is_free, metered, timed
});

impl Plan {
    /// Makes `gate`, which must be open or none, also wait for the time `at`.
    pub fn delay(&mut self, gate: Gate, at: Nanos) {
        if self.timed && !gate.is_none() {
            self.gates.expect(gate);
            self.delays.push((gate, at));
        }
    }

    /// Meters the energy of operations planned from now on; `counters` are those of flash.
    pub fn meter(&mut self, counters: &NandCounters) {
        self.metered = Some(counters.energy());
    }

    /// Makes the next operation follow all programs under way that replace content of `pages`, because until they have
    /// ended these pages hold the only safe version. Programs of block `before` are left out, because they end earlier
    /// anyway. Programs that signal `after` are left out too, because the operation follows that gate. An erase for
    /// a merge must follow the merges of its own call by the layer's gate, as an erase for collection follows copies.
    pub(super) fn follow_replacing(
        &mut self,
        nand: &Nand,
        pages: Range<u32>,
        before: Option<u32>,
        after: Gate,
        cause: Cause,
    ) {
        if self.replacing.is_empty() {
            return;
        }
        for ppn in pages {
            for &lsn in nand.logical_of(ppn) {
                if lsn < TORN && self.replacing.may_store(lsn) {
                    self.follow_programs_of(lsn, before, after, cause);
                }
            }
        }
    }

    /// Makes the next operation follow the programs that store logical subpage `lsn`.
    #[inline(never)]
    fn follow_programs_of(&mut self, lsn: u32, before: Option<u32>, after: Gate, cause: Cause) {
        let destroyer = self.operations.len() as u32;
        for program in self.replacing.of(lsn, before) {
            let waits = match program {
                Program::Running(_) => false,
                Program::Planned(index) => {
                    let planned = &self.operations[index as usize];
                    let is_own = cause == Cause::Merge && planned.cause == Cause::Merge;
                    is_own || (!after.is_none() && planned.signal == after)
                }
            };
            if !waits && self.follows.last() != Some(&(destroyer, program)) {
                self.follows.push((destroyer, program));
            }
        }
    }

    /// Empties the plan after the engine has accepted the operations, or after a power cut.
    #[inline]
    pub fn clear(&mut self) {
        self.links.clear();
        self.delays.clear();
        self.late.clear();
        self.operations.clear();
        self.copies.clear();
        self.follows.clear();
    }
}
