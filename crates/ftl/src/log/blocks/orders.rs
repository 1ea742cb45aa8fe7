//! The orders of the closed blocks of a plane: buckets of equal valid count, and the order of closing, both as linked lists.

use super::{Block, Blocks, NO_BLOCK};

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

impl Blocks {
    /// The closed block of `plane` with the fewest valid units; the first to have come down to that count among ties.
    #[inline]
    pub fn fewest_valid(&mut self, plane: u32) -> Option<u32> {
        let base = self.bucket_base(plane);
        let state = &mut self.planes[plane as usize];
        if state.closed.is_empty() {
            return None;
        }
        while self.buckets[base + state.lowest as usize].first == NO_BLOCK {
            state.lowest += 1;
        }
        Some(self.buckets[base + state.lowest as usize].first)
    }

    /// Closed blocks of `plane`, from the one that was closed first on.
    pub fn closed_in_order(&self, plane: u32) -> impl Iterator<Item = u32> {
        let links = |block: u32| (block != NO_BLOCK).then_some(block);
        let first = links(self.planes[plane as usize].by_age.first);
        std::iter::successors(first, move |&block| links(self.closing[block as usize].age.next))
    }

    /// The closed block of `plane` that was closed first.
    #[inline]
    pub fn oldest(&self, plane: u32) -> Option<u32> {
        let first = self.planes[plane as usize].by_age.first;
        (first != NO_BLOCK).then_some(first)
    }

    #[inline]
    fn bucket_base(&self, plane: u32) -> usize {
        plane as usize * (self.units_per_block as usize + 1)
    }

    #[inline]
    pub(super) fn link_bucket(&mut self, block: u32) {
        let valid = self.blocks[block as usize].valid;
        let plane = self.plane_size.divide(block);
        let bucket = self.bucket_base(plane) + valid as usize;
        let last = self.buckets[bucket].last;
        self.blocks[block as usize].bucket = Links { previous: last, next: NO_BLOCK };
        match last {
            NO_BLOCK => self.buckets[bucket].first = block,
            last => self.blocks[last as usize].bucket.next = block,
        }
        self.buckets[bucket].last = block;
        let lowest = &mut self.planes[plane as usize].lowest;
        *lowest = valid.min(*lowest);
    }

    #[inline]
    pub(super) fn unlink_bucket(&mut self, block: u32) {
        let Block { valid, bucket: Links { previous, next }, .. } = self.blocks[block as usize];
        let bucket = self.bucket_base(self.plane_size.divide(block)) + valid as usize;
        match previous {
            NO_BLOCK => self.buckets[bucket].first = next,
            previous => self.blocks[previous as usize].bucket.next = next,
        }
        match next {
            NO_BLOCK => self.buckets[bucket].last = previous,
            next => self.blocks[next as usize].bucket.previous = previous,
        }
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
