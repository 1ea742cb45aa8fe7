//! What cells hold: nothing at all, a 64-bit fingerprint a subpage, or real bytes.
//!
//! Translation layers move [`Data`] about without knowing which. With [`Payload::Tag`] it is the fingerprint itself; with
//! [`Payload::Bytes`] the number of a buffer in controller memory. Fingerprints and bytes bring a number with every
//! subpage, the order in which it was programmed, from which a map is rebuilt after a power cut.

use super::SubpageMask;
use crate::geometry::Geometry;
use std::ops::Range;

/// What is stored of the host's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payload {
    /// Nothing: the fastest; reads cannot be verified.
    None,
    /// A 64-bit fingerprint a subpage.
    Tag,
    /// The bytes.
    Bytes,
}

/// The content of one subpage in controller memory. [`Data::ZERO`] is a subpage of zeros. Equal where contents are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Data {
    /// Fingerprint, or number of the buffer.
    pub value: u64,
    /// In checked runs, what brought it into the controller; 0 for nothing, as of zeros and the layer's own records.
    pub origin: u32,
}

crate::state!(Data { value, origin });

impl Data {
    /// A subpage that the host never wrote, or trimmed.
    pub const ZERO: Data = Data::new(0);

    /// A subpage that a read could not correct: its content is lost.
    pub const LOST: Data = Data::new(u64::MAX);

    /// Content that nothing brought.
    #[inline]
    pub const fn new(value: u64) -> Self {
        Data { value, origin: 0 }
    }
}

impl PartialEq for Data {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Data {}

/// The cells of all subpages, as far as the payload stores them.
pub struct PayloadStore {
    kind: Payload,
    tags: Vec<u64>,
    sequence: Vec<u64>,
    cells: Vec<Option<Box<[u8]>>>,
    buffers: Buffers,
}

// States with bytes are not kept.
crate::state!(PayloadStore { tags, sequence } built { kind, cells, buffers });

impl PayloadStore {
    /// Empty cells for `geometry`.
    pub fn new(kind: Payload, geometry: &Geometry) -> Self {
        let subpages = geometry.subpages() as usize;
        let sized = |wanted: bool| if wanted { subpages } else { 0 };
        PayloadStore {
            kind,
            tags: vec![0; sized(kind == Payload::Tag)],
            sequence: vec![0; sized(kind != Payload::None)],
            cells: vec![None; sized(kind == Payload::Bytes)],
            buffers: Buffers { real: kind == Payload::Bytes, ..Buffers::new(geometry.subpage_bytes as usize) },
        }
    }

    /// What is stored.
    #[inline]
    pub fn kind(&self) -> Payload {
        self.kind
    }

    /// Number of the program that wrote subpage `psn`.
    pub fn sequence(&self, psn: u32) -> u64 {
        self.sequence.get(psn as usize).copied().unwrap_or(0)
    }

    /// Content of subpage `psn`, bytes copied into a buffer of controller memory.
    #[inline]
    pub fn load(&mut self, psn: u32) -> Data {
        match self.kind {
            Payload::None => Data::ZERO,
            Payload::Tag => Data::new(self.tags[psn as usize]),
            Payload::Bytes => match &self.cells[psn as usize] {
                Some(cells) if cells.is_empty() => Data::LOST,
                Some(cells) => self.buffers.keep(cells),
                None => Data::ZERO,
            },
        }
    }

    /// The subpages `wanted` of the page that begins at `first` are lost.
    #[cold]
    pub(super) fn lose(&mut self, first: usize, wanted: SubpageMask) {
        for index in (0..64).filter(|index| wanted >> index & 1 == 1) {
            match self.kind {
                Payload::None => {}
                Payload::Tag => self.tags[first + index] = Data::LOST.value,
                Payload::Bytes => self.cells[first + index] = Some(Box::default()),
            }
        }
    }

    /// The bytes of `data` in controller memory; `None` for zeros.
    pub fn buffered(&self, data: Data) -> Option<&[u8]> {
        self.buffers.get(data)
    }

    /// Controller memory.
    pub fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }

    /// Stores `data` (one entry a subpage of the page) in the subpages `written` of the page that begins at `first`.
    #[inline]
    pub fn store(&mut self, first: usize, written: SubpageMask, data: &[Data], sequence: u64) {
        if self.kind == Payload::None {
            return;
        }
        let mut rest = written;
        while rest != 0 {
            let index = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            self.sequence[first + index] = sequence;
            match self.kind {
                Payload::Tag => self.tags[first + index] = data[index].value,
                _ => self.cells[first + index] = Some(self.buffers.bytes_of(data[index])),
            }
        }
    }

    /// Whether storing `data` over what the subpages `written` hold would take cells from 1 to 0 only. Needs bytes:
    /// fingerprints have no cells.
    pub fn only_clears(&self, first: usize, written: SubpageMask, data: &[Data]) -> bool {
        if self.kind != Payload::Bytes {
            return true;
        }
        (0..data.len()).filter(|index| written >> index & 1 == 1).all(|index| {
            match (&self.cells[first + index], self.buffers.get(data[index])) {
                (None, _) | (_, None) => true, // all cells are 1, or all become 0
                (Some(old), Some(new)) => old.iter().zip(new).all(|(old, new)| new & !old == 0),
            }
        })
    }

    /// Forgets the bytes of erased subpages; fingerprints cannot be read any more and need no clearing.
    pub fn erase(&mut self, first: usize, subpages: usize) {
        if self.kind == Payload::Bytes {
            self.cells[first..first + subpages].fill(None);
        }
    }
}

/// The cells of a run of subpages.
#[derive(Default)]
pub(super) struct SavedPayload {
    tags: Box<[u64]>,
    sequence: Box<[u64]>,
    cells: Box<[Option<Box<[u8]>>]>,
}

crate::state!(SavedPayload { tags, sequence, cells });

impl SavedPayload {
    /// Whether the subpages `written` hold the same as those of `other`, as far as it is stored; nothing is zeros.
    pub(super) fn agrees(&self, other: &SavedPayload, written: &[bool]) -> bool {
        let of = |saved: &SavedPayload, index: usize| (saved.tags.get(index).copied(), saved.cells.get(index).cloned());
        let zeros = |cells: Option<Option<Box<[u8]>>>| {
            cells.map(|cells| cells.filter(|bytes| bytes.iter().any(|&byte| byte != 0)))
        };
        (0..written.len()).filter(|&index| written[index]).all(|index| {
            let ((tag, cells), (their_tag, their_cells)) = (of(self, index), of(other, index));
            tag == their_tag && zeros(cells) == zeros(their_cells)
        })
    }
}

impl PayloadStore {
    /// What `subpages` hold.
    pub(super) fn save(&self, subpages: Range<usize>) -> SavedPayload {
        SavedPayload {
            tags: self.tags.get(subpages.clone()).unwrap_or_default().into(),
            sequence: self.sequence.get(subpages.clone()).unwrap_or_default().into(),
            cells: self.cells.get(subpages).unwrap_or_default().into(),
        }
    }

    /// The subpages from `first` on hold `saved` again.
    pub(super) fn restore(&mut self, first: usize, saved: SavedPayload) {
        let SavedPayload { tags, sequence, cells } = saved;
        self.tags.iter_mut().skip(first).zip(tags).for_each(|(cell, saved)| *cell = saved);
        self.sequence.iter_mut().skip(first).zip(sequence).for_each(|(cell, saved)| *cell = saved);
        self.cells.iter_mut().skip(first).zip(cells).for_each(|(cell, saved)| *cell = saved);
    }
}

/// Controller memory for real bytes. A buffer lives until the request that made it ends, unless it is pinned.
pub struct Buffers {
    /// Whether [`Data`] names buffers at all; with fingerprints there is nothing to pin.
    real: bool,
    subpage_bytes: usize,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    transient: Vec<usize>,
}

struct Slot {
    bytes: Box<[u8]>,
    pins: u32,
}

impl Buffers {
    /// Empty memory for subpages of `subpage_bytes` bytes.
    pub fn new(subpage_bytes: usize) -> Self {
        Buffers { real: true, subpage_bytes, slots: Vec::new(), free: Vec::new(), transient: Vec::new() }
    }

    /// Puts a copy of `bytes` into a buffer.
    pub fn keep(&mut self, bytes: &[u8]) -> Data {
        assert_eq!(bytes.len(), self.subpage_bytes, "a buffer holds one subpage");
        let slot = Some(Slot { bytes: bytes.into(), pins: 0 });
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        self.transient.push(index);
        Data::new(index as u64 + 1)
    }

    /// The bytes of `data`; `None` for zeros.
    pub fn get(&self, data: Data) -> Option<&[u8]> {
        let index = self.index_of(data)?;
        Some(&self.slots[index].as_ref().expect("a live buffer").bytes)
    }

    #[inline]
    fn index(&self, data: Data) -> Option<usize> {
        if self.real { self.index_of(data) } else { None }
    }

    #[inline]
    fn index_of(&self, data: Data) -> Option<usize> {
        if data == Data::LOST { None } else { (data.value as usize).checked_sub(1) }
    }

    /// A copy of the bytes of `data`.
    fn bytes_of(&self, data: Data) -> Box<[u8]> {
        match data {
            lost if lost == Data::LOST => Box::default(),
            _ => self.get(data).map_or_else(|| vec![0; self.subpage_bytes].into(), Box::from),
        }
    }

    /// Keeps `data` alive beyond its request.
    pub fn pin(&mut self, data: Data) {
        if let Some(index) = self.index(data) {
            self.slots[index].as_mut().expect("a live buffer").pins += 1;
        }
    }

    /// Takes back one [`Self::pin`]; the buffer goes when its last pin went and the present request ends.
    pub fn unpin(&mut self, data: Data) {
        if let Some(index) = self.index(data) {
            self.slots[index].as_mut().expect("a live buffer").pins -= 1;
            self.transient.push(index);
        }
    }

    /// Frees every buffer that no one pinned: the request is over.
    pub fn end_request(&mut self) {
        for index in self.transient.drain(..) {
            if self.slots[index].as_ref().is_some_and(|slot| slot.pins == 0) {
                self.slots[index] = None;
                self.free.push(index);
            }
        }
    }
}
