//! Cached units in the order of a segmented LRU (Karedla, Love and Wherry, Computer 27(3), 1994).
//!
//! A new unit is probationary and becomes protected when requested again. The protected segment is half; an overflow
//! makes the oldest protected unit the newest probationary one. The oldest probationary unit is evicted first. A cache
//! with room for all units evicts none. Such a cache has no order, and slots only for units that had to arrive.

use palimpsest_flash::prefetch::prefetch;
use palimpsest_ftl_api::plan::Gate;

const NONE: u32 = u32::MAX;
/// Slot of a unit that is cached without a slot.
const WITHOUT: u32 = u32::MAX - 1;
const PROBATIONARY: usize = 0;
const PROTECTED: usize = 1;

#[derive(Clone, Copy, Default)]
struct Slot {
    unit: u32,
    segment: usize,
    older: u32,
    newer: u32,
    /// Closes when the unit has arrived.
    ready: Gate,
}

palimpsest_flash::state!(Slot { unit, segment, older, newer, ready });

#[derive(Clone, Copy)]
struct Segment {
    oldest: u32,
    newest: u32,
    length: u32,
}

palimpsest_flash::state!(Segment { oldest, newest, length });

const EMPTY: Segment = Segment { oldest: NONE, newest: NONE, length: 0 };

/// Units, each clean or dirty.
pub(super) struct Segments {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slot of each unit, [`WITHOUT`] or [`NONE`].
    slot_of: Vec<u32>,
    /// The dirty units, as bits.
    dirty: Vec<u64>,
    segments: [Segment; 2],
    most_protected: u32,
    /// True if some unit may be evicted.
    evicts: bool,
}

palimpsest_flash::state!(Segments { slots, free, slot_of, dirty, segments } built { most_protected, evicts });

impl Segments {
    /// An empty cache for `units` units; half of `room` may be protected.
    pub fn new(units: u32, room: u32) -> Self {
        let (slots, free, slot_of) = (Vec::new(), Vec::new(), vec![NONE; units as usize]);
        let dirty = vec![0; units.div_ceil(64) as usize];
        let (segments, most_protected, evicts) = ([EMPTY; 2], room / 2, room < units);
        Segments { slots, free, slot_of, dirty, segments, most_protected, evicts }
    }

    #[inline]
    pub fn len(&self) -> u32 {
        self.segments[PROBATIONARY].length + self.segments[PROTECTED].length
    }

    #[inline]
    pub fn is_dirty(&self, unit: u32) -> bool {
        self.dirty[unit as usize / 64] >> (unit % 64) & 1 == 1
    }

    /// Records a request for `unit`. If cached, returns the gate that closes when the unit has arrived.
    #[inline]
    pub fn hit(&mut self, unit: u32) -> Option<Gate> {
        match self.slot_of[unit as usize] {
            NONE => None,
            WITHOUT => Some(Gate::NONE),
            slot => {
                if self.evicts {
                    self.renew(slot);
                }
                Some(self.slots[slot as usize].ready)
            }
        }
    }

    /// Makes `slot` the newest protected one.
    fn renew(&mut self, slot: u32) {
        self.unlink(slot);
        self.link_newest(slot, PROTECTED);
        if self.segments[PROTECTED].length > self.most_protected {
            let oldest = self.segments[PROTECTED].oldest;
            self.unlink(oldest);
            self.link_newest(oldest, PROBATIONARY);
        }
    }

    /// Prefetches the slot of `unit` into CPU caches.
    #[inline]
    pub fn prefetch(&self, unit: u32) {
        prefetch(&self.slot_of, unit as usize);
    }

    /// Inserts `unit`, which must not be cached, as clean; `ready` closes when the unit has arrived.
    pub fn insert(&mut self, unit: u32, ready: Gate) {
        if self.evicts || !ready.is_none() {
            let slot = self.take_slot(unit, ready);
            self.link_newest(slot, PROBATIONARY);
        } else {
            self.insert_without_slot(unit);
        }
    }

    #[inline]
    fn insert_without_slot(&mut self, unit: u32) {
        self.slot_of[unit as usize] = WITHOUT;
        self.segments[PROBATIONARY].length += 1;
    }

    /// Marks `unit` dirty. If not cached, inserts the unit as the next to evict.
    #[inline]
    pub fn dirty(&mut self, unit: u32) {
        self.dirty[unit as usize / 64] |= 1 << (unit % 64);
        if self.slot_of[unit as usize] != NONE {
            return;
        }
        if self.evicts {
            let slot = self.take_slot(unit, Gate::NONE);
            self.link_oldest(slot);
        } else {
            self.insert_without_slot(unit);
        }
    }

    /// Marks `units` clean; returns how many were dirty.
    pub fn clean(&mut self, units: std::ops::Range<u32>) -> u32 {
        let (mut at, mut cleaned) = (units.start, 0);
        while at < units.end {
            let count = (64 - at % 64).min(units.end - at);
            let bits = u64::MAX >> (64 - count) << (at % 64);
            let word = &mut self.dirty[at as usize / 64];
            cleaned += (*word & bits).count_ones();
            *word &= !bits;
            at += count;
        }
        cleaned
    }

    /// The unit to evict first.
    pub fn oldest(&self) -> Option<u32> {
        let oldest = self.segments.iter().map(|segment| segment.oldest).find(|&oldest| oldest != NONE)?;
        Some(self.slots[oldest as usize].unit)
    }

    /// Removes `unit`, which must be clean.
    pub fn remove(&mut self, unit: u32) {
        let slot = std::mem::replace(&mut self.slot_of[unit as usize], NONE);
        self.unlink(slot);
        self.free.push(slot);
    }

    /// Removes all units.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.free.clear();
        self.slot_of.fill(NONE);
        self.dirty.fill(0);
        self.segments = [EMPTY; 2];
    }

    fn take_slot(&mut self, unit: u32, ready: Gate) -> u32 {
        let taken = Slot { unit, segment: PROBATIONARY, older: NONE, newer: NONE, ready };
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        match self.slots.get_mut(slot as usize) {
            Some(free) => *free = taken,
            None => self.slots.push(taken),
        }
        self.slot_of[unit as usize] = slot;
        slot
    }

    fn link_newest(&mut self, slot: u32, segment: usize) {
        let older = std::mem::replace(&mut self.segments[segment].newest, slot);
        match older {
            NONE => self.segments[segment].oldest = slot,
            older => self.slots[older as usize].newer = slot,
        }
        self.segments[segment].length += 1;
        let linked = &mut self.slots[slot as usize];
        (linked.segment, linked.older, linked.newer) = (segment, older, NONE);
    }

    fn link_oldest(&mut self, slot: u32) {
        let newer = std::mem::replace(&mut self.segments[PROBATIONARY].oldest, slot);
        match newer {
            NONE => self.segments[PROBATIONARY].newest = slot,
            newer => self.slots[newer as usize].older = slot,
        }
        self.segments[PROBATIONARY].length += 1;
        let linked = &mut self.slots[slot as usize];
        (linked.segment, linked.older, linked.newer) = (PROBATIONARY, NONE, newer);
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { segment, older, newer, .. } = self.slots[slot as usize];
        match older {
            NONE => self.segments[segment].oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NONE => self.segments[segment].newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        self.segments[segment].length -= 1;
    }

    /// Checks the order of each segment.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&self) -> Result<(), String> {
        if !self.evicts {
            let cached = self.slot_of.iter().filter(|&&slot| slot != NONE).count() as u32;
            let differs = cached != self.len();
            return if differs {
                Err(format!("the cache has {cached} units, and counts {}", self.len()))
            } else {
                Ok(())
            };
        }
        for (number, segment) in self.segments.iter().enumerate() {
            let first = (segment.oldest != NONE).then_some(segment.oldest);
            let newer = |slot: &u32| Some(self.slots[*slot as usize].newer).filter(|&newer| newer != NONE);
            let order: Vec<u32> = std::iter::successors(first, newer).collect();
            let astray = order.iter().find(|&&slot| {
                let Slot { unit, segment, .. } = self.slots[slot as usize];
                segment != number || self.slot_of[unit as usize] != slot
            });
            if let Some(slot) = astray {
                return Err(format!("slot {slot} of the cache is in segment {number} astray"));
            }
            if order.len() as u32 != segment.length || order.last().is_some_and(|&last| last != segment.newest) {
                return Err(format!("segment {number} of the cache lists {order:?}, and counts {}", segment.length));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
