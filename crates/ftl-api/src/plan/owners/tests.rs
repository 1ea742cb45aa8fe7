//! Tests of the module `owners`.

use super::*;
use palimpsest_flash::rng::Rng;

#[test]
fn programs_count_for_the_last_writer_of_the_data() {
    for width in [1, 2, 4, 8] {
        let mut owners = Owners::new(8, width);
        owners.wrote(0..4, 7);
        owners.wrote(2..6, 3);
        owners.programmed(Cause::Host, 0b1111, &[0, 1, 2, 3]);
        owners.programmed(Cause::Gc, 0b0101, &[5, 0, 6, 0]);
        // Records of the layer, padding and numbers beyond the drive have no owner.
        owners.programmed(Cause::Metadata, 0b1111, &[0, 1, 2, 3]);
        owners.programmed(Cause::Host, 0b1, &[u32::MAX]);
        assert_eq!([7, 3, 9].map(|owner| owners.programmed_of(owner)), [2, 3, 0], "tiles of {width}");
        owners.restart();
        owners.programmed(Cause::Gc, 0b1, &[0]);
        assert_eq!([7, 3].map(|owner| owners.programmed_of(owner)), [1, 0], "tiles of {width}");
    }
}

#[test]
fn tiles_count_as_their_subpages() {
    let mut rng = Rng::new(1, 2);
    for width in [1, 2, 4] {
        let (mut owners, mut of, mut expected) = (Owners::new(32, width), [0; 32], [0; 301]);
        for _ in 0..4000 {
            // More owners than a byte can name.
            let most = [2, 300][rng.below(2) as usize];
            let (first, owner) = (rng.below(32) as u32, 1 + rng.below(most) as u32);
            let lsns = first..(first + 1 + rng.below(12) as u32).min(32);
            lsns.clone().for_each(|lsn| of[lsn as usize] = owner);
            owners.wrote(lsns, owner);
            let page = rng.below(8) as u32 * 4;
            let logical: Vec<u32> = (page..page + 4).collect();
            let written = 1 + rng.below(15);
            owners.programmed(Cause::Gc, written, &logical);
            let counted = logical.iter().filter(|&&lsn| written >> (lsn - page) & 1 == 1);
            counted.for_each(|&lsn| expected[of[lsn as usize] as usize] += 1);
        }
        let found: Vec<u64> = (1..301).map(|owner| owners.programmed_of(owner)).collect();
        assert_eq!(found, expected[1..], "tiles of {width}");
    }
}

#[test]
fn owners_beyond_the_numbers_count_as_none() {
    let mut owners = Owners::new(1, 1);
    for owner in 0..70_000 {
        owners.wrote(0..1, owner);
    }
    owners.programmed_one(0);
    assert_eq!([65_534, 65_535, 69_999].map(|owner| owners.programmed_of(owner)), [0, 0, 0]);
    owners.wrote(0..1, 65_534);
    owners.programmed_one(0);
    assert_eq!([65_534, 69_999].map(|owner| owners.programmed_of(owner)), [1, 0]);
}
