//! The project's random numbers: xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
//! 2021) seeded by SplitMix64.
//!
//! No library is used, because results of a seed must stay byte-identical in every later version, and libraries change
//! the sequences of their samplers. Not for cryptography.

/// A seeded source of random numbers. Equal seeds give equal sequences on every machine.
#[derive(Debug, Clone)]
pub struct Rng {
    s: [u64; 4],
}

crate::state!(Rng { s });

impl Rng {
    /// A source for `seed`; `stream` separates independent sources that share a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut state = seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95);
        Rng { s: std::array::from_fn(|_| split_mix(&mut state)) }
    }

    /// Uniform over all 64-bit values.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.s;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform over `0..n` (`n` > 0) by multiply and shift; the bias is below n / 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform over [0, 1) with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.unit() < p
    }
}

/// One step of SplitMix64; also a good mixing function for fingerprints.
#[inline]
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(*state)
}

/// The finalizer of SplitMix64: a bijection of 64-bit values that scatters neighbours.
#[inline]
pub fn mix(value: u64) -> u64 {
    let z = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
