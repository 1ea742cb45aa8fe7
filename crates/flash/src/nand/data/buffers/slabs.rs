//! The memory of buffers: slabs, each with up to 64 places of one subpage.
//!
//! A receiver of many consecutive subpages reads them into a [`Slab`] and exchanges the slab for an empty slab of the
//! same size. No byte is copied, and consecutive writes stay consecutive in memory. Slabs are never freed.
//!
//! A sender of subpages may hold a [`Loan`] of the memory while others use the slabs. Nothing is written to lent memory
//! until the loan is dropped; writes meanwhile use other places. Ignored: huge pages.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// Most places of a slab, one bit of a word each.
const MOST: usize = 64;

/// Slabs of at least this many bytes are aligned to [`ALIGNED`]; smaller slabs would waste too much memory.
const LARGE: usize = 128 << 10;

/// Page size of the machine; an aligned subpage of 4 KiB then touches one page instead of two.
const ALIGNED: usize = 4096;

/// A new slab is allocated if at most 1 / `SPARE` of all places is free.
const SPARE: usize = 64;

/// Memory of consecutive subpages.
#[derive(Debug, Default)]
pub struct Slab {
    memory: Arc<Vec<u8>>,
    begin: usize,
    bytes: usize,
}

impl Slab {
    /// A slab of `bytes` zeros.
    pub fn new(bytes: usize) -> Self {
        let memory = vec![0; bytes + if bytes < LARGE { 0 } else { ALIGNED }];
        // `align_offset` may find no alignment; the slab is then unaligned.
        let begin = memory.as_ptr().align_offset(ALIGNED).min(memory.len() - bytes);
        Slab { memory: Arc::new(memory), begin, bytes }
    }

    /// Whether a loan of the memory exists, so that nothing may be written.
    #[inline]
    fn is_lent(&self) -> bool {
        Arc::strong_count(&self.memory) > 1
    }

    /// The memory, which must not be lent.
    #[inline]
    fn own(&mut self) -> &mut Vec<u8> {
        Arc::get_mut(&mut self.memory).expect("no one reads what is written")
    }

    /// Moves the memory out, with the offset of the slab in it, until [`Self::take_back`].
    pub fn lend(&mut self) -> (Vec<u8>, usize) {
        (std::mem::take(self.own()), self.begin)
    }

    /// Returns the memory of [`Self::lend`].
    pub fn take_back(&mut self, memory: Vec<u8>) {
        *self.own() = memory;
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
        let (begin, bytes) = (self.begin, self.bytes);
        &mut self.own()[begin..][..bytes]
    }
}

/// Bytes of a slab, which never change before the loan is dropped.
#[derive(Debug)]
pub struct Loan {
    memory: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Deref for Loan {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }
}

/// A slab and its free places.
struct Held {
    slab: Slab,
    /// All places, as bits.
    all: u64,
    free: u64,
    /// Whether `partial`, and `whole`, list the slab.
    is_listed: bool,
    is_whole: bool,
}

/// Places for subpages, by number: 64 for each slab.
#[derive(Default)]
pub struct Slabs {
    subpage_bytes: usize,
    slabs: Vec<Held>,
    /// All slabs with a free place, and some without.
    partial: Vec<u32>,
    /// All slabs of which every place is free, by number of places, and some that are in use again.
    whole: BTreeMap<usize, Vec<u32>>,
    places: usize,
    free: usize,
}

impl Slabs {
    /// Places for subpages of `subpage_bytes` bytes, without memory yet.
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

    /// The bytes at `place`.
    #[inline]
    pub fn get(&self, place: u32) -> &[u8] {
        let Slab { memory, begin, .. } = &self.slabs[place as usize / MOST].slab;
        &memory[begin + place as usize % MOST * self.subpage_bytes..][..self.subpage_bytes]
    }

    /// The bytes at `place`, for writes.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> &mut [u8] {
        let slab = &mut self.slabs[place as usize / MOST].slab;
        let begin = slab.begin + place as usize % MOST * self.subpage_bytes;
        &mut slab.own()[begin..][..self.subpage_bytes]
    }

    /// Whether the slab of `place` is lent.
    #[inline]
    pub fn is_lent(&self, place: u32) -> bool {
        self.slabs[place as usize / MOST].slab.is_lent()
    }

    /// Appends a loan of the bytes `part` of `place`; extends the last of `loans` if that loan ends there.
    #[inline]
    pub fn lend(&self, place: u32, part: Range<usize>, loans: &mut Vec<Loan>) {
        let Slab { memory, begin, .. } = &self.slabs[place as usize / MOST].slab;
        let first = begin + place as usize % MOST * self.subpage_bytes;
        let range = first + part.start..first + part.end;
        match loans.last_mut() {
            Some(last) if Arc::ptr_eq(&last.memory, memory) && last.range.end == range.start => {
                last.range.end = range.end;
            }
            _ => loans.push(Loan { memory: Arc::clone(memory), range }),
        }
    }

    /// A free place, which is now in use.
    #[inline]
    pub fn take(&mut self) -> u32 {
        loop {
            let slabs = &self.slabs;
            let usable = |&slab: &u32| slabs[slab as usize].free == 0 || !slabs[slab as usize].slab.is_lent();
            let Some(at) = self.partial.iter().rposition(usable) else {
                self.grow();
                continue;
            };
            let slab = self.partial[at];
            let held = &mut self.slabs[slab as usize];
            if held.free == 0 {
                held.is_listed = false;
                self.partial.swap_remove(at);
                continue;
            }
            let index = held.free.trailing_zeros();
            held.free &= held.free - 1;
            self.free -= 1;
            return slab * MOST as u32 + index;
        }
    }

    /// Frees `place`.
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

    /// Adds a slab of free places.
    fn push(&mut self, slab: Slab) -> u32 {
        let places = slab.len() / self.subpage_bytes;
        let all = u64::MAX >> (MOST - places);
        self.slabs.push(Held { slab, all, free: all, is_listed: false, is_whole: false });
        self.places += places;
        self.free += places;
        self.slabs.len() as u32 - 1
    }

    /// A slab of `places` places that are all free and not lent.
    fn take_whole(&mut self, places: usize) -> Option<u32> {
        let (slabs, listed) = (&mut self.slabs, self.whole.get_mut(&places)?);
        loop {
            let usable = |held: &Held| held.free != held.all || !held.slab.is_lent();
            let at = listed.iter().rposition(|&slab| usable(&slabs[slab as usize]))?;
            let slab = listed.swap_remove(at);
            let held = &mut slabs[slab as usize];
            held.is_whole = false;
            if held.free == held.all {
                return Some(slab);
            }
        }
    }

    /// Exchanges `filled` for another slab of its size. Returns the first of the consecutive places of `filled`, all in
    /// use from now on. Returns `None` without an effect if the size does not fit, or if a new slab would be allocated
    /// while many places are free.
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
mod tests;
