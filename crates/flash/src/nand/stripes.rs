//! Stripes across dies: a block of the layer is a superblock, a block of each die of a group. The pages at one address
//! of these blocks form a stripe: all hold data, or one holds the parity of the others ("RAIN"), on another die in each
//! stripe.
//!
//! Layers see a drive of fewer dies, one a group, whose blocks have as many times the pages. Without parity, a
//! superblock may have a block of each plane of its dies: layers then see dies of fewer planes. Page k of a block is
//! page k mod N of the N data pages of stripe k / N. Blocks of a group are erased together, and are bad together.
//! Parity pages are numbered behind all pages of layers. The content of parity is unknown here: the controller
//! programs it (`palimpsest_ftl_api::plan::rain`).
//!
//! If a die has failed, the die's data page replaces the stripe's parity page. If fewer dies of a group work than a
//! stripe has data pages, the group's blocks are no longer written. Ignored: failed parity programs, and block maps
//! that replace one bad block of a superblock.

mod parity;

use super::data::Data;
use super::rules::Reached;
use super::{Block, Flash, Halt, Nand};
use crate::geometry::{Divisor, Geometry};

/// The pages of a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StripeShape {
    /// Pages of data.
    pub data: u32,
    /// Whether there is a parity page.
    pub parity: bool,
    /// Planes of a die that have a page in the stripe; more than one excludes parity.
    pub planes: u32,
}

impl StripeShape {
    /// Pages of a stripe, parity included.
    pub fn members(self) -> u32 {
        self.data + u32::from(self.parity)
    }

    /// Dies of a stripe.
    pub fn dies(self) -> u32 {
        self.members() / self.planes
    }
}

/// The shape that layers see of a drive of `physical`, whose number of dies must be a multiple of the stripe's.
pub fn striped(physical: &Geometry, shape: StripeShape) -> Geometry {
    let (groups, data) = (physical.dies() / shape.dies(), shape.data);
    Geometry {
        channels: groups,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: physical.planes_per_die / shape.planes,
        pages_per_block: physical.pages_per_block * data,
        ..*physical
    }
}

/// The mapping of layers' pages to dies.
pub(super) struct Stripes {
    physical: Geometry,
    /// Pages of data of a stripe.
    data: u32,
    parity: bool,
    /// Pages of a stripe, each on another plane, and dies of a stripe.
    members: u32,
    dies: u32,
    per_stripe: Divisor,
    per_block: Divisor,
    per_plane: Divisor,
    /// The first block of the drive in each member of each plane that layers see.
    first_blocks: Vec<u32>,
    /// Pages that layers see.
    pages: u32,
    groups: u32,
    /// Of each stripe: whether a page of a failed die replaces the parity.
    swapped: Vec<bool>,
    /// Of each stripe: the data pages in its parity, from the parity page's out-of-band area.
    covers: Vec<u64>,
    /// Of each die: whether it has failed.
    dead: Vec<bool>,
    /// Whether blocks may still hold data of a failed die.
    pub rebuilding: bool,
    /// Erases of blocks of a superblock beyond the first.
    pub also_erased: u64,
    /// The operation that erased the first block of the last superblock.
    erasing: u64,
    /// Number of the superblock's blocks that are erased, stored because a die may fail meanwhile.
    together: u32,
    /// Whether low pages of that superblock were programmed again.
    reused: bool,
}

// Dies fail after preconditioning, and states are stored before.
crate::state!(Stripes { also_erased } built {
    physical, data, parity, members, dies, per_stripe, per_block, per_plane, first_blocks, pages, groups, swapped,
    covers, dead, rebuilding, erasing, together, reused
});

impl Stripes {
    fn new(physical: Geometry, shape: StripeShape) -> Self {
        let (seen, StripeShape { data, parity, .. }) = (striped(&physical, shape), shape);
        let stripes = if parity { (seen.pages() / u64::from(data)) as usize } else { 0 };
        let (members, dies, groups) = (shape.members(), shape.dies(), physical.dies() / shape.dies());
        let first_block = |plane: u32, member: u32| {
            let die = plane % groups * dies + member % dies;
            let plane_of_die = plane / groups * (members / dies) + member / dies;
            (plane_of_die * physical.dies() + die) * physical.blocks_per_plane
        };
        Stripes {
            data,
            parity,
            members,
            dies,
            per_stripe: Divisor::new(data),
            per_block: Divisor::new(physical.pages_per_block),
            per_plane: Divisor::new(physical.blocks_per_plane),
            first_blocks: (0..seen.planes())
                .flat_map(|plane| (0..members).map(move |member| first_block(plane, member)))
                .collect(),
            pages: seen.pages() as u32,
            groups,
            swapped: vec![false; stripes],
            covers: vec![0; stripes],
            dead: vec![false; physical.dies() as usize],
            rebuilding: false,
            also_erased: 0,
            erasing: 0,
            together: 0,
            reused: false,
            physical,
        }
    }

    /// The stripe of page `ppn`, and the page's place among the data; a parity page has the place behind the last.
    #[inline]
    pub fn split(&self, ppn: u32) -> (u32, u32) {
        // A block has whole stripes, and layers' page numbers continue from block to block.
        if ppn < self.pages { self.per_stripe.split(ppn) } else { (ppn - self.pages, self.data) }
    }

    /// Block and page of `stripe`, in blocks of layers and pages of dies.
    fn at(&self, stripe: u32) -> (u32, u32) {
        self.per_block.split(stripe)
    }

    fn group_of(&self, block: u32) -> u32 {
        (block / self.physical.blocks_per_plane) % self.groups
    }

    /// The die of a group with the parity of `stripe`; without parity, the number behind the last die.
    fn parity_member(&self, stripe: u32) -> u32 {
        if !self.parity {
            return self.members;
        }
        let (block, page) = self.at(stripe);
        (block + page) % self.members
    }

    fn die(&self, stripe: u32, member: u32) -> u32 {
        self.die_of(self.group_of(self.at(stripe).0), member)
    }

    /// The die of member `member` of the superblocks of `group`.
    fn die_of(&self, group: u32, member: u32) -> u32 {
        group * self.dies + member % self.dies
    }

    /// The die of the group for place `place` of `stripe` while all dies work.
    fn home(&self, stripe: u32, place: u32) -> u32 {
        let parity = self.parity_member(stripe);
        match place {
            place if place == self.data => parity,
            place if place < parity => place,
            place => place + 1,
        }
    }

    /// The die of the group that holds place `place` of `stripe`.
    fn member(&self, stripe: u32, place: u32) -> u32 {
        self.member_for(stripe, place, true)
    }

    /// [`Self::member`], or for a page that is not `programmed`, the die of its next program.
    #[inline]
    fn member_for(&self, stripe: u32, place: u32, programmed: bool) -> u32 {
        let home = self.home(stripe, place);
        let moves = self.parity && (!programmed || self.swapped[stripe as usize]);
        let moved = moves && self.dead[self.die(stripe, home) as usize];
        if moved { self.parity_member(stripe) } else { home }
    }

    fn is_dead(&self, ppn: u32) -> bool {
        let (stripe, place) = self.split(ppn);
        self.dead[self.die(stripe, self.member(stripe, place)) as usize]
    }

    /// Chooses the die for the next program of page `ppn`; `taken`: the parity page is programmed already. Returns
    /// false if no die is left.
    pub(super) fn take_place(&mut self, ppn: u32, taken: bool) -> bool {
        let (stripe, place) = self.split(ppn);
        if self.parity && !taken && self.dead[self.die(stripe, self.home(stripe, place)) as usize] {
            self.swapped[stripe as usize] = true;
        }
        !self.is_dead(ppn)
    }

    /// Whether `stripe` can have no parity: a data page replaces it, or its die has failed.
    fn is_bare(&self, stripe: u32) -> bool {
        let is_dead = |place| self.dead[self.die(stripe, self.home(stripe, place)) as usize];
        let taken = self.swapped[stripe as usize] && (0..self.data).any(is_dead);
        taken || self.dead[self.die(stripe, self.parity_member(stripe)) as usize]
    }

    /// The stored state of the stripe of page `ppn`.
    pub(super) fn known(&self, ppn: u32) -> (bool, u64) {
        if !self.parity {
            return (false, 0);
        }
        let stripe = self.split(ppn).0 as usize;
        (self.swapped[stripe], self.covers[stripe])
    }

    pub(super) fn set_known(&mut self, ppn: u32, known: (bool, u64)) {
        let stripe = self.split(ppn).0 as usize;
        if self.parity {
            (self.swapped[stripe], self.covers[stripe]) = known;
        }
    }

    /// Marks `die` as failed; returns the blocks of layers that can no longer be written.
    pub(super) fn lose(&mut self, die: u32) -> impl Iterator<Item = u32> + use<'_> {
        self.dead[die as usize] = true;
        self.rebuilding |= self.parity;
        let group = die / self.dies;
        let left = (0..self.members).filter(|&member| !self.dead[self.die_of(group, member) as usize]).count() as u32;
        let blocks = self.physical.blocks() / self.members;
        (0..blocks).filter(move |&block| left < self.data && self.group_of(block) == group)
    }

    /// Block and page of the drive for page `ppn`.
    fn place(&self, ppn: u32) -> (u32, u32) {
        let (stripe, place) = self.split(ppn);
        let (block, page) = self.at(stripe);
        (self.block_of(block, self.member(stripe, place)), page)
    }

    /// The block of the drive that is member `member` of the superblock `block`.
    fn block_of(&self, block: u32, member: u32) -> u32 {
        let (plane, index) = self.per_plane.split(block);
        self.first_blocks[(plane * self.members + member) as usize] + index
    }
}

impl Nand {
    /// Adds stripes on a drive of `physical` to this new flash, which must have the shape [`striped`].
    pub fn set_stripes(&mut self, physical: Geometry, shape: StripeShape) {
        let stripes = Stripes::new(physical, shape);
        let pages = stripes.pages as usize + stripes.swapped.len();
        let width = self.geometry.subpages_per_page as usize;
        self.programs.resize(pages, 0);
        self.logical.resize(pages * width, 0);
        self.payload.resize(pages * width);
        if let Some(faults) = &mut self.failures.faults {
            for block in &mut self.blocks {
                (1..shape.members()).for_each(|_| block.bad |= faults.bad_from_factory());
            }
            let (part, members) = (&self.part, shape.members());
            let all = faults.endurances(self.geometry.blocks() * members, part.endurance, part.endurance_deviation);
            self.failures.endurances =
                all.chunks(members as usize).filter_map(|all| all.iter().min().copied()).collect();
        }
        self.stripes = Some(Box::new(stripes));
    }

    /// Whether blocks of layers are superblocks.
    #[inline]
    pub fn has_stripes(&self) -> bool {
        self.stripes.is_some()
    }

    /// Whether the die of page `ppn` has failed.
    pub fn is_dead_page(&self, ppn: u32) -> bool {
        self.stripes.as_ref().map_or_else(|| self.is_dead(self.block_of(ppn)), |stripes| stripes.is_dead(ppn))
    }

    /// Whether stripes have parity.
    #[inline]
    pub fn has_parity(&self) -> bool {
        self.stripes.as_ref().is_some_and(|stripes| stripes.parity)
    }

    /// Blocks of the drive in a layer's block; a power cut tears a page of each.
    pub fn pages_torn(&self) -> u32 {
        self.stripes.as_ref().map_or(1, |stripes| stripes.members)
    }

    /// Shape of the drive itself.
    pub fn physical(&self) -> &Geometry {
        self.stripes.as_ref().map_or(&self.geometry, |stripes| &stripes.physical)
    }

    /// Number of pages, parity pages included.
    pub fn all_pages(&self) -> usize {
        self.programs.len()
    }

    /// Block and page of the drive for page `ppn`.
    #[inline]
    pub fn place(&self, ppn: u32) -> (u32, u32) {
        match &self.stripes {
            None => self.split(ppn),
            Some(stripes) => stripes.place(ppn),
        }
    }

    /// The layer's block of page `ppn`, which may be a parity page.
    #[inline]
    pub fn block_of(&self, ppn: u32) -> u32 {
        match &self.stripes {
            Some(stripes) if ppn >= stripes.pages => stripes.at(ppn - stripes.pages).0,
            _ => self.split(ppn).0,
        }
    }

    /// The page in its die's block of page `page` of a layer's block.
    #[inline]
    pub fn page_of_die(&self, page: u32) -> u32 {
        self.stripes.as_ref().map_or(page, |stripes| stripes.per_stripe.divide(page))
    }

    /// Planes whose pages take turns in a layer's block.
    #[inline]
    pub fn dies_in_turn(&self) -> u32 {
        self.stripes.as_ref().map_or(1, |stripes| stripes.data)
    }

    /// Whether `page` of a layer's block is a high page.
    #[inline]
    pub fn is_high(&self, page: u32) -> bool {
        self.part.paired() && self.part.is_high(self.page_of_die(page))
    }

    /// The other page of the pair of `page` of a layer's block, on the same die; `page` itself if pages are not paired.
    /// Paired pages have no parity.
    pub fn partner(&self, page: u32) -> u32 {
        let dies = self.dies_in_turn();
        self.part.partner(self.page_of_die(page)) * dies + page % dies
    }

    /// Low and high pages reached by programs on the die of page `page` of `block`. The progress of a superblock is the
    /// progress of the die that is ahead.
    #[inline]
    pub(super) fn reached_on_die(&self, block: u32, page: u32) -> Reached {
        let reached = self.blocks[block as usize].reached;
        let ahead = || self.page_of_die(page) >= reached.low.max(reached.high);
        if self.stripes.is_none() || !self.part.order.pairs() || ahead() {
            return reached;
        }
        self.reached_in(block, page % self.dies_in_turn(), self.dies_in_turn())
    }

    /// Low and high pages reached by programs in every page number `step` of `block`, from `first` on.
    fn reached_in(&self, block: u32, first: u32, step: u32) -> Reached {
        let (mut reached, begin) = (Reached::default(), self.first_page(block));
        for page in (first..self.geometry.pages_per_block).step_by(step as usize) {
            if self.programs[begin + page as usize] > 0 {
                reached.note(self.page_of_die(page), self.is_high(page));
            }
        }
        reached
    }

    /// Whether page `ppn` is unreadable because its die has failed.
    #[inline]
    pub fn is_unreadable(&self, ppn: u32) -> bool {
        match &self.stripes {
            None => self.is_dead(self.split(ppn).0),
            Some(stripes) => stripes.is_dead(ppn),
        }
    }

    /// Blocks of the drive, on working dies, of the layer's block `block`.
    pub fn members(&self, block: u32) -> Vec<u32> {
        let Some(stripes) = &self.stripes else { return vec![block] };
        let group = stripes.group_of(block);
        let works = |&member: &u32| !stripes.dead[stripes.die_of(group, member) as usize];
        (0..stripes.members).filter(works).map(|member| stripes.block_of(block, member)).collect()
    }

    /// Announces the number of blocks of the next erased superblock.
    pub fn erase_together(&mut self, blocks: u32) {
        self.stripes.iter_mut().for_each(|stripes| stripes.together = blocks);
    }

    pub(super) fn erases_together(&self) -> u32 {
        self.stripes.as_ref().map_or(1, |stripes| stripes.together)
    }

    /// Erases the next block of the superblock `block` after [`Self::erase`] of the first.
    ///
    /// # Errors
    /// [`Halt::PowerCut`].
    pub fn erase_also(&mut self, block: u32) -> Flash<()> {
        let cut = self.begin();
        let (first, reused) = self.stripes.as_ref().map_or((0, false), |stripes| (stripes.erasing, stripes.reused));
        let undo = self.records.undo.is_some().then(|| self.save_part(block, first));
        self.blocks[block as usize].torn |= cut;
        if cut {
            return Err(Halt::PowerCut);
        }
        self.counters.erases += 1;
        self.counters.reused_erases += u64::from(reused);
        self.counters.erase_energy += if reused { self.part.e_erase_reused } else { self.part.e_erase };
        if let Some(stripes) = &mut self.stripes {
            stripes.also_erased += 1;
        }
        if let Some(undo) = undo {
            self.log_undo(undo);
        }
        Ok(())
    }

    /// Sets the rebuilt subpage `index` of page `ppn` to `data` in memory.
    pub fn set_rebuilt(&mut self, ppn: u32, index: u32, data: Data) {
        self.payload.put((ppn * self.geometry.subpages_per_page + index) as usize, data);
    }

    /// Whether blocks may still hold data of a failed die.
    #[inline]
    pub fn is_rebuilding(&self) -> bool {
        self.stripes.as_ref().is_some_and(|stripes| stripes.rebuilding)
    }

    /// Resumes the rebuild after a power cut, which may have rolled back moves from failed dies.
    pub fn rebuild_again(&mut self) {
        self.stripes
            .iter_mut()
            .for_each(|stripes| stripes.rebuilding |= stripes.parity && stripes.dead.contains(&true));
    }

    /// Ends the rebuild: no block holds data on a failed die any more.
    pub fn rebuilt(&mut self) {
        self.stripes.iter_mut().for_each(|stripes| stripes.rebuilding = false);
    }

    /// Pages of the superblock `block` that a power cut left out because their die lagged behind. They are erased,
    /// before programmed pages of other dies, and behind all programmed pages of their own die, parity included. The
    /// last comes first.
    pub fn left_out(&self, block: u32) -> Vec<u32> {
        let (state, Some(stripes)) = (&self.blocks[block as usize], &self.stripes) else { return Vec::new() };
        if !state.gaps || state.bad || state.torn {
            return Vec::new();
        }
        let (begin, mut reached) = (self.first_page(block) as u32, vec![false; stripes.members as usize]);
        let mut left_out = Vec::new();
        for first in (0..state.next_page).step_by(stripes.data as usize).rev() {
            let stripe = stripes.split(begin + first).0;
            if stripes.parity && self.programs(stripes.pages + stripe) > 0 {
                reached[stripes.parity_member(stripe) as usize] = true;
            }
            for page in (first..state.next_page.min(first + stripes.data)).rev() {
                let programmed = self.is_of_pass(begin + page);
                let member = stripes.member_for(stripe, page - first, programmed);
                let is_dead = stripes.dead[stripes.die(stripe, member) as usize];
                if !programmed && !is_dead && !reached[member as usize] {
                    left_out.push(page);
                }
                reached[member as usize] |= programmed;
            }
        }
        left_out
    }

    /// Whether `page` of `block` is in [`Self::left_out`].
    #[cold]
    pub(super) fn is_left_out(&self, block: u32, page: u32) -> bool {
        !self.is_of_pass(self.first_page(block) as u32 + page) && self.left_out(block).contains(&page)
    }

    /// Whether page `ppn` was programmed in the present pass over its block.
    fn is_of_pass(&self, ppn: u32) -> bool {
        self.programs(ppn) > 0 && !self.is_of_earlier_pass(ppn)
    }

    /// Pages of the superblock `block` before the next stripe to write: up to the first page that a power cut left out,
    /// or else the next page.
    pub fn written_up_to(&self, block: u32) -> u32 {
        self.left_out(block).last().copied().unwrap_or(self.next_page(block))
    }

    /// Recomputes the programmed pages of `block` after a rollback that differed between dies. In a stripe with
    /// programmed parity, all unprogrammed pages were left out.
    pub(super) fn settle_striped(&mut self, block: u32) {
        let first = self.first_page(block);
        let parity = self.parity_of(block).rev().find(|&ppn| self.programs(ppn) > 0);
        let end = parity.and_then(|ppn| self.stripe_of(ppn)).map_or(0, |(pages, _)| pages.end as usize - first);
        let pages = first as u32..first as u32 + self.geometry.pages_per_block;
        let pass = pages.clone().filter_map(|ppn| self.generation(ppn)).max().unwrap_or(0);
        self.blocks[block as usize].pass = pass as u8;
        let last = pages.rev().find(|&ppn| self.is_of_pass(ppn));
        let next = last.map_or(0, |last| last as usize + 1 - first).max(end);
        let gaps = (first..first + next).any(|ppn| !self.is_of_pass(ppn as u32));
        let reached = if self.part.paired() { self.reached_in(block, 0, 1) } else { Reached::default() };
        let state: &mut Block = &mut self.blocks[block as usize];
        (state.next_page, state.reached) = (next as u32, reached);
        state.gaps |= gaps;
    }
}
