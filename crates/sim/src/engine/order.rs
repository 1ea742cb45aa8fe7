//! The order of operations on a block.
//!
//! Programs and erases of a block start in the order of planning. An erase, or a program that changes the content of
//! pages, also starts after reads of the block planned before. No other order is needed. A read's data is programmed
//! when the read is planned, because pages under way are read from memory. Programs of other pages do not affect the
//! read. With [`BlockOrder::Planned`] reads keep the order of planning too. No order holds between blocks.

use super::{Engine, NONE};
use crate::settings::{BlockOrder, Suspend};
use palimpsest_flash::geometry::Geometry;
use palimpsest_ftl_api::plan::{Operation, OperationKind};

/// Operations of a block that have not started.
#[derive(Clone, Copy)]
pub(super) struct BlockState {
    /// The last operation in the order.
    tail: u32,
    /// The last operation that changes the content.
    change: u32,
    /// Reads before the first such change, and that change if one waits for them.
    reads: u32,
    waiting: u32,
}

pub(super) const IDLE: BlockState = BlockState { tail: NONE, change: NONE, reads: 0, waiting: NONE };

/// Operations behind a change of a block: reads that wait for the change, and the next change if one waits for these
/// reads.
#[derive(Clone, Copy)]
pub(super) struct Behind {
    /// Head of the list of reads.
    list: u32,
    reads: u32,
    waiting: u32,
}

const NOTHING: Behind = Behind { list: NONE, reads: 0, waiting: NONE };

/// The order of operations on all blocks.
pub(super) struct Orders {
    /// Operations of each block that have not started.
    pub(super) blocks: Vec<BlockState>,
    /// Operations planned behind each change of a block, by index of the change.
    behind: Vec<Behind>,
}

impl Orders {
    /// No operations on the blocks of `geometry`.
    pub(super) fn new(geometry: &Geometry) -> Self {
        Orders { blocks: vec![IDLE; geometry.blocks() as usize], behind: Vec::new() }
    }
}

impl Engine {
    /// True if operations under way are read from memory.
    pub fn reads_memory(&self) -> bool {
        self.setup.settings.block_order == BlockOrder::Needed
    }

    #[inline]
    fn changes(&self, kind: OperationKind, again: bool) -> bool {
        self.reads_memory() && (kind == OperationKind::Erase || again)
    }

    /// True if an operation that changes the content of `block` is planned.
    #[inline]
    pub(super) fn is_changed(&self, block: u32) -> bool {
        self.orders.blocks[block as usize].change != NONE
    }

    /// Adds `reads` planned reads of `block`, which no planned operation may change.
    #[inline]
    pub(super) fn expect_reads(&mut self, block: u32, reads: u32) {
        self.orders.blocks[block as usize].reads += reads;
    }

    /// The last operation in the order of `block`.
    #[inline]
    pub(super) fn tail_of(&self, block: u32) -> u32 {
        self.orders.blocks[block as usize].tail
    }

    /// Sets the last operation in the order of `block`.
    #[inline]
    pub(super) fn set_tail(&mut self, block: u32, tail: u32) {
        self.orders.blocks[block as usize].tail = tail;
    }

    /// Adds operation `index`, described by `operation`, to the order of the block. Returns the number of operations to
    /// wait for, and the last of them.
    #[inline]
    pub(super) fn join_block(&mut self, index: u32, operation: &Operation) -> (u32, u32) {
        let state = &mut self.orders.blocks[operation.block as usize];
        if operation.kind == OperationKind::Read && self.setup.settings.block_order == BlockOrder::Needed {
            if state.change == NONE {
                state.reads += 1;
                return (0, NONE);
            }
            let state = *state;
            let list = self.orders.behind[state.change as usize].list;
            let list = self.add_edge(super::gates::Waiter::Operation(index), list);
            let behind = &mut self.orders.behind[state.change as usize];
            (behind.list, behind.reads) = (list, behind.reads + 1);
            return (1, state.change);
        }
        let tail = std::mem::replace(&mut state.tail, index);
        let mut state = *state;
        let mut waits = 0;
        if tail != NONE {
            self.pending[tail].next_on_block = index;
            waits += 1;
            if self.pending[tail].is_step() && !operation.step {
                self.hardware.ready[self.pending[index].plane as usize].behind_steps += 1;
            }
        }
        if self.changes(operation.kind, operation.again) {
            if self.orders.behind.len() <= index as usize {
                self.orders.behind.resize(index as usize + 1, NOTHING);
            }
            self.orders.behind[index as usize] = NOTHING;
            let (reads, waiting) = match state.change {
                NONE => (state.reads, &mut state.waiting),
                change => (self.orders.behind[change as usize].reads, &mut self.orders.behind[change as usize].waiting),
            };
            if reads > 0 {
                *waiting = index;
                waits += 1;
            }
            state.change = index;
            self.orders.blocks[operation.block as usize] = state;
        }
        (waits, tail)
    }

    /// Releases operations that waited for the start of operation `index` on its block.
    #[inline]
    pub(super) fn leave_block(&mut self, index: u32) {
        let pending = &self.pending[index];
        let (kind, block) = (pending.kind, pending.block);
        if !self.reads_memory() {
            let next = pending.next_on_block;
            // A read behind a program or erase that may be suspended must wait for the end.
            let wait = self.setup.settings.suspend != Suspend::None
                && kind != OperationKind::Read
                && (next == NONE || self.pending[next].kind == OperationKind::Read);
            if !wait {
                self.release_next(index);
            }
            return;
        }
        if kind == OperationKind::Read {
            let state = &mut self.orders.blocks[block as usize];
            state.reads -= 1;
            if state.reads == 0 && state.waiting != NONE {
                let waiting = std::mem::replace(&mut state.waiting, NONE);
                self.release(waiting);
            }
            return;
        }
        self.release_next(index);
        if self.changes(kind, self.pending.again(index)) {
            let Behind { mut list, reads, waiting } = self.orders.behind[index as usize];
            let state = &mut self.orders.blocks[block as usize];
            (state.reads, state.waiting) = (reads, waiting);
            if state.change == index {
                state.change = NONE;
            }
            while list != NONE {
                list = self.pass_edge(list);
            }
        }
    }

    /// Releases operations that waited for the end of operation `index` on its block.
    #[inline]
    pub(super) fn end_on_block(&mut self, index: u32) {
        let pending = &self.pending[index];
        if pending.next_on_block != NONE || self.orders.blocks[pending.block as usize].tail == index {
            self.release_next(index);
        }
    }

    /// Releases the next operation in the order of the block of `index`.
    #[inline]
    fn release_next(&mut self, index: u32) {
        let pending = &mut self.pending[index];
        let next = std::mem::replace(&mut pending.next_on_block, NONE);
        if next == NONE {
            let tail = &mut self.orders.blocks[pending.block as usize].tail;
            if *tail == index {
                *tail = NONE;
            }
        } else {
            let step = pending.is_step();
            let plane = pending.plane;
            if step && !self.pending[next].is_step() {
                self.hardware.ready[plane as usize].behind_steps -= 1;
            }
            self.release(next);
            self.pending.ask_for(self.pending[next].next_on_block);
        }
    }
}
