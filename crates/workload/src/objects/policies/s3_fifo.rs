//! `s3-fifo`: S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023) on regions.
//!
//! A tenth of the regions is the small queue, which new objects enter; the others are the main queue. When a region of
//! the small queue is evicted, objects that were read more than once since their insert move to the main queue, without
//! their reads; the keys of others are remembered, and such an object enters the main queue next time. When a region of
//! the main queue is evicted, objects that were read are written again, with one read less. The log remembers as many
//! keys as nine tenths of its objects.

use super::{Policy, PolicyEntry};
use std::collections::{HashMap, VecDeque};

pub const ENTRY: PolicyEntry = PolicyEntry {
    name: "s3-fifo",
    about: "a small queue for new objects and a main queue, which writes objects that were read again",
    build: |regions| {
        let target = (regions as usize / 10).max(1);
        Box::new(S3Fifo { target, queues: [VecDeque::new(), VecDeque::new()], ghosts: Ghosts::default() })
    },
};

const SMALL: usize = 0;
const MAIN: usize = 1;

struct S3Fifo {
    /// Regions of the small queue.
    target: usize,
    queues: [VecDeque<u32>; 2],
    ghosts: Ghosts,
}

/// Keys of objects evicted from the small queue, oldest first.
#[derive(Default)]
struct Ghosts {
    /// The number of each key's entry in `order`. Never iterated, because hash order must not affect a result.
    known: HashMap<u64, u64>,
    order: VecDeque<(u64, u64)>,
    entered: u64,
}

impl Ghosts {
    fn add(&mut self, key: u64, most: usize) {
        self.entered += 1;
        self.known.insert(key, self.entered);
        self.order.push_back((key, self.entered));
        while self.known.len() > most || self.order.len() > 2 * most.max(1) {
            let Some((key, entry)) = self.order.pop_front() else { return };
            if self.known.get(&key) == Some(&entry) {
                self.known.remove(&key);
            }
        }
    }
}

impl Policy for S3Fifo {
    fn queues(&self) -> usize {
        2
    }

    fn queue_of(&mut self, key: u64) -> usize {
        if self.ghosts.known.remove(&key).is_some() { MAIN } else { SMALL }
    }

    fn written(&mut self, region: u32, queue: usize) {
        self.queues[queue].push_back(region);
    }

    fn victim(&mut self) -> (u32, usize) {
        let from_small = self.queues[SMALL].len() >= self.target || self.queues[MAIN].is_empty();
        let queue = if from_small { SMALL } else { MAIN };
        (self.queues[queue].pop_front().expect("a log without free regions has written ones"), queue)
    }

    fn keeps(&self, queue: usize, hits: u8) -> Option<u8> {
        match queue {
            SMALL => (hits > 1).then_some(0),
            _ => hits.checked_sub(1),
        }
    }

    fn evicted(&mut self, key: u64, queue: usize, objects: usize) {
        if queue == SMALL {
            self.ghosts.add(key, objects * 9 / 10);
        }
    }
}
