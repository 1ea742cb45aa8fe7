//! `fifo`: evicts the region that was written first.

use super::{Policy, PolicyEntry};
use std::collections::VecDeque;

pub const ENTRY: PolicyEntry = PolicyEntry {
    name: "fifo",
    about: "evicts the region that was written first",
    build: |_| Box::new(Fifo(VecDeque::new())),
};

/// Regions in the order of writing.
struct Fifo(VecDeque<u32>);

impl Policy for Fifo {
    fn written(&mut self, region: u32, _queue: usize) {
        self.0.push_back(region);
    }

    fn victim(&mut self) -> (u32, usize) {
        (self.0.pop_front().expect("a log without free regions has written ones"), 0)
    }
}
