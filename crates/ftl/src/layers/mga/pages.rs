//! States of physical pages, and which free subpages can still be programmed.
//!
//! A page is fully free (FF), partially valid (PV), fully valid (FV) or fully invalid (FI). PV is every mix but all
//! free, all valid, and neither free nor valid. The transitions are those of Fig. 5, and each is counted: a write makes
//! FF into PV or FV and may make PV into FV; what is invalidated makes FV into PV or FI and PV into FI; an erase makes
//! FI into FF. Source: MGA paper, Sec. III-B and III-C.
//!
//! Free subpages end with the page's last allowed program (NOP), in strict order when a later page of the block is
//! programmed, in two rounds when the high page of a low page is, and when the block becomes a victim. The paper is
//! silent on that; what was not written then is as invalid. Victim policies count a free subpage as kept, so that
//! victims are chosen by invalid subpages only (`ftl.victim_free` counts it as a gain).

use super::map::UNMAPPED;
use crate::log::blocks::{BlockState, Blocks};
use palimpsest_flash::geometry::{Divisor, Geometry};
use palimpsest_flash::nand::part::Part;
use palimpsest_flash::prefetch::prefetch;

/// State of a physical page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Fully free.
    FullyFree,
    /// Partially valid.
    PartiallyValid,
    /// Fully valid.
    FullyValid,
    /// Fully invalid.
    FullyInvalid,
}

/// How often pages went from one state to another: the arrows of Fig. 5.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub(super) struct Transitions {
    pub ff_pv: u64,
    pub ff_fv: u64,
    pub pv_fv: u64,
    pub pv_fi: u64,
    pub fv_pv: u64,
    pub fv_fi: u64,
    pub fi_ff: u64,
}

palimpsest_flash::state!(Transitions { ff_pv, ff_fv, pv_fv, pv_fi, fv_pv, fv_fi, fi_ff });

/// What a page's part of the rules is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Programs of a page between two erases.
    pub nop: u32,
    /// Whether only the last programmed page of a block may be programmed again.
    pub strict: bool,
    /// Whether pages come in pairs, of which the low one may be programmed again until the high one is.
    pub pairs: bool,
    /// Whether victim policies count a free subpage as a gain.
    pub free_is_gain: bool,
}

#[derive(Debug, Clone, Copy)]
struct Page {
    /// Subpages that can still be programmed. None where the page was not programmed at all.
    free: u32,
    /// The logical page that opened it under exclusive allocation.
    owner: u32,
    /// Neighbours in the list of the plane's pages with as many free subpages.
    previous: u32,
    next: u32,
    /// Number of its opening.
    opened: u32,
}

palimpsest_flash::state!(Page { free, owner, previous, next, opened });

const CLOSED: Page = Page { free: 0, owner: UNMAPPED, previous: UNMAPPED, next: UNMAPPED, opened: 0 };

/// All pages of a drive.
pub(super) struct PageStates {
    /// Blocks; their valid units are the subpages that are valid or, unless that is a gain, free in a programmed page.
    pub blocks: Blocks,
    pub rules: Rules,
    subpages: u32,
    all: u64,
    per_block: Divisor,
    pages_per_plane: Divisor,
    pages_per_block: u32,
    pages: Vec<Page>,
    /// Free subpages of programmed pages, a block.
    free_in_block: Vec<u32>,
    /// Heads of the lists of pages with free subpages: index plane x subpages + free subpages.
    heads: Vec<u32>,
    openings: u32,
    pub transitions: Transitions,
    /// Free subpages that were never programmed.
    pub lost: u64,
    /// For each page of a block, where pages come in pairs: whether it is a high page, and its partner.
    partners: Vec<(bool, u32)>,
}

palimpsest_flash::state!(PageStates { blocks, free_in_block, heads, openings, transitions, lost } parts { pages } built {
    rules, subpages, all, per_block, pages_per_plane, pages_per_block, partners
});

impl PageStates {
    /// All pages free, except in blocks that `is_bad`.
    pub fn new(geometry: &Geometry, part: &Part, rules: Rules, is_bad: impl Fn(u32) -> bool) -> Self {
        let subpages = geometry.subpages_per_page;
        PageStates {
            blocks: Blocks::new(geometry, geometry.subpages_per_block(), is_bad),
            rules,
            subpages,
            all: u64::MAX >> (64 - subpages),
            per_block: Divisor::new(geometry.pages_per_block),
            pages_per_plane: Divisor::new(geometry.pages_per_block * geometry.blocks_per_plane),
            pages_per_block: geometry.pages_per_block,
            pages: vec![CLOSED; geometry.pages() as usize],
            free_in_block: vec![0; geometry.blocks() as usize],
            heads: vec![UNMAPPED; (geometry.planes() * subpages) as usize],
            openings: 0,
            transitions: Transitions::default(),
            lost: 0,
            partners: match rules.pairs {
                true => (0..geometry.pages_per_block).map(|page| (part.is_high(page), part.partner(page))).collect(),
                false => Vec::new(),
            },
        }
    }

    /// The block of `ppn`.
    #[inline]
    pub fn block_of(&self, ppn: u32) -> u32 {
        self.per_block.divide(ppn)
    }

    /// Subpages of `ppn` that are valid.
    #[inline]
    pub fn valid(&self, ppn: u32) -> u64 {
        let (block, page) = self.per_block.split(ppn);
        self.blocks.valid_bits(block, page * self.subpages, self.subpages) & !self.free(ppn)
    }

    /// Subpages of the programmed page `ppn` that can still be programmed.
    #[inline]
    pub fn free(&self, ppn: u32) -> u64 {
        u64::from(self.pages[ppn as usize].free)
    }

    /// The logical page that owns `ppn`.
    #[inline]
    pub fn owner(&self, ppn: u32) -> u32 {
        self.pages[ppn as usize].owner
    }

    /// Valid subpages of `block`.
    #[inline]
    pub fn valid_in_block(&self, block: u32) -> u32 {
        let free = if self.rules.free_is_gain { 0 } else { self.free_in_block[block as usize] };
        self.blocks.valid_count(block) - free
    }

    /// Whether `ppn` is a high page that is programmed once, after its low page.
    #[inline]
    pub fn is_high(&self, ppn: u32) -> bool {
        self.rules.pairs && self.partners[self.per_block.split(ppn).1 as usize].0
    }

    /// The other page of the pair of `ppn`, where pages come in pairs.
    #[inline]
    pub fn partner(&self, ppn: u32) -> Option<u32> {
        let (block, page) = self.per_block.split(ppn);
        self.rules.pairs.then(|| block * self.pages_per_block + self.partners[page as usize].1)
    }

    /// State of a page that was programmed.
    fn state(&self, valid: u64, free: u64) -> State {
        match () {
            () if valid == self.all => State::FullyValid,
            () if valid == 0 && free == 0 => State::FullyInvalid,
            () => State::PartiallyValid,
        }
    }

    #[inline]
    fn count(&mut self, before: State, after: State) {
        use State::{FullyFree, FullyInvalid, FullyValid, PartiallyValid};
        let transitions = &mut self.transitions;
        *match (before, after) {
            (FullyFree, PartiallyValid) => &mut transitions.ff_pv,
            (FullyFree, FullyValid) => &mut transitions.ff_fv,
            (PartiallyValid, FullyValid) => &mut transitions.pv_fv,
            (PartiallyValid, FullyInvalid) => &mut transitions.pv_fi,
            (FullyValid, PartiallyValid) => &mut transitions.fv_pv,
            (FullyValid, FullyInvalid) => &mut transitions.fv_fi,
            (same, other) if same == other => return,
            (from, to) => unreachable!("no page goes from {from:?} to {to:?}"),
        } += 1;
    }

    /// Asks for what invalidating subpages of `ppn` will touch.
    #[inline]
    pub fn prefetch(&self, ppn: u32) {
        prefetch(&self.pages, ppn as usize);
        let (block, page) = self.per_block.split(ppn);
        self.blocks.prefetch(block, page * self.subpages);
    }

    /// The fully free page `ppn` was programmed: `written` are valid. `owner` is the logical page that opens it alone.
    #[inline]
    pub fn open(&mut self, ppn: u32, written: u64, owner: u32) {
        let (block, page) = self.per_block.split(ppn);
        let high = self.is_high(ppn);
        let free = if self.rules.nop > 1 && !high { self.all & !written } else { 0 };
        self.lost += u64::from((self.all & !written & !free).count_ones());
        if high && let Some(low) = self.partner(ppn) {
            self.close(low);
        }
        if self.rules.strict && page > 0 {
            self.close(ppn - 1);
        }
        let kept = if self.rules.free_is_gain { written } else { written | free };
        self.blocks.validate_bits(block, page * self.subpages, kept);
        self.openings = self.openings.wrapping_add(1);
        self.pages[ppn as usize] = Page { owner, opened: self.openings, ..CLOSED };
        self.set_free(ppn, free);
        let after = self.state(written, free);
        self.count(State::FullyFree, after);
    }

    /// Free subpages `written` of `ppn` were programmed; it was programmed `programs` times now.
    #[inline]
    pub fn fill(&mut self, ppn: u32, written: u64, programs: u32) {
        let (block, page) = self.per_block.split(ppn);
        let (valid, before) = (self.valid(ppn), self.free(ppn));
        debug_assert_eq!(written & !before, 0);
        let rest = before & !written;
        let free = if programs < self.rules.nop { rest } else { 0 };
        self.lost += u64::from((rest & !free).count_ones());
        if self.rules.free_is_gain {
            self.blocks.validate_bits(block, page * self.subpages, written);
        } else {
            self.blocks.invalidate_bits(block, page * self.subpages, rest & !free);
        }
        self.set_free(ppn, free);
        let (from, to) = (self.state(valid, before), self.state(valid | written, free));
        self.count(from, to);
    }

    /// The subpages `which` of `ppn` are not valid any more.
    #[inline]
    pub fn invalidate(&mut self, ppn: u32, which: u64) {
        let (block, page) = self.per_block.split(ppn);
        let (valid, free) = (self.valid(ppn), self.free(ppn));
        debug_assert_eq!(which & !valid, 0);
        self.blocks.invalidate_bits(block, page * self.subpages, which);
        let (from, to) = (self.state(valid, free), self.state(valid & !which, free));
        self.count(from, to);
    }

    /// The free subpages of `ppn`, if any, can not be programmed any more.
    #[inline]
    pub fn close(&mut self, ppn: u32) {
        let free = self.free(ppn);
        if free == 0 {
            return;
        }
        let (block, page) = self.per_block.split(ppn);
        let valid = self.valid(ppn);
        self.lost += u64::from(free.count_ones());
        if !self.rules.free_is_gain {
            self.blocks.invalidate_bits(block, page * self.subpages, free);
        }
        self.set_free(ppn, 0);
        self.pages[ppn as usize].owner = UNMAPPED;
        let (from, to) = (self.state(valid, free), self.state(valid, 0));
        self.count(from, to);
    }

    /// Nothing of `block` can be programmed any more until it is erased.
    pub fn close_block(&mut self, block: u32) {
        if self.free_in_block[block as usize] == 0 {
            return;
        }
        for ppn in block * self.pages_per_block..(block + 1) * self.pages_per_block {
            self.close(ppn);
        }
    }

    /// `block`, in which nothing is valid, was erased after `programmed` of its pages had been programmed.
    pub fn erased(&mut self, programmed: u32) {
        self.transitions.fi_ff += u64::from(programmed);
    }

    /// After a power cut: subpages of the programmed page `ppn` that are valid, and that can be programmed.
    pub fn restore(&mut self, ppn: u32, valid: u64, free: u64) {
        let (block, page) = self.per_block.split(ppn);
        let kept = if self.rules.free_is_gain { valid } else { valid | free };
        self.blocks.validate_bits(block, page * self.subpages, kept);
        self.openings = self.openings.wrapping_add(1);
        self.pages[ppn as usize] = Page { opened: self.openings, ..CLOSED };
        self.set_free(ppn, free);
    }

    /// The page of `plane` that was opened last among those with at least `wanted` free subpages; among pages with
    /// equally many free subpages, the one that came down to that number last.
    #[inline]
    pub fn with_room(&self, plane: u32, wanted: u32) -> Option<u32> {
        let heads = &self.heads[(plane * self.subpages) as usize..][..self.subpages as usize];
        let mut best: Option<(u32, u32)> = None;
        for &ppn in heads.get(wanted.max(1) as usize..)? {
            if ppn != UNMAPPED {
                let opened = self.pages[ppn as usize].opened;
                // Numbers of openings wrap around.
                if best.is_none_or(|(_, other)| opened.wrapping_sub(other) < 1 << 31) {
                    best = Some((ppn, opened));
                }
            }
        }
        best.map(|(ppn, _)| ppn)
    }

    #[inline]
    fn head(&mut self, ppn: u32, free: u32) -> &mut u32 {
        let plane = self.pages_per_plane.divide(ppn);
        &mut self.heads[(plane * self.subpages + free.count_ones()) as usize]
    }

    fn set_free(&mut self, ppn: u32, free: u64) {
        let Page { free: before, previous, next, .. } = self.pages[ppn as usize];
        let free = free as u32;
        if free == before {
            return;
        }
        if before != 0 {
            match previous {
                UNMAPPED => *self.head(ppn, before) = next,
                previous => self.pages[previous as usize].next = next,
            }
            if next != UNMAPPED {
                self.pages[next as usize].previous = previous;
            }
        }
        let count = &mut self.free_in_block[self.per_block.divide(ppn) as usize];
        *count = *count + free.count_ones() - before.count_ones();
        self.pages[ppn as usize].free = free;
        if free != 0 {
            let next = std::mem::replace(self.head(ppn, free), ppn);
            if next != UNMAPPED {
                self.pages[next as usize].previous = ppn;
            }
            let page = &mut self.pages[ppn as usize];
            (page.previous, page.next) = (UNMAPPED, next);
        }
    }

    /// Checks counts and lists. Slow.
    ///
    /// # Errors
    /// What does not agree.
    pub fn check(&mut self) -> Result<(), String> {
        self.blocks.check()?;
        let mut with_free = 0;
        for (block, &count) in self.free_in_block.iter().enumerate() {
            let first = block as u32 * self.pages_per_block;
            let pages = first..first + self.pages_per_block;
            let found: u32 = pages.clone().map(|ppn| self.free(ppn).count_ones()).sum();
            if found != count {
                return Err(format!("block {block} has {found} free subpages but counts {count}"));
            }
            if found > 0 && !matches!(self.blocks.state(block as u32), BlockState::Open | BlockState::Closed) {
                return Err(format!("block {block} is {:?} but has free subpages", self.blocks.state(block as u32)));
            }
            with_free += pages.filter(|&ppn| self.free(ppn) != 0).count();
        }
        let mut listed = 0;
        for (index, &head) in self.heads.iter().enumerate() {
            let mut ppn = head;
            while ppn != UNMAPPED {
                if self.free(ppn).count_ones() != index as u32 % self.subpages {
                    return Err(format!("page {ppn} is listed with the wrong number of free subpages"));
                }
                listed += 1;
                ppn = self.pages[ppn as usize].next;
            }
        }
        if listed != with_free {
            return Err(format!("{with_free} pages have free subpages, and {listed} are listed"));
        }
        Ok(())
    }

    /// Checks the transitions against the states that they led to: `programmed` marks the programmed pages.
    ///
    /// # Errors
    /// What does not agree.
    pub fn check_transitions(&self, programmed: impl Fn(u32) -> bool) -> Result<(), String> {
        let Transitions { ff_pv, ff_fv, pv_fv, pv_fi, fv_pv, fv_fi, fi_ff } = self.transitions;
        let mut found = [0u64; 3];
        for ppn in (0..self.pages.len() as u32).filter(|&ppn| programmed(ppn)) {
            match self.state(self.valid(ppn), self.free(ppn)) {
                State::FullyFree => {}
                State::PartiallyValid => found[0] += 1,
                State::FullyValid => found[1] += 1,
                State::FullyInvalid => found[2] += 1,
            }
        }
        let expected = [ff_pv + fv_pv - pv_fv - pv_fi, ff_fv + pv_fv - fv_pv - fv_fi, pv_fi + fv_fi - fi_ff];
        if found != expected {
            return Err(format!("PV, FV, FI pages are {found:?} but the transitions lead to {expected:?}"));
        }
        Ok(())
    }
}
