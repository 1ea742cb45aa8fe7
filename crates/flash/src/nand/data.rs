//! Contents of cells: nothing, a 64-bit fingerprint a subpage, or real bytes.
//!
//! Translation layers move [`Data`] without knowing the payload. With [`Payload::Tag`] the data is the fingerprint;
//! with [`Payload::Bytes`] the number of a buffer ([`buffers`]), which cells and controller memory share. Both store
//! for each subpage the number of its program, so that recovery can rebuild the map after a power cut. In an
//! [image](super::image) cells hold bytes without a buffer, and each load reads the bytes into a buffer.

pub mod buffers;

use super::SubpageMask;
use super::image::Image;
use super::image::record::Stored;
use crate::geometry::Geometry;
use crate::prefetch::prefetch;
pub use buffers::Buffers;
use std::borrow::Cow;
use std::io;
use std::ops::Range;

/// The stored part of the host's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payload {
    /// Nothing: fastest, but reads cannot be verified.
    None,
    /// A 64-bit fingerprint a subpage.
    Tag,
    /// The bytes.
    Bytes,
}

/// The content of one subpage in controller memory. [`Data::ZERO`] is a subpage of zeros. Equality compares contents.
#[derive(Debug, Clone, Copy, Default)]
pub struct Data {
    /// Fingerprint, or number of the buffer.
    pub value: u64,
    /// In checked runs, the origin of the content in the controller; 0: none, as for zeros and the layer's own records.
    pub origin: u32,
}

crate::state!(Data { value, origin });

impl Data {
    /// A subpage that the host never wrote, or has trimmed.
    pub const ZERO: Data = Data::new(0);

    /// A subpage lost to an uncorrectable read.
    pub const LOST: Data = Data::new(u64::MAX);

    /// Content without an origin.
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
    /// With bytes, of each subpage: 0 if erased, the value of its [`Data`], or a constant below.
    cells: Vec<u32>,
    buffers: Buffers,
    /// The image that holds the bytes; `None`: buffers do.
    pub(super) image: Option<Box<Image>>,
}

/// Cells lost to an uncorrectable read.
const LOST: u32 = u32::MAX;

/// Cells that hold zeros.
const ZEROS: u32 = u32::MAX - 1;

/// Cells with bytes in an image.
const KEPT: u32 = u32::MAX - 2;

// States with bytes are not kept.
crate::state!(PayloadStore { tags, sequence } built { kind, cells, buffers, image });

impl PayloadStore {
    /// Empty cells for `geometry`.
    pub fn new(kind: Payload, geometry: &Geometry) -> Self {
        let subpages = geometry.subpages() as usize;
        let sized = |wanted: bool| if wanted { subpages } else { 0 };
        PayloadStore {
            kind,
            tags: vec![0; sized(kind == Payload::Tag)],
            sequence: vec![0; sized(kind != Payload::None)],
            cells: vec![0; sized(kind == Payload::Bytes)],
            buffers: Buffers::for_cells(kind == Payload::Bytes, geometry.subpage_bytes as usize),
            image: None,
        }
    }

    /// The payload.
    #[inline]
    pub fn kind(&self) -> Payload {
        self.kind
    }

    /// Number of the program that wrote subpage `psn`.
    pub fn sequence(&self, psn: u32) -> u64 {
        self.sequence.get(psn as usize).copied().unwrap_or(0)
    }

    /// Prefetches the tag or cell of subpage `psn`.
    #[inline]
    pub fn prefetch(&self, psn: u32) {
        prefetch(&self.tags, psn as usize);
        prefetch(&self.cells, psn as usize);
    }

    /// Content of subpage `psn`.
    #[inline]
    pub fn load(&mut self, psn: u32) -> Data {
        match self.kind {
            Payload::None => Data::ZERO,
            Payload::Tag => Data::new(self.tags[psn as usize]),
            Payload::Bytes => match self.cells[psn as usize] {
                KEPT => self.load_kept(psn as usize),
                cell => data_of(cell),
            },
        }
    }

    /// The bytes of subpage `psn` in the image; lost if their checksum does not match.
    #[cold]
    #[inline(never)]
    fn load_kept(&mut self, psn: usize) -> Data {
        let PayloadStore { image, buffers, .. } = self;
        let image = image.as_deref().expect("cells that are kept in an image");
        let mut right = false;
        let data = buffers.fill(|bytes| right = image.load(psn, bytes));
        if right { data } else { Data::LOST }
    }

    /// The bytes of subpage `psn`; `None` if lost or zeros.
    fn bytes_of(&self, psn: usize) -> Option<Cow<'_, [u8]>> {
        match (self.cells[psn], &self.image) {
            (KEPT, Some(image)) => {
                let mut bytes = vec![0; self.buffers.subpage_bytes()];
                image.load(psn, &mut bytes).then_some(bytes.into())
            }
            (cell, _) => self.buffers.get(data_of(cell)).map(Cow::from),
        }
    }

    /// The content of subpage `psn` that an image must store.
    pub(super) fn stored(&self, psn: usize) -> Stored {
        match self.cells[psn] {
            0 => Stored::Nothing,
            LOST => Stored::Lost,
            ZEROS => Stored::Zeros,
            _ => Stored::Bytes,
        }
    }

    /// Restores subpage `psn` from an image.
    pub(super) fn found(&mut self, psn: usize, stored: Stored, sequence: u64) {
        self.sequence[psn] = sequence;
        self.cells[psn] = match stored {
            Stored::Nothing => 0,
            Stored::Zeros => ZEROS,
            Stored::Bytes => KEPT,
            Stored::Lost => LOST,
        };
    }

    /// Writes the stored bytes of the subpages `written` of the page at subpage `first` to the image, which holds them
    /// from now on.
    pub(super) fn write_cells(&mut self, first: usize, written: SubpageMask) -> io::Result<()> {
        let PayloadStore { cells, buffers, image, .. } = self;
        let image = image.as_deref_mut().expect("an image");
        let mut run = first;
        let mut bytes: Vec<u8> = image.take_scratch();
        for (index, cell) in cells.iter_mut().enumerate().skip(first).take(64 - written.leading_zeros() as usize) {
            if written >> (index - first) & 1 == 0 || matches!(*cell, 0 | LOST | ZEROS | KEPT) {
                image.write_run(run, &bytes)?;
                bytes.clear();
                run = index + 1;
                continue;
            }
            let data = data_of(*cell);
            let subpage = buffers.get(data).expect("cells that hold bytes");
            image.checks[index] = crc32fast::hash(subpage);
            bytes.extend_from_slice(subpage);
            *cell = KEPT;
            buffers.unpin(data);
        }
        image.write_run(run, &bytes)?;
        image.give_scratch(bytes);
        Ok(())
    }

    /// Sets the cells of `index` to `data`; `None` erases them.
    fn set(&mut self, index: usize, data: Option<Data>) {
        let cell = match data {
            None => 0,
            Some(data) if data == Data::LOST => LOST,
            Some(data) if data == Data::ZERO => ZEROS,
            Some(data) => u32::try_from(data.value).expect("a buffer has a number of 32 bits"),
        };
        self.buffers.pin(data_of(cell));
        let before = std::mem::replace(&mut self.cells[index], cell);
        if before != KEPT {
            self.buffers.unpin(data_of(before));
        }
    }

    /// Marks the subpages `wanted` of the page at subpage `first` as lost.
    #[cold]
    pub(super) fn lose(&mut self, first: usize, wanted: SubpageMask) {
        for index in (0..64).filter(|index| wanted >> index & 1 == 1) {
            match self.kind {
                Payload::None => {}
                Payload::Tag => self.tags[first + index] = Data::LOST.value,
                Payload::Bytes => self.set(first + index, Some(Data::LOST)),
            }
        }
    }

    /// Changes the number of subpages.
    pub(super) fn resize(&mut self, subpages: usize) {
        let sized = |has: bool| if has { subpages } else { 0 };
        self.tags.resize(sized(self.kind == Payload::Tag), 0);
        self.sequence.resize(sized(self.kind != Payload::None), 0);
        self.cells.resize(sized(self.kind == Payload::Bytes), 0);
    }

    /// Subpage `psn` holds `data`, written by its latest program.
    pub(super) fn put(&mut self, psn: usize, data: Data) {
        match self.kind {
            Payload::None => {}
            Payload::Tag => self.tags[psn] = data.value,
            Payload::Bytes => self.set(psn, Some(data)),
        }
    }

    /// The bytes of `data` in controller memory; `None`: zeros.
    pub fn buffered(&self, data: Data) -> Option<&[u8]> {
        self.buffers.get(data)
    }

    /// Controller memory.
    pub fn buffers(&mut self) -> &mut Buffers {
        &mut self.buffers
    }

    /// Stores `data` (one entry a subpage of the page) in the subpages `written` of the page at subpage `first`.
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
                _ => self.set(first + index, Some(data[index])),
            }
        }
    }

    /// Equals [`Self::store`] for `count` subpages from `first` on with consecutive logical numbers from `logical` on
    /// and fingerprints by `tag`. The payload must not be bytes.
    #[inline]
    pub(super) fn store_run(
        &mut self,
        first: usize,
        count: usize,
        logical: u32,
        sequence: u64,
        tag: impl Fn(u32) -> u64,
    ) {
        if self.kind == Payload::None {
            return;
        }
        self.sequence[first..first + count].fill(sequence);
        for (cell, logical) in self.tags[first..first + count].iter_mut().zip(logical..) {
            *cell = tag(logical);
        }
    }

    /// Whether storing `data` over the subpages `written` changes cells from 1 to 0 only. Always true without bytes,
    /// because fingerprints have no cells.
    pub fn only_clears(&self, first: usize, written: SubpageMask, data: &[Data]) -> bool {
        if self.kind != Payload::Bytes {
            return true;
        }
        (0..data.len()).filter(|index| written >> index & 1 == 1).all(|index| {
            match (self.cells[first + index], self.buffers.get(data[index])) {
                (0 | LOST, _) | (_, None) => true, // all cells are 1 or are lost, or all become 0
                (ZEROS, Some(new)) => new.iter().all(|&byte| byte == 0),
                (_, Some(new)) => {
                    self.bytes_of(first + index).is_none_or(|old| old.iter().zip(new).all(|(old, new)| new & !old == 0))
                }
            }
        })
    }

    /// Drops the bytes of erased subpages; fingerprints of erased subpages cannot be read and need no clearing.
    pub fn erase(&mut self, first: usize, subpages: usize) {
        if self.kind == Payload::Bytes {
            (first..first + subpages).for_each(|index| self.set(index, None));
        }
    }
}

/// Saved cells of consecutive subpages.
#[derive(Default)]
pub(super) struct SavedPayload {
    tags: Box<[u64]>,
    sequence: Box<[u64]>,
    cells: Box<[Option<Box<[u8]>>]>,
}

crate::state!(SavedPayload { tags, sequence, cells });

impl SavedPayload {
    /// Whether the subpages `written` have the same stored content in `other`; no content equals zeros.
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

/// The content of a cell.
#[inline]
fn data_of(cell: u32) -> Data {
    match cell {
        LOST => Data::LOST,
        ZEROS => Data::ZERO,
        buffer => Data::new(u64::from(buffer)),
    }
}

impl PayloadStore {
    /// Saves the content of `subpages`.
    pub(super) fn save(&self, subpages: Range<usize>) -> SavedPayload {
        SavedPayload {
            tags: self.tags.get(subpages.clone()).unwrap_or_default().into(),
            sequence: self.sequence.get(subpages.clone()).unwrap_or_default().into(),
            cells: subpages.filter(|&psn| psn < self.cells.len()).map(|psn| self.saved(psn)).collect(),
        }
    }

    /// A copy of the cells of subpage `psn`: no bytes if lost.
    fn saved(&self, psn: usize) -> Option<Box<[u8]>> {
        match self.cells[psn] {
            0 => None,
            LOST => Some(Box::default()),
            ZEROS => Some(vec![0; self.buffers.subpage_bytes()].into()),
            _ => Some(self.bytes_of(psn).map(|bytes| bytes.into_owned().into()).unwrap_or_default()),
        }
    }

    /// Restores the subpages from `first` on.
    pub(super) fn restore(&mut self, first: usize, saved: SavedPayload) {
        let SavedPayload { tags, sequence, cells } = saved;
        self.tags.iter_mut().skip(first).zip(tags).for_each(|(cell, saved)| *cell = saved);
        self.sequence.iter_mut().skip(first).zip(sequence).for_each(|(cell, saved)| *cell = saved);
        for (index, cells) in (first..).zip(cells) {
            let data = cells.map(|bytes| if bytes.is_empty() { Data::LOST } else { self.buffers.keep(&bytes) });
            self.set(index, data);
        }
    }
}
