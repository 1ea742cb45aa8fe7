//! A keyed bijection of `0..n` without a table: the place in the region of each rank of a skewed distribution.
//!
//! Rounds of add, xor-shift and odd multiply permute the next power of two; a result outside `0..n` is permuted again
//! until inside (cycle walking; Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002), which takes fewer
//! than two rounds on average. Not an encryption.

use palimpsest_flash::rng::split_mix;

/// The bijection.
#[derive(Debug, Clone)]
pub struct Scatter {
    n: u64,
    mask: u64,
    shift: u32,
    add: u64,
    multiply: [u64; 2],
}

impl Scatter {
    /// A bijection of `0..n` (`n` > 0) for `key`.
    pub fn new(n: u64, key: u64) -> Self {
        assert!(n > 0);
        let bits = u64::BITS - (n - 1).leading_zeros();
        let mask = u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0);
        let mut state = key;
        let mut draw = || split_mix(&mut state);
        Scatter { n, mask, shift: (bits / 2).max(1), add: draw(), multiply: [draw() | 1, draw() | 1] }
    }

    /// The place of `rank` (below `n`).
    #[inline]
    pub fn place(&self, rank: u64) -> u64 {
        debug_assert!(rank < self.n);
        let mut at = rank;
        loop {
            at = at.wrapping_add(self.add) & self.mask;
            for multiply in self.multiply {
                at ^= at >> self.shift;
                at = at.wrapping_mul(multiply) & self.mask;
            }
            at ^= at >> self.shift;
            if at < self.n {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests;
