//! States of physical pages, and free subpages that can still be programmed.
//!
//! A page is fully free (FF), partially valid (PV), fully valid (FV) or fully invalid (FI). PV is every mix except all
//! free, all valid, and neither free nor valid. The transitions are those of Fig. 5, and each is counted. A write turns
//! FF into PV or FV, and may turn PV into FV. Invalidation turns FV into PV or FI, and PV into FI. An erase turns FI
//! into FF. Source: MGA paper, Sec. III-B and III-C.
//!
//! Free subpages end with the page's last allowed program (NOP) and when the block becomes a victim. In strict order
//! they also end when a later page of the block is programmed. In two rounds they end when the high page of a low page
//! is programmed. The paper is silent on that; unwritten subpages then count as invalid. Victim policies count a free
//! subpage as kept, so that victims are chosen by invalid subpages only (`ftl.victim_free` counts free subpages as a
//! gain).

use super::map::UNMAPPED;
use super::settings::MgaSettings;
use super::space::Space;
use crate::log::blocks::BlockState;
use palimpsest_flash::geometry::Divisor;
use palimpsest_flash::nand::part::{Part, ProgramOrder};
use palimpsest_flash::prefetch::prefetch;
use palimpsest_ftl_api::plan::Io;

/// State of a physical page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    FullyFree,
    PartiallyValid,
    FullyValid,
    FullyInvalid,
}

/// Number of each transition between states: the arrows of Fig. 5.
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

/// Rules for programming a page again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Programs of a page between two erases.
    pub nop: u32,
    /// True if only the last programmed page of a block may be programmed again.
    pub strict: bool,
    /// True if pages come in pairs, and the low page may be programmed again until the high one is programmed.
    pub pairs: bool,
    /// True if victim policies count a free subpage as a gain.
    pub free_is_gain: bool,
}

impl Rules {
    /// The rules of `part`.
    fn new(part: &Part, settings: &MgaSettings) -> Self {
        Rules {
            nop: if part.order.pairs() && !settings.low_pages_first { 1 } else { part.nop },
            pairs: settings.low_pages_first,
            strict: part.order == ProgramOrder::Strict,
            free_is_gain: settings.victim_free,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Page {
    /// Subpages that can still be programmed; none if the page was never programmed.
    free: u32,
    /// The logical page that opened this page under exclusive allocation.
    owner: u32,
    /// Neighbours in the plane's list of pages with equally many free subpages.
    previous: u32,
    next: u32,
    /// Number of the opening.
    opened: u32,
}

palimpsest_flash::state!(Page { free, owner, previous, next, opened });

const CLOSED: Page = Page { free: 0, owner: UNMAPPED, previous: UNMAPPED, next: UNMAPPED, opened: 0 };

pub(super) struct PageStates {
    /// Blocks. A unit is valid if the subpage is valid, or free in a programmed page; with `free_is_gain`, only if
    /// valid.
    pub space: Space,
    pub rules: Rules,
    subpages: u32,
    all: u64,
    per_block: Divisor,
    pages_per_plane: Divisor,
    pages_per_block: u32,
    pages: Vec<Page>,
    /// Free subpages of programmed pages, per block.
    free_in_block: Vec<u32>,
    /// Heads of the lists of pages with free subpages: index plane x subpages + free subpages.
    heads: Vec<u32>,
    openings: u32,
    pub transitions: Transitions,
    /// Free subpages that were never programmed.
    pub lost: u64,
    /// If pages come in pairs, per page of a block: true for a high page, and the partner.
    partners: Vec<(bool, u32)>,
}

palimpsest_flash::state!(PageStates {
    space, free_in_block, heads, openings, transitions, lost
} parts { pages } built {
    rules, subpages, all, per_block, pages_per_plane, pages_per_block, partners
});

impl PageStates {
    /// All pages free, on a drive that holds `stored` pages when full.
    pub fn new(io: &Io, settings: &MgaSettings, stored: u32) -> Self {
        let (geometry, part) = (io.geometry(), io.nand().part());
        let (subpages, rules) = (geometry.subpages_per_page, Rules::new(part, settings));
        PageStates {
            space: Space::new(io, settings, stored),
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

    /// After a power cut: forgets all states, but no count.
    pub fn forget(&mut self, io: &Io) {
        self.space.forget(io);
        self.pages.fill(CLOSED);
        self.free_in_block.fill(0);
        self.heads.fill(UNMAPPED);
        self.openings = 0;
    }

    /// The block of `ppn`.
    #[inline]
    pub fn block_of(&self, ppn: u32) -> u32 {
        self.per_block.divide(ppn)
    }

    /// Valid subpages of `ppn`.
    #[inline]
    pub fn valid(&self, ppn: u32) -> u64 {
        let (block, page) = self.per_block.split(ppn);
        self.space.blocks().valid_bits(block, page * self.subpages, self.subpages) & !self.free(ppn)
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
        self.space.blocks().valid_count(block) - free
    }

    /// True if `ppn` is a high page, which is programmed once, after the low page.
    #[inline]
    pub fn is_high(&self, ppn: u32) -> bool {
        self.rules.pairs && self.partners[self.per_block.split(ppn).1 as usize].0
    }

    /// The other page of the pair of `ppn`, if pages come in pairs.
    #[inline]
    pub fn partner(&self, ppn: u32) -> Option<u32> {
        let (block, page) = self.per_block.split(ppn);
        self.rules.pairs.then(|| block * self.pages_per_block + self.partners[page as usize].1)
    }

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

    /// Prefetches the fields that invalidating subpages of `ppn` changes.
    #[inline]
    pub fn prefetch(&self, ppn: u32) {
        prefetch(&self.pages, ppn as usize);
        let (block, page) = self.per_block.split(ppn);
        self.space.blocks().prefetch(block, page * self.subpages);
    }

    /// Records the first program of page `ppn`: `written` become valid. `owner` is the exclusive owner.
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
        self.space.frontiers.blocks.validate_bits(block, page * self.subpages, kept);
        self.openings = self.openings.wrapping_add(1);
        self.pages[ppn as usize] = Page { owner, opened: self.openings, ..CLOSED };
        self.set_free(ppn, free);
        let after = self.state(written, free);
        self.count(State::FullyFree, after);
    }

    /// Records the program of the free subpages `written` of `ppn`, program number `programs` of the page.
    #[inline]
    pub fn fill(&mut self, ppn: u32, written: u64, programs: u32) {
        let (block, page) = self.per_block.split(ppn);
        let (valid, before) = (self.valid(ppn), self.free(ppn));
        debug_assert_eq!(written & !before, 0);
        let rest = before & !written;
        let free = if programs < self.rules.nop { rest } else { 0 };
        self.lost += u64::from((rest & !free).count_ones());
        if self.rules.free_is_gain {
            self.space.frontiers.blocks.validate_bits(block, page * self.subpages, written);
        } else {
            self.space.frontiers.blocks.invalidate_bits(block, page * self.subpages, rest & !free);
        }
        self.set_free(ppn, free);
        let (from, to) = (self.state(valid, before), self.state(valid | written, free));
        self.count(from, to);
    }

    /// Marks the subpages `which` of `ppn` invalid.
    #[inline]
    pub fn invalidate(&mut self, ppn: u32, which: u64) {
        let (block, page) = self.per_block.split(ppn);
        let (valid, free) = (self.valid(ppn), self.free(ppn));
        debug_assert_eq!(which & !valid, 0);
        self.space.frontiers.blocks.invalidate_bits(block, page * self.subpages, which);
        let (from, to) = (self.state(valid, free), self.state(valid & !which, free));
        self.count(from, to);
    }

    /// Ends the free subpages of `ppn`, if any: they can no longer be programmed.
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
            self.space.frontiers.blocks.invalidate_bits(block, page * self.subpages, free);
        }
        self.set_free(ppn, 0);
        self.pages[ppn as usize].owner = UNMAPPED;
        let (from, to) = (self.state(valid, free), self.state(valid, 0));
        self.count(from, to);
    }

    /// Ends the free subpages of `block`: they can no longer be programmed before the erase.
    pub fn close_block(&mut self, block: u32) {
        if self.free_in_block[block as usize] == 0 {
            return;
        }
        for ppn in block * self.pages_per_block..(block + 1) * self.pages_per_block {
            self.close(ppn);
        }
    }

    /// Records the erase of a block with `programmed` programmed pages, none of them valid.
    pub fn erased(&mut self, programmed: u32) {
        self.transitions.fi_ff += u64::from(programmed);
    }

    /// After a power cut: sets the valid subpages of the programmed page `ppn`, and the programmable ones.
    pub fn restore(&mut self, ppn: u32, valid: u64, free: u64) {
        let (block, page) = self.per_block.split(ppn);
        let kept = if self.rules.free_is_gain { valid } else { valid | free };
        self.space.frontiers.blocks.validate_bits(block, page * self.subpages, kept);
        self.openings = self.openings.wrapping_add(1);
        self.pages[ppn as usize] = Page { opened: self.openings, ..CLOSED };
        self.set_free(ppn, free);
    }

    /// The last opened page of `plane` with at least `wanted` free subpages. Among pages with equally many free
    /// subpages, only the last to reach that number is considered.
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
    /// The first inconsistency.
    pub fn check(&mut self) -> Result<(), String> {
        self.space.frontiers.check()?;
        let mut with_free = 0;
        for (block, &count) in self.free_in_block.iter().enumerate() {
            let first = block as u32 * self.pages_per_block;
            let pages = first..first + self.pages_per_block;
            let found: u32 = pages.clone().map(|ppn| self.free(ppn).count_ones()).sum();
            if found != count {
                return Err(format!("block {block} has {found} free subpages but counts {count}"));
            }
            let state = self.space.blocks().state(block as u32);
            if found > 0 && !matches!(state, BlockState::Open | BlockState::Closed | BlockState::Aside) {
                return Err(format!("block {block} is {state:?} but has free subpages"));
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

    /// Checks the transitions against the resulting states: `programmed` marks the programmed pages.
    ///
    /// # Errors
    /// The first inconsistency.
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
