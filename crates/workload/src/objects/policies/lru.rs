//! `lru`: evicts the region whose last read or write is the longest ago, as CacheLib does by default. Objects have no
//! order of their own.

use super::{Policy, PolicyEntry};
use std::collections::BTreeMap;

pub const ENTRY: PolicyEntry = PolicyEntry {
    name: "lru",
    about: "evicts the region whose last read or write is the longest ago",
    build: |regions| Box::new(Lru { uses: 0, used: vec![None; regions as usize], order: BTreeMap::new() }),
};

struct Lru {
    uses: u64,
    /// Number of the last use of each written region.
    used: Vec<Option<u64>>,
    /// Regions by their last use.
    order: BTreeMap<u64, u32>,
}

impl Policy for Lru {
    fn written(&mut self, region: u32, _queue: usize) {
        self.uses += 1;
        if let Some(before) = self.used[region as usize].replace(self.uses) {
            self.order.remove(&before);
        }
        self.order.insert(self.uses, region);
    }

    fn hit(&mut self, region: u32) {
        if self.used[region as usize].is_some() {
            self.written(region, 0);
        }
    }

    fn victim(&mut self) -> (u32, usize) {
        let (_, region) = self.order.pop_first().expect("a log without free regions has written ones");
        self.used[region as usize] = None;
        (region, 0)
    }
}
