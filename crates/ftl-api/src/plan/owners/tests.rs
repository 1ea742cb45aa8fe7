//! Tests of the module `owners`.

use super::*;

#[test]
fn programs_count_for_the_last_writer_of_the_data() {
    let mut owners = Owners::new(8);
    owners.wrote(0..4, 7);
    owners.wrote(2..6, 3);
    owners.programmed(Cause::Host, 0b1111, &[0, 1, 2, 3]);
    owners.programmed(Cause::Gc, 0b0101, &[5, 0, 6, 0]);
    // Records of the layer, padding and numbers beyond the drive have no owner.
    owners.programmed(Cause::Metadata, 0b1111, &[0, 1, 2, 3]);
    owners.programmed(Cause::Host, 0b1, &[u32::MAX]);
    assert_eq!([7, 3, 9].map(|owner| owners.programmed_of(owner)), [2, 3, 0]);
    owners.restart();
    owners.programmed(Cause::Gc, 0b1, &[0]);
    assert_eq!([7, 3].map(|owner| owners.programmed_of(owner)), [1, 0]);
}

#[test]
fn owners_beyond_the_numbers_count_as_none() {
    let mut owners = Owners::new(1);
    for owner in 0..70_000 {
        owners.wrote(0..1, owner);
    }
    owners.programmed_one(0);
    assert_eq!([65_534, 65_535, 69_999].map(|owner| owners.programmed_of(owner)), [0, 0, 0]);
    owners.wrote(0..1, 65_534);
    owners.programmed_one(0);
    assert_eq!([65_534, 69_999].map(|owner| owners.programmed_of(owner)), [1, 0]);
}
