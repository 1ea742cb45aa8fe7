//! The memory of buffers: slabs, each of up to 64 places of one subpage.
//!
//! Whoever receives many subpages in a row does so in a [`Slab`] of his own, which becomes one of these as it is, in exchange for another of the
//! same size in which nothing is held: nothing is copied, and what was written in a row stays so in memory. Slabs are never given back.
//! Ignored: huge pages.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// Places of a slab, at the most: those of one word.
const MOST: usize = 64;

/// Slabs of at least this many bytes begin at a multiple of [`ALIGNED`]; smaller ones would lose too much by it.
const LARGE: usize = 128 << 10;

/// The pages of the machine: a subpage of 4 KiB is on one then, and not on two.
const ALIGNED: usize = 4096;

/// A slab comes in addition while at most one of so many places is free.
const SPARE: usize = 64;

/// Memory of subpages in a row.
#[derive(Debug, Default)]
pub struct Slab {
    memory: Vec<u8>,
    begin: usize,
    bytes: usize,
}

impl Slab {
    /// Zeroes.
    pub fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + if bytes < LARGE { 0 } else { ALIGNED }];
        // What is not to be had goes without.
        let begin = memory.as_ptr().align_offset(ALIGNED).min(memory.len() - bytes);
        Slab { memory, begin, bytes }
    }

    /// The memory, and where in it the slab begins, until it comes back to [`Self::take_back`].
    pub fn lend(&mut self) -> (Vec<u8>, usize) {
        (std::mem::take(&mut self.memory), self.begin)
    }

    /// The memory that was lent.
    pub fn take_back(&mut self, memory: Vec<u8>) {
        self.memory = memory;
    }
}

impl Deref for Slab {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.begin..][..self.bytes]
    }
}

impl DerefMut for Slab {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..][..self.bytes]
    }
}

/// A slab, and which of its places are free.
struct Held {
    slab: Slab,
    /// All places, as bits.
    all: u64,
    free: u64,
    /// It is among those with a free place, and among those of which all are.
    is_listed: bool,
    is_whole: bool,
}

/// Places for subpages, by number: 64 for each slab.
#[derive(Default)]
pub struct Slabs {
    subpage_bytes: usize,
    slabs: Vec<Held>,
    /// Those with a free place, and some without.
    partial: Vec<u32>,
    /// By their places, those of which all are free, and some of which they are not any more.
    whole: BTreeMap<usize, Vec<u32>>,
    places: usize,
    free: usize,
}

impl Slabs {
    /// No memory yet, for subpages of `subpage_bytes` bytes.
    pub fn new(subpage_bytes: usize) -> Self {
        Slabs { subpage_bytes, ..Slabs::default() }
    }

    /// Bytes of a place.
    pub fn subpage_bytes(&self) -> usize {
        self.subpage_bytes
    }

    /// Places in use.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.places - self.free
    }

    /// What is at `place`.
    #[inline]
    pub fn get(&self, place: u32) -> &[u8] {
        let Slab { memory, begin, .. } = &self.slabs[place as usize / MOST].slab;
        &memory[begin + place as usize % MOST * self.subpage_bytes..][..self.subpage_bytes]
    }

    /// As [`Self::get`], to be changed.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> &mut [u8] {
        let Slab { memory, begin, .. } = &mut self.slabs[place as usize / MOST].slab;
        &mut memory[*begin + place as usize % MOST * self.subpage_bytes..][..self.subpage_bytes]
    }

    /// A free place, which is in use from now on.
    #[inline]
    pub fn take(&mut self) -> u32 {
        loop {
            let Some(&slab) = self.partial.last() else {
                self.grow();
                continue;
            };
            let held = &mut self.slabs[slab as usize];
            if held.free == 0 {
                held.is_listed = false;
                self.partial.pop();
                continue;
            }
            let index = held.free.trailing_zeros();
            held.free &= held.free - 1;
            self.free -= 1;
            return slab * MOST as u32 + index;
        }
    }

    /// `place` is free.
    #[inline]
    pub fn give(&mut self, place: u32) {
        let slab = place as usize / MOST;
        let held = &mut self.slabs[slab];
        debug_assert_eq!(held.free >> (place as usize % MOST) & 1, 0, "a place in use");
        held.free |= 1 << (place as usize % MOST);
        self.free += 1;
        if !held.is_listed {
            held.is_listed = true;
            self.partial.push(slab as u32);
        }
        if held.free == held.all && !held.is_whole {
            held.is_whole = true;
            self.whole.entry(held.all.count_ones() as usize).or_default().push(slab as u32);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let slab = self.push(Slab::new(MOST * self.subpage_bytes));
        self.slabs[slab as usize].is_listed = true;
        self.partial.push(slab);
    }

    /// One more slab, of free places.
    fn push(&mut self, slab: Slab) -> u32 {
        let places = slab.len() / self.subpage_bytes;
        let all = u64::MAX >> (MOST - places);
        self.slabs.push(Held { slab, all, free: all, is_listed: false, is_whole: false });
        self.places += places;
        self.free += places;
        self.slabs.len() as u32 - 1
    }

    /// One of which all `places` are free.
    fn take_whole(&mut self, places: usize) -> Option<u32> {
        let listed = self.whole.get_mut(&places)?;
        while let Some(slab) = listed.pop() {
            let held = &mut self.slabs[slab as usize];
            held.is_whole = false;
            if held.free == held.all {
                return Some(slab);
            }
        }
        None
    }

    /// Takes `filled`, and gives another of its size for it. Returns its first place, of as many in a row as it has subpages, all in use from now
    /// on; `None`, and nothing is done, where it is not of that size, or where it would take memory while much of what there is is free.
    pub fn exchange(&mut self, filled: &mut Slab) -> Option<u32> {
        let places = filled.len() / self.subpage_bytes;
        if !(1..=MOST).contains(&places) || !filled.len().is_multiple_of(self.subpage_bytes) {
            return None;
        }
        let slab = match self.take_whole(places) {
            Some(slab) => {
                std::mem::swap(&mut self.slabs[slab as usize].slab, filled);
                slab
            }
            None if self.free * SPARE <= self.places => {
                let other = Slab::new(filled.len());
                self.push(std::mem::replace(filled, other))
            }
            None => return None,
        };
        self.slabs[slab as usize].free = 0;
        self.free -= places;
        Some(slab * MOST as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_received_in_a_row_stays_so_and_takes_the_memory_of_what_went() {
        let mut slabs = Slabs::new(512);
        let mut filled = Slab::new(8 * 512);
        let mut firsts = Vec::new();
        for byte in 1..=3 {
            filled.fill(byte);
            firsts.push(slabs.exchange(&mut filled).expect("nothing is free"));
            assert_eq!(filled.len(), 8 * 512);
        }
        assert_eq!((slabs.used(), slabs.places), (24, 24));
        assert!((0..8).all(|index| slabs.get(firsts[1] + index) == [2; 512]));
        (0..8).for_each(|index| slabs.give(firsts[1] + index));
        filled.fill(4);
        assert_eq!(slabs.exchange(&mut filled), Some(firsts[1]), "that of the second");
        assert_eq!((&filled[..512], slabs.get(firsts[1]), slabs.places), (&[2; 512][..], &[4; 512][..], 24));
        slabs.give(firsts[0] + 3);
        slabs.give(firsts[0] + 5);
        assert_eq!(slabs.exchange(&mut filled), None, "more than one of 64 is free");
        assert_eq!((slabs.take(), slabs.take()), (firsts[0] + 3, firsts[0] + 5));
        assert_eq!(slabs.exchange(&mut Slab::new(100)), None);
        assert_eq!(slabs.exchange(&mut Slab::new(65 * 512)), None);
    }

    #[test]
    fn a_slab_of_which_a_part_was_taken_again_is_not_whole() {
        let mut slabs = Slabs::new(512);
        let all: Vec<u32> = (0..64).map(|_| slabs.take()).collect();
        assert_eq!(all, (0..64).collect::<Vec<u32>>());
        for _ in 0..2 {
            all.iter().for_each(|&place| slabs.give(place));
            assert_eq!((slabs.take(), slabs.take_whole(64)), (0, None));
            slabs.give(0);
            assert_eq!(slabs.take_whole(64), Some(0));
            assert_eq!(all, (0..64).map(|_| slabs.take()).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn large_slabs_begin_at_pages() {
        for bytes in [512, 4096, LARGE, 2 * LARGE + 512] {
            let mut slab = Slab::new(bytes);
            assert_eq!(slab.len(), bytes);
            assert!(bytes < LARGE || (slab.as_ptr() as usize).is_multiple_of(ALIGNED));
            slab[bytes - 1] = 1;
            let (memory, begin) = slab.lend();
            assert_eq!(memory[begin + bytes - 1], 1);
            slab.take_back(memory);
            assert_eq!(slab[bytes - 1], 1);
        }
    }
}
