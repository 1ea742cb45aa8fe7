//! Orders of the closed blocks of a plane: by closing, as a linked list, and the block with the fewest valid units.
//!
//! Most changes invalidate a unit. So a comparison updates the least of a group of blocks, and a search is necessary
//! only after the least was removed or gained a unit.

use super::{BlockState, Blocks, NO_BLOCK};

#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    pub previous: u32,
    pub next: u32,
}

palimpsest_flash::state!(Links { previous, next });

pub(super) const UNLINKED: Links = Links { previous: NO_BLOCK, next: NO_BLOCK };

#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    pub first: u32,
    pub last: u32,
}

palimpsest_flash::state!(List { first, last });

pub(super) const EMPTY: List = List { first: NO_BLOCK, last: NO_BLOCK };

/// Consecutive blocks of a plane with one entry for the least.
const GROUP: u32 = 64;

/// The closed block of a group with the fewest valid units, and the count. Ties: the first to reach the count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Least {
    block: u32,
    valid: u32,
}

palimpsest_flash::state!(Least { block, valid });

/// A group without closed blocks.
pub(super) const NONE_CLOSED: Least = Least { block: NO_BLOCK, valid: u32::MAX };

/// A group to search. The count of 0 makes `note_fewer` leave the entry unchanged.
const UNKNOWN: Least = Least { block: NO_BLOCK, valid: 0 };

/// Groups of a plane of `blocks` blocks.
pub(super) fn groups(blocks: u32) -> u32 {
    blocks.div_ceil(GROUP)
}

impl Blocks {
    /// The closed block of `plane` with the fewest valid units; among ties, the first to reach the count.
    pub fn fewest_valid(&mut self, plane: u32) -> Option<u32> {
        if self.planes[plane as usize].closed.is_empty() {
            return None;
        }
        let groups = groups(self.blocks_per_plane);
        let mut least = NONE_CLOSED;
        for index in 0..groups {
            let group = (plane * groups + index) as usize;
            if self.least[group] == UNKNOWN {
                self.least[group] = self.least_of(plane, index);
            }
            let found = self.least[group];
            let ties = found.valid == least.valid && found.block != NO_BLOCK;
            if found.valid < least.valid || (ties && self.came(found.block) < self.came(least.block)) {
                least = found;
            }
        }
        Some(least.block)
    }

    #[inline]
    fn came(&self, block: u32) -> u64 {
        self.blocks[block as usize].came
    }

    /// Searches group `index` of `plane`.
    fn least_of(&self, plane: u32, index: u32) -> Least {
        let first = plane * self.blocks_per_plane + index * GROUP;
        let end = (first + GROUP).min((plane + 1) * self.blocks_per_plane);
        let closed = (first..end).filter(|&block| self.state(block) == BlockState::Closed);
        let least = closed.min_by_key(|&block| (self.valid_count(block), self.came(block)));
        least.map_or(NONE_CLOSED, |block| Least { block, valid: self.valid_count(block) })
    }

    #[inline]
    fn group_of(&self, block: u32) -> usize {
        let (plane, index) = self.plane_size.split(block);
        (plane * groups(self.blocks_per_plane) + index / GROUP) as usize
    }

    /// Records that the closed block `block` lost valid units or was closed.
    #[inline]
    pub(super) fn note_fewer(&mut self, block: u32) {
        self.changes += 1;
        let entry = &mut self.blocks[block as usize];
        entry.came = self.changes;
        let valid = entry.valid;
        let group = self.group_of(block);
        if valid < self.least[group].valid {
            self.least[group] = Least { block, valid };
        }
    }

    /// Records that the closed block `block` gained valid units.
    pub(super) fn note_more(&mut self, block: u32) {
        self.changes += 1;
        self.blocks[block as usize].came = self.changes;
        self.forget_least(block);
    }

    /// Marks the group of `block` for a search if `block` was the least.
    pub(super) fn forget_least(&mut self, block: u32) {
        let group = self.group_of(block);
        if self.least[group].block == block {
            self.least[group] = UNKNOWN;
        }
    }

    /// Closed blocks of `plane`, first closed first.
    pub fn closed_in_order(&self, plane: u32) -> impl Iterator<Item = u32> {
        let links = |block: u32| (block != NO_BLOCK).then_some(block);
        let first = links(self.planes[plane as usize].by_age.first);
        std::iter::successors(first, move |&block| links(self.closing[block as usize].age.next))
    }

    /// The first closed block of `plane`.
    #[inline]
    pub fn oldest(&self, plane: u32) -> Option<u32> {
        let first = self.planes[plane as usize].by_age.first;
        (first != NO_BLOCK).then_some(first)
    }

    pub(super) fn link_age(&mut self, block: u32) {
        let by_age = &mut self.planes[self.plane_size.divide(block) as usize].by_age;
        self.closing[block as usize].age = Links { previous: by_age.last, next: NO_BLOCK };
        match by_age.last {
            NO_BLOCK => by_age.first = block,
            last => self.closing[last as usize].age.next = block,
        }
        by_age.last = block;
    }

    pub(super) fn unlink_age(&mut self, block: u32) {
        let Links { previous, next } = self.closing[block as usize].age;
        let by_age = &mut self.planes[self.plane_size.divide(block) as usize].by_age;
        match previous {
            NO_BLOCK => by_age.first = next,
            previous => self.closing[previous as usize].age.next = next,
        }
        match next {
            NO_BLOCK => by_age.last = previous,
            next => self.closing[next as usize].age.previous = previous,
        }
    }
}
