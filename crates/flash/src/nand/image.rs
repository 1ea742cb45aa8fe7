//! An image: flash in one sparse file, or another medium, from which a drive can be served again.
//!
//! Each operation writes its changes before it ends: first cells, then the page's out-of-band record with its checksum.
//! A program that is cut off therefore has not begun, or is torn if it went over data. An erase is one small write that
//! makes all records of its block void. The end of the process at any moment thus equals a power cut between two
//! operations, and the layer recovers. [`layout`] defines places, [`record`] pages and blocks, [`mount`] opening, and
//! [`inspect`] inspection without the drive. Memory holds tables and checksums; bytes are read on demand.
//!
//! If flash must survive a crash of the machine too, everything is synchronized before cells with data are reused, and
//! opening verifies the checksums of everything newer than the last flush ([`doubted`]).
//!
//! A failed die is a flag in the mark of its first block. The number of a block's reads is written whenever it has
//! grown by a share. Ignored: copies of data before their flush.

mod doubted;
pub mod inspect;
pub mod layout;
#[doc(hidden)]
pub mod memory;
pub mod mount;
pub mod record;
#[cfg(test)]
mod tests;
pub mod trims;

use super::generations::Change;
use super::{Flash, Halt, Nand, SubpageMask, TORN};
use crate::units::Nanos;
use layout::{Counters, Layout, Life, Shape};
use record::{BlockMark, PageRecord, Stored, SubpageRecord, check_of, page_term, term};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;

/// Most blocks that wait until the space of their cells is freed, because recently erased blocks are written next.
const LAZY: usize = 32;

/// Reads of a block that may stay unwritten: fewer than this number, or than one in this many.
const FEW_READS: u32 = 64;
const READS_SHARE: u32 = 16;

/// The bytes of an image. Unwritten bytes are zeros.
pub trait Medium: Send + Sync {
    /// Number of bytes.
    ///
    /// # Errors
    /// Errors of the operating system, here and below.
    fn length(&self) -> io::Result<u64>;

    /// Fills `into` with the bytes from `at` on.
    ///
    /// # Errors
    /// As [`Self::length`], or `into` reaches beyond the end.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes `bytes` from `at` on.
    ///
    /// # Errors
    /// As [`Self::length`], or no space is left.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// Frees the space of `range`, which reads as zeros from now on.
    ///
    /// # Errors
    /// As [`Self::length`].
    fn punch(&self, range: Range<u64>) -> io::Result<()>;

    /// The first place from `at` on that may hold anything but zeros; `None` if none does.
    ///
    /// # Errors
    /// As [`Self::length`].
    fn next_data(&self, at: u64) -> io::Result<Option<u64>>;

    /// Makes all earlier writes survive a crash of the machine.
    ///
    /// # Errors
    /// As [`Self::length`].
    fn sync(&self) -> io::Result<()>;
}

/// The state of a block's mark.
#[derive(Clone, Copy, Default)]
struct Mark {
    /// Erases, as named in records.
    epoch: u32,
    /// Number of writes.
    version: u32,
    /// Term in the sum of the image.
    term: u64,
    /// Reads of the block in the mark.
    reads: u32,
}

/// An image of flash.
pub struct Image {
    medium: Box<dyn Medium>,
    layout: Layout,
    /// Whether the image must survive a crash of the machine.
    syncs: bool,
    marks: Vec<Mark>,
    /// Of each page: writes of its record, modulo 256.
    versions: Vec<u8>,
    /// Of each page: the term of its record in the sum; 0 without a valid record.
    terms: Vec<u64>,
    /// Of each subpage with bytes: the checksum.
    pub(super) checks: Vec<u32>,
    /// Erased blocks whose cells still take space, the first erased in front.
    erased: VecDeque<u32>,
    /// Erases of all blocks before the opening.
    erases_before: u64,
    scratch: Vec<u8>,
    life: Life,
    life_written: Life,
    life_version: u32,
}

impl Image {
    /// The image of `shape` in `medium`.
    fn new(medium: Box<dyn Medium>, layout: Layout, syncs: bool) -> Self {
        let Shape { blocks, pages_per_block, subpages, .. } = layout.shape;
        let pages = blocks as usize * pages_per_block as usize;
        Image {
            medium,
            syncs,
            marks: vec![Mark::default(); blocks as usize],
            versions: vec![0; pages],
            terms: vec![0; pages],
            checks: vec![0; pages * subpages as usize],
            erased: VecDeque::new(),
            erases_before: 0,
            scratch: Vec::new(),
            life: Life::default(),
            life_written: Life::default(),
            life_version: 0,
            layout,
        }
    }

    /// Reads the bytes of subpage `psn`; true if they match their checksum.
    pub(super) fn load(&self, psn: usize, into: &mut [u8]) -> bool {
        self.medium.read(self.layout.cells(psn as u64), into).is_ok() && crc32fast::hash(into) == self.checks[psn]
    }

    /// Empty memory for the bytes of a page.
    pub(super) fn take_scratch(&mut self) -> Vec<u8> {
        self.scratch.clear();
        std::mem::take(&mut self.scratch)
    }

    pub(super) fn give_scratch(&mut self, scratch: Vec<u8>) {
        self.scratch = scratch;
    }

    /// Writes the bytes of adjacent subpages from `psn` on, if any.
    pub(super) fn write_run(&self, psn: usize, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() { Ok(()) } else { self.medium.write(self.layout.cells(psn as u64), bytes) }
    }

    /// Writes the spare area of page `ppn`, then the record to the older place.
    fn write_page(&mut self, ppn: u32, record: &PageRecord, spare: &[u8]) -> io::Result<()> {
        let version = self.versions[ppn as usize].wrapping_add(1);
        if !spare.is_empty() {
            self.medium.write(self.layout.spare(ppn, version), spare)?;
        }
        let block = (ppn / self.layout.shape.pages_per_block) as usize;
        self.scratch.clear();
        record.write(self.marks[block].epoch, version, &mut self.scratch);
        let term = page_term(ppn, check_of(&self.scratch));
        self.announce(self.life.sum.wrapping_sub(self.terms[ppn as usize]).wrapping_add(term))?;
        self.medium.write(self.layout.record(ppn, version), &self.scratch)?;
        (self.versions[ppn as usize], self.terms[ppn as usize]) = (version, term);
        Ok(())
    }

    /// Stores the sum as of the next write; the former sum stays in the other place.
    fn announce(&mut self, sum: u64) -> io::Result<()> {
        self.life.sum = sum;
        // With synchronization, the disk may order writes differently, so the sum is only written with a flush.
        if self.syncs { Ok(()) } else { self.write_life() }
    }

    fn write_life(&mut self) -> io::Result<()> {
        self.life_version = self.life_version.wrapping_add(1);
        self.medium.write(layout::life_at(self.life_version), &self.life.bytes(self.life_version))?;
        self.life_written = self.life;
        Ok(())
    }

    /// Writes the mark of `block`; an erase makes the block's records void.
    fn write_mark(&mut self, block: u32, erase: bool, mark: &BlockMark) -> io::Result<()> {
        let before = self.marks[block as usize];
        let (epoch, version) = (before.epoch.wrapping_add(u32::from(erase)), before.version.wrapping_add(1));
        let bytes = mark.bytes(epoch, version);
        let term = term(block.into(), check_of(&bytes));
        let first = (block * self.layout.shape.pages_per_block) as usize;
        let void = first..first + if erase { self.layout.shape.pages_per_block as usize } else { 0 };
        let lost = self.terms[void.clone()].iter().fold(before.term, |lost, &term| lost.wrapping_add(term));
        self.announce(self.life.sum.wrapping_sub(lost).wrapping_add(term))?;
        self.medium.write(self.layout.mark(block, version), &bytes)?;
        self.marks[block as usize] = Mark { epoch, version, term, reads: mark.reads };
        self.terms[void].fill(0);
        Ok(())
    }

    /// Synchronizes, if configured, before a write that may replace older data.
    fn settle(&self) -> io::Result<()> {
        if self.syncs { self.medium.sync() } else { Ok(()) }
    }

    /// The stored levels of page `ppn`; `None` if their checksum differs.
    pub(super) fn levels(&self, ppn: u32, cells: usize) -> Option<Box<[u8]>> {
        let mut packed = vec![0; self.layout.shape.level_bytes as usize];
        self.medium.read(self.layout.levels(ppn), &mut packed).ok()?;
        let (sum, packed) = packed.split_at(4);
        let right = sum == crc32fast::hash(packed).to_le_bytes();
        let mut levels = vec![0; 2 * packed.len()];
        for (pair, &two) in levels.as_chunks_mut().0.iter_mut().zip(packed) {
            *pair = [two & 15, two >> 4];
        }
        levels.truncate(cells);
        right.then(|| levels.into())
    }

    fn write_levels(&mut self, ppn: u32, levels: &[u8]) -> io::Result<()> {
        let mut packed = vec![0; self.layout.shape.level_bytes as usize];
        for (two, pair) in packed[4..].iter_mut().zip(levels.chunks(2)) {
            *two = pair[0] | pair.get(1).map_or(0, |high| high << 4);
        }
        let sum = crc32fast::hash(&packed[4..]);
        packed[..4].copy_from_slice(&sum.to_le_bytes());
        self.medium.write(self.layout.levels(ppn), &packed)
    }

    /// Frees the space of the cells of the erased `block`, unless it is written soon.
    fn forget_cells(&mut self, block: u32) -> io::Result<()> {
        self.erased.push_back(block);
        if self.erased.len() <= LAZY {
            return Ok(());
        }
        let oldest = self.erased.pop_front().expect("a queue that is too long");
        self.punch_block(oldest)
    }

    fn punch_block(&self, block: u32) -> io::Result<()> {
        self.layout.cells_of_block(block).into_iter().try_for_each(|range| self.medium.punch(range))
    }

    /// Writes the figures, and synchronizes, if configured.
    fn flush(&mut self) -> io::Result<()> {
        if self.life != self.life_written {
            self.write_life()?;
        }
        self.settle()
    }
}

/// Figures of the drive's life in the image.
impl Nand {
    /// Sum of the erases of all blocks since the image was opened; equals the counted erases, unless other code changed
    /// cells.
    pub fn sum_of_erases(&self) -> u64 {
        let before = self.payload.image.as_ref().map_or(0, |image| image.erases_before);
        let also = self.stripes.as_ref().map_or(0, |stripes| stripes.also_erased);
        self.blocks.iter().map(|block| u64::from(block.erases)).sum::<u64>() + also - before
    }

    /// Whether an image stores the flash.
    #[inline]
    pub fn has_image(&self) -> bool {
        self.payload.image.is_some()
    }

    /// The figures of the image; `None` without an image.
    pub fn kept_life(&self) -> Option<Life> {
        self.payload.image.as_ref().map(|image| image.life)
    }

    /// Sets the counters of the image, which the next write to the image stores.
    pub fn note_counters(&mut self, counters: Counters) {
        if let Some(image) = &mut self.payload.image {
            image.life.counters = counters;
        }
    }

    /// Stores the counters now. If a crash of the machine must lose nothing, the next flush stores them, because both
    /// places of the figures must be those of a flush.
    ///
    /// # Errors
    /// [`Halt::Image`].
    pub fn commit_counters(&mut self) -> Flash<()> {
        match &mut self.payload.image {
            Some(image) if !image.syncs && image.life.counters != image.life_written.counters => image.write_life(),
            _ => Ok(()),
        }
        .map_err(broken)
    }

    /// Sets the time of the drive, for ages of data after the image is opened again.
    pub fn note_clock(&mut self, now: Nanos) {
        if let Some(image) = &mut self.payload.image {
            image.life.clock = image.life.clock.max(now);
        }
    }

    /// The time of the drive in the image.
    pub fn kept_clock(&self) -> Nanos {
        self.payload.image.as_ref().map_or(0, |image| image.life.clock)
    }

    /// Orders later writes after all earlier ones, also across a crash of the machine.
    ///
    /// # Errors
    /// [`Halt::Image`].
    pub fn settle_image(&self) -> Flash<()> {
        self.payload.image.as_ref().map_or(Ok(()), |image| image.settle()).map_err(broken)
    }

    /// Completes a flush: if configured, all data survives a crash of the machine.
    ///
    /// # Errors
    /// [`Halt::Image`].
    pub fn flush_image(&mut self) -> Flash<()> {
        self.commit_trims()?;
        let operations = self.schedule.operations;
        let Some(image) = &mut self.payload.image else { return Ok(()) };
        image.life.operations = operations;
        image.flush().map_err(broken)
    }

    /// Marks a normal end of the service, and frees the space of erased blocks.
    ///
    /// # Errors
    /// [`Halt::Image`].
    pub fn close_image(&mut self) -> Flash<()> {
        let Some(image) = &mut self.payload.image else { return Ok(()) };
        let erased: Vec<u32> = image.erased.drain(..).collect();
        let empty = erased.into_iter().filter(|&block| self.blocks[block as usize].next_page == 0);
        empty.into_iter().try_for_each(|block| image.punch_block(block)).map_err(broken)?;
        for block in 0..self.geometry.blocks() {
            if self.reads(block) != self.image().marks[block as usize].reads {
                self.keep_mark(block, false)?;
            }
        }
        self.image().life.ended_well = true;
        self.flush_image()
    }
}

#[cold]
fn broken(error: io::Error) -> Halt {
    Halt::Image(error.to_string().into())
}

/// State before a program that the image needs.
pub(super) struct Before {
    /// Whether the program goes over cells with data.
    goes_over: bool,
    /// The spare area, in this case.
    spare: Box<[u8]>,
    /// The levels of the cells after the program.
    levels: Option<Box<[u8]>>,
}

/// Writes of operations to the image.
impl Nand {
    /// The state before a program of page `ppn` with `levels`.
    #[cold]
    pub(super) fn kept_before(&self, ppn: u32, change: Change, again: bool, levels: Option<&[u8]>) -> Before {
        let goes_over = again && change != Change::First;
        let spare = if goes_over { self.own.spare(ppn).unwrap_or_default().into() } else { Box::default() };
        Before { goes_over, spare, levels: levels.map(Box::from) }
    }

    /// Writes the program of page `ppn`; `done`: the program succeeded. Cells come first, because the record makes them
    /// valid.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_program(&mut self, ppn: u32, written: SubpageMask, done: bool, before: Before) -> Flash<()> {
        if done {
            self.keep_bytes(ppn, written, &before).map_err(broken)?;
        }
        self.keep_record(ppn)?;
        if !done {
            let mates: Vec<u32> = self.mates(ppn).collect();
            mates.into_iter().try_for_each(|mate| self.keep_record(mate))?;
            self.keep_mark(self.split(ppn).0, false)?;
        }
        Ok(())
    }

    fn keep_bytes(&mut self, ppn: u32, written: SubpageMask, before: &Before) -> io::Result<()> {
        if before.goes_over {
            // Overwritten subpages are torn until the next record.
            let record = self.record_of(ppn, written, &before.spare);
            let image = self.image();
            image.settle()?;
            image.write_page(ppn, &record, &before.spare)?;
            image.settle()?;
        }
        let width = self.geometry.subpages_per_page;
        let first = (ppn * width) as usize;
        self.payload.write_cells(first, written)?;
        for index in (0..width).filter(|index| written >> index & 1 == 1) {
            let psn = ppn * width + index;
            if let Some(bytes) = self.own.subpage(psn) {
                let image = self.payload.image.as_deref().expect("an image");
                image.medium.write(image.layout.own(psn.into()), bytes)?;
            }
        }
        before.levels.as_deref().map_or(Ok(()), |levels| self.image().write_levels(ppn, levels))
    }

    fn image(&mut self) -> &mut Image {
        self.payload.image.as_deref_mut().expect("an image")
    }

    /// Writes the record of page `ppn`, if it is programmed.
    pub(super) fn keep_record(&mut self, ppn: u32) -> Flash<()> {
        if self.payload.image.is_none() || self.programs[ppn as usize] == 0 {
            return Ok(());
        }
        let spare = Box::<[u8]>::from(self.spare_kept(ppn).unwrap_or_default());
        let record = self.record_of(ppn, 0, &spare);
        self.image().write_page(ppn, &record, &spare).map_err(broken)
    }

    /// The spare area of page `ppn`, or the former one if the page was corrupted.
    fn spare_kept(&self, ppn: u32) -> Option<&[u8]> {
        self.own.spare(ppn).or_else(|| self.pairs.corrupted_own(ppn)?.spare(ppn))
    }

    /// The record of page `ppn` with this spare area; the subpages `torn` are torn.
    fn record_of(&self, ppn: u32, torn: SubpageMask, spare: &[u8]) -> PageRecord {
        let width = self.geometry.subpages_per_page;
        let block = self.blocks[self.split(ppn).0 as usize];
        let corrupted = self.pairs.corrupted_logical(ppn);
        let own = self.pairs.corrupted_own(ppn);
        let image = self.payload.image.as_deref().expect("an image");
        let subpage = |index: u32| {
            let psn = ppn * width + index;
            let logical = corrupted.map_or(self.logical[psn as usize], |logical| logical[index as usize]);
            let logical = if torn >> index & 1 == 1 { TORN } else { logical };
            let stored = if logical == TORN { Stored::Nothing } else { self.payload.stored(psn as usize) };
            let bytes = self.own.subpage(psn).or_else(|| own?.subpage(psn)).filter(|_| logical != TORN);
            SubpageRecord {
                logical,
                stored,
                check: if stored == Stored::Bytes { image.checks[psn as usize] } else { 0 },
                own: bytes.map_or(0, |bytes| bytes.len() as u32),
                own_check: bytes.map_or(0, crc32fast::hash),
                sequence: self.payload.sequence(psn),
            }
        };
        PageRecord {
            operation: self.schedule.operations,
            programs: self.programs[ppn as usize],
            generation: self.generations.of(ppn),
            pass: block.pass,
            single: block.single,
            low_first: block.low_first,
            reused: block.reused,
            corrupted: corrupted.is_some(),
            spare: spare.len() as u32,
            spare_check: if spare.is_empty() { 0 } else { crc32fast::hash(spare) },
            copy: self.pairs.copy_words(ppn),
            programmed_at: self.programmed_at(ppn),
            subpages: (0..width).map(subpage).collect(),
        }
    }

    /// Writes the mark of `block`.
    pub(super) fn keep_mark(&mut self, block: u32, erase: bool) -> Flash<()> {
        let super::Block { erases, bad, torn, kept, .. } = self.blocks[block as usize];
        let (reads, dead) = (self.reads(block), self.is_dead(block));
        let Some(image) = &mut self.payload.image else { return Ok(()) };
        image.write_mark(block, erase, &BlockMark { erases, bad, torn, kept, dead, reads }).map_err(broken)
    }

    /// Writes the reads of `block` if they have grown enough.
    #[cold]
    pub(super) fn keep_reads(&mut self, block: u32, reads: u32) {
        let Some(image) = &self.payload.image else { return };
        let kept = image.marks[block as usize].reads;
        if reads.saturating_sub(kept) >= FEW_READS.max(kept / READS_SHARE) {
            // If this write fails, the next write reports the failure.
            let _ = self.keep_mark(block, false);
        }
    }

    /// Writes the erase of `block`.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_erase(&mut self, block: u32) -> Flash<()> {
        // Data moved from the block, and the void mark, must be on disk before the cells are written again.
        self.image().settle().map_err(broken)?;
        self.keep_mark(block, true)?;
        self.image().settle().map_err(broken)?;
        let image = self.payload.image.as_deref_mut().expect("an image");
        image.erased.retain(|&other| other != block);
        while image.erased.front().is_some_and(|&front| self.blocks[front as usize].next_page > 0) {
            image.erased.pop_front();
        }
        if image.erased.len() >= LAZY {
            image.erased.retain(|&other| self.blocks[other as usize].next_page == 0);
        }
        image.forget_cells(block).map_err(broken)
    }
}
