//! The positions of a polar code that hold the message, and moving packed message bits there and back.
//!
//! These are the k positions with the least probability to be known on a binary erasure channel whose cells are known
//! (stuck) with probability 1/2 (Burshtein and Strugatski 2013, with Arıkan's recursion): known with p, a pair of cells
//! gives p² and 1 − (1 − p)² = 2p − p². Small p are carried exactly. A message bit fails if the position is known with
//! the other value, so half the sum of p over the message bounds the failure.

use std::cmp::Ordering;

/// Positions of k message bits among 64 words.len().
pub(super) struct Positions {
    /// 1 at the message bits.
    pub(super) mask: Vec<u64>,
    /// Words that hold message bits only: the first bits of the message, in order.
    whole: Vec<usize>,
    /// Words with some message bits: the rest of the message.
    mixed: Vec<Mixed>,
    /// Masks of the moves by 1, 2, 4, ... 32 places that compress a mixed word's message bits.
    moves: [Vec<u64>; 6],
    scratch: Vec<u64>,
}

struct Mixed {
    word: usize,
    mask: u64,
    /// Offset of these bits in the message, in bits.
    begin: usize,
}

/// Probability that each of n = 2^m positions is known, n ≥ 1.
fn known_rates(n: usize) -> Vec<f64> {
    let mut rates = vec![0.5];
    while rates.len() < n {
        rates = rates.iter().flat_map(|&p| [p * p, 2.0 * p - p * p]).collect();
    }
    rates
}

/// The k <= n positions with the least probability to be known, in no order, each with that probability.
fn choose(n: usize, k: usize) -> Vec<(f64, u32)> {
    let mut positions: Vec<(f64, u32)> = known_rates(n).into_iter().zip(0..).collect();
    if k < n {
        positions.select_nth_unstable_by(k, by_rate);
    }
    positions.truncate(k);
    positions
}

fn by_rate(one: &(f64, u32), two: &(f64, u32)) -> Ordering {
    one.0.total_cmp(&two.0).then(one.1.cmp(&two.1))
}

/// The fewest bits less than `wanted` by which the bound on failures falls to `failure` or less, on 2^m = n cells.
pub(super) fn bits_short(n: usize, wanted: usize, failure: f64) -> usize {
    let mut positions = choose(n, wanted);
    positions.sort_unstable_by(by_rate);
    let mut bound = 0.0;
    let good = positions.iter().take_while(|(rate, _)| {
        bound += 0.5 * rate;
        bound <= failure
    });
    wanted - good.count()
}

impl Positions {
    /// The best k of 64 * `words` positions, `words` a power of two.
    pub(super) fn new(words: usize, k: usize) -> Self {
        let mut mask = vec![0u64; words];
        for (_, at) in choose(64 * words, k) {
            mask[at as usize / 64] |= 1 << (at % 64);
        }
        let whole: Vec<usize> = (0..words).filter(|&word| mask[word] == u64::MAX).collect();
        let mut begin = 64 * whole.len();
        let mut mixed = Vec::new();
        let mut moves: [Vec<u64>; 6] = Default::default();
        for (word, &mask) in mask.iter().enumerate().filter(|&(_, &mask)| mask != 0 && mask != u64::MAX) {
            mixed.push(Mixed { word, mask, begin });
            begin += mask.count_ones() as usize;
            moves_of(mask).iter().zip(&mut moves).for_each(|(&each, all)| all.push(each));
        }
        let scratch = vec![0; mixed.len()];
        Positions { mask, whole, mixed, moves, scratch }
    }

    /// Words of a message; [`Self::gather`] and [`Self::scatter`] need one more.
    pub(super) fn message_words(k: usize) -> usize {
        k.div_ceil(64)
    }

    /// Writes the bits of `message` to their positions in `u`; other bits stay.
    pub(super) fn scatter(&mut self, message: &[u64], u: &mut [u64]) {
        for (&word, &bits) in self.whole.iter().zip(message) {
            u[word] = bits;
        }
        for (bits, mixed) in self.scratch.iter_mut().zip(&self.mixed) {
            let (word, bit) = (mixed.begin / 64, mixed.begin % 64);
            *bits = message[word] >> bit | message[word + 1] << 1 << (63 - bit);
        }
        for (stage, moves) in self.moves.iter().enumerate().rev() {
            for (bits, &mv) in self.scratch.iter_mut().zip(moves) {
                *bits = *bits & !mv | *bits << (1 << stage) & mv;
            }
        }
        for (&bits, mixed) in self.scratch.iter().zip(&self.mixed) {
            u[mixed.word] = u[mixed.word] & !mixed.mask | bits & mixed.mask;
        }
    }

    /// Reads the bits of `message` from their positions in `u`. Bits after the last are 0.
    pub(super) fn gather(&mut self, u: &[u64], message: &mut [u64]) {
        for (&word, bits) in self.whole.iter().zip(&mut *message) {
            *bits = u[word];
        }
        for (bits, mixed) in self.scratch.iter_mut().zip(&self.mixed) {
            *bits = u[mixed.word] & mixed.mask;
        }
        for (stage, moves) in self.moves.iter().enumerate() {
            for (bits, &mv) in self.scratch.iter_mut().zip(moves) {
                let moved = *bits & mv;
                *bits = *bits ^ moved | moved >> (1 << stage);
            }
        }
        message[self.whole.len()..].fill(0);
        for (&bits, mixed) in self.scratch.iter().zip(&self.mixed) {
            let (word, bit) = (mixed.begin / 64, mixed.begin % 64);
            message[word] |= bits << bit;
            message[word + 1] |= bits >> 1 >> (63 - bit);
        }
    }
}

/// Masks of the moves that compress the bits under `mask` (Warren, "Hacker's Delight", section 7-4).
fn moves_of(mut mask: u64) -> [u64; 6] {
    let mut zeros = !mask << 1;
    std::array::from_fn(|stage| {
        let odd = (0..6).fold(zeros, |odd, step| odd ^ odd << (1 << step));
        let moved = odd & mask;
        mask = mask ^ moved | moved >> (1 << stage);
        zeros &= !odd;
        moved
    })
}

#[cfg(test)]
mod tests;
