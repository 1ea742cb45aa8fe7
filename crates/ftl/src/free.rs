//! Free blocks of a plane, in the order in which layers open them: least worn first, then first freed.
//!
//! A heap finds the next block in logarithmic time. Free blocks never lose wear, so the heap may compare outdated wear:
//! `pop` corrects the top entry until the wear there is current.

use palimpsest_flash::geometry::Geometry;
use std::ops::Range;

/// A free block. Entries compare by the first two fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    wear: u32,
    /// Number of the call that freed the block.
    freed: u64,
    block: u32,
}

palimpsest_flash::state!(Entry { wear, freed, block });

/// Place of a block that is not in the heap.
const NOWHERE: u32 = u32::MAX;

/// The free blocks of a plane.
#[derive(Debug, Clone)]
pub struct FreeBlocks {
    /// A binary heap: entry i is never behind entries 2 i + 1 and 2 i + 2.
    heap: Vec<Entry>,
    /// The place of each block of the plane in the heap.
    places: Vec<u32>,
    freed: u64,
    first: u32,
}

palimpsest_flash::state!(FreeBlocks { heap, places, freed } built { first });

impl FreeBlocks {
    /// Constructs the set for the blocks `plane`, none of them free.
    pub fn none_of(plane: Range<u32>) -> Self {
        FreeBlocks { heap: Vec::new(), places: vec![NOWHERE; plane.len()], freed: 0, first: plane.start }
    }

    /// Number of free blocks.
    #[inline]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if no block is free.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Free blocks, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.heap.iter().map(|entry| entry.block)
    }

    /// Free blocks in the order in which they were freed.
    pub fn in_order(&self) -> Vec<u32> {
        let mut entries = self.heap.clone();
        entries.sort_unstable_by_key(|entry| entry.freed);
        entries.into_iter().map(|entry| entry.block).collect()
    }

    /// The most worn free block; among ties, the last freed.
    pub fn most_worn(&self, wear: impl Fn(u32) -> u32) -> Option<u32> {
        self.heap.iter().max_by_key(|entry| (wear(entry.block), entry.freed)).map(|entry| entry.block)
    }

    /// Adds `block`, which must not be free.
    pub fn push(&mut self, block: u32) {
        debug_assert_eq!(self.places[(block - self.first) as usize], NOWHERE);
        // Zero is a lower bound of the wear; `pop` corrects the entry.
        self.heap.push(Entry { wear: 0, freed: self.freed, block });
        self.freed += 1;
        self.rise(self.heap.len() - 1);
    }

    /// Removes and returns the least worn block; among ties, the first freed.
    pub fn pop(&mut self, wear: impl Fn(u32) -> u32) -> Option<u32> {
        loop {
            let top = self.heap.first_mut()?;
            let worn = wear(top.block);
            debug_assert!(worn >= top.wear);
            if worn == top.wear {
                let block = top.block;
                self.remove(block);
                return Some(block);
            }
            top.wear = worn;
            self.sink(0);
        }
    }

    /// Removes `block`. False if the block is not free.
    pub fn remove(&mut self, block: u32) -> bool {
        let place = std::mem::replace(&mut self.places[(block - self.first) as usize], NOWHERE) as usize;
        if place >= self.heap.len() {
            return false;
        }
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            let place = self.rise(place);
            self.sink(place);
        }
        true
    }

    /// Removes all blocks.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.places.fill(NOWHERE);
    }

    /// Moves the entry at `place` towards the top. Returns the new place.
    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 && self.heap[place] < self.heap[(place - 1) / 2] {
            self.heap.swap(place, (place - 1) / 2);
            self.note(place);
            place = (place - 1) / 2;
        }
        self.note(place);
        place
    }

    /// Moves the entry at `place` towards the leaves.
    fn sink(&mut self, mut place: usize) {
        loop {
            let children = (2 * place + 1)..(2 * place + 3).min(self.heap.len());
            let Some(next) =
                children.min_by_key(|&child| self.heap[child]).filter(|&c| self.heap[c] < self.heap[place])
            else {
                return self.note(place);
            };
            self.heap.swap(place, next);
            self.note(place);
            place = next;
        }
    }

    fn note(&mut self, place: usize) {
        self.places[(self.heap[place].block - self.first) as usize] = place as u32;
    }
}

/// An empty set for each plane.
pub fn free_of_planes(geometry: &Geometry) -> Vec<FreeBlocks> {
    let size = geometry.blocks_per_plane;
    (0..geometry.planes()).map(|plane| FreeBlocks::none_of(plane * size..(plane + 1) * size)).collect()
}

impl Extend<u32> for FreeBlocks {
    fn extend<T: IntoIterator<Item = u32>>(&mut self, blocks: T) {
        blocks.into_iter().for_each(|block| self.push(block));
    }
}

#[cfg(test)]
mod tests;
