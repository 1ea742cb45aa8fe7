//! Slices of collection copies: pairs of a whole-page read and the program that follows it, from one block to another.
//! Equivalent to calling [`Engine::enqueue`] for each operation, without cases that copies exclude.
//!
//! Ignored: runs that record a timeline, and blocks with a planned erase, whose copies are enqueued one by one.

use super::gates::Waiter;
use super::{Engine, NONE, STEPS};
use palimpsest_ftl_api::plan::{Io, Operation};

impl Engine {
    /// Enqueues `operations` of the plan in `io`, which must be copies from one block to another. Returns false,
    /// without effect, if they must be enqueued one by one.
    pub(super) fn enqueue_copies(&mut self, io: &mut Io, operations: &[Operation]) -> bool {
        let [of_read, of_program, ..] = operations else { return true };
        let alone = of_read.codec == 0 && of_read.group == 0 && io.plan.follows.is_empty();
        if !alone || !self.reads_memory() || self.timeline.is_some() || self.is_changed(of_read.block) {
            return false;
        }
        let from @ (from_die, _) = self.setup.place_of(of_read.block);
        let to @ (to_die, to_plane) = self.setup.place_of(of_program.block);
        let copies = operations.len() as u32 / 2;
        io.dies[from_die as usize].operations += copies;
        io.dies[from_die as usize].reads += copies;
        io.dies[to_die as usize].operations += copies;
        let class = self.class_of(of_read.kind, of_read.cause, of_read.step);
        if of_program.step && self.class_of(of_program.kind, of_program.cause, true) == STEPS {
            self.hardware.ready[to_plane as usize].steps += copies;
        }
        let is_source = self.setup.has_ranks();
        self.expect_reads(of_read.block, copies);
        let mut tail = self.tail_of(of_program.block);
        if tail != NONE && self.pending[tail].is_step() && !of_program.step {
            self.hardware.ready[to_plane as usize].behind_steps += 1;
        }
        for (number, copy) in operations.chunks_exact(2).enumerate() {
            let [read, program] = copy else { continue };
            debug_assert!(
                read.block == of_read.block && program.block == of_program.block && program.after == read.signal
            );
            self.order += 2;
            let index = self.pending.add_copy(read, self.order - 1, from, self.now);
            match number {
                0 => self.join_ready(index, self.order - 1, from, class, read.step),
                _ => self.join_behind(index, self.order - 1, from, class, read.step),
            }
            if is_source {
                self.add_source(io, read.signal.slot(), index);
            }
            self.wake(from_die);
            let index = self.pending.add_copy(program, self.order, to, self.now);
            self.pending[index].waits = 1 + u32::from(tail != NONE);
            if tail != NONE {
                self.pending[tail].next_on_block = index;
            }
            tail = index;
            self.add_waiter(io, program.after, Waiter::Operation(index));
        }
        self.set_tail(of_program.block, tail);
        true
    }
}
