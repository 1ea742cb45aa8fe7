//! Tests of shift registers: each pass visits each block once, and each register has maximal length.

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

/// A register of maximal length returns to the first state after 2^bits - 1 steps, and after no proper divisor of them.
/// Steps are linear but for a constant, so that a power of the step is a matrix.
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

/// True if `steps` steps of the register, without the constant, are the identity.
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
