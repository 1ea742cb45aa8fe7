//! Sets of subpages and of code words of one page, as bits of a word. Ignored: pages of more than 64 parts.

use crate::units::SECTOR_BYTES;

/// A set of subpages of one page, bit i for subpage i.
pub type SubpageMask = u64;

/// A set of ECC code words of one page, bit i for word i; at most 64.
pub type WordMask = u64;

/// The first `count` subpages of a page; `count` must be 1 to 64.
#[inline]
pub fn first_subpages(count: u32) -> SubpageMask {
    u64::MAX >> (64 - count)
}

/// Bits `begin` to `end`, `end` excluded; at least one and at most 64 bits.
#[inline]
pub fn mask_of(begin: u32, end: u32) -> u64 {
    (u64::MAX << begin) & (u64::MAX >> (64 - end))
}

/// The number of bits of `mask`. Most masks have one bit or a prefix, which need no instruction that old processors
/// lack.
#[inline]
pub fn count(mask: u64) -> u32 {
    if mask & mask.wrapping_add(1) == 0 {
        64 - mask.leading_zeros()
    } else if mask & (mask - 1) == 0 {
        1
    } else {
        mask.count_ones()
    }
}

impl super::Nand {
    /// Code words that hold `sectors` sectors of a physical page, from sector `first` on.
    #[inline]
    pub fn words_of(&self, first: u32, sectors: u32) -> WordMask {
        let word_at = |sector: u32, back| self.widths.word_bytes.divide(sector * SECTOR_BYTES as u32 - back);
        mask_of(word_at(first, 0), word_at(first + sectors, 1) + 1)
    }
}

#[cfg(test)]
mod tests;
