//! Events that most often change nothing: their place among the events is kept, and they are added when they are needed, so that all
//! happens in the order in which it would with them.
//!
//! A die wakes when its array begins to work on what was moved into it: that matters only to what is ready by then. The data of a
//! request has come: that matters to its gate only if nothing else is left to wait for. Where nothing happens any more the clock still goes
//! to the last of them.

use super::{Engine, Event};
use crate::settings::Suspend;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Gate, Io};

impl Engine {
    /// `die` may be able to start something at `time`.
    #[inline]
    pub(super) fn wake_at(&mut self, die: u32, time: Nanos) {
        let key = self.events.reserve(time, Event::Wake(die));
        let state = &mut self.dies[die as usize];
        if time > self.now && !state.has_ready() && !self.wakes_always {
            state.wake = key;
        } else {
            self.events.add(key);
        }
    }

    /// Something is ready in `die`, which must wake for it.
    #[inline]
    pub(super) fn wake_in_time(&mut self, die: u32) {
        if self.dies[die as usize].wake.time() > self.now {
            self.add_wake(die);
        }
    }

    #[inline(never)]
    fn add_wake(&mut self, die: u32) {
        let key = std::mem::take(&mut self.dies[die as usize].wake);
        self.events.add(key);
    }

    /// Whether a second look at a die at one moment may start more than the first: suspension or resumption takes no time.
    pub(super) fn looks_twice(suspend: Suspend, t_suspend: Nanos, t_resume: Nanos) -> bool {
        suspend != Suspend::None && (t_suspend == 0 || t_resume == 0)
    }

    /// One thing that `gate` waits for is over at `at`: a moment, or the making of the plan of the request behind it.
    #[inline]
    pub fn planned(&mut self, io: &mut Io, gate: Gate, at: Nanos) {
        if at <= self.now {
            return self.signal(io, gate.slot());
        }
        let key = self.events.reserve(at, Event::Accepted(gate.slot()));
        let slot = &mut io.plan.gates.slots[gate.slot() as usize];
        if slot.remaining > 1 && slot.due == 0 {
            (slot.remaining, slot.due) = (slot.remaining - 1, key.0);
        } else {
            self.events.add(key);
        }
    }
}
