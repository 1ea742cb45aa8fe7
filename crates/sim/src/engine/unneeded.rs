//! Events that mostly have no effect: the engine reserves their place in the order of events, and adds them only when
//! needed. The order of all events is as if they had been added at once.
//!
//! A die wakes when its array starts on loaded data, which matters only to operations ready by then. The arrival of a
//! request's data matters to its gate only if the gate waits for nothing else. If no other event is left, the clock
//! still advances to the last reserved one.

use super::{Engine, Event};
use crate::settings::Suspend;
use palimpsest_flash::nand::part::Part;
use palimpsest_flash::units::Nanos;
use palimpsest_ftl_api::plan::{Gate, Io};

impl Engine {
    /// Reserves a wake-up of `die` at `time`, when it may be able to start an operation.
    #[inline]
    pub(super) fn wake_at(&mut self, die: u32, time: Nanos) {
        let key = self.events.reserve(time, Event::Wake(die));
        let state = &mut self.hardware.dies[die as usize];
        if time > self.now && !state.has_ready() && !self.setup.wakes_always {
            state.wake = key;
        } else {
            self.events.add(key);
        }
    }

    /// Adds the reserved wake-up of `die`, because an operation is ready.
    #[inline]
    pub(super) fn wake_in_time(&mut self, die: u32) {
        if self.hardware.dies[die as usize].wake.time() > self.now {
            self.add_wake(die);
        }
    }

    #[inline(never)]
    fn add_wake(&mut self, die: u32) {
        let key = std::mem::take(&mut self.hardware.dies[die as usize].wake);
        self.events.add(key);
    }

    /// True if checking a die twice at one time may start more than checking once, because suspension or resumption
    /// takes no time.
    pub(super) fn looks_twice(suspend: Suspend, part: &Part) -> bool {
        suspend != Suspend::None && (part.t_suspend == 0 || part.t_suspend_erase == 0 || part.t_resume == 0)
    }

    /// Signals `gate` at `at`: for a delay, or after the plan of a request was made.
    #[inline]
    pub fn planned(&mut self, io: &mut Io, gate: Gate, at: Nanos) {
        if at <= self.now {
            self.noted(|engine| engine.record_time(None));
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
