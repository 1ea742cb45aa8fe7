//! The end of a drive's life: gates that wait for operations which the drive can no longer plan, such as the program of
//! an open page.
//!
//! Flash already has the state after each planned operation, so all of them run. Ignored: the order that those gates
//! kept.

use super::gates::Waiter;
use super::{Engine, NONE};
use palimpsest_ftl_api::plan::Io;

impl Engine {
    /// Signals gates in place of operations and requests that will never be planned. May be called only when no event
    /// is left.
    pub fn signal_unplanned(&mut self, io: &mut Io) {
        let mut unplanned: Vec<u32> = io.plan.gates.slots.iter().map(|slot| slot.remaining).collect();
        let mut is_free = vec![false; self.edges.entries.len()];
        self.edges.free.iter().for_each(|&edge| is_free[edge as usize] = true);
        let live = self.edges.entries.iter().zip(is_free).filter(|(_, is_free)| !is_free);
        let by_edges = live.filter_map(|(edge, _)| match edge.waiter {
            Waiter::Gate(slot) => Some(slot),
            Waiter::Crossing(index) => Some(self.link.crossings.slot(index)),
            Waiter::Operation(_) | Waiter::Request(_) => None,
        });
        let by_operations = self.pending.live().into_iter().map(|index| self.pending[index].signal);
        for slot in by_edges.chain(by_operations).filter(|&slot| slot != NONE).collect::<Vec<_>>() {
            unplanned[slot as usize] -= 1;
        }
        for (slot, signals) in (0..).zip(unplanned) {
            (0..signals).for_each(|_| self.signal(io, slot));
        }
    }
}
