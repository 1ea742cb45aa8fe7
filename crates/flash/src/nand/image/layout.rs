//! Layout of an image: the header, figures of the drive's life, the configuration as text, marks of blocks, records of
//! pages, spare areas, levels of cells, bytes of the layer's own, cells, and trims. Everything but the header has a
//! place by number, so unwritten places take no space. Ignored: the order of writes, which [`super`] defines.

use super::record::{MARK_BYTES, record_bytes};
use crate::geometry::Geometry;
use crate::nand::part::Part;
use std::ops::Range;

/// The first bytes of an image.
pub const MAGIC: [u8; 16] = *b"PALIMPSEST-FLASH";
/// The version of the format. Version 1 had no times and no reads of blocks, version 2 no failed dies, version 3 no
/// trims, version 4 no UUID and no counters of the controller. Opening an older image converts it.
pub const VERSION: u32 = 5;
/// Bytes of a record of a trim.
pub const TRIM_BYTES: u64 = 8;
/// Bytes of the header, and alignment of all regions.
pub const PAGE: u64 = 4096;
/// Place of the configuration.
pub const TEXT_AT: u64 = 2 * PAGE;
/// Most bytes of the configuration.
pub const TEXT_MOST: u64 = 1 << 20;
/// Bytes of a place for figures.
const LIFE_BYTES: u64 = 512;

/// Dimensions that determine the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Blocks.
    pub blocks: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Subpages of a page.
    pub subpages: u32,
    /// Bytes of a subpage.
    pub subpage_bytes: u32,
    /// Bytes of the spare area of a page.
    pub spare_bytes: u32,
    /// Bytes of the levels of a page's cells, with their checksum; 0 without a code of cells.
    pub level_bytes: u32,
}

impl Shape {
    /// The shape of `geometry` made of `part`.
    pub fn of(geometry: &Geometry, part: &Part) -> Self {
        let cells = |bits: u32| (geometry.page_bytes() * 8).div_ceil(bits).div_ceil(2) + 4;
        Shape {
            blocks: geometry.blocks(),
            pages_per_block: geometry.pages_per_block,
            subpages: geometry.subpages_per_page,
            subpage_bytes: geometry.subpage_bytes,
            spare_bytes: part.spare_bytes,
            level_bytes: part.code.map_or(0, |code| cells(code.0.data_bits())),
        }
    }

    fn words(&self) -> [u32; 6] {
        let Shape { blocks, pages_per_block, subpages, subpage_bytes, spare_bytes, level_bytes } = *self;
        [blocks, pages_per_block, subpages, subpage_bytes, spare_bytes, level_bytes]
    }
}

/// Places of all regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The dimensions.
    pub shape: Shape,
    record_bytes: u64,
    marks_at: u64,
    records_at: u64,
    spare_at: u64,
    levels_at: u64,
    own_at: u64,
    cells_at: u64,
    /// Records of trims; an image of version 3 or older ends before them.
    pub(super) trims_at: u64,
    /// Bytes of the image.
    pub end: u64,
}

impl Layout {
    /// The layout of `shape`; `None` if such flash is impossible.
    pub fn new(shape: Shape) -> Option<Layout> {
        let Shape { blocks, pages_per_block, subpages, subpage_bytes, .. } = shape;
        let fits = blocks > 0
            && (1..=1 << 20).contains(&pages_per_block)
            && (1..=64).contains(&subpages)
            && (512..=1 << 24).contains(&subpage_bytes)
            && subpage_bytes.is_multiple_of(512);
        let pages = u64::from(blocks) * u64::from(pages_per_block);
        if !fits || pages.checked_mul(subpages.into())? > u32::MAX.into() {
            return None;
        }
        let record_bytes = record_bytes(subpages);
        let mut end = TEXT_AT + TEXT_MOST;
        let mut region = |count: u64, bytes: u64| -> Option<u64> {
            let at = end;
            end = at.checked_add(count.checked_mul(bytes)?)?.checked_next_multiple_of(PAGE)?;
            Some(at)
        };
        let cells = pages * u64::from(subpages);
        Some(Layout {
            shape,
            record_bytes,
            marks_at: region(blocks.into(), 2 * MARK_BYTES)?,
            records_at: region(pages, 2 * record_bytes)?,
            spare_at: region(pages, 2 * u64::from(shape.spare_bytes))?,
            levels_at: region(pages, shape.level_bytes.into())?,
            own_at: region(cells, subpage_bytes.into())?,
            cells_at: region(cells, subpage_bytes.into())?,
            trims_at: region(cells, TRIM_BYTES)?,
            end: Some(end).filter(|&end| end < 1 << 62)?,
        })
    }

    /// Physical subpages.
    pub fn subpages(&self) -> u64 {
        u64::from(self.shape.blocks) * u64::from(self.shape.pages_per_block) * u64::from(self.shape.subpages)
    }

    /// Place of the mark of `block` with this version.
    pub fn mark(&self, block: u32, version: u32) -> u64 {
        self.marks_at + (u64::from(block) * 2 + u64::from(version & 1)) * MARK_BYTES
    }

    /// Places of the marks of `blocks`.
    pub fn marks(&self, blocks: Range<u32>) -> Range<u64> {
        self.mark(blocks.start, 0)..self.mark(blocks.end, 0)
    }

    /// Place of the record of page `ppn` with this version.
    pub fn record(&self, ppn: u32, version: u8) -> u64 {
        self.records_at + (u64::from(ppn) * 2 + u64::from(version & 1)) * self.record_bytes
    }

    /// Bytes of both places of a page's record.
    pub fn records_bytes(&self) -> usize {
        2 * self.record_bytes as usize
    }

    /// Places of the records of `block`.
    pub fn records_of_block(&self, block: u32) -> Range<u64> {
        let bytes = 2 * self.record_bytes * u64::from(self.shape.pages_per_block);
        let at = self.records_at + u64::from(block) * bytes;
        at..at + bytes
    }

    /// Place of the spare area of page `ppn` for the record with this version.
    pub fn spare(&self, ppn: u32, version: u8) -> u64 {
        self.spare_at + (u64::from(ppn) * 2 + u64::from(version & 1)) * u64::from(self.shape.spare_bytes)
    }

    /// Place of the levels of page `ppn`.
    pub fn levels(&self, ppn: u32) -> u64 {
        self.levels_at + u64::from(ppn) * u64::from(self.shape.level_bytes)
    }

    /// Place of the layer's own bytes in subpage `psn`.
    pub fn own(&self, psn: u64) -> u64 {
        self.own_at + psn * u64::from(self.shape.subpage_bytes)
    }

    /// Place of the bytes of subpage `psn`.
    pub fn cells(&self, psn: u64) -> u64 {
        self.cells_at + psn * u64::from(self.shape.subpage_bytes)
    }

    /// All regions of `block` that are meaningless when the block is erased, except records.
    pub fn cells_of_block(&self, block: u32) -> Vec<Range<u64>> {
        let Shape { pages_per_block, subpages, spare_bytes, level_bytes, .. } = self.shape;
        let (first, end) = (block * pages_per_block, (block + 1) * pages_per_block);
        let (psn, end_psn) = (u64::from(first) * u64::from(subpages), u64::from(end) * u64::from(subpages));
        let mut all = vec![self.cells(psn)..self.cells(end_psn), self.own(psn)..self.own(end_psn)];
        if spare_bytes > 0 {
            all.push(self.spare(first, 0)..self.spare(end, 0));
        }
        if level_bytes > 0 {
            all.push(self.levels(first)..self.levels(end));
        }
        all
    }
}

/// The contents of the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Version of the format.
    pub version: u32,
    /// Shape of the flash.
    pub shape: Shape,
    /// Logical subpages that the drive exports.
    pub logical_subpages: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Hash of the configuration.
    pub hash: u64,
    /// Bytes of the configuration.
    pub text_bytes: u32,
    /// Checksum of the configuration.
    pub text_check: u32,
    /// Identity of the drive; zeros in version 4 or older.
    pub uuid: [u8; 16],
}

/// Reasons why a file is not a usable image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// Not an image.
    Foreign,
    /// An unsupported version.
    Version(u32),
    /// The end is missing: the file has the first number of bytes instead of the second.
    Short(u64, u64),
    /// The header does not match its checksum, or is impossible.
    Header,
    /// The configuration does not match its checksum.
    Text,
}

impl Header {
    /// The header in bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend([0; 4]);
        self.shape.words().iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        for long in [self.logical_subpages, self.seed, self.hash] {
            bytes.extend(long.to_le_bytes());
        }
        bytes.extend(self.text_bytes.to_le_bytes());
        bytes.extend(self.text_check.to_le_bytes());
        bytes.extend(self.uuid);
        bytes.resize(PAGE as usize, 0);
        let sum = crc32fast::hash(&bytes);
        bytes[20..24].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The header of a file of `length` bytes that begins with `bytes`, at most [`PAGE`] bytes.
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn read(bytes: &[u8], length: u64) -> Result<(Header, Layout), Unusable> {
        if bytes.get(..16) != Some(&MAGIC[..]) {
            return Err(Unusable::Foreign);
        }
        let word = |at: usize| bytes.get(at..at + 4).map_or(0, |four| u32::from_le_bytes(four.try_into().expect("4")));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if bytes.len() < PAGE as usize {
            return Err(Unusable::Short(length, PAGE));
        }
        let version = word(16);
        if version > VERSION {
            return Err(Unusable::Version(version));
        }
        let mut without = bytes[..PAGE as usize].to_vec();
        without[20..24].fill(0);
        if crc32fast::hash(&without) != word(20) || version == 0 {
            return Err(Unusable::Header);
        }
        let shape = Shape {
            blocks: word(24),
            pages_per_block: word(28),
            subpages: word(32),
            subpage_bytes: word(36),
            spare_bytes: word(40),
            level_bytes: word(44),
        };
        let header = Header {
            version,
            shape,
            logical_subpages: long(48),
            seed: long(56),
            hash: long(64),
            text_bytes: word(72),
            text_check: word(76),
            uuid: bytes[80..96].try_into().expect("16 bytes"),
        };
        let layout = Layout::new(shape).ok_or(Unusable::Header)?;
        if u64::from(header.text_bytes) > TEXT_MOST || header.logical_subpages > layout.subpages() {
            return Err(Unusable::Header);
        }
        let converted = version < 4 && length == layout.trims_at;
        if length != layout.end && !converted {
            return Err(Unusable::Short(length, layout.end));
        }
        Ok((header, layout))
    }
}

/// Counters of the controller over all services of the drive; preconditioning and recovery do not count. Version 4 and
/// older store the bytes of the host alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Bytes that the host wrote.
    pub host_written: u64,
    /// Bytes that the host read.
    pub host_read: u64,
    /// Completed reads of the host.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Completed trims.
    pub trims: u64,
    /// Completed flushes.
    pub flushes: u64,
    /// Page reads of flash.
    pub page_reads: u64,
    /// Page programs.
    pub page_programs: u64,
    /// Erases of blocks.
    pub erases: u64,
    /// Bytes that flash sensed.
    pub bytes_sensed: u64,
    /// Reads of the host whose data was lost.
    pub failed_reads: u64,
    /// Failed commands of NVMe hosts.
    pub error_entries: u64,
    /// Seconds for which the drive was served.
    pub powered_s: u64,
}

impl Counters {
    /// Places of counters behind the bytes of the host; the last are free.
    const PLACES: usize = 16;

    fn words(&self) -> [u64; Self::PLACES] {
        let flash = [self.page_reads, self.page_programs, self.erases, self.bytes_sensed];
        let counted = [self.reads, self.writes, self.trims, self.flushes].into_iter().chain(flash);
        let mut words = [0; Self::PLACES];
        let all = counted.chain([self.failed_reads, self.error_entries, self.powered_s]);
        words.iter_mut().zip(all).for_each(|(place, word)| *place = word);
        words
    }

    fn of(host_written: u64, host_read: u64, word: impl Fn(usize) -> u64) -> Self {
        Counters {
            host_written,
            host_read,
            reads: word(0),
            writes: word(1),
            trims: word(2),
            flushes: word(3),
            page_reads: word(4),
            page_programs: word(5),
            erases: word(6),
            bytes_sensed: word(7),
            failed_reads: word(8),
            error_entries: word(9),
            powered_s: word(10),
        }
    }
}

/// Figures of the drive's life at the last flush; version 1 of the format stores no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Life {
    /// What the controller has counted.
    pub counters: Counters,
    /// Operations of flash.
    pub operations: u64,
    /// Number of services of the drive.
    pub services: u64,
    /// Number of services that ended abnormally.
    pub broken_off: u64,
    /// Whether the last service ended normally.
    pub ended_well: bool,
    /// Sum of the terms of all marks and records that are valid once the next of them is written; see
    /// [`super::record::term`].
    pub sum: u64,
    /// Whether the last service synchronized, so that a crash of the machine may leave any sum.
    pub syncs: bool,
    /// Time of the drive.
    pub clock: u64,
}

/// Place of the figures with this version.
pub fn life_at(version: u32) -> u64 {
    PAGE + u64::from(version & 1) * LIFE_BYTES
}

impl Life {
    /// The figures in bytes.
    pub fn bytes(&self, version: u32) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[4..8].copy_from_slice(&version.to_le_bytes());
        let flags = 1 | u64::from(self.ended_well) << 1 | u64::from(self.syncs) << 2;
        let Life { counters, operations, services, broken_off, sum, clock, .. } = *self;
        let Counters { host_written, host_read, .. } = counters;
        let longs = [host_written, host_read, operations, services, broken_off, sum, flags, clock];
        for (place, long) in bytes[8..].chunks_exact_mut(8).zip(longs.into_iter().chain(counters.words())) {
            place.copy_from_slice(&long.to_le_bytes());
        }
        let sum = crc32fast::hash(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The figures in `bytes` (two places) that match their checksums, with their versions, the newest first.
    pub fn read(bytes: &[u8]) -> Vec<(Life, u32)> {
        let of = |place: &[u8]| {
            let long = |at: usize| u64::from_le_bytes(place[8 + at * 8..16 + at * 8].try_into().expect("8 bytes"));
            let word = |at: usize| u32::from_le_bytes(place[at..at + 4].try_into().expect("4 bytes"));
            let right = |length: usize| word(0) == crc32fast::hash(&place[4..length]);
            let longest = [Self::BYTES, Self::BYTES_BEFORE_COUNTERS, Self::BYTES_OF_FIRST];
            let length = longest.into_iter().find(|&length| right(length))?;
            let counter = |at: usize| if length == Self::BYTES { long(8 + at) } else { 0 };
            let life = Life {
                counters: Counters::of(long(0), long(1), counter),
                operations: long(2),
                services: long(3),
                broken_off: long(4),
                sum: long(5),
                ended_well: long(6) >> 1 & 1 == 1,
                syncs: long(6) >> 2 & 1 == 1,
                clock: if length == Self::BYTES_OF_FIRST { 0 } else { long(7) },
            };
            (long(6) > 0).then(|| (life, word(4)))
        };
        let mut all: Vec<_> = bytes.chunks_exact(LIFE_BYTES as usize).take(2).filter_map(of).collect();
        if let [(_, one), (_, other)] = all[..]
            && other.wrapping_sub(one) < 1 << 31
        {
            all.swap(0, 1);
        }
        all
    }

    /// Bytes of the figures.
    const BYTES: usize = Self::BYTES_BEFORE_COUNTERS + 8 * Counters::PLACES;
    const BYTES_BEFORE_COUNTERS: usize = 72;
    const BYTES_OF_FIRST: usize = 64;

    /// Bytes of both places.
    pub const PLACES: usize = 2 * LIFE_BYTES as usize;
}
