//! Memory for real bytes, in slabs: what the controller holds and what cells hold, each content once.
//!
//! A buffer holds one subpage and never changes. Cells and whoever else keeps it beyond a request pin it; what is not pinned goes when the
//! request ends. So a program stores a number, and a move of data copies nothing. Slabs are never given back.

use super::Data;
use crate::prefetch::prefetch;

/// Bytes of a slab, if a subpage is not larger.
const SLAB: usize = 1 << 20;

/// Pins of a buffer that is free.
const FREE: u32 = u32::MAX;

/// Memory for real bytes. A buffer lives until the request that made it ends, unless it is pinned.
pub struct Buffers {
    /// Whether [`Data`] names buffers at all; with fingerprints there is nothing to pin.
    real: bool,
    subpage_bytes: usize,
    slabs: Vec<Box<[u8]>>,
    /// Of each buffer: how often it is pinned.
    pins: Vec<u32>,
    free: Vec<u32>,
    /// Buffers that may have no pin when the request ends; some more than once.
    transient: Vec<u32>,
}

impl Buffers {
    /// Empty memory for subpages of `subpage_bytes` bytes.
    pub fn new(subpage_bytes: usize) -> Self {
        let (slabs, pins, free, transient) = Default::default();
        Buffers { real: true, subpage_bytes, slabs, pins, free, transient }
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
        let per_slab = self.per_slab();
        &self.slabs[index / per_slab][index % per_slab * self.subpage_bytes..][..self.subpage_bytes]
    }

    /// Takes a buffer, which `fill` fills; what it held before is anything.
    #[inline]
    pub fn fill(&mut self, fill: impl FnOnce(&mut [u8])) -> Data {
        let per_slab = self.per_slab();
        if self.free.is_empty() {
            let first = self.pins.len() as u32;
            self.slabs.push(vec![0; per_slab * self.subpage_bytes].into());
            self.pins.resize(self.pins.len() + per_slab, FREE);
            self.free.extend((first..first + per_slab as u32).rev());
        }
        let index = self.free.pop().expect("a slab has buffers");
        self.pins[index as usize] = 0;
        self.transient.push(index);
        let index = index as usize;
        fill(&mut self.slabs[index / per_slab][index % per_slab * self.subpage_bytes..][..self.subpage_bytes]);
        Data::new(index as u64 + 1)
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
        for index in self.transient.drain(..) {
            if self.pins[index as usize] == 0 {
                self.pins[index as usize] = FREE;
                self.free.push(index);
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
    fn subpages_may_be_larger_than_a_slab() {
        let mut buffers = Buffers::new(2 * SLAB);
        let (one, two) = (buffers.keep(&vec![1; 2 * SLAB]), buffers.keep(&vec![2; 2 * SLAB]));
        assert_eq!((buffers.get(one).unwrap()[2 * SLAB - 1], buffers.get(two).unwrap()[0]), (1, 2));
    }
}
