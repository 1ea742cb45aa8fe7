//! A linear feedback shift register as the order of blocks: fio's `random_generator=lfsr`, which visits each block once
//! without a map.
//!
//! Registers have maximal length and XNOR feedback, so the state of all ones never comes; taps: Xilinx, "Efficient
//! Shift Registers, LFSR Counters, and Long Pseudo-Random Sequence Generators" (XAPP052, 1996), Table 3. States beyond
//! the last block are skipped: fewer than two steps a block on average.

/// Taps by length, from 3 bits: XAPP052, Table 3.
#[rustfmt::skip]
const TAPS: &[&[u32]] = &[
    &[3, 2], &[4, 3], &[5, 3], &[6, 5], &[7, 6], &[8, 6, 5, 4], &[9, 5], &[10, 7], &[11, 9], &[12, 6, 4, 1],
    &[13, 4, 3, 1], &[14, 5, 3, 1], &[15, 14], &[16, 15, 13, 4], &[17, 14], &[18, 11], &[19, 6, 2, 1], &[20, 17],
    &[21, 19], &[22, 21], &[23, 18], &[24, 23, 22, 17], &[25, 22], &[26, 6, 2, 1], &[27, 5, 2, 1], &[28, 25],
    &[29, 27], &[30, 6, 4, 1], &[31, 28], &[32, 22, 2, 1], &[33, 20], &[34, 27, 2, 1], &[35, 33], &[36, 25],
    &[37, 5, 4, 3, 2, 1], &[38, 6, 5, 1], &[39, 35], &[40, 38, 21, 19], &[41, 38], &[42, 41, 20, 19],
    &[43, 42, 38, 37], &[44, 43, 18, 17], &[45, 44, 42, 41], &[46, 45, 26, 25], &[47, 42], &[48, 47, 21, 20],
    &[49, 40], &[50, 49, 24, 23], &[51, 50, 36, 35], &[52, 49],
];
const SHORTEST: u32 = 3;

/// Blocks `0..n`, each once a pass.
#[derive(Debug, Clone)]
pub struct Lfsr {
    n: u64,
    top: u64,
    feedback: u64,
    state: u64,
    given: u64,
}

impl Lfsr {
    /// The order of `n` blocks for `seed`; `None` from 2^52 blocks on.
    pub fn new(n: u64, seed: u64) -> Option<Lfsr> {
        let (bits, taps) = (SHORTEST..).zip(TAPS).find(|(bits, _)| 1 << bits > n)?;
        let feedback = taps.iter().fold(0, |mask, tap| mask | 1u64 << (tap - 1));
        let mut lfsr = Lfsr { n, top: 1 << (bits - 1), feedback, state: 0, given: 0 };
        lfsr.reset(seed);
        // fio steps once more before the first block.
        lfsr.step();
        Some(lfsr)
    }

    /// Begins a pass at the block of `seed`.
    pub fn reset(&mut self, seed: u64) {
        let mask = (self.top << 1) - 1;
        self.given = 0;
        // fio refuses a seed of ones, because that state never changes.
        self.state = if seed & mask == mask { 0 } else { seed & mask };
    }

    /// The next block; `None` at the end of the pass.
    #[inline]
    pub fn next(&mut self) -> Option<u64> {
        if self.given >= self.n {
            return None;
        }
        self.given += 1;
        loop {
            self.step();
            if self.state < self.n {
                return Some(self.state);
            }
        }
    }

    #[inline]
    fn step(&mut self) {
        let feedback = if self.state & 1 == 0 { self.feedback } else { 0 };
        self.state = ((self.state >> 1) | self.top) ^ feedback;
    }
}

#[cfg(test)]
mod tests;
