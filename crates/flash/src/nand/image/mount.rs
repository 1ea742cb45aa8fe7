//! Opening and creation of an image.
//!
//! Tables are rebuilt block by block from the records of pages; the order of programs in a block comes from the newest
//! record. Opening fails at a mismatched checksum, and at a content that no drive of this configuration writes, because
//! the end of a process never leaves either. Ignored: repair of damage.

use super::layout::{Header, Layout, Life, MAGIC, PAGE, Shape, TEXT_AT, Unusable, VERSION};
use super::record::{BlockMark, Newest, PageRecord, Stored, newest_record, page_term, term};
use super::trims::read_trims;
use super::{Image, Mark, Medium};
use crate::nand::{Nand, TORN, UNWRITTEN};
use std::fmt;
use std::io;

/// Number of marks that are read at once.
const MARKS: u32 = 4096;

/// The reason why an image cannot be opened.
#[derive(Debug)]
pub enum Fault {
    /// An error of the operating system.
    Io(io::Error),
    /// Not a usable image.
    Unusable(Unusable),
    /// The named part is damaged.
    Damaged(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Io(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Io(error) => write!(f, "{error}; expected an image that this user can read and write"),
            Fault::Unusable(Unusable::Foreign) => {
                write!(
                    f,
                    "the file is no image of a drive; expected one that palimpsest serve --image made, or no file"
                )
            }
            Fault::Unusable(Unusable::Version(version)) => {
                let most = super::layout::VERSION;
                write!(f, "the image has format {version}; expected one up to {most}, as this program has it")
            }
            Fault::Unusable(Unusable::Short(length, expected)) => {
                let how = if length < expected { "cut short" } else { "too long" };
                write!(f, "the image is {how}: it has {length} bytes; expected {expected}")
            }
            Fault::Unusable(Unusable::Header) => {
                write!(f, "the header of the image is damaged; expected one that matches its checksum")
            }
            Fault::Unusable(Unusable::Text) => {
                write!(f, "the configuration in the image is damaged; expected one that matches its checksum")
            }
            Fault::Damaged(what) => {
                write!(
                    f,
                    "the image is damaged: {what}; expected what a server wrote (palimpsest image check says more)"
                )
            }
        }
    }
}

/// The contents of an image before its flash.
pub struct Found {
    /// The header.
    pub header: Header,
    /// The configuration.
    pub text: String,
}

/// Reads the header of `medium` with the configuration.
///
/// # Errors
/// [`Fault`].
pub fn find(medium: &dyn Medium) -> Result<(Found, Layout), Fault> {
    let length = medium.length()?;
    let mut bytes = vec![0; PAGE.min(length) as usize];
    medium.read(0, &mut bytes)?;
    let (header, layout) = Header::read(&bytes, length).map_err(Fault::Unusable)?;
    let mut text = vec![0; header.text_bytes as usize];
    medium.read(TEXT_AT, &mut text)?;
    if crc32fast::hash(&text) != header.text_check {
        return Err(Fault::Unusable(Unusable::Text));
    }
    let text = String::from_utf8(text).map_err(|_| Fault::Unusable(Unusable::Text))?;
    Ok((Found { header, text }, layout))
}

/// Contents of an opened image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mounted {
    /// Programmed pages.
    pub pages: u64,
    /// Whether the service before ended normally.
    pub ended_well: bool,
}

impl Nand {
    /// The shape of an image of this flash.
    pub fn image_shape(&self) -> Shape {
        Shape::of(&self.geometry, &self.part)
    }

    /// Stores this flash, which must be new, in the empty `medium` from now on. The header is written last, because the
    /// header makes an image.
    ///
    /// # Errors
    /// [`Fault::Io`].
    pub fn begin_image(
        &mut self,
        medium: Box<dyn Medium>,
        header: &Header,
        text: &str,
        syncs: bool,
    ) -> Result<(), Fault> {
        let layout = Layout::new(header.shape).ok_or(Fault::Unusable(Unusable::Header))?;
        // A file with no more than this is an incomplete image without data.
        medium.write(0, &MAGIC)?;
        self.payload.image = Some(Box::new(Image::new(medium, layout, syncs)));
        self.generations.drop_levels();
        for block in 0..self.geometry.blocks() {
            let state = self.blocks[block as usize];
            if state.bad || state.kept {
                let mark = BlockMark { bad: state.bad, kept: state.kept, ..BlockMark::default() };
                self.image().write_mark(block, false, &mark)?;
            }
        }
        let image = self.image();
        image.life = Life { services: 1, syncs, ..image.life };
        image.flush()?;
        image.medium.write(TEXT_AT, text.as_bytes())?;
        image.medium.sync()?;
        image.medium.write(0, &header.bytes())?;
        image.medium.sync()?;
        Ok(())
    }

    /// Loads the flash in `medium`, whose header is `header`, and stores it there from now on. This flash must be new.
    ///
    /// # Errors
    /// [`Fault`]; this flash must then be dropped.
    pub fn open_image(&mut self, medium: Box<dyn Medium>, header: &Header, syncs: bool) -> Result<Mounted, Fault> {
        let layout = Layout::new(header.shape).ok_or(Fault::Unusable(Unusable::Header))?;
        if header.shape != self.image_shape() {
            return Err(Fault::Damaged("its flash has another shape than its configuration says".into()));
        }
        let mut image = Image::new(medium, layout, syncs);
        let mut places = vec![0; Life::PLACES];
        image.medium.read(PAGE, &mut places)?;
        let lives = Life::read(&places);
        (image.life, image.life_version) = lives.first().copied().unwrap_or_default();
        image.life.sum = 0;
        // The older figures were written before a flush that synchronized everything.
        let in_doubt = lives.iter().any(|(life, _)| life.syncs);
        let settled = lives.iter().map(|(life, _)| life.operations).min().unwrap_or(0);
        let settled = if in_doubt { settled } else { u64::MAX };
        let mut mounted = Mounted { pages: 0, ended_well: image.life.ended_well };
        self.schedule.operations = image.life.operations;
        self.payload.image = Some(Box::new(image));
        self.generations.drop_levels();
        let blocks = self.geometry.blocks();
        let mut marks = Vec::new();
        for first in (0..blocks).step_by(MARKS as usize) {
            let end = blocks.min(first + MARKS);
            let range = layout.marks(first..end);
            marks.resize((range.end - range.start) as usize, 0);
            self.image().medium.read(range.start, &mut marks)?;
            for (block, places) in (first..end).zip(marks.chunks_exact(2 * super::record::MARK_BYTES as usize)) {
                let damaged = |_| Fault::Damaged(format!("the mark of block {block} does not match its checksum"));
                self.take_mark(block, BlockMark::newest(places).map_err(damaged)?);
            }
        }
        let mut records = Vec::new();
        let mut data_from = 0;
        for block in 0..blocks {
            let range = layout.records_of_block(block);
            if data_from < range.end {
                data_from = match self.image().medium.next_data(range.start)? {
                    Some(at) => at,
                    None => break,
                };
            }
            if data_from < range.end {
                records.resize((range.end - range.start) as usize, 0);
                self.image().medium.read(range.start, &mut records)?;
                mounted.pages += self.take_block(block, &records, settled)?;
                data_from = 0;
            }
        }
        let sum = self.image().life.sum;
        if !lives.iter().any(|(life, _)| life.sum == sum || life.syncs) {
            return Err(Fault::Damaged("a part of it is missing, or older than the rest".into()));
        }
        self.take_trims(header)?;
        if let Some(faults) = &mut self.failures.faults {
            faults.go_on(self.schedule.operations);
        }
        let operations = self.schedule.operations;
        let image = self.image();
        if header.version < VERSION {
            image.medium.write(layout.end - 1, &[0])?;
            image.medium.write(0, &Header { version: VERSION, ..header.clone() }.bytes())?;
        }
        image.life.broken_off += u64::from(!mounted.ended_well);
        image.life.services += 1;
        (image.life.ended_well, image.life.syncs, image.life.operations) = (false, syncs, operations);
        image.flush()?;
        Ok(mounted)
    }

    fn take_trims(&mut self, header: &Header) -> Result<(), Fault> {
        let (mut found, mut damaged) = (Vec::new(), None);
        let logical = if self.keeps_trims() && header.version >= 4 { header.logical_subpages } else { 0 };
        let image = self.image();
        read_trims(image.medium.as_ref(), &image.layout, logical, |lsn, operation| match operation {
            Some(operation) => found.push((lsn, operation)),
            None => damaged = Some(lsn),
        })?;
        found.into_iter().for_each(|(lsn, operation)| self.found_trim(lsn, operation));
        let what = |lsn| format!("the record of the trim of logical subpage {lsn} does not match its checksum");
        damaged.map_or(Ok(()), |lsn| Err(Fault::Damaged(what(lsn))))
    }

    fn take_mark(&mut self, block: u32, mark: Option<Newest<BlockMark>>) {
        let Some(Newest { what: mark, epoch, version, check }) = mark else { return };
        let BlockMark { erases, bad, torn, kept, dead, reads } = mark;
        let state = &mut self.blocks[block as usize];
        (state.erases, state.bad, state.torn, state.kept) = (erases, bad, torn, kept);
        let (image, term) = (self.image(), term(block.into(), check));
        image.erases_before += u64::from(erases);
        image.marks[block as usize] = Mark { epoch, version, term, reads };
        image.life.sum = image.life.sum.wrapping_add(term);
        self.found_reads(block, reads);
        if dead {
            self.found_dead(self.geometry.die_of_plane(self.geometry.plane_of_block(block)));
        }
    }

    /// Loads the pages of `block` from the records in `places`; returns the number of programmed pages. Pages of
    /// operations after `settled` may be incomplete.
    fn take_block(&mut self, block: u32, places: &[u8], settled: u64) -> Result<u64, Fault> {
        let (width, first) = (self.geometry.subpages_per_page, self.first_page(block) as u32);
        let epoch = self.image().marks[block as usize].epoch;
        let (mut newest, mut taken): (Option<PageRecord>, u64) = (None, 0);
        let mut torn = Vec::new();
        for (ppn, places) in (first..).zip(places.chunks_exact(places.len() / self.geometry.pages_per_block as usize)) {
            let place = || format!("page {} of block {block}", ppn - first);
            let damaged = |_| Fault::Damaged(format!("the record of {} does not match its checksum", place()));
            let (record, version) = newest_record(places, width, epoch).map_err(damaged)?;
            self.image().versions[ppn as usize] = version;
            let Some(Newest { what: mut record, check, .. }) = record else { continue };
            let (image, term) = (self.image(), page_term(ppn, check));
            image.terms[ppn as usize] = term;
            image.life.sum = image.life.sum.wrapping_add(term);
            let (most, generations) = (self.part.nop.max(1), self.generations.most());
            let sound = record.is_sound(self.geometry.subpages(), self.geometry.subpage_bytes, self.part.spare_bytes)
                && u32::from(record.programs) <= most
                && u32::from(record.generation.max(record.pass)) < generations
                && record.copy.is_none_or(|[page, ..]| u64::from(page) < self.geometry.pages());
            if !sound {
                return Err(Fault::Damaged(format!("the record of {} is one that this drive does not write", place())));
            }
            if record.operation > settled && self.tear_what_is_not_whole(ppn, &mut record, version)? {
                torn.push(ppn);
            }
            self.take_page(ppn, &record, version)?;
            taken += 1;
            if newest.as_ref().is_none_or(|other| other.operation <= record.operation) {
                newest = Some(record);
            }
        }
        if let Some(newest) = newest {
            self.take_order(block, &newest);
        }
        for ppn in torn {
            self.keep_record(ppn).map_err(|halt| Fault::Io(std::io::Error::other(format!("{halt:?}"))))?;
        }
        Ok(taken)
    }

    /// Restores the order of the block's programs.
    fn take_order(&mut self, block: u32, newest: &PageRecord) {
        let (first, pages) = (self.first_page(block), self.geometry.pages_per_block);
        let width = self.geometry.subpages_per_page as usize;
        let is_reached = |nand: &Nand, page: u32| {
            let ppn = first as u32 + page;
            nand.programs[ppn as usize] > 0 && u32::from(nand.generations.of(ppn)) >= u32::from(newest.pass)
        };
        let next_page = (0..pages).rev().find(|&page| is_reached(self, page)).map_or(0, |page| page + 1);
        let mut reached = self.blocks[block as usize].reached;
        if self.part.paired() {
            let programmed = (0..pages).filter(|&page| self.programs[first + page as usize] > 0);
            programmed.for_each(|page| reached.note(page, self.part.is_high(page)));
        }
        let subpages = first * width..(first + next_page as usize) * width;
        let gaps = self.logical[subpages].iter().any(|&cell| [UNWRITTEN, TORN].contains(&cell))
            || (0..next_page).any(|page| !is_reached(self, page));
        let state = &mut self.blocks[block as usize];
        (state.next_page, state.reached, state.gaps) = (next_page, reached, gaps);
        (state.low_first, state.reused) = (newest.low_first, newest.reused);
        (state.pass, state.single) = (newest.pass, newest.single);
    }

    fn take_page(&mut self, ppn: u32, record: &PageRecord, version: u8) -> Result<(), Fault> {
        let width = self.geometry.subpages_per_page;
        self.schedule.operations = self.schedule.operations.max(record.operation);
        self.programs[ppn as usize] = record.programs;
        self.generations.found(ppn, record.generation);
        self.found_program(ppn, record.programmed_at);
        let damaged = |what: &str, subpage: u32| {
            Fault::Damaged(format!("{what} of physical subpage {subpage} do not match their checksum"))
        };
        for (psn, subpage) in (ppn * width..).zip(&record.subpages) {
            self.logical[psn as usize] = subpage.logical;
            self.payload.found(psn as usize, subpage.stored, subpage.sequence);
            if subpage.stored == Stored::Bytes {
                self.image().checks[psn as usize] = subpage.check;
            }
            if subpage.own > 0 {
                let mut bytes = vec![0; subpage.own as usize];
                let at = self.image().layout.own(psn.into());
                self.image().medium.read(at, &mut bytes)?;
                if crc32fast::hash(&bytes) != subpage.own_check {
                    return Err(damaged("bytes of the layer's own", psn));
                }
                self.own.store([(psn, &bytes[..])].into_iter());
            }
        }
        if record.spare > 0 {
            let mut bytes = vec![0; record.spare as usize];
            let at = self.image().layout.spare(ppn, version);
            self.image().medium.read(at, &mut bytes)?;
            if crc32fast::hash(&bytes) != record.spare_check {
                return Err(damaged("bytes in the spare area", ppn * width));
            }
            self.own.store_spare(ppn, &bytes);
        }
        if let Some(copy) = record.copy {
            self.pairs.found_copy(ppn, copy);
        }
        if record.corrupted {
            self.found_corrupted(ppn);
        }
        Ok(())
    }
}
