//! A cache in memory before the parts on the drive, as CacheLib's DRAM cache: gets that hit here read no drive, inserts
//! go here, and objects that leave go to the drive. An object that was read from the drive is clean: the object goes
//! there again only if the drive has evicted it meanwhile.
//!
//! Ignored: headers of objects, classes of sizes (slabs), and the time of a hit.

use crate::object_figures::MemoryFigures;
use std::collections::{BTreeMap, HashMap};

/// An object in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Bytes of key and value.
    pub bytes: u64,
    /// The class of the object.
    pub class: u32,
    /// True if the object was read from the drive.
    pub is_clean: bool,
}

/// Order of eviction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// The object used the longest ago first.
    #[default]
    Lru,
    /// The object inserted first.
    Fifo,
}

/// The cache in memory.
pub struct Memory {
    policy: MemoryPolicy,
    used: u64,
    /// Never iterated, because hash order must not affect a result. With the place in `order`.
    objects: HashMap<u64, (u64, Held)>,
    /// Keys, the next to evict first.
    order: BTreeMap<u64, u64>,
    turn: u64,
    pub figures: MemoryFigures,
}

impl Memory {
    /// An empty cache of `bytes`.
    pub fn new(bytes: u64, policy: MemoryPolicy) -> Self {
        let figures = MemoryFigures { capacity_bytes: bytes, ..MemoryFigures::default() };
        Memory { policy, used: 0, objects: HashMap::new(), order: BTreeMap::new(), turn: 0, figures }
    }

    /// Bytes of an object, which counts as used; `None` if it is absent.
    pub fn get(&mut self, key: u64) -> Option<u64> {
        let (place, held) = self.objects.get_mut(&key)?;
        if self.policy == MemoryPolicy::Lru {
            self.order.remove(place);
            *place = self.turn;
            self.order.insert(self.turn, key);
            self.turn += 1;
        }
        self.figures.hits += 1;
        Some(held.bytes)
    }

    /// Inserts an object, or replaces it.
    pub fn insert(&mut self, key: u64, held: Held) {
        self.remove(key);
        self.objects.insert(key, (self.turn, held));
        self.order.insert(self.turn, key);
        self.turn += 1;
        self.used += held.bytes;
        self.figures.inserts += 1;
    }

    /// Removes an object.
    pub fn remove(&mut self, key: u64) {
        if let Some((place, held)) = self.objects.remove(&key) {
            self.order.remove(&place);
            self.used -= held.bytes;
        }
    }

    /// The next object that must leave, and its key; `None` if all fit.
    pub fn evict(&mut self) -> Option<(u64, Held)> {
        if self.used <= self.figures.capacity_bytes {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        let (_, held) = self.objects.remove(&key).expect("an object in the order");
        self.used -= held.bytes;
        self.figures.evicted += 1;
        Some((key, held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_that_leave(policy: MemoryPolicy) -> Vec<u64> {
        let mut memory = Memory::new(300, policy);
        let held = Held { bytes: 100, class: 0, is_clean: false };
        (1..=3).for_each(|key| memory.insert(key, held));
        assert_eq!((memory.get(1), memory.get(9), memory.evict()), (Some(100), None, None));
        memory.insert(4, Held { bytes: 200, ..held });
        std::iter::from_fn(|| memory.evict()).map(|(key, _)| key).collect()
    }

    #[test]
    fn the_policy_names_the_objects_that_leave() {
        assert_eq!(keys_that_leave(MemoryPolicy::Lru), [2, 3]);
        assert_eq!(keys_that_leave(MemoryPolicy::Fifo), [1, 2]);
    }
}
