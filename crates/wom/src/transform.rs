//! The polar transform x = uG over GF(2), G the m-th Kronecker power of [[1, 0], [1, 1]], on packed bits, 64 a word.
//!
//! Bit i of the sequence is bit i mod 64 of word i / 64. G is an involution. The halves of any aligned piece transform
//! from (a, b) to (a + b, b), at every size in any order.

/// The lower halves of the pieces of 2, 4, ... 64 bits.
const LOW: [u64; 6] = [
    0x5555_5555_5555_5555,
    0x3333_3333_3333_3333,
    0x0f0f_0f0f_0f0f_0f0f,
    0x00ff_00ff_00ff_00ff,
    0x0000_ffff_0000_ffff,
    0x0000_0000_ffff_ffff,
];

/// Transforms the 64 bits of a word.
#[inline]
pub(super) fn word(mut x: u64) -> u64 {
    for (level, low) in LOW.iter().enumerate() {
        x ^= x >> (1 << level) & low;
    }
    x
}

/// Transforms the bits of four words, in lanes that the compiler makes vectors of.
#[inline]
pub(super) fn four(x: &mut [u64; 4]) {
    for (level, low) in LOW.iter().enumerate() {
        for x in &mut *x {
            *x ^= *x >> (1 << level) & low;
        }
    }
    *x = [x[0] ^ x[1] ^ x[2] ^ x[3], x[1] ^ x[3], x[2] ^ x[3], x[3]];
}

/// Transforms all bits of `words`, a power of two in number.
pub(super) fn transform(words: &mut [u64]) {
    debug_assert!(words.len().is_power_of_two());
    let (fours, rest) = words.as_chunks_mut::<4>();
    fours.iter_mut().for_each(four);
    match rest {
        [a, b] => (*a, *b) = (word(*a) ^ word(*b), word(*b)),
        [a] => *a = word(*a),
        _ => {}
    }
    let mut half = 4;
    while half < words.len() {
        for piece in words.chunks_exact_mut(2 * half) {
            let (a, b) = piece.split_at_mut(half);
            a.iter_mut().zip(b).for_each(|(a, b)| *a ^= *b);
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests;
