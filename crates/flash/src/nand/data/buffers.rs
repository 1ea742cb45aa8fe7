//! Memory for real bytes, in slabs: what the controller holds and what cells hold, each content once.
//!
//! A buffer holds one subpage and never changes. Cells and whoever else keeps it beyond a request pin it; what is not pinned goes when the
//! request ends. So a program stores a number, and a move of data copies nothing. Slabs are never given back.
//!
//! Where no power cut can bring it back, what the host has overwritten gives its memory away at once ([`Buffers::forget_overwritten`]), and
//! its cells hold nothing that the host wrote until they are erased: so memory has what the drive holds, not what flash does, and a layer
//! that reads stale cells is found out.

use super::Data;
use crate::prefetch::prefetch;

/// Bytes of a slab, if a subpage is not larger.
const SLAB: usize = 1 << 20;

/// Slabs begin at multiples of this, the pages of the machine: a subpage of 4 KiB is on one then, and not on two.
const ALIGNED: usize = 4096;

/// Pins of a buffer that is free.
const FREE: u32 = u32::MAX;

/// The place of a buffer that has none.
const NOWHERE: u32 = u32::MAX;

/// What cells hold that the host has overwritten.
const OVERWRITTEN: u8 = 0xa5;

/// Memory for real bytes. A buffer lives until the request that made it ends, unless it is pinned.
#[derive(Default)]
pub struct Buffers {
    /// Whether [`Data`] names buffers at all; with fingerprints there is nothing to pin.
    real: bool,
    subpage_bytes: usize,
    /// The memory, and where in it each slab begins.
    slabs: Vec<(Box<[u8]>, usize)>,
    /// Of each buffer: how often it is pinned.
    pins: Vec<u32>,
    free: Vec<u32>,
    /// Of each buffer: its place in the slabs.
    places: Vec<u32>,
    free_places: Vec<u32>,
    /// Of each buffer: the logical subpage that it was written to, and one; 0 for none.
    owners: Vec<u32>,
    /// Of each logical subpage: what the host wrote last, a buffer's number and one; empty where nothing is forgotten.
    written: Vec<u32>,
    /// Logical subpages that the present request has overwritten, and what they had.
    overwritten: Vec<(u32, u32)>,
    /// What is read in their place then.
    gone: Box<[u8]>,
    /// Buffers that may have no pin when the request ends; some more than once.
    transient: Vec<u32>,
}

impl Buffers {
    /// Empty memory for subpages of `subpage_bytes` bytes.
    pub fn new(subpage_bytes: usize) -> Self {
        Buffers { real: true, subpage_bytes, ..Buffers::default() }
    }

    /// As [`Self::new`]; where contents are not `real`, there is nothing to pin.
    pub(super) fn for_cells(real: bool, subpage_bytes: usize) -> Self {
        Buffers { real, ..Buffers::new(subpage_bytes) }
    }

    /// Bytes of a buffer.
    pub fn subpage_bytes(&self) -> usize {
        self.subpage_bytes
    }

    fn per_slab(&self) -> usize {
        (SLAB / self.subpage_bytes).max(1)
    }

    #[inline]
    fn bytes(&self, index: usize) -> &[u8] {
        let (per_slab, place) = (self.per_slab(), self.places[index] as usize);
        if place == NOWHERE as usize {
            return &self.gone;
        }
        let (slab, begin) = &self.slabs[place / per_slab];
        &slab[begin + place % per_slab * self.subpage_bytes..][..self.subpage_bytes]
    }

    #[cold]
    fn grow(&mut self) {
        let (per_slab, first) = (self.per_slab(), self.slabs.len() * self.per_slab());
        let slab: Box<[u8]> = vec![0; per_slab * self.subpage_bytes + ALIGNED].into();
        // What is not to be had goes without.
        let begin = slab.as_ptr().align_offset(ALIGNED).min(ALIGNED);
        self.slabs.push((slab, begin));
        self.free_places.extend((first as u32..(first + per_slab) as u32).rev());
    }

    /// Takes a buffer, which `fill` fills; what it held before is anything.
    #[inline]
    pub fn fill(&mut self, fill: impl FnOnce(&mut [u8])) -> Data {
        if self.free_places.is_empty() {
            self.grow();
        }
        let place = self.free_places.pop().expect("a slab has places");
        let index = self.free.pop().unwrap_or_else(|| {
            self.pins.push(FREE);
            self.places.push(NOWHERE);
            self.owners.push(0);
            self.pins.len() as u32 - 1
        });
        self.pins[index as usize] = 0;
        self.places[index as usize] = place;
        self.owners[index as usize] = 0;
        self.transient.push(index);
        let (per_slab, place) = (self.per_slab(), place as usize);
        let (slab, begin) = &mut self.slabs[place / per_slab];
        fill(&mut slab[*begin + place % per_slab * self.subpage_bytes..][..self.subpage_bytes]);
        Data::new(u64::from(index) + 1)
    }

    /// From now on the memory of what the host overwrites in its `subpages` is given away, where contents are real: no one reads it again.
    pub fn forget_overwritten(&mut self, subpages: usize) {
        self.written = vec![0; if self.real { subpages } else { 0 }];
        self.gone = vec![OVERWRITTEN; self.subpage_bytes].into();
    }

    /// Nothing is given away any more, not that of the present request either, which may have failed.
    pub fn forget_nothing(&mut self) {
        self.written = Vec::new();
        self.overwritten.clear();
    }

    /// The host writes `data`, a buffer that was filled for it, over logical subpage `lsn`, or zeros by a trim.
    #[inline]
    pub fn overwrite(&mut self, lsn: u32, data: Data) {
        let Some(written) = self.written.get_mut(lsn as usize) else { return };
        let old = std::mem::replace(written, data.value as u32);
        if let Some(new) = (data.value as usize).checked_sub(1) {
            self.owners[new] = lsn + 1;
        }
        // A buffer that was freed, as its bytes were copied, may be the new one.
        self.overwritten
            .extend(old.checked_sub(1).filter(|&index| index + 1 != data.value as u32).map(|old| (lsn, old)));
    }

    /// Puts a copy of `bytes` into a buffer.
    pub fn keep(&mut self, bytes: &[u8]) -> Data {
        assert_eq!(bytes.len(), self.subpage_bytes, "a buffer holds one subpage");
        self.fill(|place| place.copy_from_slice(bytes))
    }

    /// The bytes of `data`; `None` for zeros.
    #[inline]
    pub fn get(&self, data: Data) -> Option<&[u8]> {
        let index = self.index_of(data)?;
        assert!(self.pins[index] != FREE, "a live buffer");
        Some(self.bytes(index))
    }

    /// Prefetches the bytes of `data`, which are read soon.
    #[inline]
    pub fn prefetch(&self, data: Data) {
        if let Some(bytes) = self.get(data) {
            (0..bytes.len()).step_by(64).for_each(|line| prefetch(bytes, line));
        }
    }

    #[inline]
    fn index(&self, data: Data) -> Option<usize> {
        if self.real { self.index_of(data) } else { None }
    }

    #[inline]
    fn index_of(&self, data: Data) -> Option<usize> {
        if data == Data::LOST { None } else { (data.value as usize).checked_sub(1) }
    }

    /// Keeps `data` alive beyond its request.
    pub fn pin(&mut self, data: Data) {
        if let Some(index) = self.index(data) {
            assert!(self.pins[index] != FREE, "a live buffer");
            self.pins[index] += 1;
        }
    }

    /// Takes back one [`Self::pin`]; the buffer goes when its last pin went and the present request ends.
    pub fn unpin(&mut self, data: Data) {
        if let Some(index) = self.index(data) {
            assert!(!matches!(self.pins[index], 0 | FREE), "a pinned buffer");
            self.pins[index] -= 1;
            if self.pins[index] == 0 {
                self.transient.push(index as u32);
            }
        }
    }

    /// Frees every buffer that no one pinned: the request is over.
    pub fn end_request(&mut self) {
        for (lsn, index) in self.overwritten.drain(..) {
            // A buffer whose cells were lost may have become that of another.
            if self.owners[index as usize] != lsn + 1 {
                continue;
            }
            let place = std::mem::replace(&mut self.places[index as usize], NOWHERE);
            if place != NOWHERE {
                self.free_places.push(place);
            }
        }
        for index in self.transient.drain(..) {
            if self.pins[index as usize] == 0 {
                self.pins[index as usize] = FREE;
                self.free.push(index);
                let place = std::mem::replace(&mut self.places[index as usize], NOWHERE);
                if place != NOWHERE {
                    self.free_places.push(place);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_goes_with_its_last_pin() {
        let mut buffers = Buffers::new(512);
        let (kept, passing) = (buffers.keep(&[1; 512]), buffers.keep(&[2; 512]));
        buffers.pin(kept);
        buffers.pin(kept);
        buffers.unpin(kept);
        buffers.end_request();
        assert_eq!(buffers.get(kept), Some(&[1; 512][..]));
        assert!(std::panic::catch_unwind(|| buffers.get(passing).map(<[u8]>::len)).is_err(), "it is free");
        buffers.unpin(kept);
        assert_eq!(buffers.get(kept), Some(&[1; 512][..]), "until the request ends");
        buffers.end_request();
        let again = [buffers.keep(&[3; 512]), buffers.keep(&[4; 512])];
        assert!(again.contains(&kept) && again.contains(&passing), "their places are taken again");
    }

    #[test]
    fn what_is_overwritten_gives_its_memory_away() {
        let mut buffers = Buffers::new(512);
        buffers.forget_overwritten(2);
        let mut write = |lsn, byte| {
            let data = buffers.keep(&[byte; 512]);
            buffers.overwrite(lsn, data);
            buffers.pin(data);
            buffers.end_request();
            (
                data,
                buffers.get(data).map(|bytes| bytes[0]),
                buffers.slabs.len() * buffers.per_slab() - buffers.free_places.len(),
            )
        };
        let (first, _, _) = write(0, 1);
        for turn in 0..100 {
            let (_, held, used) = write(turn % 2, turn as u8);
            assert_eq!((held, used), (Some(turn as u8), 1 + usize::from(turn > 0)));
        }
        assert_eq!(buffers.get(first), Some(&[OVERWRITTEN; 512][..]), "its cells are there");
        buffers.unpin(first);
        buffers.end_request();
        assert_eq!(buffers.keep(&[3; 512]), first, "they were erased");
        buffers.forget_nothing();
        let (_, _, used) = (buffers.overwrite(0, first), buffers.end_request(), buffers.written.len());
        assert_eq!(used, 0);
    }

    #[test]
    fn subpages_may_be_larger_than_a_slab() {
        let mut buffers = Buffers::new(2 * SLAB);
        let (one, two) = (buffers.keep(&vec![1; 2 * SLAB]), buffers.keep(&vec![2; 2 * SLAB]));
        assert_eq!((buffers.get(one).unwrap()[2 * SLAB - 1], buffers.get(two).unwrap()[0]), (1, 2));
    }
}
