//! Pages that share the cells of a word line: the order in which they come, and what a program that fails or is cut off does to the
//! others.
//!
//! Where the part has it (`part.pair_corruption`), such a program leaves the other pages of its word line unreadable too, though they
//! were programmed long ago. Whoever has copied them before ([`Nand::copy_page`], into blocks that it keeps for itself) gives the
//! copies back ([`Nand::rescue`]): the page is read from its copy until its block is erased. Ignored: how far the program had come, and
//! damage to other word lines.

use super::data::SavedPayload;
use super::own::{Own, SavedOwn};
use super::{Flash, Halt, Nand, Outcome, PADDING, SubpageMask, TORN, UNWRITTEN};
use crate::units::Picojoules;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Copies of pages, and pages that were corrupted.
#[derive(Default)]
pub(super) struct Pairs {
    corrupted: BTreeMap<u32, Corrupted>,
    /// What pages of kept blocks are copies of.
    copies: BTreeMap<u32, CopyOf>,
    /// Blocks with pages that are read from their copies, and are to be moved.
    due: BTreeSet<u32>,
}

crate::state!(Pairs { corrupted, copies, due });

/// What a page held.
#[derive(Default)]
struct Corrupted {
    logical: Box<[u32]>,
    payload: SavedPayload,
    own: SavedOwn,
    programs: u8,
    /// Its last program.
    number: u64,
    /// The operation that corrupted it.
    by: u64,
    /// The page that it is read from.
    copy: Option<u32>,
}

crate::state!(Corrupted { logical, payload, own, programs, number, by, copy });

/// A page as it was when it was copied: recorded out-of-band with the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CopyOf {
    ppn: u32,
    programs: u32,
    erases: u32,
    /// Its last program; 0 where that is not known. A copy may be there before that program has begun, which a power cut then takes back:
    /// the page is programmed again, as often, with other data.
    number: u64,
}

crate::state!(CopyOf { ppn, programs, erases, number });

impl CopyOf {
    fn is_of(self, page: CopyOf) -> bool {
        let number = if self.number == 0 { page.number } else { self.number };
        CopyOf { number, ..self } == page
    }
}

/// The copies and corrupted pages of a run of pages.
pub(super) struct SavedPairs {
    corrupted: BTreeMap<u32, Corrupted>,
    copies: BTreeMap<u32, CopyOf>,
}

impl Pairs {
    /// `pages` are erased, or programmed again.
    pub fn erase(&mut self, pages: Range<u32>) {
        if !self.corrupted.is_empty() {
            self.corrupted.extract_if(pages, |_, _| true).for_each(drop);
        }
    }

    /// What is known of `pages`, which are about to change.
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

    /// The logical numbers that page `ppn` had, if it was corrupted.
    pub fn corrupted_logical(&self, ppn: u32) -> Option<&[u32]> {
        self.corrupted.get(&ppn).map(|corrupted| &*corrupted.logical)
    }

    /// Bytes of the layer's own that it had.
    pub fn corrupted_own(&self, ppn: u32) -> Option<&SavedOwn> {
        self.corrupted.get(&ppn).map(|corrupted| &corrupted.own)
    }

    /// Page, programs and erases of what page `ppn` is a copy of.
    pub fn copy_words(&self, ppn: u32) -> Option<[u32; 3]> {
        self.copies.get(&ppn).map(|&CopyOf { ppn, programs, erases, .. }| [ppn, programs, erases])
    }

    /// Page `ppn` is a copy, as the image says.
    pub fn found_copy(&mut self, copy: u32, [ppn, programs, erases]: [u32; 3]) {
        self.copies.insert(copy, CopyOf { ppn, programs, erases, number: 0 });
    }
}

impl Nand {
    /// Keeps what order and energy depend on. Only the third program shows whether the first two were low pages first.
    pub(super) fn note_pair(&mut self, block: u32, page: u32, reused: bool) {
        let (part, state) = (&self.part, &mut self.blocks[block as usize]);
        state.reached.note(page, part.is_high(page));
        state.reused |= reused;
        if !state.low_first && state.reached.low_first() {
            state.low_first = true;
            let first = block * self.geometry.pages_per_block;
            let before =
                (0..page).filter(|&page| !self.part.is_high(page) && self.programs[(first + page) as usize] > 0);
            let before = before.count() as Picojoules;
            self.counters.program_energy += before * self.part.e_program_low_first;
            self.counters.program_energy -= before * self.part.e_program;
        }
    }

    /// A program that failed or was cut off leaves its cells unreadable.
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
        self.corrupt_mates(ppn, self.operations);
        if cut {
            return Err(Halt::PowerCut);
        }
        self.count_program(self.split(ppn), written, self.programs[ppn as usize] > 1);
        self.counters.failed_programs += 1;
        self.blocks[block as usize].bad = true;
        Ok(Outcome::Failed)
    }

    /// Page `ppn`, which holds what it held then, was corrupted, as the image says.
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

    /// Program number `by` of page `ppn` did not end well: where the part has it, the other pages of its word line are corrupted.
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
            // Cells that were free have been disturbed, too.
            self.logical[subpages].fill(TORN);
            self.pairs.corrupted.insert(mate, corrupted);
        }
    }

    /// The other pages of the word line of page `ppn`, where a program of one can corrupt the others.
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

    /// The subpages of page `ppn` that have to be copied before another page of its word line is programmed: all that can be read, where
    /// they hold anything.
    pub fn worth_copying(&self, ppn: u32) -> SubpageMask {
        let width = self.geometry.subpages_per_page;
        if self.pairs.corrupted.contains_key(&ppn) {
            return 0;
        }
        let cells = self.logical_of(ppn);
        // Void data still tells a checkpoint which block this is.
        let holds = (ppn * width..(ppn + 1) * width).any(|psn| self.logical_before_trims(psn) < TORN)
            || self.own.spare(ppn).is_some()
            || (ppn * width..(ppn + 1) * width).any(|psn| self.own(psn).is_some());
        let readable = (0..).zip(cells).filter(|(_, cell)| ![UNWRITTEN, TORN].contains(cell));
        if holds { readable.fold(0, |mask, (index, _)| mask | 1 << index) } else { 0 }
    }

    /// From now on `block` is the controller's, for copies.
    pub fn keep_block(&mut self, block: u32) {
        self.blocks[block as usize].kept = true;
    }

    /// Whether the controller keeps `block` for copies.
    pub fn is_kept(&self, block: u32) -> bool {
        self.blocks[block as usize].kept
    }

    /// Whether `block`, which is kept, has failed.
    pub fn has_failed(&self, block: u32) -> bool {
        self.blocks[block as usize].bad
    }

    /// Programs the subpages `written` of page `from`, one bit a cell, into page `to` of a kept block, with what a recovery needs to know them.
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

    /// Page `ppn`, which was corrupted, is read from page `copy` from now on, as it was before. False where that is no copy of it.
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
            // What could be programmed once more is disturbed, and was not copied.
            if !copied && *cell == UNWRITTEN {
                *cell = PADDING;
            }
        }
        self.own.put(&corrupted.own);
        self.counters.pair_rescues += 1;
        true
    }

    /// Where page `ppn` is read: its copy, where it was rescued.
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

    /// Blocks with pages that were rescued are to be moved: copies would take up more and more of the blocks that are kept for them.
    pub fn note_rescued(&mut self) {
        self.pairs.due = self.rescued().into_iter().map(|ppn| ppn / self.part.pages_per_block).collect();
    }

    /// `block`, which was to be moved ([`Self::take_due`]), cannot be moved yet. It is tried again if it has pages that are read from copies.
    pub fn delay_due(&mut self, block: u32) {
        if self.has_rescued(block) {
            self.pairs.due.insert(block);
        }
    }

    fn has_rescued(&self, block: u32) -> bool {
        let pages = block * self.part.pages_per_block..(block + 1) * self.part.pages_per_block;
        self.pairs.corrupted.range(pages).any(|(_, corrupted)| corrupted.copy.is_some())
    }

    /// A block with such pages; it is not to be moved any more.
    pub(super) fn take_rescued(&mut self) -> Option<u32> {
        while let Some(block) = self.pairs.due.pop_first() {
            if self.has_rescued(block) {
                return Some(block);
            }
        }
        None
    }

    /// Page `ppn`, which is read from its copy, is needed no more: it cannot be read from now on.
    pub fn give_up(&mut self, ppn: u32) {
        let width = self.geometry.subpages_per_page;
        if let Some(corrupted) = self.pairs.corrupted.get_mut(&ppn) {
            corrupted.copy = None;
            self.own.erase(ppn..ppn + 1, width);
            self.logical[(ppn * width) as usize..((ppn + 1) * width) as usize].fill(TORN);
        }
    }

    /// Whether blocks with pages that are read from copies are to be moved.
    #[inline]
    pub(super) fn has_rescued_due(&self) -> bool {
        !self.pairs.due.is_empty()
    }

    /// Pages that are read from page `copy` to `end`, excluded, of kept blocks, with those.
    pub fn rescued_to(&self, pages: Range<u32>) -> Vec<(u32, u32)> {
        let copies = self.pairs.corrupted.iter().filter_map(|(&ppn, corrupted)| Some((ppn, corrupted.copy?)));
        copies.filter(|(_, copy)| pages.contains(copy)).collect()
    }

    /// The power was off: which page was rescued to which copy is forgotten, and has to be found again ([`Self::copied`]).
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

    /// The page that page `copy` of a kept block is a copy of, as its out-of-band area says.
    pub fn copied(&self, copy: u32) -> Option<u32> {
        self.pairs.copies.get(&copy).filter(|_| self.programs(copy) > 0).map(|of| of.ppn)
    }

    /// Operation `by` is undone: what it had corrupted is as it was.
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
