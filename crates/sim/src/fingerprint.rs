//! What is kept of a sector in place of its bytes, to know them again.

/// A number that depends on every bit of a sector, 0 for zeros: four lanes of folded multiplications, as wyhash has them (Wang Yi, 2019).
/// One of 2^32 wrong sectors passes for the right one.
pub fn fingerprint(sector: &[u8]) -> u32 {
    const KEYS: [u64; 4] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3, 0x5899_65cc_7537_4cc3];
    let fold = |one: u64, two: u64| {
        let product = u128::from(one) * u128::from(two);
        product as u64 ^ (product >> 64) as u64
    };
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("a word has 8 bytes"));
    let (mut lanes, mut any) = (KEYS, 0);
    for block in sector.chunks_exact(64) {
        for (lane, (pair, key)) in lanes.iter_mut().zip(block.chunks_exact(16).zip(KEYS)) {
            let (one, two) = (word(&pair[..8]), word(&pair[8..]));
            any |= one | two;
            *lane = fold(*lane ^ one, two ^ key).wrapping_add(one.rotate_left(32) ^ two);
        }
    }
    let all = fold(lanes[0] ^ lanes[1].rotate_left(17), lanes[2] ^ lanes[3].rotate_left(31) ^ KEYS[1]);
    if any == 0 { 0 } else { (all as u32 ^ (all >> 32) as u32).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_fingerprint_depends_on_every_bit_and_place() {
        let mut sector: Vec<u8> = (0..512u32).map(|at| ((at * 37) >> 3) as u8).collect();
        let (right, mut seen) = (fingerprint(&sector), BTreeSet::new());
        for bit in 0..4096 {
            sector[bit / 8] ^= 1 << (bit % 8);
            seen.insert(fingerprint(&sector));
            sector[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(seen.len() == 4096 && !seen.contains(&right), "two sectors with one bit changed have one fingerprint");
        let mut alone = BTreeSet::from([fingerprint(&[0; 512])]);
        for at in 0..512 {
            let mut sector = [0; 512];
            sector[at] = 1;
            alone.insert(fingerprint(&sector));
        }
        assert_eq!((alone.len(), alone.first()), (513, Some(&0)));
        sector.swap(64, 128);
        assert_ne!(fingerprint(&sector), right);
    }
}
