//! Tests of the module `fingerprint`.

use super::*;
use palimpsest_flash::rng::Rng;
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
    for (one, two) in [(64, 128), (8, 16), (0, 4), (32, 64), (504, 8)] {
        let mut swapped = sector.clone();
        swapped.swap(one, two);
        assert_ne!(fingerprint(&swapped), right, "bytes {one} and {two} are in each other's place");
        swapped.copy_from_slice(&sector);
        (0..8).for_each(|byte| swapped.swap(one / 8 * 8 + byte, two / 8 * 8 + byte));
        assert!(one / 8 == two / 8 || fingerprint(&swapped) != right, "words of {one} and {two}");
    }
}

#[test]
fn sectors_in_a_row_have_what_each_has_alone_on_any_processor() {
    let mut rng = Rng::new(5, 0);
    let sectors: Vec<u8> = (0..64 * 512).map(|at| if at / 512 % 5 == 0 { 0 } else { rng.below(256) as u8 }).collect();
    let mut found = Vec::new();
    fingerprints(&sectors, |sector| found.push(sector));
    let alone: Vec<u32> = sectors.chunks_exact(512).map(fingerprint).collect();
    let (words, _) = sectors.as_chunks::<8>();
    let (portable, _) = words.as_chunks();
    let portable: Vec<u32> = portable.iter().map(|words| merged(&lanes(words)) ^ ZEROS).collect();
    assert_eq!((&found, &found), (&alone, &portable));
    assert!(found.iter().enumerate().all(|(index, &sector)| (sector == 0) == (index % 5 == 0)), "0 for zeros alone");
}
