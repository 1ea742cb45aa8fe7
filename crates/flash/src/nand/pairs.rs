//! Pages that share the cells of a word line: their order, and the damage of a failed or interrupted program.
//!
//! With `part.pair_corruption` such a program also makes the other pages of its word line unreadable, although they
//! were programmed long ago. A controller that has copied them before ([`Nand::copy_page`], into reserved blocks)
//! restores them ([`Nand::rescue`]): the page is read from its copy until its block is erased. Ignored: the progress of
//! the program, and damage to other word lines.

use super::data::SavedPayload;
use super::own::{Own, SavedOwn};
use super::{Flash, Halt, Nand, Outcome, PADDING, SubpageMask, TORN, UNWRITTEN};
use crate::units::Picojoules;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Copies of pages, and corrupted pages.
#[derive(Default)]
pub(super) struct Pairs {
    corrupted: BTreeMap<u32, Corrupted>,
    /// The original of each copy in a reserved block.
    copies: BTreeMap<u32, CopyOf>,
    /// Blocks with pages that are read from copies, to be moved.
    due: BTreeSet<u32>,
}

crate::state!(Pairs { corrupted, copies, due });

/// The former content of a page.
#[derive(Default)]
struct Corrupted {
    logical: Box<[u32]>,
    payload: SavedPayload,
    own: SavedOwn,
    programs: u8,
    /// Number of the last program.
    number: u64,
    /// The operation that corrupted the page.
    by: u64,
    /// The page from which reads are served.
    copy: Option<u32>,
}

crate::state!(Corrupted { logical, payload, own, programs, number, by, copy });

/// The original of a copy at the moment of copying, recorded out-of-band with the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CopyOf {
    ppn: u32,
    programs: u32,
    erases: u32,
    /// Number of the last program; 0 if unknown. A copy may precede the begin of that program. If a power cut rolls the
    /// program back, the page is programmed again, with the same count and other data.
    number: u64,
}

crate::state!(CopyOf { ppn, programs, erases, number });

impl CopyOf {
    fn is_of(self, page: CopyOf) -> bool {
        let number = if self.number == 0 { page.number } else { self.number };
        CopyOf { number, ..self } == page
    }
}

/// Saved copies and corruptions of consecutive pages.
pub(super) struct SavedPairs {
    corrupted: BTreeMap<u32, Corrupted>,
    copies: BTreeMap<u32, CopyOf>,
}

impl Pairs {
    /// Forgets the corruption of `pages`, which are erased or programmed again.
    pub fn erase(&mut self, pages: Range<u32>) {
        if !self.corrupted.is_empty() {
            self.corrupted.extract_if(pages, |_, _| true).for_each(drop);
        }
    }

    /// Moves out the state of `pages`, which are about to change.
    pub fn take(&mut self, pages: Range<u32>) -> SavedPairs {
        SavedPairs {
            corrupted: self.corrupted.extract_if(pages.clone(), |_, _| true).collect(),
            copies: self.copies.extract_if(pages, |_, _| true).collect(),
        }
    }

    pub fn put(&mut self, saved: SavedPairs) {
        self.corrupted.extend(saved.corrupted);
        self.copies.extend(saved.copies);
    }

    /// The logical numbers of page `ppn` before its corruption.
    pub fn corrupted_logical(&self, ppn: u32) -> Option<&[u32]> {
        self.corrupted.get(&ppn).map(|corrupted| &*corrupted.logical)
    }

    /// Bytes of the layer's own in page `ppn` before its corruption.
    pub fn corrupted_own(&self, ppn: u32) -> Option<&SavedOwn> {
        self.corrupted.get(&ppn).map(|corrupted| &corrupted.own)
    }

    /// Page, programs and erases of the original of the copy `ppn`.
    pub fn copy_words(&self, ppn: u32) -> Option<[u32; 3]> {
        self.copies.get(&ppn).map(|&CopyOf { ppn, programs, erases, .. }| [ppn, programs, erases])
    }

    /// Restores a copy from an image.
    pub fn found_copy(&mut self, copy: u32, [ppn, programs, erases]: [u32; 3]) {
        self.copies.insert(copy, CopyOf { ppn, programs, erases, number: 0 });
    }
}

impl Nand {
    /// Tracks the order that rules and energies depend on. Only the third program shows whether the first two were low
    /// pages first.
    pub(super) fn note_pair(&mut self, block: u32, page: u32, reused: bool) {
        let (of_die, high) = (self.page_of_die(page), self.is_high(page));
        let state = &mut self.blocks[block as usize];
        state.reached.note(of_die, high);
        state.reused |= reused;
        if !state.low_first && state.reached.low_first() {
            state.low_first = true;
            let first = block * self.geometry.pages_per_block;
            let before = (0..page).filter(|&page| !self.is_high(page) && self.programs[(first + page) as usize] > 0);
            let before = before.count() as Picojoules;
            self.counters.program_energy += before * self.part.e_program_low_first;
            self.counters.program_energy -= before * self.part.e_program;
        }
    }

    /// Makes the cells of a failed or interrupted program unreadable.
    #[cold]
    pub(super) fn spoil(&mut self, ppn: u32, written: SubpageMask, cut: bool) -> Flash<Outcome> {
        let block = self.split(ppn).0;
        self.blocks[block as usize].gaps = true;
        let first = (ppn * self.geometry.subpages_per_page) as usize;
        for index in 0..self.geometry.subpages_per_page as usize {
            if written >> index & 1 == 1 {
                self.logical[first + index] = TORN;
            }
        }
        self.corrupt_mates(ppn, self.schedule.operations);
        if cut {
            return Err(Halt::PowerCut);
        }
        self.count_program(self.split(ppn), written, self.programs[ppn as usize] > 1);
        self.counters.failed_programs += 1;
        self.blocks[block as usize].bad = true;
        Ok(Outcome::Failed)
    }

    /// Restores the corruption of page `ppn` from an image; the page must hold its former content.
    pub(super) fn found_corrupted(&mut self, ppn: u32) {
        let width = self.geometry.subpages_per_page;
        let subpages = (ppn * width) as usize..((ppn + 1) * width) as usize;
        let corrupted = Corrupted {
            logical: self.logical[subpages.clone()].into(),
            payload: self.payload.save(subpages.clone()),
            own: self.own.save(ppn..ppn + 1, width),
            programs: self.programs[ppn as usize],
            number: self.last_program(ppn),
            by: 0,
            copy: None,
        };
        self.own.erase(ppn..ppn + 1, width);
        self.logical[subpages].fill(TORN);
        self.pairs.corrupted.insert(ppn, corrupted);
    }

    /// Corrupts the other pages of the word line after program number `by` of page `ppn` failed, if the part does so.
    pub(super) fn corrupt_mates(&mut self, ppn: u32, by: u64) {
        let width = self.geometry.subpages_per_page as usize;
        for mate in self.mates(ppn) {
            if self.programs[mate as usize] == 0 || self.pairs.corrupted.contains_key(&mate) {
                continue;
            }
            let subpages = mate as usize * width..(mate as usize + 1) * width;
            let corrupted = Corrupted {
                logical: self.logical[subpages.clone()].into(),
                payload: self.payload.save(subpages.clone()),
                own: self.own.save(mate..mate + 1, width as u32),
                programs: self.programs[mate as usize],
                number: self.last_program(mate),
                by,
                copy: None,
            };
            self.own.erase(mate..mate + 1, width as u32);
            // Free cells are disturbed too.
            self.logical[subpages].fill(TORN);
            self.pairs.corrupted.insert(mate, corrupted);
        }
    }

    /// The other pages of the word line of page `ppn`, if a program of one may corrupt the others.
    pub fn mates(&self, ppn: u32) -> impl Iterator<Item = u32> + use<> {
        let (block, page) = self.split(ppn);
        let (first, pages) = (ppn - page, self.part.pages_per_block);
        let shares = self.part.shares_word_lines() && !self.blocks[block as usize].single;
        let bits = if shares { self.part.cell.bits() } else { 1 };
        let mates = match bits {
            1 => page..page,
            2 => self.part.partner(page)..self.part.partner(page) + 1,
            _ => page / bits * bits..pages.min((page / bits + 1) * bits),
        };
        mates.filter(move |&mate| mate != page).map(move |mate| first + mate)
    }

    /// Number of the last program of page `ppn`.
    fn last_program(&self, ppn: u32) -> u64 {
        let width = self.geometry.subpages_per_page;
        (ppn * width..(ppn + 1) * width).map(|psn| self.sequence(psn)).max().unwrap_or(0)
    }

    /// The subpages of page `ppn` to copy before another page of its word line is programmed: all readable ones, if any
    /// holds data.
    pub fn worth_copying(&self, ppn: u32) -> SubpageMask {
        let width = self.geometry.subpages_per_page;
        if self.pairs.corrupted.contains_key(&ppn) {
            return 0;
        }
        let cells = self.logical_of(ppn);
        // A checkpoint identifies the block also by void data.
        let holds = (ppn * width..(ppn + 1) * width).any(|psn| self.logical_before_trims(psn) < TORN)
            || self.own.spare(ppn).is_some()
            || (ppn * width..(ppn + 1) * width).any(|psn| self.own(psn).is_some());
        let readable = (0..).zip(cells).filter(|(_, cell)| ![UNWRITTEN, TORN].contains(cell));
        if holds { readable.fold(0, |mask, (index, _)| mask | 1 << index) } else { 0 }
    }

    /// Reserves `block` for copies of the controller.
    pub fn keep_block(&mut self, block: u32) {
        self.blocks[block as usize].kept = true;
    }

    /// Whether `block` is reserved for copies of the controller.
    pub fn is_kept(&self, block: u32) -> bool {
        self.blocks[block as usize].kept
    }

    /// Whether the reserved `block` has failed.
    pub fn has_failed(&self, block: u32) -> bool {
        self.blocks[block as usize].bad
    }

    /// Copies the subpages `written` of page `from`, one bit a cell, to page `to` of a reserved block, with the record
    /// that recovery needs.
    ///
    /// # Errors
    /// As [`Self::program`].
    pub fn copy_page(&mut self, from: u32, to: u32, written: SubpageMask) -> Flash<Outcome> {
        let width = self.geometry.subpages_per_page;
        let data: Vec<_> = (from * width..(from + 1) * width).map(|psn| self.load(psn)).collect();
        let of = self.pairs.copies.get(&from).copied();
        let of = of.unwrap_or(CopyOf {
            ppn: from,
            programs: self.programs(from),
            erases: self.erases(self.split(from).0),
            number: self.last_program(from),
        });
        self.note_single(to, true);
        let outcome = self.program_own(to, written, &vec![PADDING; width as usize], &data, Own::NONE)?;
        if outcome == Outcome::Done {
            self.pairs.copies.insert(to, of);
            self.keep_record(to)?;
            if let Some(corrupted) = self.pairs.corrupted.get_mut(&of.ppn)
                && corrupted.copy == Some(from)
            {
                corrupted.copy = Some(to);
            }
        }
        Ok(outcome)
    }

    /// Restores the corrupted page `ppn` from page `copy`, which serves its reads from now on. Returns false if `copy`
    /// is no copy of this page.
    pub fn rescue(&mut self, ppn: u32, copy: u32) -> bool {
        let width = self.geometry.subpages_per_page;
        let ((block, _), (home, _)) = (self.split(ppn), self.split(copy));
        let erases = self.erases(block);
        let readable = self.logical_of(copy).contains(&PADDING) && !self.is_torn(home);
        let Some(of) = self.pairs.copies.get(&copy).filter(|_| readable) else { return false };
        let Some(corrupted) = self.pairs.corrupted.get_mut(&ppn) else { return false };
        let page = CopyOf { ppn, programs: corrupted.programs.into(), erases, number: corrupted.number };
        if !of.is_of(page) || corrupted.copy.is_some() {
            return false;
        }
        corrupted.copy = Some(copy);
        let first = (ppn * width) as usize;
        let saved = self.payload.save((copy * width) as usize..((copy + 1) * width) as usize);
        let written = self.logical_of(copy).iter().map(|&cell| cell == PADDING).collect::<Vec<_>>();
        let corrupted = &self.pairs.corrupted[&ppn];
        assert!(saved.agrees(&corrupted.payload, &written), "the copy of page {ppn} holds what that held");
        self.logical[first..first + width as usize].copy_from_slice(&corrupted.logical);
        for (cell, &copied) in self.logical[first..].iter_mut().zip(&written) {
            // Subpages that were free are disturbed, and were not copied.
            if !copied && *cell == UNWRITTEN {
                *cell = PADDING;
            }
        }
        self.own.put(&corrupted.own);
        self.counters.pair_rescues += 1;
        true
    }

    /// The page that serves reads of page `ppn`: its copy, if rescued.
    #[inline]
    pub fn copy_of(&self, ppn: u32) -> u32 {
        match self.pairs.corrupted.is_empty() {
            true => ppn,
            false => self.pairs.corrupted.get(&ppn).and_then(|corrupted| corrupted.copy).unwrap_or(ppn),
        }
    }

    /// Pages that are read from their copies.
    pub fn rescued(&self) -> Vec<u32> {
        let rescued = self.pairs.corrupted.iter().filter(|(_, corrupted)| corrupted.copy.is_some());
        rescued.map(|(&ppn, _)| ppn).collect()
    }

    /// Schedules moves of all blocks with rescued pages, because their copies would fill the reserved blocks.
    pub fn note_rescued(&mut self) {
        self.pairs.due = self.rescued().into_iter().map(|ppn| ppn / self.part.pages_per_block).collect();
    }

    /// Postpones the move of `block` from [`Self::take_due`], unless no page of the block is read from a copy any more.
    pub fn delay_due(&mut self, block: u32) {
        if self.has_rescued(block) {
            self.pairs.due.insert(block);
        }
    }

    fn has_rescued(&self, block: u32) -> bool {
        let pages = block * self.part.pages_per_block..(block + 1) * self.part.pages_per_block;
        self.pairs.corrupted.range(pages).any(|(_, corrupted)| corrupted.copy.is_some())
    }

    /// Removes and returns a scheduled block that still has rescued pages.
    pub(super) fn take_rescued(&mut self) -> Option<u32> {
        while let Some(block) = self.pairs.due.pop_first() {
            if self.has_rescued(block) {
                return Some(block);
            }
        }
        None
    }

    /// Makes page `ppn`, which is read from its copy, unreadable again, because no reader needs the page any more.
    pub fn give_up(&mut self, ppn: u32) {
        let width = self.geometry.subpages_per_page;
        if let Some(corrupted) = self.pairs.corrupted.get_mut(&ppn) {
            corrupted.copy = None;
            self.own.erase(ppn..ppn + 1, width);
            self.logical[(ppn * width) as usize..((ppn + 1) * width) as usize].fill(TORN);
        }
    }

    /// Whether moves of blocks with rescued pages are scheduled.
    #[inline]
    pub(super) fn has_rescued_due(&self) -> bool {
        !self.pairs.due.is_empty()
    }

    /// Pages that are read from copies in `pages` of reserved blocks, each with its copy.
    pub fn rescued_to(&self, pages: Range<u32>) -> Vec<(u32, u32)> {
        let copies = self.pairs.corrupted.iter().filter_map(|(&ppn, corrupted)| Some((ppn, corrupted.copy?)));
        copies.filter(|(_, copy)| pages.contains(copy)).collect()
    }

    /// Forgets after a power cut which page was rescued to which copy; recovery must find the copies again
    /// ([`Self::copied`]).
    pub fn forget_rescued(&mut self) {
        let width = self.geometry.subpages_per_page;
        let pairs = std::mem::take(&mut self.pairs.corrupted);
        for (&ppn, _) in pairs.iter().filter(|(_, corrupted)| corrupted.copy.is_some()) {
            self.own.erase(ppn..ppn + 1, width);
            self.logical[(ppn * width) as usize..((ppn + 1) * width) as usize].fill(TORN);
        }
        self.pairs.corrupted = pairs;
        self.pairs.corrupted.values_mut().for_each(|corrupted| corrupted.copy = None);
    }

    /// The original of page `copy` of a reserved block, from the out-of-band area.
    pub fn copied(&self, copy: u32) -> Option<u32> {
        self.pairs.copies.get(&copy).filter(|_| self.programs(copy) > 0).map(|of| of.ppn)
    }

    /// Restores the pages that the rolled back operation `by` had corrupted.
    pub(super) fn undo_corruption(&mut self, by: u64) {
        let width = self.geometry.subpages_per_page;
        let undone: Vec<_> = self.pairs.corrupted.extract_if(.., |_, corrupted| corrupted.by == by).collect();
        for (ppn, corrupted) in undone {
            let first = (ppn * width) as usize;
            self.logical[first..first + width as usize].copy_from_slice(&corrupted.logical);
            self.payload.restore(first, corrupted.payload);
            self.own.restore(ppn..ppn + 1, width, corrupted.own);
        }
    }
}
