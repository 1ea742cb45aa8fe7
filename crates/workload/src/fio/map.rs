//! fio's random map: the blocks of a region that a pass has used, one bit a block.
//!
//! Above the bits are levels in which a bit marks a full word below, so that a search for the next free block takes a
//! few steps however full the map is. The levels add 1/63 to the memory.

use palimpsest_flash::prefetch::prefetch;

/// Most blocks of a map: 4 GiB of memory.
pub const MOST_BLOCKS: u64 = 1 << 35;

/// The used blocks of `0..n`.
#[derive(Debug, Clone)]
pub struct BlockMap {
    n: u64,
    /// The bits, then the levels above them up to one word; bits beyond the end are set.
    levels: Vec<Vec<u64>>,
}

impl BlockMap {
    /// A map of `n` blocks, 0 to [`MOST_BLOCKS`], all free.
    pub fn new(n: u64) -> BlockMap {
        let mut map = BlockMap { n, levels: Vec::new() };
        let mut bits = n;
        loop {
            let words = bits.div_ceil(64).max(1);
            let mut level = vec![0; words as usize];
            close(&mut level, bits);
            map.levels.push(level);
            if words == 1 {
                return map;
            }
            bits = words;
        }
    }

    /// Frees all blocks.
    pub fn clear(&mut self) {
        let mut bits = self.n;
        for level in &mut self.levels {
            level.fill(0);
            close(level, bits);
            bits = level.len() as u64;
        }
    }

    /// True if `block` is used; blocks beyond the end are not, as in fio.
    #[inline]
    pub fn used(&self, block: u64) -> bool {
        block < self.n && self.levels[0][(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    /// Prefetches the bit of `block`.
    #[inline]
    pub fn expect(&self, block: u64) {
        prefetch(&self.levels[0], (block / 64) as usize);
    }

    /// Marks the run of free blocks from `block` on, at most `most`; returns the length.
    #[inline]
    pub fn take(&mut self, block: u64, most: u64) -> u64 {
        let end = block.saturating_add(most).min(self.n);
        let mut at = block;
        while at < end && !self.used(at) {
            self.set(at);
            at += 1;
        }
        at.saturating_sub(block)
    }

    #[inline]
    fn set(&mut self, block: u64) {
        let mut at = block;
        for level in &mut self.levels {
            let word = &mut level[(at / 64) as usize];
            *word |= 1 << (at % 64);
            if *word != u64::MAX {
                return;
            }
            at /= 64;
        }
    }

    /// The first free block after `block`, else from the start; `None` if all are used.
    pub fn next_free(&self, block: u64) -> Option<u64> {
        self.free_from(block.saturating_add(1)).or_else(|| self.free_from(0))
    }

    fn free_from(&self, start: u64) -> Option<u64> {
        // Up to the first word with a free bit at or after the start, then down to the first free block below.
        let (mut level, mut at) = (0, start);
        loop {
            let words = self.levels.get(level)?;
            if let Some(word) = words.get((at / 64) as usize) {
                let free = !word & (u64::MAX << (at % 64));
                if free != 0 {
                    at = at / 64 * 64 + u64::from(free.trailing_zeros());
                    break;
                }
            }
            at = at / 64 + 1;
            level += 1;
        }
        while level > 0 {
            level -= 1;
            at = at * 64 + u64::from(self.levels[level][at as usize].trailing_ones());
        }
        Some(at)
    }
}

/// Sets the bits of the last word beyond `bits`.
fn close(level: &mut [u64], bits: u64) {
    let last = level.last_mut().expect("a level has a word");
    if bits == 0 {
        *last = u64::MAX;
    } else if !bits.is_multiple_of(64) {
        *last = u64::MAX << (bits % 64);
    }
}

#[cfg(test)]
mod tests;
