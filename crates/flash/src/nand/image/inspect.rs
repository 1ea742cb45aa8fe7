//! Inspection of an image without its drive: figures, checksums, and unneeded space. Memory is bounded for any header,
//! because blocks are read one by one, and only where data may be. Ignored: the meaning of the data.

use super::Medium;
use super::layout::{Layout, Life, PAGE, Shape};
use super::mount::{Fault, Found, find};
use super::record::{BlockMark, Newest, PageRecord, Stored, newest_record, page_term, term};
use super::trims::read_trims;
use std::io;
use std::ops::Range;

/// Most findings in the list; the rest is only counted.
pub const SHOWN: usize = 100;

/// Figures of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Figures of the drive's life at the last flush; `None` if lost.
    pub life: Option<Life>,
    /// Pages that are programmed.
    pub pages: u64,
    /// Bytes in these pages' cells.
    pub bytes: u64,
    /// Blocks with a programmed page.
    pub blocks_used: u64,
    /// Blocks that are bad.
    pub bad_blocks: u64,
    /// Erases of all blocks.
    pub erases: u64,
    /// Erases of the least erased block.
    pub least_erases: u32,
    /// Erases of the most erased block.
    pub most_erases: u32,
    /// Mismatched checksums, a line each, at most [`SHOWN`] lines.
    pub findings: Vec<String>,
    /// Number of all mismatches.
    pub found: u64,
    /// Bytes of freed space.
    pub punched: u64,
}

/// Kinds of inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Marks and records.
    Records,
    /// All checksums, cells included.
    Everything,
    /// Marks and records; frees unneeded space.
    Compact,
}

/// Finds the next data of a region of an image.
struct Ahead<'a> {
    medium: &'a dyn Medium,
    /// No data is before this place.
    data_from: u64,
}

impl Ahead<'_> {
    /// Whether `range` may hold data; ranges must ascend.
    fn may_hold(&mut self, range: &Range<u64>) -> io::Result<bool> {
        if self.data_from < range.start {
            self.data_from = self.medium.next_data(range.start)?.unwrap_or(u64::MAX);
        }
        Ok(self.data_from < range.end)
    }

    /// The first of `count` parts of `bytes` bytes each from `at` on that may hold data, from part `from` on.
    fn next(&mut self, at: u64, bytes: u64, from: u32, count: u32) -> io::Result<Option<u32>> {
        let begin = at + u64::from(from) * bytes;
        if self.data_from <= begin {
            self.data_from = self.medium.next_data(begin)?.unwrap_or(u64::MAX);
        }
        let part = self.data_from.max(begin).saturating_sub(at) / bytes;
        Ok(u32::try_from(part).ok().filter(|&part| part < count))
    }
}

/// Inspects the image in `medium`.
///
/// # Errors
/// [`Fault`] if there is no image; damage inside the image is among the findings.
pub fn inspect(medium: &dyn Medium, look: Look) -> Result<(Found, Figures), Fault> {
    let (found, layout) = find(medium)?;
    let mut inspector = Inspector { medium, layout, look, figures: Figures::default(), sum: 0 };
    inspector.run(if found.header.version < 4 { 0 } else { found.header.logical_subpages })?;
    let figures = inspector.figures;
    Ok((found, figures))
}

struct Inspector<'a> {
    medium: &'a dyn Medium,
    layout: Layout,
    look: Look,
    figures: Figures,
    /// Sum of the marks and records so far.
    sum: u64,
}

impl Inspector<'_> {
    fn find(&mut self, what: impl FnOnce() -> String) {
        self.figures.found += 1;
        if self.figures.findings.len() < SHOWN {
            self.figures.findings.push(what());
        }
    }

    fn look_at_trims(&mut self, logical: u64) -> Result<(), Fault> {
        let (medium, layout) = (self.medium, self.layout);
        read_trims(medium, &layout, logical, |lsn, operation| {
            if operation.is_none() {
                self.find(|| format!("the record of the trim of logical subpage {lsn} does not match its checksum"));
            }
        })?;
        Ok(())
    }

    fn run(&mut self, logical: u64) -> Result<(), Fault> {
        let mut places = vec![0; Life::PLACES];
        self.medium.read(PAGE, &mut places)?;
        let lives = Life::read(&places);
        self.figures.life = lives.first().map(|&(life, _)| life);
        if lives.is_empty() {
            self.find(|| "the figures of the drive's life do not match their checksums".into());
        }
        let Shape { blocks, .. } = self.layout.shape;
        let medium = self.medium;
        let (mut marks, mut records) = (Ahead { medium, data_from: 0 }, Ahead { medium, data_from: 0 });
        let mut cells = Ahead { medium, data_from: 0 };
        let of_marks = self.layout.marks(0..1);
        let of_records = self.layout.records_of_block(0);
        let mut least = None;
        let mut marked = 0u64;
        let mut at = 0;
        // Skips ranges of blocks without a mark or a record.
        while at < blocks {
            let mark = marks.next(of_marks.start, of_marks.end - of_marks.start, at, blocks)?;
            let record = records.next(of_records.start, of_records.end - of_records.start, at, blocks)?;
            let Some(block) = mark.into_iter().chain(record).min() else { break };
            let newest = self.mark_of(block)?;
            if let Some(Some(Newest { what: mark, check, .. })) = &newest {
                marked += 1;
                self.sum = self.sum.wrapping_add(term(block.into(), *check));
                self.figures.bad_blocks += u64::from(mark.bad);
                self.figures.erases += u64::from(mark.erases);
                self.figures.most_erases = self.figures.most_erases.max(mark.erases);
                least = Some(least.unwrap_or(u32::MAX).min(mark.erases));
            }
            if let Some(mark) = newest {
                self.look_at_block(block, mark.map_or(0, |mark| mark.epoch), record == Some(block))?;
            }
            at = block + 1;
        }
        if self.figures.found == 0 && !lives.iter().any(|(life, _)| life.sum == self.sum || life.syncs) {
            self.find(|| "a part of it is missing, or older than the rest".into());
        }
        self.look_at_trims(logical)?;
        self.figures.least_erases = if marked == u64::from(blocks) { least.unwrap_or(0) } else { 0 };
        if self.look == Look::Compact {
            self.punch_unrecorded(&mut cells)?;
        }
        Ok(())
    }

    /// The mark of `block`; `None` if damaged.
    fn mark_of(&mut self, block: u32) -> io::Result<Option<Option<Newest<BlockMark>>>> {
        let range = self.layout.marks(block..block + 1);
        let mut places = vec![0; (range.end - range.start) as usize];
        self.medium.read(range.start, &mut places)?;
        let newest = BlockMark::newest(&places);
        if newest.is_err() {
            self.find(|| format!("block {block}: its mark does not match its checksum"));
        }
        Ok(newest.ok())
    }

    fn look_at_block(&mut self, block: u32, epoch: u32, has_records: bool) -> io::Result<()> {
        let Shape { pages_per_block, subpages, .. } = self.layout.shape;
        let per_page = self.layout.records_bytes();
        let (mut places, mut used) = (vec![0; per_page], false);
        for page in 0..if has_records { pages_per_block } else { 0 } {
            let ppn = block * pages_per_block + page;
            self.medium.read(self.layout.record(ppn, 0), &mut places)?;
            match newest_record(&places, subpages, epoch) {
                Err(_) => {
                    used = true;
                    self.find(|| format!("block {block}, page {page}: its record does not match its checksum"));
                }
                Ok((None, _)) => {}
                Ok((Some(Newest { what: record, check, .. }), version)) => {
                    used = true;
                    self.sum = self.sum.wrapping_add(page_term(ppn, check));
                    self.look_at_page(block, page, &record, version)?;
                }
            }
        }
        self.figures.blocks_used += u64::from(used);
        if self.look == Look::Compact && !used {
            for range in self.layout.cells_of_block(block) {
                self.punch(range)?;
            }
        }
        Ok(())
    }

    fn look_at_page(&mut self, block: u32, page: u32, record: &PageRecord, version: u8) -> io::Result<()> {
        let Shape { pages_per_block, subpages, subpage_bytes, spare_bytes, .. } = self.layout.shape;
        let ppn = block * pages_per_block + page;
        self.figures.pages += 1;
        if !record.is_sound(self.layout.subpages(), subpage_bytes, spare_bytes) {
            self.find(|| format!("block {block}, page {page}: its record is one that this drive does not write"));
            return Ok(());
        }
        let mut bytes = Vec::new();
        let mut is_right = |medium: &dyn Medium, at: u64, length: u32, check: u32| -> io::Result<bool> {
            bytes.resize(length as usize, 0);
            medium.read(at, &mut bytes)?;
            Ok(crc32fast::hash(&bytes) == check)
        };
        for (index, subpage) in (0..).zip(&record.subpages) {
            let psn = u64::from(ppn) * u64::from(subpages) + index;
            let holds = subpage.stored == Stored::Bytes;
            self.figures.bytes += u64::from(subpage_bytes) * u64::from(holds);
            if self.look == Look::Compact && !holds {
                let at = self.layout.cells(psn);
                self.punch(at..at + u64::from(subpage_bytes))?;
            }
            if self.look != Look::Everything {
                continue;
            }
            if holds && !is_right(self.medium, self.layout.cells(psn), subpage_bytes, subpage.check)? {
                self.find(|| {
                    format!("block {block}, page {page}, subpage {index}: its bytes do not match their checksum")
                });
            }
            if subpage.own > 0 && !is_right(self.medium, self.layout.own(psn), subpage.own, subpage.own_check)? {
                self.find(|| {
                    format!(
                        "block {block}, page {page}, subpage {index}: the layer's own bytes do not match their checksum"
                    )
                });
            }
        }
        let at = self.layout.spare(ppn, version);
        if self.look == Look::Everything
            && record.spare > 0
            && !is_right(self.medium, at, record.spare, record.spare_check)?
        {
            self.find(|| format!("block {block}, page {page}: its spare area does not match its checksum"));
        }
        Ok(())
    }

    /// Frees cells of blocks without mark and record.
    fn punch_unrecorded(&mut self, cells: &mut Ahead<'_>) -> io::Result<()> {
        let Shape { blocks, .. } = self.layout.shape;
        let of_block = self.layout.cells_of_block(0)[0].clone();
        let bytes = of_block.end - of_block.start;
        let mut at = 0;
        while let Some(block) = cells.next(of_block.start, bytes, at, blocks)? {
            let mut records = Ahead { medium: self.medium, data_from: 0 };
            let range = self.layout.records_of_block(block);
            if !records.may_hold(&range)? {
                for range in self.layout.cells_of_block(block) {
                    self.punch(range)?;
                }
            }
            at = block + 1;
        }
        Ok(())
    }

    /// Frees `range`, if it may hold data.
    fn punch(&mut self, range: Range<u64>) -> io::Result<()> {
        if self.medium.next_data(range.start)?.is_some_and(|at| at < range.end) {
            self.figures.punched += range.end - range.start;
            self.medium.punch(range)?;
        }
        Ok(())
    }
}
