//! A linear feedback shift register as the order of blocks: fio's `random_generator=lfsr`. It visits each block once without a map.
//!
//! Registers of maximal length with XNOR feedback, whose state of all ones is the one that never comes; the taps are those of
//! Xilinx, "Efficient Shift Registers, LFSR Counters, and Long Pseudo-Random Sequence Generators" (XAPP052, 1996), Table 3. States
//! beyond the last block are skipped: fewer than two steps a block on average.

/// Taps by length, from 3 bits: XAPP052, Table 3.
const TAPS: &[&[u32]] = &[
    &[3, 2],
    &[4, 3],
    &[5, 3],
    &[6, 5],
    &[7, 6],
    &[8, 6, 5, 4],
    &[9, 5],
    &[10, 7],
    &[11, 9],
    &[12, 6, 4, 1],
    &[13, 4, 3, 1],
    &[14, 5, 3, 1],
    &[15, 14],
    &[16, 15, 13, 4],
    &[17, 14],
    &[18, 11],
    &[19, 6, 2, 1],
    &[20, 17],
    &[21, 19],
    &[22, 21],
    &[23, 18],
    &[24, 23, 22, 17],
    &[25, 22],
    &[26, 6, 2, 1],
    &[27, 5, 2, 1],
    &[28, 25],
    &[29, 27],
    &[30, 6, 4, 1],
    &[31, 28],
    &[32, 22, 2, 1],
    &[33, 20],
    &[34, 27, 2, 1],
    &[35, 33],
    &[36, 25],
    &[37, 5, 4, 3, 2, 1],
    &[38, 6, 5, 1],
    &[39, 35],
    &[40, 38, 21, 19],
    &[41, 38],
    &[42, 41, 20, 19],
    &[43, 42, 38, 37],
    &[44, 43, 18, 17],
    &[45, 44, 42, 41],
    &[46, 45, 26, 25],
    &[47, 42],
    &[48, 47, 21, 20],
    &[49, 40],
    &[50, 49, 24, 23],
    &[51, 50, 36, 35],
    &[52, 49],
];
/// Length of the first of the taps.
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
    /// The order of `n` blocks for `seed`; `None` for 2^52 blocks and more.
    pub fn new(n: u64, seed: u64) -> Option<Lfsr> {
        let (bits, taps) = (SHORTEST..).zip(TAPS).find(|(bits, _)| 1 << bits > n)?;
        let feedback = taps.iter().fold(0, |mask, tap| mask | 1u64 << (tap - 1));
        let mut lfsr = Lfsr { n, top: 1 << (bits - 1), feedback, state: 0, given: 0 };
        lfsr.reset(seed);
        // fio steps once more before its first block.
        lfsr.step();
        Some(lfsr)
    }

    /// Begins a pass, at the block that `seed` says.
    pub fn reset(&mut self, seed: u64) {
        let mask = (self.top << 1) - 1;
        self.given = 0;
        // fio refuses a seed of ones, which would stay there.
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
mod tests {
    use super::*;

    #[test]
    fn a_pass_has_each_block_once() {
        for n in (1..200).chain([4095, 4096, 4097, 100_000, 1 << 17, (1 << 20) + 1]) {
            let mut lfsr = Lfsr::new(n, 12_345).unwrap();
            for pass in 0..2 {
                let mut seen = vec![false; n as usize];
                while let Some(block) = lfsr.next() {
                    assert!(!std::mem::replace(&mut seen[block as usize], true), "{n}: {block} in pass {pass}");
                }
                assert!(seen.iter().all(|&seen| seen), "{n}: pass {pass}");
                lfsr.reset(if pass == 0 { u64::MAX } else { 0 });
            }
        }
    }

    /// A register of maximal length returns to its state after 2^bits - 1 steps, and after no proper divisor of them. Steps are
    /// linear but for a constant, so that a power of the step is a matrix.
    #[test]
    fn every_register_has_maximal_length() {
        for (bits, taps) in (SHORTEST..).zip(TAPS) {
            assert_eq!(taps[0], bits);
            let full = (1u64 << bits) - 1;
            assert!(returns(bits, taps, full), "{bits}");
            let mut rest = full;
            let mut prime = 2;
            while rest > 1 {
                if prime * prime > rest {
                    prime = rest;
                }
                if rest.is_multiple_of(prime) {
                    assert!(!returns(bits, taps, full / prime), "{bits}: the period divides {full} / {prime}");
                    while rest.is_multiple_of(prime) {
                        rest /= prime;
                    }
                }
                prime += 1;
            }
        }
    }

    /// Whether `steps` steps of the register without its constant are the identity.
    fn returns(bits: u32, taps: &[u32], steps: u64) -> bool {
        let feedback = taps.iter().fold(0, |mask, tap| mask | 1u64 << (tap - 1));
        let step = |state: u64| (state >> 1) ^ if state & 1 == 1 { feedback } else { 0 };
        let apply = |matrix: &[u64], state: u64| {
            (0..bits as usize).filter(|&bit| state >> bit & 1 == 1).fold(0, |sum, bit| sum ^ matrix[bit])
        };
        let mut power: Vec<u64> = (0..bits).map(|bit| step(1 << bit)).collect();
        let mut product: Vec<u64> = (0..bits).map(|bit| 1 << bit).collect();
        let mut left = steps;
        while left > 0 {
            if left & 1 == 1 {
                product = product.iter().map(|&column| apply(&power, column)).collect();
            }
            power = power.iter().map(|&column| apply(&power, column)).collect();
            left >>= 1;
        }
        product.iter().zip(0..).all(|(&column, bit)| column == 1 << bit)
    }
}
