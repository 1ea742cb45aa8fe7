//! Records of pages and marks of blocks in an image: little-endian, each with its own checksum (CRC-32 of IEEE 802.3).
//!
//! A page has two places for its record, and a block for its mark. Each write uses the older place with the next
//! version, so the previous record stays whole. A record names the epoch, the erase of its block; a later mark makes
//! the record void. A place fits a page of the page cache, so the end of a process never leaves part of a record; a
//! mismatched checksum is damage. Ignored: contents of cells.

use crate::nand::{PADDING, TORN, UNWRITTEN};

/// Bytes of a mark.
pub const MARK_BYTES: u64 = 32;
/// Bytes of a record before the subpages.
const HEAD: usize = 52;
/// Bytes of a subpage in a record.
const SUBPAGE: usize = 28;

/// Bytes of the place of a record of `subpages` subpages: a power of two, so that none crosses a page of the page
/// cache.
pub fn record_bytes(subpages: u32) -> u64 {
    (HEAD as u64 + SUBPAGE as u64 * u64::from(subpages)).next_power_of_two()
}

/// The content of a place.
#[derive(Debug, PartialEq, Eq)]
pub enum Place<T> {
    /// Zeros.
    Nothing,
    /// A mismatched checksum, or an impossible content.
    Damaged,
    /// A valid record or mark with its epoch and version.
    Whole(T, u32, u32),
}

/// The term of a mark (`number` of its block) or a record (number of its page plus 2^40) in the sum of an image, from
/// its checksum. The sum reveals a missing or outdated mark or record whose own checksum matches.
pub fn term(number: u64, check: u32) -> u64 {
    // The finalizer of MurmurHash3 (A. Appleby).
    let mix = |mut x: u64| {
        x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        x ^ x >> 33
    };
    mix(mix(number.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ u64::from(check)) | 1
}

/// The term of the record of page `ppn`.
pub fn page_term(ppn: u32, check: u32) -> u64 {
    term(u64::from(ppn) | 1 << 40, check)
}

/// The checksum of a mark or record.
pub fn check_of(bytes: &[u8]) -> u32 {
    word(bytes, 0)
}

/// A valid mark or record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newest<T> {
    /// The mark or record.
    pub what: T,
    /// The erase of its block.
    pub epoch: u32,
    /// Number of writes.
    pub version: u32,
    /// The checksum.
    pub check: u32,
}

/// A mark or record with a mismatched checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged;

/// The content of the cells of a subpage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// Nothing.
    Nothing,
    /// Zeros, which take no space.
    Zeros,
    /// Bytes, in the region of cells.
    Bytes,
    /// Lost to an uncorrectable read.
    Lost,
}

/// The out-of-band area of a subpage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubpageRecord {
    /// Logical number, or a constant for none.
    pub logical: u32,
    /// The content of the cells.
    pub stored: Stored,
    /// Checksum of the content.
    pub check: u32,
    /// Bytes of the layer's own.
    pub own: u32,
    /// Checksum of the layer's own bytes.
    pub own_check: u32,
    /// Number of the program.
    pub sequence: u64,
}

/// The out-of-band area of a page, with the state of its block at that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields of a block and a page have these names")]
pub struct PageRecord {
    /// Number of the operation that wrote the record.
    pub operation: u64,
    pub programs: u8,
    pub generation: u8,
    pub pass: u8,
    pub single: bool,
    pub low_first: bool,
    pub reused: bool,
    /// Whether another program of the word line corrupted the page; the record has the former content.
    pub corrupted: bool,
    /// Bytes of the spare area.
    pub spare: u32,
    pub spare_check: u32,
    /// For a copy: page, programs and erases of the original.
    pub copy: Option<[u32; 3]>,
    /// Time of the last program; 0 without read errors.
    pub programmed_at: u64,
    pub subpages: Vec<SubpageRecord>,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Whether `bytes` are zeros.
pub fn is_zeros(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

impl PageRecord {
    /// Appends the record to `out`, which must be empty.
    pub fn write(&self, epoch: u32, version: u8, out: &mut Vec<u8>) {
        out.extend([0; 4]);
        out.extend(epoch.to_le_bytes());
        out.extend(self.operation.to_le_bytes());
        let flags = [self.single, self.low_first, self.reused, self.corrupted, self.copy.is_some()];
        let flags = flags.iter().rev().fold(0u8, |flags, &flag| flags << 1 | u8::from(flag));
        // The first byte is never zero, which distinguishes a record from an unwritten place.
        out.extend([1, version, self.programs, self.generation, self.pass, flags, self.subpages.len() as u8, 0]);
        out.extend(self.spare.to_le_bytes());
        out.extend(self.spare_check.to_le_bytes());
        self.copy.unwrap_or_default().iter().for_each(|word| out.extend(word.to_le_bytes()));
        out.extend(self.programmed_at.to_le_bytes());
        debug_assert_eq!(out.len(), HEAD);
        for subpage in &self.subpages {
            out.extend(subpage.logical.to_le_bytes());
            out.extend(subpage.check.to_le_bytes());
            out.extend((subpage.stored as u32).to_le_bytes());
            out.extend(subpage.own.to_le_bytes());
            out.extend(subpage.own_check.to_le_bytes());
            out.extend(subpage.sequence.to_le_bytes());
        }
        let sum = crc32fast::hash(&out[4..]);
        out[..4].copy_from_slice(&sum.to_le_bytes());
    }

    /// The record in `place`, of a page of `subpages` subpages.
    pub fn read(place: &[u8], subpages: u32) -> Place<PageRecord> {
        if is_zeros(place) {
            return Place::Nothing;
        }
        let length = HEAD + SUBPAGE * subpages as usize;
        let right = place.len() >= length
            && word(place, 0) == crc32fast::hash(&place[4..length])
            && (place[16], place[22]) == (1, subpages as u8)
            && is_zeros(&place[length..]);
        if !right {
            return Place::Damaged;
        }
        let of_subpage = |bytes: &[u8]| {
            Some(SubpageRecord {
                logical: word(bytes, 0),
                check: word(bytes, 4),
                stored: match word(bytes, 8) {
                    0 => Stored::Nothing,
                    1 => Stored::Zeros,
                    2 => Stored::Bytes,
                    3 => Stored::Lost,
                    _ => return None,
                },
                own: word(bytes, 12),
                own_check: word(bytes, 16),
                sequence: long(bytes, 20),
            })
        };
        let all: Option<Vec<_>> = place[HEAD..length].chunks_exact(SUBPAGE).map(of_subpage).collect();
        let Some(all) = all else { return Place::Damaged };
        let flag = |bit: u32| place[21] >> bit & 1 == 1;
        let record = PageRecord {
            operation: long(place, 8),
            programs: place[18],
            generation: place[19],
            pass: place[20],
            single: flag(0),
            low_first: flag(1),
            reused: flag(2),
            corrupted: flag(3),
            spare: word(place, 24),
            spare_check: word(place, 28),
            copy: flag(4).then(|| [word(place, 32), word(place, 36), word(place, 40)]),
            programmed_at: long(place, 44),
            subpages: all,
        };
        Place::Whole(record, word(place, 4), place[17].into())
    }

    /// Whether a programmed page of a drive with `all_subpages` subpages can have this record. A file system numbers
    /// more subpages than the drive exports.
    pub fn is_sound(&self, all_subpages: u64, subpage_bytes: u32, spare_bytes: u32) -> bool {
        let words = [UNWRITTEN, PADDING, TORN];
        let sound = |one: &SubpageRecord| {
            (u64::from(one.logical) < all_subpages || words.contains(&one.logical))
                && one.own <= subpage_bytes
                && one.sequence <= self.operation
                && (one.stored == Stored::Bytes || one.check == 0)
        };
        self.programs > 0 && self.spare <= spare_bytes && self.subpages.iter().all(sound)
    }
}

/// The mark of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields of a block have these names")]
pub struct BlockMark {
    pub erases: u32,
    pub bad: bool,
    pub torn: bool,
    pub kept: bool,
    /// Whether the die has failed; one block has the mark of a die.
    pub dead: bool,
    /// Reads since the erase, or slightly fewer; 0 without read errors.
    pub reads: u32,
}

impl BlockMark {
    /// The mark in bytes.
    pub fn bytes(&self, epoch: u32, version: u32) -> [u8; MARK_BYTES as usize] {
        let mut bytes = [0; MARK_BYTES as usize];
        bytes[4..8].copy_from_slice(&epoch.to_le_bytes());
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.erases.to_le_bytes());
        bytes[16] = 1;
        bytes[17] =
            [self.bad, self.torn, self.kept, self.dead].iter().rev().fold(0, |all, &flag| all << 1 | u8::from(flag));
        bytes[20..24].copy_from_slice(&self.reads.to_le_bytes());
        let sum = crc32fast::hash(&bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The mark in `place`.
    pub fn read(place: &[u8]) -> Place<BlockMark> {
        if is_zeros(place) {
            return Place::Nothing;
        }
        let right = place.len() == MARK_BYTES as usize
            && word(place, 0) == crc32fast::hash(&place[4..])
            && place[16] == 1
            && place[17] < 16;
        if !right {
            return Place::Damaged;
        }
        let flag = |bit: u32| place[17] >> bit & 1 == 1;
        let (bad, torn, kept, dead) = (flag(0), flag(1), flag(2), flag(3));
        let mark = BlockMark { erases: word(place, 12), bad, torn, kept, dead, reads: word(place, 20) };
        Place::Whole(mark, word(place, 4), word(place, 8))
    }

    /// The newer mark of two places; `None` if none was written.
    ///
    /// # Errors
    /// A place is damaged.
    pub fn newest(places: &[u8]) -> Result<Option<Newest<BlockMark>>, Damaged> {
        let mut newest: Option<Newest<BlockMark>> = None;
        for place in places.chunks_exact(MARK_BYTES as usize) {
            match BlockMark::read(place) {
                Place::Nothing => {}
                Place::Damaged => return Err(Damaged),
                Place::Whole(what, epoch, version) => {
                    if newest.as_ref().is_none_or(|other| version.wrapping_sub(other.version) < 1 << 31) {
                        newest = Some(Newest { what, epoch, version, check: check_of(place) });
                    }
                }
            }
        }
        Ok(newest)
    }
}

/// The newest record of a page with the two `places`, if it is of `epoch`, and the version of the latest write.
///
/// # Errors
/// A place is damaged.
pub fn newest_record(places: &[u8], subpages: u32, epoch: u32) -> Result<(Option<Newest<PageRecord>>, u8), Damaged> {
    let mut newest: Option<Newest<PageRecord>> = None;
    let mut last: Option<(u32, u8)> = None;
    for place in places.chunks_exact(places.len() / 2) {
        match PageRecord::read(place, subpages) {
            Place::Nothing => {}
            Place::Damaged => return Err(Damaged),
            Place::Whole(what, of, version) => {
                let newer = |other: u8| (version as u8).wrapping_sub(other) < 128;
                if last.is_none_or(|(epoch, other)| (of, newer(other)) >= (epoch, true)) {
                    last = Some((of, version as u8));
                }
                if of == epoch && newest.as_ref().is_none_or(|other| newer(other.version as u8)) {
                    newest = Some(Newest { what, epoch, version, check: check_of(place) });
                }
            }
        }
    }
    Ok((newest, last.map_or(0, |(_, version)| version)))
}
