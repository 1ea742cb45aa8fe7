//! States of blocks in a translation layer (free, open, closed, ...) and the valid units of each.
//!
//! A *unit* is the item that the layer maps: a page or a subpage. Valid units are a bitmap local to the block. Closed
//! blocks of a plane have three orders: by valid count (for greedy), by closing (for FIFO), and an array (for random
//! draws). Wear is read from flash, not stored here.

mod orders;

use crate::free::FreeBlocks;
use orders::{EMPTY, Least, Links, List, NONE_CLOSED, UNLINKED, groups};
use palimpsest_flash::geometry::{Divisor, Geometry};
use palimpsest_flash::nand::Nand;
use palimpsest_flash::prefetch::prefetch;

/// No block.
pub const NO_BLOCK: u32 = u32::MAX;

/// State of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockState {
    /// Erased.
    Free,
    /// Being written.
    Open,
    /// Written; may be chosen as a victim.
    Closed,
    /// Chosen: the valid units are being moved.
    Victim,
    /// Bad: never used again.
    Retired,
    /// Member of a separate pool: in no order of the plane.
    Aside,
}

palimpsest_flash::state_of_words!(BlockState { Free, Open, Closed, Victim, Retired, Aside });

/// Sorts `blocks` by their last write, according to the out-of-band areas.
pub fn sort_by_last_write(nand: &Nand, blocks: &mut [u32]) {
    let subpages = nand.geometry().subpages_per_block();
    let last = |block: u32| (block * subpages..(block + 1) * subpages).map(|psn| nand.sequence(psn)).max();
    blocks.sort_by_cached_key(|&block| (last(block), block));
}

/// Fields that every write reads or changes.
#[derive(Debug, Clone, Copy)]
struct Block {
    state: BlockState,
    valid: u32,
    /// Number of the latest change of `valid` while closed; the closing counts as the first.
    came: u64,
}

palimpsest_flash::state!(Block { state, valid, came });

/// Fields of closing and cleaning.
#[derive(Debug, Clone, Copy)]
struct Closing {
    closed_at: u64,
    /// Neighbours in the order of closing.
    age: Links,
    /// Index in the plane's array of closed blocks.
    position: u32,
}

palimpsest_flash::state!(Closing { closed_at, age, position });

struct Plane {
    free: FreeBlocks,
    closed: Vec<u32>,
    by_age: List,
    usable: u32,
}

palimpsest_flash::state!(Plane { free, closed, by_age, usable });

/// Bookkeeping of all blocks of a drive.
pub struct Blocks {
    units_per_block: u32,
    words_per_block: usize,
    blocks_per_plane: u32,
    plane_size: Divisor,
    blocks: Vec<Block>,
    closing: Vec<Closing>,
    valid: Vec<u64>,
    planes: Vec<Plane>,
    /// The least of each group of blocks of a plane.
    least: Vec<Least>,
    closings: u64,
    /// Changes of closed blocks so far.
    changes: u64,
}

palimpsest_flash::state!(Blocks { valid, closings, changes } parts { blocks, closing, planes, least } built {
    units_per_block, words_per_block, blocks_per_plane, plane_size
});

impl Blocks {
    /// All blocks free, with `units_per_block` units each, except those that `is_bad`.
    pub fn new(geometry: &Geometry, units_per_block: u32, is_bad: impl Fn(u32) -> bool) -> Self {
        let words_per_block = (units_per_block as usize).div_ceil(64);
        let mut blocks = Blocks {
            units_per_block,
            words_per_block,
            blocks_per_plane: geometry.blocks_per_plane,
            plane_size: Divisor::new(geometry.blocks_per_plane),
            closing: vec![Closing { closed_at: 0, age: UNLINKED, position: 0 }; geometry.blocks() as usize],
            blocks: Vec::with_capacity(geometry.blocks() as usize),
            valid: vec![0; geometry.blocks() as usize * words_per_block],
            planes: Vec::new(),
            least: vec![NONE_CLOSED; (geometry.planes() * groups(geometry.blocks_per_plane)) as usize],
            closings: 0,
            changes: 0,
        };
        for plane in 0..geometry.planes() {
            let first = plane * geometry.blocks_per_plane;
            let range = first..first + geometry.blocks_per_plane;
            let mut free = FreeBlocks::none_of(range.clone());
            free.extend(range.clone().filter(|&block| !is_bad(block)));
            blocks.blocks.extend(range.map(|block| Block {
                state: if is_bad(block) { BlockState::Retired } else { BlockState::Free },
                valid: 0,
                came: 0,
            }));
            let usable = free.len() as u32;
            blocks.planes.push(Plane { free, closed: Vec::new(), by_age: EMPTY, usable });
        }
        blocks
    }

    /// Units of a block.
    #[inline]
    pub fn units_per_block(&self) -> u32 {
        self.units_per_block
    }

    /// State of `block`.
    #[inline]
    pub fn state(&self, block: u32) -> BlockState {
        self.blocks[block as usize].state
    }

    /// Valid units of `block`.
    #[inline]
    pub fn valid_count(&self, block: u32) -> u32 {
        self.blocks[block as usize].valid
    }

    /// Adds `weight` per valid unit of each block to `valid`.
    pub fn add_valid(&self, valid: &mut [u32], weight: u32) {
        for (sum, block) in valid.iter_mut().zip(&self.blocks) {
            *sum += block.valid * weight;
        }
    }

    /// Number of the closing of `block`; later closings have larger numbers.
    #[inline]
    pub fn closed_at(&self, block: u32) -> u64 {
        self.closing[block as usize].closed_at
    }

    /// Closings so far.
    #[inline]
    pub fn closings(&self) -> u64 {
        self.closings
    }

    /// Closed blocks of `plane`, in no particular order.
    #[inline]
    pub fn closed(&self, plane: u32) -> &[u32] {
        &self.planes[plane as usize].closed
    }

    /// Closed blocks of `plane`, in the order of their numbers.
    pub fn closed_by_number(&self, plane: u32) -> impl Iterator<Item = u32> {
        let first = plane * self.blocks_per_plane;
        (first..first + self.blocks_per_plane).filter(|&block| self.state(block) == BlockState::Closed)
    }

    /// The closed block of `plane` with the fewest `erases`, if some have more by more than `spread`.
    pub fn least_worn(&self, plane: u32, spread: u32, erases: impl Fn(u32) -> u32) -> Option<u32> {
        let closed = self.closed(plane);
        let least = closed.iter().copied().min_by_key(|&block| (erases(block), block))?;
        let most = closed.iter().map(|&block| erases(block)).max()?;
        (most - erases(least) > spread).then_some(least)
    }

    /// Number of free blocks of `plane`.
    #[inline]
    pub fn free_count(&self, plane: u32) -> u32 {
        self.planes[plane as usize].free.len() as u32
    }

    /// Free blocks of `plane`.
    pub fn free_of(&self, plane: u32) -> &FreeBlocks {
        &self.planes[plane as usize].free
    }

    /// Number of blocks of `plane` that are not retired.
    pub fn usable(&self, plane: u32) -> u32 {
        self.planes[plane as usize].usable
    }

    /// True if `unit` of `block` is valid.
    #[inline]
    pub fn is_valid(&self, block: u32, unit: u32) -> bool {
        self.valid[block as usize * self.words_per_block + (unit / 64) as usize] >> (unit % 64) & 1 == 1
    }

    /// Validity bits of `count` <= 64 units of `block` from `first` on.
    #[inline]
    pub fn valid_bits(&self, block: u32, first: u32, count: u32) -> u64 {
        let base = block as usize * self.words_per_block;
        let (word, shift) = ((first / 64) as usize, first % 64);
        let mut bits = self.valid[base + word] >> shift;
        if shift + count > 64 {
            bits |= self.valid[base + word + 1] << (64 - shift);
        }
        if count == 64 { bits } else { bits & ((1 << count) - 1) }
    }

    /// Word number `word` of the validity bits of `block`.
    #[inline]
    pub fn valid_word(&self, block: u32, word: u32) -> u64 {
        self.valid[block as usize * self.words_per_block + word as usize]
    }

    /// Prefetches the fields that invalidating `unit` of `block` changes.
    #[inline]
    pub fn prefetch(&self, block: u32, unit: u32) {
        prefetch(&self.valid, block as usize * self.words_per_block + (unit / 64) as usize);
        prefetch(&self.blocks, block as usize);
    }

    /// Opens the free block of `plane` with the least `wear`; among ties, the first freed.
    pub fn open(&mut self, plane: u32, wear: impl Fn(u32) -> u32) -> Option<u32> {
        let block = self.planes[plane as usize].free.pop(wear)?;
        self.blocks[block as usize].state = BlockState::Open;
        Some(block)
    }

    /// Opens `block`, which must be free.
    pub fn open_this(&mut self, block: u32) {
        let is_free = self.planes[self.plane_size.divide(block) as usize].free.remove(block);
        assert!(is_free, "a free block");
        self.blocks[block as usize].state = BlockState::Open;
    }

    /// Removes `block`, which must be free, from the blocks of the plane for good.
    pub fn set_aside(&mut self, block: u32) {
        self.open_this(block);
        self.blocks[block as usize].state = BlockState::Aside;
        self.planes[self.plane_size.divide(block) as usize].usable -= 1;
    }

    /// After a power cut: closes the open blocks `written` in the order of their last writes, according to the
    /// out-of-band areas.
    pub fn close_in_order(&mut self, nand: &Nand, mut written: Vec<u32>) {
        sort_by_last_write(nand, &mut written);
        written.into_iter().for_each(|block| self.close(block));
    }

    /// Closes an open block, which may be a victim from then on.
    pub fn close(&mut self, block: u32) {
        debug_assert_eq!(self.state(block), BlockState::Open);
        self.closings += 1;
        let plane = self.plane_size.divide(block);
        let closed = &mut self.planes[plane as usize].closed;
        self.blocks[block as usize].state = BlockState::Closed;
        let entry = &mut self.closing[block as usize];
        entry.closed_at = self.closings;
        entry.position = closed.len() as u32;
        closed.push(block);
        self.link_age(block);
        self.note_fewer(block);
    }

    /// Makes a closed block a victim.
    pub fn take_victim(&mut self, block: u32) {
        debug_assert_eq!(self.state(block), BlockState::Closed);
        self.forget_least(block);
        self.unlink_age(block);
        let position = self.closing[block as usize].position;
        let closed = &mut self.planes[self.plane_size.divide(block) as usize].closed;
        closed.swap_remove(position as usize);
        if let Some(&moved) = closed.get(position as usize) {
            self.closing[moved as usize].position = position;
        }
        self.blocks[block as usize].state = BlockState::Victim;
    }

    /// Frees an erased victim.
    pub fn release(&mut self, block: u32) {
        debug_assert_eq!((self.state(block), self.valid_count(block)), (BlockState::Victim, 0));
        self.blocks[block as usize].state = BlockState::Free;
        self.planes[self.plane_size.divide(block) as usize].free.push(block);
    }

    /// Retires a victim, an open block or a block set aside. No unit may be valid.
    pub fn retire(&mut self, block: u32) {
        debug_assert_eq!(self.valid_count(block), 0);
        let state = std::mem::replace(&mut self.blocks[block as usize].state, BlockState::Retired);
        debug_assert!(matches!(state, BlockState::Victim | BlockState::Open | BlockState::Aside));
        if state != BlockState::Aside {
            self.planes[self.plane_size.divide(block) as usize].usable -= 1;
        }
    }

    /// Makes an open block a victim.
    pub fn abandon(&mut self, block: u32) {
        debug_assert_eq!(self.state(block), BlockState::Open);
        self.blocks[block as usize].state = BlockState::Victim;
    }

    /// Marks `unit` of `block` valid.
    #[inline]
    pub fn validate(&mut self, block: u32, unit: u32) {
        let word = &mut self.valid[block as usize * self.words_per_block + (unit / 64) as usize];
        debug_assert_eq!(*word >> (unit % 64) & 1, 0);
        *word |= 1 << (unit % 64);
        self.change_count(block, 1);
    }

    /// Marks `unit` of `block` invalid.
    #[inline]
    pub fn invalidate(&mut self, block: u32, unit: u32) {
        let word = &mut self.valid[block as usize * self.words_per_block + (unit / 64) as usize];
        debug_assert_eq!(*word >> (unit % 64) & 1, 1);
        *word &= !(1 << (unit % 64));
        self.change_count(block, -1);
    }

    /// Marks units of `block` valid: `bits`, counted from `first` on.
    #[inline]
    pub fn validate_bits(&mut self, block: u32, first: u32, bits: u64) {
        let (low, high, word) = self.split_bits(block, first, bits);
        debug_assert_eq!(self.valid_bits(block, first, 64 - bits.leading_zeros()) & bits, 0);
        self.valid[word] |= low;
        if high != 0 {
            self.valid[word + 1] |= high;
        }
        self.change_count(block, bits.count_ones() as i32);
    }

    /// Marks the `count` units of `block` from `first` on valid.
    pub fn validate_range(&mut self, block: u32, first: u32, count: u32) {
        let mut at = first;
        while at < first + count {
            let bits = (64 - at % 64).min(first + count - at);
            self.validate_bits(block, at, u64::MAX >> (64 - bits));
            at += bits;
        }
    }

    /// Marks units of `block` invalid: `bits`, counted from `first` on.
    #[inline]
    pub fn invalidate_bits(&mut self, block: u32, first: u32, bits: u64) {
        let (low, high, word) = self.split_bits(block, first, bits);
        debug_assert_eq!(self.valid_bits(block, first, 64 - bits.leading_zeros()) & bits, bits);
        self.valid[word] &= !low;
        if high != 0 {
            self.valid[word + 1] &= !high;
        }
        self.change_count(block, -(bits.count_ones() as i32));
    }

    /// Shifts `bits` into a word and the next; returns both and the index of the first.
    #[inline]
    fn split_bits(&self, block: u32, first: u32, bits: u64) -> (u64, u64, usize) {
        let shift = first % 64;
        let high = if shift == 0 { 0 } else { bits >> (64 - shift) };
        (bits << shift, high, block as usize * self.words_per_block + (first / 64) as usize)
    }

    #[inline]
    fn change_count(&mut self, block: u32, by: i32) {
        if by == 0 {
            return;
        }
        let entry = &mut self.blocks[block as usize];
        entry.valid = entry.valid.wrapping_add_signed(by);
        if entry.state == BlockState::Closed {
            if by < 0 { self.note_fewer(block) } else { self.note_more(block) }
        }
    }

    /// Checks every count and list against the bitmap. Slow: for tests and the end of a run.
    ///
    /// # Errors
    /// The first inconsistency.
    pub fn check(&mut self) -> Result<(), String> {
        for plane in 0..self.planes.len() as u32 {
            let first = plane * self.blocks_per_plane;
            let mut counts = [0usize; 2];
            for block in first..first + self.blocks_per_plane {
                let words = &self.valid[block as usize * self.words_per_block..][..self.words_per_block];
                let bits: u32 = words.iter().map(|word| word.count_ones()).sum();
                let entry = &self.blocks[block as usize];
                if bits != entry.valid {
                    return Err(format!("block {block} counts {} valid units but marks {bits}", entry.valid));
                }
                match entry.state {
                    BlockState::Free | BlockState::Retired if bits > 0 => {
                        return Err(format!("block {block} is {:?} but holds {bits} valid units", entry.state));
                    }
                    BlockState::Free => counts[0] += 1,
                    BlockState::Closed => counts[1] += 1,
                    _ => {}
                }
            }
            let listed = [self.planes[plane as usize].free.len(), self.planes[plane as usize].closed.len()];
            if counts != listed {
                return Err(format!("plane {plane} has {counts:?} free and closed blocks but lists {listed:?}"));
            }
            let by_count = |block: &u32| (self.valid_count(*block), self.blocks[*block as usize].came);
            let (fewest, found) = (self.closed(plane).iter().copied().min_by_key(by_count), self.fewest_valid(plane));
            if fewest != found {
                return Err(format!(
                    "plane {plane}: the block with the fewest valid units is {fewest:?} but the index has {found:?}"
                ));
            }
        }
        Ok(())
    }
}
