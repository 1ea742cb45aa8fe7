//! Programs whose data the host is still sending.
//!
//! Such a program waits outside the queue of its plane, so that die and bus serve others. The program becomes ready
//! when its transfer can run without a pause: the first byte has crossed the host link, and the last byte will have
//! crossed before the transfer ends (cut-through). Programs of one plan that may form a multi-plane command become
//! ready together, when that holds for all of them one after another.
//!
//! Ignored: a controller that waits for whole pages before a transfer.

use super::gates::Waiter;
use super::{Engine, NONE};
use crate::events::Event;
use crate::settings::MultiPlane;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::Io;
use palimpsest_ftl_api::plan::arrival::Crossing;

/// The late programs of the present plan.
#[derive(Default)]
pub(super) struct Late {
    /// Entries of the plan's list already processed.
    taken: usize,
    /// Number in the plan of the next late program.
    next: Option<u32>,
    programs: Vec<LateProgram>,
}

struct LateProgram {
    index: u32,
    crossing: Crossing,
    /// Time from the moment at which the program is ready until its data is in the die: code, command and transfer.
    code: Nanos,
    transfer: Nanos,
    ready: Nanos,
}

impl LateProgram {
    /// The earliest time at which the program can be ready without a pause in the transfer, `behind` others.
    fn ready_behind(&self, behind: Nanos) -> Nanos {
        let Crossing { first, last } = self.crossing;
        first.max(last.saturating_sub(self.code + self.transfer)).saturating_sub(behind)
    }
}

impl Late {
    /// Begins a plan.
    #[inline]
    pub(super) fn begin(&mut self, io: &Io) {
        (self.taken, self.next) = (0, io.plan.late.first().map(|&(number, _)| number));
    }

    /// True if operation `number` of the plan is late.
    #[inline]
    pub(super) fn is_next(&self, number: u32) -> bool {
        self.next == Some(number)
    }

    /// Takes the arrival of the next late program.
    pub(super) fn take(&mut self, io: &Io) -> Crossing {
        let crossing = io.plan.late[self.taken].1;
        self.taken += 1;
        self.next = io.plan.late.get(self.taken).map(|&(number, _)| number);
        crossing
    }
}

impl Engine {
    /// Adds operation `index`, whose data arrives as `crossing`, to the late programs of the plan.
    pub(super) fn add_late(&mut self, index: u32, crossing: Crossing) {
        let loads = u32::from(self.pending.loads(index));
        let page = self.setup.t_command + self.hardware.transfers.time(self.pending[index].bytes / loads);
        let code = self.pending.details(index).codec.into();
        let transfer = page * Nanos::from(loads);
        self.plan.late.programs.push(LateProgram { index, crossing, code, transfer, ready: 0 });
    }

    /// True if two late programs may run in one multi-plane command.
    fn may_join(&self, one: &LateProgram, other: &LateProgram) -> bool {
        let first = &self.pending[one.index];
        let second = &self.pending[other.index];
        let group = self.pending.group(one.index);
        let allowed = match self.setup.settings.multi_plane {
            MultiPlane::Off => false,
            MultiPlane::Waiting => true,
            MultiPlane::Group => group > 0 && group == self.pending.group(other.index),
        };
        let alike = (first.die(), first.page) == (second.die(), second.page);
        allowed && alike && first.plane != second.plane
    }

    /// Schedules the late programs of the plan, or makes them ready if their transfers can begin now.
    #[inline(never)]
    pub(super) fn schedule_late(&mut self) {
        let mut programs = std::mem::take(&mut self.plan.late.programs);
        if self.setup.settings.multi_plane != MultiPlane::Off && self.setup.geometry.planes_per_die > 1 {
            programs.sort_by_key(|late| (self.pending[late.index].die(), self.pending[late.index].page));
        }
        for together in programs.chunk_by_mut(|one, other| self.may_join(one, other)) {
            let mut behind = 0;
            let mut ready = 0;
            for late in &*together {
                ready = ready.max(late.ready_behind(behind));
                behind += late.transfer;
            }
            together.iter_mut().for_each(|late| late.ready = ready);
        }
        programs.sort_by_key(|late| (late.ready, self.pending[late.index].order));
        for together in programs.chunk_by(|one, other| one.ready == other.ready) {
            if together[0].ready <= self.now {
                for late in together {
                    let die = self.release(late.index);
                    self.wake(die);
                }
                continue;
            }
            let behind_first = together.iter().rev();
            let list = behind_first.fold(NONE, |list, late| self.add_edge(Waiter::Operation(late.index), list));
            self.events.push(together[0].ready, Event::Arrived(list));
        }
        programs.clear();
        self.plan.late.programs = programs;
    }

    /// Makes the late programs of `list` ready.
    pub(super) fn arrived(&mut self, io: &Io, mut list: u32) {
        self.noted(|engine| engine.record_time(None));
        while list != NONE {
            list = self.pass_edge(list);
        }
        self.kick_woken(io);
    }
}
