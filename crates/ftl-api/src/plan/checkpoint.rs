//! Checkpoints: the controller writes the layer's tables to flash from time to time, so that recovery reads fewer
//! pages.
//!
//! The controller reserves two areas of blocks, which layers see as bad, and writes each checkpoint into the area
//! without the newest one. For each block a checkpoint stores the number of written pages, and the program numbers of
//! the first page with data and of the last page. The tables of the layer follow
//! ([`Ftl::save_tables`](crate::Ftl::save_tables)). The last page, the record, completes a checkpoint. The record must
//! follow all programs planned before, because the tables point to their pages.
//!
//! Recovery reads the newest complete checkpoint and the first page of each block. If a block still begins with the
//! stored program number, the block has not been erased, and recovery reads only pages written since. Recovery reads
//! any other block whole. Entries of the tables for such a block are void: the layer moved or trimmed that data before
//! the erase, and programmed moved data later. If the layer programs pages again, a checkpoint also marks pages that a
//! program may still change, and recovery reads them too.
//!
//! Pages of checkpoints have their own cause. The controller spreads them over host writes until half of the bytes
//! between two checkpoints are programmed. If a block fails, a spare replaces the block and the checkpoint is
//! abandoned. Without spare blocks checkpoints end. Ignored: the memory for the tables meanwhile, the storage of the
//! list of these blocks, and bit errors in a checkpoint (assumed to be stored twice).

use super::{Cause, Erase, Gate, Io, Program, Read, RecoveryIo};
use crate::Programs;
use palimpsest_flash::geometry::Geometry;
use palimpsest_flash::nand::data::Data;
use palimpsest_flash::nand::{Flash, Nand, Outcome, PADDING, TORN, first_subpages};

/// Bytes of the record: number, flash operations before, bytes of tables, checksum.
const RECORD: usize = 32;
/// Bytes stored per block: program number of the first page, pages written, and program number of the last page. Layers
/// order blocks by the last number.
const BLOCK: usize = 20;
/// Blocks beside the two areas, to replace blocks that fail.
const SPARE: u32 = 2;

/// Sizes of a checkpoint.
#[derive(Debug, Clone, Copy)]
pub struct Contents {
    /// Bytes of the layer's tables.
    pub tables: u64,
    /// How often the layer programs a page.
    pub programs: Programs,
}

/// Cost of checkpoints since the drive was new.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckpointFigures {
    /// Checkpoints begun.
    pub begun: u64,
    /// Pages programmed.
    pub pages: u64,
    /// Bytes of data programmed.
    pub bytes: u64,
}

/// The checkpoints of a drive.
pub struct Checkpoints {
    /// Bytes programmed between two checkpoints.
    every: u64,
    /// Blocks of each area; the second area holds the newest checkpoint.
    areas: [Vec<u32>; 2],
    spare: Vec<u32>,
    /// Pages of a checkpoint, without the record.
    pages: u32,
    programs: Programs,
    number: u64,
    /// Bytes programmed, other than for checkpoints, at which the next step is due.
    due: u64,
    begun: Option<Begun>,
    /// Closes when the last checkpoint is complete.
    done: Gate,
    bytes: Vec<u8>,
    found: Option<Found>,
    /// Checkpoints begun since the drive was new.
    begun_count: u64,
    /// Program number of each subpage when each checkpoint began. A check uses them to prove that recovery skips no
    /// changed page.
    #[cfg(debug_assertions)]
    known: std::collections::BTreeMap<u64, Vec<u64>>,
}

/// A checkpoint in progress.
struct Begun {
    /// Flash operations, and bytes programmed, before the checkpoint.
    operations: u64,
    programmed: u64,
    pages: u32,
}

/// The checkpoint that recovery found.
struct Found {
    /// Flash operations before the checkpoint.
    operations: u64,
    #[cfg_attr(not(debug_assertions), expect(dead_code, reason = "only debug builds compare tables"))]
    number: u64,
    /// Offset of the tables in `bytes`.
    tables: usize,
    bytes: Vec<u8>,
    /// First page of each block written after the checkpoint; 0 if entries of the tables for the block are void.
    since: Vec<u32>,
}

impl Found {
    /// True if a program may have changed page `ppn` after the checkpoint; `blocks` is the number of blocks of the
    /// drive.
    fn may_have_changed(&self, ppn: u32, blocks: u32) -> bool {
        // Without contents there are no bits, and no recovery.
        let bits = self.bytes.get(blocks as usize * BLOCK..self.tables).unwrap_or_default();
        bits.get(ppn as usize / 8).is_some_and(|byte| byte >> (ppn % 8) & 1 == 1)
    }
}

/// Tables of a checkpoint.
pub struct Tables<'a> {
    /// Bytes written by [`super::super::Ftl::save_tables`].
    pub bytes: &'a [u8],
    /// Number of flash operations before the checkpoint: the tables know programs up to this number.
    pub operations: u64,
    since: &'a [u32],
}

impl Tables<'_> {
    /// True if entries of the tables for `block` are void.
    pub fn is_void(&self, block: u32) -> bool {
        self.since[block as usize] == 0
    }

    /// First page of `block` that may have been written after the checkpoint.
    pub fn since(&self, block: u32) -> u32 {
        self.since[block as usize]
    }
}

impl Contents {
    /// Bytes before the tables: the entries of blocks, and a bit for each page that a program may still change.
    fn before(self, geometry: &Geometry) -> u64 {
        let changes = if self.programs == Programs::Once { 0 } else { geometry.pages().div_ceil(8) };
        u64::from(geometry.blocks()) * BLOCK as u64 + changes
    }

    /// Pages of a checkpoint, without the record.
    fn pages(self, geometry: &Geometry) -> u64 {
        (self.before(geometry) + self.tables).div_ceil(geometry.page_bytes().into())
    }

    fn blocks(self, geometry: &Geometry) -> u32 {
        (self.pages(geometry) + 1).div_ceil(geometry.pages_per_block.into()) as u32
    }

    /// Largest number of blocks per plane that checkpoints reserve.
    pub fn kept_blocks(self, geometry: &Geometry) -> u32 {
        (2 * self.blocks(geometry) + SPARE).div_ceil(geometry.planes())
    }
}

impl Checkpoints {
    /// True if `block` belongs to an area or is a spare.
    fn owns(&self, block: u32) -> bool {
        self.areas.iter().chain([&self.spare]).flatten().any(|&own| own == block)
    }

    /// Replaces block `at` of the first area, which has failed, by a spare. Without a spare the area is cleared.
    fn replace(&mut self, at: usize) {
        match self.spare.pop() {
            Some(block) => self.areas[0][at] = block,
            None => self.areas[0].clear(),
        }
    }

    /// Abandons the checkpoint because the program of page `index` failed. The next begins `every` bytes after
    /// `programmed`.
    fn give_up(&mut self, index: u32, programmed: u64) {
        self.replace(index as usize % self.areas[0].len());
        self.due = programmed + self.every;
    }

    /// Page `index` of the area `blocks`. Pages alternate between the blocks, so that programs run in parallel.
    fn page(blocks: &[u32], index: u32, pages_per_block: u32) -> u32 {
        let count = blocks.len() as u32;
        blocks[(index % count) as usize] * pages_per_block + index / count
    }
}

/// Checksum (FNV-1a over words of eight bytes, because tables are long).
fn sum_of(bytes: &[u8]) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = (sum ^ u64::from_le_bytes(word)).wrapping_mul(0x100_0000_01b3);
    }
    sum
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The first page of `block` that holds data, and the program number in its out-of-band area; 0 if the block holds no
/// data. Padding does not count, because no copy exists of a padding page that an interrupted program corrupted.
pub(super) fn first_program(nand: &Nand, block: u32) -> (u32, u64) {
    let (pages, width) = (nand.geometry().pages_per_block, nand.geometry().subpages_per_page);
    let written = if nand.is_torn(block) { 0 } else { nand.next_page(block).min(pages) };
    let program = |page: u32| {
        let subpages = (block * pages + page) * width..(block * pages + page + 1) * width;
        let held = subpages.filter(|&psn| nand.logical_before_trims(psn) < TORN);
        held.map(|psn| nand.sequence(psn)).max().filter(|_| nand.programs(block * pages + page) > 0)
    };
    let found = (0..written).find_map(|page| program(page).map(|program| (page, program)));
    found.unwrap_or((0, 0))
}

/// The program number of the last page of `block`; 0 if no page is written.
fn last_program(nand: &Nand, block: u32) -> u64 {
    let (pages, width) = (nand.geometry().pages_per_block, nand.geometry().subpages_per_page);
    let Some(page) = nand.next_page(block).min(pages).checked_sub(1) else { return 0 };
    let first = (block * pages + page) * width;
    (first..first + width).map(|psn| nand.sequence(psn)).max().unwrap_or(0)
}

/// The side of an [`Io`] that the drive writes checkpoints by, and recovery reads.
pub trait CheckpointIo {
    /// Reserves blocks for checkpoints of `contents`, due every `every` bytes after [`Self::begin_checkpoints`]. Must
    /// be called before a layer is built, because the layer must see these blocks as bad.
    fn keep_checkpoints(&mut self, every: u64, contents: Contents);

    /// True if a checkpoint, or its next step, is due.
    fn checkpoint_due(&self) -> bool;

    /// Starts checkpoints: the first is due after `every` more bytes.
    fn begin_checkpoints(&mut self);

    /// Cost of checkpoints; `None` without checkpoints.
    fn checkpoint_figures(&self) -> Option<CheckpointFigures>;

    /// Begins a checkpoint with the tables that `save` appends, or writes the next pages of the present checkpoint.
    /// Returns the gate that the record follows, if the record is planned. In a timed run the caller must link that
    /// gate to all programs under way.
    ///
    /// # Errors
    /// Every [`palimpsest_flash::nand::Halt`] of flash.
    fn write_checkpoint(&mut self, save: impl FnOnce(&Io, &mut Vec<u8>)) -> Flash<Gate>;

    /// Reads the newest complete checkpoint after a power cut. Returns the number of pages read.
    ///
    /// # Errors
    /// As [`Self::write_checkpoint`].
    fn find_checkpoint(&mut self) -> Flash<u64>;

    /// As [`RecoveryIo::scan`], for pages of `block` written after the checkpoint that recovery found.
    fn scan_since(&mut self, block: u32) -> u64;

    /// Tables of the checkpoint that [`Self::find_checkpoint`] found, for the layer's recovery.
    fn tables(&self) -> Option<Tables<'_>>;

    /// Frees the tables; the layer calls this when its recovery no longer needs them.
    fn drop_tables(&mut self);
}

impl CheckpointIo for Io {
    fn keep_checkpoints(&mut self, every: u64, contents: Contents) {
        let geometry = *self.geometry();
        let (count, pages) = (contents.blocks(&geometry), contents.pages(&geometry) as u32);
        let mut kept = Vec::new();
        for index in 0..2 * count + SPARE {
            let plane = index % geometry.planes();
            let of_plane = plane * geometry.blocks_per_plane..(plane + 1) * geometry.blocks_per_plane;
            if let Some(block) = of_plane.rev().find(|&block| !self.nand.is_bad(block)) {
                self.nand.keep_block(block);
                kept.push(block);
            }
        }
        let spare = kept.split_off(kept.len().min(2 * count as usize));
        let second = kept.split_off(kept.len() / 2);
        self.checkpoints = Some(Box::new(Checkpoints {
            every,
            areas: [kept, second],
            spare,
            pages,
            programs: contents.programs,
            number: 0,
            due: u64::MAX,
            begun: None,
            done: Gate::NONE,
            bytes: Vec::new(),
            found: None,
            begun_count: 0,
            #[cfg(debug_assertions)]
            known: Default::default(),
        }));
    }

    #[inline]
    fn checkpoint_due(&self) -> bool {
        self.checkpoints.as_ref().is_some_and(|own| self.programmed_beside() >= own.due)
    }

    fn begin_checkpoints(&mut self) {
        let due = self.checkpoints.as_ref().map(|own| self.programmed_beside() + own.every);
        self.checkpoints.iter_mut().zip(due).for_each(|(own, due)| own.due = due);
    }

    fn checkpoint_figures(&self) -> Option<CheckpointFigures> {
        let (pages, bytes) = (self.counters.programs[Cause::Checkpoint as usize], self.counters.checkpoint_bytes);
        self.checkpoints.as_ref().map(|own| CheckpointFigures { begun: own.begun_count, pages, bytes })
    }

    #[cold]
    fn write_checkpoint(&mut self, save: impl FnOnce(&Io, &mut Vec<u8>)) -> Flash<Gate> {
        let Some(mut own) = self.checkpoints.take() else { return Ok(Gate::NONE) };
        let done = self.write_some(&mut own, save);
        self.checkpoints = Some(own);
        done
    }

    fn find_checkpoint(&mut self) -> Flash<u64> {
        let Some(mut own) = self.checkpoints.take() else { return Ok(0) };
        let reads = self.counters.reads[Cause::Checkpoint as usize];
        (own.found, own.begun, own.done) = (None, None, Gate::NONE);
        own.due = own.due.min(self.programmed_beside() + own.every);
        let per_block = self.geometry().pages_per_block;
        let mut records: Vec<(u64, usize)> = Vec::new();
        for (area, blocks) in own.areas.iter().enumerate().filter(|(_, blocks)| !blocks.is_empty()) {
            let record = self.read_own(Checkpoints::page(blocks, own.pages, per_block))?;
            records.extend(record.filter(|record| record.len() == RECORD).map(|record| (word(&record, 0), area)));
        }
        records.sort_unstable();
        for (number, area) in records.into_iter().rev() {
            if let Some(found) = self.read_area(&own, area)? {
                own.number = own.number.max(number);
                own.found = Some(found);
                if area == 0 {
                    own.areas.swap(0, 1);
                }
                break;
            }
        }
        self.checkpoints = Some(own);
        Ok(self.counters.reads[Cause::Checkpoint as usize] - reads)
    }

    fn scan_since(&mut self, block: u32) -> u64 {
        let Some(mut own) = self.checkpoints.take() else { return self.scan(block) };
        let owned = own.owns(block);
        let scanned = match &mut own.found {
            _ if owned => 0,
            Some(found) if !self.nand.is_kept(block) => {
                #[cfg(debug_assertions)]
                if let Some(known) = own.known.get(&found.number) {
                    self.check_known(known, found, block);
                }
                self.scan_changed(found, block)
            }
            _ => self.scan(block),
        };
        self.checkpoints = Some(own);
        scanned
    }

    fn tables(&self) -> Option<Tables<'_>> {
        let found = self.checkpoints.as_ref()?.found.as_ref()?;
        Some(Tables { bytes: &found.bytes[found.tables..], operations: found.operations, since: &found.since })
    }

    fn drop_tables(&mut self) {
        self.checkpoints.iter_mut().for_each(|own| own.found = None);
    }
}

impl Io {
    /// Bytes programmed, without checkpoints.
    fn programmed_beside(&self) -> u64 {
        self.counters.data_bytes - self.counters.checkpoint_bytes
    }

    fn write_some(&mut self, own: &mut Checkpoints, save: impl FnOnce(&Io, &mut Vec<u8>)) -> Flash<Gate> {
        let programmed = self.programmed_beside();
        let step = own.every.div_ceil(2 * u64::from(own.pages));
        let mut begun = match own.begun.take() {
            Some(begun) => begun,
            None if own.areas[0].is_empty() || own.areas[1].is_empty() => {
                own.due = u64::MAX;
                return Ok(Gate::NONE);
            }
            // The record of the last checkpoint is still under way.
            None if self.plan.gates.is_open(own.done) => {
                own.due = programmed + step;
                return Ok(Gate::NONE);
            }
            None => {
                let begun = Begun { operations: self.nand.operations(), programmed, pages: 0 };
                if !self.begin_area(own, save)? {
                    own.due = programmed + own.every;
                    return Ok(Gate::NONE);
                }
                begun
            }
        };
        let due = ((programmed - begun.programmed) / step + 1).min(own.pages.into()) as u32;
        let record = if due == own.pages { self.gate() } else { Gate::NONE };
        let (page_bytes, per_block) = (self.geometry().page_bytes() as usize, self.geometry().pages_per_block);
        while begun.pages < due {
            let ppn = Checkpoints::page(&own.areas[0], begun.pages, per_block);
            let bytes = own.bytes.chunks(page_bytes).nth(begun.pages as usize).unwrap_or_default();
            if self.write_page(ppn, bytes, Gate::NONE, record)? == Outcome::Failed {
                own.give_up(begun.pages, programmed);
                return Ok(Gate::NONE);
            }
            begun.pages += 1;
        }
        own.due = begun.programmed + step * u64::from(begun.pages);
        if due < own.pages {
            own.begun = Some(begun);
            return Ok(Gate::NONE);
        }
        self.write_record(own, &begun, record)
    }

    /// Assembles a checkpoint and erases its area. Returns false if an erase fails.
    fn begin_area(&mut self, own: &mut Checkpoints, save: impl FnOnce(&Io, &mut Vec<u8>)) -> Flash<bool> {
        own.number += 1;
        own.begun_count += 1;
        own.bytes.clear();
        for block in 0..self.geometry().blocks() {
            own.bytes.extend(first_program(&self.nand, block).1.to_le_bytes());
            own.bytes.extend(self.nand.next_page(block).to_le_bytes());
            own.bytes.extend(last_program(&self.nand, block).to_le_bytes());
        }
        if own.programs != Programs::Once {
            self.save_changing(own.programs == Programs::OverData, &mut own.bytes);
        }
        save(self, &mut own.bytes);
        // Tables that exceed the area are cut off. Their record has the full length, so recovery scans everything.
        #[cfg(debug_assertions)]
        {
            let sequences = (0..self.geometry().subpages() as u32).map(|psn| self.nand.sequence(psn)).collect();
            own.known.retain(|&number, _| number + 3 > own.number);
            own.known.insert(own.number, sequences);
        }
        for at in 0..own.areas[0].len() {
            let block = own.areas[0][at];
            let used = self.nand.is_torn(block) || self.nand.next_page(block) > 0;
            if used && self.erase(Erase::new(block, Cause::Checkpoint))? == Outcome::Failed {
                own.replace(at);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Appends one bit per page: set if a program may still change the page.
    fn save_changing(&self, over: bool, bytes: &mut Vec<u8>) {
        let pages = self.geometry().pages() as u32;
        for first in (0..pages).step_by(8) {
            let changes = |&index: &u32| first + index < pages && self.nand.may_change(first + index, over);
            bytes.push((0..8).filter(changes).fold(0, |bits, index| bits | 1 << index));
        }
    }

    /// Writes the record, which follows the gate `after`.
    fn write_record(&mut self, own: &mut Checkpoints, begun: &Begun, after: Gate) -> Flash<Gate> {
        let mut record = Vec::with_capacity(RECORD);
        for word in [own.number, begun.operations, own.bytes.len() as u64, sum_of(&own.bytes)] {
            record.extend(word.to_le_bytes());
        }
        let (ppn, done) = (Checkpoints::page(&own.areas[0], own.pages, self.geometry().pages_per_block), self.gate());
        if self.write_page(ppn, &record, after, done)? == Outcome::Failed {
            own.give_up(own.pages, begun.programmed);
            return Ok(after);
        }
        // A protected buffer programs everything planned, even after a power cut.
        own.done = if self.plan.protected { Gate::NONE } else { done };
        own.due = begun.programmed + own.every;
        own.areas.swap(0, 1);
        Ok(after)
    }

    fn write_page(&mut self, ppn: u32, bytes: &[u8], after: Gate, signal: Gate) -> Flash<Outcome> {
        let geometry = self.geometry();
        let width = geometry.subpages_per_page;
        let holds = (bytes.len() as u32).div_ceil(geometry.subpage_bytes);
        let (logical, data) = (vec![PADDING; width as usize], vec![Data::ZERO; width as usize]);
        let program = Program::new(ppn, &logical, &data, Cause::Checkpoint);
        // Counted before the program, because the program logs its change of the counters.
        let data_bytes = u64::from(holds * self.geometry().subpage_bytes);
        self.counters.checkpoint_bytes += data_bytes;
        let done = self.program(Program { own: bytes, padding: width - holds, after, signal, ..program });
        if done.is_err() {
            self.counters.checkpoint_bytes -= data_bytes;
        }
        done
    }

    fn read_area(&mut self, own: &Checkpoints, area: usize) -> Flash<Option<Found>> {
        let (per_block, blocks) = (self.geometry().pages_per_block, &own.areas[area]);
        let mut bytes = Vec::new();
        for index in 0..own.pages {
            let Some(page) = self.read_own(Checkpoints::page(blocks, index, per_block))? else { return Ok(None) };
            bytes.extend(page);
        }
        let mut record = Vec::new();
        self.nand.own_of(Checkpoints::page(blocks, own.pages, per_block), &mut record);
        let is_whole = word(&record, 16) == bytes.len() as u64 && word(&record, 24) == sum_of(&bytes);
        let contents = Contents { tables: 0, programs: own.programs };
        Ok(is_whole.then(|| Found {
            operations: word(&record, 8),
            number: word(&record, 0),
            tables: contents.before(self.geometry()) as usize,
            bytes,
            since: vec![0; self.geometry().blocks() as usize],
        }))
    }

    /// Reads page `ppn` and returns the controller's bytes in it; `None` if the page is not completely written.
    fn read_own(&mut self, ppn: u32) -> Flash<Option<Vec<u8>>> {
        let block = self.nand.split(ppn).0;
        let readable = self.nand.programs(ppn) > 0 && self.nand.logical_of(ppn).iter().all(|&cell| cell == PADDING);
        if self.nand.is_torn(block) || !readable {
            self.scan_own(ppn);
            return Ok(None);
        }
        let all = first_subpages(self.geometry().subpages_per_page);
        self.read(Read::new(ppn, all, Cause::Checkpoint))?;
        let mut bytes = Vec::new();
        self.nand.own_of(ppn, &mut bytes);
        Ok(Some(bytes))
    }

    /// Asserts that all pages of `block` that recovery skips are unchanged since the checkpoint began.
    #[cfg(debug_assertions)]
    fn check_known(&self, known: &[u64], found: &Found, block: u32) {
        let at = block as usize * BLOCK;
        let used = u32::from_le_bytes(found.bytes[at + 8..at + 12].try_into().unwrap_or_default());
        let (_, program) = first_program(&self.nand, block);
        if program == 0 || program != word(&found.bytes, at) {
            return;
        }
        let (pages, width) = (self.geometry().pages_per_block, self.geometry().subpages_per_page);
        for ppn in block * pages..block * pages + used.min(pages) {
            let skipped = !found.may_have_changed(ppn, self.geometry().blocks());
            let same = |psn: u32| self.nand.sequence(psn) == known[psn as usize] || self.nand.logical(psn) >= TORN;
            assert!(!skipped || (ppn * width..(ppn + 1) * width).all(same), "recovery skips page {ppn}, which changed");
        }
    }

    fn scan_changed(&mut self, found: &mut Found, block: u32) -> u64 {
        let (per_block, first) = (self.geometry().pages_per_block, block * self.geometry().pages_per_block);
        let bits = if self.nand.is_single(block) { self.nand.part().stored_bits() } else { 1 };
        let pages = per_block / bits;
        let (at, blocks) = (block as usize * BLOCK, self.geometry().blocks());
        let used = u32::from_le_bytes(found.bytes[at + 8..at + 12].try_into().unwrap_or_default());
        let ((page, program), known) = (first_program(&self.nand, block), word(&found.bytes, at));
        let same = known != 0 && known == program;
        let since = if same { used } else { 0 };
        found.since[block as usize] = since;
        let looked = page + 1;
        (0..looked).for_each(|page| self.scan_page(block, page));
        let mut scanned = looked;
        for page in looked..since.min(pages) {
            if found.may_have_changed(first + page, blocks) {
                self.scan_page(block, page);
                scanned += 1;
            }
        }
        for page in since.max(looked)..pages {
            // The first erased page behind the written ones is read too.
            let written = self.nand.programs(first + page) > 0;
            if !written && (!same || page > since) {
                continue;
            }
            self.scan_page(block, page);
            scanned += 1;
        }
        u64::from(scanned)
    }
}
