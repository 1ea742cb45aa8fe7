//! Memory for real bytes, in [slabs]: contents of controller memory and cells, each stored once.
//!
//! A buffer holds one subpage and never changes. Cells, and any other holder beyond a request, pin the buffer; unpinned
//! buffers are freed when the request ends. A program therefore stores a number, and a move of data copies nothing.
//!
//! If no power cut can restore overwritten data, memory of overwritten subpages is freed at once
//! ([`Buffers::forget_overwritten`]) and reused for the new data. The old cells then read as a fixed pattern until
//! their erase. Memory therefore holds the drive's data, not the flash's, and a layer that reads stale cells is
//! detected.

pub mod slabs;

use super::Data;
use crate::prefetch::prefetch;
use slabs::{Loan, Slab, Slabs};
use std::ops::Range;

/// `pins` of a free buffer.
const FREE: u32 = u32::MAX;

/// `place` of a buffer without memory.
const NOWHERE: u32 = u32::MAX;

/// Each byte that overwritten cells read as.
const OVERWRITTEN: u8 = 0xa5;

/// A buffer. Its numbers are adjacent, because requests access random buffers and each cache line costs a miss.
#[derive(Clone, Copy)]
struct Buffer {
    /// Number of pins.
    pins: u32,
    /// Place in the slabs.
    place: u32,
    /// The logical subpage of the write plus one; 0: none.
    owner: u32,
}

/// Prefetch steps of a request to a logical subpage, in this order: each step yields the address of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The number of the buffer.
    Name,
    /// The place of the buffer.
    Place,
    /// The bytes.
    Bytes,
}

/// Most bytes that are prefetched; the rest of a larger subpage is read sequentially anyway.
const MOST_EXPECTED: usize = 4096;

/// Memory for real bytes. A buffer is freed at the end of the request that made it, unless pinned.
#[derive(Default)]
pub struct Buffers {
    /// Whether [`Data`] names buffers; fingerprints have nothing to pin.
    real: bool,
    slabs: Slabs,
    all: Vec<Buffer>,
    free: Vec<u32>,
    /// Of each logical subpage, the number of the host's last buffer plus one; empty if nothing is forgotten.
    written: Vec<u32>,
    /// Logical subpages that the present request has overwritten, with their old buffers.
    overwritten: Vec<(u32, u32)>,
    /// The pattern that forgotten buffers read as.
    gone: Box<[u8]>,
    /// Buffers that may be unpinned when the request ends, some repeated.
    transient: Vec<u32>,
}

impl Buffers {
    /// Empty memory for subpages of `subpage_bytes` bytes.
    pub fn new(subpage_bytes: usize) -> Self {
        Buffers { real: true, slabs: Slabs::new(subpage_bytes), ..Buffers::default() }
    }

    /// Memory as of [`Self::new`]; without `real` contents nothing is pinned.
    pub(super) fn for_cells(real: bool, subpage_bytes: usize) -> Self {
        Buffers { real, ..Buffers::new(subpage_bytes) }
    }

    /// Bytes of a buffer.
    pub fn subpage_bytes(&self) -> usize {
        self.slabs.subpage_bytes()
    }

    #[inline]
    fn bytes(&self, index: usize) -> &[u8] {
        let place = self.all[index].place;
        if place == NOWHERE { &self.gone } else { self.slabs.get(place) }
    }

    /// A new buffer with its bytes at `place`.
    #[inline]
    fn buffer_at(&mut self, place: u32) -> Data {
        let new = Buffer { pins: 0, place, owner: 0 };
        let index = match self.free.pop() {
            Some(index) => {
                self.all[index as usize] = new;
                index
            }
            None => {
                self.all.push(new);
                self.all.len() as u32 - 1
            }
        };
        self.transient.push(index);
        Data::new(u64::from(index) + 1)
    }

    /// A new buffer, which `fill` must fill completely, because the memory has old bytes.
    #[inline]
    pub fn fill(&mut self, fill: impl FnOnce(&mut [u8])) -> Data {
        let place = self.slabs.take();
        fill(self.slabs.get_mut(place));
        self.buffer_at(place)
    }

    /// A new buffer that the host writes over logical subpage `lsn`, in the old buffer's memory if that is forgotten
    /// and not lent. The old bytes must not be read again, not even in this request.
    #[inline]
    pub fn fill_over(&mut self, lsn: u32, fill: impl FnOnce(&mut [u8])) -> Data {
        let place = match self.take_from(lsn) {
            Some(place) if !self.slabs.is_lent(place) => place,
            lent => {
                lent.into_iter().for_each(|place| self.slabs.give(place));
                self.slabs.take()
            }
        };
        fill(self.slabs.get_mut(place));
        let data = self.buffer_at(place);
        self.overwrite(lsn, data);
        data
    }

    /// The place of the last buffer that the host wrote to `lsn`, which loses its memory.
    #[inline]
    fn take_from(&mut self, lsn: u32) -> Option<u32> {
        let old = self.written.get(lsn as usize)?.checked_sub(1)? as usize;
        // A buffer whose cells were lost may belong to another subpage now.
        if self.all[old].owner != lsn + 1 {
            return None;
        }
        let place = std::mem::replace(&mut self.all[old].place, NOWHERE);
        (place != NOWHERE).then_some(place)
    }

    /// Makes each subpage of `filled` a buffer and appends it to `contents`, without a copy; `filled` becomes another
    /// slab of its size. Returns false without an effect if this would take too much memory.
    pub fn adopt(&mut self, filled: &mut Slab, contents: &mut Vec<Data>) -> bool {
        let subpages = filled.len() / self.subpage_bytes();
        let Some(first) = self.slabs.exchange(filled) else { return false };
        contents.extend((first..first + subpages as u32).map(|place| self.buffer_at(place)));
        true
    }

    /// From now on overwritten data of the host's `subpages` is forgotten, if contents are real: no read needs the
    /// data.
    pub fn forget_overwritten(&mut self, subpages: usize) {
        self.written = vec![0; if self.real { subpages } else { 0 }];
        self.gone = vec![OVERWRITTEN; self.subpage_bytes()].into();
    }

    /// Stops forgetting, also for the present request, which may have failed: an overwritten subpage without memory
    /// gets a copy of the new content.
    pub fn forget_nothing(&mut self) {
        for (lsn, old) in std::mem::take(&mut self.overwritten) {
            let new = self.written[lsn as usize].checked_sub(1).map(|new| new as usize);
            if !self.is_gone_from(lsn, old as usize) {
                continue;
            }
            if let Some(new) = new.filter(|&new| self.all[new].place != NOWHERE) {
                let copy = self.bytes(new).to_vec();
                let place = self.slabs.take();
                self.slabs.get_mut(place).copy_from_slice(&copy);
                self.all[old as usize].place = place;
            }
        }
        self.written = Vec::new();
    }

    /// Whether `old`, the former buffer of `lsn`, has no memory.
    fn is_gone_from(&self, lsn: u32, old: usize) -> bool {
        self.all[old].owner == lsn + 1 && self.all[old].place == NOWHERE && self.all[old].pins != FREE
    }

    /// The host writes `data`, a buffer that was filled for this write, or zeros by a trim, over logical subpage `lsn`.
    #[inline]
    pub fn overwrite(&mut self, lsn: u32, data: Data) {
        let Some(written) = self.written.get_mut(lsn as usize) else { return };
        let old = std::mem::replace(written, data.value as u32);
        if let Some(new) = (data.value as usize).checked_sub(1) {
            self.all[new].owner = lsn + 1;
        }
        // After a copy of the bytes, a freed buffer may be the new buffer.
        self.overwritten
            .extend(old.checked_sub(1).filter(|&index| index + 1 != data.value as u32).map(|old| (lsn, old)));
    }

    /// Puts a copy of `bytes` into a buffer.
    pub fn keep(&mut self, bytes: &[u8]) -> Data {
        assert_eq!(bytes.len(), self.subpage_bytes(), "a buffer holds one subpage");
        self.fill(|place| place.copy_from_slice(bytes))
    }

    /// The bytes of `data`; `None`: zeros.
    #[inline]
    pub fn get(&self, data: Data) -> Option<&[u8]> {
        let index = self.index_of(data)?;
        assert!(self.all[index].pins != FREE, "a live buffer");
        Some(self.bytes(index))
    }

    /// Appends a loan of the bytes `part` of `data` to `loans`. Returns false without an effect if `data` has no
    /// memory.
    #[inline]
    pub fn lend(&self, data: Data, part: Range<usize>, loans: &mut Vec<Loan>) -> bool {
        let place = self.index_of(data).map_or(NOWHERE, |index| self.all[index].place);
        if place != NOWHERE {
            self.slabs.lend(place, part, loans);
        }
        place != NOWHERE
    }

    /// Prefetches the place of `data`, before [`Self::prefetch`].
    #[inline]
    pub fn prefetch_place(&self, data: Data) {
        if let Some(index) = self.index_of(data) {
            prefetch(&self.all, index);
        }
    }

    /// Prefetches the bytes of `data`.
    #[inline]
    pub fn prefetch(&self, data: Data) {
        if let Some(bytes) = self.get(data) {
            (0..bytes.len()).step_by(64).for_each(|line| prefetch(bytes, line));
        }
    }

    /// Prefetches `step` for a coming request to logical subpage `lsn`; the earlier steps must be in the cache. No
    /// effect if nothing is forgotten.
    #[inline]
    pub fn expect(&self, lsn: u32, step: Step) {
        if step == Step::Name {
            return prefetch(&self.written, lsn as usize);
        }
        let Some(index) = self.written.get(lsn as usize).and_then(|index| index.checked_sub(1)) else { return };
        if step == Step::Place {
            return prefetch(&self.all, index as usize);
        }
        let bytes = self.bytes(index as usize);
        (0..bytes.len().min(MOST_EXPECTED)).step_by(64).for_each(|line| prefetch(bytes, line));
    }

    #[inline]
    fn index(&self, data: Data) -> Option<usize> {
        if self.real { self.index_of(data) } else { None }
    }

    #[inline]
    fn index_of(&self, data: Data) -> Option<usize> {
        if data == Data::LOST { None } else { (data.value as usize).checked_sub(1) }
    }

    /// Keeps `data` beyond its request.
    pub fn pin(&mut self, data: Data) {
        if let Some(index) = self.index(data) {
            assert!(self.all[index].pins != FREE, "a live buffer");
            self.all[index].pins += 1;
        }
    }

    /// Reverts one [`Self::pin`]; an unpinned buffer is freed at the end of the present request.
    pub fn unpin(&mut self, data: Data) {
        if let Some(index) = self.index(data) {
            assert!(!matches!(self.all[index].pins, 0 | FREE), "a pinned buffer");
            self.all[index].pins -= 1;
            if self.all[index].pins == 0 {
                self.transient.push(index as u32);
            }
        }
    }

    /// Ends the request: frees all unpinned buffers.
    pub fn end_request(&mut self) {
        for (lsn, index) in self.overwritten.drain(..) {
            // A buffer whose cells were lost may belong to another subpage now.
            if self.all[index as usize].owner != lsn + 1 {
                continue;
            }
            let place = std::mem::replace(&mut self.all[index as usize].place, NOWHERE);
            if place != NOWHERE {
                self.slabs.give(place);
            }
        }
        for index in self.transient.drain(..) {
            if self.all[index as usize].pins == 0 {
                self.all[index as usize].pins = FREE;
                self.free.push(index);
                let place = std::mem::replace(&mut self.all[index as usize].place, NOWHERE);
                if place != NOWHERE {
                    self.slabs.give(place);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
